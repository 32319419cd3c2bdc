/* How the statements of a transaction are logged: as INSERT or REPLACE of the whole row, or as DELETE by the primary key,
 * so that replay needs neither the old rows nor secondary indexes.
 */
#include "../native.h"

enum { STATEMENT_SPACE, STATEMENT_KEY, STATEMENT_OLD, STATEMENT_NEW, STATEMENT_PRIMARY, STATEMENT_UNDO, STATEMENT_PARTS };

#define PART(statement, part) PyTuple_GET_ITEM(statement, STATEMENT_##part)

static int is_statement(PyObject *statement)
{
    if (know_class(KNOWN_SPACE) < 0)
        return 0;
    if (PyTuple_Check(statement) && PyTuple_GET_SIZE(statement) == STATEMENT_PARTS
        && PyObject_TypeCheck(PART(statement, SPACE), known[KNOWN_SPACE]))
        return 1;
    PyErr_SetString(PyExc_TypeError, "a transaction is a list of Statement");
    return 0;
}

/* The bytes that are logged, a new reference: the new row, or the key of the old one. NULL with an exception. */
static PyObject *logged_bytes(PyObject *statement)
{
    PyObject *old = PART(statement, OLD), *new = PART(statement, NEW);
    PyObject *row = new == Py_None ? old : new;
    if (!PyBytes_CheckExact(row))
        return PyErr_Format(PyExc_TypeError, "a row is bytes, not %.100s", Py_TYPE(row)->tp_name);
    return new == Py_None ? packed_primary_key(PART(statement, PRIMARY), old) : Py_NewRef(row);
}

/* A system row with an effect: the log knows whether it is logged as an INSERT, and whether it is local. */
static int read_effect(PyObject *log, PyObject *statement, LogChange *change)
{
    static PyObject *name;
    if (!name && !(name = PyUnicode_InternFromString("effect_of")))
        return -1;
    PyObject *effect = PyObject_CallMethodOneArg(log, name, statement);
    int is_insert = -1, is_local = -1;
    if (effect && PyTuple_Check(effect) && PyTuple_GET_SIZE(effect) == 2) {
        is_insert = PyObject_IsTrue(PyTuple_GET_ITEM(effect, 0));
        is_local = PyObject_IsTrue(PyTuple_GET_ITEM(effect, 1));
    } else if (effect) {
        PyErr_SetString(PyExc_TypeError, "effect_of() returns whether a row is an INSERT, and whether it is local");
    }
    Py_XDECREF(effect);
    if (is_insert < 0 || is_local < 0)
        return -1;
    if (change->type != BLOCK_DELETE)
        change->type = is_insert ? BLOCK_INSERT : BLOCK_REPLACE;
    change->is_local = change->is_local || is_local;
    return 0;
}

/* Returns 1; 0 if the statement is not logged; -1 with an exception. */
static int read_statement(PyObject *log, PyObject *statement, LogChange *change)
{
    if (!is_statement(statement))
        return -1;
    PyObject *space = PART(statement, SPACE);
    if (get_slot(space, &space_is_temporary) == Py_True)
        return 0;
    PyObject *bytes = logged_bytes(statement);
    if (!bytes)
        return -1;
    *change = (LogChange){
        .type = PART(statement, NEW) == Py_None ? BLOCK_DELETE
            : PART(statement, OLD) == Py_None   ? BLOCK_INSERT
                                                : BLOCK_REPLACE,
        .space_id = PyLong_AsUnsignedLongLong(get_slot(space, &space_id)),
        .is_local = get_slot(space, &space_is_local) == Py_True,
        .data = (const uint8_t *)PyBytes_AS_STRING(bytes),
        .size = (size_t)PyBytes_GET_SIZE(bytes),
        .owner = bytes,
    };
    if (PyErr_Occurred() || (PART(statement, UNDO) != Py_None && read_effect(log, statement, change) < 0)) {
        Py_DECREF(bytes);
        return -1;
    }
    return 1;
}

/* Append the changes of the statements, for which there is room. */
static int append_changes(PyObject *log, PyObject *statements, LogChange *changes)
{
    Py_ssize_t count = 0;
    int done = 0;
    for (Py_ssize_t place = 0; done >= 0 && place < PyList_GET_SIZE(statements); place++)
        if ((done = read_statement(log, PyList_GET_ITEM(statements, place), changes + count)) > 0)
            count++;
    if (done >= 0)
        done = log_append(log, changes, count);
    while (count)
        Py_DECREF(changes[--count].owner);
    return done;
}

int log_append_statements(PyObject *log, PyObject *statements)
{
    enum { FEW = 8 };
    LogChange few[FEW], *changes = few;
    if (!PyList_CheckExact(statements)) {
        PyErr_SetString(PyExc_TypeError, "a transaction is a list of Statement");
        return -1;
    }
    Py_ssize_t count = PyList_GET_SIZE(statements);
    if (count > FEW && !(changes = PyMem_New(LogChange, (size_t)count))) {
        PyErr_NoMemory();
        return -1;
    }
    int done = append_changes(log, statements, changes);
    if (changes != few)
        PyMem_Free(changes);
    return done;
}
