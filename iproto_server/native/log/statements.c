/* How the statements of a transaction are logged: as INSERT or REPLACE of the whole row, or as DELETE by the primary key,
 * so that replay needs neither the old rows nor secondary indexes.
 */
#include "../native.h"

/* The key of the row that a statement has removed, a new reference. NULL with an exception. */
static PyObject *removed_key(const Statement *statement)
{
    PyObject *row = record_row(statement->old);
    PyObject *key = row ? packed_primary_key(statement->owner, row) : NULL;
    Py_XDECREF(row);
    return key;
}

/* The same where the parts of the key are fields: cut out of the record. NULL without an exception if they are not. */
static PyObject *cut_key(const Statement *statement)
{
    KeyValue values[KEY_PARTS_MAX];
    uint32_t fields[KEY_PARTS_MAX];
    const KeyLayout *layout = statement->primary->tree.layout;
    const Record *old = statement->old;
    if (!layout)
        return NULL;
    for (int part = 0; part < layout->own; part++)
        fields[part] = layout->parts[part].field_no;
    size_t size = find_key(old->data + old->key_size, old->size - old->key_size, fields, layout->own, values);
    PyObject *key = size ? PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size) : NULL;
    if (key)
        put_key((uint8_t *)PyBytes_AS_STRING(key), values, layout->own);
    return key;
}

/* A system row with an effect: the log knows whether it is logged as an INSERT, and whether it is local. */
static int read_effect(PyObject *log, const Transaction *transaction, size_t number, LogChange *change)
{
    static PyObject *name;
    if (!name && !(name = PyUnicode_InternFromString("effect_of")))
        return -1;
    PyObject *statement = PySequence_GetItem((PyObject *)transaction_of(transaction), (Py_ssize_t)number);
    PyObject *effect = statement ? PyObject_CallMethodOneArg(log, name, statement) : NULL;
    int is_insert = -1, is_local = -1;
    if (effect && PyTuple_Check(effect) && PyTuple_GET_SIZE(effect) == 2) {
        is_insert = PyObject_IsTrue(PyTuple_GET_ITEM(effect, 0));
        is_local = PyObject_IsTrue(PyTuple_GET_ITEM(effect, 1));
    } else if (effect) {
        PyErr_SetString(PyExc_TypeError, "effect_of() returns whether a row is an INSERT, and whether it is local");
    }
    Py_XDECREF(statement);
    Py_XDECREF(effect);
    if (is_insert < 0 || is_local < 0)
        return -1;
    if (change->type != BLOCK_DELETE)
        change->type = is_insert ? BLOCK_INSERT : BLOCK_REPLACE;
    change->is_local = change->is_local || is_local;
    return 0;
}

/* Returns 1; 0 if the statement is not logged; -1 with an exception. */
static int read_statement(PyObject *log, const Transaction *transaction, size_t number, LogChange *change)
{
    const Statement *statement = transaction->all + number;
    const Record *made = statement->made;
    if (statement->space->is_temporary)
        return 0;
    *change = (LogChange){
        .type = !made ? BLOCK_DELETE : statement->old ? BLOCK_REPLACE : BLOCK_INSERT,
        .space_id = statement->space->id,
        .is_local = statement->space->is_local,
    };
    if (made) {
        change->data = made->data + made->key_size;
        change->size = made->size - made->key_size;
    } else {
        PyObject *key = cut_key(statement);
        if (!key && (PyErr_Occurred() || !(key = removed_key(statement))))
            return -1;
        change->data = (const uint8_t *)PyBytes_AS_STRING(key);
        change->size = (size_t)PyBytes_GET_SIZE(key);
        change->owner = key;
    }
    if (statement->effect && read_effect(log, transaction, number, change) < 0) {
        Py_XDECREF(change->owner);
        return -1;
    }
    return 1;
}

/* Append the changes of the statements, for which there is room. */
static int append_changes(PyObject *log, const Transaction *transaction, LogChange *changes)
{
    Py_ssize_t count = 0;
    int done = 0;
    for (size_t number = 0; done >= 0 && number < transaction->count; number++)
        if ((done = read_statement(log, transaction, number, changes + count)) > 0)
            count++;
    if (done >= 0)
        done = log_append(log, changes, count);
    while (count)
        Py_XDECREF(changes[--count].owner);
    return done;
}

int log_append_transaction(PyObject *log, const Transaction *transaction)
{
    enum { FEW = 8 };
    LogChange few[FEW], *changes = few;
    if (transaction->count > FEW && !(changes = PyMem_New(LogChange, transaction->count))) {
        PyErr_NoMemory();
        return -1;
    }
    int done = append_changes(log, transaction, changes);
    if (changes != few)
        PyMem_Free(changes);
    return done;
}
