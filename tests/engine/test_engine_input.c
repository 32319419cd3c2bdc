/* Random and damaged input for all functions of the public API that take bytes: nothing is read outside of it, and what is
 * refused changes nothing.
 *
 *     test_engine_input INPUTS SEED
 */
#include "memory/budget.h"
#include "iproto_engine.h"
#include "random_rows.h"
#include "memory/slab.h"

enum { INDEXES = 4, PIECES = 8 };

static IprotoEngine *engine;
static IprotoSpace *space;
static IprotoIndex *indexes[INDEXES];
static unsigned long accepted;

static const IprotoField FORMAT[] = {
    {"id", IPROTO_UNSIGNED, 0}, {"name", IPROTO_STRING, 0},    {"score", IPROTO_NUMBER, 1},
    {"flag", IPROTO_BOOLEAN, 1}, {"blob", IPROTO_VARBINARY, 1}, {"amount", IPROTO_DOUBLE, 1},
    {"list", IPROTO_ARRAY, 1},   {"map", IPROTO_MAP, 1},        {"count", IPROTO_INTEGER, 1},
};
static const struct {
    int is_unique, count;
    IprotoPart parts[3];
} KEYS[INDEXES] = {
    {1, 1, {{0, IPROTO_UNSIGNED, 0}}},
    {1, 2, {{1, IPROTO_STRING, 0}, {2, IPROTO_NUMBER, 1}}},
    {0, 2, {{3, IPROTO_BOOLEAN, 1}, {4, IPROTO_VARBINARY, 1}}},
    {0, 3, {{5, IPROTO_DOUBLE, 1}, {8, IPROTO_INTEGER, 1}, {10, IPROTO_STRING, 1}}},
};

/* -- input -- */

static void put_value(Packed *packed, int depth)
{
    uint8_t bytes[20];
    for (size_t place = 0; place < sizeof bytes; place++)
        bytes[place] = (uint8_t)below(256);
    switch (below(depth ? 14 : 12)) {
    case 0: put_byte(packed, 0xc0); break;
    case 1: put_byte(packed, (uint8_t)(0xc2 + below(2))); break;
    case 2: put_unsigned(packed, below(100)); break;
    case 3: put_unsigned(packed, next_random()); break;
    case 4: put_integer(packed, (int64_t)next_random()); break;
    case 5: put_double(packed, (double)(int64_t)next_random() / 1e9); break;
    case 6: /* any bits of a double */
        put_byte(packed, 0xcb);
        put_bytes(packed, bytes, 8);
        break;
    case 7: put_string(packed, bytes, (uint8_t)below(20)); break;
    case 8:
        put_byte(packed, 0xc4);
        put_byte(packed, (uint8_t)(bytes[0] % 10));
        put_bytes(packed, bytes, bytes[0] % 10);
        break;
    case 9: put_byte(packed, (uint8_t)(0xe0 + below(32))); break;
    case 10: /* an extension */
        put_byte(packed, 0xd5);
        put_bytes(packed, bytes, 3);
        break;
    case 11: put_string(packed, "name", (uint8_t)below(5)); break;
    case 12:
    case 13: {
        uint8_t count = (uint8_t)below(4);
        int is_map = (int)below(2);
        put_byte(packed, (uint8_t)((is_map ? 0x80 : 0x90) + count));
        for (int number = 0; number < (is_map ? 2 : 1) * count; number++)
            put_value(packed, depth - 1);
    }
    }
}

/* A value of a field's type, mostly. */
static void put_field(Packed *packed, uint32_t field)
{
    IprotoFieldType type = field < sizeof FORMAT / sizeof *FORMAT ? FORMAT[field].type : IPROTO_STRING;
    if (!below(30)) {
        put_value(packed, 2);
        return;
    }
    switch (type) {
    case IPROTO_UNSIGNED: put_unsigned(packed, below(60)); break;
    case IPROTO_STRING: put_string(packed, "abcabcdabcde", (uint8_t)below(13)); break;
    case IPROTO_NUMBER: put_integer(packed, (int64_t)below(50) - 25); break;
    case IPROTO_BOOLEAN: put_byte(packed, (uint8_t)(0xc2 + below(2))); break;
    case IPROTO_VARBINARY: put_bytes(packed, "\xc4\x02\0\1", 4); break;
    case IPROTO_DOUBLE: put_double(packed, (double)below(9) / 2); break;
    case IPROTO_ARRAY: put_bytes(packed, "\x92\x01\x90", 3); break;
    case IPROTO_MAP: put_bytes(packed, "\x81\x01\xc0", 3); break;
    default: put_integer(packed, (int64_t)next_random() >> 20);
    }
}

static void put_row(Packed *packed)
{
    uint32_t count = 2 + (uint32_t)below(11);
    put_byte(packed, (uint8_t)(0x90 + count));
    for (uint32_t field = 0; field < count; field++)
        put_field(packed, field);
}

static void put_key(Packed *packed, int index)
{
    int count = (int)below((uint64_t)KEYS[index].count + 1);
    if (below(3))
        count = KEYS[index].count;
    put_byte(packed, (uint8_t)(0x90 + count));
    for (int part = 0; part < count; part++)
        put_field(packed, KEYS[index].parts[part].field_no);
}

static void put_operations(Packed *packed)
{
    uint8_t count = (uint8_t)(1 + below(3));
    put_byte(packed, (uint8_t)(0x90 + count));
    while (count--) {
        char opcode = "=!#+-&|^:?"[below(10)];
        uint32_t field = (uint32_t)below(12);
        put_byte(packed, opcode == ':' ? 0x95 : 0x93);
        put_byte(packed, 0xa1);
        put_byte(packed, (uint8_t)opcode);
        if (below(4))
            put_unsigned(packed, field);
        else
            put_value(packed, 1);
        if (opcode == ':') {
            put_integer(packed, (int64_t)below(9) - 4);
            put_integer(packed, (int64_t)below(9) - 4);
        }
        if (below(3))
            put_field(packed, field);
        else
            put_value(packed, 1);
    }
}

/* Bytes of a kind, maybe damaged, with nothing behind them. */
typedef struct {
    uint8_t *data;
    size_t size;
} Input;

static Input damaged(Packed *packed)
{
    switch (below(5)) {
    case 0: packed->size = below(packed->size + 1); break;
    case 1: packed->data[below(packed->size)] ^= (uint8_t)(1 << below(8)); break;
    case 2: packed->data[below(packed->size)] = (uint8_t)below(256); break;
    case 3:
        for (packed->size = 0; packed->size < below(30);)
            packed->data[packed->size++] = (uint8_t)below(256);
    }
    Input input = {malloc(packed->size ? packed->size : 1), packed->size};
    CHECK(input.data);
    memcpy(input.data, packed->data, packed->size);
    return input;
}

/* -- calls -- */

static void check_result(int done)
{
    CHECK(done >= -1 && done <= 1);
    if (done < 0)
        CHECK(iproto_error_code() > 0 && *iproto_error_message());
    else
        accepted++;
}

static void read_fields(const IprotoTuple *tuple)
{
    IprotoValue value;
    int64_t count = iproto_tuple_field_count(tuple);
    check_result(count < 0 ? -1 : 1);
    for (uint32_t field = 0; field < 14; field++) {
        uint64_t number;
        int64_t integer;
        double real;
        int truth;
        IprotoTuple bytes;
        int done = iproto_tuple_field(tuple, field, &value);
        CHECK(done < 1 || ((int64_t)field < count && value.slice.data > tuple->data
                           && value.slice.data + value.slice.size <= tuple->data + tuple->size));
        int found = (iproto_tuple_unsigned(tuple, field, &number) == 1) + (iproto_tuple_boolean(tuple, field, &truth) == 1)
            + (iproto_tuple_string(tuple, field, &bytes) == 1) + (iproto_tuple_binary(tuple, field, &bytes) == 1);
        CHECK(found <= (done == 1));
        CHECK(iproto_tuple_integer(tuple, field, &integer) < 1 || iproto_tuple_double(tuple, field, &real) == 1);
    }
}

/* All rows are in all indexes, in the same number, and fit the format. */
static void check_space(void)
{
    int64_t size = 0;
    for (int index = 0; index < INDEXES; index++) {
        IprotoCursor *cursor = iproto_cursor_open(indexes[index], IPROTO_ALL, NULL, 0);
        IprotoTuple tuple;
        int64_t count = 0;
        for (; iproto_cursor_next(cursor, &tuple) == 1; count++) {
            uint64_t id;
            IprotoTuple name;
            CHECK(iproto_tuple_unsigned(&tuple, 0, &id) == 1 && iproto_tuple_string(&tuple, 1, &name) == 1);
            size += index ? 0 : (int64_t)tuple.size;
        }
        iproto_cursor_close(cursor);
        CHECK(count == iproto_space_len(space));
    }
    CHECK(size == iproto_space_bsize(space));
}

static void walk(int index, const Input *key)
{
    IprotoIterator iterator = (IprotoIterator)below(8);
    IprotoCursor *cursor = iproto_cursor_open(indexes[index], iterator, key->data, key->size);
    int64_t expected = iproto_index_count(indexes[index], iterator, key->data, key->size), count = 0;
    IprotoTuple tuple;
    check_result(cursor ? 1 : -1);
    CHECK(!cursor == (expected < 0));
    while (cursor && iproto_cursor_next(cursor, &tuple) == 1)
        count++;
    CHECK(!cursor || count == expected);
    iproto_cursor_close(cursor);
}

static void call(void)
{
    Packed packed = {.size = 0}, more = {.size = 0};
    int64_t len = iproto_space_len(space), bsize = iproto_space_bsize(space);
    int index = (int)below(INDEXES), done = 0;
    IprotoTuple tuple = {NULL, 0};
    Input input = {NULL, 0}, other = {NULL, 0};
    uint64_t kind = below(8);
    if (kind < 3)
        put_row(&packed);
    else
        put_key(&packed, index);
    input = damaged(&packed);
    if (kind == 2 || kind == 3) {
        put_operations(&more);
        other = damaged(&more);
    }
    switch (kind) {
    case 0: done = iproto_space_insert(space, input.data, input.size, &tuple); break;
    case 1: done = iproto_space_replace(space, input.data, input.size, &tuple); break;
    case 2:
        done = iproto_space_upsert(space, input.data, input.size, other.data, other.size, (uint32_t)below(3));
        break;
    case 3:
        done = iproto_index_update(indexes[index], input.data, input.size, other.data, other.size, (uint32_t)below(3), &tuple);
        break;
    case 4: done = iproto_index_get(indexes[index], input.data, input.size, &tuple); break;
    case 5: done = iproto_index_delete(indexes[index], input.data, input.size, &tuple); break;
    case 6: walk(index, &input); break;
    default: read_fields(&(IprotoTuple){input.data, input.size});
    }
    check_result(done);
    CHECK(kind == 2 || (tuple.data != NULL) == (kind < 2 ? done == 0 : kind < 6 && done == 1));
    if (kind < 2 && !done)
        CHECK(tuple.size == input.size && !memcmp(tuple.data, input.data, input.size));
    if (tuple.data)
        read_fields(&tuple);
    if (done < 0 || kind == 4 || kind > 5)
        CHECK(iproto_space_len(space) == len && iproto_space_bsize(space) == bsize);
    free(input.data);
    free(other.data);
}

int main(int argument_count, char **arguments)
{
    static const char *const names[INDEXES] = {"primary", "one", "two", "three"};
    CHECK(argument_count == 3);
    unsigned long inputs = strtoul(arguments[1], NULL, 10);
    random_state = strtoul(arguments[2], NULL, 10) * 2654435761u + 1;
    CHECK(engine = iproto_engine_open());
    CHECK(space = iproto_space_create(engine, 1, "space", FORMAT, sizeof FORMAT / sizeof *FORMAT, 0));
    for (int index = 0; index < INDEXES; index++)
        CHECK(indexes[index] = iproto_index_create(space, names[index], IPROTO_TREE, KEYS[index].is_unique, KEYS[index].parts,
                                                   (size_t)KEYS[index].count));
    for (unsigned long number = 0; number < inputs; number++) {
        if (!below(100) && !iproto_engine_is_in_transaction(engine))
            CHECK(iproto_engine_begin(engine) == 0);
        else if (!below(100) && iproto_engine_is_in_transaction(engine))
            CHECK((below(2) ? iproto_engine_commit : iproto_engine_rollback)(engine) == 0);
        call();
        if (number % 256 == 0)
            check_space();
    }
    CHECK(inputs < 10000 || accepted > inputs / 10);
    iproto_engine_close(engine);
    CHECK(slab_used() == 0 && budget_indexes() == 0);
    printf("%lu inputs, %lu accepted\n", inputs, accepted);
    return 0;
}
