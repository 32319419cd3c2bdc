/* Changes of the entries of a tree. */
#include "tree_entries.h"

/* Compare a row with the key that it is to be found by. Returns 1 if the key is made from the row; 0 if that needs more
 * than the core knows; -1 with an exception if it is another one's. */
static int check_row(PyObject *self, PyObject *key, const uint8_t *row, size_t size)
{
    KeyBuffer *made = &core(self)->scratch;
    int done = key_of_row(core(self)->layout, row, size, made);
    if (done < 0)
        return no_memory();
    if (done && (made->size != (size_t)PyBytes_GET_SIZE(key) || memcmp(made->data, PyBytes_AS_STRING(key), made->size))) {
        PyErr_SetString(PyExc_ValueError, "the row does not have that key");
        return -1;
    }
    return done;
}

/* Add a record to those of the tree's own. Returns NO_HANDLE with an exception. */
static Handle32 add_record(PyObject *self, PyObject *key, PyObject *value)
{
    const char *data = PyBytes_AS_STRING(value);
    size_t size = (size_t)PyBytes_GET_SIZE(value), key_size = key ? (size_t)PyBytes_GET_SIZE(key) : 0;
    Handle32 handle = records_add(&index_of(self)->own, key ? PyBytes_AS_STRING(key) : NULL, key_size, data, size);
    if (handle == NO_HANDLE)
        PyErr_NoMemory();
    return handle;
}

/* The handle of the row with a primary key, or of a pair. Returns NO_HANDLE with an exception. */
static Handle32 reference(PyObject *self, PyObject *key, PyObject *primary_key)
{
    Index *rows = index_of(self)->rows;
    TreeKey wanted = tree_key(&rows->tree, (const uint8_t *)PyBytes_AS_STRING(primary_key),
                              (size_t)PyBytes_GET_SIZE(primary_key));
    Place place = tree_find(&rows->tree, &wanted);
    if (!place.is_found) {
        PyErr_SetString(PyExc_ValueError, "there is no row with that primary key");
        return NO_HANDLE;
    }
    Handle32 handle = tree_handle(&rows->tree, place);
    const Record *record = record_at(rows, handle);
    int is_usual = record ? check_row(self, key, record->data + record->key_size, record->size - record->key_size) : -1;
    if (is_usual)
        return is_usual < 0 ? NO_HANDLE : handle;
    Handle32 pair = add_record(self, key, primary_key);
    return pair == NO_HANDLE ? NO_HANDLE : pair | TREE_PAIR;
}

/* The handle of a new entry. Returns NO_HANDLE with an exception. */
Handle32 tree_new_handle(PyObject *self, PyObject *key, PyObject *value)
{
    if (index_of(self)->rows)
        return reference(self, key, value);
    if (!core(self)->layout)
        return add_record(self, key, value);
    int is_usual = check_row(self, key, (const uint8_t *)PyBytes_AS_STRING(value), (size_t)PyBytes_GET_SIZE(value));
    return is_usual < 0 ? NO_HANDLE : add_record(self, is_usual ? NULL : key, value);
}

/* Remove the record of an entry that is gone, if it is the tree's own. */
static void drop_handle(PyObject *self, Handle32 handle)
{
    if (!index_of(self)->rows || handle & TREE_PAIR)
        records_remove(&index_of(self)->own, handle & ~TREE_PAIR);
}

int tree_insert_at(PyObject *self, Place place, const TreeKey *made, PyObject *key, PyObject *value)
{
    if (views_keep(core(self), made, NO_HANDLE) < 0)
        return no_memory();
    Handle32 handle = tree_new_handle(self, key, value);
    if (handle == NO_HANDLE)
        return -1;
    if (tree_insert(core(self), place, made, handle) == 0)
        return 0;
    drop_handle(self, handle);
    return no_memory();
}

/* A row that takes another one's place keeps its handle: the indexes of unchanged fields go on referring to it. */
static int replace_record(PyObject *self, Handle32 handle, PyObject *key, PyObject *value)
{
    const uint8_t *data = (const uint8_t *)PyBytes_AS_STRING(value), *key_data = (const uint8_t *)PyBytes_AS_STRING(key);
    size_t size = (size_t)PyBytes_GET_SIZE(value), key_size = (size_t)PyBytes_GET_SIZE(key);
    int is_usual = core(self)->layout ? check_row(self, key, data, size) : 0;
    if (is_usual < 0)
        return -1;
    int done = records_replace(core(self)->records, handle, key_data, is_usual ? 0 : key_size, data, size);
    return done < 0 ? no_memory() : 0;
}

static int set_value(PyObject *self, Place place, const TreeKey *made, PyObject *key, PyObject *value)
{
    Handle32 *handle = tree_leaf(core(self), place.leaf)->handles + place.entry;
    if (views_keep(core(self), made, *handle) < 0)
        return no_memory();
    if (!index_of(self)->rows)
        return replace_record(self, *handle, key, value);
    Handle32 other = reference(self, key, value);
    if (other == NO_HANDLE)
        return -1;
    drop_handle(self, *handle);
    *handle = other;
    return 0;
}

int tree_object_set(PyObject *self, PyObject *key, PyObject *value)
{
    TreeKey wanted;
    Place place = find(self, key, &wanted);
    return place.is_found ? set_value(self, place, &wanted, key, value) : tree_insert_at(self, place, &wanted, key, value);
}

int tree_object_remove(PyObject *self, PyObject *key)
{
    TreeKey wanted;
    Place place = find(self, key, &wanted);
    if (!place.is_found) {
        PyErr_SetObject(PyExc_KeyError, key);
        return -1;
    }
    Handle32 handle = tree_handle(core(self), place);
    if (views_keep(core(self), &wanted, handle) < 0)
        return no_memory();
    tree_remove(core(self), place);
    drop_handle(self, handle);
    return 0;
}

Py_ssize_t tree_object_append(PyObject *self, const uint8_t *block, const BlockRow *rows, size_t count)
{
    if (!index_holds_rows(index_of(self)))
        return 0;
    KeyBuffer key = {0};
    size_t number = 0;
    int done = BUILD_DONE;
    /* A thread may decompress the next block meanwhile. */
    Py_BEGIN_ALLOW_THREADS
    for (; number < count && done == BUILD_DONE; number += done == BUILD_DONE)
        done = build_append(core(self), block + rows[number].tuple.start, rows[number].tuple.size, &key);
    Py_END_ALLOW_THREADS
    key_buffer_free(&key);
    return done == BUILD_NO_MEMORY ? no_memory() : (Py_ssize_t)number;
}
