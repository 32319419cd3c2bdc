#include "engine.h"

#include "memory/budget.h"
#include "memory/slab.h"

#include <stdlib.h>
#include <string.h>

uint32_t iproto_engine_version(void)
{
    return IPROTO_ENGINE_VERSION;
}

/* -- engines -- */

int engine_check(const IprotoEngine *engine)
{
    if (!engine)
        return engine_fail_null("the engine");
    if (engine->is_failed)
        return engine_fail(IPROTO_ER_MEMORY_ISSUE, "The engine has failed: memory ran out during a rollback");
    return 0;
}

int engine_check_change(const IprotoEngine *engine)
{
    if (engine_check(engine) < 0)
        return -1;
    if (engine->is_logging)
        return engine_fail(IPROTO_ER_ACTIVE_TRANSACTION,
                           "Operation is not permitted when there is an active transaction: a commit is being logged");
    return 0;
}

int engine_check_schema(const IprotoEngine *engine, const char *what)
{
    if (engine_check_change(engine) < 0)
        return -1;
    if (engine->is_in_transaction)
        return engine_fail(IPROTO_ER_MULTISTATEMENT_TRANSACTION, "Can not perform %s in a multi-statement transaction",
                           what);
    return 0;
}

IprotoEngine *iproto_engine_open(void)
{
    IprotoEngine *engine = calloc(1, sizeof *engine);
    if (!engine)
        engine_fail_memory(sizeof *engine, "an engine");
    return engine;
}

static void free_record(Record *record)
{
    if (record)
        record_free(record);
}

/* Free the records that are kept for the transaction. */
static void forget_undo(IprotoEngine *engine)
{
    for (EngineUndo *undo = engine->undo; undo < engine->undo + engine->undo_count; undo++)
        free_record(undo->old);
    engine->undo_count = 0;
}

void iproto_engine_close(IprotoEngine *engine)
{
    if (!engine)
        return;
    forget_undo(engine);
    free(engine->undo);
    free_record(engine->removed);
    while (engine->spaces) {
        IprotoSpace *space = engine->spaces;
        engine->spaces = space->next;
        engine_free_space(space);
    }
    key_buffer_free(&engine->key);
    free(engine->row);
    free(engine);
}

int iproto_engine_set_memory(size_t limit, size_t reserve)
{
    if (reserve > limit)
        return engine_fail(IPROTO_ER_ILLEGAL_PARAMS, "Illegal parameters, the reserve is above the limit");
    budget.limit = limit;
    budget.reserve = reserve;
    return 0;
}

size_t iproto_engine_memory(void)
{
    return budget_held();
}

/* -- undoing -- */

/* Make room for one more change. */
static int reserve_undo(IprotoEngine *engine)
{
    if (engine->undo_count < engine->undo_room)
        return 0;
    size_t room = engine->undo_room ? 2 * engine->undo_room : 8;
    EngineUndo *undo = realloc(engine->undo, room * sizeof *undo);
    if (!undo)
        return engine_fail_memory(room * sizeof *undo, "a transaction");
    engine->undo = undo;
    engine->undo_room = room;
    return 0;
}

static int primary_key(IprotoSpace *space, const Record *record, TreeKey *key)
{
    KeyBuffer *made = &space->engine->key;
    Tree *primary = &engine_primary(space)->tree;
    if (key_of_row(primary->layout, record->data, record->size, made) <= 0)
        return -1;
    *key = tree_key(primary, made->data, made->size);
    return 0;
}

/* Undo the latest change. */
static int undo_latest(IprotoEngine *engine)
{
    EngineUndo *undo = engine->undo + engine->undo_count - 1;
    IprotoSpace *space = undo->space;
    Record *changed = NULL;
    TreeKey key;
    engine_keep_cursors(space);
    if (primary_key(space, undo->old ? undo->old : undo->new, &key) < 0
        || change_record(&engine_primary(space)->tree, space->changed, (int)space->index_count - 1, &key, undo->old,
                         &changed) != CHANGE_DONE) {
        engine->is_failed = 1;
        return engine_check(engine);
    }
    space->bsize += engine_tuple(undo->old).size - engine_tuple(undo->new).size;
    free_record(changed);
    engine->undo_count--;
    return 0;
}

static int undo_all(IprotoEngine *engine)
{
    while (engine->undo_count)
        if (undo_latest(engine) < 0)
            return -1;
    return 0;
}

/* -- the log -- */

/* Where the fields of a primary key are in a row: slices in the order of the parts. */
static size_t key_size(const IprotoIndex *primary, const Record *record)
{
    size_t size = 1;
    IprotoTuple row = engine_tuple(record);
    for (int part = 0; part < primary->layout.own; part++) {
        IprotoValue value;
        iproto_tuple_field(&row, primary->layout.parts[part].field_no, &value);
        size += value.slice.size;
    }
    return size + 2; /* for a longer head */
}

/* Write the primary key of a row as an array. Returns its size. */
static size_t write_key(const IprotoIndex *primary, const Record *record, uint8_t *to)
{
    size_t size = 0;
    IprotoTuple row = engine_tuple(record);
    if (primary->layout.own < 16) {
        to[size++] = (uint8_t)(0x90 + primary->layout.own);
    } else {
        memcpy(to, "\xdc\x00\x10", 3);
        size = 3;
    }
    for (int part = 0; part < primary->layout.own; part++) {
        IprotoValue value;
        iproto_tuple_field(&row, primary->layout.parts[part].field_no, &value);
        memcpy(to + size, value.slice.data, value.slice.size);
        size += value.slice.size;
    }
    return size;
}

/* Describe all changes; `keys` is room for the keys of removed rows. */
static void describe(const IprotoEngine *engine, IprotoChange *changes, uint8_t *keys)
{
    for (size_t number = 0; number < engine->undo_count; number++) {
        const EngineUndo *undo = engine->undo + number;
        IprotoChange *change = changes + number;
        *change = (IprotoChange){undo->space->id, IPROTO_REPLACE, engine_tuple(undo->new), engine_tuple(undo->old)};
        if (!undo->old) {
            change->type = IPROTO_INSERT;
        } else if (!undo->new) {
            change->type = IPROTO_DELETE;
            change->row = (IprotoTuple){keys, write_key(engine_primary(undo->space), undo->old, keys)};
            keys += change->row.size;
        }
    }
}

static int write_log(IprotoEngine *engine)
{
    if (!engine->log || !engine->undo_count)
        return 0;
    size_t size = engine->undo_count * sizeof(IprotoChange);
    for (const EngineUndo *undo = engine->undo; undo < engine->undo + engine->undo_count; undo++)
        if (!undo->new)
            size += key_size(engine_primary(undo->space), undo->old);
    IprotoChange *changes = malloc(size);
    if (!changes)
        return engine_fail_memory(size, "a commit");
    describe(engine, changes, (uint8_t *)(changes + engine->undo_count));
    engine->is_logging = 1;
    int failed = engine->log(engine->log_context, changes, engine->undo_count);
    engine->is_logging = 0;
    free(changes);
    return failed ? engine_fail(IPROTO_ER_WAL_IO, "Failed to write to disk") : 0;
}

int iproto_engine_set_log(IprotoEngine *engine, IprotoLog log, void *context)
{
    if (engine_check_change(engine) < 0)
        return -1;
    if (engine->is_in_transaction)
        return engine_fail(IPROTO_ER_ACTIVE_TRANSACTION,
                           "Operation is not permitted when there is an active transaction ");
    engine->log = log;
    engine->log_context = context;
    return 0;
}

/* -- transactions -- */

/* Log and forget the changes, or undo them. */
static int commit(IprotoEngine *engine)
{
    if (write_log(engine) < 0) {
        undo_all(engine);
        return -1;
    }
    /* The row that was removed last stays readable. */
    if (engine->undo_count && !engine->undo[engine->undo_count - 1].new) {
        EngineUndo *last = engine->undo + --engine->undo_count;
        engine->removed = last->old;
    }
    forget_undo(engine);
    return 0;
}

int iproto_engine_begin(IprotoEngine *engine)
{
    if (engine_check_change(engine) < 0)
        return -1;
    if (engine->is_in_transaction)
        return engine_fail(IPROTO_ER_ACTIVE_TRANSACTION,
                           "Operation is not permitted when there is an active transaction ");
    engine->is_in_transaction = 1;
    return 0;
}

/* Begin to end the transaction. */
static int end_transaction(IprotoEngine *engine)
{
    if (engine_check_change(engine) < 0)
        return -1;
    if (!engine->is_in_transaction)
        return engine_fail(IPROTO_ER_NO_TRANSACTION, "No active transaction");
    engine->is_in_transaction = 0;
    free_record(engine->removed);
    engine->removed = NULL;
    return 0;
}

int iproto_engine_commit(IprotoEngine *engine)
{
    return end_transaction(engine) < 0 ? -1 : commit(engine);
}

int iproto_engine_rollback(IprotoEngine *engine)
{
    return end_transaction(engine) < 0 ? -1 : undo_all(engine);
}

int iproto_engine_is_in_transaction(const IprotoEngine *engine)
{
    return engine_check(engine) < 0 ? -1 : engine->is_in_transaction;
}

/* -- changes -- */

/* Whether the memory budget allows a row. Until its transaction ends, an old row stays beside the new one. */
static int check_budget(const IprotoSpace *space, const Record *old, size_t size)
{
    size_t old_size = old && !space->engine->is_in_transaction ? old->size : 0;
    size_t entries = space->index_count - (old != NULL);
    if (budget_allows(old_size, size, entries, 0, old != NULL))
        return 0;
    return engine_fail_memory(size, "tuple");
}

static int fail_change(const IprotoSpace *space, int done, size_t size)
{
    if (done >= CHANGE_REFUSED)
        return engine_fail(IPROTO_ER_TUPLE_FOUND, "Duplicate key exists in unique index '%s' in space '%s'",
                           space->indexes[1 + done - CHANGE_REFUSED]->name, space->name);
    return engine_fail_memory(size, "tuple");
}

int engine_change(IprotoSpace *space, const TreeKey *key, const uint8_t *row, size_t size)
{
    IprotoEngine *engine = space->engine;
    Tree *primary = &engine_primary(space)->tree;
    Place place = tree_find(primary, key);
    const Record *there = place.is_found ? records_at(primary->records, tree_handle(primary, place)) : NULL;
    if (reserve_undo(engine) < 0 || (row && check_budget(space, there, size) < 0))
        return -1;
    Record *new = row ? record_new(NULL, 0, row, size) : NULL, *old = NULL;
    if (row && !new)
        return engine_fail_memory(size, "tuple");
    engine_keep_cursors(space);
    int done = change_record(primary, space->changed, (int)space->index_count - 1, key, new, &old);
    if (done != CHANGE_DONE) {
        free_record(new);
        return fail_change(space, done, size);
    }
    free_record(engine->removed);
    engine->removed = NULL;
    space->bsize += engine_tuple(new).size - engine_tuple(old).size;
    engine->undo[engine->undo_count++] = (EngineUndo){space, old, new};
    return engine->is_in_transaction ? 0 : commit(engine);
}
