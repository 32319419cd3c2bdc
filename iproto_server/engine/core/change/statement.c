/* A change as a statement of a transaction: in all indexes, with its effects and triggers, or not at all. */
#include "steps.h"

#include "../memory/budget.h"

#include <stdlib.h>
#include <string.h>

enum { KEPT_KEYS = 2, KEPT_MULTIKEYS = 40 }; /* bytes of keys that an index keeps, in sizes of the row */

static int check_memory(Change *change)
{
    Space *space = change->space;
    size_t size = change->row.size, old_size = change->old.size, more = 0;
    if (budget.limit == BUDGET_UNLIMITED || !change->row.data)
        return ENGINE_OK;
    for (int number = 0; size > old_size && number < change->touched_count; number++)
        if (!index_has_layout(change->touched[number]))
            more += (change->touched[number]->is_multikey ? KEPT_MULTIKEYS : KEPT_KEYS) * size;
    size_t entries = (size_t)change->touched_count + !change->old.data;
    if (budget_allows(old_size, size, entries, more ? BUDGET_SPARE + more : 0, space->is_temporary))
        return ENGINE_OK;
    return space->hooks->refuse_memory(space, change) < 0 ? change_hook_fails(change) : ENGINE_OK;
}

/* Make room for one more statement. */
static int reserve_statement(Change *change, Transaction *transaction)
{
    if (transaction->count < transaction->room)
        return ENGINE_OK;
    size_t room = transaction->room * 2 + 6;
    Statement *all = transaction->all == transaction->few ? malloc(room * sizeof *all)
                                                          : realloc(transaction->all, room * sizeof *all);
    if (!all)
        return change_fails(change, FAILURE_MEMORY);
    if (transaction->all == transaction->few)
        memcpy(all, transaction->few, sizeof transaction->few);
    transaction->all = all;
    transaction->room = room;
    return ENGINE_OK;
}

/* Make the record of the new row; NULL for none, or without memory. */
static Record *make_record(Change *change)
{
    Index *primary = change->space->primary;
    KeyBuffer own = {0};
    int is_by_layout = index_has_layout(primary) ? key_of_row(primary->tree.layout, change->row.data, change->row.size, &own) : 0;
    key_buffer_free(&own);
    return is_by_layout < 0 ? NULL
        : index_record(is_by_layout, change_key(change), change->key.size, change->row.data, change->row.size);
}

/* Change all indexes. `*replaced` becomes the old record. */
static int change_indexes(Change *change, Record *made, Record **replaced)
{
    *replaced = NULL;
    int done = index_change(change->space->primary, change->touched, change->touched_count, change_key(change),
                            change->key.size, &change->old, &change->row, made, replaced);
    if (done == INDEX_DONE) {
        change->space->bsize += change->row.size - change->old.size;
        change->is_made = 1;
        return ENGINE_OK;
    }
    if (done >= INDEX_REFUSED)
        return change_refuse_duplicate(change, change->touched[done - INDEX_REFUSED]);
    return done == INDEX_NO_MEMORY ? change_fails(change, FAILURE_MEMORY) : change_hook_fails(change);
}

/* The same with a record that is made for the new row. */
static int change_with_record(Change *change, Record **made, Record **replaced)
{
    *made = change->row.data ? make_record(change) : NULL;
    if (change->row.data && !*made)
        return change_fails(change, FAILURE_MEMORY);
    if (change_indexes(change, *made, replaced) == ENGINE_OK)
        return ENGINE_OK;
    if (*made)
        record_free(*made);
    return ENGINE_FAILED;
}

int change_is_running(const Engine *engine, const Transaction *transaction, uint64_t begun)
{
    return engine->running == transaction && engine->begun == begun;
}

/* Let the row of a system space take effect, which may change other rows, too. */
static int take_effect(Change *change, Transaction *transaction)
{
    Space *space = change->space;
    size_t position = transaction->count - 1;
    Statement effect = {0};
    int done = space->hooks->take_effect(space, change, &effect);
    if (done < 0 && transaction_undo(space->engine, transaction, position + 1) < 0)
        space->engine->hooks->panic(space->engine->context);
    Statement *statement = transaction->all + position;
    statement->effect = effect.effect;
    statement->is_local = effect.is_local;
    if (done >= 0)
        return ENGINE_OK;
    statement->is_told = 1; /* no trigger has been notified of the change */
    if (transaction_undo_refused(space->engine, transaction, change) < 0)
        space->engine->hooks->panic(space->engine->context);
    return change_hook_fails(change);
}

/* Make a change as a statement of the running transaction. */
static int change_inside(Change *change)
{
    Space *space = change->space;
    Engine *engine = space->engine;
    Transaction *transaction = engine->running;
    uint64_t begun = engine->begun;
    Record *made, *replaced;
    if (reserve_statement(change, transaction) < 0 || change_with_record(change, &made, &replaced) < 0)
        return ENGINE_FAILED;
    space->hooks->retain(space);
    Statement *statement = transaction->all + transaction->count++;
    *statement = (Statement){space, space->primary, space->hooks->retain_primary(space), replaced, made, NULL, 0, 0};
    /* From here on the old row is the statement's: hooks may look at it, and at the new one, until they change it. */
    if (replaced)
        change->old.data = replaced->data + replaced->key_size;
    if (made)
        change->row.data = made->data + made->key_size;
    if (space->flags & SPACE_EFFECTS && take_effect(change, transaction) < 0)
        return ENGINE_FAILED;
    if (!(space->flags & SPACE_NOTIFIES))
        return ENGINE_OK;
    Savepoint savepoint;
    engine_mark(engine, &savepoint);
    engine->nesting++;
    int done = space->hooks->after(space, change);
    engine->nesting = savepoint.nesting;
    if (done >= 0)
        return ENGINE_OK;
    if (!change_is_running(engine, transaction, begun)) /* the trigger has ended it */
        return change_hook_fails(change);
    if (engine_rollback_to(engine, &savepoint) < 0 || transaction_undo_refused(engine, transaction, change) < 0)
        engine->hooks->panic(engine->context);
    return change_hook_fails(change);
}

/* The same in a transaction of its own. */
static int change_alone(Change *change)
{
    Engine *engine = change->space->engine;
    if (engine_begin(engine) < 0)
        return ENGINE_FAILED;
    if (change_inside(change) == ENGINE_OK)
        return engine->running ? engine_commit(engine) : ENGINE_OK;
    Failure failure = engine->failure;
    engine_rollback(engine);
    return engine_fails(engine, failure);
}

int change_carry_out(Change *change)
{
    Space *space = change->space;
    if (check_memory(change) < 0)
        return ENGINE_FAILED;
    if (space->engine->is_tracked && space->hooks->changes(space, change) < 0)
        return change_hook_fails(change);
    return space->engine->running ? change_inside(change) : change_alone(change);
}

int change_exchange(Change *change, Record *given, Record **replaced)
{
    Record *made;
    *replaced = NULL;
    change_touch_all(change);
    if (!change->row.data && !change->old.data)
        return ENGINE_OK;
    return given ? change_indexes(change, given, replaced) : change_with_record(change, &made, replaced);
}
