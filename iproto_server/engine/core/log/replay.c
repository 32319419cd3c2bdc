#include "replay.h"

#include "../values/msgpack.h"

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

/* A field of an operation: a small number, or a short name. Returns -1 for other ones. */
static int64_t field_of(const Replay *replay, const uint8_t *at, const uint8_t *end, uint32_t base)
{
    MsgpackValue value;
    if (!msgpack_read(at, end, &value))
        return -1;
    if (value.type == MSGPACK_UNSIGNED && *at < 0x80)
        return (int64_t)value.number - base;
    if (value.type != MSGPACK_STRING || (*at & 0xe0) != 0xa0)
        return -1;
    for (const FieldName *name = replay->names; name < replay->names + replay->name_count; name++)
        if (name->size == value.size && !memcmp(name->text, value.bytes, value.size))
            return name->number;
    return -1;
}

/* Where a field of a row begins and ends; the row has less than 16 fields. Returns 0 if it has none of that number. */
static int find_field(const uint8_t *row, size_t size, int64_t number, size_t *start, size_t *after)
{
    const uint8_t *at = row + 1, *end = row + size;
    if (!size || (*row & 0xf0) != 0x90 || number < 0 || number >= (*row & 0x0f))
        return 0;
    while (at && number--)
        at = msgpack_skip(at, end);
    const uint8_t *behind = at ? msgpack_skip(at, end) : NULL;
    if (!behind)
        return 0;
    *start = (size_t)(at - row);
    *after = (size_t)(behind - row);
    return 1;
}

/* Put other bytes in the place of some of the row that is being made. */
static int splice(Replay *replay, size_t *size, size_t start, size_t after, const uint8_t *value, size_t value_size)
{
    size_t needed = *size - (after - start) + value_size;
    if (needed > replay->room) {
        uint8_t *row = realloc(replay->row, 2 * needed);
        if (!row)
            return -1;
        replay->row = row;
        replay->room = 2 * needed;
    }
    memmove(replay->row + start + value_size, replay->row + after, *size - after);
    memcpy(replay->row + start, value, value_size);
    *size = needed;
    return 1;
}

/* Assign to fields of the row that is being made. Returns as `replay_row` does. */
static int assign(Replay *replay, size_t *size, const uint8_t *at, const uint8_t *end, uint32_t base)
{
    int count = *at - 0x90;
    if (count < 1 || count > 15)
        return 0;
    for (at++; count; count--) {
        if (end - at < 4 || memcmp(at, "\x93\xa1=", 3))
            return 0;
        int64_t number = field_of(replay, at + 3, end, base);
        const uint8_t *value = msgpack_skip(at + 3, end);
        at = value ? msgpack_skip(value, end) : NULL;
        size_t start, after;
        if (!at || !find_field(replay->row, *size, number, &start, &after))
            return 0;
        int done = splice(replay, size, start, after, value, (size_t)(at - value));
        if (done < 0)
            return done;
    }
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
    if (!old || old->key_size)
        return 0;
    size_t size = 0;
    if (splice(replay, &size, 0, 0, old->data, old->size) < 0)
        return -1;
    const uint8_t *operations = block + row->operations.start;
    done = assign(replay, &size, operations, operations + row->operations.size, (uint32_t)row->index_base);
    if (done <= 0)
        return done;
    TreeKey wanted = wanted_key(replay);
    KeyBuffer *made = &primary->scratch;
    done = key_of_row(primary->layout, replay->row, size, made);
    if (done <= 0 || made->size != wanted.size || memcmp(made->data, wanted.key, made->size))
        return done < 0 ? done : 0;
    return records_replace(primary->records, handle, NULL, 0, replay->row, size) < 0 ? -1 : 1;
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
        return has_key && row->operations.size && row->index_base <= 1 ? update(replay, block, row) : 0;
    case BLOCK_DELETE:
        return has_key ? remove_row(replay, block + row->key.start, row->key.size) : 0;
    }
    return 0;
}
