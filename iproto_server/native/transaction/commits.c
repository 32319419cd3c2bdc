/* The end of a transaction: the twin of TransactionManager.commit (box/txn/transaction.py). */
#include "../native.h"

static PyObject *name_append, *name_commit, *name_rollback;

static int make_names(void)
{
    return name_rollback
        || ((name_append = PyUnicode_InternFromString("append")) && (name_commit = PyUnicode_InternFromString("commit"))
            && (name_rollback = PyUnicode_InternFromString("rollback")));
}

static void remove_last(PyObject *list)
{
    PyList_SetSlice(list, PyList_GET_SIZE(list) - 1, PyList_GET_SIZE(list), NULL);
}

/* Give the rows to the journal. Returns whether they have yet to be written; -1 with an exception. */
static int append(PyObject *journal, PyObject *statements)
{
    if (PyObject_TypeCheck(journal, &LogState_Type))
        return log_append_statements(journal, statements);
    PyObject *answer = PyObject_CallMethodOneArg(journal, name_append, statements);
    int is_unwritten = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    return is_unwritten;
}

/* Call a method while an exception is being handled, as within `except`; it goes on, unless the method raises another
 * one. */
void call_handling(PyObject *name, PyObject *const *args, size_t count)
{
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    PyErr_NormalizeException(&type, &error, &traceback);
    if (traceback)
        PyException_SetTraceback(error, traceback);
    PyObject *before = PyErr_GetHandledException();
    PyErr_SetHandledException(error);
    PyObject *done = PyObject_VectorcallMethod(name, args, count, NULL);
    PyErr_SetHandledException(before);
    Py_XDECREF(before);
    if (done) {
        PyErr_Restore(type, error, traceback);
        Py_DECREF(done);
    } else {
        Py_XDECREF(type);
        Py_XDECREF(error);
        Py_XDECREF(traceback);
    }
}

void roll_back(PyObject *manager)
{
    if (make_names())
        call_handling(name_rollback, &manager, 1);
}

/* Have what was remembered written. */
static int await_write(PyObject *manager)
{
    set_slot(manager, manager_slots + MANAGER_HAS_LOGGED, Py_True);
    if (MANAGER(manager, IS_WRITE_DUE) == Py_True)
        return 0;
    set_slot(manager, manager_slots + MANAGER_IS_WRITE_DUE, Py_True);
    PyObject *done = PyObject_CallNoArgs(MANAGER(manager, WRITE_SOON));
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* Remember what may yet have to be undone, and have it written. */
static int await_statements(PyObject *manager, PyObject *statements, PyObject *on_rollback)
{
    PyTypeObject *type = known[KNOWN_COMMITTED];
    PyObject *committed = type->tp_alloc(type, 2);
    if (!committed)
        return -1;
    PyTuple_SET_ITEM(committed, 0, Py_NewRef(statements));
    PyTuple_SET_ITEM(committed, 1, Py_NewRef(on_rollback));
    int failed = PyList_Append(MANAGER(manager, UNWRITTEN), committed) < 0;
    Py_DECREF(committed);
    return failed ? -1 : await_write(manager);
}

/* Whether nobody is to be told of the commit, and everything is what it should be. */
static int is_simple(PyObject *manager)
{
    PyObject *statements = MANAGER(manager, STATEMENTS), *calls = MANAGER(manager, ON_COMMIT);
    PyObject *unwritten = MANAGER(manager, UNWRITTEN), *undoing = MANAGER(manager, ON_ROLLBACK);
    return statements && PyList_CheckExact(statements) && calls && PyList_CheckExact(calls)
        && !PyList_GET_SIZE(calls) && MANAGER(manager, ON_CHANGE) == Py_None && unwritten
        && PyList_CheckExact(unwritten) && undoing && PyList_CheckExact(undoing);
}

static int commit_simply(PyObject *manager)
{
    PyObject *statements = Py_NewRef(MANAGER(manager, STATEMENTS));
    PyObject *on_rollback = Py_NewRef(MANAGER(manager, ON_ROLLBACK));
    int failed = 0;
    if (PyList_GET_SIZE(statements)) {
        int is_unwritten = append(MANAGER(manager, JOURNAL), statements);
        if (is_unwritten < 0) {
            roll_back(manager);
            failed = -1;
        } else if (is_unwritten || PyList_GET_SIZE(MANAGER(manager, UNWRITTEN))
                   || MANAGER(manager, IS_WRITING) == Py_True) {
            failed = await_statements(manager, statements, on_rollback);
        }
    }
    if (!failed) {
        set_slot(manager, manager_slots + MANAGER_STATEMENTS, Py_None);
        if (PyList_GET_SIZE(on_rollback)) {
            PyObject *none = PyList_New(0);
            if (none)
                set_slot(manager, manager_slots + MANAGER_ON_ROLLBACK, none);
            Py_XDECREF(none);
            failed = none ? 0 : -1;
        }
    }
    Py_DECREF(statements);
    Py_DECREF(on_rollback);
    return failed;
}

/* -- a change that is a transaction by itself -- */

static int is_empty_list(PyObject *list)
{
    return list && PyList_CheckExact(list) && !PyList_GET_SIZE(list);
}

int commits_plainly(PyObject *manager, PyObject *space)
{
    PyObject *log = MANAGER(manager, JOURNAL);
    return MANAGER(manager, STATEMENTS) == Py_None && MANAGER(manager, TAKE_OUT) == Py_None
        && MANAGER(manager, ON_CHANGE) == Py_None && is_empty_list(MANAGER(manager, ON_COMMIT))
        && is_empty_list(MANAGER(manager, ON_ROLLBACK)) && MANAGER(manager, UNWRITTEN)
        && PyList_CheckExact(MANAGER(manager, UNWRITTEN)) && log && log_takes_rows(log)
        && get_slot(space, &space_is_temporary) == Py_False && get_slot(space, &space_is_local) == Py_False
        && make_names();
}

int log_row_open(LogRow *row, PyObject *manager, uint64_t type, PyObject *space, size_t size)
{
    *row = (LogRow){.rows = NULL};
    unsigned long long id = PyLong_AsUnsignedLongLong(get_slot(space, &space_id));
    return PyErr_Occurred() ? -1 : log_open_row(row, MANAGER(manager, JOURNAL), type, id, (Py_ssize_t)size);
}

int log_row_append(const LogRow *row, PyObject *manager, PyObject *committed)
{
    if (log_rows_append_row(row) < 0)
        return -1;
    if (PyList_Append(MANAGER(manager, UNWRITTEN), committed) == 0)
        return 0;
    log_rows_take_back(row);
    return -1;
}

void log_row_take_back(const LogRow *row, PyObject *manager)
{
    log_rows_take_back(row);
    remove_last(MANAGER(manager, UNWRITTEN));
}

int log_row_commit(PyObject *manager)
{
    return await_write(manager);
}

int commit(PyObject *manager)
{
    if (!make_names() || know_class(KNOWN_COMMITTED) < 0)
        return -1;
    if (is_simple(manager))
        return commit_simply(manager);
    PyObject *done = PyObject_CallMethodNoArgs(manager, name_commit);
    Py_XDECREF(done);
    return done ? 0 : -1;
}
