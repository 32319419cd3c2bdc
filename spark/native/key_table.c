/* The hash table of `KeyStates`.
 *
 * Entries stay in insertion order. A removed entry has no state; growing the table drops it. Lookups of many keys
 * prefetch their memory, so that cache misses overlap.
 */
#include "key_states.h"

#define FIRST_ROOM 64
#define ROOM_MAX ((size_t)1 << 31)

static inline size_t row_size(PyObject *state)
{
    return PyBytes_CheckExact(state) ? (size_t)PyBytes_GET_SIZE(state) : 0;
}

/* The value of a slot; the hash bits spare most lookups of other keys' entries. */
static inline uint64_t slot_for(uint64_t hash, size_t number)
{
    return (hash & ~(uint64_t)UINT32_MAX) | number;
}

static inline Entry *entry_of(const KeyStates *states, uint64_t slot)
{
    return &states->entries[(uint32_t)slot - 1];
}

/* The slot of a key, or the empty slot where it belongs. The table must have slots. */
static uint64_t *slot_of(const KeyStates *states, const Key *key)
{
    for (size_t place = key->hash;; place++) {
        uint64_t *slot = &states->slots[place & (states->room - 1)];
        if (!*slot)
            return slot;
        if ((*slot ^ key->hash) >> 32)
            continue;
        const Entry *entry = entry_of(states, *slot);
        if (entry->size == key->size && !memcmp(key_at(states, entry), key->at, key->size))
            return slot;
    }
}

Entry *find_state(const KeyStates *states, const Key *key)
{
    uint64_t slot = states->room ? *slot_of(states, key) : 0;
    Entry *entry = slot ? entry_of(states, slot) : NULL;
    return entry && entry->state ? entry : NULL;
}

/* Make room for another entry: twice the room of the live entries. Returns 0 with an exception. */
static int grow(KeyStates *states)
{
    size_t room = FIRST_ROOM;
    while (room / 4 < states->live)
        room *= 2;
    uint64_t *slots = room <= ROOM_MAX ? PyMem_Calloc(room, sizeof *slots) : NULL;
    Entry *entries = slots ? PyMem_Malloc(room / 2 * sizeof *entries) : NULL;
    if (!entries) {
        PyMem_Free(slots);
        PyErr_NoMemory();
        return 0;
    }
    size_t used = 0, keys_size = 0;
    for (size_t number = 0; number < states->used; number++) {
        Entry entry = states->entries[number];
        if (!entry.state)
            continue;
        if (entry.size > 8) {
            memmove(states->keys + keys_size, states->keys + entry.key, entry.size);
            entry.key = keys_size;
            keys_size += entry.size;
        }
        entries[used++] = entry;
        size_t place = entry.hash;
        while (slots[place & (room - 1)])
            place++;
        slots[place & (room - 1)] = slot_for(entry.hash, used);
    }
    PyMem_Free(states->slots);
    PyMem_Free(states->entries);
    states->slots = slots;
    states->entries = entries;
    states->room = room;
    states->used = used;
    states->keys_size = keys_size;
    return 1;
}

/* Returns 0 with an exception. */
static int keep_key(KeyStates *states, Entry *entry, const Key *key)
{
    if (key->size > UINT32_MAX) {
        PyErr_SetString(PyExc_OverflowError, "a key is too long");
        return 0;
    }
    entry->hash = key->hash;
    entry->size = (uint32_t)key->size;
    entry->is_new = 0;
    if (key->size <= 8) {
        entry->key = few(key->at, key->size);
        return 1;
    }
    if (states->keys_room - states->keys_size < key->size) {
        size_t room = 2 * states->keys_room + key->size;
        uint8_t *keys = PyMem_Realloc(states->keys, room);
        if (!keys) {
            PyErr_NoMemory();
            return 0;
        }
        states->keys = keys;
        states->keys_room = room;
    }
    memcpy(states->keys + states->keys_size, key->at, key->size);
    entry->key = states->keys_size;
    states->keys_size += key->size;
    return 1;
}

void replace_state(KeyStates *states, Entry *entry, PyObject *state)
{
    states->rows_size += row_size(state) - row_size(entry->state);
    Py_SETREF(entry->state, state);
}

Entry *set_state(KeyStates *states, const Key *key, PyObject *state)
{
    if (!state)
        return NULL;
    uint64_t *slot = states->room ? slot_of(states, key) : NULL;
    if (slot && *slot) {
        Entry *entry = entry_of(states, *slot);
        if (entry->state) {
            replace_state(states, entry, state);
        } else {
            entry->state = state;
            states->rows_size += row_size(state);
            states->live++;
        }
        return entry;
    }
    if (states->used == states->room / 2) {
        if (!grow(states)) {
            Py_DECREF(state);
            return NULL;
        }
        slot = slot_of(states, key);
    }
    Entry *entry = &states->entries[states->used];
    if (!keep_key(states, entry, key)) {
        Py_DECREF(state);
        return NULL;
    }
    entry->state = state;
    states->rows_size += row_size(state);
    *slot = slot_for(key->hash, ++states->used);
    states->live++;
    return entry;
}

void remove_state(KeyStates *states, Entry *entry)
{
    states->live--;
    states->rows_size -= row_size(entry->state);
    entry->is_new = 0;
    Py_CLEAR(entry->state);
}

void prefetch_keys(const KeyStates *states, const Key *keys, size_t count)
{
    for (size_t number = 0; states->room && number < count; number++)
        __builtin_prefetch(&states->slots[keys[number].hash & (states->room - 1)]);
    for (size_t number = 0; states->room && number < count; number++) {
        uint64_t hash = keys[number].hash, slot = states->slots[hash & (states->room - 1)];
        if (slot && !((slot ^ hash) >> 32))
            __builtin_prefetch(entry_of(states, slot));
    }
}
