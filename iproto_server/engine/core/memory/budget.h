/* The memory that the engine holds, and the most that it may hold: one budget for the process, as there is one
 * allocator.
 *
 * Nothing is refused here: a change of a row asks first (`budget_allows`), before anything is changed. What is undone,
 * removed, built or read from files does not ask.
 */
#ifndef IPROTO_ENGINE_BUDGET_H
#define IPROTO_ENGINE_BUDGET_H

#include <stddef.h>
#include <stdint.h>

#define BUDGET_UNLIMITED SIZE_MAX

/* `more` for whatever may need a page of its own beside the row's. */
enum { BUDGET_SPARE = 64 * 1024 };

/* What an entry that is added to a tree may need at the most: two leaves with wide hints (tree/leaf.c). */
enum { BUDGET_ENTRY = 5216 };

typedef struct {
    size_t limit;   /* bytes; BUDGET_UNLIMITED for none */
    size_t reserve; /* the last part of it, for changes of rows that are there */
    size_t leaves;  /* bytes of leaves, by `budget_add_leaves`: a tree may be built by another thread */
    size_t tables;  /* bytes of tables of handles */
    size_t outside; /* bytes of rows and keys that are kept outside of the engine, as told by its user */
} Budget;

extern Budget budget;

static inline void budget_add_leaves(size_t size)
{
    __atomic_fetch_add(&budget.leaves, size, __ATOMIC_RELAXED);
}

static inline void budget_remove_leaves(size_t size)
{
    __atomic_fetch_sub(&budget.leaves, size, __ATOMIC_RELAXED);
}

/* Bytes of leaves and of tables of handles. */
size_t budget_indexes(void);

/* Bytes of pages, large blocks and indexes, and those outside. */
size_t budget_held(void);

/* Whether a row may be added, or take another one's place.
 *
 * A row that takes another one's place always may, unless the engine would hold more afterwards. Others may if what the
 * change needs at the most is left.
 *
 * `old_size` is 0 for no old row; `entries` is the number of entries that are added to trees; `more` is what the change
 * needs beside these, in bytes; `may_use_reserve` says whether a new row may use the reserve.
 */
int budget_allows(size_t old_size, size_t size, size_t entries, size_t more, int may_use_reserve);

#endif
