/* The state of each key after the changes read so far. */
#ifndef SPARK_KEY_STATES_H
#define SPARK_KEY_STATES_H

#include "kernels.h"

#define PREFETCHED 64 /* keys whose memory is prefetched together */

typedef struct {
    uint64_t hash;
    PyObject *state; /* NULL: removed */
    uint64_t key;    /* the key itself, up to 8 bytes; else its offset in `keys` */
    uint32_t size;
    uint32_t is_new; /* the snapshot has no such key: an INSERT was its first change */
} Entry;

typedef struct {
    PyObject_HEAD
    uint64_t *slots; /* upper half of the hash, and the entry's number from 1; 0: empty */
    size_t room;     /* number of slots, a power of 2; there is room for half as many entries */
    Entry *entries;
    size_t used, live;
    size_t rows_size; /* of the complete rows, in bytes */
    uint8_t *keys; /* the keys longer than 8 bytes */
    size_t keys_size, keys_room;
} KeyStates;

typedef struct {
    Position at;
    size_t size;
    uint64_t hash;
} Key;

static inline uint64_t mixed(uint64_t number)
{
    number = (number ^ number >> 33) * 0xff51afd7ed558ccd;
    number = (number ^ number >> 33) * 0xc4ceb9fe1a85ec53;
    return number ^ number >> 33;
}

/* Up to 8 bytes as a number. */
static inline uint64_t few(Position at, size_t size)
{
    uint64_t number = 0;
    if (size == 8)
        memcpy(&number, at, 8); /* inlined, because the size is constant */
    else
        memcpy(&number, at, size);
    return number;
}

static inline Key key_of(Position at, size_t size)
{
    uint64_t hash = size;
    size_t place = 0;
    for (; size - place > 8; place += 8)
        hash = mixed(hash ^ few(at + place, 8));
    /* The last 8 bytes, which may overlap the previous ones; or all bytes of a short key. */
    return (Key){at, size, mixed(hash ^ (place ? few(at + size - 8, 8) : few(at, size)))};
}

/* key_table.c */
static inline Position key_at(const KeyStates *states, const Entry *entry)
{
    return entry->size <= 8 ? (Position)&entry->key : states->keys + entry->key;
}

/* The entry of a key; NULL, without an exception, if it has no state. */
Entry *find_state(const KeyStates *states, const Key *key);
/* Set a key's state; the reference is stolen. Returns NULL with an exception. */
Entry *set_state(KeyStates *states, const Key *key, PyObject *state);
/* Replace the state of an entry that has one; the reference is stolen. */
void replace_state(KeyStates *states, Entry *entry, PyObject *state);
void remove_state(KeyStates *states, Entry *entry);
/* Prefetch the slots and entries of keys. */
void prefetch_keys(const KeyStates *states, const Key *keys, size_t count);

/* log_folder.c */
PyObject *key_states_fold(PyObject *self, PyObject *args);

#endif
