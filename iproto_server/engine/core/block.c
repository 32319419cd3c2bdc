#include "block.h"

#include "msgpack.h"

#include <stdlib.h>

enum { FIRST_ROOM = 1024, DEEPEST = 32 };
enum { HEADER_TYPE = 0x00, TYPE_INSERT = 2, BODY_SPACE_ID = 0x10, BODY_TUPLE = 0x21 };

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

/* The header of a snapshot's row: a map of two to four pairs that begins with the type. The others tell nothing. */
static const uint8_t *skip_header(const uint8_t *at, const uint8_t *end)
{
    if (end - at < 3 || at[0] < 0x82 || at[0] > 0x84 || at[1] != HEADER_TYPE || at[2] != TYPE_INSERT)
        return NULL;
    return msgpack_skip(at, end);
}

/* The body of an inserted row: its space and itself. Returns the position behind it; NULL if it is another one. */
static const uint8_t *read_body(const uint8_t *at, const uint8_t *end, BlockRow *row, const uint8_t **tuple)
{
    MsgpackValue space;
    if (end - at < 3 || at[0] != 0x82 || at[1] != BODY_SPACE_ID || (at[2] >= 0x80 && (at[2] < 0xcc || at[2] > 0xcf))
        || !msgpack_read(at + 2, end, &space) || space.number > UINT32_MAX)
        return NULL;
    at = msgpack_skip(at + 2, end);
    uint32_t count;
    if (!at || at >= end || *at++ != BODY_TUPLE || !msgpack_array(at, end, &count))
        return NULL;
    row->space_id = (uint32_t)space.number;
    *tuple = at;
    return msgpack_skip_plain(at, end, DEEPEST);
}

int block_read_snapshot(BlockRows *found, const uint8_t *block, size_t size)
{
    const uint8_t *at = block, *end = block + size, *tuple = NULL;
    if (size > UINT32_MAX)
        return 0;
    while (at < end) {
        BlockRow row;
        const uint8_t *body = skip_header(at, end);
        if (!body || !(at = read_body(body, end, &row, &tuple)))
            return 0;
        row.start = (uint32_t)(tuple - block);
        row.size = (uint32_t)(at - tuple);
        BlockRow *added = add_row(found);
        if (!added)
            return -1;
        *added = row;
    }
    return 1;
}
