/* The change of a row: one statement of a transaction, in all indexes of its space.
 *
 * The order of a change:
 *
 *     read-only, nesting       change_check
 *     fill                     hook: a sequence's value
 *     format                   format_fits, or hook `explain`
 *     key, and the row there   change_find
 *     decide                   hook: another row, or none, in the place of the new one
 *     duplicate primary key    change_refuse_duplicate
 *     memory                   budget_allows, or hook `refuse_memory`
 *     tracker                  hook `changes`
 *     all indexes              index_change, which finds duplicate keys of secondary ones
 *     take_effect              hook: the effect of a system row
 *     after                    hook: triggers; if it fails, the statement is undone
 */
#ifndef IPROTO_ENGINE_CHANGE_H
#define IPROTO_ENGINE_CHANGE_H

#include "../transaction/transaction.h"

typedef enum { CHANGE_INSERT = 2, CHANGE_REPLACE = 3, CHANGE_UPDATE = 4, CHANGE_DELETE = 5, CHANGE_UPSERT = 9 } ChangeKind;

/* One change while it is made. `row` and `operations` are the caller's; the caller frees with change_free. */
struct Change {
    Space *space;
    ChangeKind kind;
    void *context;                      /* of the caller, for the hooks */
    RowRef row;                         /* the new row; no data for none */
    RowRef old;                         /* the row that is there */
    KeyBuffer key;                      /* the encoded primary key */
    const UpdateOperations *operations; /* NULL: those of the context, which `apply` knows */
    uint8_t *made;                      /* the row that operations have made, or NULL */
    Index *touched[SPACE_INDEXES_MAX];
    int touched_count;
    uint8_t is_whole;                   /* `row` is known to be well-formed */
    uint8_t is_made;                    /* whether anything has changed */
    size_t made_size;                   /* of `made` */
};

void change_init(Change *change, Space *space, ChangeKind kind, void *context);
void change_free(Change *change);

/* Whether rows may change now. */
int change_check(Change *change);

/* Find the row whose primary key is in `change->key`. */
int change_find(Change *change);

/* Store `change->row`: INSERT or REPLACE. */
int change_store(Change *change);

/* The same for UPDATE and DELETE of a row that was found, which is in `change->old`, with its key; and for UPSERT of
 * `change->row`. `is_made` tells whether a row was there, or has changed. */
int change_update(Change *change);
int change_delete(Change *change);
int change_upsert(Change *change);

/* Put a row in the place of another one in all indexes, without a statement: `change->old` and `change->row`. `given` is the
 * record of the new row; NULL: one is made. `*replaced` becomes the record that was there: statements that are not written
 * yet may refer to it, so that it has to come back, or to be kept as long as they are. */
int change_exchange(Change *change, Record *given, Record **replaced);

#endif
