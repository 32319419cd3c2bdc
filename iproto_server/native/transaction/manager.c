/* The base class of TransactionManager: the engine of a box, and its transactions that are not written yet. */
#include "../native.h"

PyObject *new_savepoint(ManagerObject *manager);
const Savepoint *savepoint_of(PyObject *object);

static ManagerObject *as_manager(PyObject *self)
{
    return (ManagerObject *)self;
}

/* Raise what a function of the engine has reported. Returns -1. */
static int raise_failure(ManagerObject *self)
{
    enum { ACTIVE_TRANSACTION = 79, SUB_STMT_MAX = 121 };
    PyObject *done = NULL;
    switch (self->engine.failure) {
    case FAILURE_MEMORY: PyErr_NoMemory(); break;
    case FAILURE_ACTIVE: done = PyObject_CallMethod((PyObject *)self, "_refuse", "i", ACTIVE_TRANSACTION); break;
    case FAILURE_NESTING: done = PyObject_CallMethod((PyObject *)self, "_refuse", "i", SUB_STMT_MAX); break;
    default: break;
    }
    Py_XDECREF(done);
    return -1;
}

int manager_begin(ManagerObject *self)
{
    if (ensure_stack() < 0)
        return -1;
    return engine_begin(&self->engine) < 0 ? raise_failure(self) : 0;
}

int manager_commit(ManagerObject *self)
{
    if (!self->engine.running)
        return 0;
    return engine_commit(&self->engine) < 0 ? raise_failure(self) : 0;
}

void manager_rollback(ManagerObject *self)
{
    engine_rollback(&self->engine);
}

/* -- methods -- */

static PyObject *none_or_error(int done)
{
    return done < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *method_begin(PyObject *self, PyObject *ignored)
{
    if (!as_manager(self)->engine.running)
        return none_or_error(manager_begin(as_manager(self)));
    engine_fails(&as_manager(self)->engine, FAILURE_ACTIVE);
    raise_failure(as_manager(self));
    return NULL;
}

static PyObject *method_commit(PyObject *self, PyObject *ignored)
{
    return none_or_error(manager_commit(as_manager(self)));
}

static PyObject *method_rollback(PyObject *self, PyObject *ignored)
{
    manager_rollback(as_manager(self));
    Py_RETURN_NONE;
}

static int check_running(PyObject *self)
{
    if (as_manager(self)->engine.running)
        return 0;
    PyErr_SetString(PyExc_RuntimeError, "no transaction is running");
    return -1;
}

static PyObject *method_savepoint(PyObject *self, PyObject *ignored)
{
    return check_running(self) < 0 ? NULL : new_savepoint(as_manager(self));
}

static PyObject *method_rollback_to_savepoint(PyObject *self, PyObject *savepoint)
{
    if (check_running(self) < 0)
        return NULL;
    if (Py_TYPE(savepoint) != &Savepoint_Type)
        return PyErr_Format(PyExc_TypeError, "a savepoint is needed, not %.100s", Py_TYPE(savepoint)->tp_name);
    if (engine_rollback_to(&as_manager(self)->engine, savepoint_of(savepoint)) < 0) {
        raise_failure(as_manager(self));
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *method_check_nesting(PyObject *self, PyObject *ignored)
{
    if (as_manager(self)->engine.nesting < NESTING_MAX)
        Py_RETURN_NONE;
    engine_fails(&as_manager(self)->engine, FAILURE_NESTING);
    raise_failure(as_manager(self));
    return NULL;
}

static PyObject *method_on_commit(PyObject *self, PyObject *callback)
{
    TransactionObject *running = running_transaction(as_manager(self));
    if (running)
        return none_or_error(add_callback(&running->on_commit, callback));
    PyObject *done = PyObject_CallNoArgs(callback);
    Py_XDECREF(done);
    return none_or_error(done ? 0 : -1);
}

static PyObject *method_on_rollback(PyObject *self, PyObject *callback)
{
    TransactionObject *running = running_transaction(as_manager(self));
    return none_or_error(running ? add_callback(&running->on_rollback, callback) : 0);
}

static PyObject *method_take_unwritten(PyObject *self, PyObject *ignored)
{
    PyObject *none = PyList_New(0), *unwritten = as_manager(self)->unwritten;
    if (none)
        as_manager(self)->unwritten = none;
    return none ? unwritten : NULL;
}

static void set_tracker(ManagerObject *self, PyObject *tracker)
{
    Py_XSETREF(self->interactive, Py_NewRef(tracker));
    self->engine.is_tracked = tracker != Py_None;
}

/* attach(tracker, transaction): continue an interactive transaction, whose rows are in the spaces */
static PyObject *method_attach(PyObject *object, PyObject *const *args, Py_ssize_t count)
{
    ManagerObject *self = as_manager(object);
    if (count != 2 || Py_TYPE(args[1]) != &Transaction_Type || self->engine.running) {
        PyErr_SetString(PyExc_TypeError, "attach() takes a tracker and a transaction, while none is running");
        return NULL;
    }
    set_tracker(self, args[0]);
    self->engine.running = &((TransactionObject *)Py_NewRef(args[1]))->core;
    Py_RETURN_NONE;
}

/* detach(): interrupt the running interactive transaction; None if it has ended */
static PyObject *method_detach(PyObject *object, PyObject *ignored)
{
    ManagerObject *self = as_manager(object);
    TransactionObject *running = running_transaction(self);
    set_tracker(self, Py_None);
    self->engine.running = NULL;
    return running ? (PyObject *)running : Py_NewRef(Py_None);
}

/* untrack(): let the running transaction end as one that was never interactive */
static PyObject *method_untrack(PyObject *self, PyObject *ignored)
{
    set_tracker(as_manager(self), Py_None);
    Py_RETURN_NONE;
}

static int check_transactions(PyObject *list)
{
    Py_ssize_t number = PyList_CheckExact(list) ? PyList_GET_SIZE(list) : -1;
    while (number > 0 && Py_TYPE(PyList_GET_ITEM(list, number - 1)) == &Transaction_Type)
        number--;
    if (number)
        PyErr_SetString(PyExc_TypeError, "a list of transactions is needed");
    return number ? -1 : 0;
}

/* undo(transactions): undo committed transactions that could not be written, the oldest first in the list */
static PyObject *method_undo(PyObject *object, PyObject *transactions)
{
    ManagerObject *self = as_manager(object);
    if (check_transactions(transactions) < 0 || manager_hooks.prepare(self) < 0)
        return NULL;
    PyObject *callbacks = PyList_New(0);
    if (!callbacks)
        return NULL;
    for (Py_ssize_t number = PyList_GET_SIZE(transactions); number--;) {
        TransactionObject *transaction = (TransactionObject *)PyList_GET_ITEM(transactions, number);
        if (self->on_change != Py_None) {
            PyObject *more = PyObject_CallFunctionObjArgs(self->on_change, transaction, Py_True, NULL);
            int failed = !more || PyList_SetSlice(callbacks, PY_SSIZE_T_MAX, PY_SSIZE_T_MAX, more) < 0;
            Py_XDECREF(more);
            if (failed) {
                Py_DECREF(callbacks);
                return NULL;
            }
        }
        if (transaction_undo(&self->engine, &transaction->core, 0) < 0)
            manager_hooks.panic(self);
    }
    /* Only after everything is undone, because callbacks may begin transactions. */
    for (Py_ssize_t number = PyList_GET_SIZE(transactions); number--;) {
        TransactionObject *transaction = (TransactionObject *)PyList_GET_ITEM(transactions, number);
        if (callback_count(transaction->on_rollback)
            && (PyList_Reverse(transaction->on_rollback) < 0
                || PyList_SetSlice(callbacks, PY_SSIZE_T_MAX, PY_SSIZE_T_MAX, transaction->on_rollback) < 0)) {
            Py_DECREF(callbacks);
            return NULL;
        }
    }
    PyObject *done = PyList_GET_SIZE(callbacks) ? PyObject_CallMethod(object, "_call_all", "(O)", callbacks)
                                                : Py_NewRef(Py_None);
    Py_DECREF(callbacks);
    Py_XDECREF(done);
    return none_or_error(done ? 0 : -1);
}

/* notify_undone(transaction): notify the triggers of statements that are undone already */
static PyObject *method_notify_undone(PyObject *object, PyObject *transaction)
{
    ManagerObject *self = as_manager(object);
    if (Py_TYPE(transaction) != &Transaction_Type)
        return PyErr_Format(PyExc_TypeError, "a transaction is needed, not %.100s", Py_TYPE(transaction)->tp_name);
    Transaction *core = &((TransactionObject *)transaction)->core;
    int nesting = self->engine.nesting, failed = 0;
    manager_hooks.undoing(self, 1);
    self->engine.nesting = NESTING_MAX;
    for (size_t number = core->count; !failed && number--;)
        failed = manager_hooks.undone(self, core->all + number, NULL) < 0;
    self->engine.nesting = nesting;
    manager_hooks.undoing(self, 0);
    return none_or_error(failed ? -1 : 0);
}

static PyMethodDef manager_methods[] = {
    {"begin", method_begin, METH_NOARGS, "Begin a transaction."},
    {"commit", method_commit, METH_NOARGS, "Commit the running transaction."},
    {"rollback", method_rollback, METH_NOARGS, "Undo the running transaction; without one, do nothing."},
    {"savepoint", method_savepoint, METH_NOARGS, "A savepoint at the present state of the running transaction."},
    {"rollback_to_savepoint", method_rollback_to_savepoint, METH_O, "Undo the statements since a savepoint."},
    {"check_nesting", method_check_nesting, METH_NOARGS, "Refuse a further nested statement."},
    {"on_commit", method_on_commit, METH_O, "Call back after the commit; at once without a transaction."},
    {"on_rollback", method_on_rollback, METH_O, "Call back if the running transaction is undone."},
    {"take_unwritten", method_take_unwritten, METH_NOARGS, "Remove and return the unwritten transactions."},
    {"attach", (PyCFunction)(void (*)(void))method_attach, METH_FASTCALL, "Continue an interactive transaction."},
    {"detach", method_detach, METH_NOARGS, "Interrupt the running interactive transaction."},
    {"untrack", method_untrack, METH_NOARGS, "Let the running transaction end as one that is not interactive."},
    {"undo", method_undo, METH_O, "Undo committed transactions that could not be written."},
    {"notify_undone", method_notify_undone, METH_O, "Notify triggers of statements that are undone."},
    {NULL},
};

/* -- attributes -- */

static PyObject *get_statements(PyObject *self, void *closure)
{
    TransactionObject *running = running_transaction(as_manager(self));
    return Py_NewRef(running ? (PyObject *)running : Py_None);
}

static PyGetSetDef manager_attributes[] = {
    {"statements", get_statements, NULL, "The running transaction, or None.", NULL},
    {NULL},
};

static PyMemberDef manager_members[] = {
    {"interactive", T_OBJECT_EX, offsetof(ManagerObject, interactive), READONLY,
     "Tracks reads and changes of the running request; or None."},
    {"journal", T_OBJECT_EX, offsetof(ManagerObject, journal), 0, "Receives the rows of committed transactions."},
    {"unwritten", T_OBJECT_EX, offsetof(ManagerObject, unwritten), READONLY, "Committed, and not written yet."},
    {"write_soon", T_OBJECT_EX, offsetof(ManagerObject, write_soon), 0, "Called when a write becomes due."},
    {"on_change", T_OBJECT_EX, offsetof(ManagerObject, on_change), 0, "Called with committed and undone transactions."},
    {"take_out", T_OBJECT_EX, offsetof(ManagerObject, take_out), 0, "Takes a suspended transaction's rows out."},
    {"is_writing", T_BOOL, offsetof(ManagerObject, is_writing), 0, "Whether transactions are being written."},
    {"is_write_due", T_BOOL, offsetof(ManagerObject, is_write_due), 0, "Whether a write is due."},
    {"has_logged", T_BOOL, offsetof(ManagerObject, has_logged), 0, "Whether an unwritten transaction was committed."},
    {"is_read_only", T_BOOL, offsetof(ManagerObject, engine.is_read_only), 0, "Whether changes are refused."},
    {"nesting", T_INT, offsetof(ManagerObject, engine.nesting), 0, "Statements whose triggers are running."},
    {NULL},
};

/* -- the type -- */

static PyObject *manager_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    ManagerObject *self = (ManagerObject *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->engine.hooks = &manager_hooks;
    self->engine.context = self;
    self->journal = Py_NewRef(Py_None);
    self->write_soon = Py_NewRef(Py_None);
    self->on_change = Py_NewRef(Py_None);
    self->take_out = Py_NewRef(Py_None);
    self->interactive = Py_NewRef(Py_None);
    if (!(self->unwritten = PyList_New(0)))
        Py_CLEAR(self);
    return (PyObject *)self;
}

static int manager_traverse(PyObject *object, visitproc visit, void *arg)
{
    ManagerObject *self = as_manager(object);
    Py_VISIT(self->journal);
    Py_VISIT(self->unwritten);
    Py_VISIT(self->write_soon);
    Py_VISIT(self->on_change);
    Py_VISIT(self->take_out);
    Py_VISIT(self->interactive);
    Py_VISIT((PyObject *)running_transaction(self));
    return 0;
}

static int manager_clear(PyObject *object)
{
    ManagerObject *self = as_manager(object);
    TransactionObject *running = running_transaction(self);
    self->engine.running = NULL;
    Py_XDECREF((PyObject *)running);
    Py_XSETREF(self->journal, Py_NewRef(Py_None));
    PyList_SetSlice(self->unwritten, 0, PyList_GET_SIZE(self->unwritten), NULL);
    Py_XSETREF(self->write_soon, Py_NewRef(Py_None));
    Py_XSETREF(self->on_change, Py_NewRef(Py_None));
    Py_XSETREF(self->take_out, Py_NewRef(Py_None));
    set_tracker(self, Py_None);
    return 0;
}

static void manager_dealloc(PyObject *object)
{
    ManagerObject *self = as_manager(object);
    PyObject_GC_UnTrack(object);
    if (self->unwritten)
        manager_clear(object);
    Py_XDECREF(self->unwritten);
    Py_XDECREF(self->journal);
    Py_XDECREF(self->write_soon);
    Py_XDECREF(self->on_change);
    Py_XDECREF(self->take_out);
    Py_XDECREF(self->interactive);
    Py_TYPE(object)->tp_free(object);
}

PyTypeObject Manager_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native._native.TransactionEngine",
    .tp_doc = "The engine of a box: the running transaction, and those that are not written yet.",
    .tp_basicsize = sizeof(ManagerObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = manager_new,
    .tp_methods = manager_methods,
    .tp_members = manager_members,
    .tp_getset = manager_attributes,
    .tp_traverse = manager_traverse,
    .tp_clear = manager_clear,
    .tp_dealloc = manager_dealloc,
};
