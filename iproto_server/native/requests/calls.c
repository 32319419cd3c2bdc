/* The road of a request that needs nothing unusual: the twin of Dispatcher.handle (server/requests/dispatcher.py) for PING, for
 * CALL of a plain procedure by somebody who may call everything, and for rows (row_requests.c).
 *
 * What is unusual is found before anything is done, and left to Python. What a procedure raises is, too.
 */
#include "../native.h"

#define ARGUMENTS_MAX 8
enum { EXECUTE = 4 };

enum { NAME_SESSION, NAME_RAISED, NAME_FAILED, NAME_WAIT, NAMES };
static PyObject *names[NAMES];

static int make_names(void)
{
    static const char *const texts[NAMES] = {"session", "raised", "failed", "wait"};
    for (int place = 0; place < NAMES; place++)
        if (!names[place] && !(names[place] = PyUnicode_InternFromString(texts[place])))
            return -1;
    return 0;
}

int schema_version(Handle *self, uint32_t *version)
{
    unsigned long value = PyLong_AsUnsignedLong(get_slot(self->catalog, &catalog_schema_version));
    *version = (uint32_t)value;
    return value == (unsigned long)-1 && PyErr_Occurred() ? -1 : 0;
}

/* The session of a connection, if it may begin a request now: borrowed; NULL (maybe with an exception) if not. */
PyObject *session_of(Handle *self, PyObject *connection)
{
    if (!manager_is_idle((ManagerObject *)self->manager))
        return NULL;
    PyObject *session;
    if (is_plain_connection(connection))
        session = get_slot(connection, &connection_session);
    else {
        session = PyObject_GetAttr(connection, names[NAME_SESSION]);
        Py_XDECREF(session); /* the connection has it */
    }
    return session && Py_TYPE(session) == known[KNOWN_SESSION] ? session : NULL;
}

static int set_sync(PyObject *session, uint64_t sync)
{
    PyObject *number = PyLong_FromUnsignedLongLong(sync);
    if (!number)
        return -1;
    set_slot(session, &session_sync, number);
    Py_DECREF(number);
    return 0;
}

static int set_last_sync(Handle *self)
{
    if (!self->session)
        return 0;
    int done = set_sync(self->session, self->sync);
    Py_CLEAR(self->session);
    return done;
}

int finish_requests(PyObject *handle)
{
    return Py_TYPE(handle) == &Handle_Type ? set_last_sync((Handle *)handle) : 0;
}

int note_request(Handle *self, uint64_t type, PyObject *session, uint64_t sync)
{
    if (self->session != session) {
        if (set_last_sync(self) < 0)
            return -1;
        self->session = Py_NewRef(session);
    }
    self->sync = sync;
    self->counts[type]++;
    return 0;
}

int begin_request(Handle *self, PyObject *session, uint64_t sync)
{
    ((ManagerObject *)self->manager)->has_logged = 0;
    set_slot(self->sessions, &sessions_current, session);
    return set_last_sync(self) < 0 ? -1 : set_sync(session, sync);
}

void end_request(Handle *self)
{
    set_slot(self->sessions, &sessions_current, get_slot(self->sessions, &sessions_background));
}

/* Whether the session's user has a right to everything there is. */
int may_everything(PyObject *session, unsigned long privilege)
{
    enum { USAGE = 16 };
    PyObject *user = get_slot(session, &session_credentials);
    if (!user || Py_TYPE(user) != known[KNOWN_CREDENTIALS])
        return 0;
    PyObject *universe = get_slot(user, &credentials_universe);
    return universe && PyLong_Check(universe)
        && (PyLong_AsUnsignedLongMask(universe) & (privilege | USAGE)) == (privilege | USAGE);
}

PyObject *handle_space(Handle *self, uint64_t number)
{
    PyObject *spaces = get_slot(self->catalog, &catalog_spaces);
    if (!self->space_key || self->space_number != number) {
        PyObject *key = PyLong_FromUnsignedLongLong(number);
        if (!key)
            return NULL;
        Py_XSETREF(self->space_key, key);
        self->space_number = number;
    }
    PyObject *space = spaces && PyDict_CheckExact(spaces) ? PyDict_GetItemWithError(spaces, self->space_key) : NULL;
    return space;
}

/* Names of procedures that clients have called, so that none is made, and hashed, for each call. */
enum { NAMES_KEPT = 32, KEPT_MAX = 48 };
typedef struct {
    PyObject *name;
    Py_ssize_t size;
    char text[KEPT_MAX];
} KeptName;
static KeptName kept_names[NAMES_KEPT];

/* Where a name is kept, if it is; it may be another one that is. */
static KeptName *place_of_name(const void *text, Py_ssize_t size)
{
    const uint8_t *bytes = text;
    return kept_names + ((size_t)size * 7 + bytes[0] * 3u + bytes[size - 1]) % NAMES_KEPT;
}

static void keep_name(PyObject *name, const void *text, Py_ssize_t size)
{
    KeptName *kept = place_of_name(text, size);
    Py_XSETREF(kept->name, Py_NewRef(name));
    kept->size = size;
    memcpy(kept->text, text, (size_t)size);
}

/* Keep the name that a procedure has: as the same object it is found without comparing it. */
static void keep_name_of(PyObject *procedure)
{
    PyObject *name = get_slot(procedure, &procedure_name);
    if (!name || !PyUnicode_CheckExact(name) || !PyUnicode_IS_ASCII(name))
        return;
    Py_ssize_t size = PyUnicode_GET_LENGTH(name);
    if (size && size <= KEPT_MAX)
        keep_name(name, PyUnicode_1BYTE_DATA(name), size);
}

/* The name of a procedure, a new reference, as `read_value` reads it. */
static PyObject *read_name(Position *at, Position end)
{
    Position text = *at;
    Py_ssize_t size = text < end && (*text & 0xe0) == 0xa0 ? *text++ & 0x1f : 0;
    if (text < end && *text == 0xd9 && text == *at && end - text > 1) {
        size = text[1];
        text += 2;
    }
    if (!size || size > KEPT_MAX || size > end - text)
        return read_value(at, end, 1);
    const KeptName *kept = place_of_name(text, size);
    if (kept->size == size && !memcmp(kept->text, text, (size_t)size)) {
        *at = text + size;
        return Py_NewRef(kept->name);
    }
    PyObject *name = read_value(at, end, 1);
    if (name)
        keep_name(name, text, size);
    return name;
}

/* The procedure of that name, if there is one that does not wait; a new reference, NULL, maybe with an exception. */
static PyObject *find_procedure(Handle *self, PyObject *name)
{
    PyObject *by_name = get_slot(self->calls, &calls_by_name);
    PyObject *procedure = by_name && PyDict_CheckExact(by_name) ? PyDict_GetItemWithError(by_name, name) : NULL;
    if (procedure && (Py_TYPE(procedure) != known[KNOWN_PROCEDURE]
                      || get_slot(procedure, &procedure_is_async) != Py_False))
        procedure = NULL;
    if (procedure && get_slot(procedure, &procedure_name) != name)
        keep_name_of(procedure);
    return Py_XNewRef(procedure);
}

/* Read the body of a CALL with a plain name and plain arguments. */
static int read_call(Position at, Position end, PyObject **name, PyObject **arguments)
{
    *name = *arguments = NULL;
    int fits = at < end && *at++ == 0x82;
    for (int pair = 0; fits && pair < 2; pair++) {
        uint8_t key = at < end ? *at++ : 0;
        PyObject **place = key == BODY_FUNCTION_NAME ? name : key == BODY_TUPLE ? arguments : NULL;
        fits = place && !*place && (*place = place == name ? read_name(&at, end) : read_value(&at, end, 1));
    }
    if (fits && at == end && PyUnicode_CheckExact(*name) && PyList_CheckExact(*arguments))
        return 1;
    Py_CLEAR(*name);
    Py_CLEAR(*arguments);
    return 0;
}

static PyObject *call_function(Handle *self, PyObject *function, PyObject *arguments)
{
    Py_ssize_t count = PyList_GET_SIZE(arguments);
    PyObject *few[2 + ARGUMENTS_MAX], **all = few;
    if (count > ARGUMENTS_MAX && !(all = PyMem_New(PyObject *, (size_t)count + 2)))
        return PyErr_NoMemory();
    all[1] = self->box;
    for (Py_ssize_t place = 0; place < count; place++)
        all[2 + place] = PyList_GET_ITEM(arguments, place);
    size_t flags = (size_t)(count + 1) | PY_VECTORCALL_ARGUMENTS_OFFSET;
    PyObject *result = PyObject_Vectorcall(function, all + 1, flags, NULL);
    if (all != few)
        PyMem_Free(all);
    return result;
}

/* Call a procedure as one transaction. Returns NULL with an exception. */
static PyObject *run(Handle *self, PyObject *procedure, PyObject *arguments)
{
    ManagerObject *manager = (ManagerObject *)self->manager;
    if (manager_begin(manager) < 0)
        return NULL;
    PyObject *result = call_function(self, get_slot(procedure, &procedure_function), arguments);
    if (result) {
        if (manager_commit(manager) < 0)
            Py_CLEAR(result);
        return result;
    }
    manager_rollback(manager);
    return NULL;
}

/* The exception that was raised, whichever it is: all are answered. A new reference. */
static PyObject *take_error(void)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback)
        PyException_SetTraceback(value, traceback);
    Py_DECREF(type);
    Py_XDECREF(traceback);
    return value;
}

/* What Python answers to a call that has raised. */
static PyObject *raised(Handle *self, uint64_t sync, PyObject *procedure, PyObject *arguments)
{
    PyObject *error = take_error(), *number = error ? PyLong_FromUnsignedLongLong(sync) : NULL, *response = NULL;
    if (number) {
        PyObject *args[] = {self->dispatcher, number, procedure, arguments, error};
        response = PyObject_VectorcallMethod(names[NAME_RAISED], args, 5, NULL);
    }
    Py_XDECREF(number);
    Py_XDECREF(error);
    return response;
}

PyObject *failed(Handle *self, uint64_t sync, const char *who)
{
    PyObject *error = take_error(), *name = error ? PyUnicode_FromString(who) : NULL, *response = NULL;
    PyObject *number = name ? PyLong_FromUnsignedLongLong(sync) : NULL;
    if (number) {
        PyObject *args[] = {self->dispatcher, number, error, name};
        response = PyObject_VectorcallMethod(names[NAME_FAILED], args, 4, NULL);
    }
    Py_XDECREF(number);
    Py_XDECREF(name);
    Py_XDECREF(error);
    return response;
}

/* Write the response with a result. Returns 1; -1 with an exception. */
static int write_answer(Response *response, PyObject *connection, uint64_t sync, uint32_t version, PyObject *result)
{
    Buffer *buffer = response_begin(response, connection);
    int done = buffer ? write_result(buffer, sync, version, result) : -1;
    if (done <= 0 && buffer)
        response_drop(response);
    if (done)
        return done;
    PyObject *values = pack_values(result);
    buffer = values ? response_begin(response, connection) : NULL;
    done = buffer && write_rows(buffer, sync, version, ((PyListObject *)values)->ob_item, PyList_GET_SIZE(values)) == 0;
    if (!done && buffer)
        response_drop(response);
    Py_XDECREF(values);
    return done ? 1 : -1;
}

/* Answer with a result. */
static PyObject *answer(Handle *self, PyObject *connection, uint64_t sync, PyObject *result)
{
    uint32_t version;
    Response response;
    if (schema_version(self, &version) == 0 && write_answer(&response, connection, sync, version, result) > 0) {
        end_request(self);
        return response_send(&response, self->manager);
    }
    PyObject *refusal = failed(self, sync, "a request");
    end_request(self);
    return reply(connection, self->manager, refusal);
}

/* Let Python answer a call when its waiter is done. */
static PyObject *wait_for(Handle *self, PyObject *connection, uint64_t sync, PyObject *waiter)
{
    PyObject *number = PyLong_FromUnsignedLongLong(sync);
    PyObject *args[] = {self->dispatcher, connection, number, waiter};
    PyObject *done = number ? PyObject_VectorcallMethod(names[NAME_WAIT], args, 4, NULL) : NULL;
    Py_XDECREF(number);
    return done;
}

/* Carry out a call. Takes over nothing; returns None, or NULL with an exception. */
static PyObject *carry_out(Handle *self, PyObject *connection, PyObject *session, uint64_t sync, PyObject *procedure,
                           PyObject *arguments)
{
    if (begin_request(self, session, sync) < 0) {
        end_request(self);
        return NULL;
    }
    self->counts[REQUEST_CALL]++;
    PyObject *result = run(self, procedure, arguments), *done;
    if (result && known[KNOWN_WAITER] && PyObject_TypeCheck(result, known[KNOWN_WAITER])) {
        end_request(self);
        done = wait_for(self, connection, sync, result);
        Py_DECREF(result);
        return done;
    }
    if (result) {
        done = answer(self, connection, sync, result);
        Py_DECREF(result);
        return done;
    }
    PyObject *response = raised(self, sync, procedure, arguments);
    end_request(self);
    return reply(connection, self->manager, response);
}

/* Whose rights have to be looked at does not get as far as its arguments. */
static int is_setuid(Handle *self, PyObject *name)
{
    return PyDict_GET_SIZE(self->setuid) && PyDict_Contains(self->setuid, name);
}

/* These return the cost of the request; 0 unknown, nothing has changed; -1 with an exception. */

static int handle_call(Handle *self, PyObject *connection, uint64_t sync, Position at, Position end)
{
    PyObject *session = session_of(self, connection), *procedure = NULL, *name, *arguments, *done = NULL;
    if (!session || !may_everything(session, EXECUTE) || !read_call(at, end, &name, &arguments))
        return PyErr_Occurred() ? -1 : 0;
    Py_INCREF(session);
    if (!is_setuid(self, name) && (procedure = find_procedure(self, name)))
        done = carry_out(self, connection, session, sync, procedure, arguments);
    Py_DECREF(session);
    Py_XDECREF(procedure);
    Py_DECREF(name);
    Py_DECREF(arguments);
    Py_XDECREF(done);
    return done ? LOOK_AT_TIME : PyErr_Occurred() ? -1 : 0;
}

static int handle_ping(Handle *self, PyObject *connection, uint64_t sync, Position at, Position end)
{
    uint32_t version;
    Response response;
    PyObject *session = at == end || (skip_value(&at, end, 0) && at == end) ? session_of(self, connection) : NULL;
    if (!session || schema_version(self, &version) < 0)
        return PyErr_Occurred() ? -1 : 0;
    ((ManagerObject *)self->manager)->has_logged = 0;
    if (note_request(self, REQUEST_PING, session, sync) < 0)
        return -1;
    Buffer *buffer = response_begin(&response, connection);
    if (!buffer || write_ok(buffer, sync, version) < 0)
        return -1;
    PyObject *done = response_send(&response, self->manager);
    Py_XDECREF(done);
    return done ? 1 : -1;
}

static int handle(Handle *self, PyObject *connection, Position at, Position end)
{
    Header header;
    if (!read_header(&at, end, &header) || header.schema_version || header.stream_id)
        return 0;
    header.type &= 0xff;
    switch (header.type) {
    case REQUEST_CALL: return handle_call(self, connection, header.sync, at, end);
    case REQUEST_PING: return handle_ping(self, connection, header.sync, at, end);
    default: return handle_rows(self, connection, &header, at, end);
    }
}

static PyObject *answer_by_python(Handle *self, PyObject *const *args, size_t flags, PyObject *keywords)
{
    if (!self->answer)
        PyErr_SetString(PyExc_RuntimeError, "the dispatcher is gone");
    else if (set_last_sync(self) == 0)
        return PyObject_Vectorcall(self->answer, args, flags, keywords);
    return NULL;
}

/* Let a function of Python have the frame. */
static PyObject *hand_over(PyObject *callable, PyObject *connection, Position at, Position end)
{
    PyObject *args[] = {connection, PyBytes_FromStringAndSize((const char *)at, end - at)}, *done = NULL;
    if (args[1])
        done = Py_TYPE(callable) == &Handle_Type ? answer_by_python((Handle *)callable, args, 2, NULL)
                                                 : PyObject_Vectorcall(callable, args, 2, NULL);
    Py_XDECREF(args[1]);
    return done;
}

int handle_frame(PyObject *callable, PyObject *connection, Position at, Position end)
{
    int cost = Py_TYPE(callable) == &Handle_Type ? handle((Handle *)callable, connection, at, end) : 0;
    if (cost)
        return cost;
    PyObject *done = hand_over(callable, connection, at, end);
    Py_XDECREF(done);
    return done ? LOOK_AT_TIME : -1;
}

static PyObject *handle_vectorcall(PyObject *callable, PyObject *const *args, size_t flags, PyObject *keywords)
{
    Handle *self = (Handle *)callable;
    if (PyVectorcall_NARGS(flags) == 2 && !keywords && PyBytes_CheckExact(args[1])) {
        Position at = (Position)PyBytes_AS_STRING(args[1]);
        int cost = handle(self, args[0], at, at + PyBytes_GET_SIZE(args[1]));
        if (cost)
            return set_last_sync(self) < 0 || cost < 0 ? NULL : Py_NewRef(Py_None);
    }
    return answer_by_python(self, args, flags, keywords);
}

/* take_counts(): how many requests of each type there were since the last call. */
static PyObject *handle_take_counts(PyObject *object, PyObject *nothing)
{
    Handle *self = (Handle *)object;
    PyObject *counts = PyDict_New();
    for (int type = 0; counts && type < COUNTED_TYPES; type++) {
        if (!self->counts[type])
            continue;
        PyObject *key = PyLong_FromLong(type), *number = PyLong_FromUnsignedLongLong(self->counts[type]);
        if (!key || !number || PyDict_SetItem(counts, key, number) < 0)
            Py_CLEAR(counts);
        Py_XDECREF(key);
        Py_XDECREF(number);
    }
    if (counts)
        memset(self->counts, 0, sizeof self->counts);
    return counts;
}

static PyMethodDef handle_methods[] = {
    {"take_counts", handle_take_counts, METH_NOARGS, "The number of requests by type, since the last call."},
    {NULL},
};

/* quick_handle(answer, dispatcher, calls, setuid, box, transactions, sessions, catalog) */
FUNCTION(native_quick_handle)
{
    if (know_classes() < 0 || make_names() < 0)
        return NULL;
    if (count != 8 || Py_TYPE(args[2]) != known[KNOWN_CALLS] || !PyDict_CheckExact(args[3])
        || !PyObject_TypeCheck(args[5], &Manager_Type) || Py_TYPE(args[6]) != known[KNOWN_SESSIONS]
        || Py_TYPE(args[7]) != known[KNOWN_CATALOG]) {
        PyErr_SetString(PyExc_TypeError, "quick_handle() takes what a dispatcher has");
        return NULL;
    }
    Handle *self = PyObject_GC_New(Handle, &Handle_Type);
    if (!self)
        return NULL;
    PyObject **places[] = {
        &self->answer, &self->dispatcher, &self->calls, &self->setuid, &self->box, &self->manager, &self->sessions,
        &self->catalog,
    };
    self->call = handle_vectorcall;
    self->session = self->space_key = NULL;
    memset(self->counts, 0, sizeof self->counts);
    for (int place = 0; place < 8; place++)
        *places[place] = Py_NewRef(args[place]);
    PyObject_GC_Track(self);
    return (PyObject *)self;
}

static int handle_traverse(PyObject *object, visitproc visit, void *arg)
{
    Handle *self = (Handle *)object;
    Py_VISIT(self->answer);
    Py_VISIT(self->dispatcher);
    Py_VISIT(self->session);
    Py_VISIT(self->calls);
    Py_VISIT(self->setuid);
    Py_VISIT(self->box);
    Py_VISIT(self->manager);
    Py_VISIT(self->sessions);
    Py_VISIT(self->catalog);
    return 0;
}

/* Breaks the circle, which goes through these two; the others stay for whoever calls still. */
static int handle_clear(PyObject *object)
{
    Handle *self = (Handle *)object;
    Py_CLEAR(self->answer);
    Py_CLEAR(self->dispatcher);
    return 0;
}

static void handle_dealloc(PyObject *object)
{
    Handle *self = (Handle *)object;
    PyObject_GC_UnTrack(object);
    handle_clear(object);
    Py_XDECREF(self->session);
    Py_XDECREF(self->space_key);
    Py_XDECREF(self->calls);
    Py_XDECREF(self->setuid);
    Py_XDECREF(self->box);
    Py_XDECREF(self->manager);
    Py_XDECREF(self->sessions);
    Py_XDECREF(self->catalog);
    PyObject_GC_Del(object);
}

PyTypeObject Handle_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native.Handle",
    .tp_doc = "Answers requests: (connection, frame).",
    .tp_basicsize = sizeof(Handle),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(Handle, call),
    .tp_call = PyVectorcall_Call,
    .tp_methods = handle_methods,
    .tp_traverse = handle_traverse,
    .tp_clear = handle_clear,
    .tp_dealloc = handle_dealloc,
};
