#include "transaction.h"

#include <stdlib.h>
#include <string.h>

int engine_fails(Engine *engine, Failure failure)
{
    engine->failure = failure;
    return ENGINE_FAILED;
}

/* -- statements -- */

void transaction_init(Transaction *transaction)
{
    transaction->all = transaction->few;
    transaction->count = 0;
    transaction->room = sizeof transaction->few / sizeof *transaction->few;
    transaction->is_out = 0;
}

static void free_record(Record *record)
{
    if (record)
        record_free(record);
}

/* Free a statement, and its records that are not in the space. */
static void free_statement(const Engine *engine, Statement *statement, int is_out)
{
    free_record(statement->old);
    if (is_out)
        free_record(statement->made);
    if (statement->effect)
        engine->hooks->forget(engine->context, statement->effect);
    statement->space->hooks->release_primary(statement->owner);
    statement->space->hooks->release(statement->space);
}

void transaction_free(Transaction *transaction, const Engine *engine)
{
    while (transaction->count)
        free_statement(engine, transaction->all + --transaction->count, transaction->is_out);
    if (transaction->all != transaction->few)
        free(transaction->all);
    transaction_init(transaction);
}

/* -- undoing -- */

static RowRef row_of(const Record *record)
{
    return record ? (RowRef){record->data + record->key_size, record->size - record->key_size, NULL} : (RowRef){NULL, 0, NULL};
}

/* The record of a row in the primary index that has a record's key, or NULL. Returns -1 if the key cannot be made. */
static int find_like(Space *space, const Record *record, KeyBuffer *key, const Record **found)
{
    Index *primary = space->primary;
    if (record->key_size ? key_buffer_set(key, record->data, record->key_size) < 0
                         : key_of_row(primary->tree.layout, record->data, record->size, key) <= 0)
        return -1;
    const uint8_t *bytes = key->data ? key->data : key->first;
    TreeKey wanted = tree_key(&primary->tree, bytes, key->size);
    Place place = tree_find(&primary->tree, &wanted);
    *found = place.is_found ? tree_record(&primary->tree, tree_handle(&primary->tree, place)) : NULL;
    return 0;
}

/* Put a record, or none, in the place of the row with the key of `like`. `*replaced` becomes the record that was there. */
static int exchange(Engine *engine, Space *space, const Record *like, Record *record, Record **replaced)
{
    const Record *present;
    KeyBuffer key = {0};
    *replaced = NULL;
    int done = find_like(space, like, &key, &present) < 0 ? INDEX_NO_MEMORY : INDEX_DONE;
    if (done == INDEX_DONE && (present || record)) {
        Index *others[SPACE_INDEXES_MAX];
        for (int number = 0; number < space->count; number++)
            others[number] = space->others[number].index;
        RowRef old = row_of(present), made = row_of(record);
        size_t old_size = old.size, size = made.size;
        done = index_change(space->primary, others, space->count, key.data ? key.data : key.first, key.size, &old, &made,
                            record, replaced);
        space->hooks->forget(&old);
        space->hooks->forget(&made);
        if (done == INDEX_DONE)
            space->bsize += size - old_size;
    }
    key_buffer_free(&key);
    if (done == INDEX_DONE)
        return ENGINE_OK;
    return engine_fails(engine, done == INDEX_HOOK_FAILED ? FAILURE_HOOK : FAILURE_MEMORY);
}

/* Undo the last statement, step by step: if memory runs out, it can be done again. */
static int undo_last(Engine *engine, Transaction *transaction, Change *refused)
{
    Statement *statement = transaction->all + transaction->count - 1;
    Record *replaced;
    if (!statement->is_told
        && engine->hooks->undone(engine->context, statement, refused) < 0)
        return engine_fails(engine, FAILURE_HOOK);
    statement->is_told = 1;
    /* The effect of a system row came after the row, so it is undone first. */
    if (statement->effect) {
        if (engine->hooks->revert(engine->context, statement) < 0)
            return engine_fails(engine, FAILURE_HOOK);
        engine->hooks->forget(engine->context, statement->effect);
        statement->effect = NULL;
    }
    if (exchange(engine, statement->space, statement->old ? statement->old : statement->made, statement->old, &replaced) < 0)
        return ENGINE_FAILED;
    free_record(replaced);
    statement->old = NULL;
    transaction->count--;
    free_statement(engine, statement, 0);
    return ENGINE_OK;
}

static int undo(Engine *engine, Transaction *transaction, size_t position, Change *refused)
{
    int nesting = engine->nesting, done = ENGINE_OK;
    engine->hooks->undoing(engine->context, 1);
    engine->nesting = NESTING_MAX; /* triggers that are notified change nothing */
    while (done == ENGINE_OK && transaction->count > position)
        done = undo_last(engine, transaction, refused);
    engine->nesting = nesting;
    engine->hooks->undoing(engine->context, 0);
    return done;
}

int transaction_undo(Engine *engine, Transaction *transaction, size_t position)
{
    return undo(engine, transaction, position, NULL);
}

int transaction_undo_refused(Engine *engine, Transaction *transaction, Change *refused)
{
    return undo(engine, transaction, transaction->count - 1, refused);
}

/* -- suspended transactions -- */

static Record *copy_of(const Record *record)
{
    return record_new(record->data, record->key_size, record->data + record->key_size, record->size - record->key_size);
}

/* Put the old row of a statement into the space. The statement keeps a copy: others may change that row meanwhile. */
static int take_statement_out(Engine *engine, Statement *statement)
{
    Record *old = statement->old, *copy = old ? copy_of(old) : NULL, *like = old ? old : statement->made;
    if (old && !copy)
        return engine_fails(engine, FAILURE_MEMORY);
    if (like && exchange(engine, statement->space, like, old, &statement->made) < 0) {
        free_record(copy);
        return ENGINE_FAILED;
    }
    statement->old = copy;
    return ENGINE_OK;
}

int transaction_take_out(Engine *engine, Transaction *transaction)
{
    for (size_t number = transaction->count; number--;)
        if (take_statement_out(engine, transaction->all + number) < 0)
            return ENGINE_FAILED;
    transaction->is_out = 1;
    return ENGINE_OK;
}

int transaction_put_in(Engine *engine, Transaction *transaction)
{
    for (size_t number = 0; number < transaction->count; number++) {
        Statement *statement = transaction->all + number;
        Record *like = statement->made ? statement->made : statement->old, *replaced;
        if (!like)
            continue;
        if (exchange(engine, statement->space, like, statement->made, &replaced) < 0)
            return ENGINE_FAILED;
        free_record(statement->old);
        statement->old = replaced;
    }
    transaction->is_out = 0;
    return ENGINE_OK;
}

/* -- transactions -- */

int engine_begin(Engine *engine)
{
    if (engine->running)
        return engine_fails(engine, FAILURE_ACTIVE);
    if (engine->hooks->prepare(engine->context) < 0 || !(engine->running = engine->hooks->begin(engine->context)))
        return engine_fails(engine, FAILURE_HOOK);
    engine->begun++;
    return ENGINE_OK;
}

int engine_commit(Engine *engine)
{
    Transaction *transaction = engine->running;
    int is_unwritten = transaction && transaction->count ? engine->hooks->log(engine->context, transaction) : 0;
    if (is_unwritten < 0) {
        engine_rollback(engine);
        return engine_fails(engine, FAILURE_HOOK);
    }
    engine->running = NULL;
    if (engine->hooks->committed(engine->context, transaction, is_unwritten) < 0)
        return engine_fails(engine, FAILURE_HOOK);
    return ENGINE_OK;
}

void engine_rollback(Engine *engine)
{
    Transaction *transaction = engine->running;
    if (!transaction)
        return;
    if (engine->is_tracked)
        engine->hooks->tracker_rolled_back(engine->context, 0);
    if (transaction_undo(engine, transaction, 0) < 0)
        engine->hooks->panic(engine->context);
    engine->running = NULL;
    engine->hooks->rolled_back(engine->context, transaction);
}

void engine_mark(Engine *engine, Savepoint *savepoint)
{
    savepoint->position = engine->running->count;
    savepoint->nesting = engine->nesting;
    engine->hooks->mark(engine->context, savepoint);
}

int engine_rollback_to(Engine *engine, const Savepoint *savepoint)
{
    if (engine->is_tracked)
        engine->hooks->tracker_rolled_back(engine->context, savepoint->position);
    if (engine->running->count > savepoint->position
        && transaction_undo(engine, engine->running, savepoint->position) < 0)
        return ENGINE_FAILED;
    engine->hooks->trim(engine->context, savepoint);
    return ENGINE_OK;
}
