/* The road of a request that needs nothing unusual: the twin of Dispatcher.handle (server/requests/dispatcher.py) for PING, for
 * CALL of a plain procedure by somebody who may call everything, and for rows (row_requests.c).
 *
 * What is unusual is found before anything is done, and left to Python. What a procedure raises is, too.
 */
#include "native.h"

#define ARGUMENTS_MAX 8
enum { EXECUTE = 4 };

enum {
    NAME_SESSION, NAME_BY_NAME, NAME_VERSION, NAME_RAISED, NAME_FAILED, NAME_WAIT, NAME_SPACES, NAMES
};
static PyObject *names[NAMES];

static int make_names(void)
{
    static const char *const texts[NAMES] = {
        "session", "_by_name", "schema_version", "raised", "failed", "wait", "spaces",
    };
    for (int place = 0; place < NAMES; place++)
        if (!names[place] && !(names[place] = PyUnicode_InternFromString(texts[place])))
            return -1;
    return 0;
}

int schema_version(Handle *self, uint32_t *version)
{
    PyObject *number = PyObject_GetAttr(self->catalog, names[NAME_VERSION]);
    unsigned long value = number ? PyLong_AsUnsignedLong(number) : 0;
    Py_XDECREF(number);
    *version = (uint32_t)value;
    return PyErr_Occurred() ? -1 : 0;
}

static int count_request(Handle *self, uint64_t type, int more)
{
    PyObject *key = PyLong_FromUnsignedLongLong(type);
    PyObject *number = key ? PyDict_GetItemWithError(self->requests, key) : NULL;
    PyObject *next = PyErr_Occurred() ? NULL : PyLong_FromLongLong(number ? PyLong_AsLongLong(number) + more : more);
    int failed = !next || PyDict_SetItem(self->requests, key, next) < 0;
    Py_XDECREF(key);
    Py_XDECREF(next);
    return failed ? -1 : 0;
}

/* The session of a connection, if it may begin a request now: a new reference; NULL (maybe with an exception) if not. */
PyObject *session_of(Handle *self, PyObject *connection)
{
    if (MANAGER(self->manager, TAKE_OUT) != Py_None || MANAGER(self->manager, INTERACTIVE) != Py_None
        || MANAGER(self->manager, STATEMENTS) != Py_None)
        return NULL;
    PyObject *session = PyObject_GetAttr(connection, names[NAME_SESSION]);
    if (session && Py_TYPE(session) != known[KNOWN_SESSION])
        Py_CLEAR(session);
    return session;
}

int begin_request(Handle *self, uint64_t type, PyObject *session, PyObject *sync)
{
    set_slot(self->manager, manager_slots + MANAGER_HAS_LOGGED, Py_False);
    set_slot(session, &session_sync, sync);
    set_slot(self->sessions, &sessions_current, session);
    return count_request(self, type, 1);
}

void end_request(Handle *self)
{
    set_slot(self->sessions, &sessions_current, get_slot(self->sessions, &sessions_background));
}

/* It is for Python to carry out, and to count. */
PyObject *forget_request(Handle *self, uint64_t type)
{
    count_request(self, type, -1);
    return NULL;
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
    PyObject *spaces = PyObject_GetAttr(self->catalog, names[NAME_SPACES]), *key = PyLong_FromUnsignedLongLong(number);
    PyObject *space = spaces && key && PyDict_CheckExact(spaces) ? PyDict_GetItemWithError(spaces, key) : NULL;
    Py_XINCREF(space);
    Py_XDECREF(spaces);
    Py_XDECREF(key);
    return space;
}

/* The procedure of that name, if there is one that does not wait; a new reference, NULL, maybe with an exception. */
static PyObject *find_procedure(Handle *self, PyObject *name)
{
    PyObject *by_name = PyObject_GetAttr(self->calls, names[NAME_BY_NAME]);
    PyObject *procedure = by_name && PyDict_CheckExact(by_name) ? PyDict_GetItemWithError(by_name, name) : NULL;
    if (procedure && (Py_TYPE(procedure) != known[KNOWN_PROCEDURE]
                      || get_slot(procedure, &procedure_is_async) != Py_False))
        procedure = NULL;
    Py_XINCREF(procedure);
    Py_XDECREF(by_name);
    return procedure;
}

/* Read the body of a CALL with a plain name and plain arguments. */
static int read_call(Position at, Position end, PyObject **name, PyObject **arguments)
{
    *name = *arguments = NULL;
    int fits = at < end && *at++ == 0x82;
    for (int pair = 0; fits && pair < 2; pair++) {
        uint8_t key = at < end ? *at++ : 0;
        PyObject **place = key == BODY_FUNCTION_NAME ? name : key == BODY_TUPLE ? arguments : NULL;
        fits = place && !*place && (*place = read_value(&at, end, 1));
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
    PyObject *statements = PyList_New(0);
    if (!statements)
        return NULL;
    set_slot(self->manager, manager_slots + MANAGER_STATEMENTS, statements);
    Py_DECREF(statements);
    PyObject *result = call_function(self, get_slot(procedure, &procedure_function), arguments);
    if (result) {
        if (commit(self->manager) < 0)
            Py_CLEAR(result);
        return result;
    }
    roll_back(self->manager);
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
static PyObject *raised(Handle *self, PyObject *sync, PyObject *procedure, PyObject *arguments)
{
    PyObject *error = take_error();
    if (!error)
        return NULL;
    PyObject *args[] = {self->dispatcher, sync, procedure, arguments, error};
    PyObject *response = PyObject_VectorcallMethod(names[NAME_RAISED], args, 5, NULL);
    Py_DECREF(error);
    return response;
}

PyObject *failed(Handle *self, PyObject *sync, const char *who)
{
    PyObject *error = take_error(), *name = error ? PyUnicode_FromString(who) : NULL, *response = NULL;
    if (name) {
        PyObject *args[] = {self->dispatcher, sync, error, name};
        response = PyObject_VectorcallMethod(names[NAME_FAILED], args, 4, NULL);
    }
    Py_XDECREF(name);
    Py_XDECREF(error);
    return response;
}

static PyObject *encoded(Handle *self, PyObject *sync, PyObject *result)
{
    uint32_t version;
    PyObject *response = NULL;
    if (!schema_version(self, &version) && !(response = encode_result(PyLong_AsUnsignedLongLong(sync), version, result))
        && !PyErr_Occurred()) {
        PyObject *number = PyLong_FromUnsignedLong(version);
        PyObject *args[] = {sync, number, result};
        response = number ? PyObject_Vectorcall(python_functions[PYTHON_ENCODE_RESULT], args, 3, NULL) : NULL;
        Py_XDECREF(number);
    }
    return response ? response : failed(self, sync, "a request");
}

/* Carry out a call. Takes over nothing; returns None, or NULL with an exception. */
static PyObject *carry_out(Handle *self, PyObject *connection, PyObject *session, PyObject *sync, PyObject *procedure,
                           PyObject *arguments)
{
    if (begin_request(self, REQUEST_CALL, session, sync) < 0) {
        end_request(self);
        return NULL;
    }
    PyObject *result = run(self, procedure, arguments), *response;
    if (result && known[KNOWN_WAITER] && PyObject_TypeCheck(result, known[KNOWN_WAITER])) {
        end_request(self);
        PyObject *args[] = {self->dispatcher, connection, sync, result};
        PyObject *done = PyObject_VectorcallMethod(names[NAME_WAIT], args, 4, NULL);
        Py_DECREF(result);
        return done;
    }
    response = result ? encoded(self, sync, result) : raised(self, sync, procedure, arguments);
    Py_XDECREF(result);
    end_request(self);
    return reply(connection, self->manager, response);
}

static PyObject *handle_call(Handle *self, PyObject *connection, PyObject *sync, Position at, Position end)
{
    PyObject *done = NULL, *name = NULL, *arguments = NULL;
    PyObject *session = session_of(self, connection), *procedure = NULL;
    /* Whose rights have to be looked at does not get as far as its arguments. */
    if (session && may_everything(session, EXECUTE) && read_call(at, end, &name, &arguments)
        && PyDict_Contains(self->setuid, name) == 0)
        procedure = find_procedure(self, name);
    if (procedure)
        done = carry_out(self, connection, session, sync, procedure, arguments);
    Py_XDECREF(session);
    Py_XDECREF(procedure);
    Py_XDECREF(name);
    Py_XDECREF(arguments);
    return done;
}

static PyObject *handle_ping(Handle *self, PyObject *connection, PyObject *sync, Position at, Position end)
{
    uint32_t version;
    PyObject *session = at == end || (skip_value(&at, end, 0) && at == end) ? session_of(self, connection) : NULL;
    if (!session)
        return NULL;
    int failed = schema_version(self, &version) < 0 || begin_request(self, REQUEST_PING, session, sync) < 0;
    Py_DECREF(session);
    end_request(self);
    return failed ? NULL : reply(connection, self->manager, encode_ok(PyLong_AsUnsignedLongLong(sync), version));
}

static PyObject *handle(Handle *self, PyObject *connection, Position at, Position end)
{
    uint64_t header[HEADER_KEYS] = {0};
    if (!read_header(&at, end, header) || header[SCHEMA_VERSION])
        return NULL;
    PyObject *sync = PyLong_FromUnsignedLongLong(header[SYNC]), *done;
    if (!sync)
        return NULL;
    switch (header[REQUEST_TYPE]) {
    case REQUEST_CALL: done = handle_call(self, connection, sync, at, end); break;
    case REQUEST_PING: done = handle_ping(self, connection, sync, at, end); break;
    default: done = handle_rows(self, connection, sync, header[REQUEST_TYPE], at, end);
    }
    Py_DECREF(sync);
    return done;
}

static PyObject *handle_vectorcall(PyObject *callable, PyObject *const *args, size_t flags, PyObject *keywords)
{
    Handle *self = (Handle *)callable;
    if (PyVectorcall_NARGS(flags) == 2 && !keywords && PyBytes_CheckExact(args[1])) {
        Position at = (Position)PyBytes_AS_STRING(args[1]);
        PyObject *done = handle(self, args[0], at, at + PyBytes_GET_SIZE(args[1]));
        if (done || PyErr_Occurred())
            return done;
    }
    if (self->answer)
        return PyObject_Vectorcall(self->answer, args, flags, keywords);
    PyErr_SetString(PyExc_RuntimeError, "the dispatcher is gone");
    return NULL;
}

/* quick_handle(answer, dispatcher, requests, calls, setuid, box, transactions, sessions, catalog) */
FUNCTION(native_quick_handle)
{
    if (know_classes() < 0 || make_names() < 0)
        return NULL;
    if (count != 9 || !PyDict_Check(args[2]) || !PyDict_CheckExact(args[4]) || Py_TYPE(args[6]) != known[KNOWN_MANAGER]
        || Py_TYPE(args[7]) != known[KNOWN_SESSIONS]) {
        PyErr_SetString(PyExc_TypeError, "quick_handle() takes what a dispatcher has");
        return NULL;
    }
    Handle *self = PyObject_GC_New(Handle, &Handle_Type);
    if (!self)
        return NULL;
    PyObject **places[] = {
        &self->answer, &self->dispatcher, &self->requests, &self->calls, &self->setuid, &self->box, &self->manager,
        &self->sessions, &self->catalog,
    };
    self->call = handle_vectorcall;
    for (int place = 0; place < 9; place++)
        *places[place] = Py_NewRef(args[place]);
    PyObject_GC_Track(self);
    return (PyObject *)self;
}

static int handle_traverse(PyObject *object, visitproc visit, void *arg)
{
    Handle *self = (Handle *)object;
    Py_VISIT(self->answer);
    Py_VISIT(self->dispatcher);
    Py_VISIT(self->requests);
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
    Py_XDECREF(self->requests);
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
    .tp_traverse = handle_traverse,
    .tp_clear = handle_clear,
    .tp_dealloc = handle_dealloc,
};
