/* The public API without memory: a call that fails changes nothing, and an engine that cannot undo refuses all other calls.
 *
 *     test_engine_memory OPERATIONS SEED
 */
#include "budget.h"
#include "iproto_engine.h"
#include "random_rows.h"
#include "slab.h"

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
static unsigned long refused, failed_engines;

typedef struct {
    uint64_t digest;
    int64_t len, bsize;
} State;

static State state_now(void)
{
    State state = {14695981039346656037u, 0, iproto_space_bsize(space)};
    have_memory();
    for (int index = 0; index < INDEXES && indexes[index]; index++) {
        IprotoCursor *cursor = iproto_cursor_open(indexes[index], IPROTO_ALL, NULL, 0);
        IprotoTuple tuple;
        CHECK(cursor);
        while (iproto_cursor_next(cursor, &tuple) == 1) {
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
    if (number % 3000 == 1000 && !indexes[2] && !iproto_engine_is_in_transaction(engine)) {
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

static int operate(void)
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
    switch (below(6)) {
    case 0: case 1: return iproto_space_insert(space, row.data, row.size, NULL);
    case 2: return iproto_space_replace(space, row.data, row.size, NULL);
    case 3: return iproto_index_update(indexes[0], key.data, key.size, "\x91\x93\xa1=\x02\x07", 6, 0, NULL);
    case 4: return iproto_space_upsert(space, row.data, row.size, "\x91\x93\xa1+\x02\x01", 6, 0);
    default: return iproto_index_delete(indexes[0], key.data, key.size, NULL);
    }
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
    CHECK(iproto_engine_begin(engine) == -1 && operate() == -1 && iproto_error_code() == IPROTO_ER_MEMORY_ISSUE);
    iproto_engine_close(engine);
    CHECK(slab_used() == 0);
    failed_engines++;
    open_engine();
    return 1;
}

static void check_operation(void)
{
    State before = state_now();
    if (below(2))
        run_short();
    int done = operate(), code = done < 0 ? iproto_error_code() : 0;
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
    int done = 1;
    for (int left = 3; done > 0 && left; left--) {
        done = iproto_cursor_next(cursor, &tuple);
        run_short();
        operate();
        have_memory();
        if (iproto_space_len(space) < 0)
            break;
    }
    CHECK(done >= 0 || iproto_error_code() == IPROTO_ER_MEMORY_ISSUE);
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
        open_late(number);
        if (!below(10))
            check_transaction();
        else if (!below(20))
            check_cursor();
        else
            check_operation();
    }
    CHECK(operations < 10000 || (refused && failed_engines));
    iproto_engine_close(engine);
    CHECK(slab_used() == 0 && budget_indexes() == 0);
    printf("%lu operations, %lu refused without memory, %lu engines failed\n", operations, refused, failed_engines);
    return 0;
}
