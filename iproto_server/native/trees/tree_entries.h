/* What the files of this room share: the entries of a tree as Python's values.
 *
 * Keys and values are bytes. Functions that return objects return new references; NULL with an exception.
 */
#ifndef IPROTO_SERVER_TREE_ENTRIES_H
#define IPROTO_SERVER_TREE_ENTRIES_H

#include "../native.h"

static inline Index *index_of(PyObject *self)
{
    return ((TreeObject *)self)->index;
}

static inline Tree *core(PyObject *self)
{
    return &index_of(self)->tree;
}

static inline TreeKey key_from(PyObject *self, PyObject *key)
{
    return tree_key(core(self), (const uint8_t *)PyBytes_AS_STRING(key), (size_t)PyBytes_GET_SIZE(key));
}

static inline Place find(PyObject *self, PyObject *key, TreeKey *wanted)
{
    *wanted = key_from(self, key);
    return tree_find(core(self), wanted);
}

/* Where an interval's bound is: None is the beginning for the lower one, and the end for the upper one. */
static inline Place bound(PyObject *self, PyObject *key, int is_upper)
{
    if (key == Py_None)
        return is_upper ? tree_end(core(self)) : tree_begin();
    TreeKey wanted = key_from(self, key);
    return tree_lower_bound(core(self), &wanted);
}

static inline PyObject *bytes_of(const uint8_t *data, size_t size)
{
    return PyBytes_FromStringAndSize((const char *)data, (Py_ssize_t)size);
}

static inline const Record *record_at(const Index *index, Handle32 handle)
{
    const Record *record = tree_record(&index->tree, handle);
    if (!record)
        PyErr_SetString(PyExc_RuntimeError, "an index refers to a row that was removed");
    return record;
}

static inline PyObject *key_bytes(Index *index, Handle32 handle)
{
    size_t size;
    const uint8_t *key = record_at(index, handle) ? tree_record_key(&index->tree, handle, &size) : NULL;
    if (key)
        return bytes_of(key, size);
    return PyErr_Occurred() ? NULL : PyErr_NoMemory();
}

/* The row of a record, or the value of a pair. */
static inline PyObject *data_bytes(const Index *index, Handle32 handle)
{
    const Record *record = record_at(index, handle);
    return record ? bytes_of(record->data + record->key_size, record->size - record->key_size) : NULL;
}

static inline PyObject *value_bytes(Index *index, Handle32 handle)
{
    return index->rows && !(handle & TREE_PAIR) ? key_bytes(index->rows, handle) : data_bytes(index, handle);
}

static inline int check_bytes(PyObject *value)
{
    if (PyBytes_CheckExact(value))
        return 0;
    PyErr_Format(PyExc_TypeError, "a tree has bytes only, not %.100s", Py_TYPE(value)->tp_name);
    return -1;
}

static inline int check_bound(PyObject *key)
{
    return key == Py_None ? 0 : check_bytes(key);
}

static inline int no_memory(void)
{
    PyErr_NoMemory();
    return -1;
}

PyObject *tree_method_get(PyObject *self, PyObject *const *args, Py_ssize_t count);
PyObject *tree_method_insert(PyObject *self, PyObject *const *args, Py_ssize_t count);
PyObject *tree_method_first(PyObject *self, PyObject *low);
PyObject *tree_method_first_value(PyObject *self, PyObject *prefix);
PyObject *tree_method_last(PyObject *self, PyObject *high);
PyObject *tree_method_count(PyObject *self, PyObject *const *args, Py_ssize_t count);
PyObject *tree_method_range_values(PyObject *self, PyObject *const *args, Py_ssize_t count);
PyObject *tree_method_after(PyObject *self, PyObject *const *args, Py_ssize_t count);
PyObject *tree_method_clear(PyObject *self, PyObject *none);
PyObject *tree_method_load(PyObject *self, PyObject *args);
PyObject *tree_method_append(PyObject *self, PyObject *args);
PyObject *tree_method_build_from(PyObject *self, PyObject *primary);
PyObject *tree_method_values_size(PyObject *self, PyObject *none);
PyObject *tree_method_rows_fit(PyObject *self, PyObject *check);
int tree_starts_with(PyObject *self, Place place, PyObject *prefix); /* -1 with an exception */
Handle32 tree_new_handle(PyObject *self, PyObject *key, PyObject *value);
int tree_insert_at(PyObject *self, Place place, const TreeKey *made, PyObject *key, PyObject *value);
int tree_assign(PyObject *self, PyObject *key, PyObject *value);
int tree_read_layout(KeyLayout *layout, PyObject *given);
extern const IndexHook tree_python_keys;

#endif
