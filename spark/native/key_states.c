/* The final state of each key after replay: the twin of the class KeyStates in spark/source/state/key_states.py.
 *
 * Methods return False or None if Python has to do the work.
 */
#include "key_states.h"

#include "arrow_columns.h"

/* Returns 0 with an exception. */
static int key_from(PyObject *object, Key *key)
{
    if (!PyBytes_CheckExact(object)) {
        PyErr_SetString(PyExc_TypeError, "a key is bytes");
        return 0;
    }
    *key = key_of((Position)PyBytes_AS_STRING(object), (size_t)PyBytes_GET_SIZE(object));
    return 1;
}

/* -- single keys: the methods of a dictionary -- */

static PyObject *key_states_subscript(PyObject *self, PyObject *object)
{
    Key key;
    if (!key_from(object, &key))
        return NULL;
    Entry *entry = find_state((KeyStates *)self, &key);
    if (!entry)
        PyErr_SetObject(PyExc_KeyError, object);
    return entry ? Py_NewRef(entry->state) : NULL;
}

static int key_states_assign(PyObject *self, PyObject *object, PyObject *state)
{
    Key key;
    if (!state) {
        PyErr_SetString(PyExc_TypeError, "states are removed by pop()");
        return -1;
    }
    return key_from(object, &key) && set_state((KeyStates *)self, &key, Py_NewRef(state)) ? 0 : -1;
}

static int key_states_contains(PyObject *self, PyObject *object)
{
    Key key;
    return key_from(object, &key) ? find_state((KeyStates *)self, &key) != NULL : -1;
}

static Py_ssize_t key_states_length(PyObject *self)
{
    return (Py_ssize_t)((KeyStates *)self)->live;
}

/* get(key, default) and pop(key, default) */
static PyObject *get_or_pop(PyObject *self, PyObject *const *args, Py_ssize_t count, int is_removed)
{
    Key key;
    if (count < 1 || count > 2) {
        PyErr_SetString(PyExc_TypeError, "get() and pop() take a key and a default");
        return NULL;
    }
    if (!key_from(args[0], &key))
        return NULL;
    Entry *entry = find_state((KeyStates *)self, &key);
    if (!entry)
        return Py_NewRef(count == 2 ? args[1] : Py_None);
    PyObject *state = Py_NewRef(entry->state);
    if (is_removed)
        remove_state((KeyStates *)self, entry);
    return state;
}

static PyObject *method_get(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    return get_or_pop(self, args, count, 0);
}

static PyObject *method_pop(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    return get_or_pop(self, args, count, 1);
}

/* -- all keys -- */

/* items(): a list, unlike a dictionary's view */
static PyObject *method_items(PyObject *self, PyObject *none)
{
    KeyStates *states = (KeyStates *)self;
    PyObject *items = PyList_New(0);
    for (size_t number = 0; items && number < states->used; number++) {
        Entry *entry = &states->entries[number];
        if (!entry->state)
            continue;
        PyObject *item = Py_BuildValue("y#O", key_at(states, entry), (Py_ssize_t)entry->size, entry->state);
        if (!item || PyList_Append(items, item) < 0)
            Py_CLEAR(items);
        Py_XDECREF(item);
    }
    return items;
}

/* snapshot_keys(): the keys that the snapshot may have */
static PyObject *method_snapshot_keys(PyObject *self, PyObject *none)
{
    KeyStates *states = (KeyStates *)self;
    PyObject *keys = PyList_New(0);
    for (size_t number = 0; keys && number < states->used; number++) {
        Entry *entry = &states->entries[number];
        if (!entry->state || entry->is_new)
            continue;
        PyObject *key = PyBytes_FromStringAndSize((const char *)key_at(states, entry), (Py_ssize_t)entry->size);
        if (!key || PyList_Append(keys, key) < 0)
            Py_CLEAR(keys);
        Py_XDECREF(key);
    }
    return keys;
}

static PyObject *method_rows_size(PyObject *self, PyObject *none)
{
    return PyLong_FromSize_t(((KeyStates *)self)->rows_size);
}

static PyObject *method_rows(PyObject *self, PyObject *none)
{
    KeyStates *states = (KeyStates *)self;
    PyObject *rows = PyList_New(0);
    for (size_t number = 0; rows && number < states->used; number++) {
        PyObject *state = states->entries[number].state;
        if (state && PyBytes_CheckExact(state) && PyList_Append(rows, state) < 0)
            Py_CLEAR(rows);
    }
    return rows;
}

/* -- many keys -- */

/* Get the keys of some rows, and prefetch their slots and entries. */
static void take_keys(const KeyStates *states, const Cells *cells, Py_ssize_t begin, Py_ssize_t end,
                      Key keys[PREFETCHED])
{
    for (Py_ssize_t row = begin; row < end; row++)
        keys[row - begin] = key_of(cells->data + cells->start[row], (size_t)(cells->end[row] - cells->start[row]));
    prefetch_keys(states, keys, (size_t)(end - begin));
}

static inline Py_ssize_t group_end(Py_ssize_t begin, Py_ssize_t count)
{
    return count - begin < PREFETCHED ? count : begin + PREFETCHED;
}

/* Get a mask with one byte per cell. Returns 0 with an exception. */
static int mask_init(Py_buffer *mask, PyObject *object, const Cells *cells)
{
    if (PyObject_GetBuffer(object, mask, PyBUF_SIMPLE) < 0)
        return 0;
    if (mask->len == cells->count)
        return 1;
    PyBuffer_Release(mask);
    PyErr_SetString(PyExc_ValueError, "a mask must have one byte per value");
    return 0;
}

/* The tuple if this task returns it, True if another task does, None for a deletion. NULL with an exception. */
static PyObject *state_of(const Cells *tuples, const char *is_own, Py_ssize_t row)
{
    return tuples->start[row] < 0 ? Py_NewRef(Py_None) : is_own[row] ? raw_of(tuples, row) : Py_NewRef(Py_True);
}

/* Returns 0 with an exception. */
static int record_all(KeyStates *states, const Cells *cells, const Cells *tuples, const char *is_own)
{
    Key keys[PREFETCHED];
    for (Py_ssize_t begin = 0, end; begin < cells->count; begin = end) {
        end = group_end(begin, cells->count);
        take_keys(states, cells, begin, end, keys);
        for (Py_ssize_t row = begin; row < end; row++)
            if (!set_state(states, &keys[row - begin], state_of(tuples, is_own, row)))
                return 0;
    }
    return 1;
}

static int are_known(const Cells *keys, const Cells *tuples)
{
    for (Py_ssize_t row = 0; row < keys->count; row++)
        if (keys->start[row] < 0 || !is_inside(keys, row)
            || (tuples && tuples->start[row] >= 0 && !is_inside(tuples, row)))
            return 0;
    return 1;
}

/* record_cells(data, key starts, key ends, tuple starts, tuple ends, mask): whether the states of keys were recorded */
static PyObject *method_record_cells(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Cells keys, tuples;
    Py_buffer mask;
    if (count != 6) {
        PyErr_SetString(PyExc_TypeError, "record_cells() takes bytes, four arrays of offsets and a mask");
        return NULL;
    }
    if (!cells_init(&keys, args[0], args[1], args[2]))
        return NULL;
    PyObject *result = NULL;
    if (cells_init(&tuples, args[0], args[3], args[4])) {
        if (mask_init(&mask, args[5], &tuples)) {
            int is_known = keys.count == tuples.count && are_known(&keys, &tuples);
            if (!is_known || record_all((KeyStates *)self, &keys, &tuples, mask.buf))
                result = PyBool_FromLong(is_known);
            PyBuffer_Release(&mask);
        }
        cells_free(&tuples);
    }
    cells_free(&keys);
    return result;
}

/* find_cells(data, start, end): one byte per key, 1 if it has a state */
static PyObject *method_find_cells(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Cells cells;
    if (count != 3) {
        PyErr_SetString(PyExc_TypeError, "find_cells() takes bytes and two arrays of offsets");
        return NULL;
    }
    if (!cells_init(&cells, args[0], args[1], args[2]))
        return NULL;
    int is_known = are_known(&cells, NULL);
    PyObject *found = is_known ? PyBytes_FromStringAndSize(NULL, cells.count) : Py_NewRef(Py_None);
    Key keys[PREFETCHED];
    for (Py_ssize_t begin = 0, end; is_known && found && begin < cells.count; begin = end) {
        end = group_end(begin, cells.count);
        take_keys((KeyStates *)self, &cells, begin, end, keys);
        for (Py_ssize_t row = begin; row < end; row++)
            PyBytes_AS_STRING(found)[row] = find_state((KeyStates *)self, &keys[row - begin]) != NULL;
    }
    cells_free(&cells);
    return found;
}

/* -- the class -- */

static PyObject *key_states_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    if (PyTuple_GET_SIZE(args) || (kwargs && PyDict_GET_SIZE(kwargs))) {
        PyErr_SetString(PyExc_TypeError, "KeyStates() takes no arguments");
        return NULL;
    }
    return type->tp_alloc(type, 0); /* all zeros: no slots yet */
}

static void key_states_dealloc(PyObject *self)
{
    KeyStates *states = (KeyStates *)self;
    for (size_t number = 0; number < states->used; number++)
        Py_XDECREF(states->entries[number].state);
    PyMem_Free(states->slots);
    PyMem_Free(states->entries);
    PyMem_Free(states->keys);
    Py_TYPE(self)->tp_free(self);
}

#define FAST(name, function, text) {name, (PyCFunction)(void (*)(void))function, METH_FASTCALL, text}
static PyMethodDef key_states_methods[] = {
    FAST("get", method_get, "The state of a key, or the default."),
    FAST("pop", method_pop, "Remove the state of a key."),
    {"items", method_items, METH_NOARGS, "All keys and their states."},
    {"fold", key_states_fold, METH_VARARGS, "Fold the rows of a log."},
    {"rows", method_rows, METH_NOARGS, "The complete rows."},
    {"rows_size", method_rows_size, METH_NOARGS, "The size of the complete rows in bytes."},
    {"snapshot_keys", method_snapshot_keys, METH_NOARGS, "The keys that the snapshot may have."},
    FAST("record_cells", method_record_cells, "Record the states of many keys."),
    FAST("find_cells", method_find_cells, "Tell which of many keys have states."),
    {NULL},
};

static PyMappingMethods key_states_mapping = {
    .mp_length = key_states_length, .mp_subscript = key_states_subscript, .mp_ass_subscript = key_states_assign,
};

static PySequenceMethods key_states_sequence = {.sq_contains = key_states_contains};

PyTypeObject KeyStates_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "pyspark_tarantool.source.state.key_states.KeyStates",
    .tp_doc = "The states of keys.",
    .tp_basicsize = sizeof(KeyStates),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = key_states_new,
    .tp_dealloc = key_states_dealloc,
    .tp_methods = key_states_methods,
    .tp_as_mapping = &key_states_mapping,
    .tp_as_sequence = &key_states_sequence,
};
