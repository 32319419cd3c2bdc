/* Rows in the blocks of snapshots and logs. */
#ifndef IPROTO_ENGINE_BLOCK_H
#define IPROTO_ENGINE_BLOCK_H

#include <stddef.h>
#include <stdint.h>

typedef enum {
    BLOCK_INSERT = 2, BLOCK_REPLACE = 3, BLOCK_UPDATE = 4, BLOCK_DELETE = 5, BLOCK_NOP = 12,
} BlockRowType;

/* A row is a map, its head, and, except for BLOCK_NOP, another one, its body. These are their keys. */
enum {
    ROW_TYPE = 0x00, ROW_MEMBER = 0x02, ROW_LSN = 0x03, ROW_TIMESTAMP = 0x04, ROW_GROUP_ID = 0x07, ROW_TSN = 0x08,
    ROW_FLAGS = 0x09,
};
enum {
    ROW_SPACE_ID = 0x10, ROW_INDEX_ID = 0x11, ROW_INDEX_BASE = 0x15, ROW_KEY = 0x20, ROW_TUPLE = 0x21,
    ROW_OPERATIONS = 0x28,
};
enum { ROW_COMMIT = 1 }; /* the flag of a transaction's last row */

/* A part of a block; one without bytes is not there. */
typedef struct {
    uint32_t start, size;
} BlockPart;

/* A row. Numbers that it lacks are 0. */
typedef struct {
    uint64_t type, member, group_id, lsn, tsn, flags; /* a row without TSN is a transaction by itself */
    double timestamp;
    uint64_t space_id, index_id, index_base;
    BlockPart body;
    BlockPart tuple, key, operations; /* arrays */
    uint8_t has_space;
    uint8_t is_plain; /* whether these arrays have nothing but numbers, strings, nil, and arrays and maps of these */
} BlockRow;

/* All zeros is an empty one. */
typedef struct {
    BlockRow *rows;
    size_t count, room;
    const char *fault; /* of the first malformed row, and where it is */
    size_t fault_at;
} BlockRows;

/* Read the rows of an uncompressed block. Returns 1; -1 without memory; 0 if a row is malformed. */
int block_read(BlockRows *found, const uint8_t *block, size_t size);

void block_free(BlockRows *rows);

#endif
