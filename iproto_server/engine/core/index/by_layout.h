/* The change of a row in a primary index of rows and in the secondary ones that refer to it, where layouts make all keys:
 * the usual case of index_change, without memory for lists of keys. */
#ifndef IPROTO_ENGINE_BY_LAYOUT_H
#define IPROTO_ENGINE_BY_LAYOUT_H

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

/* Put a record in the place of the one with a primary key, add it if there is none, or remove that one if `record` is NULL.
 *
 * `indexes` are those whose keys may change. The record is stored itself, and `*old` becomes the one that was there, or
 * NULL. Unless it returns CHANGE_DONE, nothing has changed, the caller keeps the record, and `*old` is not set.
 */
int change_by_layout(Tree *primary, const ChangedIndex *indexes, int count, const TreeKey *key, Record *record, Record **old);

#endif
