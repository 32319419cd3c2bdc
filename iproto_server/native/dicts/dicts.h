/* Dicts that grow without pauses, and those that follow transactions. */
#ifndef IPROTO_SERVER_DICTS_H
#define IPROTO_SERVER_DICTS_H

#include "../transaction/transaction.h"

/* incremental_dict.c: `_get` returns a borrowed reference; NULL, maybe without an exception, where there is no such key.
 * `_set`, and `_add` of a key that is known to be missing, return -1 with an exception; so does `_pop`, or whether the
 * key was there, and its value is a new reference. */
extern PyTypeObject IncrementalTable_Type, IncrementalDictKeys_Type;
typedef struct Entry {
    PyObject *key, *value;
    size_t hash;
    struct Entry *next;             /* in its bucket */
    struct Entry *before, *after;   /* in the order of insertion */
} Entry;

enum { FIRST_POWER = 3, FIRST_BUCKETS = 1 << FIRST_POWER, MERGES = 4, NEIGHBOURS = 64 };

typedef struct {
    PyObject_HEAD
    Entry *few[FIRST_BUCKETS]; /* the first segment */
    Entry ***segments;         /* the others, from 1; NULL where there are none */
    size_t buckets, mask;      /* mask: the least power of two that is not below `buckets`, less one */
    Py_ssize_t count;
    Entry *first, *last;
    uint64_t version; /* changes with the keys */
} IncrementalDictObject;
static inline int is_incremental_dict(PyObject *object)
{
    return PyObject_TypeCheck(object, &IncrementalTable_Type);
}
PyObject *incremental_dict_new(PyTypeObject *type);
PyObject *incremental_dict_get(IncrementalDictObject *self, PyObject *key);
int incremental_dict_set(IncrementalDictObject *self, PyObject *key, PyObject *value);
int incremental_dict_pop(IncrementalDictObject *self, PyObject *key, PyObject **value);
void incremental_dict_clear(IncrementalDictObject *self);
Py_ssize_t incremental_dict_size(const IncrementalDictObject *self);

/* dict_state.c: transactional dicts */
extern PyTypeObject DictState_Type, DictUndo_Type;
extern PyObject *absent; /* the state of a missing key, in Python `ABSENT` */
int make_absent(void);   /* -1 with an exception */
typedef struct {
    PyObject_HEAD
    PyObject *box, *manager, *values;
} DictState;
int dict_state_init(PyObject *self, PyObject *args, PyObject *named); /* box, transactions, values */
int dict_state_traverse(PyObject *self, visitproc visit, void *arg);
int dict_state_clear(PyObject *self);
/* What is stored of a key; `value` is NULL if it is missing. */
typedef struct {
    PyObject *value, *moment;
} DictEntry;
void dict_entry_free(DictEntry *entry);
PyObject *dict_entry_state(const DictEntry *entry); /* as Python code restores it: (value, moment) or `absent` */
/* Have the entry of a key restored if the running transaction is undone, if there is one. Returns -1 with an exception. */
int dict_undo_later(DictState *self, PyObject *key, const DictEntry *before);

/* two_way_dict.c */
extern PyTypeObject TwoWayDict_Type;

#endif
