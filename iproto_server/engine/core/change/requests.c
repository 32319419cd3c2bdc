/* The changes that requests and procedures ask for. */
#include "steps.h"

#include <stdlib.h>
#include <string.h>

/* -- the indexes whose entries an update may change -- */

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
        change_touch_all(change);
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

/* -- requests -- */

int change_store(Change *change)
{
    Space *space = change->space;
    if (change_check(change) < 0)
        return ENGINE_FAILED;
    if (space->flags & SPACE_FILLS && space->hooks->fill(space, change) < 0)
        return change_hook_fails(change);
    if (change_check_format(change) < 0 || change_check_primary(change) < 0 || change_make_key(change, &change->row, &change->key) < 0
        || change_find(change) < 0)
        return ENGINE_FAILED;
    if (space->flags & SPACE_DECIDES)
        return change_decide(change);
    if (change->kind == CHANGE_INSERT && change->old.data) {
        if (space->engine->is_tracked && space->hooks->reads(space, change) < 0)
            return change_hook_fails(change);
        return change_refuse_duplicate(change, space->primary);
    }
    change_touch_all(change);
    return change_carry_out(change);
}

int change_delete(Change *change)
{
    if (!change->old.data)
        return ENGINE_OK;
    if (change->space->flags & SPACE_DECIDES)
        return change_decide(change);
    change_touch_all(change);
    return change_carry_out(change);
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
            return change_hook_fails(change);
        change_touch_all(change);
        *may_have_other_key = 1;
    }
    return change_check_format(change);
}

/* Whether the new row has the old one's primary key: 1 or 0, or ENGINE_FAILED. `*other` tells whether a row has it. */
static int has_same_key(Change *change, int *is_taken)
{
    KeyBuffer key = {0};
    int done = change_make_key(change, &change->row, &key);
    if (done == ENGINE_OK) {
        const uint8_t *bytes = key.data ? key.data : key.first;
        done = key.size == change->key.size && !memcmp(bytes, change_key(change), key.size);
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
        return is_taken ? change_refuse_duplicate(change, change->space->primary) : change_fails(change, FAILURE_PRIMARY_KEY);
    return change->space->flags & SPACE_DECIDES ? change_decide(change) : change_carry_out(change);
}

int change_upsert(Change *change)
{
    Space *space = change->space;
    int may_have_other_key, is_taken;
    if (change_check(change) < 0 || change_check_format(change) < 0 || change_check_primary(change) < 0
        || change_make_key(change, &change->row, &change->key) < 0 || change_find(change) < 0)
        return ENGINE_FAILED;
    if (change->old.data) {
        change_forget(space, &change->row);
        if (apply(change, 1, &may_have_other_key) < 0)
            return ENGINE_FAILED;
        int is_same = may_have_other_key ? has_same_key(change, &is_taken) : 1;
        if (is_same < 0)
            return ENGINE_FAILED;
        if (!is_same) /* nothing is done, as in Tarantool */
            return space->engine->is_tracked && space->hooks->reads(space, change) < 0 ? change_hook_fails(change) : ENGINE_OK;
    } else {
        /* They are not applied, but what is wrong with them is said. */
        if (!change->operations && space->hooks->apply(space, change, 1) < 0)
            return change_hook_fails(change);
        change_touch_all(change);
    }
    return space->flags & SPACE_DECIDES ? change_decide(change) : change_carry_out(change);
}
