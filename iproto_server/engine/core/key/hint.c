#include "key.h"

#include <string.h>

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
        if (key_write_number(&key, value) <= 0)
            return 0;
        add_any_number(hint, key.data, key.size);
        return 1;
    case KEY_DOUBLE:
        if (value->type != MSGPACK_DOUBLE)
            return 0;
        add_bytes(hint, key_double_bits(value->real), 8);
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
