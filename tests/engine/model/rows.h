/* Rows of the random test of spaces, their keys, and plain arrays of them that the spaces are compared with. */
#ifndef MODEL_ROWS_H
#define MODEL_ROWS_H

#include "index/index.h"
#include "../random_rows.h"

enum { ID, NAME, SCORE, TAGS, COUNT, FIELDS };
enum { SPACES = 2, INDEXES = 5, ROWS = 40, TAGS_MAX = 3, ROW_BYTES = 160 };

/* A score that is a decimal has a key that only the hook can make; so do tags, of which each is a key. */
typedef enum { NO_SCORE, WHOLE_SCORE, REAL_SCORE, DECIMAL_SCORE } ScoreKind;

typedef struct {
    uint64_t id;
    int name, score, tag_count, has_count;
    ScoreKind kind;
    uint8_t tags[TAGS_MAX];
    int64_t count;
    int is_bad; /* the name is no string */
    uint8_t data[ROW_BYTES];
    size_t size;
} Row;

/* What there is in the spaces, in no order, and what effects of rows add up to. */
typedef struct {
    Row rows[SPACES][ROWS];
    int count[SPACES];
    long effects;
} Model;

/* -- packing and reading -- */

static inline size_t name_of(const Row *row, char *text)
{
    return (size_t)sprintf(text, row->name % 3 ? "%d" : "a name that is longer than a hint %d", row->name);
}

static inline void put_name(Packed *packed, const Row *row)
{
    char text[50];
    if (row->is_bad)
        put_byte(packed, 0xc3);
    else
        put_string(packed, text, (uint8_t)name_of(row, text));
}

static inline void put_score(Packed *packed, const Row *row)
{
    switch (row->kind) {
    case NO_SCORE: put_byte(packed, 0xc0); break;
    case WHOLE_SCORE: put_integer(packed, row->score); break;
    case REAL_SCORE: put_double(packed, row->score); break;
    default: put_bytes(packed, "\xd4\x01", 2), put_byte(packed, (uint8_t)row->score);
    }
}

static inline void put_tags(Packed *packed, const Row *row)
{
    put_byte(packed, (uint8_t)(0x90 + row->tag_count));
    put_bytes(packed, row->tags, (size_t)row->tag_count);
}

static inline void put_count(Packed *packed, const Row *row)
{
    if (row->has_count)
        put_integer(packed, row->count);
    else
        put_byte(packed, 0xc0);
}

static inline void pack(Row *row)
{
    Packed packed = {.size = 0};
    put_byte(&packed, 0x90 + FIELDS);
    put_unsigned(&packed, row->id);
    put_name(&packed, row);
    put_score(&packed, row);
    put_tags(&packed, row);
    put_count(&packed, row);
    CHECK(packed.size <= sizeof row->data);
    memcpy(row->data, packed.data, row->size = packed.size);
}

static inline Row read_row(const uint8_t *data, size_t size)
{
    const uint8_t *end = data + size, *at = data + 1;
    MsgpackValue value;
    Row row = {0};
    CHECK(*data == 0x90 + FIELDS && size <= sizeof row.data);
    memcpy(row.data, data, row.size = size);
    at = msgpack_read(at, end, &value);
    row.id = value.number;
    at = msgpack_read(at, end, &value);
    row.is_bad = value.type != MSGPACK_STRING;
    char text[50] = {0};
    if (!row.is_bad)
        memcpy(text, value.bytes, value.size), row.name = atoi(text + strcspn(text, "0123456789"));
    if (*at == 0xd4) {
        row.kind = DECIMAL_SCORE;
        row.score = (int8_t)at[2];
        at += 3;
    } else {
        at = msgpack_read(at, end, &value);
        row.kind = value.type == MSGPACK_NIL ? NO_SCORE : value.type == MSGPACK_DOUBLE ? REAL_SCORE : WHOLE_SCORE;
        row.score = value.type == MSGPACK_DOUBLE ? (int)value.real : (int)(int64_t)value.number;
    }
    row.tag_count = *at++ - 0x90;
    memcpy(row.tags, at, (size_t)row.tag_count);
    at = msgpack_read(at + row.tag_count, end, &value);
    row.has_count = value.type != MSGPACK_NIL;
    row.count = row.has_count ? (int64_t)value.number : 0;
    CHECK(at == end);
    return row;
}

static inline Row any_row(int space)
{
    Row row = {.id = 1 + below(40), .name = (int)below(60), .score = (int)below(40) - 20, .tag_count = (int)below(TAGS_MAX + 1),
               .kind = (ScoreKind)(space + below(4u - (unsigned)space)), .has_count = below(3) != 0,
               .count = (int64_t)below(50) - 25, .is_bad = !below(60)};
    for (int tag = 0; tag < row.tag_count; tag++)
        row.tags[tag] = (uint8_t)below(space ? 120 : 20);
    if (row.kind == NO_SCORE)
        row.score = 0;
    if (!row.has_count)
        row.count = 0;
    pack(&row);
    return row;
}

/* Whether two rows have the same values, which may be packed in different ways. */
static inline int is_same_row(const Row *one, const Row *other)
{
    return one->id == other->id && one->name == other->name && one->score == other->score && one->kind == other->kind
        && one->tag_count == other->tag_count && !memcmp(one->tags, other->tags, (size_t)one->tag_count)
        && one->has_count == other->has_count && one->count == other->count && one->is_bad == other->is_bad;
}

/* -- order -- */

static inline int compare_numbers(int64_t one, int64_t other)
{
    return (one > other) - (one < other);
}

static inline int compare_field(int field, const Row *one, const Row *other)
{
    char left[50], right[50];
    switch (field) {
    case ID: return compare_numbers((int64_t)one->id, (int64_t)other->id);
    case NAME: return name_of(one, left), name_of(other, right), strcmp(left, right);
    case SCORE:
        if (!one->kind || !other->kind)
            return (one->kind != NO_SCORE) - (other->kind != NO_SCORE);
        return compare_numbers(one->score, other->score);
    default:
        if (!one->has_count || !other->has_count)
            return one->has_count - other->has_count;
        return compare_numbers(one->count, other->count);
    }
}

/* -- indexes -- */

typedef struct {
    int count, is_unique, has_tags; /* the number of keys' own fields; the keys may be tags */
    int fields[2];
    KeyLayout layout;
} TestIndex;

/* The first is the primary one; a test index without fields is none. */
static TestIndex test_indexes[SPACES][INDEXES] = {
    {{1, 1, 0, {ID}, {1, 1, 0, 0, {{ID, KEY_UNSIGNED, 0}}}},
     {1, 1, 0, {NAME}, {1, 1, 0, 0, {{NAME, KEY_STRING, 0}}}},
     {1, 0, 0, {SCORE}, {1, 2, 0, 0, {{SCORE, KEY_NUMBER, 1}, {ID, KEY_UNSIGNED, 0}}}},
     {1, 1, 0, {COUNT}, {1, 2, 1, 0, {{COUNT, KEY_INTEGER, 1}, {ID, KEY_UNSIGNED, 0}}}}, /* unique but for nil */
     {1, 0, 1, {TAGS}, {0}}},
    {{1, 1, 0, {SCORE}, {1, 1, 0, 0, {{SCORE, KEY_NUMBER, 0}}}},
     {1, 1, 0, {ID}, {1, 1, 0, 0, {{ID, KEY_UNSIGNED, 0}}}},
     {1, 1, 1, {TAGS}, {0}},
     {2, 0, 0, {NAME, SCORE}, {1, 2, 0, 0, {{NAME, KEY_STRING, 0}, {SCORE, KEY_NUMBER, 0}}}}},
};

static inline int index_count(int space)
{
    return space ? 4 : 5;
}

/* The hook of all indexes. */
static inline int keys_of(void *context, RowRef *ref, const uint8_t *primary_key, size_t primary_size, KeyList *keys)
{
    const TestIndex *index = context;
    Row row = read_row(ref->data, ref->size);
    KeyBuffer key = {0};
    int done = 0;
    for (int tag = 0; index->has_tags && tag < row.tag_count && done == 0; tag++) {
        uint8_t bytes[100] = {row.tags[tag]};
        size_t size = index->is_unique ? 0 : primary_size;
        memcpy(bytes + 1, primary_key, size);
        if (key_list_find(keys, bytes, 1 + size) < 0)
            done = key_list_add(keys, bytes, 1 + size);
    }
    if (index->has_tags)
        return done;
    if (row.kind == DECIMAL_SCORE)
        row.kind = WHOLE_SCORE;
    pack(&row);
    done = key_of_row(&index->layout, row.data, row.size, &key) == 1 ? key_list_add(keys, key.data, key.size) : -1;
    key_buffer_free(&key);
    return done;
}

/* -- the model -- */

static inline int is_same_key(int space, const Row *one, const Row *other)
{
    return !compare_field(test_indexes[space][0].fields[0], one, other);
}

static inline int find_row(const Model *model, int space, const Row *row)
{
    for (int place = 0; place < model->count[space]; place++)
        if (is_same_key(space, model->rows[space] + place, row))
            return place;
    return -1;
}

static inline void put_row(Model *model, int space, const Row *row)
{
    int place = find_row(model, space, row);
    CHECK(model->count[space] < ROWS || place >= 0);
    model->rows[space][place < 0 ? model->count[space]++ : place] = *row;
}

static inline void take_row(Model *model, int space, const Row *row)
{
    int place = find_row(model, space, row);
    CHECK(place >= 0);
    model->rows[space][place] = model->rows[space][--model->count[space]];
}

static inline int have_same_tag(const Row *one, const Row *other)
{
    for (int tag = 0; tag < one->tag_count; tag++)
        if (memchr(other->tags, one->tags[tag], (size_t)other->tag_count))
            return 1;
    return 0;
}

/* Whether another row than that with its primary key has a key of a row in a unique secondary index. */
static inline int is_taken_in(const Model *model, int space, int number, const Row *row)
{
    const TestIndex *index = &test_indexes[space][number];
    if (!index->is_unique || (index->fields[0] == COUNT && !row->has_count))
        return 0;
    for (const Row *other = model->rows[space]; other < model->rows[space] + model->count[space]; other++) {
        int is_same = index->has_tags ? have_same_tag(row, other) : !compare_field(index->fields[0], row, other);
        if (is_same && !is_same_key(space, row, other))
            return 1;
    }
    return 0;
}

static inline int is_taken(const Model *model, int space, const Row *row)
{
    for (int number = 1; number < index_count(space); number++)
        if (is_taken_in(model, space, number, row))
            return 1;
    return 0;
}

#endif
