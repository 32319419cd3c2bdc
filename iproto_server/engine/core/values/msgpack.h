/* Reading MessagePack. Nothing is read at or behind `end`. */
#ifndef IPROTO_ENGINE_MSGPACK_H
#define IPROTO_ENGINE_MSGPACK_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A number as it is stored with its highest byte first, and back. */
static inline uint64_t big_endian_64(uint64_t value)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return __builtin_bswap64(value);
#else
    return value;
#endif
}

static inline uint64_t load_big_endian(const uint8_t *at, int width)
{
    uint64_t value = 0;
    if (width == 8) {
        memcpy(&value, at, 8);
        return big_endian_64(value);
    }
    while (width--)
        value = value << 8 | *at++;
    return value;
}

static inline void store_big_endian(uint8_t *at, uint64_t value, int width)
{
    if (width == 8) {
        value = big_endian_64(value);
        memcpy(at, &value, 8);
        return;
    }
    for (int place = width; place--; value >>= 8)
        at[place] = (uint8_t)value;
}

/* Read the head of a value: where its body begins, and how many bytes it has or how many values. Returns 0 if there is
 * no head, or fewer bytes than it tells. */
int msgpack_head(const uint8_t *at, const uint8_t *end, const uint8_t **body, uint64_t *size, uint64_t *values);

/* The position behind the value at `at`; NULL if it does not end before `end`, or is none. */
const uint8_t *msgpack_skip(const uint8_t *at, const uint8_t *end);

/* The same, but only of a value with at most `depth` arrays and maps inside each other, of which empty ones do not
 * count. */
enum { MSGPACK_DEPTH_MAX = 1024 };
const uint8_t *msgpack_skip_within(const uint8_t *at, const uint8_t *end, int depth);

/* The same, but only of a value that every reader understands: without extensions, without arrays and maps as keys of
 * maps, and with at most `depth` arrays and maps inside each other. */
const uint8_t *msgpack_skip_plain(const uint8_t *at, const uint8_t *end, int depth);

/* Read an unsigned integer, however many bytes it has. Returns the position behind it; NULL if there is none. */
static inline const uint8_t *msgpack_unsigned(const uint8_t *at, const uint8_t *end, uint64_t *number)
{
    if (at >= end)
        return NULL;
    if (*at < 0x80) {
        *number = *at;
        return at + 1;
    }
    int width = *at >= 0xcc && *at <= 0xcf ? 1 << (*at - 0xcc) : 0;
    if (!width || end - at <= width)
        return NULL;
    *number = load_big_endian(at + 1, width);
    return at + 1 + width;
}

/* Read the head of an array. Returns the position of its first element; NULL if there is no array. */
const uint8_t *msgpack_array(const uint8_t *at, const uint8_t *end, uint32_t *count);

/* The same for a map: the number of its pairs, and the position of its first key. */
const uint8_t *msgpack_map(const uint8_t *at, const uint8_t *end, uint32_t *pairs);

typedef enum {
    MSGPACK_NIL, MSGPACK_BOOLEAN, MSGPACK_UNSIGNED, MSGPACK_NEGATIVE, MSGPACK_DOUBLE, MSGPACK_STRING, MSGPACK_BINARY,
    MSGPACK_OTHER, /* an array, a map or an extension, of which nothing is read */
} MsgpackType;

typedef struct {
    MsgpackType type;
    uint64_t number;      /* UNSIGNED: the value; NEGATIVE: the value as two's complement; BOOLEAN: 0 or 1 */
    double real;          /* DOUBLE */
    const uint8_t *bytes; /* STRING and BINARY */
    size_t size;
} MsgpackValue;

/* Read one value. Returns the position behind it, which for MSGPACK_OTHER is only behind its head; NULL if it does not
 * end before `end`, or is none. */
const uint8_t *msgpack_read(const uint8_t *at, const uint8_t *end, MsgpackValue *value);

#endif
