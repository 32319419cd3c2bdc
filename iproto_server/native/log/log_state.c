/* LogState: the state of the write-ahead log that compiled code uses.
 *
 * The policy is in a subclass in Python. Three of its methods are called in rare cases: `refuse` raises the error for
 * transactions of a closed log, `write` writes the waiting rows, and `effect_of` tells how a system row with an effect is
 * logged (statements.c).
 */
#include "../native.h"

typedef struct {
    PyObject_HEAD
    PyObject *waiting; /* LogRows */
    PyObject *clock;   /* returns the time in seconds since 1970 */
    char is_stored, is_closed, writes_at_commit;
} LogStateObject;

static LogStateObject *as_state(PyObject *object)
{
    return (LogStateObject *)object;
}

/* Call a method of the subclass. Returns -1 with an exception. */
static int call(PyObject *log, const char *name)
{
    PyObject *done = PyObject_CallMethod(log, name, NULL);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* All rows that are written together have the time of the first one. */
static int begin_rows(LogStateObject *self)
{
    if (!log_rows_are_empty(self->waiting))
        return 0;
    PyObject *now = self->clock ? PyObject_CallNoArgs(self->clock) : PyErr_Format(PyExc_AttributeError, "clock");
    double timestamp = now ? PyFloat_AsDouble(now) : 0;
    Py_XDECREF(now);
    if (PyErr_Occurred())
        return -1;
    log_rows_begin(self->waiting, timestamp);
    return 0;
}

int log_append(PyObject *log, const LogChange *changes, Py_ssize_t count)
{
    LogStateObject *self = as_state(log);
    if (self->is_closed && call(log, "refuse") < 0)
        return -1;
    if (!self->is_stored)
        log_rows_count(self->waiting, changes, count);
    if (!self->is_stored || !count)
        return 0;
    if (begin_rows(self) < 0 || log_rows_append(self->waiting, changes, count) < 0)
        return -1;
    if (!self->writes_at_commit)
        return 1;
    return call(log, "write");
}

/* -- the type -- */

static PyObject *state_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    LogStateObject *self = as_state(type->tp_alloc(type, 0));
    if (!self || !(self->waiting = new_log_rows((RowNumbers){0})))
        Py_CLEAR(self);
    else
        self->clock = Py_NewRef(Py_None);
    return (PyObject *)self;
}

/* LogState(waiting, clock, is_stored) */
static int state_init(PyObject *object, PyObject *args, PyObject *keywords)
{
    LogStateObject *self = as_state(object);
    PyObject *waiting, *clock;
    int is_stored;
    if (keywords && PyDict_GET_SIZE(keywords)) {
        PyErr_SetString(PyExc_TypeError, "LogState() takes no keyword arguments");
        return -1;
    }
    if (!PyArg_ParseTuple(args, "O!Op:LogState", &LogRows_Type, &waiting, &clock, &is_stored))
        return -1;
    Py_SETREF(self->waiting, Py_NewRef(waiting));
    Py_XSETREF(self->clock, Py_NewRef(clock));
    self->is_stored = (char)is_stored;
    return 0;
}

static int state_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(as_state(object)->clock);
    return 0;
}

static int state_clear(PyObject *object)
{
    Py_CLEAR(as_state(object)->clock);
    return 0;
}

static void state_dealloc(PyObject *object)
{
    PyObject_GC_UnTrack(object);
    Py_XDECREF(as_state(object)->waiting);
    Py_XDECREF(as_state(object)->clock);
    Py_TYPE(object)->tp_free(object);
}

/* append(transaction) */
static PyObject *state_append(PyObject *self, PyObject *transaction)
{
    if (Py_TYPE(transaction) != &Transaction_Type)
        return PyErr_Format(PyExc_TypeError, "append() takes a Transaction, not %.100s", Py_TYPE(transaction)->tp_name);
    int is_unwritten = log_append_transaction(self, &((TransactionObject *)transaction)->core);
    return is_unwritten < 0 ? NULL : PyBool_FromLong(is_unwritten);
}

static PyObject *get_waiting(PyObject *self, void *closure)
{
    return Py_NewRef(as_state(self)->waiting);
}

static int set_waiting(PyObject *self, PyObject *rows, void *closure)
{
    if (!rows || Py_TYPE(rows) != &LogRows_Type) {
        PyErr_SetString(PyExc_TypeError, "the rows that wait are LogRows");
        return -1;
    }
    Py_SETREF(as_state(self)->waiting, Py_NewRef(rows));
    return 0;
}

static PyMethodDef state_methods[] = {
    {"append", state_append, METH_O, "Append the rows of one transaction."},
    {NULL},
};

static PyGetSetDef state_attributes[] = {
    {"waiting", get_waiting, set_waiting, "the rows to be written next", NULL},
    {NULL},
};

static PyMemberDef state_members[] = {
    {"clock", T_OBJECT_EX, offsetof(LogStateObject, clock), 0, "returns the time in seconds since 1970"},
    {"is_closed", T_BOOL, offsetof(LogStateObject, is_closed), 0, "whether further transactions are refused"},
    {"writes_at_commit", T_BOOL, offsetof(LogStateObject, writes_at_commit), 0, "whether each is written at once"},
    {NULL},
};

PyTypeObject LogState_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native._native.LogState",
    .tp_doc = "The state of the write-ahead log that compiled code uses.",
    .tp_basicsize = sizeof(LogStateObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = state_new,
    .tp_init = state_init,
    .tp_dealloc = state_dealloc,
    .tp_traverse = state_traverse,
    .tp_clear = state_clear,
    .tp_methods = state_methods,
    .tp_getset = state_attributes,
    .tp_members = state_members,
};
