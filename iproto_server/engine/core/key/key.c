#include "key.h"

#include "../values/msgpack.h"

#include <stdlib.h>
#include <string.h>

/* -- bytes that grow -- */

void key_buffer_free(KeyBuffer *buffer)
{
    if (buffer->data != buffer->first)
        free(buffer->data);
    buffer->data = NULL;
    buffer->size = 0;
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

int key_buffer_reserve(KeyBuffer *buffer, size_t room)
{
    size_t size = buffer->size;
    int done = room <= size || grow(buffer, room - size) ? 0 : -1;
    buffer->size = size;
    return done;
}

int key_buffer_set(KeyBuffer *buffer, const uint8_t *data, size_t size)
{
    buffer->size = 0;
    uint8_t *to = grow(buffer, size);
    if (!to)
        return -1;
    if (size)
        memcpy(to, data, size);
    return 0;
}

/* -- values -- */

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

int row_fields(RowFields *fields, const uint8_t *row, size_t size)
{
    fields->end = row + size;
    fields->first = fields->next = msgpack_array(row, fields->end, &fields->count);
    fields->read = 0;
    return fields->first != NULL;
}

/* Read a value, and find the position behind it. Returns NULL if it does not end before `end`, or is none. */
static const uint8_t *read_whole(const uint8_t *at, const uint8_t *end, MsgpackValue *value)
{
    const uint8_t *behind = msgpack_read(at, end, value);
    return behind && value->type == MSGPACK_OTHER ? msgpack_skip(at, end) : behind;
}

const MsgpackValue *row_field(RowFields *fields, uint32_t number, MsgpackValue *other)
{
    static const MsgpackValue nil = {.type = MSGPACK_NIL};
    if (number >= fields->count)
        return &nil;
    while (fields->read <= number && fields->read < ROW_FIELDS_READ) {
        if (!(fields->next = read_whole(fields->next, fields->end, fields->values + fields->read)))
            return fields->count = 0, NULL;
        fields->read++;
    }
    if (number < fields->read)
        return fields->values + number;
    const uint8_t *at = fields->next;
    for (uint32_t skipped = fields->read; at && skipped < number; skipped++)
        at = msgpack_skip(at, fields->end);
    return at && msgpack_read(at, fields->end, other) ? other : NULL;
}

/* Write one part. Returns 1; 2 for nil; 0 if the value is not of the part's type; -1 without memory. */
static int write_part(const KeyPart *part, const MsgpackValue *value, KeyBuffer *key)
{
    if (part->is_nullable) {
        uint8_t *to = grow(key, 1);
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

/* -- hints -- */

enum { HINT_BYTES = 16 };

/* The bytes of a hint, and how many there would be; more than fit, if no others may follow. */
typedef struct {
    uint8_t bytes[HINT_BYTES + 8]; /* zeros where none was added */
    size_t count;
} Hint;

enum { HINT_END = HINT_BYTES + 1 };

static inline void add_byte(Hint *hint, uint8_t byte)
{
    if (hint->count < HINT_BYTES)
        hint->bytes[hint->count] = byte;
    hint->count++;
}

/* The lowest `width` bytes of a number, from 1 to 8. */
static inline void add_bytes(Hint *hint, uint64_t value, int width)
{
    if (hint->count < HINT_BYTES)
        store_big_endian(hint->bytes + hint->count, value << (64 - 8 * width), 8);
    hint->count += (size_t)width;
}

static inline KeyHint hint_of(const Hint *hint, int is_wide)
{
    return (KeyHint){load_big_endian(hint->bytes, 8), is_wide ? load_big_endian(hint->bytes + 8, 8) : 0};
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

/* Negative integers have lengths that count down, and their bytes inverted. `number` is 0 for -1. */
static void add_negative(Hint *hint, uint64_t number)
{
    int width = byte_width(number);
    add_byte(hint, (uint8_t)(0x7f - width));
    if (width)
        add_bytes(hint, ~number & (UINT64_MAX >> (64 - 8 * width)), width);
}

/* The nine bytes of an integer. */
static void add_integer(Hint *hint, const uint8_t *at, size_t size)
{
    const uint64_t half = (uint64_t)1 << 63;
    uint64_t low = size > 1 ? read_padded(at + 1, size - 1) : 0;
    if (at[0] > 1 || (at[0] && low >= half)) { /* a bound above all integers */
        add_byte(hint, 0xff);
        hint->count = HINT_END;
    } else if (at[0] || low >= half) {
        add_number(hint, low - half, 0x80); /* with at[0], 2^64 + low - 2^63 */
    } else {
        add_negative(hint, half - low - 1);
    }
}

/* A number: its whole part, and whether anything follows that. A negative one, one above 2^64, and the rest behind a
 * whole part end the hint. Returns how many bytes of the key it takes. */
static size_t add_any_number(Hint *hint, const uint8_t *at, size_t size)
{
    enum { DIGITS = 76, BIAS = 1023 }; /* binary digits behind the first one; of the exponent */
    const uint64_t sign = (uint64_t)1 << 63;
    uint64_t bits = read_padded(at, size), rest = size > 8 ? read_padded(at + 8, size - 8) >> 40 : 0;
    int exponent = (int)(bits >> 52 & 0x7ff) - BIAS;
    if (bits < sign || exponent > 63) {
        if (bits >= sign)
            add_byte(hint, 0xff);
        add_bytes(hint, bits & ~sign, 8);
        hint->count = HINT_END;
        return size;
    }
    unsigned __int128 digits = (unsigned __int128)(bits & (UINT64_MAX >> 12)) << 24 | rest;
    unsigned __int128 all = digits | (unsigned __int128)1 << DIGITS, fraction = all;
    uint64_t whole = 0;
    int places = DIGITS - exponent; /* of `all`, behind the point */
    if (exponent == -BIAS && !digits) {
        fraction = 0;
    } else if (exponent >= 0) {
        whole = (uint64_t)(all >> places);
        fraction = all & (((unsigned __int128)1 << places) - 1);
    }
    add_number(hint, whole, 0x80);
    add_byte(hint, fraction != 0);
    if (size >= 11 && !fraction)
        return 11;
    if (places > 64)
        fraction = places - 64 > DIGITS ? 0 : fraction >> (places - 64);
    else
        fraction <<= 64 - places;
    add_bytes(hint, (uint64_t)fraction, 8);
    hint->count = HINT_END;
    return size;
}

/* Text up to the two bytes that end it. Returns how many bytes of the key it takes. */
static size_t add_text(Hint *hint, const uint8_t *at, size_t size)
{
    size_t place = 0;
    while (place < size && hint->count < HINT_BYTES) {
        add_byte(hint, at[place]);
        if (at[place++])
            continue;
        if (place == size)
            break;
        add_byte(hint, at[place]);
        if (!at[place++])
            return place;
    }
    hint->count = HINT_END; /* no room for the rest, or no end: it is not exact */
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

int key_needs_wide_hints(const KeyLayout *layout)
{
    const KeyPart *first = layout->parts;
    return layout->count > 1 || first->is_nullable || first->type == KEY_NUMBER || first->type > KEY_BOOLEAN;
}

/* Returns whether the hint is all of a whole key. */
static int make_hint(const KeyLayout *layout, const uint8_t *key, size_t size, Hint *hint)
{
    int has_nil = 0, count = layout->is_rest_for_nil ? layout->own : layout->count, place = 0;
    for (; place < count && hint->count < HINT_BYTES; place++) {
        const KeyPart *part = layout->parts + place;
        if (!size)
            return 0;
        if (part->is_nullable) {
            add_byte(hint, *key);
            size--;
            if (!*key++) {
                has_nil |= place < layout->own;
                if (has_nil)
                    count = layout->count;
                continue;
            }
            if (!size)
                return 0;
        }
        size_t taken = add_part(hint, (KeyType)part->type, key, size);
        if (taken > size)
            return 0; /* the beginning of a key */
        key += taken;
        size -= taken;
    }
    return place == count && !size;
}

KeyHint key_hint(const KeyLayout *layout, const uint8_t *key, size_t size, int *is_exact)
{
    if (!layout) {
        *is_exact = 0;
        return (KeyHint){read_padded(key, size), 0};
    }
    Hint hint = {0};
    int is_whole = make_hint(layout, key, size, &hint);
    *is_exact = is_whole && hint.count <= (layout->is_wide ? HINT_BYTES : HINT_BYTES / 2);
    return hint_of(&hint, layout->is_wide);
}

/* Add a value as `add_part` adds its key. Returns 0 if the value is not of the type. */
static int add_value(Hint *hint, KeyType type, const MsgpackValue *value)
{
    KeyBuffer key = {0};
    switch (type) {
    case KEY_UNSIGNED:
        if (value->type != MSGPACK_UNSIGNED)
            return 0;
        add_number(hint, value->number, 1);
        return 1;
    case KEY_INTEGER:
        if (value->type == MSGPACK_UNSIGNED)
            add_number(hint, value->number, 0x80);
        else if (value->type == MSGPACK_NEGATIVE)
            add_negative(hint, ~value->number);
        else
            return 0;
        return 1;
    case KEY_NUMBER:
        if (value->type == MSGPACK_UNSIGNED) {
            add_number(hint, value->number, 0x80);
            add_byte(hint, 0);
            return 1;
        }
        if (write_any_number(&key, value) <= 0)
            return 0;
        add_any_number(hint, key.data, key.size);
        return 1;
    case KEY_DOUBLE:
        if (value->type != MSGPACK_DOUBLE)
            return 0;
        add_bytes(hint, double_bits(value->real), 8);
        return 1;
    case KEY_BOOLEAN:
        if (value->type != MSGPACK_BOOLEAN)
            return 0;
        add_byte(hint, (uint8_t)value->number);
        return 1;
    default:
        if (value->type != (type == KEY_STRING ? MSGPACK_STRING : MSGPACK_BINARY))
            return 0;
        for (size_t place = 0; place < value->size && hint->count < HINT_BYTES; place++) {
            add_byte(hint, value->bytes[place]);
            if (!value->bytes[place])
                add_byte(hint, 1);
        }
        add_byte(hint, 0);
        add_byte(hint, 0);
        return 1;
    }
}

int key_exact_hint(const KeyLayout *layout, RowFields *fields, KeyHint *made)
{
    Hint hint = {0};
    int has_nil = 0;
    for (int place = 0; place < layout->count; place++) {
        const KeyPart *part = layout->parts + place;
        if (place == layout->own && layout->is_rest_for_nil && !has_nil)
            break;
        MsgpackValue other;
        const MsgpackValue *value = row_field(fields, part->field_no, &other);
        if (!value)
            return 0;
        if (part->is_nullable)
            add_byte(&hint, value->type != MSGPACK_NIL);
        if (part->is_nullable && value->type == MSGPACK_NIL)
            has_nil |= place < layout->own;
        else if (!add_value(&hint, (KeyType)part->type, value))
            return 0;
        if (hint.count > (size_t)(layout->is_wide ? HINT_BYTES : HINT_BYTES / 2))
            return 0;
    }
    *made = hint_of(&hint, layout->is_wide);
    return 1;
}
