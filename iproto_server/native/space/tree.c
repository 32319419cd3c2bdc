/* Tree, the binding of the engine's index (engine/core/index/index.h), and the base class of box.index.index.Index.
 *
 * The values of a primary index are rows, those of a secondary one the rows' encoded primary keys. Their objects are
 * made on demand: the only copy of a row is in the records of the primary index.
 */
#include "../native.h"

static inline Index *index_of(PyObject *self)
{
    return ((TreeObject *)self)->index;
}

static inline Tree *core(PyObject *self)
{
    return &index_of(self)->tree;
}

TreeObject *quick_of(PyObject *object)
{
    if (!PyObject_TypeCheck(object, &Tree_Type))
        return NULL;
    TreeObject *tree = (TreeObject *)object;
    return tree->key_of && Py_TYPE(tree->key_of) == &RowKey_Type && tree->encode_key
        && Py_TYPE(tree->encode_key) == &ClientKey_Type ? tree : NULL;
}

static TreeKey key_from(PyObject *self, PyObject *key)
{
    return tree_key(core(self), (const uint8_t *)PyBytes_AS_STRING(key), (size_t)PyBytes_GET_SIZE(key));
}

static Place find(PyObject *self, PyObject *key, TreeKey *wanted)
{
    *wanted = key_from(self, key);
    return tree_find(core(self), wanted);
}

/* Where an interval's bound is: None is the beginning for the lower one, and the end for the upper one. */
static Place bound(PyObject *self, PyObject *key, int is_upper)
{
    if (key == Py_None)
        return is_upper ? tree_end(core(self)) : tree_begin();
    TreeKey wanted = key_from(self, key);
    return tree_lower_bound(core(self), &wanted);
}

static PyObject *bytes_of(const uint8_t *data, size_t size)
{
    return PyBytes_FromStringAndSize((const char *)data, (Py_ssize_t)size);
}

static const Record *record_at(const Index *index, Handle32 handle)
{
    const Record *record = tree_record(&index->tree, handle);
    if (!record)
        PyErr_SetString(PyExc_RuntimeError, "an index refers to a row that was removed");
    return record;
}

static PyObject *key_bytes(Index *index, Handle32 handle)
{
    size_t size;
    const uint8_t *key = record_at(index, handle) ? tree_record_key(&index->tree, handle, &size) : NULL;
    if (key)
        return bytes_of(key, size);
    return PyErr_Occurred() ? NULL : PyErr_NoMemory();
}

/* The row of a record, or the value of a pair. */
static PyObject *data_bytes(const Index *index, Handle32 handle)
{
    const Record *record = record_at(index, handle);
    return record ? bytes_of(record->data + record->key_size, record->size - record->key_size) : NULL;
}

static PyObject *value_bytes(Index *index, Handle32 handle)
{
    return index->rows && !(handle & TREE_PAIR) ? key_bytes(index->rows, handle) : data_bytes(index, handle);
}

static int check_bytes(PyObject *value)
{
    if (PyBytes_CheckExact(value))
        return 0;
    PyErr_Format(PyExc_TypeError, "a tree has bytes only, not %.100s", Py_TYPE(value)->tp_name);
    return -1;
}

static int check_bound(PyObject *key)
{
    return key == Py_None ? 0 : check_bytes(key);
}

/* -- for other files -- */

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
static int starts_with(PyObject *self, Place place, PyObject *prefix)
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
    if (tree_is_end(core(self), place) || starts_with(self, place, prefix) <= 0)
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
    return starts_with(self, place, prefix) > 0 ? entry_row(self, place, is_row) : NULL;
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

/* -- changes -- */

static int no_memory(void)
{
    PyErr_NoMemory();
    return -1;
}

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
static Handle32 new_handle(PyObject *self, PyObject *key, PyObject *value)
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

static int insert_at(PyObject *self, Place place, const TreeKey *made, PyObject *key, PyObject *value)
{
    if (views_keep(core(self), made, NO_HANDLE) < 0)
        return no_memory();
    Handle32 handle = new_handle(self, key, value);
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
    return place.is_found ? set_value(self, place, &wanted, key, value) : insert_at(self, place, &wanted, key, value);
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

Index *index_of_object(PyObject *self)
{
    return PyObject_TypeCheck(self, &Tree_Type) ? index_of(self) : NULL;
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

/* -- methods -- */

static PyObject *method_get(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (count < 1 || count > 2) {
        PyErr_SetString(PyExc_TypeError, "get() takes a key and what to answer where there is none");
        return NULL;
    }
    PyObject *value = PyBytes_CheckExact(args[0]) ? tree_object_get(self, args[0]) : NULL;
    if (value || PyErr_Occurred())
        return value;
    return Py_NewRef(count > 1 ? args[1] : Py_None);
}

static PyObject *method_insert(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != 2 || check_bytes(args[0]) < 0 || check_bytes(args[1]) < 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "insert() takes a key and a value");
        return NULL;
    }
    TreeKey wanted;
    Place place = find(self, args[0], &wanted);
    if (!place.is_found && insert_at(self, place, &wanted, args[0], args[1]) < 0)
        return NULL;
    return PyLong_FromLong(!place.is_found);
}

static int tree_assign(PyObject *self, PyObject *key, PyObject *value)
{
    if (check_bytes(key) < 0 || (value && check_bytes(value) < 0))
        return -1;
    return value ? tree_object_set(self, key, value) : tree_object_remove(self, key);
}

static PyObject *entry_at(PyObject *self, Place place)
{
    Handle32 handle = tree_handle(core(self), place);
    PyObject *key = key_bytes(index_of(self), handle), *value = key ? value_bytes(index_of(self), handle) : NULL;
    PyObject *entry = value ? PyTuple_Pack(2, key, value) : NULL;
    Py_XDECREF(key);
    Py_XDECREF(value);
    return entry;
}

static PyObject *method_first(PyObject *self, PyObject *low)
{
    if (check_bytes(low) < 0)
        return NULL;
    Place place = bound(self, low, 0);
    if (tree_is_end(core(self), place))
        Py_RETURN_NONE;
    return entry_at(self, place);
}

static PyObject *method_first_value(PyObject *self, PyObject *prefix)
{
    if (check_bytes(prefix) < 0)
        return NULL;
    Place place = bound(self, prefix, 0);
    int does_start = tree_is_end(core(self), place) ? 0 : starts_with(self, place, prefix);
    if (does_start < 0)
        return NULL;
    return does_start ? value_bytes(index_of(self), tree_handle(core(self), place)) : Py_NewRef(Py_None);
}

static PyObject *method_last(PyObject *self, PyObject *high)
{
    if (check_bound(high) < 0)
        return NULL;
    Place place = bound(self, high, 1);
    if (!place.leaf && !place.entry)
        Py_RETURN_NONE;
    return entry_at(self, tree_previous(core(self), place));
}

static PyObject *method_count(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != 2 || check_bound(args[0]) < 0 || check_bound(args[1]) < 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "count_between() takes two bounds");
        return NULL;
    }
    Place low = bound(self, args[0], 0);
    return PyLong_FromSize_t(tree_distance(core(self), low, bound(self, args[1], 1)));
}

static PyObject *list_from(PyObject *self, Place place, size_t count, PyObject *(*bytes)(Index *, Handle32))
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t number = 0; list && number < count; number++) {
        PyObject *item = bytes(index_of(self), tree_handle(core(self), place));
        if (item)
            PyList_SET_ITEM(list, (Py_ssize_t)number, item);
        else
            Py_CLEAR(list);
        place = tree_next(core(self), place);
    }
    return list;
}

/* How many entries are in an interval, at most `limit`: it may have millions. */
static size_t count_up_to(Tree *tree, Place low, Place high, size_t limit)
{
    size_t found = 0;
    for (Place place = low; tree_is_before(place, high) && found < limit; place.leaf++, place.entry = 0) {
        int end = place.leaf < high.leaf ? tree_leaf(tree, place.leaf)->count : high.entry;
        found += (size_t)(end - place.entry);
    }
    return found < limit ? found : limit;
}

static PyObject *list_between(PyObject *self, Place low, Place high, size_t offset, size_t limit, int is_descending)
{
    Tree *tree = core(self);
    if (!is_descending) {
        low = tree_advance(tree, low, offset);
        return list_from(self, low, count_up_to(tree, low, high, limit), value_bytes);
    }
    size_t found = tree_distance(tree, low, high);
    found = found > offset ? found - offset : 0;
    if (found > limit) {
        low = tree_advance(tree, low, found - limit);
        found = limit;
    }
    PyObject *values = list_from(self, low, found, value_bytes);
    if (values && PyList_Reverse(values) < 0)
        Py_CLEAR(values);
    return values;
}

/* range_values(low, high, offset, limit, is_descending) */
static PyObject *method_range_values(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != 5 || check_bound(args[0]) < 0 || check_bound(args[1]) < 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "range_values() takes two bounds, offset, limit and a direction");
        return NULL;
    }
    Py_ssize_t offset = PyLong_AsSsize_t(args[2]), limit = PyLong_AsSsize_t(args[3]);
    if (PyErr_Occurred())
        return NULL;
    if (offset < 0 || limit < 0) {
        PyErr_SetString(PyExc_ValueError, "offset and limit are not negative");
        return NULL;
    }
    Place low = bound(self, args[0], 0), high = bound(self, args[1], 1);
    return list_between(self, low, high, (size_t)offset, (size_t)limit, args[4] == Py_True);
}

/* after(key, count): the keys and the values of the first entries behind a key */
static PyObject *method_after(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Py_ssize_t limit = count == 2 ? PyLong_AsSsize_t(args[1]) : -1;
    if (limit < 0 || check_bytes(args[0]) < 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "after() takes a key and a number");
        return NULL;
    }
    Tree *tree = core(self);
    TreeKey wanted;
    Place place = find(self, args[0], &wanted);
    place.entry += place.is_found;
    place = tree_normal(tree, place);
    size_t found = count_up_to(tree, place, tree_end(tree), (size_t)limit);
    PyObject *keys = list_from(self, place, found, key_bytes);
    PyObject *values = keys ? list_from(self, place, found, value_bytes) : NULL;
    PyObject *both = values ? PyTuple_Pack(2, keys, values) : NULL;
    Py_XDECREF(keys);
    Py_XDECREF(values);
    return both;
}

static PyObject *method_clear(PyObject *self, PyObject *none)
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
        if (insert_at(self, tree_back(core(self)), &made, key, value) < 0)
            return -1;
    }
    return 0;
}

/* load(keys, values): fill an empty tree with keys in strictly ascending order */
static PyObject *method_load(PyObject *self, PyObject *args)
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
static PyObject *method_append(PyObject *self, PyObject *args)
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
static PyObject *method_build_from(PyObject *self, PyObject *primary)
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
static PyObject *method_values_size(PyObject *self, PyObject *none)
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
static PyObject *method_rows_fit(PyObject *self, PyObject *check)
{
    if (Py_TYPE(check) != &RowCheck_Type)
        Py_RETURN_FALSE;
    const RowFormat *format = row_check_format(check);
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

static PyObject *tree_subscript(PyObject *self, PyObject *key)
{
    PyObject *value = PyBytes_CheckExact(key) ? tree_object_get(self, key) : NULL;
    if (!value && !PyErr_Occurred())
        PyErr_SetObject(PyExc_KeyError, key);
    return value;
}

static Py_ssize_t tree_length(PyObject *self)
{
    return (Py_ssize_t)core(self)->size;
}

/* -- making one -- */

static int key_type(const char *name)
{
    static const char *const names[] = {
        "unsigned", "integer", "number", "double", "boolean", "string", "varbinary",
    };
    for (int type = KEY_UNSIGNED; type <= KEY_VARBINARY; type++)
        if (!strcmp(name, names[type]))
            return type;
    PyErr_Format(PyExc_ValueError, "a tree makes no keys of the type %.100s", name);
    return -1;
}

static int add_part(KeyLayout *layout, PyObject *given)
{
    unsigned int field_no;
    const char *name;
    int is_nullable, type;
    if (!PyTuple_Check(given)) {
        PyErr_SetString(PyExc_TypeError, "a part of a key is a tuple");
        return -1;
    }
    if (!PyArg_ParseTuple(given, "Isp", &field_no, &name, &is_nullable) || (type = key_type(name)) < 0)
        return -1;
    layout->parts[layout->count++] = (KeyPart){field_no, (uint8_t)type, (uint8_t)is_nullable};
    return 0;
}

/* Read (parts, own, is_rest_for_nil), of which a part is (field number, type, whether it may be nil). */
static int read_layout(KeyLayout *layout, PyObject *given)
{
    PyObject *parts;
    int own, is_rest_for_nil;
    if (!PyArg_ParseTuple(given, "O!ip", &PyTuple_Type, &parts, &own, &is_rest_for_nil))
        return -1;
    if (own < 1 || own > PyTuple_GET_SIZE(parts) || PyTuple_GET_SIZE(parts) > KEY_PARTS_MAX) {
        PyErr_SetString(PyExc_ValueError, "a key has between one and 16 parts");
        return -1;
    }
    for (Py_ssize_t place = 0; place < PyTuple_GET_SIZE(parts); place++)
        if (add_part(layout, PyTuple_GET_ITEM(parts, place)) < 0)
            return -1;
    layout->own = (uint8_t)own;
    layout->is_rest_for_nil = (uint8_t)is_rest_for_nil;
    layout->is_wide = (uint8_t)key_needs_wide_hints(layout);
    return 0;
}

/* -- keys that Python makes -- */

/* Append what Python has returned, a list of keys. Returns -1 with an exception. */
static int add_keys(PyObject *made, KeyList *keys)
{
    if (!PyList_CheckExact(made)) {
        PyErr_SetString(PyExc_TypeError, "the keys of a row are a list");
        return -1;
    }
    for (Py_ssize_t number = 0; number < PyList_GET_SIZE(made); number++) {
        PyObject *key = PyList_GET_ITEM(made, number);
        if (check_bytes(key) < 0)
            return -1;
        if (key_list_add(keys, (const uint8_t *)PyBytes_AS_STRING(key), (size_t)PyBytes_GET_SIZE(key)) < 0) {
            PyErr_NoMemory();
            return -1;
        }
    }
    return 0;
}

static PyObject *decoded_fields(RowRef *row)
{
    if (!row->decoded) {
        PyObject *raw = bytes_of(row->data, row->size);
        row->decoded = raw ? unpack_array(raw) : NULL;
        Py_XDECREF(raw);
    }
    return row->decoded;
}

static int keys_by_python(void *context, RowRef *row, const uint8_t *primary_key, size_t size, KeyList *keys)
{
    PyObject *fields = decoded_fields(row), *key = fields ? bytes_of(primary_key, primary_key ? size : 0) : NULL;
    PyObject *made = key ? PyObject_CallFunctionObjArgs(context, fields, key, NULL) : NULL;
    int done = made ? add_keys(made, keys) : -1;
    Py_XDECREF(made);
    Py_XDECREF(key);
    return done;
}

static void release_function(void *context)
{
    Py_XDECREF((PyObject *)context);
}

static const IndexHook python_keys = {keys_by_python, release_function};

void row_ref_free(RowRef *row)
{
    Py_CLEAR(row->decoded);
}

/* -- making one -- */

static PyObject *tree_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *self = type->tp_alloc(type, 0);
    if (self && !(((TreeObject *)self)->index = index_new(NULL, NULL, NULL, NULL))) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return self;
}

/* Tree(layout=None, primary=None, *, is_unique=True, is_multikey=False, is_ordered=True, keys_of=None, key_of=None,
 * encode_key=None, is_exact=True) */
static int tree_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"layout", "primary", "is_unique", "is_multikey", "is_ordered", "keys_of", "key_of",
                            "encode_key", "is_exact", NULL};
    PyObject *layout = Py_None, *primary = Py_None, *keys_of = Py_None, *key_of = Py_None, *encode_key = Py_None;
    int is_unique = 1, is_multikey = 0, is_ordered = 1, is_exact = 1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO$pppOOOp:Tree", names, &layout, &primary, &is_unique, &is_multikey,
                                     &is_ordered, &keys_of, &key_of, &encode_key, &is_exact))
        return -1;
    Index *rows = primary == Py_None ? NULL : index_of_object(primary);
    if ((layout != Py_None && !PyTuple_Check(layout))
        || (primary != Py_None && (!rows || layout == Py_None || !index_holds_rows(rows)))) {
        PyErr_SetString(PyExc_TypeError, "a tree is made with the layout of its keys, and with a tree of rows");
        return -1;
    }
    KeyLayout made = {0};
    if (layout != Py_None && read_layout(&made, layout) < 0)
        return -1;
    Index *index = index_new(layout == Py_None ? NULL : &made, rows, keys_of == Py_None ? NULL : &python_keys,
                             keys_of == Py_None ? NULL : keys_of);
    if (!index) {
        PyErr_NoMemory();
        return -1;
    }
    if (index->hook)
        Py_INCREF(keys_of);
    index->is_unique = (uint8_t)is_unique;
    index->is_multikey = (uint8_t)is_multikey;
    TreeObject *tree = (TreeObject *)self;
    index_release(tree->index);
    tree->index = index;
    tree->is_ordered = (char)is_ordered;
    tree->is_exact = (char)is_exact;
    Py_XSETREF(tree->key_of, key_of == Py_None ? NULL : Py_NewRef(key_of));
    Py_XSETREF(tree->encode_key, encode_key == Py_None ? NULL : Py_NewRef(encode_key));
    return 0;
}

static void tree_dealloc(PyObject *self)
{
    index_release(index_of(self));
    Py_XDECREF(((TreeObject *)self)->key_of);
    Py_XDECREF(((TreeObject *)self)->encode_key);
    Py_TYPE(self)->tp_free(self);
}

/* adopt(other): share the entries of an index of the same kind from now on */
static PyObject *method_adopt(PyObject *self, PyObject *other)
{
    Index *index = index_of_object(other);
    if (!index) {
        PyErr_SetString(PyExc_TypeError, "adopt() takes an index");
        return NULL;
    }
    index_retain(index);
    index_release(index_of(self));
    ((TreeObject *)self)->index = index;
    Py_RETURN_NONE;
}

static PyObject *method_shares_entries(PyObject *self, PyObject *other)
{
    return PyBool_FromLong(index_of_object(other) == index_of(self));
}

static PyObject *method_set(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != 2 || check_bytes(args[0]) < 0 || check_bytes(args[1]) < 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "set() takes a key and a value");
        return NULL;
    }
    return tree_object_set(self, args[0], args[1]) < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *method_remove(PyObject *self, PyObject *key)
{
    if (check_bytes(key) < 0)
        return NULL;
    return tree_object_remove(self, key) < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *method_sizeof(PyObject *self, PyObject *none)
{
    size_t handles = index_of(self)->own.room * sizeof(uintptr_t);
    return PyLong_FromSize_t(sizeof(TreeObject) + sizeof(Index) + tree_memory(core(self)) + handles);
}

static PyObject *get_holds_rows(PyObject *self, void *closure)
{
    return PyBool_FromLong(index_holds_rows(index_of(self)));
}

static PyGetSetDef tree_attributes[] = {
    {"holds_rows", get_holds_rows, NULL, "Whether entries of secondary indexes may refer to its rows.", NULL},
    {NULL},
};

#define FAST(name, function, text) {name, (PyCFunction)(void (*)(void))function, METH_FASTCALL, text}
static PyMethodDef tree_methods[] = {
    FAST("get", method_get, "The value of a key, or a default."),
    FAST("set", method_set, "Add or overwrite an entry."),
    {"remove", method_remove, METH_O, "Remove an entry."},
    {"adopt", method_adopt, METH_O, "Share the entries of an index of the same kind."},
    {"shares_entries", method_shares_entries, METH_O, "Whether another index has the same entries."},
    FAST("insert", method_insert, "Add an entry, unless there is one with its key."),
    {"first", method_first, METH_O, "The first entry that is not below a key."},
    {"first_value", method_first_value, METH_O, "The value of the first key that starts with a prefix."},
    {"last", method_last, METH_O, "The last entry below a key."},
    FAST("count_between", method_count, "How many entries an interval has."),
    FAST("range_values", method_range_values, "Values in an interval."),
    FAST("after", method_after, "Keys and values behind a key."),
    {"clear", method_clear, METH_NOARGS, "Remove every entry."},
    {"load", method_load, METH_VARARGS, "Fill an empty tree at once."},
    {"append", method_append, METH_VARARGS, "Add entries behind all others."},
    {"build_from", method_build_from, METH_O, "Fill an empty tree from the rows that it refers to."},
    {"rows_fit", method_rows_fit, METH_O, "Whether all rows are known to fit a format."},
    {"values_size", method_values_size, METH_NOARGS, "The bytes of all values."},
    {"bsize", method_sizeof, METH_NOARGS, "Bytes that the entries take, without the rows."},
    {"__sizeof__", method_sizeof, METH_NOARGS, "Bytes that the entries take, without the rows."},
    {NULL},
};

static PyMappingMethods tree_mapping = {
    .mp_length = tree_length, .mp_subscript = tree_subscript, .mp_ass_subscript = tree_assign,
};

PyTypeObject Tree_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native._native.Tree",
    .tp_doc = "The ordered map.",
    .tp_basicsize = sizeof(TreeObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_new = tree_new,
    .tp_init = tree_init,
    .tp_getset = tree_attributes,
    .tp_dealloc = tree_dealloc,
    .tp_methods = tree_methods,
    .tp_as_mapping = &tree_mapping,
};
