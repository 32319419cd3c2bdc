#include "block.h"

#include "../values/msgpack.h"

#include <stdlib.h>

enum { FIRST_ROOM = 1024, DEEPEST = 32 };

void block_free(BlockRows *rows)
{
    free(rows->rows);
    *rows = (BlockRows){0};
}

static BlockRow *add_row(BlockRows *found)
{
    if (found->count == found->room) {
        size_t room = found->room ? 2 * found->room : FIRST_ROOM;
        BlockRow *rows = realloc(found->rows, room * sizeof *rows);
        if (!rows)
            return NULL;
        found->rows = rows;
        found->room = room;
    }
    return found->rows + found->count++;
}

/* The functions below return the position behind what they read, or NULL and the fault. */

typedef struct {
    const uint8_t *block, *end;
    const char *fault;
} Reader;

static const uint8_t *refuse(Reader *reader, const char *fault)
{
    reader->fault = fault;
    return NULL;
}

static const uint8_t *skip(Reader *reader, const uint8_t *at)
{
    const uint8_t *after = msgpack_skip(at, reader->end);
    return after ? after : refuse(reader, "the block ends within it, or it is no MessagePack");
}

/* The next key of a map: a small number, or OTHER_KEY for all others. */
enum { OTHER_KEY = 0x80 };
static inline const uint8_t *read_key(Reader *reader, const uint8_t *at, uint8_t *key)
{
    *key = at < reader->end && *at < OTHER_KEY ? *at : OTHER_KEY;
    return *key < OTHER_KEY ? at + 1 : skip(reader, at);
}

/* The number of pairs of a map. */
static inline const uint8_t *read_map(Reader *reader, const uint8_t *at, uint32_t *pairs, const char *fault)
{
    if (at < reader->end && (*at & 0xf0) == 0x80) {
        *pairs = *at & 0x0f;
        return at + 1;
    }
    at = msgpack_map(at, reader->end, pairs);
    return at ? at : refuse(reader, fault);
}

/* -- heads -- */

static inline const uint8_t *read_number(Reader *reader, const uint8_t *at, uint64_t *number)
{
    MsgpackValue value;
    if (at < reader->end && *at < 0x80) {
        *number = *at;
        return at + 1;
    }
    const uint8_t *after = msgpack_read(at, reader->end, &value);
    if (!after || value.type != MSGPACK_UNSIGNED)
        return refuse(reader, "a field of its header is not an unsigned number");
    *number = value.number;
    return after;
}

static const uint8_t *read_timestamp(Reader *reader, const uint8_t *at, double *timestamp)
{
    MsgpackValue value;
    const uint8_t *after = msgpack_read(at, reader->end, &value);
    if (!after || value.type != MSGPACK_DOUBLE)
        return refuse(reader, "the time in its header is not a float");
    *timestamp = value.real;
    return after;
}

static const uint8_t *read_head_value(Reader *reader, const uint8_t *at, uint8_t key, BlockRow *row, int *has_tsn)
{
    switch (key) {
    case ROW_TYPE: return read_number(reader, at, &row->type);
    case ROW_MEMBER: return read_number(reader, at, &row->member);
    case ROW_LSN: return read_number(reader, at, &row->lsn);
    case ROW_TIMESTAMP: return read_timestamp(reader, at, &row->timestamp);
    case ROW_GROUP_ID: return read_number(reader, at, &row->group_id);
    case ROW_TSN: *has_tsn = 1; return read_number(reader, at, &row->tsn);
    case ROW_FLAGS: return read_number(reader, at, &row->flags);
    }
    return skip(reader, at);
}

static const uint8_t *read_head(Reader *reader, const uint8_t *at, BlockRow *row)
{
    uint32_t pairs;
    uint8_t key;
    int has_tsn = 0;
    at = read_map(reader, at, &pairs, "it has no header");
    for (; at && pairs; pairs--)
        if ((at = read_key(reader, at, &key)))
            at = read_head_value(reader, at, key, row, &has_tsn);
    row->tsn = row->lsn - row->tsn; /* as it is stored, that is a distance */
    if (!has_tsn)
        row->flags |= ROW_COMMIT;
    return at;
}

/* -- bodies -- */

static const uint8_t *read_array(Reader *reader, const uint8_t *at, BlockRow *row, BlockPart *part)
{
    uint32_t count;
    if (!msgpack_array(at, reader->end, &count))
        return refuse(reader, "a field of its body is not an array");
    const uint8_t *after = msgpack_skip_plain(at, reader->end, DEEPEST);
    if (!after) {
        row->is_plain = 0;
        after = skip(reader, at);
    }
    *part = (BlockPart){(uint32_t)(at - reader->block), after ? (uint32_t)(after - at) : 0};
    return after;
}

static const uint8_t *read_id(Reader *reader, const uint8_t *at, uint64_t *id)
{
    int is_unsigned = at < reader->end && (*at < 0x80 || (*at >= 0xcc && *at <= 0xcf));
    MsgpackValue value;
    const uint8_t *after = is_unsigned ? msgpack_read(at, reader->end, &value) : NULL;
    if (!after)
        return refuse(reader, "a field of its body is not an unsigned number");
    *id = value.number;
    return after;
}

static const uint8_t *read_body_value(Reader *reader, const uint8_t *at, uint8_t key, BlockRow *row)
{
    switch (key) {
    case ROW_SPACE_ID: row->has_space = 1; return read_id(reader, at, &row->space_id);
    case ROW_INDEX_ID: return read_id(reader, at, &row->index_id);
    case ROW_INDEX_BASE: return read_id(reader, at, &row->index_base);
    case ROW_KEY: return read_array(reader, at, row, &row->key);
    case ROW_TUPLE: return read_array(reader, at, row, row->type == BLOCK_UPDATE ? &row->operations : &row->tuple);
    case ROW_OPERATIONS:
        if (row->type != BLOCK_UPDATE)
            return read_array(reader, at, row, &row->operations);
    }
    return skip(reader, at);
}

static const uint8_t *read_body(Reader *reader, const uint8_t *at, BlockRow *row)
{
    const uint8_t *start = at;
    uint32_t pairs;
    uint8_t key;
    at = read_map(reader, at, &pairs, "it has no body");
    for (; at && pairs; pairs--)
        if ((at = read_key(reader, at, &key)))
            at = read_body_value(reader, at, key, row);
    if (at)
        row->body = (BlockPart){(uint32_t)(start - reader->block), (uint32_t)(at - start)};
    return at;
}

/* -- blocks -- */

int block_read(BlockRows *found, const uint8_t *block, size_t size)
{
    Reader reader = {block, block + size, NULL};
    const uint8_t *at = block;
    if (size > UINT32_MAX) {
        found->fault = "the block is too large";
        return 0;
    }
    while (at < reader.end) {
        BlockRow *row = add_row(found);
        if (!row)
            return -1;
        *row = (BlockRow){.is_plain = 1};
        const uint8_t *after = read_head(&reader, at, row);
        if (after && after < reader.end && row->type != BLOCK_NOP)
            after = read_body(&reader, after, row);
        if (!after) {
            found->count--;
            found->fault = reader.fault;
            found->fault_at = (size_t)(at - block);
            return 0;
        }
        at = after;
    }
    return 1;
}
