/* Keys of rows as bytes that sort as the rows do.
 *
 * The encoding of a value (box/key/key_encoding.py describes it): unsigned 8 bytes, big-endian; integer 9; double 8;
 * boolean one; number 10, the digits of a decimal's rest, and 00, all of it inverted for a negative one; string and
 * varbinary their bytes, with 00 as 00 01, and 00 00 at the end. A nullable part begins with 00 for nil, and with 01 and
 * the value otherwise.
 */
#ifndef IPROTO_ENGINE_KEY_H
#define IPROTO_ENGINE_KEY_H

#include "../values/msgpack.h"
#include "buffer.h"

enum { KEY_PARTS_MAX = 16 };

typedef enum { KEY_UNSIGNED, KEY_INTEGER, KEY_NUMBER, KEY_DOUBLE, KEY_BOOLEAN, KEY_STRING, KEY_VARBINARY } KeyType;

typedef struct {
    uint32_t field_no; /* from 0 */
    uint8_t type;      /* a KeyType */
    uint8_t is_nullable;
} KeyPart;

/* The key of a row: its first `own` parts, and the others always, or only if one of its own is nil. */
typedef struct {
    uint8_t own, count, is_rest_for_nil;
    uint8_t is_wide; /* whether hints have 16 bytes, and not 8 */
    KeyPart parts[KEY_PARTS_MAX];
} KeyLayout;

/* A row's fields, as far as they were read: several keys of a row are made from the same ones. */
enum { ROW_FIELDS_READ = 16 };
typedef struct {
    const uint8_t *first, *next, *end; /* the first field, and the one behind those in `values` */
    uint32_t count, read;
    MsgpackValue values[ROW_FIELDS_READ];
} RowFields;

/* Begin with a row. Returns 0 if it is no array. */
int row_fields(RowFields *fields, const uint8_t *row, size_t size);

/* A field's value; nil if the row has none of that number. `other` is room for one that is not kept. Returns NULL if the
 * row is not whole up to there. */
const MsgpackValue *row_field(RowFields *fields, uint32_t number, MsgpackValue *other);

/* The bits of a double, in the order of doubles. */
uint64_t key_double_bits(double value);

/* Encode a number of any type. Returns as `key_of_fields`. */
int key_write_number(KeyBuffer *key, const MsgpackValue *value);

/* Encode a row's key. Returns 1; 0 if the row has no such key, or one of a decimal; -1 without memory. */
int key_of_fields(const KeyLayout *layout, RowFields *fields, KeyBuffer *key);

/* The same of so many of the first parts that the key has `size` bytes, if there are so many. */
int key_beginning(const KeyLayout *layout, RowFields *fields, size_t size, KeyBuffer *key);
int key_of_row(const KeyLayout *layout, const uint8_t *row, size_t size, KeyBuffer *key);

/* Encode the key, or the beginning of one, whose values are in an array. `*count` becomes their number. Returns as
 * `key_of_row`; 0, too, if there are more values than the layout's own parts. */
int key_of_values(const KeyLayout *layout, const uint8_t *values, size_t size, KeyBuffer *key, int *count);

/* The first bytes of a shorter form of a key: of two keys, or beginnings of keys, the smaller one never has the larger
 * hint. A hint of 8 bytes has zeros in `low`. */
typedef struct {
    uint64_t high, low;
} KeyHint;

/* `is_exact`: whether a whole key with the same hint is the same key. */
KeyHint key_hint(const KeyLayout *layout, const uint8_t *key, size_t size, int *is_exact);

/* The hint of a row's key, made without the key. Returns 0 if it is not exact, or the row has no such key. */
int key_exact_hint(const KeyLayout *layout, RowFields *fields, KeyHint *hint);

/* Whether hints of 8 bytes are often the same for different keys: they are exact for a single integer. */
int key_needs_wide_hints(const KeyLayout *layout);

#endif
