#include "key.h"

#include "msgpack.h"

#include <stdlib.h>
#include <string.h>

/* -- bytes that grow -- */

void key_buffer_free(KeyBuffer *buffer)
{
    if (buffer->data != buffer->first)
        free(buffer->data);
    buffer->data = NULL;
}

static uint8_t *grow(KeyBuffer *buffer, size_t count)
{
    if (!buffer->data) {
        buffer->data = buffer->first;
        buffer->room = sizeof buffer->first;
    }
    if (buffer->size + count > buffer->room) {
        size_t room = 2 * (buffer->size + count);
        uint8_t *data = buffer->data == buffer->first ? malloc(room) : realloc(buffer->data, room);
        if (!data)
            return NULL;
        if (buffer->data == buffer->first)
            memcpy(data, buffer->first, buffer->size);
        buffer->data = data;
        buffer->room = room;
    }
    uint8_t *at = buffer->data + buffer->size;
    buffer->size += count;
    return at;
}

/* -- values -- */

static void store_big_endian(uint8_t *at, uint64_t value, int width)
{
    for (int place = width; place--; value >>= 8)
        at[place] = (uint8_t)value;
}

static uint64_t double_bits(double value)
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
        if (!(to = grow(key, count + 1)))
            return -1;
        memcpy(to, at, count);
        to[count] = 1;
        at += count;
    }
    size_t count = (size_t)(end - at);
    if (!(to = grow(key, count + 2)))
        return -1;
    if (count)
        memcpy(to, at, count);
    to[count] = to[count + 1] = 0;
    return 1;
}

static int write_number(KeyBuffer *key, uint64_t number, int width)
{
    uint8_t *to = grow(key, (size_t)width);
    if (!to)
        return -1;
    store_big_endian(to, number, width);
    return 1;
}

static int write_integer(KeyBuffer *key, const MsgpackValue *value)
{
    const uint64_t half = (uint64_t)1 << 63;
    uint8_t *to = grow(key, 9);
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

static int write_any_number(KeyBuffer *key, const MsgpackValue *value)
{
    if (value->type != MSGPACK_DOUBLE && value->type != MSGPACK_UNSIGNED && value->type != MSGPACK_NEGATIVE)
        return 0;
    uint8_t *to = grow(key, 11);
    if (!to)
        return -1;
    if (value->type == MSGPACK_DOUBLE) {
        store_big_endian(to, double_bits(value->real), 8);
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
        return write_any_number(key, value);
    case KEY_DOUBLE:
        return value->type == MSGPACK_DOUBLE ? write_number(key, double_bits(value->real), 8) : 0;
    case KEY_BOOLEAN:
        return value->type == MSGPACK_BOOLEAN ? write_number(key, value->number, 1) : 0;
    case KEY_STRING:
        return value->type == MSGPACK_STRING ? write_text(key, value->bytes, value->size) : 0;
    case KEY_VARBINARY:
        return value->type == MSGPACK_BINARY ? write_text(key, value->bytes, value->size) : 0;
    }
    return 0;
}

/* -- the key of a row -- */

/* A row's fields, of which one is found faster from the one found before. */
typedef struct {
    const uint8_t *first, *at, *end;
    uint32_t count, number; /* `at` is where field `number` begins */
} Fields;

/* Find a field. Returns NULL if the row has none of that number. */
static const uint8_t *find_field(Fields *fields, uint32_t number)
{
    if (number >= fields->count)
        return NULL;
    if (number < fields->number) {
        fields->at = fields->first;
        fields->number = 0;
    }
    for (; fields->number < number; fields->number++)
        if (!(fields->at = msgpack_skip(fields->at, fields->end)))
            return fields->count = 0, NULL;
    return fields->at;
}

/* Write one part. Returns 1; 2 for nil; 0 if the row has no such key; -1 without memory. */
static int write_part(const KeyPart *part, Fields *fields, KeyBuffer *key)
{
    MsgpackValue value = {.type = MSGPACK_NIL};
    const uint8_t *at = find_field(fields, part->field_no);
    if (at && !msgpack_read(at, fields->end, &value))
        return 0;
    if (part->is_nullable) {
        uint8_t *to = grow(key, 1);
        if (!to)
            return -1;
        *to = value.type != MSGPACK_NIL;
        if (value.type == MSGPACK_NIL)
            return 2;
    }
    return write_value(key, (KeyType)part->type, &value);
}

int key_of_row(const KeyLayout *layout, const uint8_t *row, size_t size, KeyBuffer *key)
{
    Fields fields = {.end = row + size};
    key->size = 0;
    fields.first = fields.at = msgpack_array(row, fields.end, &fields.count);
    if (!fields.first)
        return 0;
    int has_nil = 0;
    for (int place = 0; place < layout->count; place++) {
        if (place == layout->own && layout->is_rest_for_nil && !has_nil)
            break;
        int done = write_part(layout->parts + place, &fields, key);
        if (done <= 0)
            return done;
        has_nil |= done == 2 && place < layout->own;
    }
    return 1;
}

/* -- hints -- */

/* The bytes of a hint, and how many there would be. */
typedef struct {
    uint64_t bits;
    size_t count;
} Hint;

static void add_byte(Hint *hint, uint8_t byte)
{
    if (hint->count < 8)
        hint->bits |= (uint64_t)byte << (56 - 8 * hint->count);
    hint->count++;
}

/* The lowest `width` bytes of a number, from 1 to 8. */
static void add_bytes(Hint *hint, uint64_t value, int width)
{
    if (hint->count < 8) {
        int shift = 64 - 8 * (int)hint->count - 8 * width;
        hint->bits |= shift >= 0 ? value << shift : value >> -shift;
    }
    hint->count += (size_t)width;
}

/* How many bytes a number has. */
static int byte_width(uint64_t number)
{
    return number ? (71 - __builtin_clzll(number)) / 8 : 0;
}

/* Eight bytes of a key, of which some may be missing at its end: they count as zeros. */
static uint64_t read_padded(const uint8_t *at, size_t size)
{
    uint64_t value = load_big_endian(at, size < 8 ? (int)size : 8);
    return size < 8 && size ? value << 8 * (8 - size) : value;
}

/* A number as its length and its significant bytes. `head` is what the length is counted from. */
static void add_number(Hint *hint, uint64_t number, uint8_t head)
{
    int width = byte_width(number);
    add_byte(hint, (uint8_t)(head + width));
    if (width)
        add_bytes(hint, number, width);
}

/* The nine bytes of an integer: negative ones have lengths that count down, and their bytes inverted. */
static void add_integer(Hint *hint, const uint8_t *at, size_t size)
{
    const uint64_t half = (uint64_t)1 << 63;
    uint64_t low = size > 1 ? read_padded(at + 1, size - 1) : 0;
    if (at[0] > 1 || (at[0] && low >= half)) { /* a bound above all integers */
        add_byte(hint, 0xff);
        hint->count = 9;
        return;
    }
    if (at[0] || low >= half) {
        add_number(hint, low - half, 0x80); /* with at[0], 2^64 + low - 2^63 */
        return;
    }
    uint64_t number = half - low - 1; /* 0 for -1 */
    int width = byte_width(number);
    add_byte(hint, (uint8_t)(0x7f - width));
    if (width)
        add_bytes(hint, ~number & (UINT64_MAX >> (64 - 8 * width)), width);
}

/* A number: its whole part, and whether anything follows that. What is negative or larger than a double is exact for
 * ends the hint, and so does what follows the whole part. Returns how many bytes of the key it takes. */
static size_t add_any_number(Hint *hint, const uint8_t *at, size_t size)
{
    const uint64_t sign = (uint64_t)1 << 63;
    uint64_t bits = read_padded(at, size), whole;
    double value;
    if (bits >= sign) {
        bits &= ~sign;
        memcpy(&value, &bits, sizeof value);
        if (value < 9007199254740992.0) {
            whole = (uint64_t)value;
            value -= (double)whole;
            int has_more = value != 0;
            for (size_t place = 8; place < size && place < 11; place++)
                has_more |= at[place];
            add_number(hint, whole, 0x80);
            add_byte(hint, has_more != 0);
            if (size >= 11 && !has_more)
                return 11;
            bits = (uint64_t)(value * 18446744073709551616.0);
        } else {
            add_byte(hint, 0xff);
        }
    }
    add_bytes(hint, bits, 8);
    hint->count = 9;
    return size;
}

/* Text up to the two bytes that end it. Returns how many bytes of the key it takes. */
static size_t add_text(Hint *hint, const uint8_t *at, size_t size)
{
    size_t place = 0;
    while (place < size && hint->count < 8) {
        add_byte(hint, at[place]);
        if (at[place++])
            continue;
        if (place == size)
            break;
        add_byte(hint, at[place]);
        if (!at[place++])
            return place;
    }
    hint->count = 9; /* no room for the rest, or no end: it is not exact */
    return size;
}

static size_t add_part(Hint *hint, KeyType type, const uint8_t *at, size_t size)
{
    switch (type) {
    case KEY_UNSIGNED:
        add_number(hint, read_padded(at, size), 1);
        return 8;
    case KEY_INTEGER:
        add_integer(hint, at, size);
        return 9;
    case KEY_NUMBER:
        return add_any_number(hint, at, size);
    case KEY_DOUBLE:
        add_bytes(hint, read_padded(at, size), 8);
        return 8;
    case KEY_BOOLEAN:
        add_byte(hint, at[0]);
        return 1;
    default:
        return add_text(hint, at, size);
    }
}

uint64_t key_hint(const KeyLayout *layout, const uint8_t *key, size_t size, int *is_exact)
{
    Hint hint = {0};
    *is_exact = 0;
    if (!layout)
        return read_padded(key, size);
    int has_nil = 0, count = layout->is_rest_for_nil ? layout->own : layout->count;
    for (int place = 0; place < count && hint.count < 8; place++) {
        const KeyPart *part = layout->parts + place;
        if (!size)
            return hint.bits;
        if (part->is_nullable) {
            add_byte(&hint, *key);
            size--;
            if (!*key++) {
                has_nil |= place < layout->own;
                if (has_nil)
                    count = layout->count;
                continue;
            }
            if (!size)
                return hint.bits;
        }
        size_t taken = add_part(&hint, (KeyType)part->type, key, size);
        if (taken > size)
            return hint.bits; /* the beginning of a key */
        key += taken;
        size -= taken;
        if (place == count - 1)
            *is_exact = !size && hint.count <= 8;
    }
    return hint.bits;
}
