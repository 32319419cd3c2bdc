#include "replay.h"

#include <stdlib.h>
#include <string.h>

void replay_begin(Replay *replay, Tree *primary)
{
    *replay = (Replay){.primary = primary, .key = *primary->layout};
    replay->key.count = replay->key.own;
    for (int place = 0; place < replay->key.count; place++)
        replay->key.parts[place].field_no = (uint32_t)place;
}

void replay_end(Replay *replay)
{
    key_buffer_free(&replay->bytes);
    free(replay->row);
}

static TreeKey wanted_key(const Replay *replay)
{
    return tree_key(replay->primary, replay->bytes.data, replay->bytes.size);
}

/* -- rows and keys -- */

static int add(Tree *primary, Place place, const TreeKey *key, const uint8_t *row, size_t size)
{
    Handle32 handle = records_add(primary->records, NULL, 0, row, size);
    if (handle == NO_HANDLE)
        return -1;
    if (tree_insert(primary, place, key, handle) == 0)
        return 1;
    records_remove(primary->records, handle);
    return -1;
}

static int put(Replay *replay, const uint8_t *row, size_t size, int may_replace)
{
    Tree *primary = replay->primary;
    int done = key_of_row(primary->layout, row, size, &replay->bytes);
    if (done <= 0)
        return done;
    if (tree_reserve_key(primary, replay->bytes.size) < 0)
        return -1;
    TreeKey key = wanted_key(replay);
    if (tree_is_below(primary, &key))
        return add(primary, tree_back(primary), &key, row, size);
    Place place = tree_find(primary, &key);
    if (!place.is_found)
        return add(primary, place, &key, row, size);
    if (!may_replace)
        return 0;
    return records_replace(primary->records, tree_handle(primary, place), NULL, 0, row, size) < 0 ? -1 : 1;
}

/* Find the row of a key. Returns 1; 0 if it is no key; -1 without memory. */
static int find(Replay *replay, const uint8_t *key, size_t size, Place *place)
{
    int done = key_of_row(&replay->key, key, size, &replay->bytes);
    if (done <= 0)
        return done;
    TreeKey wanted = wanted_key(replay);
    *place = tree_find(replay->primary, &wanted);
    return 1;
}

static int remove_row(Replay *replay, const uint8_t *key, size_t size)
{
    Place place;
    int done = find(replay, key, size, &place);
    if (done <= 0 || !place.is_found)
        return done;
    Handle32 handle = tree_handle(replay->primary, place);
    tree_remove(replay->primary, place);
    records_remove(replay->primary->records, handle);
    return 1;
}

/* -- updates -- */

static int field_of(void *context, const uint8_t *text, size_t size, int32_t *field_no)
{
    const Replay *replay = context;
    for (const FieldName *name = replay->names; name < replay->names + replay->name_count; name++)
        if (name->size == size && !memcmp(name->text, text, size)) {
            *field_no = (int32_t)name->number;
            return 1;
        }
    return 0;
}

static int write_row(Replay *replay, const UpdatedRow *updated)
{
    if (updated->size > replay->room) {
        uint8_t *row = realloc(replay->row, 2 * updated->size);
        if (!row)
            return -1;
        replay->row = row;
        replay->room = 2 * updated->size;
    }
    update_write(updated, replay->row);
    return 1;
}

static int update(Replay *replay, const uint8_t *block, const BlockRow *row)
{
    Place place;
    int done = find(replay, block + row->key.start, row->key.size, &place);
    if (done <= 0 || !place.is_found)
        return done;
    Tree *primary = replay->primary;
    Handle32 handle = tree_handle(primary, place);
    const Record *old = records_at(primary->records, handle);
    const uint8_t *at = block + row->operations.start;
    UpdateOperations operations;
    UpdatedRow updated;
    if (!old || old->key_size
        || !update_read(&operations, at, at + row->operations.size, (uint32_t)row->index_base, field_of, replay)
        || !update_row(&updated, &operations, old->data, old->size, &replay->doubles))
        return 0;
    if (write_row(replay, &updated) < 0)
        return -1;
    TreeKey wanted = wanted_key(replay);
    KeyBuffer *made = &primary->scratch;
    done = key_of_row(primary->layout, replay->row, updated.size, made);
    if (done <= 0 || made->size != wanted.size || memcmp(made->data, wanted.key, made->size))
        return done < 0 ? done : 0;
    return records_replace(primary->records, handle, NULL, 0, replay->row, updated.size) < 0 ? -1 : 1;
}

int replay_row(Replay *replay, const uint8_t *block, const BlockRow *row)
{
    int has_key = row->key.size && !row->index_id;
    if (replay->primary->views || !row->is_plain)
        return 0;
    switch (row->type) {
    case BLOCK_INSERT:
    case BLOCK_REPLACE:
        return row->tuple.size ? put(replay, block + row->tuple.start, row->tuple.size, row->type == BLOCK_REPLACE) : 0;
    case BLOCK_UPDATE:
        return has_key && row->operations.size ? update(replay, block, row) : 0;
    case BLOCK_DELETE:
        return has_key ? remove_row(replay, block + row->key.start, row->key.size) : 0;
    }
    return 0;
}
