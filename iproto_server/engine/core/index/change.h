/* The change of a row in a primary index and in the secondary ones that refer to it. */
#ifndef IPROTO_ENGINE_CHANGE_H
#define IPROTO_ENGINE_CHANGE_H

#include "../tree/tree.h"

enum { CHANGE_INDEXES_MAX = 16 };

typedef struct {
    Tree *tree;    /* a tree of references to the primary index's rows */
    int is_unique; /* whether another row may not have the same key */
} ChangedIndex;

enum {
    CHANGE_NO_MEMORY = -1,
    CHANGE_UNKNOWN = 0, /* some key cannot be made from its row, there is no row to remove, or too many indexes */
    CHANGE_DONE = 1,
    CHANGE_REFUSED = 2, /* plus the place of the unique index that has the new key */
};

/* Put a row in the place of the one with a primary key, add it if there is none, or remove that one if `row` is NULL.
 *
 * `indexes` are those whose keys may change. Unless it returns CHANGE_DONE, nothing has changed.
 */
int change_row(Tree *primary, const ChangedIndex *indexes, int count, const TreeKey *key, const uint8_t *row, size_t size);

/* Find the place of a row's primary key. `key` is valid as long as `bytes`. Returns 1; 0 if the core cannot make the
 * key; -1 without memory. */
int find_row_like(Tree *primary, const uint8_t *row, size_t size, TreeKey *key, KeyBuffer *bytes, Place *at);

/* The same as `change_row` at the place that was found for the key, which is known to be the row's. */
int change_found_row(Tree *primary, const ChangedIndex *indexes, int count, const TreeKey *key, Place at,
                     const uint8_t *row, size_t size);

/* The same as `change_row` with a record, which is stored itself, and with the old one, which is not freed: `*old`
 * becomes it, or NULL.
 *
 * Unless it returns CHANGE_DONE, the caller keeps the new record, and `*old` is not set.
 */
int change_record(Tree *primary, const ChangedIndex *indexes, int count, const TreeKey *key, Record *record, Record **old);

#endif
