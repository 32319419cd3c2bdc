#include "steps.h"

#include <stdlib.h>
#include <string.h>

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

void change_free(Change *change)
{
    change_forget(change->space, &change->row);
    change_forget(change->space, &change->old);
    key_buffer_free(&change->key);
    free(change->made);
}

/* -- checks -- */

int change_check(Change *change)
{
    const Space *space = change->space;
    const Engine *engine = space->engine;
    if (engine->is_read_only && !space->is_temporary && !space->is_local)
        return change_fails(change, FAILURE_READ_ONLY);
    return engine->nesting >= NESTING_MAX ? change_fails(change, FAILURE_NESTING) : ENGINE_OK;
}

int change_check_format(Change *change)
{
    Space *space = change->space;
    if (space->is_checked && format_fits(&space->format, change->row.data, change->row.size, change->is_whole))
        return ENGINE_OK;
    return space->hooks->explain(space, change) < 0 ? change_hook_fails(change) : ENGINE_OK;
}

int change_make_key(Change *change, RowRef *row, KeyBuffer *key)
{
    const Index *primary = change->space->primary;
    int done = index_has_layout(primary) ? key_of_row(primary->tree.layout, row->data, row->size, key) : 0;
    if (done)
        return done > 0 ? ENGINE_OK : change_fails(change, FAILURE_MEMORY);
    KeyList keys = {0};
    done = primary->hook->keys_of(primary->context, row, NULL, 0, &keys);
    if (done < 0)
        done = change_hook_fails(change);
    else if (key_buffer_set(key, key_list_at(&keys, 0), keys.all[0].size) < 0)
        done = change_fails(change, FAILURE_MEMORY);
    key_list_free(&keys);
    return done;
}

int change_check_primary(Change *change)
{
    return change->space->primary ? ENGINE_OK : change_fails(change, FAILURE_NO_PRIMARY);
}

int change_find(Change *change)
{
    Index *primary = change->space->primary;
    TreeKey wanted = tree_key(&primary->tree, change_key(change), change->key.size);
    Place place = tree_find(&primary->tree, &wanted);
    change_forget(change->space, &change->old);
    change->old = (RowRef){NULL, 0, NULL};
    if (place.is_found) {
        const Record *record = tree_record(&primary->tree, tree_handle(&primary->tree, place));
        change->old.data = record->data + record->key_size;
        change->old.size = record->size - record->key_size;
    }
    return ENGINE_OK;
}

int change_refuse_duplicate(Change *change, const Index *index)
{
    change->space->engine->failed_index = index;
    return change_fails(change, FAILURE_DUPLICATE);
}

void change_touch_all(Change *change)
{
    const Space *space = change->space;
    for (int number = 0; number < space->count; number++)
        change->touched[number] = space->others[number].index;
    change->touched_count = space->count;
}
