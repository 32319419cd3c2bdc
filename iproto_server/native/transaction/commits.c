/* The end of a transaction: the twins of TransactionManager.commit (box/txn/transaction.py), and of WriteAheadLog.append
 * (storage/wal.py) for a transaction that has changed one row, beside those of temporary spaces.
 */
#include "../native.h"

static PyObject *name_append, *name_commit, *name_rollback, *name_field_numbers, *name_none;

static int make_names(void)
{
    return name_none
        || ((name_append = PyUnicode_InternFromString("append")) && (name_commit = PyUnicode_InternFromString("commit"))
            && (name_rollback = PyUnicode_InternFromString("rollback"))
            && (name_field_numbers = PyUnicode_InternFromString("field_numbers"))
            && (name_none = PyUnicode_InternFromString("none")));
}

/* Whether the key is the first field alone; no is an answer for doubts, too. */
static int is_first_field(PyObject *primary)
{
    PyObject *numbers = PyObject_GetAttr(primary, name_field_numbers);
    int is_first = numbers && PyTuple_CheckExact(numbers) && PyTuple_GET_SIZE(numbers) == 1
        && PyLong_CheckExact(PyTuple_GET_ITEM(numbers, 0)) && !PyLong_AsLong(PyTuple_GET_ITEM(numbers, 0));
    Py_XDECREF(numbers);
    PyErr_Clear();
    return is_first;
}

/* What is logged of a statement: the type of the request, and the row or key. NULL where that is for Python. */
static PyObject *logged(PyObject *statement, uint64_t *type, PyObject **space)
{
    if (!PyTuple_Check(statement) || PyTuple_GET_SIZE(statement) != 6)
        return NULL;
    PyObject *old = PyTuple_GET_ITEM(statement, 2), *new = PyTuple_GET_ITEM(statement, 3);
    *space = PyTuple_GET_ITEM(statement, 0);
    if (!known[KNOWN_SPACE] || !PyObject_TypeCheck(*space, known[KNOWN_SPACE])
        || get_slot(*space, &space_is_temporary) != Py_False || get_slot(*space, &space_is_local) != Py_False
        || PyTuple_GET_ITEM(statement, 5) != Py_None)
        return NULL;
    *type = new == Py_None ? REQUEST_DELETE : old == Py_None ? REQUEST_INSERT : REQUEST_REPLACE;
    if (new != Py_None)
        return PyBytes_CheckExact(new) ? Py_NewRef(new) : NULL;
    return PyBytes_CheckExact(old) && is_first_field(PyTuple_GET_ITEM(statement, 4)) ? first_key(old) : NULL;
}

/* Whether the log takes rows, and has only to put them aside. */
static int is_usual(PyObject *log)
{
    PyObject *mode = get_slot(log, &log_mode), *waiting = get_slot(log, &log_waiting);
    return get_slot(log, &log_is_closed) == Py_False && get_slot(log, &log_is_failing) == Py_False && mode
        && PyUnicode_Check(mode) && PyUnicode_Compare(mode, name_none) && waiting && Py_TYPE(waiting) == &LogRows_Type;
}

static int begin_write(PyObject *log)
{
    PyObject *now = PyObject_CallNoArgs(get_slot(log, &log_clock));
    double timestamp = now ? PyFloat_AsDouble(now) : 0;
    Py_XDECREF(now);
    if (PyErr_Occurred())
        return -1;
    log_rows_begin(get_slot(log, &log_waiting), timestamp);
    return 0;
}

/* -- a row of the log -- */

/* Begin a row with so many bytes of a tuple or key. Returns 0; -1 with an exception. */
static int open_row(LogRow *row, PyObject *log, uint64_t type, PyObject *space, Py_ssize_t size)
{
    *row = (LogRow){.rows = NULL};
    if (log_rows_are_empty(get_slot(log, &log_waiting)) && begin_write(log) < 0)
        return -1;
    unsigned long long id = PyLong_AsUnsignedLongLong(get_slot(space, &space_id));
    return PyErr_Occurred() ? -1 : log_rows_open(row, get_slot(log, &log_waiting), type, id, size);
}

static void remove_last(PyObject *list)
{
    PyList_SetSlice(list, PyList_GET_SIZE(list) - 1, PyList_GET_SIZE(list), NULL);
}

/* Append a transaction of one row. Returns 1 when it waits to be written; 0, maybe with an exception, when nothing was
 * done. */
static int append_row(PyObject *log, PyObject *statement)
{
    uint64_t type;
    PyObject *space, *raw = is_usual(log) ? logged(statement, &type, &space) : NULL;
    if (!raw)
        return 0;
    LogRow row;
    int done = open_row(&row, log, type, space, PyBytes_GET_SIZE(raw)) == 0;
    if (done) {
        memcpy(row.data, PyBytes_AS_STRING(raw), (size_t)PyBytes_GET_SIZE(raw));
        done = log_rows_append(&row) == 0;
    }
    log_row_close(&row);
    Py_DECREF(raw);
    return done;
}

static int is_temporary(PyObject *statement)
{
    PyObject *space = PyTuple_Check(statement) && PyTuple_GET_SIZE(statement) ? PyTuple_GET_ITEM(statement, 0) : NULL;
    return space && known[KNOWN_SPACE] && PyObject_TypeCheck(space, known[KNOWN_SPACE])
        && get_slot(space, &space_is_temporary) == Py_True;
}

/* The only statement of a transaction that is logged, borrowed; NULL where none is, or several are. */
static PyObject *only_logged(PyObject *statements)
{
    PyObject *only = NULL;
    for (Py_ssize_t place = 0; place < PyList_GET_SIZE(statements); place++) {
        PyObject *statement = PyList_GET_ITEM(statements, place);
        if (is_temporary(statement))
            continue;
        if (only)
            return NULL;
        only = statement;
    }
    return only;
}

/* Give the rows to the journal. Returns whether they have yet to be written; -1 with an exception. */
static int append(PyObject *journal, PyObject *statements)
{
    PyObject *only = Py_TYPE(journal) == known[KNOWN_LOG] ? only_logged(statements) : NULL;
    if (only) {
        int is_unwritten = append_row(journal, only);
        if (is_unwritten || PyErr_Occurred())
            return is_unwritten ? 1 : -1;
    }
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
        && PyList_CheckExact(MANAGER(manager, UNWRITTEN)) && log && Py_TYPE(log) == known[KNOWN_LOG]
        && get_slot(space, &space_is_temporary) == Py_False && get_slot(space, &space_is_local) == Py_False
        && make_names() && is_usual(log);
}

int log_row_open(LogRow *row, PyObject *manager, uint64_t type, PyObject *space, size_t size)
{
    return open_row(row, MANAGER(manager, JOURNAL), type, space, (Py_ssize_t)size);
}

int log_row_append(const LogRow *row, PyObject *manager, PyObject *committed)
{
    if (log_rows_append(row) < 0)
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
