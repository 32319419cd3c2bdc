/* The change of a row in trees, for tests of trees alone. */
#ifndef ROW_CHANGES_H
#define ROW_CHANGES_H

#include "index/by_layout.h"
#include "random_rows.h"

/* Put a row in the place of the one with a primary key, or remove that one if `row` is NULL. */
static inline int change_row(Tree *primary, const ChangedIndex *indexes, int count, const TreeKey *key, const uint8_t *row,
                             size_t size)
{
    Record *record = row ? record_new(NULL, 0, row, size) : NULL, *old = NULL;
    if (row && !record)
        return CHANGE_NO_MEMORY;
    int done = change_by_layout(primary, indexes, count, key, record, &old);
    if (done != CHANGE_DONE)
        old = record;
    if (old)
        record_free(old);
    return done;
}

#endif
