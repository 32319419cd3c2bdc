/* Rows and values that are found in a tree by the beginning of their keys. */
#include "tree_entries.h"

/* The value of a key in an index; NULL, maybe with an exception. */
static PyObject *value_of(Index *index, PyObject *key)
{
    TreeKey wanted = tree_key(&index->tree, (const uint8_t *)PyBytes_AS_STRING(key), (size_t)PyBytes_GET_SIZE(key));
    Place place = tree_find(&index->tree, &wanted);
    return place.is_found ? value_bytes(index, tree_handle(&index->tree, place)) : NULL;
}

PyObject *tree_object_get(PyObject *self, PyObject *key)
{
    return value_of(index_of(self), key);
}

/* The row of an entry, or its value where that is none. */
static PyObject *entry_row(PyObject *self, Place place, int *is_row)
{
    Handle32 handle = tree_handle(core(self), place);
    *is_row = core(self)->layout && !(handle & TREE_PAIR);
    return data_bytes(index_of(self), handle);
}

/* Whether the entry at a place starts with a prefix; -1 with an exception. */
int tree_starts_with(PyObject *self, Place place, PyObject *prefix)
{
    size_t size, own_size;
    size = (size_t)PyBytes_GET_SIZE(prefix);
    if (!size)
        return 1;
    const uint8_t *own = tree_record_key_beginning(core(self), tree_handle(core(self), place), size, &own_size);
    if (own)
        return own_size >= size && !memcmp(own, PyBytes_AS_STRING(prefix), size);
    record_at(index_of(self), tree_handle(core(self), place));
    if (!PyErr_Occurred())
        PyErr_NoMemory();
    return -1;
}

PyObject *tree_object_first_with(PyObject *self, PyObject *prefix, int *is_row)
{
    Place place = bound(self, prefix, 0);
    if (tree_is_end(core(self), place) || tree_starts_with(self, place, prefix) <= 0)
        return NULL;
    return entry_row(self, place, is_row);
}

/* The first place above all keys that start with a prefix. Returns 0 without memory. */
static int place_above(Tree *tree, const uint8_t *prefix, size_t size, Place *place)
{
    enum { SHORT = 256 };
    uint8_t few[SHORT], *end = few;
    while (size && prefix[size - 1] == 0xff)
        size--;
    *place = tree_end(tree);
    if (!size)
        return 1;
    if (size > SHORT && !(end = malloc(size)))
        return 0;
    memcpy(end, prefix, size);
    end[size - 1]++;
    TreeKey wanted = tree_key(tree, end, size);
    *place = tree_lower_bound(tree, &wanted);
    if (end != few)
        free(end);
    return 1;
}

static int is_begin(Place place)
{
    return !place.leaf && !place.entry;
}

PyObject *tree_object_last_with(PyObject *self, PyObject *prefix, int *is_row)
{
    Place place;
    const uint8_t *key = (const uint8_t *)PyBytes_AS_STRING(prefix);
    if (!place_above(core(self), key, (size_t)PyBytes_GET_SIZE(prefix), &place))
        return PyErr_NoMemory();
    if (is_begin(place))
        return NULL;
    place = tree_previous(core(self), place);
    return tree_starts_with(self, place, prefix) > 0 ? entry_row(self, place, is_row) : NULL;
}

/* Find the rows between two places. Returns how many; TREE_ROWS_UNKNOWN if one is not behind its handle, or if there are
 * more than TREE_SELECT_MAX. */
static int rows_between(const Tree *tree, Place low, Place high, int is_backward, size_t offset, size_t limit,
                        PackedRow *rows)
{
    int found = 0;
    while (limit && tree_is_before(low, high)) {
        if (is_backward)
            high = tree_previous(tree, high);
        if (offset) {
            offset--;
        } else {
            Handle32 handle = tree_handle(tree, is_backward ? high : low);
            const Record *record = handle & TREE_PAIR ? NULL : tree_record(tree, handle);
            if (!record || found == TREE_SELECT_MAX)
                return TREE_ROWS_UNKNOWN;
            rows[found++] = (PackedRow){record->data + record->key_size, record->size - record->key_size};
            limit--;
        }
        if (!is_backward)
            low = tree_next(tree, low);
    }
    return found;
}

int tree_find_rows(Tree *tree, int iterator, const uint8_t *prefix, size_t size, size_t offset, size_t limit,
                   PackedRow *rows)
{
    Place begin = tree_begin(), end = tree_end(tree), above;
    if (offset > TREE_SELECT_MAX || !tree->layout || !place_above(tree, prefix, size, &above))
        return TREE_ROWS_UNKNOWN;
    TreeKey wanted = tree_key(tree, prefix, size);
    Place from = tree_lower_bound(tree, &wanted);
    if (!size && (iterator == TREE_LT || iterator == TREE_GT))
        iterator = iterator == TREE_LT ? TREE_LE : TREE_GE; /* no key is neither below nor above any row */
    switch ((TreeIterator)iterator) {
    case TREE_EQ: return rows_between(tree, from, above, 0, offset, limit, rows);
    case TREE_REQ: return rows_between(tree, from, above, 1, offset, limit, rows);
    case TREE_LT: return rows_between(tree, begin, from, 1, offset, limit, rows);
    case TREE_LE: return rows_between(tree, begin, above, 1, offset, limit, rows);
    case TREE_ALL: case TREE_GE: return rows_between(tree, from, end, 0, offset, limit, rows);
    case TREE_GT: return rows_between(tree, above, end, 0, offset, limit, rows);
    default: return TREE_ROWS_UNKNOWN;
    }
}

PyObject *tree_object_select(PyObject *self, int iterator, PyObject *prefix, size_t offset, size_t limit)
{
    PackedRow rows[TREE_SELECT_MAX];
    const uint8_t *key = (const uint8_t *)PyBytes_AS_STRING(prefix);
    int found = tree_find_rows(core(self), iterator, key, (size_t)PyBytes_GET_SIZE(prefix), offset, limit, rows);
    PyObject *list = found < 0 ? NULL : PyList_New(found);
    for (int place = 0; list && place < found; place++) {
        PyObject *row = bytes_of(rows[place].data, rows[place].size);
        if (row)
            PyList_SET_ITEM(list, place, row);
        else
            Py_CLEAR(list);
    }
    return list;
}
