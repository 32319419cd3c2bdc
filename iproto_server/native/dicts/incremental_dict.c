/* A dict that never moves all of its entries at once.
 *
 * This is linear hashing: an insertion adds one bucket at most, and takes its entries from one other bucket; removals
 * merge buckets in the same way. Segments of buckets are each as large as those before them together, and never move.
 * A bucket is written when it comes into use, not before.
 */
#include "../native.h"

/* -- buckets -- */

/* Consecutive numbers, as ids are, share pieces of memory; all other bits of a hash take part, as keys may be multiples
 * of a power of two. */
static size_t mixed(Py_hash_t hash)
{
    uint64_t product = ((uint64_t)hash / NEIGHBOURS) * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)((product ^ product >> 32) ^ (uint64_t)hash % NEIGHBOURS);
}

/* The number of the segment of a place that is not in the first one. */
static size_t segment_of(size_t place)
{
    return 8 * sizeof(unsigned long long) - (size_t)__builtin_clzll(place) - FIRST_POWER;
}

static Entry **bucket(IncrementalDictObject *self, size_t place)
{
    if (place < FIRST_BUCKETS)
        return self->few + place;
    size_t segment = segment_of(place);
    return self->segments[segment] + (place - ((size_t)FIRST_BUCKETS << (segment - 1)));
}

static size_t place_of(const IncrementalDictObject *self, size_t hash)
{
    size_t place = hash & self->mask;
    return place < self->buckets ? place : hash & self->mask >> 1;
}

/* Whether a segment after the first one begins at a place. */
static int begins_segment(size_t place)
{
    return place >= FIRST_BUCKETS && !(place & (place - 1));
}

/* Returns 0 if there is no memory. */
static int add_segment(IncrementalDictObject *self, size_t buckets)
{
    size_t segment = segment_of(buckets);
    Entry ***segments = PyMem_Realloc(self->segments, (segment + 1) * sizeof *segments);
    if (!segments)
        return 0;
    self->segments = segments;
    return (segments[segment] = PyMem_New(Entry *, buckets)) != NULL;
}

/* Add a bucket. Without memory for it there is none, and the others become longer. */
static void split_bucket(IncrementalDictObject *self)
{
    size_t place = self->buckets;
    if (begins_segment(place)) {
        if (!add_segment(self, place))
            return;
        self->mask = 2 * place - 1;
    }
    self->buckets++;
    Entry **from = bucket(self, place & self->mask >> 1), **to = bucket(self, place);
    while (*from)
        if (place_of(self, (*from)->hash) == place) {
            *to = *from;
            *from = (*from)->next;
            to = &(*to)->next;
        } else
            from = &(*from)->next;
    *to = NULL;
}

/* Merge the last bucket into the one that it came from. */
static void merge_bucket(IncrementalDictObject *self)
{
    size_t place = --self->buckets;
    Entry **end = bucket(self, place & self->mask >> 1);
    while (*end)
        end = &(*end)->next;
    *end = *bucket(self, place);
    if (begins_segment(place)) {
        PyMem_Free(self->segments[segment_of(place)]);
        self->mask >>= 1;
    }
}

/* -- entries -- */

/* Whether comparing a key runs no code of Python. */
static int is_plain(PyObject *key)
{
    return PyLong_CheckExact(key) || PyUnicode_CheckExact(key) || PyFloat_CheckExact(key);
}

/* Returns 1, 0, or -1 with an exception; -1 without one: the dict has changed. */
static int is_key(const IncrementalDictObject *self, const Entry *entry, PyObject *key, size_t hash)
{
    if (entry->key == key)
        return 1;
    if (entry->hash != hash)
        return 0;
    PyObject *other = entry->key;
    if (is_plain(key) && is_plain(other))
        return PyObject_RichCompareBool(other, key, Py_EQ);
    uint64_t version = self->version;
    Py_INCREF(other);
    int is_equal = PyObject_RichCompareBool(other, key, Py_EQ);
    Py_DECREF(other);
    return is_equal < 0 || version == self->version ? is_equal : -1;
}

/* Where the entry of a key hangs, or would hang: NULL with an exception. */
static Entry **find(IncrementalDictObject *self, PyObject *key, size_t hash)
{
    for (;;) {
        Entry **place = bucket(self, place_of(self, hash));
        int found = 0;
        while (*place && !(found = is_key(self, *place, key, hash)))
            place = &(*place)->next;
        if (found >= 0)
            return place;
        if (PyErr_Occurred())
            return NULL;
    }
}

static int hash_of(PyObject *key, size_t *hash)
{
    Py_hash_t own = PyObject_Hash(key);
    *hash = mixed(own);
    return own == -1 ? -1 : 0;
}

PyObject *incremental_dict_get(IncrementalDictObject *self, PyObject *key)
{
    size_t hash;
    if (hash_of(key, &hash) < 0 || !self->count)
        return NULL;
    Entry **place = find(self, key, hash);
    return place && *place ? (*place)->value : NULL;
}

/* As dicts do: garbage collections look only at those that may take part in a cycle. */
static void track(IncrementalDictObject *self, PyObject *object)
{
    if (PyObject_IS_GC(object) && !PyObject_GC_IsTracked((PyObject *)self))
        PyObject_GC_Track(self);
}

/* The key must be missing. */
static int insert(IncrementalDictObject *self, Entry **place, PyObject *key, PyObject *value, size_t hash)
{
    Entry *entry = PyMem_Malloc(sizeof(Entry));
    if (!entry) {
        PyErr_NoMemory();
        return -1;
    }
    *entry = (Entry){Py_NewRef(key), Py_NewRef(value), hash, *place, self->last, NULL};
    *place = entry;
    *(self->last ? &self->last->after : &self->first) = entry;
    self->last = entry;
    self->version++;
    track(self, key);
    track(self, value);
    if ((size_t)++self->count > self->buckets)
        split_bucket(self);
    return 0;
}

int incremental_dict_set(IncrementalDictObject *self, PyObject *key, PyObject *value)
{
    size_t hash;
    if (hash_of(key, &hash) < 0)
        return -1;
    Entry **place = find(self, key, hash);
    if (!place)
        return -1;
    if (!*place)
        return insert(self, place, key, value, hash);
    track(self, value);
    Py_SETREF((*place)->value, Py_NewRef(value));
    return 0;
}

/* Take an entry out of the dict: it belongs to the caller, as its key and value do. */
static Entry *take_out(IncrementalDictObject *self, Entry **place)
{
    Entry *entry = *place;
    *place = entry->next;
    *(entry->before ? &entry->before->after : &self->first) = entry->after;
    *(entry->after ? &entry->after->before : &self->last) = entry->before;
    self->version++;
    self->count--;
    for (int merges = 0; merges < MERGES && self->buckets > FIRST_BUCKETS; merges++)
        if ((size_t)self->count < self->buckets / 4)
            merge_bucket(self);
    return entry;
}

int incremental_dict_pop(IncrementalDictObject *self, PyObject *key, PyObject **value)
{
    size_t hash;
    *value = NULL;
    if (hash_of(key, &hash) < 0)
        return -1;
    if (!self->count)
        return 0;
    Entry **place = find(self, key, hash);
    if (!place || !*place)
        return place ? 0 : -1;
    Entry *entry = take_out(self, place);
    *value = entry->value;
    Py_DECREF(entry->key);
    PyMem_Free(entry);
    return 1;
}

Py_ssize_t incremental_dict_size(const IncrementalDictObject *self)
{
    return self->count;
}

static void set_empty(IncrementalDictObject *self)
{
    memset(self->few, 0, sizeof self->few);
    self->segments = NULL;
    self->buckets = FIRST_BUCKETS;
    self->mask = FIRST_BUCKETS - 1;
    self->count = 0;
    self->first = self->last = NULL;
    self->version++;
}

void incremental_dict_clear(IncrementalDictObject *self)
{
    Entry *entry = self->first, ***segments = self->segments;
    size_t last = self->mask >> FIRST_POWER ? segment_of(self->mask) : 0;
    set_empty(self);
    for (size_t segment = 1; segment <= last; segment++)
        PyMem_Free(segments[segment]);
    PyMem_Free(segments);
    while (entry) {
        Entry *after = entry->after;
        Py_DECREF(entry->key);
        Py_DECREF(entry->value);
        PyMem_Free(entry);
        entry = after;
    }
}

PyObject *incremental_dict_new(PyTypeObject *type)
{
    PyObject *self = type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    PyObject_GC_UnTrack(self);
    set_empty((IncrementalDictObject *)self);
    return self;
}
