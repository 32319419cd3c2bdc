/* Update operations on whole fields of a packed row: = ! # + - & | ^ and :
 *
 * box/update is the specification, errors and their texts among it. What is UPDATE_UNKNOWN here is for it: paths into
 * fields, decimals and other extension types, and whatever is refused.
 */
#ifndef IPROTO_ENGINE_UPDATE_H
#define IPROTO_ENGINE_UPDATE_H

#include "../values/msgpack.h"

enum { UPDATE_OPERATIONS_MAX = 32, UPDATE_PIECES_MAX = 2 * UPDATE_OPERATIONS_MAX + 1 };
enum { UPDATE_UNKNOWN = 0, UPDATE_DONE = 1 };
#define UPDATE_NO_FIELD UINT32_MAX

typedef struct {
    char opcode;
    int32_t field_no;      /* from 0; a negative one counts from the end */
    int32_t offset, cut;   /* of a splice: the offset from 0 or from the end, and the length */
    MsgpackValue argument; /* of = and !: `bytes` are the packed value; of a splice: what is pasted */
} UpdateOperation;

/* Operations that were read; they refer to the bytes that they were read from. */
typedef struct {
    int count;
    int is_plain; /* whether no value is an array, a map or an extension */
    UpdateOperation all[UPDATE_OPERATIONS_MAX];
} UpdateOperations;

/* Find a field's number from 0 by its name. Returns 0 if there is none. */
typedef int (*UpdateFieldOf)(void *names, const uint8_t *name, size_t size, int32_t *field_no);

/* Read packed operations, [[opcode, field, argument…], …]. `index_base` is the number of the first field and, in splices,
 * of the first byte, in 32 bits. `field_of` may be NULL. */
int update_read(UpdateOperations *operations, const uint8_t *at, const uint8_t *end, uint32_t index_base,
                UpdateFieldOf field_of, void *names);

/* Read the next `count` operations of an array, at most UPDATE_OPERATIONS_MAX, and go behind them. */
int update_read_next(UpdateOperations *operations, const uint8_t **at, const uint8_t *end, uint32_t count,
                     uint32_t index_base, UpdateFieldOf field_of, void *names);

/* Fields that must not hold a float32: a bit for each of the first 64, and whether there are more. */
typedef struct {
    uint64_t first;
    int has_more;
} UpdateDoubles;

/* Some fields of a new row: fields of the old one, one that an operation has inserted, or one that is changed. */
typedef struct {
    uint32_t fields;
    uint8_t is_changed; /* then it is one field, and nothing but = may change it again */
    uint8_t is_real;    /* `head` is a double */
    uint8_t head_size;
    uint8_t head[9];    /* in front of the parts */
    struct {
        const uint8_t *data;
        size_t size;
    } parts[3];
} UpdatePiece;

static inline size_t update_piece_size(const UpdatePiece *piece)
{
    return piece->head_size + piece->parts[0].size + piece->parts[1].size + piece->parts[2].size;
}

/* A new row that is not written yet; it refers to the old one and to the operations. */
typedef struct {
    size_t size;
    uint32_t fields;
    uint32_t first_moved;                    /* from this field on fields may be others; UPDATE_NO_FIELD if none is */
    int touched_count;                       /* changed fields in front of that one, and maybe some behind it */
    uint32_t touched[UPDATE_OPERATIONS_MAX];
    int count;
    UpdatePiece pieces[UPDATE_PIECES_MAX];
} UpdatedRow;

/* Apply operations to a row. */
int update_row(UpdatedRow *new_row, const UpdateOperations *operations, const uint8_t *row, size_t size,
               const UpdateDoubles *doubles);

/* Write the new row: `size` bytes. */
void update_write(const UpdatedRow *new_row, uint8_t *to);

#endif
