/* Rows in the blocks of snapshots and logs. */
#ifndef IPROTO_ENGINE_BLOCK_H
#define IPROTO_ENGINE_BLOCK_H

#include <stddef.h>
#include <stdint.h>

typedef enum { BLOCK_INSERT = 2, BLOCK_REPLACE = 3, BLOCK_UPDATE = 4, BLOCK_DELETE = 5 } BlockRowType;

/* A row is a map, its head, and another one, its body. These are their keys. */
enum {
    ROW_TYPE = 0x00, ROW_MEMBER = 0x02, ROW_LSN = 0x03, ROW_TIMESTAMP = 0x04, ROW_GROUP_ID = 0x07, ROW_TSN = 0x08,
    ROW_FLAGS = 0x09,
};
enum { ROW_SPACE_ID = 0x10, ROW_INDEX_BASE = 0x15, ROW_KEY = 0x20, ROW_TUPLE = 0x21 };
enum { ROW_COMMIT = 1 }; /* the flag of a transaction's last row */

/* A row of a space: where its parts are among the bytes of its block. */
typedef struct {
    uint32_t space_id, start, size;       /* of the tuple; of the key of what is updated or deleted */
    uint32_t operations, operations_size; /* of an update: an array */
    uint32_t member;                      /* only in logs, as everything below */
    uint64_t lsn;
    uint8_t type, index_base;
} BlockRow;

/* All zeros is an empty one. */
typedef struct {
    BlockRow *rows;
    size_t count, room;
} BlockRows;

/* Find the rows of an uncompressed block.
 *
 * Returns 1; -1 without memory; 0 if the block has a row of another type or shape, or one that has anything else than
 * numbers, strings, nil, and arrays and maps of these, or, in a log, the beginning of a transaction without its end.
 */
int block_read_snapshot(BlockRows *found, const uint8_t *block, size_t size);
int block_read_log(BlockRows *found, const uint8_t *block, size_t size);

void block_free(BlockRows *rows);

#endif
