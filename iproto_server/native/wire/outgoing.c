/* A connection's responses: where they are made, and how they are sent; the twins of Output
 * (server/connection/pending_output.py), and of the shortest ways out of a Connection (server/connection/connection.py).
 */
#include "../native.h"

enum {
    NAME_BATCH, NAME_ADD, NAME_REPLY, NAME_SCHEDULE, NAME_SEND_OUTPUT, NAME_TRANSPORT_CLOSING, NAME_WRITE,
    NAME_AFTER_SEND, NAME_UNSENT, NAME_ADMIT, NAMES
};
static PyObject *names[NAMES];

#define LARGE (64 * 1024) /* as in server/limits/unsent_limit.py */

static int make_names(void)
{
    static const char *const texts[NAMES] = {
        "batch", "add", "reply", "_schedule", "send_output", "is_closing", "write", "_sent", "unsent", "admit",
    };
    for (int place = 0; place < NAMES; place++)
        if (!names[place] && !(names[place] = PyUnicode_InternFromString(texts[place])))
            return -1;
    return 0;
}

/* -- Output -- */

/* Which frames are not plain answers. */
typedef struct {
    Py_ssize_t start;
    size_t size : sizeof(size_t) * 8 - 1, is_pushed : 1; /* otherwise it rests on rows that are not written */
} Mark;

enum { FIRST_MARKS = 8, SPARE = 64 };

/* What there is to send. */
typedef struct Pending {
    Buffer buffer;
    Mark *marks;
    Py_ssize_t count, room, logged; /* of marks; `logged` of them are not of pushed frames */
    Mark first[FIRST_MARKS];
    struct Pending *next; /* of the spare ones */
} Pending;

typedef struct {
    PyObject_HEAD
    Pending *pending;      /* NULL while there is nothing: most connections have nothing to send */
    Py_ssize_t expected; /* how much room may be needed at once */
} OutputObject;

static Pending *spare;
static int spares;

static OutputObject *as_output(PyObject *object)
{
    return (OutputObject *)object;
}

static Py_ssize_t size_of(const OutputObject *self)
{
    return self->pending ? self->pending->buffer.size : 0;
}

static Pending *new_pending(void)
{
    Pending *pending = spare;
    if (pending) {
        spare = pending->next;
        spares--;
    } else if (!(pending = PyMem_Malloc(sizeof *pending))) {
        PyErr_NoMemory();
        return NULL;
    }
    buffer_init(&pending->buffer);
    pending->marks = pending->first;
    pending->count = pending->logged = 0;
    pending->room = FIRST_MARKS;
    return pending;
}

static void free_pending(OutputObject *self)
{
    Pending *pending = self->pending;
    self->pending = NULL;
    if (!pending)
        return;
    buffer_free(&pending->buffer);
    if (pending->marks != pending->first)
        PyMem_Free(pending->marks);
    if (spares < SPARE) {
        pending->next = spare;
        spare = pending;
        spares++;
    } else
        PyMem_Free(pending);
}

static PyObject *new_output(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    if (PyTuple_GET_SIZE(args) || (keywords && PyDict_GET_SIZE(keywords)))
        return PyErr_Format(PyExc_TypeError, "Output() takes no arguments");
    return type->tp_alloc(type, 0);
}

static void dealloc_output(PyObject *object)
{
    free_pending(as_output(object));
    Py_TYPE(object)->tp_free(object);
}

static int grow_marks(Pending *self)
{
    Py_ssize_t room = 2 * self->room;
    Mark *marks = PyMem_New(Mark, (size_t)room);
    if (!marks) {
        PyErr_NoMemory();
        return -1;
    }
    memcpy(marks, self->marks, (size_t)self->count * sizeof(Mark));
    if (self->marks != self->first)
        PyMem_Free(self->marks);
    self->marks = marks;
    self->room = room;
    return 0;
}

/* Remember of what is behind `start` what it is. */
static int mark(Pending *self, Py_ssize_t start, int is_pushed)
{
    if (self->count == self->room && grow_marks(self) < 0)
        return -1;
    self->marks[self->count++] = (Mark){start, (size_t)(self->buffer.size - start), (size_t)is_pushed};
    self->logged += !is_pushed;
    return 0;
}

/* Where frames are put, with room for as much as was sent last; NULL with an exception. */
static Pending *pending_of(OutputObject *self)
{
    if (self->pending)
        return self->pending;
    if (!(self->pending = new_pending()))
        return NULL;
    if (self->expected && buffer_reserve(&self->pending->buffer, self->expected) < 0)
        free_pending(self);
    return self->pending;
}

static int append_bytes(Buffer *buffer, const void *data, Py_ssize_t size)
{
    uint8_t *at = buffer_grow(buffer, size);
    if (!at)
        return -1;
    memcpy(at, data, (size_t)size);
    return 0;
}

/* Append a frame that was made elsewhere. Nothing has changed if that fails. */
static int append_frame(Buffer *buffer, PyObject *frame)
{
    if (buffer->size || !PyBytes_CheckExact(frame) || PyBytes_GET_SIZE(frame) <= LARGE)
        return append_bytes(buffer, PyBytes_AS_STRING(frame), PyBytes_GET_SIZE(frame));
    buffer_hold(buffer, frame);
    return 0;
}

/* Forget what was appended last. */
static void cut_back(Buffer *buffer, Py_ssize_t size)
{
    if (size)
        buffer->size = size;
    else {
        buffer_free(buffer);
        buffer_init(buffer);
    }
}

/* Append a frame and, if `is_pushed` is not negative, remember what it is. */
static int append_marked(OutputObject *self, PyObject *frame, int is_pushed)
{
    Pending *pending = pending_of(self);
    Py_ssize_t start = pending ? pending->buffer.size : 0;
    if (!pending || append_frame(&pending->buffer, frame) < 0)
        return -1;
    if (is_pushed < 0 || mark(pending, start, is_pushed) == 0)
        return 0;
    cut_back(&pending->buffer, start);
    return -1;
}

static int is_frame(PyObject *object)
{
    if (PyBytes_Check(object))
        return 1;
    PyErr_SetString(PyExc_TypeError, "a frame is bytes");
    return 0;
}

/* add(response, is_logged) */
static PyObject *output_add(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != 2)
        return PyErr_Format(PyExc_TypeError, "add() takes a response, and whether it rests on rows");
    int is_logged = PyObject_IsTrue(args[1]);
    if (is_logged < 0 || !is_frame(args[0]) || append_marked(as_output(self), args[0], is_logged ? 0 : -1) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *output_push(PyObject *self, PyObject *frame)
{
    if (!is_frame(frame) || append_marked(as_output(self), frame, 1) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* Expect about as much next time. */
static void note_size(OutputObject *self)
{
    Py_ssize_t size = size_of(self), more = size + size / 4;
    self->expected = size <= (Py_ssize_t)sizeof self->pending->buffer.first ? 0 : more < LARGE ? more : LARGE;
}

/* All frames; nothing is left. */
static PyObject *take_all(OutputObject *self)
{
    if (!self->pending)
        return PyBytes_FromStringAndSize(NULL, 0);
    note_size(self);
    PyObject *all = buffer_take(&self->pending->buffer);
    free_pending(self);
    return all;
}

static PyObject *output_take(PyObject *self, PyObject *ignored)
{
    return take_all(as_output(self));
}

/* Put all frames of an output in the place of those of another one. */
static void move(OutputObject *to, OutputObject *from)
{
    free_pending(to);
    to->pending = from->pending;
    from->pending = NULL;
}

static PyObject *output_hand_over(PyObject *object, PyObject *ignored)
{
    OutputObject *self = as_output(object), *other = (OutputObject *)PyObject_CallNoArgs((PyObject *)&Output_Type);
    if (other) {
        note_size(self);
        move(other, self);
    }
    return (PyObject *)other;
}

static int copy_between(Pending *to, const Pending *from, Py_ssize_t start, Py_ssize_t end)
{
    return append_bytes(&to->buffer, from->buffer.data + start, end - start);
}

/* Append the frame of a mark to others; one that rests on rows as what is sent instead, if there is that. */
static int copy_marked(Pending *to, const Pending *from, const Mark *marked, PyObject *refusal)
{
    Py_ssize_t start = to->buffer.size;
    if (marked->is_pushed || !refusal)
        return copy_between(to, from, marked->start, marked->start + (Py_ssize_t)marked->size) < 0
            || mark(to, start, marked->is_pushed) < 0 ? -1 : 0;
    PyObject *frame = PyBytes_FromStringAndSize((const char *)from->buffer.data + marked->start,
                                                (Py_ssize_t)marked->size);
    PyObject *instead = frame ? PyObject_CallOneArg(refusal, frame) : NULL;
    int failed = !instead || !is_frame(instead)
        || append_bytes(&to->buffer, PyBytes_AS_STRING(instead), PyBytes_GET_SIZE(instead)) < 0;
    Py_XDECREF(frame);
    Py_XDECREF(instead);
    return failed ? -1 : 0;
}

/* Copy all frames to two other outputs: those that were pushed to `pushed`, if it is not NULL. */
static int sort_out(const OutputObject *self, OutputObject *rest, OutputObject *pushed, PyObject *refusal)
{
    const Pending *from = self->pending;
    Pending *to = pending_of(rest), *apart = pushed ? pending_of(pushed) : to;
    Py_ssize_t at = 0;
    if (!to || !apart)
        return -1;
    if (!from)
        return 0;
    for (Py_ssize_t place = 0; place < from->count; place++) {
        const Mark *marked = from->marks + place;
        if (copy_between(to, from, at, marked->start) < 0
            || copy_marked(marked->is_pushed ? apart : to, from, marked, refusal) < 0)
            return -1;
        at = marked->start + (Py_ssize_t)marked->size;
    }
    return copy_between(to, from, at, from->buffer.size);
}

/* refuse(refusal): replace the responses that rest on rows by what `refusal` makes of each. */
static PyObject *output_refuse(PyObject *object, PyObject *refusal)
{
    PyObject *refused = PyObject_CallNoArgs((PyObject *)&Output_Type);
    PyObject *frames = refused ? output_hand_over(object, NULL) : NULL;
    int failed = 1;
    if (frames) {
        /* `refusal` may run anything, and what is answered meanwhile comes behind. */
        failed = sort_out(as_output(frames), as_output(refused), NULL, refusal) < 0;
        PyObject *kept = failed ? frames : refused;
        failed |= sort_out(as_output(object), as_output(kept), NULL, NULL) < 0;
        move(as_output(object), as_output(kept));
    }
    Py_XDECREF(frames);
    Py_XDECREF(refused);
    return failed ? NULL : Py_NewRef(Py_None);
}

/* The frames that were pushed; the others are left. */
static PyObject *output_take_pushed(PyObject *object, PyObject *ignored)
{
    PyObject *pushed = PyObject_CallNoArgs((PyObject *)&Output_Type), *taken = NULL;
    PyObject *rest = pushed ? PyObject_CallNoArgs((PyObject *)&Output_Type) : NULL;
    if (rest && sort_out(as_output(object), as_output(rest), as_output(pushed), NULL) == 0
        && (taken = take_all(as_output(pushed))))
        move(as_output(object), as_output(rest));
    Py_XDECREF(pushed);
    Py_XDECREF(rest);
    return taken;
}

static PyObject *output_size(PyObject *self, void *closure)
{
    return PyLong_FromSsize_t(size_of(as_output(self)));
}

static PyObject *output_has_logged(PyObject *self, void *closure)
{
    const Pending *pending = as_output(self)->pending;
    return PyBool_FromLong(pending && pending->logged);
}

static PyObject *output_has_pushed(PyObject *self, void *closure)
{
    const Pending *pending = as_output(self)->pending;
    return PyBool_FromLong(pending && pending->count > pending->logged);
}

static PyMethodDef output_methods[] = {
    {"add", (PyCFunction)(void (*)(void))output_add, METH_FASTCALL, "Append a response."},
    {"push", output_push, METH_O, "Append a frame that answers no request."},
    {"take", output_take, METH_NOARGS, "All frames; nothing is left."},
    {"take_pushed", output_take_pushed, METH_NOARGS, "The frames that were pushed; the others are left."},
    {"hand_over", output_hand_over, METH_NOARGS, "All frames, in another output; nothing is left."},
    {"refuse", output_refuse, METH_O, "Replace the responses that rest on rows that could not be written."},
    {NULL},
};

static PyGetSetDef output_attributes[] = {
    {"size", output_size, NULL, "How many bytes there are.", NULL},
    {"has_logged", output_has_logged, NULL, "Whether a response rests on rows that are not written.", NULL},
    {"has_pushed", output_has_pushed, NULL, "Whether a frame was pushed.", NULL},
    {NULL},
};

PyTypeObject Output_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.server.connection.pending_output.Output",
    .tp_doc = "Pending that are sent in one piece.",
    .tp_basicsize = sizeof(OutputObject),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = new_output,
    .tp_dealloc = dealloc_output,
    .tp_methods = output_methods,
    .tp_getset = output_attributes,
};

/* The output of a connection of the usual kind, borrowed; NULL for others. */
static OutputObject *output_of(PyObject *connection)
{
    PyObject *output = is_plain_connection(connection) ? get_slot(connection, &connection_output) : NULL;
    return output && Py_TYPE(output) == &Output_Type ? (OutputObject *)output : NULL;
}

Py_ssize_t unsent_size(PyObject *connection)
{
    OutputObject *output = output_of(connection);
    if (output)
        return size_of(output);
    PyErr_SetString(PyExc_TypeError, "a connection has an Output");
    return -1;
}

/* -- Traffic -- */

static PyMemberDef traffic_members[] = {
    {"received", T_LONGLONG, offsetof(TrafficObject, received), 0, "bytes received"},
    {"sent", T_LONGLONG, offsetof(TrafficObject, sent), 0, "bytes handed to transports"},
    {NULL},
};

PyTypeObject Traffic_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.server.connection.traffic.Traffic",
    .tp_doc = "Counts bytes.",
    .tp_basicsize = sizeof(TrafficObject),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = PyType_GenericNew,
    .tp_members = traffic_members,
};

/* -- what is answered -- */

/* The twin of Batch.add. */
static int add_to_batch(PyObject *batch, PyObject *connection)
{
    PyObject *connections = Py_TYPE(batch) == known[KNOWN_BATCH] ? get_slot(batch, &batch_connections) : NULL, *done;
    if (!connections || !PyList_CheckExact(connections))
        done = PyObject_CallMethodOneArg(batch, names[NAME_ADD], connection);
    else if (PyList_Append(connections, connection) < 0)
        return -1;
    else if (get_slot(batch, &batch_is_scheduled) == Py_True)
        return 0;
    else
        done = PyObject_CallMethodNoArgs(batch, names[NAME_SCHEDULE]);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* Have what was answered sent at the end of the iteration. */
static int announce_output(PyObject *connection)
{
    set_slot(connection, &connection_has_output, Py_True);
    PyObject *batch = PyObject_GetAttr(get_slot(connection, &connection_server), names[NAME_BATCH]);
    int failed = !batch || add_to_batch(batch, connection) < 0;
    Py_XDECREF(batch);
    return failed ? -1 : 0;
}

/* Let a large answer count among what is unsent. */
static int note_large(PyObject *connection)
{
    PyObject *unsent = PyObject_GetAttr(get_slot(connection, &connection_server), names[NAME_UNSENT]);
    PyObject *done = unsent ? PyObject_CallMethodOneArg(unsent, names[NAME_ADD], connection) : NULL;
    Py_XDECREF(unsent);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

int may_send(PyObject *connection, Py_ssize_t size)
{
    if (size <= LARGE || !is_plain_connection(connection))
        return 1;
    if (make_names() < 0)
        return -1;
    PyObject *number = PyLong_FromSsize_t(size);
    PyObject *answer = number ? PyObject_CallMethodOneArg(connection, names[NAME_ADMIT], number) : NULL;
    int may = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(number);
    Py_XDECREF(answer);
    return may;
}

/* A response of so many bytes was put into the output: have it sent. */
static PyObject *announce(PyObject *connection, Py_ssize_t size)
{
    if ((size > LARGE && note_large(connection) < 0)
        || (get_slot(connection, &connection_has_output) != Py_True && announce_output(connection) < 0))
        return NULL;
    Py_RETURN_NONE;
}

Buffer *response_begin(Response *response, PyObject *connection)
{
    OutputObject *output = output_of(connection);
    response->connection = connection;
    response->buffer = &response->own;
    response->start = 0;
    if (!output) {
        buffer_init(&response->own);
        return response->buffer;
    }
    Pending *pending = make_names() < 0 ? NULL : pending_of(output);
    if (!pending)
        return NULL;
    response->buffer = &pending->buffer;
    response->start = pending->buffer.size;
    return response->buffer;
}

void response_drop(Response *response)
{
    cut_back(response->buffer, response->start);
}

PyObject *response_send(Response *response, PyObject *manager)
{
    PyObject *connection = response->connection;
    if (response->buffer == &response->own)
        return reply(connection, manager, buffer_take(&response->own));
    Pending *pending = output_of(connection)->pending;
    if (MANAGER(manager, HAS_LOGGED) == Py_True && mark(pending, response->start, 0) < 0) {
        response_drop(response);
        return NULL;
    }
    return announce(connection, pending->buffer.size - response->start);
}

/* Takes the response over, which may be NULL with an exception. */
PyObject *reply(PyObject *connection, PyObject *manager, PyObject *response)
{
    OutputObject *output = output_of(connection);
    if (!response || make_names() < 0) {
        Py_XDECREF(response);
        return NULL;
    }
    PyObject *done = NULL;
    if (!output || !PyBytes_CheckExact(response))
        done = PyObject_CallMethodOneArg(connection, names[NAME_REPLY], response);
    else if (append_marked(output, response, MANAGER(manager, HAS_LOGGED) == Py_True ? 0 : -1) == 0)
        done = announce(connection, PyBytes_GET_SIZE(response));
    Py_DECREF(response);
    return done;
}

/* -- what is sent -- */

/* Hand data to the transport of a connection of the usual kind, with compiled counters. Takes the data over. */
static PyObject *send_data(PyObject *connection, TrafficObject *traffic, PyObject *data)
{
    PyObject *transport = get_slot(connection, &connection_transport);
    PyObject *closing = PyObject_CallMethodNoArgs(transport, names[NAME_TRANSPORT_CLOSING]), *done = NULL;
    int is_closing = closing ? PyObject_IsTrue(closing) : -1;
    Py_XDECREF(closing);
    if (!is_closing) {
        traffic->sent += PyBytes_GET_SIZE(data);
        done = PyObject_CallMethodOneArg(transport, names[NAME_WRITE], data);
    }
    Py_DECREF(data);
    if (done && (get_slot(connection, &connection_is_closing) != Py_False
                 || get_slot(connection, &connection_is_held) != Py_False))
        Py_SETREF(done, PyObject_CallMethodNoArgs(connection, names[NAME_AFTER_SEND]));
    return is_closing > 0 ? Py_NewRef(Py_None) : done;
}

PyObject *send_bytes(PyObject *connection, PyObject *data)
{
    PyObject *transport = is_plain_connection(connection) ? get_slot(connection, &connection_transport) : NULL;
    TrafficObject *traffic = transport ? traffic_of(connection) : NULL;
    if (!traffic || !PyBytes_CheckExact(data) || make_names() < 0)
        return NULL;
    return PyBytes_GET_SIZE(data) ? send_data(connection, traffic, Py_NewRef(data)) : Py_NewRef(Py_None);
}

PyObject *send_output(PyObject *connection)
{
    OutputObject *output = output_of(connection);
    TrafficObject *traffic = output && get_slot(connection, &connection_transport) ? traffic_of(connection) : NULL;
    if (!traffic || make_names() < 0)
        return NULL;
    set_slot(connection, &connection_has_output, Py_False);
    if (!size_of(output))
        Py_RETURN_NONE;
    PyObject *data = take_all(output);
    return data ? send_data(connection, traffic, data) : NULL;
}

/* send_outputs(connections) */
FUNCTION(native_send_outputs)
{
    if (count != 1 || !PyList_CheckExact(args[0]) || make_names() < 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "send_outputs takes a list of connections");
        return NULL;
    }
    for (Py_ssize_t place = 0; place < PyList_GET_SIZE(args[0]); place++) {
        PyObject *connection = Py_NewRef(PyList_GET_ITEM(args[0], place));
        PyObject *done = send_output(connection);
        if (!done && !PyErr_Occurred())
            done = PyObject_CallMethodNoArgs(connection, names[NAME_SEND_OUTPUT]);
        Py_DECREF(connection);
        if (!done)
            return NULL;
        Py_DECREF(done);
    }
    Py_RETURN_NONE;
}
