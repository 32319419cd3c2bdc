/* What changes have made of rows, by key: the twin of spark/source/state/key_states.py's class Fates, which answers False or None
 * where Python has to do it.
 *
 * A hash table without deletion: entries stay in the order in which they came, and what was removed has no fate any
 * more; when the table grows, such entries go. Of many keys the places in memory are asked for before they are looked
 * at, so that they are waited for together.
 */
#include "fates.h"

#include "cells.h"

#define FIRST_ROOM 64
#define ROOM_MAX ((size_t)1 << 31)

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

static inline Position key_at(const Fates *fates, const Entry *entry)
{
    return entry->size <= 8 ? (Position)&entry->key : fates->keys + entry->key;
}

/* What is in a slot: entries of other keys need not be looked at. */
static inline uint64_t slot_for(uint64_t hash, size_t number)
{
    return (hash & ~(uint64_t)UINT32_MAX) | number;
}

static inline Entry *entry_of(const Fates *fates, uint64_t slot)
{
    return &fates->entries[(uint32_t)slot - 1];
}

/* The slot of a key, or the empty one where it belongs. There are slots. */
static uint64_t *slot_of(const Fates *fates, const Key *key)
{
    for (size_t place = key->hash;; place++) {
        uint64_t *slot = &fates->slots[place & (fates->room - 1)];
        if (!*slot)
            return slot;
        if ((*slot ^ key->hash) >> 32)
            continue;
        const Entry *entry = entry_of(fates, *slot);
        if (entry->size == key->size && !memcmp(key_at(fates, entry), key->at, key->size))
            return slot;
    }
}

/* NULL, without an exception, where there is no fate. */
static Entry *find(const Fates *fates, const Key *key)
{
    uint64_t slot = fates->room ? *slot_of(fates, key) : 0;
    Entry *entry = slot ? entry_of(fates, slot) : NULL;
    return entry && entry->fate ? entry : NULL;
}

/* Make room for another entry: twice as much as the entries take that are not removed. Returns 0 with an exception. */
static int grow(Fates *fates)
{
    size_t room = FIRST_ROOM;
    while (room / 4 < fates->live)
        room *= 2;
    uint64_t *slots = room <= ROOM_MAX ? PyMem_Calloc(room, sizeof *slots) : NULL;
    Entry *entries = slots ? PyMem_Malloc(room / 2 * sizeof *entries) : NULL;
    if (!entries) {
        PyMem_Free(slots);
        PyErr_NoMemory();
        return 0;
    }
    size_t used = 0, keys_size = 0;
    for (size_t number = 0; number < fates->used; number++) {
        Entry entry = fates->entries[number];
        if (!entry.fate)
            continue;
        if (entry.size > 8) {
            memmove(fates->keys + keys_size, fates->keys + entry.key, entry.size);
            entry.key = keys_size;
            keys_size += entry.size;
        }
        entries[used++] = entry;
        size_t place = entry.hash;
        while (slots[place & (room - 1)])
            place++;
        slots[place & (room - 1)] = slot_for(entry.hash, used);
    }
    PyMem_Free(fates->slots);
    PyMem_Free(fates->entries);
    fates->slots = slots;
    fates->entries = entries;
    fates->room = room;
    fates->used = used;
    fates->keys_size = keys_size;
    return 1;
}

/* Returns 0 with an exception. */
static int keep_key(Fates *fates, Entry *entry, const Key *key)
{
    entry->hash = key->hash;
    entry->size = key->size;
    if (key->size <= 8) {
        entry->key = few(key->at, key->size);
        return 1;
    }
    if (fates->keys_room - fates->keys_size < key->size) {
        size_t room = 2 * fates->keys_room + key->size;
        uint8_t *keys = PyMem_Realloc(fates->keys, room);
        if (!keys) {
            PyErr_NoMemory();
            return 0;
        }
        fates->keys = keys;
        fates->keys_room = room;
    }
    memcpy(fates->keys + fates->keys_size, key->at, key->size);
    entry->key = fates->keys_size;
    fates->keys_size += key->size;
    return 1;
}

int note_fate(Fates *fates, const Key *key, PyObject *fate)
{
    if (!fate)
        return 0;
    uint64_t *slot = fates->room ? slot_of(fates, key) : NULL;
    if (slot && *slot) {
        Entry *entry = entry_of(fates, *slot);
        fates->live += !entry->fate;
        Py_XSETREF(entry->fate, fate);
        return 1;
    }
    if (fates->used == fates->room / 2) {
        if (!grow(fates)) {
            Py_DECREF(fate);
            return 0;
        }
        slot = slot_of(fates, key);
    }
    Entry *entry = &fates->entries[fates->used];
    if (!keep_key(fates, entry, key)) {
        Py_DECREF(fate);
        return 0;
    }
    entry->fate = fate;
    *slot = slot_for(key->hash, ++fates->used);
    fates->live++;
    return 1;
}

void remove_fate(Fates *fates, const Key *key)
{
    Entry *entry = find(fates, key);
    if (!entry)
        return;
    fates->live--;
    Py_CLEAR(entry->fate);
}

/* -- of one key, as of a dictionary -- */

static PyObject *fates_subscript(PyObject *self, PyObject *object)
{
    Key key;
    if (!key_from(object, &key))
        return NULL;
    Entry *entry = find((Fates *)self, &key);
    if (!entry)
        PyErr_SetObject(PyExc_KeyError, object);
    return entry ? Py_NewRef(entry->fate) : NULL;
}

static int fates_assign(PyObject *self, PyObject *object, PyObject *fate)
{
    Key key;
    if (!fate) {
        PyErr_SetString(PyExc_TypeError, "fates are removed by pop()");
        return -1;
    }
    return key_from(object, &key) && note_fate((Fates *)self, &key, Py_NewRef(fate)) ? 0 : -1;
}

static int fates_contains(PyObject *self, PyObject *object)
{
    Key key;
    return key_from(object, &key) ? find((Fates *)self, &key) != NULL : -1;
}

static Py_ssize_t fates_length(PyObject *self)
{
    return (Py_ssize_t)((Fates *)self)->live;
}

/* get(key, otherwise) and pop(key, otherwise) */
static PyObject *get_or_pop(PyObject *self, PyObject *const *args, Py_ssize_t count, int is_removed)
{
    Key key;
    if (count < 1 || count > 2) {
        PyErr_SetString(PyExc_TypeError, "get() and pop() take a key and what there is otherwise");
        return NULL;
    }
    if (!key_from(args[0], &key))
        return NULL;
    Entry *entry = find((Fates *)self, &key);
    if (!entry)
        return Py_NewRef(count == 2 ? args[1] : Py_None);
    PyObject *fate = Py_NewRef(entry->fate);
    if (is_removed)
        remove_fate((Fates *)self, &key);
    return fate;
}

static PyObject *method_get(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    return get_or_pop(self, args, count, 0);
}

static PyObject *method_pop(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    return get_or_pop(self, args, count, 1);
}

/* -- of all keys -- */

/* items(): a list, other than a dictionary's */
static PyObject *method_items(PyObject *self, PyObject *none)
{
    Fates *fates = (Fates *)self;
    PyObject *items = PyList_New(0);
    for (size_t number = 0; items && number < fates->used; number++) {
        Entry *entry = &fates->entries[number];
        if (!entry->fate)
            continue;
        PyObject *item = Py_BuildValue("y#O", key_at(fates, entry), (Py_ssize_t)entry->size, entry->fate);
        if (!item || PyList_Append(items, item) < 0)
            Py_CLEAR(items);
        Py_XDECREF(item);
    }
    return items;
}

static PyObject *method_rows(PyObject *self, PyObject *none)
{
    Fates *fates = (Fates *)self;
    PyObject *rows = PyList_New(0);
    for (size_t number = 0; rows && number < fates->used; number++) {
        PyObject *fate = fates->entries[number].fate;
        if (fate && PyBytes_CheckExact(fate) && PyList_Append(rows, fate) < 0)
            Py_CLEAR(rows);
    }
    return rows;
}

/* -- of many keys -- */

void ask_for_keys(const Fates *fates, const Key *keys, size_t count)
{
    for (size_t number = 0; fates->room && number < count; number++)
        __builtin_prefetch(&fates->slots[keys[number].hash & (fates->room - 1)]);
    for (size_t number = 0; fates->room && number < count; number++) {
        uint64_t hash = keys[number].hash, slot = fates->slots[hash & (fates->room - 1)];
        if (slot && !((slot ^ hash) >> 32))
            __builtin_prefetch(entry_of(fates, slot));
    }
}

/* The keys of some rows; what will be looked at is asked for. */
static void take_keys(const Fates *fates, const Cells *cells, Py_ssize_t begin, Py_ssize_t end, Key keys[AT_ONCE])
{
    for (Py_ssize_t row = begin; row < end; row++)
        keys[row - begin] = key_of(cells->data + cells->start[row], (size_t)(cells->end[row] - cells->start[row]));
    ask_for_keys(fates, keys, (size_t)(end - begin));
}

static inline Py_ssize_t group_end(Py_ssize_t begin, Py_ssize_t count)
{
    return count - begin < AT_ONCE ? count : begin + AT_ONCE;
}

/* A mask of as many bytes as there are cells. Returns 0 with an exception. */
static int mask_init(Py_buffer *mask, PyObject *object, const Cells *cells)
{
    if (PyObject_GetBuffer(object, mask, PyBUF_SIMPLE) < 0)
        return 0;
    if (mask->len == cells->count)
        return 1;
    PyBuffer_Release(mask);
    PyErr_SetString(PyExc_ValueError, "a mask has a byte for each value");
    return 0;
}

/* A fate: the tuple if it is this task's, True if it is another's, None if there is none. NULL with an exception. */
static PyObject *fate_of(const Cells *tuples, const char *is_own, Py_ssize_t row)
{
    return tuples->start[row] < 0 ? Py_NewRef(Py_None) : is_own[row] ? raw_of(tuples, row) : Py_NewRef(Py_True);
}

/* Returns 0 with an exception. */
static int note_all(Fates *fates, const Cells *cells, const Cells *tuples, const char *is_own)
{
    Key keys[AT_ONCE];
    for (Py_ssize_t begin = 0, end; begin < cells->count; begin = end) {
        end = group_end(begin, cells->count);
        take_keys(fates, cells, begin, end, keys);
        for (Py_ssize_t row = begin; row < end; row++)
            if (!note_fate(fates, &keys[row - begin], fate_of(tuples, is_own, row)))
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

/* note_cells(data, key starts, key ends, tuple starts, tuple ends, mask): whether the fates of keys were noted */
static PyObject *method_note_cells(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Cells keys, tuples;
    Py_buffer mask;
    if (count != 6) {
        PyErr_SetString(PyExc_TypeError, "note_cells() takes bytes, four arrays of offsets and a mask");
        return NULL;
    }
    if (!cells_init(&keys, args[0], args[1], args[2]))
        return NULL;
    PyObject *result = NULL;
    if (cells_init(&tuples, args[0], args[3], args[4])) {
        if (mask_init(&mask, args[5], &tuples)) {
            int is_known = keys.count == tuples.count && are_known(&keys, &tuples);
            if (!is_known || note_all((Fates *)self, &keys, &tuples, mask.buf))
                result = PyBool_FromLong(is_known);
            PyBuffer_Release(&mask);
        }
        cells_free(&tuples);
    }
    cells_free(&keys);
    return result;
}

/* find_cells(data, start, end): a byte for each key, 1 where it has a fate */
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
    Key keys[AT_ONCE];
    for (Py_ssize_t begin = 0, end; is_known && found && begin < cells.count; begin = end) {
        end = group_end(begin, cells.count);
        take_keys((Fates *)self, &cells, begin, end, keys);
        for (Py_ssize_t row = begin; row < end; row++)
            PyBytes_AS_STRING(found)[row] = find((Fates *)self, &keys[row - begin]) != NULL;
    }
    cells_free(&cells);
    return found;
}

/* -- the class -- */

static PyObject *fates_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    if (PyTuple_GET_SIZE(args) || (kwargs && PyDict_GET_SIZE(kwargs))) {
        PyErr_SetString(PyExc_TypeError, "there are no fates at first");
        return NULL;
    }
    return type->tp_alloc(type, 0); /* all zeros: no slots yet */
}

static void fates_dealloc(PyObject *self)
{
    Fates *fates = (Fates *)self;
    for (size_t number = 0; number < fates->used; number++)
        Py_XDECREF(fates->entries[number].fate);
    PyMem_Free(fates->slots);
    PyMem_Free(fates->entries);
    PyMem_Free(fates->keys);
    Py_TYPE(self)->tp_free(self);
}

#define FAST(name, function, text) {name, (PyCFunction)(void (*)(void))function, METH_FASTCALL, text}
static PyMethodDef fates_methods[] = {
    FAST("get", method_get, "The fate of a key, or what there is otherwise."),
    FAST("pop", method_pop, "Remove the fate of a key."),
    {"items", method_items, METH_NOARGS, "All keys and their fates."},
    {"fold", fates_fold, METH_VARARGS, "Note what the rows of a log have made of rows."},
    {"rows", method_rows, METH_NOARGS, "The rows that are known as a whole."},
    FAST("note_cells", method_note_cells, "Note what has become of the rows of many keys."),
    FAST("find_cells", method_find_cells, "Tell which of many keys have fates."),
    {NULL},
};

static PyMappingMethods fates_mapping = {
    .mp_length = fates_length, .mp_subscript = fates_subscript, .mp_ass_subscript = fates_assign,
};

static PySequenceMethods fates_sequence = {.sq_contains = fates_contains};

PyTypeObject Fates_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "spark.source.state.key_states.Fates",
    .tp_doc = "What has become of the rows of keys.",
    .tp_basicsize = sizeof(Fates),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = fates_new,
    .tp_dealloc = fates_dealloc,
    .tp_methods = fates_methods,
    .tp_as_mapping = &fates_mapping,
    .tp_as_sequence = &fates_sequence,
};
