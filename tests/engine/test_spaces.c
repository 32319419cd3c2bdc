/* Random changes of rows in two spaces, against plain arrays: secondary indexes with keys by layouts, by the hook and by
 * both, triggers that change rows themselves, effects, transactions, savepoints, suspended and unwritten transactions,
 * views, the log, a memory budget and memory that runs out. What fails changes nothing.
 *
 *     test_spaces OPERATIONS SEED
 */
#include "memory/budget.h"
#include "memory/slab.h"
#include "model/changes.h"
#include "model/checks.h"

enum { SAVEPOINTS = 3 };

static struct {
    Savepoint point;
    Model before;
} savepoints[SAVEPOINTS];
static int savepoint_count;
static unsigned long committed_count, rolled_back_count, suspended, taken_back;

static void change(void)
{
    Plan plan = any_plan(0);
    int was_running = engine.running != NULL;
    ran_short = has_logged = kept_count = 0;
    make_change(&plan);
    CHECK(!engine.nesting);
    if (was_running && !engine.running)
        savepoint_count = 0;
}

/* -- transactions -- */

static TestTransaction *running(void)
{
    return (TestTransaction *)engine.running;
}

static void end_transaction(void)
{
    Model was = running()->before;
    int is_rollback = (int)below(2), has_changed = engine.running->count != 0;
    savepoint_count = 0;
    if (is_rollback)
        engine_rollback(&engine);
    else if (engine_commit(&engine) < 0) {
        CHECK(log_answer < 0 && has_changed && engine.failure == FAILURE_HOOK);
        is_rollback = 1;
    }
    rolled_back_count += is_rollback;
    committed_count += !is_rollback;
    if (is_rollback)
        model = was;
    CHECK(!engine.running);
}

static void use_savepoints(void)
{
    int place = savepoint_count ? (int)below((uint64_t)savepoint_count) : 0;
    if (savepoint_count < SAVEPOINTS && below(2)) {
        engine_mark(&engine, &savepoints[savepoint_count].point);
        savepoints[savepoint_count++].before = model;
        running()->callbacks += below(3);
    } else if (savepoint_count) {
        CHECK(engine_rollback_to(&engine, &savepoints[place].point) == 0);
        CHECK(running()->callbacks == savepoints[place].point.marks[0]);
        model = savepoints[place].before;
        savepoint_count = place + 1;
    }
}

/* Undo what a transaction has changed, with little memory at a time. */
static void undo_with_little_memory(void)
{
    int done = -1;
    for (unsigned long allocations = 0; done < 0; allocations++) {
        stays_short = 1;
        allocations_left = allocations;
        done = transaction_undo(&engine, engine.running, 0);
        stays_short = 0;
        have_memory();
        CHECK(done == 0 || engine.failure == FAILURE_MEMORY || engine.failure == FAILURE_HOOK);
    }
    model = running()->before;
    savepoint_count = 0;
}

/* Others see the spaces without what a suspended transaction has changed. */
static void suspend(void)
{
    TestTransaction *transaction = running();
    Model changed = model;
    for (size_t place = 0; place < engine.running->count; place++)
        if (engine.running->all[place].effect)
            return; /* of system rows there is no suspending */
    engine.running = NULL;
    CHECK(transaction_take_out(&engine, &transaction->core) == 0);
    model = transaction->before;
    model.effects = changed.effects;
    is_suspended = 1;
    check_all();
    suspended++;
    if (!below(3)) {
        savepoint_count = is_suspended = 0;
        free_transaction(transaction);
        return;
    }
    CHECK(engine_begin(&engine) == 0);
    change();
    if (engine.running) {
        Model was = running()->before;
        engine_rollback(&engine);
        model = was;
    }
    CHECK(transaction_put_in(&engine, &transaction->core) == 0);
    engine.running = &transaction->core;
    model = changed;
    is_suspended = 0;
    check_all();
}

/* The log was written, or that has failed. */
static void write_waiting(void)
{
    int is_written = below(3) != 0;
    while (unwritten_count) {
        TestTransaction *transaction = unwritten[--unwritten_count];
        if (!is_written) {
            CHECK(transaction_undo(&engine, &transaction->core, 0) == 0);
            model = transaction->before;
            logged = transaction->logged_before;
            taken_back++;
        }
        free_transaction(transaction);
    }
}

/* -- the test -- */

static void begin_all(void)
{
    engine.hooks = &ENGINE_HOOKS;
    for (int space = 0; space < SPACES; space++) {
        Space *core = spaces + space;
        Index *primary = NULL;
        for (int number = 0; number < index_count(space); number++) {
            TestIndex *test = &test_indexes[space][number];
            test->layout.is_wide = (uint8_t)key_needs_wide_hints(&test->layout);
            Index *index = index_new(test->has_tags ? NULL : &test->layout, test->has_tags ? NULL : primary, &INDEX_HOOK, test);
            CHECK(index);
            index->is_unique = (uint8_t)test->is_unique;
            index->is_multikey = (uint8_t)test->has_tags;
            uint64_t fields = (uint64_t)1 << test_indexes[space][0].fields[0];
            for (int field = 0; field < test->count; field++)
                fields |= (uint64_t)1 << test->fields[field];
            if (number)
                others[space][number - 1] = (SpaceIndex){index, fields, 0};
            else
                primary = index;
        }
        *core = (Space){.engine = &engine, .hooks = &SPACE_HOOKS, .id = 512u + (uint32_t)space, .is_checked = 1,
                        .primary_fields = (uint64_t)1 << test_indexes[space][0].fields[0], .primary = primary,
                        .others = others[space], .count = index_count(space) - 1};
        core->format = (RowFormat){FIELDS, FIELDS, {{FIELD_UNSIGNED, 0}, {FIELD_STRING, 0}, {FIELD_NUMBER, !space},
                                                    {FIELD_ARRAY, 0}, {FIELD_INTEGER, 1}}};
    }
}

static void end_all(void)
{
    if (engine.running)
        end_transaction();
    write_waiting();
    for (int space = 0; space < SPACES; space++) {
        view_close(&views[space].view);
        for (int number = 1; number < index_count(space); number++)
            index_release(others[space][number - 1].index);
        index_release(spaces[space].primary);
        CHECK(!users[space]);
    }
    CHECK(slab_used() == 0 && budget_indexes() == 0);
}

/* Other circumstances: what triggers there are, what the log does, how much memory there may be. */
static void change_circumstances(void)
{
    for (int space = 0; space < SPACES && !engine.running && !unwritten_count; space++)
        spaces[space].flags = (uint8_t)(below(2) ? 0 : below(16));
    engine.is_read_only = !below(10);
    engine.is_tracked = !below(3);
    is_exempt = (int)below(2);
    budget.limit = below(4) ? BUDGET_UNLIMITED : budget_held();
}

static void operate(void)
{
    log_answer = below(12) ? unwritten_count < UNWRITTEN_MAX - 1 && below(3) == 0 : -1;
    switch (below(30)) {
    case 0: change_circumstances(); break;
    case 1: case 2: case 3:
        if (engine.running)
            end_transaction();
        else if (unwritten_count < UNWRITTEN_MAX)
            CHECK(engine_begin(&engine) == 0);
        break;
    case 4: case 5:
        if (engine.running)
            use_savepoints();
        break;
    case 6:
        if (engine.running && !below(3))
            undo_with_little_memory();
        break;
    case 7:
        if (engine.running)
            suspend();
        break;
    case 8: look((int)below(SPACES)); break;
    default:
        if (engine.running || unwritten_count < UNWRITTEN_MAX)
            change();
    }
    if (!engine.running && (unwritten_count == UNWRITTEN_MAX || !below(20)))
        write_waiting();
}

int main(int argument_count, char **arguments)
{
    CHECK(argument_count == 3);
    unsigned long operations = strtoul(arguments[1], NULL, 10);
    random_state = strtoul(arguments[2], NULL, 10) * 2654435761u + 1;
    begin_all();
    for (unsigned long number = 0; number < operations; number++) {
        operate();
        if (number % 64 == 0)
            check_all();
    }
    end_all();
    CHECK(operations < 10000 || (refused && committed_count && rolled_back_count && without_memory && viewed && suspended
                                 && taken_back && undone_statements));
    printf("%lu operations, %lu refused, %lu without memory, %lu transactions committed, %lu rolled back, %lu suspended\n",
           operations, refused, without_memory, committed_count, rolled_back_count, suspended);
    return 0;
}
