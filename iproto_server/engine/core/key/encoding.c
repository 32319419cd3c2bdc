#include "key.h"

#include <string.h>

/* -- values -- */

uint64_t key_double_bits(double value)
{
    uint64_t bits;
    if (value != value)
        return 0;
    if (value == 0)
        return (uint64_t)1 << 63;
    memcpy(&bits, &value, sizeof bits);
    return value > 0 ? bits | (uint64_t)1 << 63 : ~bits;
}

static int write_text(KeyBuffer *key, const uint8_t *at, size_t size)
{
    const uint8_t *end = at + size, *zero;
    uint8_t *to;
    while (size && (zero = memchr(at, 0, (size_t)(end - at)))) {
        size_t count = (size_t)(zero - at) + 1;
        if (!(to = key_buffer_grow(key, count + 1)))
            return -1;
        memcpy(to, at, count);
        to[count] = 1;
        at += count;
    }
    size_t count = (size_t)(end - at);
    if (!(to = key_buffer_grow(key, count + 2)))
        return -1;
    if (count)
        memcpy(to, at, count);
    to[count] = to[count + 1] = 0;
    return 1;
}

static int write_number(KeyBuffer *key, uint64_t number, int width)
{
    uint8_t *to = key_buffer_grow(key, (size_t)width);
    if (!to)
        return -1;
    store_big_endian(to, number, width);
    return 1;
}

static int write_integer(KeyBuffer *key, const MsgpackValue *value)
{
    const uint64_t half = (uint64_t)1 << 63;
    uint8_t *to = key_buffer_grow(key, 9);
    if (!to)
        return -1;
    to[0] = value->type == MSGPACK_UNSIGNED && value->number >= half;
    store_big_endian(to + 1, value->number + half, 8);
    return 1;
}

/* A positive integer as the largest double that is not above it, and 16 bits of what is left. */
static void store_positive(uint8_t *to, uint64_t number)
{
    int bits = 64 - __builtin_clzll(number);
    unsigned __int128 key = ((unsigned __int128)(unsigned)(bits + 3069) << 76) + ((unsigned __int128)number << (77 - bits));
    store_big_endian(to, (uint64_t)(key >> 24), 8);
    store_big_endian(to + 8, (uint64_t)key & 0xffffff, 3);
}

int key_write_number(KeyBuffer *key, const MsgpackValue *value)
{
    if (value->type != MSGPACK_DOUBLE && value->type != MSGPACK_UNSIGNED && value->type != MSGPACK_NEGATIVE)
        return 0;
    uint8_t *to = key_buffer_grow(key, 11);
    if (!to)
        return -1;
    if (value->type == MSGPACK_DOUBLE) {
        store_big_endian(to, key_double_bits(value->real), 8);
        memset(to + 8, value->real < 0 ? 0xff : 0, 3);
    } else if (!value->number) {
        memset(to, 0, 11);
        to[0] = 0x80;
    } else {
        int is_negative = value->type == MSGPACK_NEGATIVE;
        store_positive(to, is_negative ? -value->number : value->number);
        for (int place = 0; is_negative && place < 11; place++)
            to[place] ^= 0xff;
    }
    return 1;
}

/* Returns 1; 0 if the value is not of the type; -1 without memory. */
static int write_value(KeyBuffer *key, KeyType type, const MsgpackValue *value)
{
    switch (type) {
    case KEY_UNSIGNED:
        return value->type == MSGPACK_UNSIGNED ? write_number(key, value->number, 8) : 0;
    case KEY_INTEGER:
        return value->type == MSGPACK_UNSIGNED || value->type == MSGPACK_NEGATIVE ? write_integer(key, value) : 0;
    case KEY_NUMBER:
        return key_write_number(key, value);
    case KEY_DOUBLE:
        return value->type == MSGPACK_DOUBLE ? write_number(key, key_double_bits(value->real), 8) : 0;
    case KEY_BOOLEAN:
        return value->type == MSGPACK_BOOLEAN ? write_number(key, value->number, 1) : 0;
    case KEY_STRING:
        return value->type == MSGPACK_STRING ? write_text(key, value->bytes, value->size) : 0;
    case KEY_VARBINARY:
        return value->type == MSGPACK_BINARY ? write_text(key, value->bytes, value->size) : 0;
    }
    return 0;
}

/* -- keys -- */

/* Write one part. Returns 1; 2 for nil; 0 if the value is not of the part's type; -1 without memory. */
static int write_part(const KeyPart *part, const MsgpackValue *value, KeyBuffer *key)
{
    if (part->is_nullable) {
        uint8_t *to = key_buffer_grow(key, 1);
        if (!to)
            return -1;
        *to = value->type != MSGPACK_NIL;
        if (value->type == MSGPACK_NIL)
            return 2;
    }
    return write_value(key, (KeyType)part->type, value);
}

/* The same, of a row. */
static int write_field(const KeyPart *part, RowFields *fields, KeyBuffer *key)
{
    MsgpackValue other;
    const MsgpackValue *value = row_field(fields, part->field_no, &other);
    return value ? write_part(part, value, key) : 0;
}

int key_of_fields(const KeyLayout *layout, RowFields *fields, KeyBuffer *key)
{
    return key_beginning(layout, fields, SIZE_MAX, key);
}

int key_beginning(const KeyLayout *layout, RowFields *fields, size_t size, KeyBuffer *key)
{
    int has_nil = 0;
    key->size = 0;
    for (int place = 0; place < layout->count && key->size < size; place++) {
        if (place == layout->own && layout->is_rest_for_nil && !has_nil)
            break;
        int done = write_field(layout->parts + place, fields, key);
        if (done <= 0)
            return done;
        has_nil |= done == 2 && place < layout->own;
    }
    return 1;
}

int key_of_row(const KeyLayout *layout, const uint8_t *row, size_t size, KeyBuffer *key)
{
    RowFields fields;
    return row_fields(&fields, row, size) ? key_of_fields(layout, &fields, key) : 0;
}

int key_of_values(const KeyLayout *layout, const uint8_t *values, size_t size, KeyBuffer *key, int *count)
{
    const uint8_t *end = values + size;
    uint32_t given;
    const uint8_t *at = msgpack_array(values, end, &given);
    key->size = 0;
    if (!at || given > layout->own)
        return 0;
    for (uint32_t place = 0; place < given; place++) {
        MsgpackValue value;
        if (!(at = msgpack_read(at, end, &value)) || value.type == MSGPACK_OTHER)
            return 0;
        int done = write_part(layout->parts + place, &value, key);
        if (done <= 0)
            return done;
    }
    *count = (int)given;
    return at == end;
}
