/* What the engine asks of a transaction manager: callbacks, the journal, and Python's part of undoing. */
#include "../native.h"

typedef struct SavedError {
    struct SavedError *before;
    PyObject *error, *handled; /* the exception that goes on, or NULL; the one that was handled until then */
} SavedError;

static ManagerObject *manager_of(void *context)
{
    return context;
}

static PyObject *name_of(const char *text)
{
    return PyUnicode_InternFromString(text);
}

/* Call a method of the Python class with one argument, or none if that is NULL. Returns -1 with an exception. */
static int call_method(ManagerObject *manager, const char *name, PyObject *argument)
{
    PyObject *method = name_of(name);
    PyObject *done = !method ? NULL
        : argument ? PyObject_CallMethodOneArg((PyObject *)manager, method, argument)
                   : PyObject_CallMethodNoArgs((PyObject *)manager, method);
    Py_XDECREF(method);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* -- exceptions that go on after something was undone -- */

/* Put the exception that was raised aside; it is handled from now on, as within `except`. */
static void save_error(ManagerObject *manager)
{
    PyObject *type, *error, *traceback;
    SavedError *saved = PyMem_Calloc(1, sizeof *saved);
    if (!saved)
        Py_FatalError("no memory to undo a transaction");
    saved->before = manager->saved;
    manager->saved = saved;
    PyErr_Fetch(&type, &error, &traceback);
    if (!type)
        return;
    PyErr_NormalizeException(&type, &error, &traceback);
    if (traceback)
        PyException_SetTraceback(error, traceback);
    saved->error = error;
    saved->handled = PyErr_GetHandledException();
    PyErr_SetHandledException(error);
    Py_DECREF(type);
    Py_XDECREF(traceback);
}

/* Raise it again, unless another one was raised meanwhile. */
static void restore_error(ManagerObject *manager)
{
    SavedError *saved = manager->saved;
    manager->saved = saved->before;
    if (saved->error) {
        PyErr_SetHandledException(saved->handled);
        Py_XDECREF(saved->handled);
        if (PyErr_Occurred())
            Py_DECREF(saved->error);
        else
            PyErr_Restore(Py_NewRef((PyObject *)Py_TYPE(saved->error)), saved->error,
                          PyException_GetTraceback(saved->error));
    }
    PyMem_Free(saved);
}

/* Run callbacks, in reverse order if `is_reverse`; their errors are logged. */
static void call_all(ManagerObject *manager, PyObject *callbacks, int is_reverse)
{
    if (!callback_count(callbacks))
        return;
    save_error(manager);
    if ((is_reverse && PyList_Reverse(callbacks) < 0) || call_method(manager, "_call_all", callbacks) < 0)
        PyErr_WriteUnraisable(callbacks);
    restore_error(manager);
}

/* -- transactions -- */

static int prepare(void *context)
{
    ManagerObject *self = manager_of(context);
    if (self->take_out == Py_None)
        return 0;
    PyObject *done = PyObject_CallNoArgs(self->take_out);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static Transaction *begin(void *context)
{
    TransactionObject *made = new_transaction(context);
    return made ? &made->core : NULL;
}

static void mark(void *context, Savepoint *savepoint)
{
    TransactionObject *running = running_transaction(context);
    savepoint->marks[0] = (size_t)callback_count(running->on_commit);
    savepoint->marks[1] = (size_t)callback_count(running->on_rollback);
}

/* Cut a list of callbacks to a length; returns those that are cut off, a new reference, or NULL for none. */
static PyObject *cut(PyObject *list, size_t length)
{
    Py_ssize_t count = callback_count(list);
    if ((size_t)count <= length)
        return NULL;
    PyObject *rest = PyList_GetSlice(list, (Py_ssize_t)length, count);
    if (!rest || PyList_SetSlice(list, (Py_ssize_t)length, count, NULL) < 0)
        PyErr_WriteUnraisable(list);
    return rest;
}

static void trim(void *context, const Savepoint *savepoint)
{
    ManagerObject *self = manager_of(context);
    TransactionObject *running = running_transaction(self);
    save_error(self);
    Py_XDECREF(cut(running->on_commit, savepoint->marks[0]));
    PyObject *undone = cut(running->on_rollback, savepoint->marks[1]);
    restore_error(self);
    call_all(self, undone, 1);
    Py_XDECREF(undone);
}

static int schedule_write(ManagerObject *self)
{
    self->has_logged = 1;
    if (self->is_write_due)
        return 0;
    self->is_write_due = 1;
    PyObject *done = PyObject_CallNoArgs(self->write_soon);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* Commit callbacks, with those of interactive transactions that the commit makes fail. NULL, maybe with an exception. */
static PyObject *commit_callbacks(ManagerObject *self, TransactionObject *transaction)
{
    PyObject *callbacks = transaction->on_commit;
    transaction->on_commit = NULL;
    if (self->on_change == Py_None || !transaction->core.count)
        return callbacks;
    PyObject *more = NULL;
    if (call_method(self, "_enter_undo", NULL) == 0) {
        more = PyObject_CallFunctionObjArgs(self->on_change, transaction, Py_False, NULL);
        save_error(self);
        call_method(self, "_leave_undo", NULL);
        restore_error(self);
    }
    PyObject *all = !more ? NULL : callbacks ? PySequence_Concat(callbacks, more) : Py_NewRef(more);
    Py_XDECREF(more);
    Py_XDECREF(callbacks);
    return all;
}

static int committed(void *context, Transaction *core, int is_unwritten)
{
    ManagerObject *self = manager_of(context);
    TransactionObject *transaction = transaction_of(core);
    int failed = 0;
    if (core->count && (is_unwritten || PyList_GET_SIZE(self->unwritten) || self->is_writing))
        failed = PyList_Append(self->unwritten, (PyObject *)transaction) < 0 || schedule_write(self) < 0;
    PyObject *callbacks = failed ? NULL : commit_callbacks(self, transaction);
    failed |= PyErr_Occurred() != NULL;
    if (callback_count(callbacks)) {
        char has_logged = self->has_logged; /* changes of callbacks do not belong to this transaction */
        call_all(self, callbacks, 0);
        self->has_logged = has_logged;
    }
    Py_XDECREF(callbacks);
    Py_DECREF(transaction);
    return failed ? -1 : 0;
}

static void rolled_back(void *context, Transaction *core)
{
    TransactionObject *transaction = transaction_of(core);
    PyObject *callbacks = transaction->on_rollback;
    transaction->on_rollback = NULL;
    call_all(context, callbacks, 1);
    Py_XDECREF(callbacks);
    Py_DECREF(transaction);
}

static void tracker_rolled_back(void *context, size_t position)
{
    ManagerObject *self = manager_of(context);
    save_error(self);
    PyObject *done = PyObject_CallMethod(self->interactive, "rolled_back_to", "n", (Py_ssize_t)position);
    if (!done)
        PyErr_WriteUnraisable(self->interactive);
    Py_XDECREF(done);
    restore_error(self);
}

/* -- undoing -- */

static void undoing(void *context, int begins)
{
    ManagerObject *self = manager_of(context);
    if (begins) {
        save_error(self);
        if (call_method(self, "_enter_undo", NULL) < 0)
            PyErr_WriteUnraisable((PyObject *)self);
    } else {
        PyObject *type, *error, *traceback;
        PyErr_Fetch(&type, &error, &traceback);
        if (call_method(self, "_leave_undo", NULL) < 0)
            PyErr_WriteUnraisable((PyObject *)self);
        PyErr_Restore(type, error, traceback);
        restore_error(self);
    }
}

static int revert(void *context, Statement *statement)
{
    PyObject *done = PyObject_CallNoArgs(statement->effect);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static void forget(void *context, void *effect)
{
    Py_DECREF((PyObject *)effect);
}

static void panic(void *context)
{
    save_error(context); /* the log has what is being handled */
    if (call_method(context, "_end_process", NULL) < 0)
        PyErr_WriteUnraisable(context);
    Py_FatalError("a transaction cannot be undone");
}

/* -- the log -- */

static int write_log(void *context, const Transaction *core)
{
    ManagerObject *self = manager_of(context);
    if (PyObject_TypeCheck(self->journal, &LogState_Type))
        return log_append_transaction(self->journal, core);
    PyObject *name = name_of("append");
    PyObject *answer = name ? PyObject_CallMethodOneArg(self->journal, name, (PyObject *)transaction_of(core)) : NULL;
    int done = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(name);
    Py_XDECREF(answer);
    return done;
}

const EngineHooks manager_hooks = {
    .prepare = prepare,
    .begin = begin,
    .log = write_log,
    .committed = committed,
    .rolled_back = rolled_back,
    .mark = mark,
    .trim = trim,
    .undoing = undoing,
    .undone = space_undone,
    .revert = revert,
    .forget = forget,
    .panic = panic,
    .tracker_rolled_back = tracker_rolled_back,
};
