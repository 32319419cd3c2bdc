/* Methods of trees that fill them, and that look at all rows. */
#include "tree_entries.h"

PyObject *tree_method_clear(PyObject *self, PyObject *none)
{
    if (core(self)->views) {
        PyErr_SetString(PyExc_RuntimeError, "a tree of which a view is open is not cleared");
        return NULL;
    }
    index_clear(index_of(self));
    Py_RETURN_NONE;
}

/* Add entries behind all others. Returns -1 with an exception. */
static int add_behind(PyObject *self, PyObject *keys, PyObject *values)
{
    for (Py_ssize_t number = 0; number < PyList_GET_SIZE(keys); number++) {
        PyObject *key = PyList_GET_ITEM(keys, number), *value = PyList_GET_ITEM(values, number);
        if (check_bytes(key) < 0 || check_bytes(value) < 0)
            return -1;
        TreeKey made = key_from(self, key);
        if (tree_insert_at(self, tree_back(core(self)), &made, key, value) < 0)
            return -1;
    }
    return 0;
}

/* load(keys, values): fill an empty tree with keys in strictly ascending order */
PyObject *tree_method_load(PyObject *self, PyObject *args)
{
    PyObject *keys, *values;
    if (!PyArg_ParseTuple(args, "O!O!:load", &PyList_Type, &keys, &PyList_Type, &values))
        return NULL;
    if (core(self)->size || PyList_GET_SIZE(values) != PyList_GET_SIZE(keys)) {
        PyErr_SetString(PyExc_ValueError, "load() takes as many keys as values, and an empty tree");
        return NULL;
    }
    return add_behind(self, keys, values) < 0 ? NULL : Py_NewRef(Py_None);
}

/* Whether keys are above all of a tree, and each is above the one before it; -1 with an exception. */
static int are_above(PyObject *self, PyObject *keys)
{
    PyObject *before = NULL;
    for (Py_ssize_t number = 0; number < PyList_GET_SIZE(keys); number++) {
        PyObject *key = PyList_GET_ITEM(keys, number);
        if (check_bytes(key) < 0)
            return -1;
        if (!before) {
            TreeKey wanted = key_from(self, key);
            if (!tree_is_below(core(self), &wanted))
                return 0;
        } else {
            int is_above = PyObject_RichCompareBool(before, key, Py_LT);
            if (is_above <= 0)
                return is_above;
        }
        before = key;
    }
    return 1;
}

/* append(keys, values): add entries, unless they are not in strictly ascending order, above all others */
PyObject *tree_method_append(PyObject *self, PyObject *args)
{
    PyObject *keys, *values;
    if (!PyArg_ParseTuple(args, "O!O!:append", &PyList_Type, &keys, &PyList_Type, &values))
        return NULL;
    if (PyList_GET_SIZE(values) != PyList_GET_SIZE(keys)) {
        PyErr_SetString(PyExc_ValueError, "append() takes as many keys as values");
        return NULL;
    }
    int is_above = are_above(self, keys);
    if (is_above < 0 || (is_above && add_behind(self, keys, values) < 0))
        return NULL;
    return PyBool_FromLong(is_above);
}

/* build_from(primary): fill an empty tree that refers to the rows of another one; False where that needs a closer look */
PyObject *tree_method_build_from(PyObject *self, PyObject *primary)
{
    if (!PyObject_TypeCheck(primary, &Tree_Type) || index_of(self)->rows != index_of(primary))
        Py_RETURN_FALSE;
    if (core(self)->size) {
        PyErr_SetString(PyExc_ValueError, "build_from() fills an empty tree");
        return NULL;
    }
    int done;
    Py_BEGIN_ALLOW_THREADS
    done = build_references(core(self), core(primary));
    Py_END_ALLOW_THREADS
    return done == BUILD_NO_MEMORY ? PyErr_NoMemory() : PyBool_FromLong(done == BUILD_DONE);
}

/* values_size(): the bytes of all values of a tree of pairs or rows */
PyObject *tree_method_values_size(PyObject *self, PyObject *none)
{
    const Tree *tree = core(self);
    size_t size = 0;
    for (Place place = tree_begin(); !tree_is_end(tree, place); place = tree_next(tree, place)) {
        const Record *record = record_at(index_of(self), tree_handle(tree, place));
        if (!record)
            return NULL;
        size += record->size - record->key_size;
    }
    return PyLong_FromSize_t(size);
}

/* rows_fit(check): whether all rows are known to fit a format; False where that needs a closer look */
PyObject *tree_method_rows_fit(PyObject *self, PyObject *check)
{
    const RowFormat *format = Py_TYPE(check) == &RowCheck_Type ? row_check_format(check) : NULL;
    if (!format)
        Py_RETURN_FALSE;
    const Tree *tree = core(self);
    for (Place place = tree_begin(); !tree_is_end(tree, place); place = tree_next(tree, place)) {
        const Record *record = record_at(index_of(self), tree_handle(tree, place));
        if (!record)
            return NULL;
        if (!format_fits(format, record->data + record->key_size, record->size - record->key_size, 1))
            Py_RETURN_FALSE;
    }
    Py_RETURN_TRUE;
}
