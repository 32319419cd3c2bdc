#include "../memory/budget.h"
#include "../space/space.h"

#include <stdlib.h>
#include <string.h>

/* -- a change as it is made -- */

void change_init(Change *change, Space *space, ChangeKind kind, void *context)
{
    change->space = space;
    change->kind = kind;
    change->context = context;
    change->row = change->old = (RowRef){NULL, 0, NULL};
    change->key.data = NULL;
    change->key.size = 0;
    change->operations = NULL;
    change->made = NULL;
    change->touched_count = 0;
    change->is_whole = 1;
    change->is_made = 0;
    change->made_size = 0;
}

static void forget(const Space *space, RowRef *row)
{
    if (row->decoded)
        space->hooks->forget(row);
}

void change_free(Change *change)
{
    forget(change->space, &change->row);
    forget(change->space, &change->old);
    key_buffer_free(&change->key);
    free(change->made);
}

static int fails(Change *change, Failure failure)
{
    return engine_fails(change->space->engine, failure);
}

static int hook_fails(Change *change)
{
    return fails(change, FAILURE_HOOK);
}

static const uint8_t *key_of(const Change *change)
{
    return change->key.data ? change->key.data : change->key.first;
}

/* -- checks -- */

int change_check(Change *change)
{
    const Space *space = change->space;
    const Engine *engine = space->engine;
    if (engine->is_read_only && !space->is_temporary && !space->is_local)
        return fails(change, FAILURE_READ_ONLY);
    return engine->nesting >= NESTING_MAX ? fails(change, FAILURE_NESTING) : ENGINE_OK;
}

/* Whether the new row fits the format. */
static int check_format(Change *change)
{
    Space *space = change->space;
    if (space->is_checked && format_fits(&space->format, change->row.data, change->row.size, change->is_whole))
        return ENGINE_OK;
    return space->hooks->explain(space, change) < 0 ? hook_fails(change) : ENGINE_OK;
}

/* Encode the primary key of a row. */
static int make_key(Change *change, RowRef *row, KeyBuffer *key)
{
    const Index *primary = change->space->primary;
    int done = index_has_layout(primary) ? key_of_row(primary->tree.layout, row->data, row->size, key) : 0;
    if (done)
        return done > 0 ? ENGINE_OK : fails(change, FAILURE_MEMORY);
    KeyList keys = {0};
    done = primary->hook->keys_of(primary->context, row, NULL, 0, &keys);
    if (done < 0)
        done = hook_fails(change);
    else if (key_buffer_set(key, key_list_at(&keys, 0), keys.all[0].size) < 0)
        done = fails(change, FAILURE_MEMORY);
    key_list_free(&keys);
    return done;
}

static int check_primary(Change *change)
{
    return change->space->primary ? ENGINE_OK : fails(change, FAILURE_NO_PRIMARY);
}

int change_find(Change *change)
{
    Index *primary = change->space->primary;
    TreeKey wanted = tree_key(&primary->tree, key_of(change), change->key.size);
    Place place = tree_find(&primary->tree, &wanted);
    forget(change->space, &change->old);
    change->old = (RowRef){NULL, 0, NULL};
    if (place.is_found) {
        const Record *record = tree_record(&primary->tree, tree_handle(&primary->tree, place));
        change->old.data = record->data + record->key_size;
        change->old.size = record->size - record->key_size;
    }
    return ENGINE_OK;
}

static int refuse_duplicate(Change *change, const Index *index)
{
    change->space->engine->failed_index = index;
    return fails(change, FAILURE_DUPLICATE);
}

/* -- the indexes whose entries may change -- */

static void touch_all(Change *change)
{
    const Space *space = change->space;
    for (int number = 0; number < space->count; number++)
        change->touched[number] = space->others[number].index;
    change->touched_count = space->count;
}

/* Those with keys of fields that an update has changed. */
static void touch_updated(Change *change, const UpdatedRow *updated)
{
    const Space *space = change->space;
    uint64_t fields = 0;
    int has_more = updated->first_moved != UPDATE_NO_FIELD;
    for (int place = 0; place < updated->touched_count; place++) {
        if (updated->touched[place] < 64)
            fields |= (uint64_t)1 << updated->touched[place];
        else
            has_more = 1;
    }
    if (updated->first_moved != UPDATE_NO_FIELD) {
        touch_all(change);
        return;
    }
    change->touched_count = 0;
    for (int number = 0; number < space->count; number++)
        if (space->others[number].fields & fields || (has_more && space->others[number].has_more))
            change->touched[change->touched_count++] = space->others[number].index;
}

static int may_change_key(const Space *space, const UpdatedRow *updated)
{
    if (updated->first_moved != UPDATE_NO_FIELD)
        return 1;
    for (int place = 0; place < updated->touched_count; place++) {
        uint32_t field = updated->touched[place];
        if (field < 64 ? space->primary_fields >> field & 1 : space->has_more_primary_fields)
            return 1;
    }
    return 0;
}

/* -- making the change -- */

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
    return space->hooks->refuse_memory(space, change) < 0 ? hook_fails(change) : ENGINE_OK;
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
        return fails(change, FAILURE_MEMORY);
    if (transaction->all == transaction->few)
        memcpy(all, transaction->few, sizeof transaction->few);
    transaction->all = all;
    transaction->room = room;
    return ENGINE_OK;
}

/* Change all indexes. `*replaced` becomes the old record. */
static int change_indexes(Change *change, Record **made, Record **replaced)
{
    Index *primary = change->space->primary;
    KeyBuffer own = {0};
    *made = *replaced = NULL;
    if (change->row.data) {
        int is_by_layout = index_has_layout(primary)
            ? key_of_row(primary->tree.layout, change->row.data, change->row.size, &own) : 0;
        key_buffer_free(&own);
        *made = is_by_layout < 0 ? NULL : index_record(is_by_layout, key_of(change), change->key.size, change->row.data,
                                                       change->row.size);
        if (!*made)
            return fails(change, FAILURE_MEMORY);
    }
    int done = index_change(primary, change->touched, change->touched_count, key_of(change), change->key.size, &change->old,
                            &change->row, *made, replaced);
    if (done == INDEX_DONE) {
        change->space->bsize += change->row.size - change->old.size;
        change->is_made = 1;
        return ENGINE_OK;
    }
    if (*made)
        record_free(*made);
    if (done >= INDEX_REFUSED)
        return refuse_duplicate(change, change->touched[done - INDEX_REFUSED]);
    return done == INDEX_NO_MEMORY ? fails(change, FAILURE_MEMORY) : hook_fails(change);
}

/* Whether a transaction is still running: a trigger may have ended it. */
static int is_running(const Engine *engine, const Transaction *transaction, uint64_t begun)
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
    return hook_fails(change);
}

/* Make a change as a statement of the running transaction. */
static int change_inside(Change *change)
{
    Space *space = change->space;
    Engine *engine = space->engine;
    Transaction *transaction = engine->running;
    uint64_t begun = engine->begun;
    Record *made, *replaced;
    if (reserve_statement(change, transaction) < 0 || change_indexes(change, &made, &replaced) < 0)
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
    if (!is_running(engine, transaction, begun)) /* the trigger has ended it */
        return hook_fails(change);
    if (engine_rollback_to(engine, &savepoint) == ENGINE_OK)
        transaction_undo_refused(engine, transaction, change);
    return hook_fails(change);
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

/* Make a change that is known to be possible, but for what indexes, memory, the tracker and triggers say. */
static int carry_out(Change *change)
{
    Space *space = change->space;
    if (check_memory(change) < 0)
        return ENGINE_FAILED;
    if (space->engine->is_tracked && space->hooks->changes(space, change) < 0)
        return hook_fails(change);
    return space->engine->running ? change_inside(change) : change_alone(change);
}

int change_plainly(Change *change)
{
    Record *made, *replaced;
    touch_all(change);
    if ((change->row.data || change->old.data) && change_indexes(change, &made, &replaced) < 0)
        return ENGINE_FAILED;
    if (change->is_made && replaced)
        record_free(replaced);
    return ENGINE_OK;
}

/* -- triggers that decide -- */

/* Store what has been decided. */
static int store_decided(Change *change, const uint8_t *given)
{
    KeyBuffer key = {0};
    int done = ENGINE_OK, was_insert = change->kind == CHANGE_INSERT;
    if (change->row.data) {
        if (check_format(change) < 0)
            return ENGINE_FAILED;
        done = make_key(change, &change->row, &key);
        if (done == ENGINE_OK && (key.size != change->key.size || memcmp(key.data ? key.data : key.first, key_of(change), key.size)))
            done = fails(change, FAILURE_PRIMARY_KEY);
        key_buffer_free(&key);
    }
    if (done < 0 || change_find(change) < 0) /* a trigger may have changed the row itself */
        return ENGINE_FAILED;
    if (was_insert && change->row.data && change->old.data) {
        if (change->row.data == given)
            return refuse_duplicate(change, change->space->primary);
        change->kind = CHANGE_REPLACE; /* a row of the trigger's own choice takes the old one's place */
    }
    touch_all(change);
    return change->row.data || change->old.data ? carry_out(change) : ENGINE_OK;
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
    if (done < 0 || !is_running(engine, transaction, begun))
        done = done < 0 ? hook_fails(change) : ENGINE_OK;
    else if (done)
        done = store_decided(change, given);
    if (done == ENGINE_OK || !is_running(engine, transaction, begun)) /* a trigger may have ended it */
        return done;
    Failure failure = engine->failure;
    if (engine_rollback_to(engine, &savepoint) < 0)
        return ENGINE_FAILED;
    return engine_fails(engine, failure);
}

/* Let before_replace triggers decide what is stored. If that fails, their own changes are undone, too. */
static int decide(Change *change)
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

/* -- requests -- */

int change_store(Change *change)
{
    Space *space = change->space;
    if (change_check(change) < 0)
        return ENGINE_FAILED;
    if (space->flags & SPACE_FILLS && space->hooks->fill(space, change) < 0)
        return hook_fails(change);
    if (check_format(change) < 0 || check_primary(change) < 0 || make_key(change, &change->row, &change->key) < 0
        || change_find(change) < 0)
        return ENGINE_FAILED;
    if (space->flags & SPACE_DECIDES)
        return decide(change);
    if (change->kind == CHANGE_INSERT && change->old.data) {
        if (space->engine->is_tracked && space->hooks->reads(space, change) < 0)
            return hook_fails(change);
        return refuse_duplicate(change, space->primary);
    }
    touch_all(change);
    return carry_out(change);
}

int change_delete(Change *change)
{
    if (!change->old.data)
        return ENGINE_OK;
    if (change->space->flags & SPACE_DECIDES)
        return decide(change);
    touch_all(change);
    return carry_out(change);
}

/* Make the new row of an update by operations that the core knows. Returns whether it did. */
static int apply_known(Change *change, UpdatedRow *updated)
{
    const UpdateOperations *operations = change->operations;
    if (!operations
        || !update_row(updated, operations, change->old.data, change->old.size, &change->space->doubles)
        || !(change->made = malloc(updated->size)))
        return 0;
    update_write(updated, change->made);
    change->row = (RowRef){change->made, updated->size, NULL};
    change->made_size = updated->size;
    change->is_whole = (uint8_t)operations->is_plain;
    return 1;
}

/* Make and check the new row. `*may_have_other_key` tells whether its primary key may be another one. */
static int apply(Change *change, int is_upsert, int *may_have_other_key)
{
    Space *space = change->space;
    UpdatedRow updated;
    if (apply_known(change, &updated)) {
        touch_updated(change, &updated);
        *may_have_other_key = may_change_key(space, &updated);
    } else {
        if (space->hooks->apply(space, change, is_upsert) < 0)
            return hook_fails(change);
        touch_all(change);
        *may_have_other_key = 1;
    }
    return check_format(change);
}

/* Whether the new row has the old one's primary key: 1 or 0, or ENGINE_FAILED. `*other` tells whether a row has it. */
static int has_same_key(Change *change, int *is_taken)
{
    KeyBuffer key = {0};
    int done = make_key(change, &change->row, &key);
    if (done == ENGINE_OK) {
        const uint8_t *bytes = key.data ? key.data : key.first;
        done = key.size == change->key.size && !memcmp(bytes, key_of(change), key.size);
        if (!done) {
            TreeKey wanted = tree_key(&change->space->primary->tree, bytes, key.size);
            *is_taken = tree_find(&change->space->primary->tree, &wanted).is_found;
        }
    }
    key_buffer_free(&key);
    return done;
}

int change_update(Change *change)
{
    int may_have_other_key, is_taken = 0;
    if (!change->old.data)
        return ENGINE_OK;
    if (apply(change, 0, &may_have_other_key) < 0)
        return ENGINE_FAILED;
    int is_same = may_have_other_key ? has_same_key(change, &is_taken) : 1;
    if (is_same < 0)
        return ENGINE_FAILED;
    if (!is_same)
        return is_taken ? refuse_duplicate(change, change->space->primary) : fails(change, FAILURE_PRIMARY_KEY);
    return change->space->flags & SPACE_DECIDES ? decide(change) : carry_out(change);
}

int change_upsert(Change *change)
{
    Space *space = change->space;
    int may_have_other_key, is_taken;
    if (change_check(change) < 0 || check_format(change) < 0 || check_primary(change) < 0
        || make_key(change, &change->row, &change->key) < 0 || change_find(change) < 0)
        return ENGINE_FAILED;
    if (change->old.data) {
        forget(space, &change->row);
        if (apply(change, 1, &may_have_other_key) < 0)
            return ENGINE_FAILED;
        int is_same = may_have_other_key ? has_same_key(change, &is_taken) : 1;
        if (is_same < 0)
            return ENGINE_FAILED;
        if (!is_same) /* nothing is done, as in Tarantool */
            return space->engine->is_tracked && space->hooks->reads(space, change) < 0 ? hook_fails(change) : ENGINE_OK;
    } else {
        /* They are not applied, but what is wrong with them is said. */
        if (!change->operations && space->hooks->apply(space, change, 1) < 0)
            return hook_fails(change);
        touch_all(change);
    }
    return space->flags & SPACE_DECIDES ? decide(change) : carry_out(change);
}
