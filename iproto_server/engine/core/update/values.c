/* The new values that update operations make. */
#include "pieces.h"

#include <float.h>
#include <string.h>

void update_put_head(UpdatePiece *piece, uint8_t first, uint64_t value, int width)
{
    piece->head[0] = first;
    piece->head_size = (uint8_t)(1 + width);
    for (; width; width--, value >>= 8)
        piece->head[width] = (uint8_t)value;
}

static void put_unsigned(UpdatePiece *piece, uint64_t value)
{
    if (value < 0x80)
        update_put_head(piece, (uint8_t)value, 0, 0);
    else if (value <= UINT8_MAX)
        update_put_head(piece, 0xcc, value, 1);
    else if (value <= UINT16_MAX)
        update_put_head(piece, 0xcd, value, 2);
    else if (value <= UINT32_MAX)
        update_put_head(piece, 0xce, value, 4);
    else
        update_put_head(piece, 0xcf, value, 8);
}

static void put_negative(UpdatePiece *piece, int64_t value)
{
    if (value >= -0x20)
        update_put_head(piece, (uint8_t)value, 0, 0);
    else if (value >= INT8_MIN)
        update_put_head(piece, 0xd0, (uint64_t)value, 1);
    else if (value >= INT16_MIN)
        update_put_head(piece, 0xd1, (uint64_t)value, 2);
    else if (value >= INT32_MIN)
        update_put_head(piece, 0xd2, (uint64_t)value, 4);
    else
        update_put_head(piece, 0xd3, (uint64_t)value, 8);
}

static void put_real(UpdatePiece *piece, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    update_put_head(piece, 0xcb, bits, 8);
    piece->is_real = 1;
}

void update_shorten_real(UpdatePiece *piece)
{
    uint64_t wide_bits = load_big_endian(piece->head + 1, 8);
    double wide;
    memcpy(&wide, &wide_bits, sizeof wide);
    if (wide < -FLT_MAX || wide > FLT_MAX)
        return;
    float narrow = (float)wide;
    if ((double)narrow != wide)
        return;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    update_put_head(piece, 0xca, bits, 4);
}

static __int128 integer_of(const MsgpackValue *value)
{
    return value->type == MSGPACK_NEGATIVE ? (__int128)(int64_t)value->number : (__int128)value->number;
}

static double real_of(const MsgpackValue *value)
{
    if (value->type == MSGPACK_DOUBLE)
        return value->real;
    return value->type == MSGPACK_NEGATIVE ? (double)(int64_t)value->number : (double)value->number;
}

/* The result of + or -. Which NaN comes of others is not known here. */
static int add(UpdatePiece *piece, char opcode, const MsgpackValue *old, const MsgpackValue *argument)
{
    if (old->type != MSGPACK_UNSIGNED && old->type != MSGPACK_NEGATIVE && old->type != MSGPACK_DOUBLE)
        return 0;
    if (old->type == MSGPACK_DOUBLE || argument->type == MSGPACK_DOUBLE) {
        double left = real_of(old), right = real_of(argument), result = opcode == '+' ? left + right : left - right;
        if (result != result)
            return 0;
        put_real(piece, result);
        return 1;
    }
    __int128 left = integer_of(old), right = integer_of(argument);
    __int128 result = opcode == '+' ? left + right : left - right;
    if (result < INT64_MIN || result > UINT64_MAX)
        return 0;
    if (result < 0)
        put_negative(piece, (int64_t)result);
    else
        put_unsigned(piece, (uint64_t)result);
    return 1;
}

static int combine(UpdatePiece *piece, char opcode, uint64_t old, uint64_t argument)
{
    put_unsigned(piece, opcode == '&' ? old & argument : opcode == '|' ? old | argument : old ^ argument);
    return 1;
}

static void put_string_head(UpdatePiece *piece, uint32_t size)
{
    if (size < 0x20)
        update_put_head(piece, (uint8_t)(0xa0 + size), 0, 0);
    else if (size <= UINT8_MAX)
        update_put_head(piece, 0xd9, size, 1);
    else if (size <= UINT16_MAX)
        update_put_head(piece, 0xda, size, 2);
    else
        update_put_head(piece, 0xdb, size, 4);
}

static int splice(UpdatePiece *piece, const UpdateOperation *operation, const MsgpackValue *old)
{
    if (old->type != MSGPACK_STRING)
        return 0;
    const MsgpackValue *paste = &operation->argument;
    int64_t length = (int64_t)old->size, start = operation->offset; /* both have 32 bits */
    if (start < 0 && (start += length + 1) < 0) /* -1 is the position behind the last byte */
        return 0;
    if (start > length)
        start = length;
    /* A negative length is the number of bytes to keep at the end. */
    int64_t behind = operation->cut < 0 ? length + operation->cut : start + operation->cut;
    if (behind > length)
        behind = length;
    if (behind < start)
        behind = start;
    uint64_t size = (uint64_t)(start + (length - behind)) + paste->size;
    if (size > UINT32_MAX)
        return 0;
    put_string_head(piece, (uint32_t)size);
    piece->parts[0].data = old->bytes;
    piece->parts[0].size = (size_t)start;
    piece->parts[1].data = paste->bytes;
    piece->parts[1].size = paste->size;
    piece->parts[2].data = old->bytes + behind;
    piece->parts[2].size = (size_t)(length - behind);
    return 1;
}

int update_compute(UpdatePiece *piece, const UpdateOperation *operation)
{
    const uint8_t *start = piece->parts[0].data, *end = start + piece->parts[0].size;
    MsgpackValue old;
    UpdatePiece result = {.fields = 1, .is_changed = 1};
    int done = 0;
    if (piece->is_changed || !msgpack_read(start, end, &old))
        return 0;
    if (operation->opcode == ':')
        done = splice(&result, operation, &old);
    else if (operation->opcode == '+' || operation->opcode == '-')
        done = add(&result, operation->opcode, &old, &operation->argument);
    else if (old.type == MSGPACK_UNSIGNED && *start < 0xd0)
        done = combine(&result, operation->opcode, old.number, operation->argument.number);
    if (done)
        *piece = result;
    return done;
}
