/* The rules of the public API, one check for each.
 *
 *     test_engine_api COUNT SEED
 *
 * COUNT is the number of rows in the larger checks.
 */
#include "memory/budget.h"
#include "iproto_engine.h"
#include "random_rows.h"
#include "memory/slab.h"

/* MessagePack that is written as a string, and its size. */
#define BYTES(text) (text), sizeof(text) - 1

static unsigned long checks;

/* Count a check, and make it. */
#define RULE(condition)   \
    do {                  \
        checks++;         \
        CHECK(condition); \
    } while (0)

#define SAME(one, other) RULE((one) == (other))
#define SAYS(text) RULE(!strcmp(iproto_error_message(), text))
#define FAILS(call, expected)                                \
    do {                                                     \
        RULE((call) == -1);                                  \
        CHECK(iproto_error_code() == IPROTO_ER_##expected);  \
    } while (0)
#define IS_REFUSED(call, expected)                           \
    do {                                                     \
        RULE(!(call));                                       \
        CHECK(iproto_error_code() == IPROTO_ER_##expected);  \
    } while (0)

static IprotoEngine *engine;
static IprotoSpace *space;
static IprotoIndex *primary, *by_name, *by_rank;
static IprotoTuple tuple;

static const IprotoField FORMAT[] = {
    {"id", IPROTO_UNSIGNED, 0}, {"name", IPROTO_STRING, 0}, {"rank", IPROTO_INTEGER, 1}, {"share", IPROTO_DOUBLE, 1},
};
enum { FIELDS = sizeof FORMAT / sizeof *FORMAT };

/* A space of (id, name, rank, share): name is unique, rank is not, and may be nil. */
static void begin(void)
{
    static const IprotoPart id[] = {{0, IPROTO_UNSIGNED, 0}}, name[] = {{1, IPROTO_STRING, 0}},
                            rank[] = {{2, IPROTO_INTEGER, 1}, {1, IPROTO_STRING, 0}};
    CHECK(engine = iproto_engine_open());
    CHECK(space = iproto_space_create(engine, 512, "tasks", FORMAT, FIELDS, 0));
    CHECK(primary = iproto_index_create(space, "primary", IPROTO_TREE, 1, id, 1));
    CHECK(by_name = iproto_index_create(space, "name", IPROTO_TREE, 1, name, 1));
    CHECK(by_rank = iproto_index_create(space, "rank", IPROTO_TREE, 0, rank, 2));
}

static void end(void)
{
    iproto_engine_close(engine);
    CHECK(slab_used() == 0 && budget_indexes() == 0);
}

static int insert(const char *row, size_t size)
{
    return iproto_space_insert(space, row, size, NULL);
}

static int is_tuple(const char *row, size_t size)
{
    return tuple.size == size && !memcmp(tuple.data, row, size);
}

/* The first fields of the rows of a cursor, as text: one character each. */
static const char *walk(IprotoIndex *index, IprotoIterator iterator, const char *key, size_t size)
{
    static char seen[100];
    size_t count = 0;
    IprotoCursor *cursor = iproto_cursor_open(index, iterator, key, size);
    CHECK(cursor);
    int done;
    while ((done = iproto_cursor_next(cursor, &tuple)) > 0 && count < sizeof seen - 1) {
        uint64_t id;
        CHECK(iproto_tuple_unsigned(&tuple, 0, &id) == 1);
        seen[count++] = (char)('0' + id);
    }
    CHECK(done == 0);
    seen[count] = 0;
    CHECK(iproto_index_count(index, iterator, key, size) == (int64_t)count);
    iproto_cursor_close(cursor);
    return seen;
}

#define WALK(index, iterator, key, expected) RULE(!strcmp(walk(index, iterator, BYTES(key)), expected))

/* -- engines and spaces -- */

static void check_version(void)
{
    SAME(iproto_engine_version(), IPROTO_ENGINE_VERSION);
    SAME(iproto_engine_version() >> 16, IPROTO_ENGINE_VERSION_MAJOR);
    SAME(iproto_engine_version() & 0xffff, IPROTO_ENGINE_VERSION_MINOR);
}

static void check_spaces(void)
{
    static char long_name[IPROTO_NAME_MAX + 2];
    memset(long_name, 'x', sizeof long_name - 1);
    begin();
    SAME(iproto_space_open(engine, "tasks"), space);
    SAME(iproto_space_open_by_id(engine, 512), space);
    IS_REFUSED(iproto_space_open(engine, "none"), NO_SUCH_SPACE);
    SAYS("Space 'none' does not exist");
    IS_REFUSED(iproto_space_open_by_id(engine, 1), NO_SUCH_SPACE);
    IS_REFUSED(iproto_space_create(engine, 513, "tasks", NULL, 0, 0), SPACE_EXISTS);
    IS_REFUSED(iproto_space_create(engine, 512, "others", NULL, 0, 0), SPACE_EXISTS);
    IS_REFUSED(iproto_space_create(engine, 513, "", NULL, 0, 0), CREATE_SPACE);
    IS_REFUSED(iproto_space_create(engine, 513, long_name, NULL, 0, 0), CREATE_SPACE);
    IS_REFUSED(iproto_space_create(engine, 513, "others", FORMAT, FIELDS, FIELDS - 1), CREATE_SPACE);
    IS_REFUSED(iproto_space_create(engine, 513, "others", FORMAT, IPROTO_FIELDS_MAX + 1, 0), CREATE_SPACE);
    IprotoField fields[2] = {{"a", IPROTO_ANY, 0}, {"a", IPROTO_ANY, 0}};
    IS_REFUSED(iproto_space_create(engine, 513, "others", fields, 2, 0), SPACE_FIELD_IS_DUPLICATE);
    fields[1].name = NULL;
    IS_REFUSED(iproto_space_create(engine, 513, "others", fields, 2, 0), WRONG_SPACE_FORMAT);
    fields[1] = (IprotoField){"b", (IprotoFieldType)99, 0};
    IS_REFUSED(iproto_space_create(engine, 513, "others", fields, 2, 0), WRONG_SPACE_FORMAT);
    fields[1].type = (IprotoFieldType)-1;
    IS_REFUSED(iproto_space_create(engine, 513, "others", fields, 2, 0), WRONG_SPACE_FORMAT);
    IprotoSpace *other = iproto_space_create(engine, 513, "others", NULL, 0, 0);
    FAILS(iproto_space_insert(other, BYTES("\x91\x01"), NULL), NO_SUCH_INDEX_ID);
    SAME(iproto_space_len(other), 0);
    SAME(iproto_space_drop(other), 0);
    IS_REFUSED(iproto_space_open(engine, "others"), NO_SUCH_SPACE);
    CHECK(iproto_cursor_open(primary, IPROTO_ALL, NULL, 0)); /* is closed with its space */
    CHECK(insert(BYTES("\x92\x01\xa1" "a")) == 0);
    SAME(iproto_space_drop(space), 0);
    end();
}

static void check_indexes(void)
{
    IprotoPart parts[17] = {{2, IPROTO_INTEGER, 1}, {3, IPROTO_DOUBLE, 1}};
    begin();
    SAME(iproto_index_open(space, "rank"), by_rank);
    SAME(iproto_index_open_by_id(space, 1), by_name);
    IS_REFUSED(iproto_index_open(space, "none"), NO_SUCH_INDEX_NAME);
    IS_REFUSED(iproto_index_open_by_id(space, 3), NO_SUCH_INDEX_ID);
    IS_REFUSED(iproto_index_create(space, "rank", IPROTO_TREE, 0, parts, 1), INDEX_EXISTS_IN_SPACE);
    IS_REFUSED(iproto_index_create(space, "hash", IPROTO_HASH, 1, parts, 1), INDEX_TYPE);
    IS_REFUSED(iproto_index_create(space, "", IPROTO_TREE, 1, parts, 1), MODIFY_INDEX);
    IS_REFUSED(iproto_index_create(space, "more", IPROTO_TREE, 1, parts, 0), MODIFY_INDEX);
    IS_REFUSED(iproto_index_create(space, "more", IPROTO_TREE, 1, parts, 17), MODIFY_INDEX);
    IS_REFUSED(iproto_index_create(space, "more", IPROTO_TREE, 1, NULL, 1), MODIFY_INDEX);
    parts[1] = parts[0];
    IS_REFUSED(iproto_index_create(space, "more", IPROTO_TREE, 1, parts, 2), MODIFY_INDEX); /* a field twice */
    parts[0] = (IprotoPart){2, IPROTO_STRING, 1};
    IS_REFUSED(iproto_index_create(space, "more", IPROTO_TREE, 1, parts, 1), FORMAT_MISMATCH_INDEX_PART);
    SAYS("Field 'rank' has type 'integer' in space format, but type 'string' in index definition");
    parts[0] = (IprotoPart){2, IPROTO_MAP, 1};
    IS_REFUSED(iproto_index_create(space, "more", IPROTO_TREE, 1, parts, 1), MODIFY_INDEX);
    parts[0] = (IprotoPart){UINT32_MAX, IPROTO_UNSIGNED, 1};
    IS_REFUSED(iproto_index_create(space, "more", IPROTO_TREE, 1, parts, 1), MODIFY_INDEX);
    parts[0] = (IprotoPart){5, IPROTO_UNSIGNED, 1};
    CHECK(iproto_index_create(space, "more", IPROTO_TREE, 1, parts, 1));
    parts[0].type = IPROTO_STRING;
    IS_REFUSED(iproto_index_create(space, "even more", IPROTO_TREE, 1, parts, 1), INDEX_PART_TYPE_MISMATCH);
    for (int number = 4; number < IPROTO_INDEXES_MAX; number++) {
        char name[] = {'i', (char)('a' + number), 0};
        parts[0] = (IprotoPart){6, IPROTO_NUMBER, 1};
        CHECK(iproto_index_create(space, name, IPROTO_TREE, 0, parts, 1));
    }
    IS_REFUSED(iproto_index_create(space, "too many", IPROTO_TREE, 0, parts, 1), MODIFY_INDEX);
    CHECK(insert(BYTES("\x92\x01\xa1" "a")) == 0);
    IprotoSpace *other = iproto_space_create(engine, 513, "others", NULL, 0, 0);
    parts[0] = (IprotoPart){0, IPROTO_UNSIGNED, 1};
    IS_REFUSED(iproto_index_create(other, "primary", IPROTO_TREE, 1, parts, 1), NULLABLE_PRIMARY);
    parts[0].is_nullable = 0;
    IS_REFUSED(iproto_index_create(other, "primary", IPROTO_TREE, 0, parts, 1), MODIFY_INDEX); /* not unique */
    for (uint32_t number = 0; number < 16; number++)
        parts[number] = (IprotoPart){number, IPROTO_UNSIGNED, 0};
    CHECK(iproto_index_create(other, "primary", IPROTO_TREE, 1, parts, 16));
    parts[0] = (IprotoPart){16, IPROTO_UNSIGNED, 0};
    IS_REFUSED(iproto_index_create(other, "more", IPROTO_TREE, 0, parts, 1), MODIFY_INDEX); /* 17 parts in all */
    CHECK(iproto_index_create(other, "more", IPROTO_TREE, 1, parts, 1));
    end();
}

/* An index that is created later has the rows that are there, or is refused with nothing changed. */
static void check_late_indexes(void)
{
    IprotoPart rank = {2, IPROTO_INTEGER, 1}, share = {3, IPROTO_DOUBLE, 0}, fifth = {4, IPROTO_UNSIGNED, 1},
               nullable_name = {1, IPROTO_STRING, 1};
    begin();
    CHECK(insert(BYTES("\x94\x01\xa1" "a\x05\xca\0\0\0\0")) == 0);
    CHECK(insert(BYTES("\x93\x02\xa1" "b\x05")) == 0);
    CHECK(insert(BYTES("\x95\x03\xa1" "c\x04\xc0\xa1x")) == 0);
    IS_REFUSED(iproto_index_create(space, "late", IPROTO_TREE, 1, &rank, 1), TUPLE_FOUND);
    SAYS("Duplicate key exists in unique index 'late' in space 'tasks'");
    IS_REFUSED(iproto_index_create(space, "late", IPROTO_TREE, 0, &share, 1), FIELD_MISSING);
    IS_REFUSED(iproto_index_create(space, "late", IPROTO_TREE, 0, &fifth, 1), FIELD_TYPE);
    CHECK(insert(BYTES("\x95\x04\xa1" "d\x04\xc0\xa1x")) == 0); /* as before the refused indexes */
    IprotoIndex *late = iproto_index_create(space, "late", IPROTO_TREE, 0, &rank, 1);
    WALK(late, IPROTO_ALL, "\x90", "3412");
    WALK(late, IPROTO_EQ, "\x91\x05", "12");
    CHECK(iproto_index_create(space, "nullable", IPROTO_TREE, 0, &nullable_name, 1));
    FAILS(insert(BYTES("\x92\x05\xc0")), FIELD_TYPE); /* the format does not permit nil */
    end();
}

/* -- rows -- */

static void check_insert(void)
{
    begin();
    SAME(iproto_space_insert(space, BYTES("\x93\x01\xa1" "a\x05"), &tuple), 0);
    CHECK(is_tuple(BYTES("\x93\x01\xa1" "a\x05")));
    SAME(iproto_space_len(space), 1);
    SAME(iproto_space_bsize(space), 5);
    SAME(iproto_index_len(by_rank), 1);
    CHECK(iproto_index_bsize(by_rank) > 0);
    FAILS(insert(BYTES("\x92\x01\xa1" "b")), TUPLE_FOUND);
    SAYS("Duplicate key exists in unique index 'primary' in space 'tasks'");
    FAILS(insert(BYTES("\x92\x02\xa1" "a")), TUPLE_FOUND);
    SAYS("Duplicate key exists in unique index 'name' in space 'tasks'");
    FAILS(insert(BYTES("\x92\xa1" "1\xa1" "b")), FIELD_TYPE);
    SAYS("Tuple field 1 type does not match one required by operation: expected unsigned");
    FAILS(insert(BYTES("\x92\xff\xa1" "b")), FIELD_TYPE);
    FAILS(insert(BYTES("\x93\x02\xa1" "b\xa1" "c")), FIELD_TYPE);
    FAILS(insert(BYTES("\x92\xc0\xa1" "b")), FIELD_TYPE); /* nil */
    FAILS(insert(BYTES("\x91\x02")), FIELD_MISSING);
    SAYS("Tuple field 2 required by space format is missing");
    FAILS(insert(BYTES("\x90")), FIELD_MISSING);
    FAILS(insert(BYTES("\x02")), TUPLE_NOT_ARRAY);
    FAILS(insert(BYTES("\x82\x01\x02\x03\x04")), TUPLE_NOT_ARRAY);
    FAILS(insert(BYTES("")), INVALID_MSGPACK);
    FAILS(insert(BYTES("\x93\x02\xa1" "b")), INVALID_MSGPACK);      /* truncated */
    FAILS(insert(BYTES("\x92\x02\xa1" "b\x01")), INVALID_MSGPACK);  /* more behind it */
    FAILS(insert(BYTES("\x92\x02\xc1")), INVALID_MSGPACK);          /* no MessagePack */
    FAILS(insert(BYTES("\x93\x02\xa1" "b\xc0\x81\x01")), INVALID_MSGPACK);
    FAILS(insert(BYTES("\xdd\xff\xff\xff\xff\x02\xa1" "b")), INVALID_MSGPACK);
    FAILS(insert("\x90", SIZE_MAX), MEMTX_MAX_TUPLE_SIZE);
    SAME(iproto_space_len(space), 1);
    CHECK(insert(BYTES("\x95\x02\xa1" "b\xc0\xc0\x93\x81\x01\x90\xc0\xd4\x01\x02")) == 0); /* whatever comes behind the format */
    CHECK(iproto_index_get(primary, BYTES("\x91\x02"), &tuple) == 1);
    SAME(iproto_space_bsize(space), 5 + (int64_t)tuple.size);
    end();
}

static void check_exact_field_count(void)
{
    IprotoPart id = {0, IPROTO_UNSIGNED, 0};
    begin();
    IprotoSpace *exact = iproto_space_create(engine, 600, "exact", FORMAT, 2, 3);
    CHECK(iproto_index_create(exact, "primary", IPROTO_TREE, 1, &id, 1));
    FAILS(iproto_space_insert(exact, BYTES("\x92\x01\xa1" "a"), NULL), EXACT_FIELD_COUNT);
    SAYS("Tuple field count 2 does not match space field count 3");
    FAILS(iproto_space_insert(exact, BYTES("\x94\x01\xa1" "a\x01\x02"), NULL), EXACT_FIELD_COUNT);
    SAME(iproto_space_insert(exact, BYTES("\x93\x01\xa1" "a\x01"), NULL), 0);
    end();
}

static void check_field_types(void)
{
    static const struct {
        IprotoFieldType type;
        const char *fitting, *other;
    } CASES[] = {
        {IPROTO_ANY, "\x81\x01\x02", NULL},     {IPROTO_UNSIGNED, "\x01", "\xff"},
        {IPROTO_STRING, "\xa1x", "\xc4\x01x"},  {IPROTO_NUMBER, "\xca\x3f\x80\x01\x01", "\xa1x"},
        {IPROTO_DOUBLE, "\xca\x3f\x80\x01\x01", "\x01"}, {IPROTO_INTEGER, "\xff", "\xca\x3f\x80\x01\x01"},
        {IPROTO_BOOLEAN, "\xc3", "\x01"},       {IPROTO_VARBINARY, "\xc4\x01x", "\xa1x"},
        {IPROTO_ARRAY, "\x91\x01", "\x81\x01\x02"}, {IPROTO_MAP, "\x81\x01\x02", "\x91\x01"},
    };
    IprotoPart id = {0, IPROTO_UNSIGNED, 0};
    begin();
    for (uint32_t number = 0; number < sizeof CASES / sizeof *CASES; number++) {
        IprotoField fields[] = {{"id", IPROTO_UNSIGNED, 0}, {"value", CASES[number].type, 0}};
        char name[] = {(char)('a' + number), 0}, row[20];
        IprotoSpace *typed = iproto_space_create(engine, number, name, fields, 2, 0);
        CHECK(iproto_index_create(typed, "primary", IPROTO_TREE, 1, &id, 1));
        size_t size = (size_t)snprintf(row, sizeof row, "\x92\x01%s", CASES[number].fitting);
        SAME(iproto_space_insert(typed, row, size, NULL), 0);
        if (CASES[number].other) {
            size = (size_t)snprintf(row, sizeof row, "\x92\x02%s", CASES[number].other);
            FAILS(iproto_space_insert(typed, row, size, NULL), FIELD_TYPE);
            FAILS(iproto_space_insert(typed, BYTES("\x92\x02\xc0"), NULL), FIELD_TYPE);
        }
        SAME(iproto_space_len(typed), 1);
    }
    end();
}

static void check_get(void)
{
    begin();
    CHECK(insert(BYTES("\x93\x01\xa1" "a\x05")) == 0 && insert(BYTES("\x93\x02\xa1" "b\xc0")) == 0);
    SAME(iproto_index_get(primary, BYTES("\x91\x02"), &tuple), 1);
    CHECK(is_tuple(BYTES("\x93\x02\xa1" "b\xc0")));
    SAME(iproto_index_get(primary, BYTES("\x91\xcf\0\0\0\0\0\0\0\x02"), NULL), 1); /* the number in another form */
    SAME(iproto_index_get(by_name, BYTES("\x91\xa1" "a"), &tuple), 1);
    CHECK(is_tuple(BYTES("\x93\x01\xa1" "a\x05")));
    SAME(iproto_index_get(primary, BYTES("\x91\x03"), &tuple), 0);
    CHECK(is_tuple(BYTES("\x93\x01\xa1" "a\x05"))); /* `result` stays as it is */
    FAILS(iproto_index_get(by_rank, BYTES("\x92\x05\xa1" "a"), &tuple), MORE_THAN_ONE_TUPLE);
    FAILS(iproto_index_get(primary, BYTES("\x90"), &tuple), EXACT_MATCH);
    SAYS("Invalid key part count in an exact match (expected 1, got 0)");
    FAILS(iproto_index_get(primary, NULL, 0, &tuple), EXACT_MATCH);
    FAILS(iproto_index_get(primary, BYTES("\x92\x01\x02"), &tuple), KEY_PART_COUNT);
    FAILS(iproto_index_get(primary, BYTES("\x91\xa1" "a"), &tuple), KEY_PART_TYPE);
    SAYS("Supplied key type of part 0 does not match index part type: expected unsigned");
    FAILS(iproto_index_get(primary, BYTES("\x91\xc0"), &tuple), KEY_PART_TYPE);
    FAILS(iproto_index_get(primary, BYTES("\x91\x91\x01"), &tuple), KEY_PART_TYPE);
    FAILS(iproto_index_get(primary, BYTES("\x01"), &tuple), TUPLE_NOT_ARRAY);
    FAILS(iproto_index_get(primary, BYTES("\x91"), &tuple), INVALID_MSGPACK);
    FAILS(iproto_index_get(primary, BYTES("\x91\x01\x01"), &tuple), INVALID_MSGPACK);
    FAILS(iproto_index_get(primary, BYTES(""), &tuple), INVALID_MSGPACK);
    FAILS(iproto_index_get(primary, "\x91", SIZE_MAX, &tuple), INVALID_MSGPACK);
    FAILS(iproto_index_get(primary, NULL, 1, &tuple), ILLEGAL_PARAMS);
    end();
}

/* A unique index may have many keys with a nil, and none of them is found by a whole key. */
static void check_unique_with_nil(void)
{
    IprotoPart rank = {2, IPROTO_INTEGER, 1};
    begin();
    IprotoIndex *unique = iproto_index_create(space, "unique", IPROTO_TREE, 1, &rank, 1);
    SAME(insert(BYTES("\x92\x01\xa1" "a")), 0);
    SAME(insert(BYTES("\x93\x02\xa1" "b\xc0")), 0);
    SAME(insert(BYTES("\x93\x03\xa1" "c\x05")), 0);
    FAILS(insert(BYTES("\x93\x04\xa1" "d\x05")), TUPLE_FOUND);
    WALK(unique, IPROTO_ALL, "\x90", "123");
    WALK(unique, IPROTO_EQ, "\x91\xc0", "12");
    FAILS(iproto_index_get(unique, BYTES("\x91\xc0"), NULL), KEY_PART_TYPE);
    SAME(iproto_index_get(unique, BYTES("\x91\x05"), NULL), 1);
    end();
}

static void check_replace(void)
{
    begin();
    SAME(iproto_space_replace(space, BYTES("\x93\x01\xa1" "a\x05"), NULL), 0);
    SAME(iproto_space_replace(space, BYTES("\x93\x01\xa1" "b\x06"), &tuple), 0);
    CHECK(is_tuple(BYTES("\x93\x01\xa1" "b\x06")));
    SAME(iproto_space_len(space), 1);
    SAME(iproto_space_bsize(space), 5);
    SAME(iproto_index_get(by_name, BYTES("\x91\xa1" "a"), NULL), 0);
    SAME(iproto_index_get(by_name, BYTES("\x91\xa1" "b"), NULL), 1);
    SAME(insert(BYTES("\x92\x02\xa1" "c")), 0);
    FAILS(iproto_space_replace(space, BYTES("\x92\x02\xa1" "b"), NULL), TUPLE_FOUND);
    SAME(iproto_index_get(by_name, BYTES("\x91\xa1" "c"), NULL), 1); /* nothing has changed */
    end();
}

static void check_delete(void)
{
    begin();
    CHECK(insert(BYTES("\x93\x01\xa1" "a\x05")) == 0 && insert(BYTES("\x93\x02\xa1" "b\x05")) == 0);
    SAME(iproto_index_delete(primary, BYTES("\x91\x01"), &tuple), 1);
    CHECK(is_tuple(BYTES("\x93\x01\xa1" "a\x05")));
    SAME(iproto_index_delete(primary, BYTES("\x91\x01"), &tuple), 0);
    SAME(iproto_index_delete(by_name, BYTES("\x91\xa1" "b"), NULL), 1);
    SAME(iproto_space_len(space), 0);
    SAME(iproto_space_bsize(space), 0);
    SAME(iproto_index_len(by_rank), 0);
    FAILS(iproto_index_delete(by_rank, BYTES("\x92\x05\xa1" "b"), NULL), MORE_THAN_ONE_TUPLE);
    end();
}

static int update(const char *operations, size_t size)
{
    return iproto_index_update(primary, BYTES("\x91\x01"), operations, size, 0, &tuple);
}

static void check_update(void)
{
    begin();
    CHECK(insert(BYTES("\x93\x01\xa1" "a\x05")) == 0 && insert(BYTES("\x92\x02\xa1" "b")) == 0);
    SAME(update(BYTES("\x91\x93\xa1=\x01\xa1" "c")), 1);
    CHECK(is_tuple(BYTES("\x93\x01\xa1" "c\x05")));
    SAME(update(BYTES("\x92\x93\xa1+\x02\x02\x95\xa1:\x01\x00\x00\xa2xy")), 1);
    CHECK(is_tuple(BYTES("\x93\x01\xa3xyc\x07")));
    SAME(update(BYTES("\x91\x93\xa1-\xa4rank\x0a")), 1); /* a field by its name */
    CHECK(is_tuple(BYTES("\x93\x01\xa3xyc\xfd")));
    SAME(iproto_index_update(by_name, BYTES("\x91\xa3xyc"), BYTES("\x91\x93\xa1=\x03\x08"), 1, &tuple), 1);
    CHECK(is_tuple(BYTES("\x93\x01\xa3xyc\x08"))); /* fields from 1, found by another index */
    SAME(update(BYTES("\x93\x93\xa1!\x03\xca\0\0\0\0\x93\xa1|\x02\x03\x93\xa1=\x04\x01")), 1);
    CHECK(is_tuple(BYTES("\x95\x01\xa3xyc\x0b\xca\0\0\0\0\x01")));
    SAME(update(BYTES("\x91\x93\xa1#\x03\x02")), 1);
    SAME(update(BYTES("\x92\x93\xa1&\x02\x06\x93\xa1=\x03\xcb\0\0\0\0\0\0\0\0")), 1);
    SAME(update(BYTES("\x91\x93\xa1+\x03\x01")), 1); /* stays a double of 8 bytes */
    CHECK(is_tuple(BYTES("\x94\x01\xa3xyc\x02\xcb\x3f\xf0\0\0\0\0\0\0")));
    SAME(iproto_index_update(primary, BYTES("\x91\x09"), BYTES("\x91\x93\xa1=\x01\xa1z"), 0, &tuple), 0);
    FAILS(iproto_index_update(by_rank, BYTES("\x90"), BYTES("\x91\x93\xa1=\x01\xa1z"), 0, &tuple), MORE_THAN_ONE_TUPLE);
    FAILS(update(BYTES("\x91\x93\xa1=\x00\x02")), CANT_UPDATE_PRIMARY_KEY);
    FAILS(update(BYTES("\x91\x93\xa1=\x01\xa1" "b")), TUPLE_FOUND);
    FAILS(update(BYTES("\x91\x93\xa1=\x01\x05")), FIELD_TYPE);
    FAILS(update(BYTES("\x91\x93\xa1#\x01\x03")), FIELD_MISSING);
    FAILS(update(BYTES("\x91\x93\xa1?\x01\x03")), UNKNOWN_UPDATE_OP);
    FAILS(update(BYTES("\x91\x92\xa1=\x01")), UNKNOWN_UPDATE_OP); /* the value is missing */
    FAILS(update(BYTES("\x91\x93\x05\x01\x03")), UNKNOWN_UPDATE_OP);
    FAILS(update(BYTES("\x91\x93\xa1=\x90\x03")), ILLEGAL_PARAMS);
    FAILS(update(BYTES("\x91\x93\xa1=\xa4none\x03")), NO_SUCH_FIELD_NAME);
    FAILS(update(BYTES("\x91\x93\xa1=\x09\x03")), NO_SUCH_FIELD_NO);
    SAYS("Field 10 was not found in the tuple");
    FAILS(iproto_index_update(primary, BYTES("\x91\x01"), BYTES("\x91\x93\xa1=\x00\x03"), 1, NULL), NO_SUCH_FIELD_NO);
    SAYS("Field 0 was not found in the tuple");
    FAILS(update(BYTES("\x91\x93\xa1+\x02\xa1x")), UPDATE_ARG_TYPE);
    FAILS(update(BYTES("\x91\x93\xa1+\x01\x01")), UPDATE_ARG_TYPE);
    SAYS("Argument type in operation '+' on field 2 does not match field type: expected a number");
    FAILS(update(BYTES("\x91\x93\xa1|\x02\xff")), UPDATE_ARG_TYPE);
    FAILS(update(BYTES("\x91\x95\xa1:\x02\x00\x00\xa1x")), UPDATE_ARG_TYPE);
    FAILS(update(BYTES("\x91\x95\xa1:\x01\xf0\x00\xa1x")), UPDATE_SPLICE);
    FAILS(update(BYTES("\x91\x93\xa1#\x01\x00")), UPDATE_FIELD);
    FAILS(update(BYTES("\x92\x93\xa1+\x02\x01\x93\xa1+\x02\x01")), UPDATE_FIELD); /* twice */
    FAILS(update(BYTES("\x91\x93\xa1+\x02\xcf\xff\xff\xff\xff\xff\xff\xff\xff")), UPDATE_INTEGER_OVERFLOW);
    FAILS(update(BYTES("\x91\x93\xa1+\x02\xd4\x01\x02")), UNSUPPORTED); /* an extension */
    FAILS(update(BYTES("\x01")), INVALID_MSGPACK);
    FAILS(update(BYTES("\x90")), INVALID_MSGPACK);
    FAILS(update(BYTES("\x91\x93\xa1=\x01")), INVALID_MSGPACK);
    FAILS(update(BYTES("\x91\x93\xa1=\x01\xa1z\x00")), INVALID_MSGPACK);
    FAILS(update("\x91", SIZE_MAX), INVALID_MSGPACK);
    FAILS(update(NULL, 0), ILLEGAL_PARAMS);
    uint8_t many[3 + 33 * 5] = {0xdc, 0, 33};
    for (int number = 0; number < 33; number++)
        memcpy(many + 3 + number * 5, "\x93\xa1=\x02\x01", 5);
    FAILS(update((const char *)many, sizeof many), ILLEGAL_PARAMS);
    CHECK(iproto_index_get(primary, BYTES("\x91\x01"), &tuple) == 1);
    CHECK(is_tuple(BYTES("\x94\x01\xa3xyc\x02\xcb\x3f\xf0\0\0\0\0\0\0"))); /* no refused operation has changed it */
    end();
}

static int upsert(const char *operations, size_t size)
{
    return iproto_space_upsert(space, BYTES("\x93\x01\xa1" "a\x05"), operations, size, 0);
}

static void check_upsert(void)
{
    begin();
    SAME(upsert(BYTES("\x91\x93\xa1+\x02\x01")), 0);
    CHECK(iproto_index_get(primary, BYTES("\x91\x01"), &tuple) == 1);
    CHECK(is_tuple(BYTES("\x93\x01\xa1" "a\x05")));
    SAME(upsert(BYTES("\x91\x93\xa1+\x02\x01")), 0);
    CHECK(iproto_index_get(primary, BYTES("\x91\x01"), &tuple) == 1);
    CHECK(is_tuple(BYTES("\x93\x01\xa1" "a\x06")));
    SAME(upsert(BYTES("\x93\x93\xa1+\x01\x01\x93\xa1+\x02\x01\x93\xa1=\x09\x01")), 0); /* the others are left out */
    CHECK(iproto_index_get(primary, BYTES("\x91\x01"), &tuple) == 1);
    CHECK(is_tuple(BYTES("\x93\x01\xa1" "a\x07")));
    SAME(upsert(BYTES("\x92\x93\xa1=\x00\x09\x93\xa1+\x02\x01")), 0); /* the primary key would change */
    CHECK(iproto_index_get(primary, BYTES("\x91\x01"), &tuple) == 1);
    CHECK(is_tuple(BYTES("\x93\x01\xa1" "a\x07")));
    FAILS(upsert(BYTES("\x91\x93\xa1=\x01\x09")), FIELD_TYPE);
    FAILS(upsert(BYTES("\x91\x93\xa1?\x01\x09")), UNKNOWN_UPDATE_OP);
    FAILS(upsert(BYTES("\x91\x93\xa1+\x02\xd4\x01\x02")), UNSUPPORTED);
    FAILS(iproto_space_upsert(space, BYTES("\x92\x02\xa1" "b"), BYTES("\x91\x93\xa1?\x01\x09"), 0), UNKNOWN_UPDATE_OP);
    FAILS(iproto_space_upsert(space, BYTES("\x92\x02\xa1" "a"), BYTES("\x91\x93\xa1+\x02\x01"), 0), TUPLE_FOUND);
    FAILS(iproto_space_upsert(space, BYTES("\x91\x02"), BYTES("\x91\x93\xa1+\x02\x01"), 0), FIELD_MISSING);
    SAME(iproto_space_len(space), 1);
    end();
}

/* -- cursors -- */

static void fill(void)
{
    CHECK(insert(BYTES("\x93\x01\xa1" "e\x05")) == 0 && insert(BYTES("\x93\x02\xa1" "d\x05")) == 0);
    CHECK(insert(BYTES("\x93\x03\xa1" "c\x07")) == 0 && insert(BYTES("\x92\x05\xa1" "b")) == 0);
    CHECK(insert(BYTES("\x93\x06\xa1" "a\xff")) == 0);
}

static void check_cursors(void)
{
    begin();
    WALK(primary, IPROTO_ALL, "\x90", "");
    fill();
    WALK(primary, IPROTO_ALL, "\x90", "12356");
    WALK(primary, IPROTO_ALL, "\x91\x03", "356");
    WALK(primary, IPROTO_EQ, "\x91\x03", "3");
    WALK(primary, IPROTO_EQ, "\x91\x04", "");
    WALK(primary, IPROTO_REQ, "\x91\x03", "3");
    WALK(primary, IPROTO_GE, "\x91\x03", "356");
    WALK(primary, IPROTO_GE, "\x91\x04", "56");
    WALK(primary, IPROTO_GT, "\x91\x03", "56");
    WALK(primary, IPROTO_LE, "\x91\x03", "321");
    WALK(primary, IPROTO_LE, "\x91\x04", "321");
    WALK(primary, IPROTO_LT, "\x91\x03", "21");
    WALK(primary, IPROTO_LT, "\x91\x01", "");
    WALK(primary, IPROTO_GT, "\x91\xcf\xff\xff\xff\xff\xff\xff\xff\xff", "");
    WALK(primary, IPROTO_EQ, "\x90", "12356");
    WALK(primary, IPROTO_REQ, "\x90", "65321");
    WALK(primary, IPROTO_GT, "\x90", "12356");
    WALK(primary, IPROTO_LT, "\x90", "65321");
    WALK(by_rank, IPROTO_ALL, "\x90", "56213"); /* nil first, then by rank and name */
    WALK(by_rank, IPROTO_EQ, "\x91\x05", "21");
    WALK(by_rank, IPROTO_EQ, "\x92\x05\xa1" "e", "1");
    WALK(by_rank, IPROTO_EQ, "\x91\xc0", "5");
    WALK(by_rank, IPROTO_REQ, "\x91\x05", "12");
    WALK(by_rank, IPROTO_GE, "\x92\x05\xa1" "e", "13");
    WALK(by_rank, IPROTO_GT, "\x91\x05", "3");
    WALK(by_rank, IPROTO_LT, "\x91\x05", "65");
    WALK(by_rank, IPROTO_LE, "\x91\x05", "1265");
    IS_REFUSED(iproto_cursor_open(primary, (IprotoIterator)7, NULL, 0), ITERATOR_TYPE);
    IS_REFUSED(iproto_cursor_open(primary, (IprotoIterator)-1, NULL, 0), ITERATOR_TYPE);
    IS_REFUSED(iproto_cursor_open(primary, IPROTO_EQ, BYTES("\x92\x01\x02")), KEY_PART_COUNT);
    IS_REFUSED(iproto_cursor_open(primary, IPROTO_EQ, BYTES("\x91\xff")), KEY_PART_TYPE);
    IS_REFUSED(iproto_cursor_open(by_rank, IPROTO_EQ, BYTES("\x92\x01\xc0")), KEY_PART_TYPE);
    FAILS(iproto_index_count(primary, IPROTO_EQ, BYTES("\x91")), INVALID_MSGPACK);
    end();
}

static int next(IprotoCursor *cursor)
{
    uint64_t id = 0;
    int done = iproto_cursor_next(cursor, &tuple);
    CHECK(done >= 0);
    CHECK(!done || iproto_tuple_unsigned(&tuple, 0, &id) == 1);
    return (int)id;
}

/* A cursor goes on from the key of the row that it has returned last. */
static void check_cursors_under_changes(void)
{
    begin();
    fill();
    IprotoCursor *up = iproto_cursor_open(primary, IPROTO_ALL, NULL, 0);
    IprotoCursor *down = iproto_cursor_open(primary, IPROTO_LE, BYTES("\x91\x06"));
    IprotoCursor *equal = iproto_cursor_open(by_rank, IPROTO_EQ, BYTES("\x91\x05"));
    IprotoCursor *late = iproto_cursor_open(primary, IPROTO_ALL, NULL, 0);
    SAME(next(up), 1);
    SAME(next(up), 2);
    SAME(next(down), 6);
    SAME(next(equal), 2);
    CHECK(iproto_index_delete(primary, BYTES("\x91\x02"), NULL) == 1); /* the row that was returned last, */
    CHECK(insert(BYTES("\x93\x02\xa1z\x05")) == 0);                    /* and again, in front */
    CHECK(insert(BYTES("\x92\x04\xa1y")) == 0);                        /* a row behind it */
    CHECK(iproto_index_delete(primary, BYTES("\x91\x05"), NULL) == 1); /* and one that is gone */
    SAME(next(up), 3);
    SAME(next(up), 4);
    SAME(next(down), 4);
    SAME(next(equal), 1);
    SAME(next(equal), 2); /* whose key is another now, and behind */
    SAME(next(equal), 0);
    CHECK(insert(BYTES("\x92\x00\xa1x")) == 0);
    SAME(next(late), 0);
    SAME(next(late), 1);
    SAME(next(down), 3);
    CHECK(iproto_index_delete(primary, BYTES("\x91\x06"), NULL) == 1);
    SAME(next(up), 0);
    CHECK(insert(BYTES("\x92\x08\xa1w")) == 0);
    SAME(next(up), 0); /* an end stays an end */
    iproto_cursor_close(down); /* in another order than they were opened */
    iproto_cursor_close(up);
    iproto_cursor_close(late);
    iproto_cursor_close(equal);
    end();
}

/* Rows are removed as they are returned. */
static void check_draining(unsigned long count)
{
    begin();
    for (unsigned long id = 0; id < count; id++) {
        Packed row = {.size = 0};
        char name[20];
        put_byte(&row, 0x93);
        put_unsigned(&row, id);
        put_string(&row, name, (uint8_t)snprintf(name, sizeof name, "%lu", id));
        put_integer(&row, (int64_t)(id % 7));
        CHECK(iproto_space_insert(space, row.data, row.size, NULL) == 0);
    }
    IprotoCursor *cursor = iproto_cursor_open(by_rank, IPROTO_REQ, NULL, 0);
    unsigned long seen = 0;
    int64_t latest = 7;
    for (; iproto_cursor_next(cursor, &tuple) > 0; seen++) {
        Packed key = {.size = 0};
        uint64_t id;
        int64_t rank;
        CHECK(iproto_tuple_unsigned(&tuple, 0, &id) == 1 && iproto_tuple_integer(&tuple, 2, &rank) == 1);
        CHECK(rank <= latest);
        latest = rank;
        put_byte(&key, 0x91);
        put_unsigned(&key, id);
        CHECK(iproto_index_delete(primary, key.data, key.size, NULL) == 1);
    }
    SAME(seen, count);
    SAME(iproto_space_len(space), 0);
    end();
}

/* -- transactions and the log -- */

static void check_transactions(void)
{
    IprotoPart part = {0, IPROTO_UNSIGNED, 0};
    begin();
    fill();
    SAME(iproto_engine_is_in_transaction(engine), 0);
    FAILS(iproto_engine_commit(engine), NO_TRANSACTION);
    FAILS(iproto_engine_rollback(engine), NO_TRANSACTION);
    SAME(iproto_engine_begin(engine), 0);
    SAME(iproto_engine_is_in_transaction(engine), 1);
    FAILS(iproto_engine_begin(engine), ACTIVE_TRANSACTION);
    FAILS(iproto_engine_set_log(engine, NULL, NULL), ACTIVE_TRANSACTION);
    FAILS(iproto_space_drop(space), MULTISTATEMENT_TRANSACTION);
    IS_REFUSED(iproto_space_create(engine, 700, "new", NULL, 0, 0), MULTISTATEMENT_TRANSACTION);
    IS_REFUSED(iproto_index_create(space, "new", IPROTO_TREE, 1, &part, 1), MULTISTATEMENT_TRANSACTION);
    CHECK(insert(BYTES("\x93\x09\xa1q\x05")) == 0);
    CHECK(iproto_space_replace(space, BYTES("\x93\x01\xa1r\x08"), NULL) == 0);
    CHECK(iproto_space_replace(space, BYTES("\x93\x01\xa1s\x08"), NULL) == 0);
    CHECK(iproto_index_delete(primary, BYTES("\x91\x02"), &tuple) == 1);
    CHECK(is_tuple(BYTES("\x93\x02\xa1" "d\x05")));
    CHECK(insert(BYTES("\x92\x02\xa1t")) == 0);
    CHECK(iproto_index_delete(primary, BYTES("\x91\x09"), NULL) == 1);
    FAILS(insert(BYTES("\x92\x01\xa1u")), TUPLE_FOUND); /* undoes itself only */
    SAME(iproto_engine_is_in_transaction(engine), 1);
    int64_t size = iproto_space_bsize(space);
    WALK(by_rank, IPROTO_ALL, "\x90", "52631");
    SAME(iproto_engine_rollback(engine), 0);
    SAME(iproto_engine_is_in_transaction(engine), 0);
    WALK(primary, IPROTO_ALL, "\x90", "12356");
    WALK(by_rank, IPROTO_ALL, "\x90", "56213");
    SAME(iproto_space_bsize(space), 5 * 5 - 1);
    CHECK(size != iproto_space_bsize(space));
    SAME(iproto_index_get(primary, BYTES("\x91\x01"), &tuple), 1);
    CHECK(is_tuple(BYTES("\x93\x01\xa1" "e\x05")));
    CHECK(iproto_engine_begin(engine) == 0 && insert(BYTES("\x92\x04\xa1v")) == 0);
    SAME(iproto_engine_commit(engine), 0);
    WALK(primary, IPROTO_ALL, "\x90", "123456");
    SAME(iproto_engine_begin(engine), 0);
    SAME(iproto_engine_commit(engine), 0); /* without a change */
    CHECK(iproto_engine_begin(engine) == 0 && insert(BYTES("\x92\x08\xa1w")) == 0);
    CHECK(iproto_index_delete(primary, BYTES("\x91\x01"), NULL) == 1);
    end(); /* with an open transaction */
}

/* A cursor goes on after a rollback. */
static void check_cursors_under_rollback(void)
{
    begin();
    fill();
    CHECK(iproto_engine_begin(engine) == 0 && insert(BYTES("\x92\x04\xa1v")) == 0);
    IprotoCursor *cursor = iproto_cursor_open(primary, IPROTO_GE, BYTES("\x91\x03"));
    SAME(next(cursor), 3);
    SAME(next(cursor), 4);
    CHECK(iproto_engine_rollback(engine) == 0);
    SAME(next(cursor), 5);
    SAME(next(cursor), 6);
    SAME(next(cursor), 0);
    end();
}

static char logged[200];
static int log_fails;

static int write_log(void *context, const IprotoChange *changes, size_t count)
{
    char *to = logged + strlen(logged);
    CHECK(context == &engine);
    FAILS(iproto_space_insert(space, BYTES("\x92\x07\xa1x"), NULL), ACTIVE_TRANSACTION);
    FAILS(iproto_engine_begin(engine), ACTIVE_TRANSACTION);
    FAILS(iproto_engine_rollback(engine), ACTIVE_TRANSACTION);
    IS_REFUSED(iproto_space_create(engine, 700, "new", NULL, 0, 0), ACTIVE_TRANSACTION);
    CHECK(iproto_space_len(space) >= 0); /* reading is allowed */
    for (size_t number = 0; number < count; number++) {
        const IprotoChange *change = changes + number;
        CHECK(change->space_id == 512 && iproto_tuple_field_count(&change->row) >= 1);
        CHECK((change->type == IPROTO_INSERT) == !change->old.data);
        uint64_t id;
        CHECK(iproto_tuple_unsigned(&change->row, 0, &id) == 1);
        to += sprintf(to, "%c%d/%d", change->type == IPROTO_INSERT ? '+' : change->type == IPROTO_DELETE ? '-' : '=',
                      (int)id, (int)iproto_tuple_field_count(&change->row));
    }
    strcpy(to, ";");
    return log_fails;
}

static void check_log(void)
{
    begin();
    SAME(iproto_engine_set_log(engine, write_log, &engine), 0);
    logged[0] = 0;
    CHECK(insert(BYTES("\x92\x01\xa1" "a")) == 0 && iproto_space_replace(space, BYTES("\x93\x01\xa1" "b\x05"), NULL) == 0);
    CHECK(iproto_space_replace(space, BYTES("\x92\x02\xa1" "c"), NULL) == 0);
    SAME(update(BYTES("\x91\x93\xa1=\x02\x06")), 1);
    SAME(iproto_index_delete(primary, BYTES("\x91\x02"), &tuple), 1);
    CHECK(is_tuple(BYTES("\x92\x02\xa1" "c")));
    SAME(iproto_index_delete(primary, BYTES("\x91\x02"), NULL), 0);
    CHECK(insert(BYTES("\x91\x02")) < 0);
    SAME(strcmp(logged, "+1/2;=1/3;+2/2;=1/3;-2/1;"), 0);
    logged[0] = 0;
    CHECK(iproto_engine_begin(engine) == 0 && iproto_engine_commit(engine) == 0);
    CHECK(iproto_engine_begin(engine) == 0 && insert(BYTES("\x92\x03\xa1" "d")) == 0);
    CHECK(iproto_engine_rollback(engine) == 0);
    SAME(*logged, 0);
    CHECK(iproto_engine_begin(engine) == 0 && insert(BYTES("\x92\x03\xa1" "d")) == 0);
    CHECK(iproto_space_replace(space, BYTES("\x93\x03\xa1" "e\xc0"), NULL) == 0);
    CHECK(iproto_index_delete(primary, BYTES("\x91\x03"), NULL) == 1);
    SAME(*logged, 0);
    CHECK(iproto_engine_commit(engine) == 0);
    SAME(strcmp(logged, "+3/2=3/3-3/1;"), 0);
    log_fails = 1;
    FAILS(insert(BYTES("\x92\x04\xa1" "f")), WAL_IO);
    SAYS("Failed to write to disk");
    FAILS(iproto_index_delete(primary, BYTES("\x91\x01"), NULL), WAL_IO);
    CHECK(iproto_engine_begin(engine) == 0 && insert(BYTES("\x92\x05\xa1g")) == 0);
    CHECK(iproto_index_delete(primary, BYTES("\x91\x01"), NULL) == 1);
    FAILS(iproto_engine_commit(engine), WAL_IO);
    SAME(iproto_engine_is_in_transaction(engine), 0);
    WALK(primary, IPROTO_ALL, "\x90", "1"); /* what was not logged is undone */
    log_fails = 0;
    SAME(iproto_engine_set_log(engine, NULL, NULL), 0);
    SAME(insert(BYTES("\x92\x04\xa1" "f")), 0);
    end();
}

/* The key of a removed row is an array of its parts in their order, however long. */
static IprotoTuple expected_key;

static int compare_key(void *context, const IprotoChange *changes, size_t count)
{
    (void)context;
    const IprotoTuple *key = &changes[count - 1].row;
    if (changes[count - 1].type == IPROTO_DELETE) {
        SAME(key->size, expected_key.size);
        CHECK(!memcmp(key->data, expected_key.data, key->size));
    }
    return 0;
}

static void check_logged_keys(void)
{
    static const char row[] = "\xdc\0\x10\0\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f";
    IprotoPart parts[16], swapped[] = {{1, IPROTO_STRING, 0}, {0, IPROTO_UNSIGNED, 0}};
    begin();
    for (uint32_t number = 0; number < 16; number++)
        parts[number] = (IprotoPart){number, IPROTO_UNSIGNED, 0};
    IprotoSpace *wide = iproto_space_create(engine, 600, "wide", NULL, 0, 0);
    IprotoIndex *index = iproto_index_create(wide, "primary", IPROTO_TREE, 1, parts, 16);
    CHECK(iproto_engine_set_log(engine, compare_key, NULL) == 0);
    expected_key = (IprotoTuple){(const uint8_t *)row, sizeof row - 1};
    CHECK(iproto_space_insert(wide, row, sizeof row - 1, NULL) == 0);
    SAME(iproto_index_delete(index, row, sizeof row - 1, NULL), 1);
    IprotoSpace *two = iproto_space_create(engine, 601, "two", NULL, 0, 0);
    index = iproto_index_create(two, "primary", IPROTO_TREE, 1, swapped, 2);
    expected_key = (IprotoTuple){(const uint8_t *)"\x92\xa2xy\x05", 5};
    CHECK(iproto_space_insert(two, BYTES("\x93\x05\xa2xy\xc3"), NULL) == 0);
    SAME(iproto_index_delete(index, BYTES("\x92\xa2xy\x05"), NULL), 1);
    end();
}

/* -- memory -- */

static void check_memory(void)
{
    static uint8_t row[100000] = "\x93\x01\xa1" "a\xc0";
    static char large[] = "\x93\x02\xa1" "b\xdb\0\x01\0\0";
    IprotoField fields[] = {{"id", IPROTO_UNSIGNED, 0}, {"name", IPROTO_STRING, 0}};
    IprotoPart id = {0, IPROTO_UNSIGNED, 0};
    begin();
    IprotoSpace *loose = iproto_space_create(engine, 600, "loose", fields, 2, 0);
    IprotoIndex *index = iproto_index_create(loose, "primary", IPROTO_TREE, 1, &id, 1);
    FAILS(iproto_engine_set_memory(1, 2), ILLEGAL_PARAMS);
    CHECK(iproto_space_insert(loose, row, 5, NULL) == 0);
    size_t held = iproto_engine_memory();
    CHECK(held > 0);
    SAME(iproto_engine_set_memory(held + 50000, 0), 0);
    memcpy(row, large, sizeof large - 1);
    FAILS(iproto_space_insert(loose, row, sizeof large - 1 + 65536, NULL), MEMORY_ISSUE);
    SAYS("Failed to allocate 65545 bytes in engine for tuple");
    row[1] = 1;
    FAILS(iproto_space_replace(loose, row, sizeof large - 1 + 65536, NULL), MEMORY_ISSUE);
    SAME(iproto_space_replace(loose, BYTES("\x93\x01\xa1" "a\xc3"), NULL), 0); /* no more than there was */
    SAME(iproto_engine_set_memory(held, 0), 0);
    FAILS(iproto_space_insert(loose, BYTES("\x92\x02\xa1" "b"), NULL), MEMORY_ISSUE);
    SAME(iproto_space_replace(loose, BYTES("\x93\x01\xa1" "a\xc2"), NULL), 0);
    CHECK(iproto_engine_begin(engine) == 0);
    FAILS(iproto_space_replace(loose, BYTES("\x93\x01\xa1" "a\xc3"), NULL), MEMORY_ISSUE); /* the old row stays, too */
    CHECK(iproto_engine_rollback(engine) == 0);
    SAME(iproto_index_delete(index, BYTES("\x91\x01"), NULL), 1); /* a delete never asks */
    SAME(iproto_engine_set_memory(held + 1000000, 1000000), 0);
    FAILS(iproto_space_insert(loose, row, sizeof large - 1 + 65536, NULL), MEMORY_ISSUE); /* the reserve */
    SAME(iproto_engine_set_memory(SIZE_MAX, 0), 0);
    SAME(iproto_space_insert(loose, row, sizeof large - 1 + 65536, &tuple), 0);
    SAME(tuple.size, sizeof large - 1 + 65536);
    end();
}

/* -- fields of rows -- */

static void check_fields(void)
{
    static const char row[] = "\x9c\x01\xff\xca\x3f\x80\0\0\xc3\xa2hi\xc4\x01z\xc0\x91\x01\x81\x01\x02\xd4\x01\x02"
                              "\xcf\xff\xff\xff\xff\xff\xff\xff\xff\xc2";
    static const IprotoValueType types[] = {
        IPROTO_VALUE_UNSIGNED, IPROTO_VALUE_NEGATIVE, IPROTO_VALUE_DOUBLE, IPROTO_VALUE_BOOLEAN, IPROTO_VALUE_STRING,
        IPROTO_VALUE_BINARY,   IPROTO_VALUE_NIL,      IPROTO_VALUE_ARRAY,  IPROTO_VALUE_MAP,     IPROTO_VALUE_EXTENSION,
        IPROTO_VALUE_UNSIGNED, IPROTO_VALUE_BOOLEAN,
    };
    static const size_t sizes[] = {1, 1, 5, 1, 3, 3, 1, 2, 3, 3, 9, 1};
    IprotoTuple fields = {(const uint8_t *)row, sizeof row - 1}, bytes;
    IprotoValue value;
    size_t offset = 1;
    SAME(iproto_tuple_field_count(&fields), 12);
    for (uint32_t number = 0; number < 12; number++) {
        SAME(iproto_tuple_field(&fields, number, &value), 1);
        SAME(value.type, types[number]);
        SAME(value.slice.size, sizes[number]);
        SAME(value.slice.data, fields.data + offset);
        offset += sizes[number];
    }
    SAME(iproto_tuple_field(&fields, 12, &value), 0);
    SAME(iproto_tuple_field(&fields, UINT32_MAX, &value), 0);
    uint64_t number = 77;
    int64_t integer;
    double real;
    int truth;
    SAME(iproto_tuple_unsigned(&fields, 10, &number), 1);
    SAME(number, UINT64_MAX);
    SAME(iproto_tuple_unsigned(&fields, 6, &number), 0); /* nil, */
    SAME(iproto_tuple_unsigned(&fields, 20, &number), 0); /* and no such field */
    SAME(number, UINT64_MAX);
    FAILS(iproto_tuple_unsigned(&fields, 1, &number), FIELD_TYPE);
    SAYS("Tuple field 2 type does not match one required by operation: expected unsigned");
    SAME(iproto_tuple_integer(&fields, 1, &integer), 1);
    SAME(integer, -1);
    SAME(iproto_tuple_integer(&fields, 0, &integer), 1);
    SAME(integer, 1);
    FAILS(iproto_tuple_integer(&fields, 10, &integer), FIELD_TYPE);
    SAME(iproto_tuple_double(&fields, 2, &real), 1);
    SAME(real, 1.0);
    SAME(iproto_tuple_double(&fields, 1, &real), 1);
    SAME(real, -1.0);
    SAME(iproto_tuple_double(&fields, 10, &real), 1);
    SAME(real, 18446744073709551616.0);
    FAILS(iproto_tuple_double(&fields, 4, &real), FIELD_TYPE);
    SAME(iproto_tuple_boolean(&fields, 3, &truth), 1);
    SAME(truth, 1);
    SAME(iproto_tuple_boolean(&fields, 11, &truth), 1);
    SAME(truth, 0);
    FAILS(iproto_tuple_boolean(&fields, 0, &truth), FIELD_TYPE);
    SAME(iproto_tuple_string(&fields, 4, &bytes), 1);
    CHECK(bytes.size == 2 && !memcmp(bytes.data, "hi", 2));
    FAILS(iproto_tuple_string(&fields, 5, &bytes), FIELD_TYPE);
    SAME(iproto_tuple_binary(&fields, 5, &bytes), 1);
    CHECK(bytes.size == 1 && *bytes.data == 'z');
    FAILS(iproto_tuple_binary(&fields, 4, &bytes), FIELD_TYPE);
    FAILS(iproto_tuple_field(&(IprotoTuple){(const uint8_t *)"\x92\x01", 2}, 1, &value), INVALID_MSGPACK);
    FAILS(iproto_tuple_field(&(IprotoTuple){(const uint8_t *)"\x91", 0}, 0, &value), INVALID_MSGPACK);
    FAILS(iproto_tuple_field_count(&(IprotoTuple){(const uint8_t *)"\x01", 1}), TUPLE_NOT_ARRAY);
    FAILS(iproto_tuple_field_count(&(IprotoTuple){NULL, 0}), ILLEGAL_PARAMS);
}

/* -- NULL -- */

static void check_null(void)
{
    IprotoValue value;
    IprotoCursor *cursor;
    begin();
    IS_REFUSED(iproto_space_create(NULL, 1, "x", NULL, 0, 0), ILLEGAL_PARAMS);
    IS_REFUSED(iproto_space_create(engine, 1, NULL, NULL, 0, 0), CREATE_SPACE);
    IS_REFUSED(iproto_space_create(engine, 1, "x", NULL, 1, 0), ILLEGAL_PARAMS);
    IS_REFUSED(iproto_space_open(NULL, "x"), ILLEGAL_PARAMS);
    IS_REFUSED(iproto_space_open(engine, NULL), ILLEGAL_PARAMS);
    IS_REFUSED(iproto_space_open_by_id(NULL, 1), ILLEGAL_PARAMS);
    FAILS(iproto_space_drop(NULL), ILLEGAL_PARAMS);
    FAILS(iproto_space_len(NULL), ILLEGAL_PARAMS);
    FAILS(iproto_space_bsize(NULL), ILLEGAL_PARAMS);
    IS_REFUSED(iproto_index_create(NULL, "x", IPROTO_TREE, 1, NULL, 0), ILLEGAL_PARAMS);
    IS_REFUSED(iproto_index_create(space, NULL, IPROTO_TREE, 1, NULL, 0), MODIFY_INDEX);
    IS_REFUSED(iproto_index_open(NULL, "x"), ILLEGAL_PARAMS);
    IS_REFUSED(iproto_index_open(space, NULL), ILLEGAL_PARAMS);
    IS_REFUSED(iproto_index_open_by_id(NULL, 0), ILLEGAL_PARAMS);
    FAILS(iproto_index_len(NULL), ILLEGAL_PARAMS);
    FAILS(iproto_index_bsize(NULL), ILLEGAL_PARAMS);
    FAILS(iproto_index_count(NULL, IPROTO_ALL, NULL, 0), ILLEGAL_PARAMS);
    FAILS(iproto_space_insert(NULL, BYTES("\x90"), NULL), ILLEGAL_PARAMS);
    FAILS(iproto_space_insert(space, NULL, 0, NULL), ILLEGAL_PARAMS);
    FAILS(iproto_space_replace(NULL, BYTES("\x90"), NULL), ILLEGAL_PARAMS);
    FAILS(iproto_space_replace(space, NULL, 5, NULL), ILLEGAL_PARAMS);
    FAILS(iproto_space_upsert(NULL, BYTES("\x90"), BYTES("\x90"), 0), ILLEGAL_PARAMS);
    FAILS(iproto_index_get(NULL, BYTES("\x90"), NULL), ILLEGAL_PARAMS);
    FAILS(iproto_index_update(NULL, BYTES("\x90"), BYTES("\x90"), 0, NULL), ILLEGAL_PARAMS);
    FAILS(iproto_index_delete(NULL, BYTES("\x90"), NULL), ILLEGAL_PARAMS);
    FAILS(iproto_engine_begin(NULL), ILLEGAL_PARAMS);
    FAILS(iproto_engine_commit(NULL), ILLEGAL_PARAMS);
    FAILS(iproto_engine_rollback(NULL), ILLEGAL_PARAMS);
    FAILS(iproto_engine_is_in_transaction(NULL), ILLEGAL_PARAMS);
    FAILS(iproto_engine_set_log(NULL, NULL, NULL), ILLEGAL_PARAMS);
    IS_REFUSED(iproto_cursor_open(NULL, IPROTO_ALL, NULL, 0), ILLEGAL_PARAMS);
    CHECK(cursor = iproto_cursor_open(primary, IPROTO_ALL, NULL, 0));
    FAILS(iproto_cursor_next(NULL, &tuple), ILLEGAL_PARAMS);
    FAILS(iproto_cursor_next(cursor, NULL), ILLEGAL_PARAMS);
    iproto_cursor_close(cursor);
    iproto_cursor_close(NULL);
    iproto_engine_close(NULL);
    FAILS(iproto_tuple_field_count(NULL), ILLEGAL_PARAMS);
    FAILS(iproto_tuple_field(NULL, 0, &value), ILLEGAL_PARAMS);
    FAILS(iproto_tuple_field(&tuple, 0, NULL), ILLEGAL_PARAMS);
    FAILS(iproto_tuple_unsigned(&tuple, 0, NULL), ILLEGAL_PARAMS);
    FAILS(iproto_tuple_string(&tuple, 0, NULL), ILLEGAL_PARAMS);
    SAYS("Illegal parameters, the value is NULL");
    SAME(iproto_space_len(space), 0);
    SAME(iproto_error_code(), IPROTO_ER_ILLEGAL_PARAMS); /* a success leaves it alone */
    end();
}

int main(int argument_count, char **arguments)
{
    CHECK(argument_count == 3);
    check_version();
    check_spaces();
    check_indexes();
    check_late_indexes();
    check_insert();
    check_exact_field_count();
    check_field_types();
    check_get();
    check_unique_with_nil();
    check_replace();
    check_delete();
    check_update();
    check_upsert();
    check_cursors();
    check_cursors_under_changes();
    check_draining(strtoul(arguments[1], NULL, 10) / 100);
    check_transactions();
    check_cursors_under_rollback();
    check_log();
    check_logged_keys();
    check_memory();
    check_fields();
    check_null();
    printf("%lu checks\n", checks);
    return 0;
}
