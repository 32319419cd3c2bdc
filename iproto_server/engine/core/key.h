/* Keys of rows as bytes that sort as the rows do.
 *
 * The encoding of a value (box/key/key_encoding.py describes it): unsigned 8 bytes, big-endian; integer 9; double 8;
 * boolean one; number 10, the digits of a decimal's rest, and 00, all of it inverted for a negative one; string and
 * varbinary their bytes, with 00 as 00 01, and 00 00 at the end. A nullable part begins with 00 for nil, and with 01 and
 * the value otherwise.
 */
#ifndef IPROTO_ENGINE_KEY_H
#define IPROTO_ENGINE_KEY_H

#include <stddef.h>
#include <stdint.h>

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
    KeyPart parts[KEY_PARTS_MAX];
} KeyLayout;

/* Bytes that grow. All zeros is an empty one. */
typedef struct {
    uint8_t *data;
    size_t size, room;
    uint8_t first[120];
} KeyBuffer;

void key_buffer_free(KeyBuffer *buffer);

/* Encode a row's key. Returns 1; 0 if the row has no such key, or one of a decimal; -1 without memory. */
int key_of_row(const KeyLayout *layout, const uint8_t *row, size_t size, KeyBuffer *key);

/* The first eight bytes of a shorter form of a key: of two keys, or beginnings of keys, the smaller one never has the
 * larger hint. `is_exact`: whether a whole key with the same hint is the same key. */
uint64_t key_hint(const KeyLayout *layout, const uint8_t *key, size_t size, int *is_exact);

#endif
