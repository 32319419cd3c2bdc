/* The engine as its random test uses it: hooks that do what a test has planned, and note what it has to know. */
#ifndef MODEL_ENGINE_H
#define MODEL_ENGINE_H

#include "rows.h"
#include "iproto_engine.h"

/* What a trigger before a change makes of it. */
typedef enum { GO_ON, DO_NOTHING, OTHER_ROW, OTHER_KEY, REMOVE_ROW, FAIL, DECISIONS } Decision;

/* A change that is being made, what its hooks do, and what comes of it. */
typedef struct Plan {
    int space, depth;
    Row row;              /* the row that is to be there, or the key of the one that is removed */
    int is_removal;
    int is_insert, is_given; /* `is_given`: the row is that of an INSERT, which no other one may have the key of */
    Decision decision;
    int nests_before, nests_after, effect_fails, after_fails, tracker_fails, ends_transaction;
    int is_unknown;       /* what operations the core does not know make of the row is in `row` */
    Failure expected;
    int is_predicted, is_applied, is_short, has_ended;
} Plan;

typedef struct {
    Transaction core;
    Model before, logged_before;
    size_t callbacks;
} TestTransaction;

enum { UNWRITTEN_MAX = 6 };

static Engine engine;
static Space spaces[SPACES];
static SpaceIndex others[SPACES][INDEXES];
static Model model, logged;              /* `logged`: by the log alone */
static TestTransaction *unwritten[UNWRITTEN_MAX];
static int unwritten_count, log_answer, has_logged, stays_short, is_exempt, is_suspended;
static unsigned long undone_statements;

/* -- memory: hooks have it again, as they may change rows, which may have to be undone -- */

static int ran_short;

static void have_memory(void)
{
    if (stays_short)
        return;
    ran_short |= !allocations_left;
    allocations_left = -1ul;
}

/* -- the model of a change -- */

static void change_inside(Plan *outer); /* another change, made by a trigger */

static void remember(Plan *plan);
static void forget_changes(const Plan *plan);

/* The row that is in a space with the key of a row; NULL for none. */
static const Record *stored_record(int space, const Row *row)
{
    KeyList keys = {0};
    RowRef ref = {row->data, row->size, NULL};
    Index *primary = spaces[space].primary;
    CHECK(keys_of(&test_indexes[space][0], &ref, NULL, 0, &keys) == 0);
    TreeKey wanted = tree_key(&primary->tree, key_list_at(&keys, 0), keys.all[0].size);
    Place place = tree_find(&primary->tree, &wanted);
    key_list_free(&keys);
    return place.is_found ? tree_record(&primary->tree, tree_handle(&primary->tree, place)) : NULL;
}

/* Make a change that the engine has made in the model, too. */
static void apply_plan(Plan *plan)
{
    if (plan->is_applied)
        return;
    plan->is_applied = 1;
    const Record *record = stored_record(plan->space, &plan->row);
    CHECK((record == NULL) == plan->is_removal);
    if (!record) {
        if (find_row(&model, plan->space, &plan->row) >= 0)
            take_row(&model, plan->space, &plan->row);
        return;
    }
    Row stored = read_row(record->data + record->key_size, record->size - record->key_size);
    CHECK(is_same_row(&stored, &plan->row));
    put_row(&model, plan->space, &stored);
}

/* What comes of a change whose row is decided. */
static void predict(Plan *plan)
{
    int place = find_row(&model, plan->space, &plan->row), flags = spaces[plan->space].flags;
    plan->is_predicted = 1;
    if (plan->is_removal && place < 0)
        plan->expected = FAILURE_NONE;
    else if (plan->is_given && place >= 0)
        plan->expected = FAILURE_DUPLICATE;
    else if (engine.is_tracked && plan->tracker_fails)
        plan->expected = FAILURE_HOOK;
    else if (!plan->is_removal && is_taken(&model, plan->space, &plan->row))
        plan->expected = FAILURE_DUPLICATE;
    else if ((flags & SPACE_EFFECTS && plan->effect_fails) || (flags & SPACE_NOTIFIES && plan->after_fails))
        plan->expected = FAILURE_HOOK;
    else
        plan->expected = FAILURE_NONE;
}

/* -- hooks of spaces -- */

static Plan *plan_of(const Change *change)
{
    return change->context;
}

/* Rows that hooks make stay until the outermost change is done. */
static Row kept_rows[64];
static int kept_count;

static void give_row(Change *change, const Row *row)
{
    CHECK(kept_count < 64);
    kept_rows[kept_count] = *row;
    change->row = (RowRef){kept_rows[kept_count].data, row->size, NULL};
    kept_count++;
}

/* A sequence: it has counts. */
static int fill(Space *space, Change *change)
{
    (void)space;
    Plan *plan = plan_of(change);
    if (plan->row.has_count)
        return 0;
    plan->row.has_count = 1;
    plan->row.count = 7;
    pack(&plan->row);
    give_row(change, &plan->row);
    return 0;
}

static int explain(Space *space, Change *change)
{
    (void)space;
    Row row = read_row(change->row.data, change->row.size);
    CHECK(row.is_bad || row.kind == DECIMAL_SCORE || !change->is_whole);
    return row.is_bad ? -1 : 0;
}

static int decide(Space *space, Change *change)
{
    (void)space;
    Plan *plan = plan_of(change);
    have_memory();
    if (plan->nests_before)
        change_inside(plan);
    Row other = any_row(plan->space);
    other.is_bad = 0;
    switch (plan->decision) {
    case DO_NOTHING:
        plan->expected = FAILURE_NONE;
        plan->is_predicted = plan->is_applied = 1;
        return 0;
    case FAIL:
        plan->expected = FAILURE_HOOK;
        plan->is_predicted = 1;
        return -1;
    case OTHER_KEY:
        pack(&other);
        if (is_same_key(plan->space, &other, &plan->row))
            break;
        give_row(change, &other);
        plan->expected = FAILURE_PRIMARY_KEY;
        plan->is_predicted = 1;
        return 1;
    case OTHER_ROW:
        other.id = plan->space ? other.id : plan->row.id;
        other.score = plan->space ? plan->row.score : other.score;
        pack(&other);
        plan->row = other;
        plan->is_removal = plan->is_given = 0;
        give_row(change, &other);
        break;
    case REMOVE_ROW:
        plan->is_removal = 1;
        plan->is_given = 0;
        change->row = (RowRef){NULL, 0, NULL};
        break;
    default:
        break;
    }
    predict(plan);
    return 1;
}

/* What the core does not know sets counts to 9. */
static int apply(Space *space, Change *change, int is_upsert)
{
    (void)space;
    Plan *plan = plan_of(change);
    if (!allocations_left) {
        ran_short = plan->is_short = 1;
        return -1;
    }
    CHECK(plan->is_unknown || is_upsert);
    give_row(change, &plan->row);
    return 0;
}

static int refuse_memory(Space *space, Change *change)
{
    (void)space;
    if (!is_exempt)
        plan_of(change)->expected = FAILURE_HOOK, plan_of(change)->is_short = 1;
    return is_exempt ? 0 : -1;
}

static int reads(Space *space, Change *change)
{
    (void)space, (void)change;
    CHECK(engine.is_tracked);
    return 0;
}

static int changes(Space *space, Change *change)
{
    (void)space;
    CHECK(engine.is_tracked);
    return plan_of(change)->tracker_fails ? -1 : 0;
}

static int take_effect(Space *space, Change *change, Statement *statement)
{
    (void)space;
    Plan *plan = plan_of(change);
    have_memory();
    apply_plan(plan);
    if (plan->effect_fails)
        return -1;
    long *effect = malloc(sizeof *effect);
    CHECK(effect);
    *effect = 1 + (long)below(1000);
    model.effects += *effect;
    statement->effect = effect;
    return 0;
}

static int after(Space *space, Change *change)
{
    (void)space;
    Plan *plan = plan_of(change);
    have_memory();
    apply_plan(plan);
    if (plan->nests_after)
        change_inside(plan);
    if (!plan->ends_transaction)
        return plan->after_fails ? -1 : 0;
    model = ((TestTransaction *)engine.running)->before;
    plan->has_ended = 1;
    engine_rollback(&engine);
    return 0;
}

static void forget_row(RowRef *row)
{
    CHECK(!row->decoded);
}

static int users[SPACES];

static void retain(Space *space) { users[space - spaces]++; }
static void release(Space *space) { users[space - spaces]--; }
static void *retain_primary(Space *space) { return index_retain(space->primary); }
static void release_primary(void *owner) { index_release(owner); }

static const SpaceHooks SPACE_HOOKS = {
    fill, explain, decide, apply, refuse_memory, reads, changes, take_effect, after, forget_row, retain, release,
    retain_primary, release_primary,
};

static void release_nothing(void *context) { (void)context; }

static const IndexHook INDEX_HOOK = {keys_of, release_nothing};

/* -- hooks of the engine -- */

static int prepare(void *context)
{
    (void)context;
    return 0;
}

static Transaction *begin(void *context)
{
    (void)context;
    TestTransaction *made = malloc(sizeof *made);
    if (!made)
        return NULL;
    transaction_init(&made->core);
    made->before = model;
    made->logged_before = logged;
    made->callbacks = 0;
    return &made->core;
}

static void free_transaction(TestTransaction *transaction)
{
    transaction_free(&transaction->core, &engine);
    free(transaction);
}

static Row row_of(const Record *record)
{
    return read_row(record->data + record->key_size, record->size - record->key_size);
}

/* Make what a transaction tells in `logged`. */
static int write_log(void *context, const Transaction *transaction)
{
    (void)context;
    have_memory();
    has_logged = 1;
    for (const Statement *each = transaction->all; log_answer >= 0 && each < transaction->all + transaction->count; each++) {
        int space = (int)(each->space - spaces);
        Row row = row_of(each->made ? each->made : each->old);
        CHECK((find_row(&logged, space, &row) >= 0) == (each->old != NULL));
        (each->made ? put_row : take_row)(&logged, space, &row);
    }
    return log_answer;
}

static int committed(void *context, Transaction *transaction, int is_unwritten)
{
    (void)context;
    if (transaction->count && (is_unwritten || unwritten_count)) {
        CHECK(unwritten_count < UNWRITTEN_MAX);
        unwritten[unwritten_count++] = (TestTransaction *)transaction;
    } else {
        free_transaction((TestTransaction *)transaction);
    }
    return 0;
}

static void rolled_back(void *context, Transaction *transaction)
{
    (void)context;
    CHECK(!transaction->count);
    free_transaction((TestTransaction *)transaction);
}

static void mark(void *context, Savepoint *savepoint)
{
    (void)context;
    savepoint->marks[0] = ((TestTransaction *)engine.running)->callbacks;
}

static void trim(void *context, const Savepoint *savepoint)
{
    (void)context;
    ((TestTransaction *)engine.running)->callbacks = savepoint->marks[0];
}

static void undoing(void *context, int begins)
{
    (void)context, (void)begins;
    have_memory();
}

/* Triggers that are notified of an undone statement change nothing. */
static int undone(void *context, Statement *statement, Change *refused)
{
    (void)context, (void)refused;
    Change change;
    CHECK(statement->old || statement->made);
    change_init(&change, statement->space, CHANGE_DELETE, NULL);
    CHECK(engine.is_read_only || (change_check(&change) < 0 && engine.failure == FAILURE_NESTING));
    change_free(&change);
    undone_statements++;
    return 0;
}

static int revert(void *context, Statement *statement)
{
    (void)context;
    model.effects -= *(long *)statement->effect;
    return 0;
}

static void forget_effect(void *context, void *effect)
{
    (void)context;
    free(effect);
}

static void panic(void *context)
{
    (void)context;
    CHECK(!"a transaction cannot be undone");
}

static void tracker_rolled_back(void *context, size_t position)
{
    (void)context;
    CHECK(position <= engine.running->count);
}

static const EngineHooks ENGINE_HOOKS = {
    prepare, begin, write_log, committed, rolled_back, mark, trim, undoing, undone, revert, forget_effect, panic,
    tracker_rolled_back,
};

#endif
