/* The public API without memory: a call that fails changes nothing, and an engine that cannot undo refuses all other calls.
 *
 *     test_engine_memory OPERATIONS SEED
 */
#include "memory/budget.h"
#include "iproto_engine.h"
#include "random_rows.h"
#include "memory/slab.h"

enum { INDEXES = 4, IDS = 150, NAME_MAX_SIZE = 200 };

/* -- memory -- */

static void have_memory(void)
{
    allocations_left = -1ul;
}

/* From now on memory runs out after some allocations. */
static void run_short(void)
{
    allocations_left = below(5);
}

/* -- what there is -- */

static IprotoEngine *engine;
static IprotoSpace *space;
static IprotoIndex *indexes[INDEXES];
static unsigned long refused, failed_engines, lost_cursors;

typedef struct {
    uint64_t digest;
    int64_t len, bsize;
} State;

/* A row is found by its keys: it is where it belongs. */
static void check_place(const IprotoTuple *row)
{
    IprotoValue name, rank;
    IprotoTuple found;
    Packed key = {.size = 0}, pair = {.size = 0};
    CHECK(iproto_tuple_field(row, 1, &name) == 1 && iproto_tuple_field(row, 2, &rank) == 1);
    put_byte(&pair, 0x92);
    put_bytes(&pair, rank.slice.data, rank.slice.size);
    put_bytes(&pair, name.slice.data, name.slice.size);
    CHECK(!indexes[2] || iproto_index_count(indexes[2], IPROTO_EQ, pair.data, pair.size) == 1);
    put_byte(&key, 0x91);
    put_bytes(&key, name.slice.data, name.slice.size);
    CHECK(iproto_index_get(indexes[0], key.data, key.size, &found) == 1 && found.data == row->data);
}

static State state_now(void)
{
    State state = {14695981039346656037u, 0, iproto_space_bsize(space)};
    have_memory();
    for (int index = 0; index < INDEXES && indexes[index]; index++) {
        IprotoCursor *cursor = iproto_cursor_open(indexes[index], IPROTO_ALL, NULL, 0);
        IprotoTuple tuple;
        CHECK(cursor);
        while (iproto_cursor_next(cursor, &tuple) == 1) {
            check_place(&tuple);
            for (size_t place = 0; place < tuple.size; place++)
                state.digest = (state.digest ^ tuple.data[place]) * 1099511628211u;
            state.len += !index;
        }
        iproto_cursor_close(cursor);
        CHECK(iproto_index_len(indexes[index]) == state.len);
    }
    return state;
}

static int is_same(State one, State other)
{
    return one.digest == other.digest && one.len == other.len && one.bsize == other.bsize;
}

static int write_log(void *context, const IprotoChange *changes, size_t count)
{
    (void)context;
    return changes[count - 1].row.size % 11 == 0;
}

/* -- opening -- */

static void create_index(int index)
{
    static const char *const names[INDEXES] = {"primary", "name", "pair", "rank"};
    static const struct {
        int is_unique, count;
        IprotoPart parts[2];
    } KEYS[INDEXES] = {
        {1, 1, {{1, IPROTO_STRING, 0}}},
        {1, 1, {{0, IPROTO_UNSIGNED, 0}}},
        {0, 2, {{2, IPROTO_INTEGER, 1}, {1, IPROTO_STRING, 0}}},
        {1, 2, {{2, IPROTO_INTEGER, 1}, {0, IPROTO_UNSIGNED, 0}}},
    };
    for (unsigned long allocations = 0; !indexes[index]; allocations++) {
        allocations_left = allocations;
        indexes[index] = iproto_index_create(space, names[index], IPROTO_TREE, KEYS[index].is_unique, KEYS[index].parts,
                                             (size_t)KEYS[index].count);
        have_memory();
        CHECK(indexes[index] || iproto_error_code() == IPROTO_ER_MEMORY_ISSUE);
    }
}

static void open_engine(void)
{
    static const IprotoField fields[] = {{"id", IPROTO_UNSIGNED, 0}, {"name", IPROTO_STRING, 0}};
    memset(indexes, 0, sizeof indexes);
    engine = NULL;
    space = NULL;
    for (unsigned long allocations = 0; !engine; allocations++) {
        allocations_left = allocations;
        engine = iproto_engine_open();
        have_memory();
        CHECK(engine || iproto_error_code() == IPROTO_ER_MEMORY_ISSUE);
    }
    for (unsigned long allocations = 0; !space; allocations++) {
        allocations_left = allocations;
        space = iproto_space_create(engine, 1, "space", fields, 2, 0);
        have_memory();
        CHECK(space || iproto_error_code() == IPROTO_ER_MEMORY_ISSUE);
    }
    CHECK(iproto_engine_set_log(engine, write_log, NULL) == 0);
    create_index(0);
    create_index(1);
}

/* The rest of the indexes comes when there are rows. */
static void open_late(unsigned long number)
{
    if (number % 200 == 100 && !indexes[2] && !iproto_engine_is_in_transaction(engine)) {
        create_index(2);
        create_index(3);
    }
}

/* -- operations -- */

static void put_name(Packed *packed, uint64_t id)
{
    uint8_t name[NAME_MAX_SIZE];
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = (uint8_t)id;
    put_string(packed, name, (uint8_t)(id % 3 ? 5 + id : sizeof name));
}

/* Change a row; without much memory if wanted. */
static int operate(int is_short)
{
    Packed row = {.size = 0}, key = {.size = 0};
    uint64_t id = below(IDS);
    put_byte(&row, 0x94);
    put_unsigned(&row, id);
    put_name(&row, id);
    if (below(4))
        put_integer(&row, (int64_t)below(5));
    else
        put_byte(&row, 0xc0);
    put_string(&row, "................................................................................", (uint8_t)below(80));
    put_byte(&key, 0x91);
    put_name(&key, id);
    int is_there = iproto_index_get(indexes[0], key.data, key.size, NULL) == 1, done;
    uint64_t kind = below(6);
    if (is_short)
        run_short();
    switch (kind) {
    case 0: case 1: done = iproto_space_insert(space, row.data, row.size, NULL); break;
    case 2: done = iproto_space_replace(space, row.data, row.size, NULL); break;
    case 3: done = iproto_index_update(indexes[0], key.data, key.size, "\x91\x93\xa1=\x02\x07", 6, 0, NULL); break;
    case 4: done = iproto_space_upsert(space, row.data, row.size, "\x91\x93\xa1+\x02\x01", 6, 0); break;
    default: done = iproto_index_delete(indexes[0], key.data, key.size, NULL);
    }
    have_memory();
    CHECK(done < 0 || kind == 4 || done == (kind < 3 ? 0 : is_there));
    return done;
}

/* Whether the engine has failed; then it refuses everything, and another one is opened. */
static int has_failed(void)
{
    have_memory();
    if (iproto_space_len(space) >= 0)
        return 0;
    IprotoTuple tuple;
    CHECK(iproto_error_code() == IPROTO_ER_MEMORY_ISSUE);
    CHECK(iproto_index_get(indexes[0], "\x91\xa1x", 3, &tuple) == -1 && !iproto_cursor_open(indexes[0], IPROTO_ALL, NULL, 0));
    CHECK(iproto_engine_begin(engine) == -1 && operate(0) == -1 && iproto_error_code() == IPROTO_ER_MEMORY_ISSUE);
    iproto_engine_close(engine);
    CHECK(slab_used() == 0);
    failed_engines++;
    open_engine();
    return 1;
}

static void check_operation(void)
{
    State before = state_now();
    int done = operate((int)below(2)), code = done < 0 ? iproto_error_code() : 0;
    have_memory();
    if (done >= 0 || has_failed())
        return;
    CHECK(code == IPROTO_ER_MEMORY_ISSUE || code == IPROTO_ER_TUPLE_FOUND || code == IPROTO_ER_WAL_IO || code == IPROTO_ER_UPDATE_ARG_TYPE);
    CHECK(is_same(before, state_now()));
    refused += code == IPROTO_ER_MEMORY_ISSUE;
}

static void check_transaction(void)
{
    State before = state_now(), changed;
    CHECK(iproto_engine_begin(engine) == 0);
    for (uint64_t left = below(12); left; left--)
        check_operation();
    if (!iproto_engine_is_in_transaction(engine))
        return; /* another engine */
    changed = state_now();
    run_short();
    int is_rollback = (int)below(2), done = (is_rollback ? iproto_engine_rollback : iproto_engine_commit)(engine);
    have_memory();
    if (!has_failed())
        CHECK(is_same(state_now(), is_rollback || done < 0 ? before : changed));
}

/* A cursor that could not keep its key says so. */
static void check_cursor(void)
{
    IprotoTuple tuple;
    IprotoCursor *cursor = iproto_cursor_open(indexes[0], IPROTO_ALL, NULL, 0);
    uint8_t last[NAME_MAX_SIZE + 1] = {0};
    int done;
    while (iproto_space_len(space) >= 0 && (done = iproto_cursor_next(cursor, &tuple)) != 0) {
        IprotoTuple name;
        CHECK(done > 0 || iproto_error_code() == IPROTO_ER_MEMORY_ISSUE);
        lost_cursors += done < 0;
        if (done < 0)
            break;
        CHECK(iproto_tuple_string(&tuple, 1, &name) == 1 && memcmp(last, name.data, name.size) < 0);
        memcpy(last, name.data, name.size);
        memset(last + name.size, 0, sizeof last - name.size);
        operate(!below(3));
    }
    iproto_cursor_close(cursor);
    has_failed();
}

int main(int argument_count, char **arguments)
{
    CHECK(argument_count == 3);
    unsigned long operations = strtoul(arguments[1], NULL, 10);
    random_state = strtoul(arguments[2], NULL, 10) * 2654435761u + 1;
    open_engine();
    for (unsigned long number = 0; number < operations; number++) {
        if (number % 200 == 199) { /* another engine has no memory of its own yet */
            iproto_engine_close(engine);
            open_engine();
        }
        open_late(number);
        if (!below(10))
            check_transaction();
        else if (!below(20))
            check_cursor();
        else
            check_operation();
    }
    CHECK(operations < 10000 || (refused && failed_engines && lost_cursors));
    iproto_engine_close(engine);
    CHECK(slab_used() == 0 && budget_indexes() == 0);
    printf("%lu operations, %lu refused without memory, %lu engines failed, %lu cursors lost\n", operations, refused,
           failed_engines, lost_cursors);
    return 0;
}
