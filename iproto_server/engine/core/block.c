#include "block.h"

#include "msgpack.h"

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

/* -- headers -- */

/* The header of a snapshot's row: a map of two to four pairs that begins with the type. The others tell nothing. */
static const uint8_t *skip_header(const uint8_t *at, const uint8_t *end)
{
    if (end - at < 3 || at[0] < 0x82 || at[0] > 0x84 || at[1] != ROW_TYPE || at[2] != BLOCK_INSERT)
        return NULL;
    return msgpack_skip(at, end);
}

/* Read a pair of a map whose value is an unsigned number. Returns the position behind it; NULL if it is another one. */
static const uint8_t *read_pair(const uint8_t *at, const uint8_t *end, uint8_t key, uint64_t *number)
{
    MsgpackValue value;
    if (end - at < 2 || *at++ != key || (*at >= 0x80 && (*at < 0xcc || *at > 0xcf)) || !msgpack_read(at, end, &value))
        return NULL;
    *number = value.number;
    return msgpack_skip(at, end);
}

/* What ends the header of a transaction of several rows: the number of the row, and the flags of the last one. */
static const uint8_t *read_ending(const uint8_t *at, const uint8_t *end, int pairs, int *is_last)
{
    uint64_t number;
    *is_last = pairs != 5;
    if (pairs >= 5 && !(at = read_pair(at, end, ROW_TSN, &number)))
        return NULL;
    if (pairs == 6 && (!(at = read_pair(at, end, ROW_FLAGS, &number)) || number != ROW_COMMIT))
        return NULL;
    return at;
}

/* The header of a log's row: type, member, LSN and time. */
static const uint8_t *read_header(const uint8_t *at, const uint8_t *end, BlockRow *row, int *is_last)
{
    enum { TIME_SIZE = 10 };
    uint64_t type, member;
    if (at >= end || *at < 0x84 || *at > 0x86)
        return NULL;
    int pairs = *at++ & 0x0f;
    if (!(at = read_pair(at, end, ROW_TYPE, &type)) || type < BLOCK_INSERT || type > BLOCK_DELETE
        || !(at = read_pair(at, end, ROW_MEMBER, &member)) || member > UINT32_MAX
        || !(at = read_pair(at, end, ROW_LSN, &row->lsn)))
        return NULL;
    if (end - at < TIME_SIZE || at[0] != ROW_TIMESTAMP || at[1] != 0xcb)
        return NULL;
    row->type = (uint8_t)type;
    row->member = (uint32_t)member;
    return read_ending(at + TIME_SIZE, end, pairs, is_last);
}

/* -- bodies -- */

/* Read a pair whose value is an array. Returns the position behind it; NULL if it is another one. */
static const uint8_t *read_array(const uint8_t *at, const uint8_t *end, uint8_t key, const uint8_t *block,
                                 uint32_t *start, uint32_t *size)
{
    uint32_t count;
    if (at >= end || *at++ != key || !msgpack_array(at, end, &count))
        return NULL;
    const uint8_t *after = msgpack_skip_plain(at, end, DEEPEST);
    if (after) {
        *start = (uint32_t)(at - block);
        *size = (uint32_t)(after - at);
    }
    return after;
}

/* The body of a row: its space, then its tuple, its key, or its key and its operations, with an index base or none. */
static const uint8_t *read_body(const uint8_t *at, const uint8_t *end, const uint8_t *block, BlockRow *row)
{
    uint64_t space_id, base = 0;
    int has_base = row->type == BLOCK_UPDATE && at < end && *at == 0x84;
    if (at >= end || *at != (row->type == BLOCK_UPDATE ? 0x83 + has_base : 0x82)
        || !(at = read_pair(at + 1, end, ROW_SPACE_ID, &space_id)) || space_id > UINT32_MAX)
        return NULL;
    if (has_base && (!(at = read_pair(at, end, ROW_INDEX_BASE, &base)) || base > 1))
        return NULL;
    row->space_id = (uint32_t)space_id;
    row->index_base = (uint8_t)base;
    uint8_t key = row->type == BLOCK_INSERT || row->type == BLOCK_REPLACE ? ROW_TUPLE : ROW_KEY;
    at = read_array(at, end, key, block, &row->start, &row->size);
    if (at && row->type == BLOCK_UPDATE)
        at = read_array(at, end, ROW_TUPLE, block, &row->operations, &row->operations_size);
    return at;
}

/* -- blocks -- */

int block_read_snapshot(BlockRows *found, const uint8_t *block, size_t size)
{
    const uint8_t *at = block, *end = block + size;
    if (size > UINT32_MAX)
        return 0;
    while (at < end) {
        BlockRow row = {.type = BLOCK_INSERT};
        const uint8_t *body = skip_header(at, end);
        if (!body || !(at = read_body(body, end, block, &row)))
            return 0;
        BlockRow *added = add_row(found);
        if (!added)
            return -1;
        *added = row;
    }
    return 1;
}

int block_read_log(BlockRows *found, const uint8_t *block, size_t size)
{
    const uint8_t *at = block, *end = block + size;
    int is_last = 1;
    if (size > UINT32_MAX)
        return 0;
    while (at < end) {
        BlockRow row = {0};
        const uint8_t *body = read_header(at, end, &row, &is_last);
        if (!body || !(at = read_body(body, end, block, &row)))
            return 0;
        BlockRow *added = add_row(found);
        if (!added)
            return -1;
        *added = row;
    }
    return is_last;
}
