/* Rows of a space that are looked up by a key: the twin of box.indexed_space.IndexedSpace. */
#include "../native.h"

/* An index of a space, borrowed, that nobody wants to know reads of; NULL where Python has to see to it. */
Quick *space_index(PyObject *space, uint64_t index_id, int *is_primary)
{
    PyObject *manager = space_manager(space);
    if (!manager || MANAGER(manager, INTERACTIVE) != Py_None)
        return NULL;
    PyObject *indexes = SPACE(space, INDEXES), *index = NULL;
    if ((*is_primary = !index_id))
        index = SPACE(space, PRIMARY);
    else if (indexes && PyDict_CheckExact(indexes)) {
        PyObject *key = PyLong_FromUnsignedLongLong(index_id);
        index = key ? PyDict_GetItemWithError(indexes, key) : NULL;
        Py_XDECREF(key);
    }
    return index ? quick_of(index) : NULL;
}

/* The same; the number is an int. */
static Quick *index_of(PyObject *space, PyObject *index_id, int *is_primary)
{
    int overflow;
    long number = PyLong_CheckExact(index_id) ? PyLong_AsLongAndOverflow(index_id, &overflow) : -1;
    return number < 0 ? NULL : space_index(space, (uint64_t)number, is_primary);
}

/* The row of a primary key, a new reference. Returns 1; 0 where Python has to look; -1 with an exception. */
static int find_row(PyObject *space, PyObject *primary_key, PyObject **row)
{
    PyObject *primary = SPACE(space, PRIMARY);
    Quick *quick = primary ? quick_of(primary) : NULL;
    *row = quick ? tree_object_get(quick->tree, primary_key) : NULL;
    return PyErr_Occurred() ? -1 : quick != NULL;
}

/* The primary key and the row of an encoded whole key; as `space_locate`. */
static int locate(PyObject *space, Quick *quick, int is_primary, PyObject *encoded, PyObject **primary_key,
                  PyObject **row)
{
    int is_known = is_primary ? 0 : tree_object_get_both(quick->tree, encoded, primary_key, row);
    if (is_known)
        return is_known;
    *row = NULL;
    *primary_key = is_primary ? Py_NewRef(encoded) : tree_object_get(quick->tree, encoded);
    if (!*primary_key)
        return PyErr_Occurred() ? -1 : 1;
    is_known = find_row(space, *primary_key, row);
    if (is_known <= 0)
        Py_CLEAR(*primary_key);
    return is_known;
}

/* Encode a client's key; NULL, without an exception, where Python has to look at it. */
static PyObject *encode_key(Quick *quick, const Key *key, Py_ssize_t *count)
{
    *count = key->count;
    return key->packed ? tree_object_client_key(quick->tree, key->packed, key->end, count)
                       : client_key(quick->encode_key, key->values, key->count);
}

int request_key(Quick *quick, const Key *key, KeyBuffer *encoded, int *values)
{
    const Tree *tree = tree_object_core(quick->tree);
    if (!tree || !tree->layout || !key->packed)
        return 0;
    int done = key_of_values(tree->layout, key->packed, (size_t)(key->end - key->packed), encoded, values);
    if (done < 0)
        PyErr_NoMemory();
    return done;
}

/* The same, of a whole key of an index in which it finds one row at the most. */
static PyObject *encode_whole_key(Quick *quick, const Key *key)
{
    Py_ssize_t count, parts = client_key_parts(quick->encode_key);
    if (!quick->is_exact || (!key->packed && key->count != parts))
        return NULL;
    PyObject *encoded = encode_key(quick, key, &count);
    if (encoded && count != parts)
        Py_CLEAR(encoded);
    return encoded;
}

/* Nothing in here runs Python's code, so that indexes stay what they are, and whole keys in trees of bytes, too. */
int space_locate(PyObject *space, PyObject *index_id, const Key *key,
                 PyObject **primary_key, PyObject **row)
{
    int is_primary;
    Quick *quick = index_of(space, index_id, &is_primary);
    PyObject *encoded = quick ? encode_whole_key(quick, key) : NULL;
    if (!encoded)
        return PyErr_Occurred() ? -1 : 0;
    int is_known = locate(space, quick, is_primary, encoded, primary_key, row);
    Py_DECREF(encoded);
    return is_known;
}

PyObject *space_find(PyObject *space, PyObject *index_id, const Key *key)
{
    PyObject *primary_key, *row;
    if (space_locate(space, index_id, key, &primary_key, &row) <= 0)
        return NULL;
    Py_XDECREF(primary_key);
    return row ? row : Py_NewRef(Py_None);
}

typedef PyObject *(*Search)(PyObject *tree, PyObject *key, int *is_row);

/* The row that is found, or None; NULL where Python has to look. */
static PyObject *search(PyObject *space, PyObject *index_id, const Key *key, Search find)
{
    int is_primary, is_row = 0;
    Py_ssize_t count;
    Quick *quick = index_of(space, index_id, &is_primary);
    PyObject *encoded = quick && quick->is_ordered ? encode_key(quick, key, &count) : NULL;
    if (!encoded)
        return NULL;
    PyObject *found = find(quick->tree, encoded, &is_row), *row = found;
    Py_DECREF(encoded);
    if (!found)
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    if (is_primary || is_row)
        return found;
    int is_known = find_row(space, found, &row);
    Py_DECREF(found);
    return is_known > 0 && !row ? Py_NewRef(Py_None) : row;
}

PyObject *space_first(PyObject *space, PyObject *index_id, const Key *key)
{
    return search(space, index_id, key, tree_object_first_with);
}

PyObject *space_last(PyObject *space, PyObject *index_id, const Key *key)
{
    return search(space, index_id, key, tree_object_last_with);
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

/* A number from 0 on; -1 for anything else. An iterator may be a member of IteratorType. */
static long small(PyObject *number)
{
    int overflow;
    return PyLong_Check(number) ? PyLong_AsLongAndOverflow(number, &overflow) : -1;
}

/* The rows that an iterator finds, where they are few. */
static PyObject *select_few(PyObject *space, PyObject *index_id, long iterator, size_t offset, size_t limit, const Key *key)
{
    int is_primary;
    Py_ssize_t count;
    Quick *quick = index_of(space, index_id, &is_primary);
    PyObject *encoded = quick && quick->is_ordered ? encode_key(quick, key, &count) : NULL;
    PyObject *rows = encoded ? tree_object_select(quick->tree, (int)iterator, encoded, offset, limit) : NULL;
    Py_XDECREF(encoded);
    return rows;
}

PyObject *space_select(PyObject *space, PyObject *index_id, PyObject *iterator, PyObject *offset, PyObject *limit,
                       const Key *key)
{
    long kind = small(iterator), skipped = small(offset), wanted = small(limit);
    if (kind < 0 || kind >= TREE_ITERATORS || skipped < 0 || wanted < 1)
        return NULL;
    PyObject *row = kind == TREE_EQ && !skipped ? space_find(space, index_id, key) : NULL;
    if (row || PyErr_Occurred())
        return list_of(row);
    return select_few(space, index_id, kind, (size_t)skipped, (size_t)wanted, key);
}

/* -- methods -- */

static int prepare(PyTypeObject *type)
{
    return 0; /* the space that has the methods is known by its own ones */
}

enum { FIND, FIRST, SELECT, METHODS };
static Method methods[METHODS];

/* find(index_id, key) */
METHOD_FUNCTION(method_find)
{
    int is_known = count == 2 && !names && PyList_CheckExact(args[1]);
    ANSWER(is_known ? space_find(self, args[0], KEY_OF_LIST(args[1])) : NULL, methods[FIND]);
}

/* first(index_id, key) */
METHOD_FUNCTION(method_first)
{
    int is_known = count == 2 && !names && PyList_CheckExact(args[1]);
    ANSWER(is_known ? space_first(self, args[0], KEY_OF_LIST(args[1])) : NULL, methods[FIRST]);
}

/* select(index_id, iterator, offset, limit, key) */
METHOD_FUNCTION(method_select)
{
    int is_known = count == 5 && !names && PyList_CheckExact(args[4]);
    ANSWER(is_known ? space_select(self, args[0], args[1], args[2], args[3], KEY_OF_LIST(args[4])) : NULL, methods[SELECT]);
}

static Method methods[METHODS] = {
    METHOD_ENTRY("find", method_find, "find($self, index_id, key, /)\n--\n\nThe row with a whole key, or None."),
    METHOD_ENTRY("first", method_first, "first($self, index_id, key, /)\n--\n\nThe first row of a key, or None."),
    METHOD_ENTRY("select", method_select, "The rows an iterator finds."),
};

MethodTable read_space_methods = {"IndexedSpace", prepare, methods, METHODS};
