/* Rows in the blocks of snapshots. */
#ifndef IPROTO_ENGINE_BLOCK_H
#define IPROTO_ENGINE_BLOCK_H

#include <stddef.h>
#include <stdint.h>

/* A row of a space: where it is among the bytes of its block. */
typedef struct {
    uint32_t space_id, start, size;
} BlockRow;

/* All zeros is an empty one. */
typedef struct {
    BlockRow *rows;
    size_t count, room;
} BlockRows;

/* Find the rows of an uncompressed block.
 *
 * Returns 1; -1 without memory; 0 if the block has anything else than inserted rows, or a row that has anything else
 * than numbers, strings, nil, and arrays and maps of these.
 */
int block_read_snapshot(BlockRows *found, const uint8_t *block, size_t size);

void block_free(BlockRows *rows);

#endif
