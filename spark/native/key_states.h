/* What changes have made of rows, by key: a hash table without deletion. */
#ifndef FATES_H
#define FATES_H

#include "native.h"

#define AT_ONCE 64 /* keys whose places in memory are asked for together */

typedef struct {
    uint64_t hash;
    PyObject *fate; /* NULL where it was removed */
    uint64_t key;   /* the bytes themselves where they are so few, else where they begin among all keys */
    uint64_t size;
} Entry;

typedef struct {
    PyObject_HEAD
    uint64_t *slots; /* half of the hash and the number of an entry, from 1; 0 where there is none */
    size_t room;     /* how many slots, a power of 2; entries have half of it */
    Entry *entries;
    size_t used, live;
    uint8_t *keys; /* those that are longer */
    size_t keys_size, keys_room;
} Fates;

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
        memcpy(&number, at, 8); /* which is no call where the size is known */
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
    /* The last 8 bytes, some of which were among the others; or all that there are. */
    return (Key){at, size, mixed(hash ^ (place ? few(at + size - 8, 8) : few(at, size)))};
}

/* Note a fate, a reference that is taken over. Returns 0 with an exception. */
int note_fate(Fates *fates, const Key *key, PyObject *fate);
void remove_fate(Fates *fates, const Key *key);
/* Ask for the memory that will be looked at. */
void ask_for_keys(const Fates *fates, const Key *keys, size_t count);

/* folding.c */
PyObject *fates_fold(PyObject *self, PyObject *args);

#endif
