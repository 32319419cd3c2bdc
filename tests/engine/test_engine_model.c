/* Random operations through the public API, against plain arrays of rows: two spaces, trees of all kinds of keys,
 * transactions, the log, and cursors that stay open while rows change.
 *
 *     test_engine_model OPERATIONS SEED
 */
#include "memory/budget.h"
#include "iproto_engine.h"
#include "random_rows.h"
#include "memory/slab.h"

enum { FIELDS = 7, SPACES = 2, INDEXES = 5, ROWS = 512, CURSORS = 4, NAMES = 70, NAME_MAX_SIZE = 180, PARTS = 2 };

typedef struct {
    IprotoValueType type; /* NIL, BOOLEAN, UNSIGNED or NEGATIVE, DOUBLE, STRING, BINARY */
    int64_t number;
    uint64_t large; /* of UNSIGNED */
    double real;
    const uint8_t *bytes;
    uint8_t size;
} Value;

typedef struct {
    Value fields[FIELDS];
    Packed packed;
} Row;

static const IprotoField FORMAT[FIELDS] = {
    {"id", IPROTO_UNSIGNED, 0},    {"name", IPROTO_STRING, 0},   {"score", IPROTO_NUMBER, 1},  {"flag", IPROTO_BOOLEAN, 1},
    {"blob", IPROTO_VARBINARY, 0}, {"amount", IPROTO_DOUBLE, 1}, {"count", IPROTO_INTEGER, 1},
};
enum { ID, NAME, SCORE, FLAG, BLOB, AMOUNT, COUNT };

typedef struct {
    int is_unique, count;
    uint32_t fields[PARTS];
} Key;

static const Key KEYS[SPACES][INDEXES] = {
    {{1, 1, {ID}}, {1, 1, {NAME}}, {0, 1, {SCORE}}, {1, 2, {COUNT, FLAG}}, {0, 2, {BLOB, AMOUNT}}},
    {{1, 2, {NAME, ID}}, {0, 1, {FLAG}}, {1, 1, {SCORE}}, {0, 2, {COUNT, ID}}, {1, 2, {BLOB, AMOUNT}}},
};

/* The rows of a space, in no order. */
typedef struct {
    Row rows[ROWS];
    int count;
} Model;

typedef struct {
    IprotoCursor *cursor;
    int space, index, count; /* of the key's parts */
    IprotoIterator iterator;
    Row key, last;
    int has_last, is_at_end;
} Watch;

static IprotoEngine *engine;
static IprotoSpace *spaces[SPACES];
static IprotoIndex *indexes[SPACES][INDEXES];
static Model models[SPACES], before[SPACES], replicas[SPACES]; /* `before` the transaction; from the log alone */
static Watch watches[CURSORS];
static int is_in_transaction, log_fails;
static uint8_t names[NAMES][NAME_MAX_SIZE], name_sizes[NAMES];
static unsigned long refused, committed, rolled_back, unlogged;

/* -- values -- */

static long double number_of(const Value *value)
{
    if (value->type == IPROTO_VALUE_DOUBLE)
        return (long double)value->real;
    return value->type == IPROTO_VALUE_UNSIGNED ? (long double)value->large : (long double)value->number;
}

static int compare_values(const Value *one, const Value *other)
{
    int left = one->type != IPROTO_VALUE_NIL, right = other->type != IPROTO_VALUE_NIL;
    if (!left || !right)
        return left - right;
    if (one->type == IPROTO_VALUE_STRING || one->type == IPROTO_VALUE_BINARY) {
        int order = memcmp(one->bytes, other->bytes, one->size < other->size ? one->size : other->size);
        return order ? order : one->size - other->size;
    }
    long double first = number_of(one), second = number_of(other);
    return (first > second) - (first < second);
}

static Value integer(int64_t number)
{
    return (Value){number < 0 ? IPROTO_VALUE_NEGATIVE : IPROTO_VALUE_UNSIGNED, number, (uint64_t)number, 0, NULL, 0};
}

static Value nil(void)
{
    return (Value){.type = IPROTO_VALUE_NIL};
}

static Value any_integer(void)
{
    return integer(below(20) ? (int64_t)below(12) - 6 : (int64_t)(next_random() >> (2 + below(58))) * (below(2) ? 1 : -1));
}

static Value any_double(void)
{
    Value value = {.type = IPROTO_VALUE_DOUBLE, .real = ((double)below(24) - 12) / 4};
    if (!below(20))
        value.real *= 1e300;
    return value;
}

static Value any_bytes(IprotoValueType type, uint64_t place)
{
    return (Value){.type = type, .bytes = names[place], .size = name_sizes[place]};
}

static Value any_value(int field)
{
    if (FORMAT[field].is_nullable && !below(4))
        return nil();
    switch (field) {
    case ID: return integer((int64_t)below(90));
    case NAME: return any_bytes(IPROTO_VALUE_STRING, below(NAMES));
    case SCORE: {
        Value large = {.type = IPROTO_VALUE_UNSIGNED, .large = next_random()};
        return !below(40) ? large : below(2) ? any_double() : integer((int64_t)below(100) - 50);
    }
    case FLAG: return (Value){.type = IPROTO_VALUE_BOOLEAN, .number = (int64_t)below(2)};
    case BLOB: return any_bytes(IPROTO_VALUE_BINARY, below(9));
    case AMOUNT: return any_double();
    default: return any_integer();
    }
}

/* A value may be packed in several ways. */
static void put_value(Packed *packed, const Value *value)
{
    switch (value->type) {
    case IPROTO_VALUE_NIL: put_byte(packed, 0xc0); break;
    case IPROTO_VALUE_BOOLEAN: put_byte(packed, (uint8_t)(0xc2 + value->number)); break;
    case IPROTO_VALUE_UNSIGNED: put_unsigned(packed, value->large); break;
    case IPROTO_VALUE_NEGATIVE: put_integer(packed, value->number); break;
    case IPROTO_VALUE_DOUBLE: put_double(packed, value->real); break;
    case IPROTO_VALUE_STRING: put_string(packed, value->bytes, value->size); break;
    default:
        put_byte(packed, 0xc4);
        put_byte(packed, value->size);
        put_bytes(packed, value->bytes, value->size);
    }
}

static Value read_value(const IprotoTuple *tuple, uint32_t field)
{
    IprotoValue read;
    Value value = {.type = IPROTO_VALUE_NIL};
    if (iproto_tuple_field(tuple, field, &read) != 1)
        return value;
    return (Value){read.type, (int64_t)read.number, read.number, read.real, read.bytes.data, (uint8_t)read.bytes.size};
}

/* -- rows -- */

static void pack_row(Row *row, int count)
{
    row->packed.size = 0;
    put_byte(&row->packed, (uint8_t)(0x90 + count));
    for (int field = 0; field < count; field++)
        put_value(&row->packed, row->fields + field);
}

/* Nils at the end may be missing. */
static Row any_row(void)
{
    Row row;
    int count = FIELDS;
    for (int field = 0; field < FIELDS; field++)
        row.fields[field] = any_value(field);
    while (count > AMOUNT && row.fields[count - 1].type == IPROTO_VALUE_NIL && below(2))
        count--;
    pack_row(&row, count);
    return row;
}

static int field_count(const Row *row)
{
    return row->packed.data[0] - 0x90;
}

static IprotoTuple tuple_of(const Row *row)
{
    return (IprotoTuple){row->packed.data, row->packed.size};
}

static int is_same_row(const Row *row, IprotoTuple tuple)
{
    return tuple.size == row->packed.size && !memcmp(tuple.data, row->packed.data, tuple.size);
}

/* -- keys -- */

static int compare_parts(const Key *key, int count, const Row *one, const Row *other)
{
    int order = 0;
    for (int part = 0; part < count && !order; part++)
        order = compare_values(one->fields + key->fields[part], other->fields + key->fields[part]);
    return order;
}

static int has_nil(const Key *key, const Row *row)
{
    for (int part = 0; part < key->count; part++)
        if (row->fields[key->fields[part]].type == IPROTO_VALUE_NIL)
            return 1;
    return 0;
}

static int compare_entries(int space, int index, const Row *one, const Row *other)
{
    const Key *key = KEYS[space] + index;
    int order = compare_parts(key, key->count, one, other);
    if (!order && (!key->is_unique || has_nil(key, one)))
        order = compare_parts(KEYS[space], KEYS[space]->count, one, other);
    return order;
}

static void pack_key(Packed *packed, const Key *key, int count, const Row *row)
{
    packed->size = 0;
    put_byte(packed, (uint8_t)(0x90 + count));
    for (int part = 0; part < count; part++)
        put_value(packed, row->fields + key->fields[part]);
}

/* Whether a row is among those of an iterator. */
static int is_within(const Key *key, int count, IprotoIterator iterator, const Row *row, const Row *wanted)
{
    int order = compare_parts(key, count, row, wanted);
    if (!count)
        return 1;
    switch (iterator) {
    case IPROTO_EQ: case IPROTO_REQ: return !order;
    case IPROTO_LT: return order < 0;
    case IPROTO_LE: return order <= 0;
    case IPROTO_GT: return order > 0;
    default: return order >= 0;
    }
}

static int is_backward(IprotoIterator iterator)
{
    return iterator == IPROTO_REQ || iterator == IPROTO_LT || iterator == IPROTO_LE;
}

/* -- the model -- */

static int find(const Model *model, int space, const Row *row)
{
    for (int place = 0; place < model->count; place++)
        if (!compare_parts(KEYS[space], KEYS[space]->count, model->rows + place, row))
            return place;
    return -1;
}

/* Whether another row than that at a place has a key of a row in a unique index. */
static int is_taken(int space, const Row *row, int except)
{
    for (int index = 1; index < INDEXES; index++) {
        const Key *key = KEYS[space] + index;
        if (!key->is_unique || has_nil(key, row))
            continue;
        for (int place = 0; place < models[space].count; place++)
            if (place != except && !compare_parts(key, key->count, models[space].rows + place, row))
                return 1;
    }
    return 0;
}

static void put(Model *model, int place, const Row *row)
{
    model->rows[place < 0 ? model->count++ : place] = *row;
}

static void take(Model *model, int place)
{
    model->rows[place] = model->rows[--model->count];
}

/* The row that a cursor returns next; NULL at the end. */
static const Row *expected_next(const Watch *watch)
{
    const Model *model = models + watch->space;
    const Key *key = KEYS[watch->space] + watch->index;
    const Row *found = NULL;
    int sign = is_backward(watch->iterator) ? -1 : 1;
    for (const Row *row = model->rows; row < model->rows + model->count; row++) {
        if (!is_within(key, watch->count, watch->iterator, row, &watch->key)
            || (watch->has_last && sign * compare_entries(watch->space, watch->index, row, &watch->last) <= 0))
            continue;
        if (!found || sign * compare_entries(watch->space, watch->index, row, found) < 0)
            found = row;
    }
    return found;
}

/* -- the log -- */

static int write_log(void *context, const IprotoChange *changes, size_t count)
{
    CHECK(!context && count);
    for (const IprotoChange *change = changes; change < changes + count && !log_fails; change++) {
        int space = (int)change->space_id;
        Row row;
        if (change->type == IPROTO_DELETE)
            for (int part = 0; part < KEYS[space]->count; part++)
                row.fields[KEYS[space]->fields[part]] = read_value(&change->row, (uint32_t)part);
        else
            for (int field = 0; field < FIELDS; field++)
                row.fields[field] = read_value(&change->row, (uint32_t)field);
        row.packed.size = 0;
        put_bytes(&row.packed, change->row.data, change->row.size);
        int place = find(replicas + space, space, &row);
        CHECK((place < 0) == (change->type == IPROTO_INSERT));
        CHECK(place < 0 ? !change->old.data : is_same_row(replicas[space].rows + place, change->old));
        if (change->type == IPROTO_DELETE) {
            take(replicas + space, place);
            continue;
        }
        /* What the values refer to is gone after the call. */
        for (int field = 0; field < FIELDS; field++)
            for (int name = 0; name < NAMES && row.fields[field].bytes; name++)
                if (row.fields[field].size == name_sizes[name] && !memcmp(row.fields[field].bytes, names[name], name_sizes[name])) {
                    row.fields[field].bytes = names[name];
                    break;
                }
        put(replicas + space, place, &row);
    }
    return log_fails;
}

static void check_replicas(void)
{
    for (int space = 0; space < SPACES; space++) {
        CHECK(replicas[space].count == models[space].count);
        for (int place = 0; place < models[space].count; place++) {
            int found = find(replicas + space, space, models[space].rows + place);
            CHECK(found >= 0 && is_same_row(models[space].rows + place, tuple_of(replicas[space].rows + found)));
        }
    }
}

/* -- operations -- */

/* Whether a change was carried out. Outside a transaction it was not if it was not logged. */
static int is_done(int done, int expected)
{
    if (done == -1 && log_fails && !is_in_transaction && iproto_error_code() == IPROTO_ER_WAL_IO) {
        unlogged++;
        return 0;
    }
    CHECK(done == expected);
    return 1;
}

static void is_refused(int done, IprotoErrorCode code)
{
    CHECK(done == -1 && iproto_error_code() == (int)code);
    refused++;
}

static void store(int space, int may_replace)
{
    Row row = any_row();
    int place = find(models + space, space, &row);
    if (place < 0 && models[space].count == ROWS)
        return;
    IprotoTuple result = {NULL, 0};
    int done = (may_replace ? iproto_space_replace : iproto_space_insert)(spaces[space], row.packed.data, row.packed.size, &result);
    if ((place >= 0 && !may_replace) || is_taken(space, &row, place)) {
        is_refused(done, IPROTO_ER_TUPLE_FOUND);
    } else if (is_done(done, 0)) {
        CHECK(is_same_row(&row, result));
        put(models + space, place, &row);
    }
}

/* A row that is there, or any other one. */
static Row any_place(int space, int *place)
{
    Row row = any_row();
    *place = -1;
    if (models[space].count && below(8)) {
        *place = (int)below((uint64_t)models[space].count);
        return models[space].rows[*place];
    }
    return row;
}

/* Find a row by a whole key of a unique index. */
static int find_by(int space, int index, const Row *row)
{
    const Key *key = KEYS[space] + index;
    for (int place = 0; place < models[space].count; place++)
        if (!compare_parts(key, key->count, models[space].rows + place, row))
            return place;
    return -1;
}

static void get_or_delete(int space, int is_delete)
{
    int place, index = (int)below(INDEXES);
    Row row = any_place(space, &place);
    const Key *key = KEYS[space] + index;
    Packed packed;
    IprotoTuple result = {NULL, 0};
    pack_key(&packed, key, key->count, &row);
    int done = (is_delete ? iproto_index_delete : iproto_index_get)(indexes[space][index], packed.data, packed.size, &result);
    if (!key->is_unique) {
        is_refused(done, IPROTO_ER_MORE_THAN_ONE_TUPLE);
    } else if (has_nil(key, &row)) {
        is_refused(done, IPROTO_ER_KEY_PART_TYPE);
    } else {
        place = find_by(space, index, &row);
        if (!is_delete)
            CHECK(done == (place >= 0));
        else if (!is_done(done, place >= 0))
            return;
        if (place >= 0)
            CHECK(is_same_row(models[space].rows + place, result));
        if (place >= 0 && is_delete)
            take(models + space, place);
    }
}

/* Assign to fields, and maybe add to the last one. Returns the error of the first operation that does not fit; these are
 * left out. */
static IprotoErrorCode any_operations(Packed *operations, Row *row, uint32_t base)
{
    IprotoErrorCode error = IPROTO_ER_NONE;
    int count = field_count(row), total = 1 + (int)below(2), is_count_changed = 0;
    operations->size = 0;
    put_byte(operations, (uint8_t)(0x90 + total));
    for (int number = 0; number < total; number++) {
        int field = below(10) ? 1 + (int)below(FIELDS - 1) : 0, adds = number && field == COUNT;
        Value value = adds ? integer((int64_t)below(3)) : any_value(field);
        put_byte(operations, 0x93);
        put_byte(operations, 0xa1);
        put_byte(operations, adds ? '+' : '=');
        if (below(2))
            put_string(operations, FORMAT[field].name, (uint8_t)strlen(FORMAT[field].name));
        else
            put_unsigned(operations, (uint64_t)field + base);
        put_value(operations, &value);
        Value *old = row->fields + field;
        if (field > count || (adds && field == count)) {
            error = error ? error : IPROTO_ER_NO_SUCH_FIELD_NO;
        } else if (adds && old->type == IPROTO_VALUE_NIL) {
            error = error ? error : is_count_changed ? IPROTO_ER_UPDATE_FIELD : IPROTO_ER_UPDATE_ARG_TYPE;
        } else if (adds && is_count_changed) {
            error = error ? error : IPROTO_ER_UPDATE_FIELD; /* twice */
        } else {
            is_count_changed |= field == COUNT && field < count;
            *old = adds ? integer(old->number + value.number) : value;
            count += field == count;
        }
    }
    pack_row(row, count);
    return error;
}

static void update(int space)
{
    int place;
    Row row = any_place(space, &place), new;
    place = find(models + space, space, &row);
    if (place >= 0)
        row = models[space].rows[place];
    new = row;
    Packed key, operations;
    uint32_t base = (uint32_t)below(2);
    IprotoTuple result = {NULL, 0};
    IprotoErrorCode error = any_operations(&operations, &new, base);
    pack_key(&key, KEYS[space], KEYS[space]->count, &row);
    int done = iproto_index_update(indexes[space][0], key.data, key.size, operations.data, operations.size, base, &result);
    if (place < 0)
        CHECK(done == 0);
    else if (error)
        is_refused(done, error);
    else if (compare_parts(KEYS[space], KEYS[space]->count, &row, &new))
        is_refused(done, IPROTO_ER_CANT_UPDATE_PRIMARY_KEY);
    else if (is_taken(space, &new, place))
        is_refused(done, IPROTO_ER_TUPLE_FOUND);
    else if (is_done(done, 1)) {
        new.packed.size = 0; /* numbers may be packed in another way */
        put_bytes(&new.packed, result.data, result.size);
        for (uint32_t field = 0; field < FIELDS; field++) {
            Value stored = read_value(&result, field);
            CHECK(!compare_values(&stored, new.fields + field));
        }
        put(models + space, place, &new);
    }
}

static void upsert(int space)
{
    int place;
    Row row = any_place(space, &place), new;
    place = find(models + space, space, &row);
    if (place < 0 && models[space].count == ROWS)
        return;
    new = place < 0 ? row : models[space].rows[place];
    Packed operations;
    any_operations(&operations, &new, 0);
    int done = iproto_space_upsert(spaces[space], row.packed.data, row.packed.size, operations.data, operations.size, 0);
    if (place < 0)
        new = row;
    else if (compare_parts(KEYS[space], KEYS[space]->count, &row, &new)) {
        CHECK(done == 0);
        return;
    }
    if (is_taken(space, &new, place)) {
        is_refused(done, IPROTO_ER_TUPLE_FOUND);
    } else if (is_done(done, 0)) {
        Packed key;
        IprotoTuple result;
        pack_key(&key, KEYS[space], KEYS[space]->count, &row);
        CHECK(iproto_index_get(indexes[space][0], key.data, key.size, &result) == 1);
        new.packed.size = 0;
        put_bytes(&new.packed, result.data, result.size);
        for (uint32_t field = 0; field < FIELDS; field++) {
            Value stored = read_value(&result, field);
            CHECK(!compare_values(&stored, new.fields + field));
        }
        put(models + space, place, &new);
    }
}

/* -- transactions -- */

static void begin_transaction(void)
{
    CHECK(iproto_engine_begin(engine) == 0);
    memcpy(before, models, sizeof before);
    is_in_transaction = 1;
}

static void end_transaction(void)
{
    int is_rollback = below(2);
    if (is_rollback) {
        CHECK(iproto_engine_rollback(engine) == 0);
        rolled_back++;
    } else if (iproto_engine_commit(engine) == 0) {
        committed++;
    } else {
        CHECK(log_fails && iproto_error_code() == IPROTO_ER_WAL_IO);
        unlogged++;
        is_rollback = 1;
    }
    if (is_rollback)
        memcpy(models, before, sizeof before);
    is_in_transaction = 0;
    CHECK(!iproto_engine_is_in_transaction(engine));
}

/* -- cursors -- */

static void open_watch(Watch *watch)
{
    iproto_cursor_close(watch->cursor);
    int place;
    *watch = (Watch){.space = (int)below(SPACES), .index = (int)below(INDEXES)};
    const Key *key = KEYS[watch->space] + watch->index;
    watch->iterator = (IprotoIterator)below(IPROTO_GT + 1);
    watch->count = (int)below((uint64_t)key->count + 1);
    watch->key = any_place(watch->space, &place);
    Packed packed;
    pack_key(&packed, key, watch->count, &watch->key);
    watch->cursor = iproto_cursor_open(indexes[watch->space][watch->index], watch->iterator, packed.data, packed.size);
    CHECK(watch->cursor);
}

static void step(Watch *watch)
{
    IprotoTuple tuple;
    const Row *expected = watch->is_at_end ? NULL : expected_next(watch);
    int done = iproto_cursor_next(watch->cursor, &tuple);
    CHECK(done == (expected != NULL));
    watch->is_at_end = !expected;
    if (!expected)
        return;
    CHECK(is_same_row(expected, tuple));
    watch->last = *expected;
    watch->has_last = 1;
}

/* Walk a whole cursor, and count its rows. */
static void walk(void)
{
    static Watch watch;
    unsigned long found = 0, expected = 0;
    open_watch(&watch);
    const Key *key = KEYS[watch.space] + watch.index;
    Packed packed;
    pack_key(&packed, key, watch.count, &watch.key);
    int64_t count = iproto_index_count(indexes[watch.space][watch.index], watch.iterator, packed.data, packed.size);
    for (int place = 0; place < models[watch.space].count; place++)
        expected += (unsigned long)is_within(key, watch.count, watch.iterator, models[watch.space].rows + place, &watch.key);
    while (!watch.is_at_end && ++found < 40)
        step(&watch);
    CHECK(count == (int64_t)expected && (found == 40 || found == expected + 1));
    iproto_cursor_close(watch.cursor);
    watch.cursor = NULL;
}

/* -- the whole -- */

static int sorted_space, sorted_index;

static int compare_places(const void *one, const void *other)
{
    return compare_entries(sorted_space, sorted_index, *(const Row *const *)one, *(const Row *const *)other);
}

static void check_index(int space, int index)
{
    static const Row *sorted[ROWS];
    Model *model = models + space;
    IprotoCursor *cursor = iproto_cursor_open(indexes[space][index], IPROTO_ALL, NULL, 0);
    IprotoTuple tuple;
    for (int place = 0; place < model->count; place++)
        sorted[place] = model->rows + place;
    sorted_space = space;
    sorted_index = index;
    qsort(sorted, (size_t)model->count, sizeof *sorted, compare_places);
    for (int place = 0; place < model->count; place++)
        CHECK(iproto_cursor_next(cursor, &tuple) == 1 && is_same_row(sorted[place], tuple));
    CHECK(iproto_cursor_next(cursor, &tuple) == 0);
    iproto_cursor_close(cursor);
    CHECK(iproto_index_len(indexes[space][index]) == model->count);
}

static void check_all(void)
{
    for (int space = 0; space < SPACES; space++) {
        int64_t size = 0;
        for (int index = 0; index < INDEXES; index++)
            check_index(space, index);
        for (int place = 0; place < models[space].count; place++)
            size += (int64_t)models[space].rows[place].packed.size;
        CHECK(iproto_space_len(spaces[space]) == models[space].count && iproto_space_bsize(spaces[space]) == size);
    }
    if (!is_in_transaction)
        check_replicas();
}

/* Create the indexes from a number on; some are created when there are rows. */
static void create_indexes(int space, int from, int to)
{
    static const char *const index_names[INDEXES] = {"primary", "one", "two", "three", "four"};
    for (int index = from; index < to; index++) {
        const Key *key = KEYS[space] + index;
        IprotoPart parts[PARTS];
        for (int part = 0; part < key->count; part++) {
            const IprotoField *field = FORMAT + key->fields[part];
            parts[part] = (IprotoPart){key->fields[part], field->type, field->is_nullable};
        }
        indexes[space][index] = iproto_index_create(spaces[space], index_names[index], IPROTO_TREE, key->is_unique, parts, (size_t)key->count);
        CHECK(indexes[space][index]);
    }
}

static void begin(void)
{
    for (int name = 0; name < NAMES; name++) {
        name_sizes[name] = (uint8_t)(name % 10 ? name % 7 + 1 : NAME_MAX_SIZE - name / 10); /* a few are long */
        for (int place = 0; place < name_sizes[name]; place++)
            names[name][place] = name % 10 ? (uint8_t)(below(4) * 85) : 'x';
    }
    CHECK(engine = iproto_engine_open());
    CHECK(iproto_engine_set_log(engine, write_log, NULL) == 0);
    for (int space = 0; space < SPACES; space++) {
        CHECK(spaces[space] = iproto_space_create(engine, (uint32_t)space, space ? "b" : "a", FORMAT, FIELDS, 0));
        create_indexes(space, 0, INDEXES);
    }
}

static void operate(unsigned long number)
{
    int space = (int)below(SPACES), is_shrinking = models[space].count > (number / 20000 % 4 == 3 ? 400 : 40);
    log_fails = !below(50);
    switch (below(16)) {
    case 0: case 1: case 2:
        if (is_shrinking)
            get_or_delete(space, 1);
        else
            store(space, 0);
        break;
    case 3: case 4: store(space, 1); break;
    case 5: case 6: update(space); break;
    case 7: upsert(space); break;
    case 8: get_or_delete(space, 1); break;
    case 9: get_or_delete(space, 0); break;
    case 10:
        if (below(3) == 0)
            (is_in_transaction ? end_transaction : begin_transaction)();
        break;
    case 11: open_watch(watches + below(CURSORS)); break;
    case 12:
        if (!below(16))
            walk();
        break;
    default: {
        Watch *watch = watches + below(CURSORS);
        if (watch->cursor)
            step(watch);
    }
    }
}

int main(int argument_count, char **arguments)
{
    CHECK(argument_count == 3);
    unsigned long operations = strtoul(arguments[1], NULL, 10);
    random_state = strtoul(arguments[2], NULL, 10) * 2654435761u + 1;
    begin();
    for (unsigned long number = 0; number < operations; number++) {
        operate(number);
        if (number % 512 == 0)
            check_all();
    }
    check_all();
    CHECK(operations < 10000 || (refused && committed && rolled_back && unlogged));
    iproto_engine_close(engine);
    CHECK(slab_used() == 0 && budget_indexes() == 0);
    printf("%lu operations, %lu refused, %lu transactions committed, %lu rolled back, %lu changes not logged\n", operations,
           refused, committed, rolled_back, unlogged);
    return 0;
}
