/* The frames that a connection has to send, held until the rows that they depend on are in the log. They are sent in one
 * piece, in the order in which they were added.
 */
#include "../native.h"

/* A frame that is no plain response: a pushed one, or one that depends on rows that are not in the log yet. */
typedef struct {
    Py_ssize_t start;
    size_t size : sizeof(size_t) * 8 - 1, is_pushed : 1;
} Mark;

enum { FIRST_MARKS = 8, SPARE = 64 };

struct Pending {
    Buffer buffer;
    Mark *marks;
    Py_ssize_t count, room, logged; /* of marks; `logged` of them are not of pushed frames */
    Mark first[FIRST_MARKS];
    struct Pending *next; /* of the spare ones */
};

static Pending *spare;
static int spares;

static Output *as_output(PyObject *object)
{
    return (Output *)object;
}

Py_ssize_t output_size(const Output *self)
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

static void free_pending(Output *self)
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

/* Mark the frame that begins at `start` and ends with the buffer. */
static int mark(Pending *self, Py_ssize_t start, int is_pushed)
{
    if (self->count == self->room && grow_marks(self) < 0)
        return -1;
    self->marks[self->count++] = (Mark){start, (size_t)(self->buffer.size - start), (size_t)is_pushed};
    self->logged += !is_pushed;
    return 0;
}

/* Where frames are put, with room for as much as was sent last; NULL with an exception. */
static Pending *pending_of(Output *self)
{
    if (self->pending)
        return self->pending;
    if (!(self->pending = new_pending()))
        return NULL;
    if (self->expected && buffer_reserve(&self->pending->buffer, self->expected) < 0)
        free_pending(self);
    return self->pending;
}

Buffer *output_buffer(Output *self)
{
    Pending *pending = pending_of(self);
    return pending ? &pending->buffer : NULL;
}

int output_mark(Output *self, Py_ssize_t start)
{
    return mark(self->pending, start, 0);
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
    if (buffer->size || !PyBytes_CheckExact(frame) || PyBytes_GET_SIZE(frame) <= LARGE_ANSWER)
        return append_bytes(buffer, PyBytes_AS_STRING(frame), PyBytes_GET_SIZE(frame));
    buffer_hold(buffer, frame);
    return 0;
}

/* Drop what was appended last. */
static void cut_back(Buffer *buffer, Py_ssize_t size)
{
    if (size)
        buffer->size = size;
    else {
        buffer_free(buffer);
        buffer_init(buffer);
    }
}

void output_cut(Output *self, Py_ssize_t size)
{
    cut_back(&self->pending->buffer, size);
}

/* Append a frame, and mark it unless `is_pushed` is negative. */
static int append_marked(Output *self, PyObject *frame, int is_pushed)
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

int output_add(Output *self, PyObject *frame, int is_logged)
{
    return append_marked(self, frame, is_logged ? 0 : -1);
}

int output_push(Output *self, PyObject *frame)
{
    return append_marked(self, frame, 1);
}

static int is_frame(PyObject *object)
{
    if (PyBytes_Check(object))
        return 1;
    PyErr_SetString(PyExc_TypeError, "a frame is bytes");
    return 0;
}

/* add(response, is_logged) */
static PyObject *method_add(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != 2)
        return PyErr_Format(PyExc_TypeError, "add() takes a response, and whether it depends on rows");
    int is_logged = PyObject_IsTrue(args[1]);
    if (is_logged < 0 || !is_frame(args[0]) || append_marked(as_output(self), args[0], is_logged ? 0 : -1) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *method_push(PyObject *self, PyObject *frame)
{
    if (!is_frame(frame) || append_marked(as_output(self), frame, 1) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* Reserve room for about as much next time. */
static void note_size(Output *self)
{
    Py_ssize_t size = output_size(self), more = size + size / 4;
    self->expected = size <= (Py_ssize_t)sizeof self->pending->buffer.first ? 0 : more < LARGE_ANSWER ? more : LARGE_ANSWER;
}

/* All frames; nothing is left. */
PyObject *output_take(Output *self)
{
    if (!self->pending)
        return PyBytes_FromStringAndSize(NULL, 0);
    note_size(self);
    PyObject *all = buffer_take(&self->pending->buffer);
    free_pending(self);
    return all;
}

static PyObject *method_take(PyObject *self, PyObject *ignored)
{
    return output_take(as_output(self));
}

/* Put all frames of an output in the place of those of another one. */
static void move(Output *to, Output *from)
{
    free_pending(to);
    to->pending = from->pending;
    from->pending = NULL;
}

static PyObject *method_hand_over(PyObject *object, PyObject *ignored)
{
    Output *self = as_output(object), *other = (Output *)PyObject_CallNoArgs((PyObject *)&Output_Type);
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

/* Append the frame of a mark to others; one that depends on rows as what is sent instead, if `refusal` is not NULL. */
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
static int sort_out(const Output *self, Output *rest, Output *pushed, PyObject *refusal)
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

/* refuse(refusal): replace the responses that depend on rows by what `refusal` makes of each. */
static PyObject *method_refuse(PyObject *object, PyObject *refusal)
{
    PyObject *refused = PyObject_CallNoArgs((PyObject *)&Output_Type);
    PyObject *frames = refused ? method_hand_over(object, NULL) : NULL;
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
static PyObject *method_take_pushed(PyObject *object, PyObject *ignored)
{
    PyObject *pushed = PyObject_CallNoArgs((PyObject *)&Output_Type), *taken = NULL;
    PyObject *rest = pushed ? PyObject_CallNoArgs((PyObject *)&Output_Type) : NULL;
    if (rest && sort_out(as_output(object), as_output(rest), as_output(pushed), NULL) == 0
        && (taken = output_take(as_output(pushed))))
        move(as_output(object), as_output(rest));
    Py_XDECREF(pushed);
    Py_XDECREF(rest);
    return taken;
}

static PyObject *method_size(PyObject *self, void *closure)
{
    return PyLong_FromSsize_t(output_size(as_output(self)));
}

static PyObject *method_has_logged(PyObject *self, void *closure)
{
    const Pending *pending = as_output(self)->pending;
    return PyBool_FromLong(pending && pending->logged);
}

static PyObject *method_has_pushed(PyObject *self, void *closure)
{
    const Pending *pending = as_output(self)->pending;
    return PyBool_FromLong(pending && pending->count > pending->logged);
}

static PyMethodDef output_methods[] = {
    {"add", (PyCFunction)(void (*)(void))method_add, METH_FASTCALL, "Append a response."},
    {"push", method_push, METH_O, "Append a frame that answers no request."},
    {"take", method_take, METH_NOARGS, "Return all frames, joined; nothing is left."},
    {"take_pushed", method_take_pushed, METH_NOARGS, "Return the pushed frames, joined; the others are left."},
    {"hand_over", method_hand_over, METH_NOARGS, "Return all frames in another output; nothing is left."},
    {"refuse", method_refuse, METH_O, "Replace the responses that depend on rows which could not be written."},
    {NULL},
};

static PyGetSetDef output_attributes[] = {
    {"size", method_size, NULL, "The number of bytes.", NULL},
    {"has_logged", method_has_logged, NULL, "Whether a response depends on rows that are not in the log yet.", NULL},
    {"has_pushed", method_has_pushed, NULL, "Whether a frame was pushed.", NULL},
    {NULL},
};

PyTypeObject Output_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native._native.Output",
    .tp_doc = "The frames that a connection has to send.",
    .tp_basicsize = sizeof(Output),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = new_output,
    .tp_dealloc = dealloc_output,
    .tp_methods = output_methods,
    .tp_getset = output_attributes,
};
