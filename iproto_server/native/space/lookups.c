/* Rows of a space that are looked up by keys. */
#include "../native.h"

/* -- indexes and keys -- */

/* The index with a number, borrowed; NULL, maybe with an exception, if there is none. */
static TreeObject *find_index(const SpaceObject *space, uint64_t index_id)
{
    if (!index_id)
        return (TreeObject *)space->primary;
    PyObject *key = PyLong_FromUnsignedLongLong(index_id);
    PyObject *index = key && space->indexes ? PyDict_GetItemWithError(space->indexes, key) : NULL;
    Py_XDECREF(key);
    return (TreeObject *)index;
}

/* The same; the exception is BoxError NO_SUCH_INDEX_ID. */
static TreeObject *require_index(SpaceObject *space, uint64_t index_id)
{
    TreeObject *index = find_index(space, index_id);
    if (!index && !PyErr_Occurred()) {
        PyObject *found = PyObject_CallMethod((PyObject *)space, "index", "K", (unsigned long long)index_id);
        Py_XDECREF(found);
        if (found)
            PyErr_SetString(PyExc_RuntimeError, "an index is there and is not");
    }
    return index;
}

TreeObject *space_index(SpaceObject *space, uint64_t index_id)
{
    if (space->is_custom || space->manager->interactive != Py_None)
        return NULL;
    TreeObject *index = find_index(space, index_id);
    return index ? quick_of((PyObject *)index) : NULL;
}

PyObject *key_list(const Key *key)
{
    if (key->packed) {
        PyObject *raw = PyBytes_FromStringAndSize((const char *)key->packed, key->end - key->packed);
        PyObject *list = raw ? unpack_array(raw) : NULL;
        Py_XDECREF(raw);
        return list;
    }
    PyObject *list = PyList_New(key->count);
    for (Py_ssize_t place = 0; list && place < key->count; place++)
        PyList_SET_ITEM(list, place, Py_NewRef(key->values[place]));
    return list;
}

static int use_bytes(KeyBuffer *encoded, PyObject *bytes)
{
    if (!bytes)
        return -1;
    int failed = PyBytes_CheckExact(bytes)
        ? key_buffer_set(encoded, (const uint8_t *)PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes)) < 0 : 1;
    Py_DECREF(bytes);
    if (failed && !PyErr_Occurred())
        PyErr_NoMemory();
    return failed ? -1 : 0;
}

int request_key(TreeObject *index, const Key *key, KeyBuffer *encoded, int *values)
{
    const Tree *tree = &index->index->tree;
    if (!tree->layout || !key->packed)
        return 0;
    int done = key_of_values(tree->layout, key->packed, (size_t)(key->end - key->packed), encoded, values);
    if (done < 0)
        PyErr_NoMemory();
    return done;
}

static int has_client_key(const TreeObject *index)
{
    if (index->encode_key && Py_TYPE(index->encode_key) == &ClientKey_Type)
        return 1;
    PyErr_SetString(PyExc_TypeError, "the index encodes no keys");
    return 0;
}

PyObject *tree_unique_key(TreeObject *index, PyObject *const *values, Py_ssize_t count)
{
    if (!has_client_key(index))
        return NULL;
    if (index->index->is_unique)
        return client_key(index->encode_key, values, count, 1);
    raise_box_error("MORE_THAN_ONE_TUPLE", NULL);
    return NULL;
}

/* The encoded key of values; a whole one, or the beginning of one. */
static PyObject *encode_values(TreeObject *index, PyObject *const *values, Py_ssize_t count, int is_whole)
{
    return is_whole ? tree_unique_key(index, values, count)
        : has_client_key(index) ? client_key(index->encode_key, values, count, 0) : NULL;
}

/* The encoded key of decoded values. References of its own keep them while Python code encodes one. */
static PyObject *values_key(TreeObject *index, const Key *key, int is_whole)
{
    enum { FEW = 4 };
    PyObject *bytes;
    if (key->packed || key->count > FEW) {
        PyObject *list = key_list(key);
        bytes = list ? encode_values(index, ((PyListObject *)list)->ob_item, PyList_GET_SIZE(list), is_whole) : NULL;
        Py_XDECREF(list);
        return bytes;
    }
    PyObject *values[FEW];
    for (Py_ssize_t place = 0; place < key->count; place++)
        values[place] = Py_NewRef(key->values[place]);
    bytes = encode_values(index, values, key->count, is_whole);
    for (Py_ssize_t place = 0; place < key->count; place++)
        Py_DECREF(values[place]);
    return bytes;
}

/* Encode a key, or the beginning of one. Returns -1 with an exception. */
static int encode_key(TreeObject *index, const Key *key, KeyBuffer *encoded)
{
    int values, done = request_key(index, key, encoded, &values);
    return done ? done < 0 ? -1 : 0 : use_bytes(encoded, values_key(index, key, 0));
}

/* Encode a whole key of a unique index. */
static int encode_whole_key(TreeObject *index, const Key *key, KeyBuffer *encoded)
{
    int values, done = index->is_exact ? request_key(index, key, encoded, &values) : 0;
    if (done < 0 || (done && has_client_key(index) && values == client_key_parts(index->encode_key)))
        return done < 0 ? -1 : 0;
    return PyErr_Occurred() ? -1 : use_bytes(encoded, values_key(index, key, 1));
}

static const uint8_t *bytes_of(const KeyBuffer *key)
{
    return key->data ? key->data : key->first;
}

/* -- the tracker of an interactive transaction -- */

static int note_key(SpaceObject *space, uint64_t index_id, const KeyBuffer *key)
{
    if (space->manager->interactive == Py_None)
        return 0;
    PyObject *done = PyObject_CallMethod(space->manager->interactive, "read_key", "OKy#", space, (unsigned long long)index_id,
                                         (const char *)bytes_of(key), (Py_ssize_t)key->size);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static int note_interval(SpaceObject *space, TreeObject *index, const Key *key, PyObject *last)
{
    enum { EQ = 0 };
    if (space->manager->interactive == Py_None)
        return 0;
    PyObject *list = key_list(key);
    PyObject *done = list ? PyObject_CallMethod(space->manager->interactive, "read_interval", "OOiOO", space, index, EQ, list,
                                                last) : NULL;
    Py_XDECREF(list);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* -- rows -- */

/* The primary key of the row of an entry. Returns -1 with an exception. */
static int primary_key_of(const Index *index, Place place, KeyBuffer *key)
{
    Handle32 handle = tree_handle(&index->tree, place);
    const Record *record = tree_record(&index->tree, handle);
    const Index *rows = index->rows;
    int done;
    if (!rows || handle & TREE_PAIR)
        done = key_buffer_set(key, record->data + record->key_size, record->size - record->key_size) < 0 ? -1 : 1;
    else if (record->key_size)
        done = key_buffer_set(key, record->data, record->key_size) < 0 ? -1 : 1;
    else
        done = key_of_row(rows->tree.layout, record->data, record->size, key);
    if (done <= 0)
        PyErr_NoMemory();
    return done <= 0 ? -1 : 0;
}

int space_locate(SpaceObject *space, uint64_t index_id, const Key *key, KeyBuffer *primary_key)
{
    TreeObject *index = require_index(space, index_id);
    if (!index)
        return -1;
    KeyBuffer own = {0}, *encoded = index_id ? &own : primary_key;
    int done = encode_whole_key(index, key, encoded) < 0 || note_key(space, index_id, encoded) < 0 ? -1 : 1;
    if (done > 0 && index_id) {
        Tree *tree = &index->index->tree;
        TreeKey wanted = tree_key(tree, bytes_of(encoded), encoded->size);
        Place place = tree_find(tree, &wanted);
        done = !place.is_found ? 0 : primary_key_of(index->index, place, primary_key) < 0 ? -1 : 1;
    }
    key_buffer_free(&own);
    return done;
}

/* The row with an encoded primary key, as bytes; None if there is none. */
static PyObject *row_with(SpaceObject *space, const KeyBuffer *key)
{
    Index *primary = space->core.primary;
    TreeKey wanted = tree_key(&primary->tree, bytes_of(key), key->size);
    Place place = tree_find(&primary->tree, &wanted);
    return record_row(place.is_found ? tree_record(&primary->tree, tree_handle(&primary->tree, place)) : NULL);
}

PyObject *space_find(SpaceObject *space, uint64_t index_id, const Key *key)
{
    KeyBuffer primary_key = {0};
    int done = space_locate(space, index_id, key, &primary_key);
    PyObject *row = done < 0 ? NULL : done ? row_with(space, &primary_key) : Py_NewRef(Py_None);
    key_buffer_free(&primary_key);
    return row;
}

/* The row of a value that an index has: a row or a primary key, which is a new reference. */
static PyObject *row_of_value(SpaceObject *space, TreeObject *index, PyObject *value)
{
    if (value == Py_None || (PyObject *)index == space->primary)
        return value;
    KeyBuffer key = {0};
    PyObject *row = use_bytes(&key, value) < 0 ? NULL : row_with(space, &key);
    key_buffer_free(&key);
    return row;
}

/* The first or the last row whose key begins with an encoded one, in an index with an order. */
static PyObject *search(SpaceObject *space, TreeObject *index, const KeyBuffer *encoded,
                        PyObject *(*find)(PyObject *, PyObject *, int *))
{
    int is_row = 0;
    PyObject *prefix = PyBytes_FromStringAndSize((const char *)bytes_of(encoded), (Py_ssize_t)encoded->size);
    PyObject *found = prefix ? find((PyObject *)index, prefix, &is_row) : NULL;
    Py_XDECREF(prefix);
    if (!found)
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    return is_row ? found : row_of_value(space, index, found);
}

PyObject *space_first(SpaceObject *space, uint64_t index_id, const Key *key)
{
    TreeObject *index = require_index(space, index_id);
    KeyBuffer encoded = {0};
    PyObject *row = NULL;
    if (!index || encode_key(index, key, &encoded) < 0)
        return NULL;
    if (index->is_ordered) {
        row = search(space, index, &encoded, tree_object_first_with);
    } else {
        PyObject *value = PyObject_CallMethod((PyObject *)index, "range_first", "y#", (const char *)bytes_of(&encoded),
                                              (Py_ssize_t)encoded.size);
        row = value ? row_of_value(space, index, value) : NULL;
    }
    key_buffer_free(&encoded);
    if (row && note_interval(space, index, key, row) < 0)
        Py_CLEAR(row);
    return row;
}

PyObject *space_last(SpaceObject *space, uint64_t index_id, const Key *key)
{
    TreeObject *index = space_index(space, index_id);
    KeyBuffer encoded = {0};
    if (!index || !index->is_ordered || encode_key(index, key, &encoded) < 0)
        return NULL;
    PyObject *row = search(space, index, &encoded, tree_object_last_with);
    key_buffer_free(&encoded);
    return row;
}

static PyObject *list_of(PyObject *row)
{
    if (!row)
        return NULL;
    PyObject *list = PyList_New(row != Py_None);
    if (list && row != Py_None)
        PyList_SET_ITEM(list, 0, Py_NewRef(row));
    Py_DECREF(row);
    return list;
}

/* The rows that an iterator finds, where they are few. */
static PyObject *select_few(TreeObject *index, int iterator, size_t offset, size_t limit, const Key *key)
{
    KeyBuffer encoded = {0};
    PyObject *rows = NULL;
    if (index->is_ordered && encode_key(index, key, &encoded) == 0) {
        PyObject *prefix = PyBytes_FromStringAndSize((const char *)bytes_of(&encoded), (Py_ssize_t)encoded.size);
        rows = prefix ? tree_object_select((PyObject *)index, iterator, prefix, offset, limit) : NULL;
        Py_XDECREF(prefix);
    }
    key_buffer_free(&encoded);
    return rows;
}

PyObject *space_select(SpaceObject *space, uint64_t index_id, uint64_t iterator, uint64_t offset, uint64_t limit,
                       const Key *key)
{
    TreeObject *index = space_index(space, index_id);
    if (!index || iterator >= TREE_ITERATORS || !limit)
        return NULL;
    int values = key->packed ? -1 : (int)key->count;
    if (iterator == TREE_EQ && !offset && index->is_exact && values == client_key_parts(index->encode_key))
        return list_of(space_find(space, index_id, key));
    return select_few(index, (int)iterator, offset, limit, key);
}

/* -- rows where the engine has them -- */

static int find_one(Tree *tree, const KeyBuffer *key, PackedRow *row)
{
    TreeKey wanted = tree_key(tree, bytes_of(key), key->size);
    Place place = tree_find(tree, &wanted);
    if (!place.is_found)
        return 0;
    Handle32 handle = tree_handle(tree, place);
    const Record *record = handle & TREE_PAIR ? NULL : tree_record(tree, handle);
    if (!record)
        return TREE_ROWS_UNKNOWN;
    *row = (PackedRow){record->data + record->key_size, record->size - record->key_size};
    return 1;
}

/* Whether a key of so many values finds one row at the most. */
static int is_whole(const TreeObject *index, int values)
{
    return index->is_exact && values == client_key_parts(index->encode_key);
}

int space_find_row(TreeObject *index, const Key *key, PackedRow *row)
{
    KeyBuffer encoded;
    encoded.data = NULL;
    encoded.size = 0;
    int values, found = TREE_ROWS_UNKNOWN;
    if (request_key(index, key, &encoded, &values) > 0 && is_whole(index, values))
        found = find_one(&index->index->tree, &encoded, row);
    key_buffer_free(&encoded);
    return found;
}

int space_find_rows(TreeObject *index, const Key *key, uint64_t iterator, uint64_t offset, uint64_t limit, PackedRow *rows)
{
    KeyBuffer encoded;
    encoded.data = NULL;
    encoded.size = 0;
    int values, found = TREE_ROWS_UNKNOWN;
    if (request_key(index, key, &encoded, &values) > 0) {
        Tree *tree = &index->index->tree;
        if (iterator == TREE_EQ && !offset && is_whole(index, values))
            found = find_one(tree, &encoded, rows);
        else if (index->is_ordered)
            found = tree_find_rows(tree, (int)iterator, bytes_of(&encoded), encoded.size, offset, limit, rows);
    }
    key_buffer_free(&encoded);
    return found;
}

/* -- methods -- */

static int read_arguments(PyObject *space, PyObject *const *args, Py_ssize_t count, uint64_t *index_id, Key *key)
{
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "an index's number and a key are needed");
        return -1;
    }
    return space_read_index(space, args[0], index_id) < 0 ? -1 : space_read_key(args[1], key);
}

/* find(index_id, key) */
PyObject *space_method_find(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    uint64_t index_id;
    Key key;
    return read_arguments(self, args, count, &index_id, &key) < 0 ? NULL : space_find((SpaceObject *)self, index_id, &key);
}

/* first(index_id, key) */
PyObject *space_method_first(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    uint64_t index_id;
    Key key;
    return read_arguments(self, args, count, &index_id, &key) < 0 ? NULL : space_first((SpaceObject *)self, index_id, &key);
}
