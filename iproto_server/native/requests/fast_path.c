/* Fast path for PING, for CALL of plain procedures, and for row requests (row_requests.c), of users who may do everything.
 *
 * Other requests, setuid functions among them, are left to the dispatcher (server/requests/dispatcher.py) before anything
 * has changed. So are the exceptions of procedures.
 */
#include "../native.h"

/* The session of a connection, if it may begin a request now: borrowed; NULL (maybe with an exception) if not. */
SessionObject *session_of(FastPath *self, PyObject *connection)
{
    if (!manager_is_idle((ManagerObject *)self->manager))
        return NULL;
    PyObject *session;
    if (PyObject_TypeCheck(connection, &Connection_Type))
        session = ((ConnectionObject *)connection)->session;
    else {
        session = PyObject_GetAttrString(connection, "session");
        Py_XDECREF(session); /* the connection has it */
    }
    return session && PyObject_TypeCheck(session, &Session_Type) ? (SessionObject *)session : NULL;
}

static void set_last_sync(FastPath *self)
{
    if (!self->session)
        return;
    self->session->sync = self->sync;
    Py_CLEAR(self->session);
}

void finish_requests(PyObject *handle)
{
    if (Py_TYPE(handle) == &FastPath_Type)
        set_last_sync((FastPath *)handle);
}

void note_request(FastPath *self, uint64_t type, SessionObject *session, uint64_t sync)
{
    if (self->session != session) {
        set_last_sync(self);
        self->session = (SessionObject *)Py_NewRef(session);
    }
    self->sync = sync;
    self->counts[type]++;
}

void begin_request(FastPath *self, SessionObject *session, uint64_t sync)
{
    ((ManagerObject *)self->manager)->has_logged = 0;
    Py_XSETREF(self->sessions->current, Py_NewRef(session));
    set_last_sync(self);
    session->sync = sync;
}

void end_request(FastPath *self)
{
    Py_XSETREF(self->sessions->current, Py_XNewRef(self->sessions->background));
}

/* The cost of a PING; 0 unknown, nothing has changed; -1 with an exception. */
static int handle_ping(FastPath *self, PyObject *connection, uint64_t sync, Position at, Position end)
{
    Response response;
    SessionObject *session = at == end || (skip_value(&at, end, 0) && at == end) ? session_of(self, connection) : NULL;
    if (!session)
        return PyErr_Occurred() ? -1 : 0;
    ((ManagerObject *)self->manager)->has_logged = 0;
    note_request(self, REQUEST_PING, session, sync);
    Buffer *buffer = response_begin(&response, connection);
    if (!buffer || write_ok(buffer, sync, schema_version(self)) < 0)
        return -1;
    PyObject *done = response_send(&response, self->manager);
    Py_XDECREF(done);
    return done ? 1 : -1;
}

static int handle(FastPath *self, PyObject *connection, Position at, Position end)
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

static PyObject *answer_by_python(FastPath *self, PyObject *const *args, size_t flags, PyObject *keywords)
{
    if (!self->answer)
        PyErr_SetString(PyExc_RuntimeError, "the dispatcher is gone");
    else {
        set_last_sync(self);
        return PyObject_Vectorcall(self->answer, args, flags, keywords);
    }
    return NULL;
}

/* Let a function of Python have the frame. */
static PyObject *hand_over(PyObject *callable, PyObject *connection, Position at, Position end)
{
    PyObject *args[] = {connection, PyBytes_FromStringAndSize((const char *)at, end - at)}, *done = NULL;
    if (args[1])
        done = Py_TYPE(callable) == &FastPath_Type ? answer_by_python((FastPath *)callable, args, 2, NULL)
                                                 : PyObject_Vectorcall(callable, args, 2, NULL);
    Py_XDECREF(args[1]);
    return done;
}

int handle_frame(PyObject *callable, PyObject *connection, Position at, Position end)
{
    int cost = Py_TYPE(callable) == &FastPath_Type ? handle((FastPath *)callable, connection, at, end) : 0;
    if (cost)
        return cost;
    PyObject *done = hand_over(callable, connection, at, end);
    Py_XDECREF(done);
    return done ? LOOK_AT_TIME : -1;
}

static PyObject *handle_vectorcall(PyObject *callable, PyObject *const *args, size_t flags, PyObject *keywords)
{
    FastPath *self = (FastPath *)callable;
    if (PyVectorcall_NARGS(flags) == 2 && !keywords && PyBytes_CheckExact(args[1])) {
        Position at = (Position)PyBytes_AS_STRING(args[1]);
        int cost = handle(self, args[0], at, at + PyBytes_GET_SIZE(args[1]));
        if (cost)
            set_last_sync(self);
        if (cost)
            return cost < 0 ? NULL : Py_NewRef(Py_None);
    }
    return answer_by_python(self, args, flags, keywords);
}

/* take_counts(): how many requests of each type there were since the last call. */
static PyObject *handle_take_counts(PyObject *object, PyObject *nothing)
{
    FastPath *self = (FastPath *)object;
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

/* FastPath(answer, dispatcher, calls, setuid, box, transactions, sessions, catalog) */
static PyObject *fast_path_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    PyObject *answer, *dispatcher, *calls, *setuid, *box, *manager, *sessions, *catalog;
    if (!PyArg_ParseTuple(args, "OOO!O!OO!O!O!:FastPath", &answer, &dispatcher, &Procedures_Type, &calls, &PyDict_Type,
                          &setuid, &box, &Manager_Type, &manager, &Sessions_Type, &sessions, &SpaceTable_Type, &catalog)
        || prepare_calls() < 0)
        return NULL;
    FastPath *self = PyObject_GC_New(FastPath, type);
    if (!self)
        return NULL;
    self->call = handle_vectorcall;
    self->session = NULL;
    memset(self->counts, 0, sizeof self->counts);
    self->answer = Py_NewRef(answer);
    self->dispatcher = Py_NewRef(dispatcher);
    self->procedures = (ProceduresObject *)Py_NewRef(calls);
    self->setuid = Py_NewRef(setuid);
    self->box = Py_NewRef(box);
    self->manager = Py_NewRef(manager);
    self->sessions = (SessionsObject *)Py_NewRef(sessions);
    self->catalog = (SpaceTable *)Py_NewRef(catalog);
    PyObject_GC_Track(self);
    return (PyObject *)self;
}

static int handle_traverse(PyObject *object, visitproc visit, void *arg)
{
    FastPath *self = (FastPath *)object;
    Py_VISIT(self->answer);
    Py_VISIT(self->dispatcher);
    Py_VISIT(self->session);
    Py_VISIT(self->procedures);
    Py_VISIT(self->setuid);
    Py_VISIT(self->box);
    Py_VISIT(self->manager);
    Py_VISIT(self->sessions);
    Py_VISIT(self->catalog);
    return 0;
}

/* Breaks the cycle, which goes through these two; the others stay, as requests may still come. */
static int handle_clear(PyObject *object)
{
    FastPath *self = (FastPath *)object;
    Py_CLEAR(self->answer);
    Py_CLEAR(self->dispatcher);
    return 0;
}

static void handle_dealloc(PyObject *object)
{
    FastPath *self = (FastPath *)object;
    PyObject_GC_UnTrack(object);
    handle_clear(object);
    Py_XDECREF(self->session);
    Py_XDECREF(self->procedures);
    Py_XDECREF(self->setuid);
    Py_XDECREF(self->box);
    Py_XDECREF(self->manager);
    Py_XDECREF(self->sessions);
    Py_XDECREF(self->catalog);
    PyObject_GC_Del(object);
}

PyTypeObject FastPath_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native._native.FastPath",
    .tp_doc = "Answers requests: (connection, frame).",
    .tp_basicsize = sizeof(FastPath),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(FastPath, call),
    .tp_new = fast_path_new,
    .tp_call = PyVectorcall_Call,
    .tp_methods = handle_methods,
    .tp_traverse = handle_traverse,
    .tp_clear = handle_clear,
    .tp_dealloc = handle_dealloc,
};
