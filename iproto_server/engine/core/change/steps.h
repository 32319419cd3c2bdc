/* The steps of a change, for the files of this folder. */
#ifndef IPROTO_ENGINE_STEPS_H
#define IPROTO_ENGINE_STEPS_H

#include "change.h"

static inline void change_forget(const Space *space, RowRef *row)
{
    if (row->decoded)
        space->hooks->forget(row);
}

static inline int change_fails(Change *change, Failure failure)
{
    return engine_fails(change->space->engine, failure);
}

static inline int change_hook_fails(Change *change)
{
    return change_fails(change, FAILURE_HOOK);
}

static inline const uint8_t *change_key(const Change *change)
{
    return change->key.data ? change->key.data : change->key.first;
}

/* -- change.c. Those that return an int return ENGINE_FAILED if they fail -- */

int change_check_format(Change *change);                        /* whether the new row fits the format */
int change_make_key(Change *change, RowRef *row, KeyBuffer *key); /* encode the primary key of a row */
int change_check_primary(Change *change);
int change_refuse_duplicate(Change *change, const Index *index); /* fails: the index has the key */
void change_touch_all(Change *change);                          /* the entries of all indexes may change */

/* -- statement.c -- */

/* Make a change that is known to be possible, but for what indexes, memory, the tracker and triggers say. */
int change_carry_out(Change *change);

/* Whether a transaction is still running: a trigger may have ended it. */
int change_is_running(const Engine *engine, const Transaction *transaction, uint64_t begun);

/* -- decide.c -- */

/* Let before_replace triggers decide what is stored. If that fails, their own changes are undone, too. */
int change_decide(Change *change);

#endif
