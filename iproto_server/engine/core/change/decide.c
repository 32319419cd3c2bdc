/* Triggers that decide what a change stores. */
#include "steps.h"

#include <string.h>

/* Store what has been decided. */
static int store_decided(Change *change, const uint8_t *given)
{
    KeyBuffer key = {0};
    int done = ENGINE_OK, was_insert = change->kind == CHANGE_INSERT;
    if (change->row.data) {
        if (change_check_format(change) < 0)
            return ENGINE_FAILED;
        done = change_make_key(change, &change->row, &key);
        if (done == ENGINE_OK && (key.size != change->key.size || memcmp(key.data ? key.data : key.first, change_key(change), key.size)))
            done = change_fails(change, FAILURE_PRIMARY_KEY);
        key_buffer_free(&key);
    }
    if (done < 0 || change_find(change) < 0) /* a trigger may have changed the row itself */
        return ENGINE_FAILED;
    if (was_insert && change->row.data && change->old.data) {
        if (change->row.data == given)
            return change_refuse_duplicate(change, change->space->primary);
        change->kind = CHANGE_REPLACE; /* a row of the trigger's own choice takes the old one's place */
    }
    change_touch_all(change);
    return change->row.data || change->old.data ? change_carry_out(change) : ENGINE_OK;
}

static int decide_inside(Change *change)
{
    Space *space = change->space;
    Engine *engine = space->engine;
    Savepoint savepoint;
    const Transaction *transaction = engine->running;
    uint64_t begun = engine->begun;
    const uint8_t *given = change->row.data;
    engine_mark(engine, &savepoint);
    engine->nesting++;
    int done = space->hooks->decide(space, change);
    engine->nesting = savepoint.nesting;
    if (done < 0 || !change_is_running(engine, transaction, begun))
        done = done < 0 ? change_hook_fails(change) : ENGINE_OK;
    else if (done)
        done = store_decided(change, given);
    if (done == ENGINE_OK || !change_is_running(engine, transaction, begun)) /* a trigger may have ended it */
        return done;
    Failure failure = engine->failure;
    if (engine_rollback_to(engine, &savepoint) < 0)
        return ENGINE_FAILED;
    return engine_fails(engine, failure);
}

int change_decide(Change *change)
{
    Engine *engine = change->space->engine;
    if (engine->running)
        return decide_inside(change);
    if (engine_begin(engine) < 0)
        return ENGINE_FAILED;
    if (decide_inside(change) == ENGINE_OK)
        return engine->running ? engine_commit(engine) : ENGINE_OK;
    Failure failure = engine->failure;
    engine_rollback(engine);
    return engine_fails(engine, failure);
}
