/* The ordered map from byte strings to byte strings that TREE indexes are made of: the twin of box.tree.Tree.
 *
 * The entries are in leaves of up to LEAF_ROOM, and the leaves in one array, in order. That is a tree of two levels,
 * of which the upper one has a hundred and more entries below each of its own: to insert or remove one moves a part
 * of a leaf and, once in a hundred times, a part of the array. In front of the array there may be room, so that what
 * is always removed from the front moves nothing there.
 */
#include "native.h"

#define LEAF_ROOM 128
#define FIRST_ROOM 8 /* of the only leaf of a small tree */

typedef struct {
    int count, room;
    PyObject **values;
    PyObject *keys[]; /* as many as there is room for, and so many values behind them */
} Leaf;

/* A place: where an entry is, or where it would be. */
typedef struct {
    Py_ssize_t leaf;
    int entry, is_found;
} Place;

typedef struct {
    PyObject_HEAD
    Leaf **leaves;
    Py_ssize_t start, count, room; /* of the array: where it begins, how many there are, how many there may be */
    Py_ssize_t size;
    Place latest; /* where a key was looked for last: a row that is changed was found before */
} Tree;

/* Eight bytes as the number whose order is theirs. */
static inline uint64_t word_at(const char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/* The order of a key and other bytes: negative, zero or positive. Keys are short, and differ in one of their first few
 * words mostly: to compare these here takes half the time of asking memcmp. */
static inline int compare(PyObject *key, const char *data, Py_ssize_t size)
{
    const char *own = PyBytes_AS_STRING(key);
    Py_ssize_t own_size = PyBytes_GET_SIZE(key), both = own_size < size ? own_size : size;
    for (; both >= 8; both -= 8, own += 8, data += 8) {
        uint64_t one = word_at(own), other = word_at(data);
        if (one != other)
            return one < other ? -1 : 1;
    }
    for (; both; both--, own++, data++)
        if (*own != *data)
            return (unsigned char)*own < (unsigned char)*data ? -1 : 1;
    return (own_size > size) - (own_size < size);
}

static inline Leaf *leaf_at(Tree *tree, Py_ssize_t number)
{
    return tree->leaves[tree->start + number];
}

/* Look at the ends of a tree, where much of what happens happens: what is newest comes behind all others, and what is
 * oldest is the first to go. Returns whether the first entry that is not below a key is found so. */
static inline int find_at_ends(Tree *tree, const char *data, Py_ssize_t size, Place *place)
{
    Leaf *first = leaf_at(tree, 0), *last = leaf_at(tree, tree->count - 1);
    int order = compare(first->keys[0], data, size);
    *place = (Place){0, 0, !order};
    if (order >= 0)
        return 1;
    order = compare(last->keys[last->count - 1], data, size);
    *place = (Place){tree->count - 1, last->count - (order >= 0), !order};
    return order <= 0;
}

/* Find the first entry that is not below a key. The place may be behind the last entry of its leaf. */
static Place find(Tree *tree, const char *data, Py_ssize_t size)
{
    Place place = {0, 0, 0};
    if (!tree->count || find_at_ends(tree, data, size, &place))
        return place;
    place.is_found = 0;
    Py_ssize_t low = 0, high = tree->count; /* the leaf is the last one that does not begin above the key */
    while (high - low > 1) {
        Py_ssize_t middle = low + (high - low) / 2;
        if (compare(leaf_at(tree, middle)->keys[0], data, size) <= 0)
            low = middle;
        else
            high = middle;
    }
    Leaf *leaf = leaf_at(tree, low);
    int first = 0, end = leaf->count;
    while (first < end) {
        int middle = (first + end) / 2;
        int order = compare(leaf->keys[middle], data, size);
        if (order < 0) {
            first = middle + 1;
        } else {
            end = middle;
            place.is_found |= !order;
        }
    }
    place.leaf = low;
    place.entry = first;
    return place;
}

/* A place behind a leaf's last entry is the beginning of the next leaf. */
static Place normal(Tree *tree, Place place)
{
    if (place.leaf < tree->count && place.entry >= leaf_at(tree, place.leaf)->count) {
        place.leaf++;
        place.entry = 0;
    }
    return place;
}

static Place find_key(Tree *tree, PyObject *key)
{
    const char *data = PyBytes_AS_STRING(key);
    Py_ssize_t size = PyBytes_GET_SIZE(key);
    Place *latest = &tree->latest;
    if (latest->leaf < tree->count && latest->entry < leaf_at(tree, latest->leaf)->count
        && !compare(leaf_at(tree, latest->leaf)->keys[latest->entry], data, size))
        latest->is_found = 1;
    else
        *latest = find(tree, data, size);
    return *latest;
}

/* Where an interval's bound is: None is the beginning for the lower one, and the end for the upper one. */
static Place bound(Tree *tree, PyObject *key, int is_upper)
{
    Place place = {is_upper ? tree->count : 0, 0, 0};
    return key == Py_None ? place : normal(tree, find_key(tree, key));
}

static Place step_back(Tree *tree, Place place)
{
    if (!place.entry)
        place.entry = leaf_at(tree, --place.leaf)->count;
    place.entry--;
    return place;
}

static int is_before(Place one, Place other)
{
    return one.leaf < other.leaf || (one.leaf == other.leaf && one.entry < other.entry);
}

/* -- leaves -- */

static Leaf *new_leaf(int room)
{
    Leaf *leaf = PyMem_Malloc(sizeof *leaf + 2 * (size_t)room * sizeof *leaf->keys);
    if (!leaf) {
        PyErr_NoMemory();
        return NULL;
    }
    leaf->count = 0;
    leaf->room = room;
    leaf->values = leaf->keys + room;
    return leaf;
}

/* Make a leaf at a number. Returns NULL with an exception. */
static Leaf *add_leaf(Tree *tree, Py_ssize_t number)
{
    if (tree->start + tree->count == tree->room) {
        Py_ssize_t room = 2 * tree->count + 4;
        Leaf **leaves = PyMem_Malloc((size_t)room * sizeof *leaves);
        if (!leaves) {
            PyErr_NoMemory();
            return NULL;
        }
        if (tree->count)
            memcpy(leaves, tree->leaves + tree->start, (size_t)tree->count * sizeof *leaves);
        PyMem_Free(tree->leaves);
        tree->leaves = leaves;
        tree->start = 0;
        tree->room = room;
    }
    Leaf *leaf = new_leaf(tree->count ? LEAF_ROOM : FIRST_ROOM);
    if (!leaf)
        return NULL;
    Leaf **at = tree->leaves + tree->start + number;
    memmove(at + 1, at, (size_t)(tree->count - number) * sizeof *at);
    *at = leaf;
    tree->count++;
    return leaf;
}

static void drop_leaf(Tree *tree, Py_ssize_t number)
{
    Leaf **at = tree->leaves + tree->start + number;
    PyMem_Free(*at);
    tree->count--;
    if (!number)
        tree->start++;
    else
        memmove(at, at + 1, (size_t)(tree->count - number) * sizeof *at);
    if (!tree->count)
        tree->start = 0;
}

/* Move entries from one leaf to the end of another. */
static void move_entries(Leaf *from, int first, Leaf *to)
{
    int moved = from->count - first;
    memcpy(to->keys + to->count, from->keys + first, (size_t)moved * sizeof *to->keys);
    memcpy(to->values + to->count, from->values + first, (size_t)moved * sizeof *to->values);
    to->count += moved;
    from->count = first;
}

/* Give the leaf at a number more room. Returns NULL with an exception. */
static Leaf *widen(Tree *tree, Py_ssize_t number)
{
    Leaf *leaf = leaf_at(tree, number), *wider = new_leaf(leaf->room * 4 < LEAF_ROOM ? leaf->room * 4 : LEAF_ROOM);
    if (wider) {
        move_entries(leaf, 0, wider);
        PyMem_Free(leaf);
        tree->leaves[tree->start + number] = wider;
    }
    return wider;
}

/* Put neighbours together that have become small. */
static void join_leaves(Tree *tree, Py_ssize_t number)
{
    for (Py_ssize_t left = number - 1; left <= number; left++) {
        if (left < 0 || left + 1 >= tree->count)
            continue;
        Leaf *one = leaf_at(tree, left), *other = leaf_at(tree, left + 1);
        if (one->count + other->count <= LEAF_ROOM / 2 && one->room == LEAF_ROOM) {
            move_entries(other, 0, one);
            drop_leaf(tree, left + 1);
            return;
        }
    }
}

/* -- changes -- */

static int insert_at(Tree *tree, Place place, PyObject *key, PyObject *value)
{
    if (!tree->count && !add_leaf(tree, 0))
        return -1;
    Leaf *leaf = leaf_at(tree, place.leaf);
    if (leaf->count == leaf->room && leaf->room < LEAF_ROOM) {
        if (!(leaf = widen(tree, place.leaf)))
            return -1;
    } else if (leaf->count == LEAF_ROOM) {
        /* Behind the last entry of all a new leaf begins: what grows at its end has full leaves. */
        int is_end = place.entry == LEAF_ROOM && place.leaf + 1 == tree->count;
        int kept = is_end ? LEAF_ROOM : LEAF_ROOM / 2;
        Leaf *next = add_leaf(tree, place.leaf + 1);
        if (!next)
            return -1;
        move_entries(leaf, kept, next);
        if (place.entry > kept || is_end) {
            leaf = next;
            place.entry -= kept;
        }
    }
    int moved = leaf->count - place.entry;
    memmove(leaf->keys + place.entry + 1, leaf->keys + place.entry, (size_t)moved * sizeof *leaf->keys);
    memmove(leaf->values + place.entry + 1, leaf->values + place.entry, (size_t)moved * sizeof *leaf->values);
    leaf->keys[place.entry] = Py_NewRef(key);
    leaf->values[place.entry] = Py_NewRef(value);
    leaf->count++;
    tree->size++;
    return 0;
}

static void remove_at(Tree *tree, Place place)
{
    Leaf *leaf = leaf_at(tree, place.leaf);
    PyObject *key = leaf->keys[place.entry], *value = leaf->values[place.entry];
    int moved = --leaf->count - place.entry;
    memmove(leaf->keys + place.entry, leaf->keys + place.entry + 1, (size_t)moved * sizeof *leaf->keys);
    memmove(leaf->values + place.entry, leaf->values + place.entry + 1, (size_t)moved * sizeof *leaf->values);
    tree->size--;
    if (!leaf->count)
        drop_leaf(tree, place.leaf);
    else if (leaf->count < LEAF_ROOM / 4)
        join_leaves(tree, place.leaf);
    Py_DECREF(key);
    Py_DECREF(value);
}

static void set_value(Tree *tree, Place place, PyObject *value)
{
    Leaf *leaf = leaf_at(tree, place.leaf);
    Py_SETREF(leaf->values[place.entry], Py_NewRef(value));
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

/* For other files: the value of a key, borrowed; NULL where there is none. */
PyObject *tree_get(PyObject *self, PyObject *key)
{
    Place place = find_key((Tree *)self, key);
    return place.is_found ? leaf_at((Tree *)self, place.leaf)->values[place.entry] : NULL;
}

/* The same of the first key that is not below a bound. */
PyObject *tree_first(PyObject *self, PyObject *low)
{
    Tree *tree = (Tree *)self;
    Place place = bound(tree, low, 0);
    return place.leaf < tree->count ? leaf_at(tree, place.leaf)->values[place.entry] : NULL;
}

static int starts_with(PyObject *key, PyObject *prefix)
{
    Py_ssize_t size = PyBytes_GET_SIZE(prefix);
    return PyBytes_GET_SIZE(key) >= size
        && !memcmp(PyBytes_AS_STRING(key), PyBytes_AS_STRING(prefix), (size_t)size);
}

/* The same of the first key that starts with a prefix. */
PyObject *tree_first_value(PyObject *self, PyObject *prefix)
{
    Tree *tree = (Tree *)self;
    Place place = bound(tree, prefix, 0);
    if (place.leaf >= tree->count)
        return NULL;
    Leaf *leaf = leaf_at(tree, place.leaf);
    return starts_with(leaf->keys[place.entry], prefix) ? leaf->values[place.entry] : NULL;
}

/* The same of the last key that starts with a prefix. */
PyObject *tree_last_value(PyObject *self, PyObject *prefix)
{
    Tree *tree = (Tree *)self;
    Py_ssize_t size = PyBytes_GET_SIZE(prefix);
    while (size && (uint8_t)PyBytes_AS_STRING(prefix)[size - 1] == 0xff)
        size--;
    Place place = bound(tree, Py_None, 1);
    if (size) {
        /* The first key above all that start so. */
        PyObject *end = PyBytes_FromStringAndSize(NULL, size); /* one of its own: single bytes are shared */
        if (!end)
            return NULL;
        memcpy(PyBytes_AS_STRING(end), PyBytes_AS_STRING(prefix), (size_t)size);
        PyBytes_AS_STRING(end)[size - 1]++;
        place = normal(tree, find_key(tree, end));
        Py_DECREF(end);
    }
    if (!place.leaf && !place.entry)
        return NULL;
    place = step_back(tree, place);
    Leaf *leaf = leaf_at(tree, place.leaf);
    return starts_with(leaf->keys[place.entry], prefix) ? leaf->values[place.entry] : NULL;
}

int tree_set(PyObject *self, PyObject *key, PyObject *value)
{
    Place place = find_key((Tree *)self, key);
    if (!place.is_found)
        return insert_at((Tree *)self, place, key, value);
    set_value((Tree *)self, place, value);
    return 0;
}

int tree_remove(PyObject *self, PyObject *key)
{
    Place place = find_key((Tree *)self, key);
    if (!place.is_found) {
        PyErr_SetObject(PyExc_KeyError, key);
        return -1;
    }
    remove_at((Tree *)self, place);
    return 0;
}

/* -- what Python sees -- */

static PyObject *method_get(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (count < 1 || count > 2) {
        PyErr_SetString(PyExc_TypeError, "get() takes a key and what to answer where there is none");
        return NULL;
    }
    PyObject *value = PyBytes_CheckExact(args[0]) ? tree_get(self, args[0]) : NULL;
    return Py_NewRef(value ? value : count > 1 ? args[1] : Py_None);
}

static PyObject *method_insert(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != 2 || check_bytes(args[0]) < 0 || check_bytes(args[1]) < 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "insert() takes a key and a value");
        return NULL;
    }
    Place place = find_key((Tree *)self, args[0]);
    if (!place.is_found && insert_at((Tree *)self, place, args[0], args[1]) < 0)
        return NULL;
    return PyLong_FromLong(!place.is_found);
}

static int tree_assign(PyObject *self, PyObject *key, PyObject *value)
{
    if (check_bytes(key) < 0 || (value && check_bytes(value) < 0))
        return -1;
    return value ? tree_set(self, key, value) : tree_remove(self, key);
}

static PyObject *entry_at(Tree *tree, Place place)
{
    Leaf *leaf = leaf_at(tree, place.leaf);
    return PyTuple_Pack(2, leaf->keys[place.entry], leaf->values[place.entry]);
}

static PyObject *method_first(PyObject *self, PyObject *low)
{
    Tree *tree = (Tree *)self;
    if (check_bytes(low) < 0)
        return NULL;
    Place place = bound(tree, low, 0);
    if (place.leaf >= tree->count)
        Py_RETURN_NONE;
    return entry_at(tree, place);
}

static PyObject *method_first_value(PyObject *self, PyObject *prefix)
{
    if (check_bytes(prefix) < 0)
        return NULL;
    PyObject *value = tree_first_value(self, prefix);
    return Py_NewRef(value ? value : Py_None);
}

static PyObject *method_last(PyObject *self, PyObject *high)
{
    Tree *tree = (Tree *)self;
    if (check_bound(high) < 0)
        return NULL;
    Place place = bound(tree, high, 1);
    if (!place.leaf && !place.entry)
        Py_RETURN_NONE;
    return entry_at(tree, step_back(tree, place));
}

/* How many entries are from one place to another. */
static Py_ssize_t distance(Tree *tree, Place low, Place high)
{
    if (!is_before(low, high))
        return 0;
    Py_ssize_t count = high.entry - low.entry;
    for (Py_ssize_t number = low.leaf; number < high.leaf; number++)
        count += leaf_at(tree, number)->count;
    return count;
}

static PyObject *method_count(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != 2 || check_bound(args[0]) < 0 || check_bound(args[1]) < 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "count() takes two bounds");
        return NULL;
    }
    Tree *tree = (Tree *)self;
    return PyLong_FromSsize_t(distance(tree, bound(tree, args[0], 0), bound(tree, args[1], 1)));
}

/* Go forward, at most to where the entries end. */
static Place step_over(Tree *tree, Place place, Py_ssize_t count)
{
    while (place.leaf < tree->count && count >= leaf_at(tree, place.leaf)->count - place.entry) {
        count -= leaf_at(tree, place.leaf)->count - place.entry;
        place.leaf++;
        place.entry = 0;
    }
    if (place.leaf < tree->count)
        place.entry += (int)count;
    return place;
}

static PyObject *list_from(Tree *tree, Place place, Py_ssize_t count, int of_keys)
{
    PyObject *list = PyList_New(count);
    if (!list)
        return NULL;
    for (Py_ssize_t number = 0; number < count; number++) {
        Leaf *leaf = leaf_at(tree, place.leaf);
        PyList_SET_ITEM(list, number, Py_NewRef((of_keys ? leaf->keys : leaf->values)[place.entry]));
        place.entry++;
        place = normal(tree, place);
    }
    return list;
}

/* range_values(low, high, offset, limit, is_descending) */
static PyObject *method_range_values(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != 5 || check_bound(args[0]) < 0 || check_bound(args[1]) < 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "range_values() takes two bounds, offset, limit and a direction");
        return NULL;
    }
    Tree *tree = (Tree *)self;
    Py_ssize_t offset = PyLong_AsSsize_t(args[2]), limit = PyLong_AsSsize_t(args[3]);
    if (PyErr_Occurred())
        return NULL;
    if (offset < 0 || limit < 0) {
        PyErr_SetString(PyExc_ValueError, "offset and limit are not negative");
        return NULL;
    }
    Place low = bound(tree, args[0], 0), high = bound(tree, args[1], 1);
    int is_descending = args[4] == Py_True;
    if (!is_descending)
        low = step_over(tree, low, offset);
    Py_ssize_t found = is_before(low, high) ? 0 : -1;
    /* No further than is asked for: behind a place there may be millions. */
    for (Place place = low; found >= 0 && place.leaf <= high.leaf; place.leaf++, place.entry = 0) {
        int end = place.leaf < high.leaf ? leaf_at(tree, place.leaf)->count : high.entry;
        found += end - place.entry;
        if (!is_descending && found >= limit)
            break;
    }
    if (found < 0)
        return PyList_New(0);
    if (!is_descending)
        return list_from(tree, low, found < limit ? found : limit, 0);
    found = found > offset ? found - offset : 0;
    if (found > limit) {
        low = step_over(tree, low, found - limit);
        found = limit;
    }
    PyObject *values = list_from(tree, low, found, 0);
    if (values && PyList_Reverse(values) < 0)
        Py_CLEAR(values);
    return values;
}

/* after(key, count): the keys and the values of the first entries behind a key */
static PyObject *method_after(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Py_ssize_t wanted = count == 2 ? PyLong_AsSsize_t(args[1]) : -1;
    if (wanted < 0 || check_bytes(args[0]) < 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "after() takes a key and a number");
        return NULL;
    }
    Tree *tree = (Tree *)self;
    Place place = find_key(tree, args[0]);
    place.entry += place.is_found;
    place = normal(tree, place);
    Py_ssize_t found = 0;
    for (Place at = place; at.leaf < tree->count && found < wanted; at.leaf++, at.entry = 0)
        found += leaf_at(tree, at.leaf)->count - at.entry;
    if (found > wanted)
        found = wanted;
    PyObject *keys = list_from(tree, place, found, 1);
    PyObject *values = keys ? list_from(tree, place, found, 0) : NULL;
    PyObject *both = values ? PyTuple_Pack(2, keys, values) : NULL;
    Py_XDECREF(keys);
    Py_XDECREF(values);
    return both;
}

static PyObject *method_clear(PyObject *self, PyObject *none)
{
    Tree *tree = (Tree *)self;
    while (tree->count) {
        Leaf *leaf = leaf_at(tree, 0);
        while (leaf->count) {
            leaf->count--;
            Py_DECREF(leaf->keys[leaf->count]);
            Py_DECREF(leaf->values[leaf->count]);
        }
        drop_leaf(tree, 0);
    }
    tree->size = 0;
    Py_RETURN_NONE;
}

/* load(keys, values): fill an empty tree with keys in strictly ascending order */
static PyObject *method_load(PyObject *self, PyObject *args)
{
    PyObject *keys, *values;
    if (!PyArg_ParseTuple(args, "O!O!:load", &PyList_Type, &keys, &PyList_Type, &values))
        return NULL;
    Tree *tree = (Tree *)self;
    Py_ssize_t count = PyList_GET_SIZE(keys);
    if (tree->size || PyList_GET_SIZE(values) != count) {
        PyErr_SetString(PyExc_ValueError, "load() takes as many keys as values, and an empty tree");
        return NULL;
    }
    for (Py_ssize_t number = 0; number < count; number++) {
        PyObject *key = PyList_GET_ITEM(keys, number), *value = PyList_GET_ITEM(values, number);
        Place end = {tree->count ? tree->count - 1 : 0, 0, 0};
        if (tree->count)
            end.entry = leaf_at(tree, end.leaf)->count;
        if (check_bytes(key) < 0 || check_bytes(value) < 0 || insert_at(tree, end, key, value) < 0)
            return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *tree_subscript(PyObject *self, PyObject *key)
{
    PyObject *value = PyBytes_CheckExact(key) ? tree_get(self, key) : NULL;
    if (!value)
        PyErr_SetObject(PyExc_KeyError, key);
    return Py_XNewRef(value);
}

static Py_ssize_t tree_length(PyObject *self)
{
    return ((Tree *)self)->size;
}

static PyObject *tree_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    if (PyTuple_GET_SIZE(args) || (kwargs && PyDict_GET_SIZE(kwargs))) {
        PyErr_SetString(PyExc_TypeError, "a tree is made empty");
        return NULL;
    }
    return type->tp_alloc(type, 0); /* all zeros: an empty tree */
}

static void tree_dealloc(PyObject *self)
{
    Py_XDECREF(method_clear(self, NULL));
    PyMem_Free(((Tree *)self)->leaves);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *method_sizeof(PyObject *self, PyObject *none)
{
    Tree *tree = (Tree *)self;
    size_t size = sizeof *tree + (size_t)tree->room * sizeof(Leaf *);
    for (Py_ssize_t number = 0; number < tree->count; number++)
        size += sizeof(Leaf) + 2 * (size_t)leaf_at(tree, number)->room * sizeof(PyObject *);
    return PyLong_FromSize_t(size);
}

#define FAST(name, function, text) {name, (PyCFunction)(void (*)(void))function, METH_FASTCALL, text}
static PyMethodDef tree_methods[] = {
    FAST("get", method_get, "The value of a key, or a default."),
    FAST("insert", method_insert, "Add an entry, unless there is one with its key."),
    {"first", method_first, METH_O, "The first entry that is not below a key."},
    {"first_value", method_first_value, METH_O, "The value of the first key that starts with a prefix."},
    {"last", method_last, METH_O, "The last entry below a key."},
    FAST("count", method_count, "How many entries an interval has."),
    FAST("range_values", method_range_values, "Values in an interval."),
    FAST("after", method_after, "Keys and values behind a key."),
    {"clear", method_clear, METH_NOARGS, "Remove every entry."},
    {"load", method_load, METH_VARARGS, "Fill an empty tree at once."},
    {"__sizeof__", method_sizeof, METH_NOARGS, "Bytes that the tree takes, without its keys and values."},
    {NULL},
};

static PyMappingMethods tree_mapping = {
    .mp_length = tree_length, .mp_subscript = tree_subscript, .mp_ass_subscript = tree_assign,
};

PyTypeObject Tree_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.box.index.sorted_map.Tree",
    .tp_doc = "The ordered map.",
    .tp_basicsize = sizeof(Tree),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = tree_new,
    .tp_dealloc = tree_dealloc,
    .tp_methods = tree_methods,
    .tp_as_mapping = &tree_mapping,
};
