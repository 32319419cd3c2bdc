/* Random changes of rows of all kinds, and what is expected of them. */
#ifndef MODEL_CHANGES_H
#define MODEL_CHANGES_H

#include "engine.h"

static Model before[NESTING_MAX + 2]; /* each change that is running */
static unsigned long refused, without_memory;

static void remember(Plan *plan)
{
    before[plan->depth] = model;
}

static void forget_changes(const Plan *plan)
{
    model = before[plan->depth];
}

static int flags_of(const Plan *plan)
{
    return spaces[plan->space].flags;
}

/* A change with triggers that do what comes to mind. */
static Plan any_plan(int depth)
{
    Plan plan = {.space = (int)below(SPACES), .depth = depth};
    plan.decision = below(2) ? GO_ON : (Decision)below(DECISIONS);
    plan.nests_before = !below(3);
    plan.nests_after = !below(3);
    plan.effect_fails = !below(6);
    plan.after_fails = !below(6);
    plan.tracker_fails = !below(10);
    plan.ends_transaction = !depth && !below(30);
    return plan;
}

/* The row that is in the way of another one, or any: most changes are of rows that are there. */
static Row any_place(int space)
{
    Row row = any_row(space);
    return model.count[space] && below(8) ? model.rows[space][below((uint64_t)model.count[space])] : row;
}

static int store(Change *change, Plan *plan)
{
    change->row = (RowRef){plan->row.data, plan->row.size, NULL};
    return change_store(change);
}

/* Some operations, and what they make of a row. */
static void any_operations(Packed *operations, UpdateOperations *read, Plan *plan, Row *row)
{
    int total = 1 + (int)below(2), is_count_set = 0;
    put_byte(operations, (uint8_t)(0x90 + total));
    for (int number = 0; number < total; number++) {
        int field = (int)below(below(4) ? COUNT : FIELDS), adds = !below(3);
        Row other = any_row(plan->space);
        Packed value = {.size = 0};
        field = adds ? COUNT : field;
        put_byte(operations, 0x93), put_byte(operations, 0xa1), put_byte(operations, adds ? '+' : '=');
        put_unsigned(operations, (uint64_t)field);
        switch (field) {
        case ID: put_unsigned(operations, row->id = other.id); break;
        case NAME: put_name(&value, &other), row->name = other.name, row->is_bad = other.is_bad; break;
        case SCORE: put_score(&value, &other), row->score = other.score, row->kind = other.kind; break;
        case TAGS:
            put_tags(&value, &other);
            row->tag_count = other.tag_count;
            memcpy(row->tags, other.tags, sizeof row->tags);
            break;
        default:
            plan->is_unknown |= adds && (!row->has_count || is_count_set);
            is_count_set = 1;
            if (adds)
                put_unsigned(&value, 3), row->count += 3;
            else
                put_count(&value, &other), row->count = other.count, row->has_count = other.has_count;
        }
        put_bytes(operations, value.data, value.size);
    }
    CHECK(update_read(read, operations->data, operations->data + operations->size, 0, NULL, NULL));
}

/* The row that operations make of `plan->row`, as they are read. */
static void plan_update(Plan *plan, Packed *operations, UpdateOperations *read)
{
    Row old = plan->row;
    any_operations(operations, read, plan, &plan->row);
    if (plan->is_unknown) {
        plan->row = old;
        plan->row.has_count = 1;
        plan->row.count = 9;
    }
    pack(&plan->row);
}

static int update(Change *change, Plan *plan, Packed *operations, UpdateOperations *read)
{
    Row old = plan->row;
    plan_update(plan, operations, read);
    change->operations = read;
    plan->is_predicted = 1;
    if (plan->row.is_bad)
        plan->expected = FAILURE_HOOK;
    else if (!is_same_key(plan->space, &old, &plan->row))
        plan->expected = find_row(&model, plan->space, &plan->row) < 0 ? FAILURE_PRIMARY_KEY : FAILURE_DUPLICATE;
    else if (flags_of(plan) & SPACE_DECIDES)
        plan->is_predicted = 0;
    else
        predict(plan);
    return change_update(change);
}

static int upsert(Change *change, Plan *plan, Packed *operations, UpdateOperations *read)
{
    Row given = plan->row, old;
    int place = find_row(&model, plan->space, &given);
    change->row = (RowRef){given.data, given.size, NULL};
    if (place >= 0)
        plan->row = old = model.rows[plan->space][place];
    Row made = plan->row;
    if (place >= 0) {
        plan_update(plan, operations, read);
        made = plan->row;
    } else {
        Row ignored = given;
        any_operations(operations, read, plan, &ignored);
    }
    change->operations = read;
    plan->is_predicted = 1;
    if (given.is_bad || made.is_bad)
        plan->expected = FAILURE_HOOK;
    else if (place >= 0 && !is_same_key(plan->space, &old, &made))
        plan->is_applied = 1; /* nothing is done */
    else if (flags_of(plan) & SPACE_DECIDES)
        plan->is_predicted = 0;
    else
        predict(plan);
    return change_upsert(change);
}

/* Find the row of `plan->row`, which becomes it. */
static int find(Change *change, Plan *plan)
{
    KeyList keys = {0};
    RowRef ref = {plan->row.data, plan->row.size, NULL};
    CHECK(keys_of(&test_indexes[plan->space][0], &ref, NULL, 0, &keys) == 0);
    CHECK(key_buffer_set(&change->key, key_list_at(&keys, 0), keys.all[0].size) == 0);
    key_list_free(&keys);
    CHECK(change_find(change) == 0);
    int place = find_row(&model, plan->space, &plan->row);
    CHECK((place >= 0) == (change->old.data != NULL));
    if (place >= 0)
        plan->row = model.rows[plan->space][place];
    return place >= 0;
}

/* Make the change of a plan; an insert or replace, unless it is of another kind. */
static int run(Change *change, Plan *plan)
{
    static const ChangeKind kinds[] = {CHANGE_INSERT, CHANGE_REPLACE, CHANGE_UPDATE, CHANGE_DELETE, CHANGE_UPSERT};
    Packed operations[1] = {{.size = 0}};
    UpdateOperations read;
    ChangeKind kind = kinds[below(5)];
    change_init(change, spaces + plan->space, kind, plan);
    int is_keyed = kind == CHANGE_UPDATE || kind == CHANGE_DELETE, done = 0;
    plan->row = any_place(plan->space);
    if (is_keyed ? change_check(change) < 0 : engine.is_read_only || engine.nesting >= NESTING_MAX) {
        plan->is_predicted = 1;
        plan->expected = engine.is_read_only ? FAILURE_READ_ONLY : FAILURE_NESTING;
        return is_keyed ? ENGINE_FAILED : store(change, plan);
    }
    if (is_keyed && !find(change, plan))
        plan->is_predicted = plan->is_applied = 1;
    if (plan->depth == 0 && !below(4))
        allocations_left = below(7);
    switch (kind) {
    case CHANGE_UPDATE:
        return plan->is_applied ? change_update(change) : update(change, plan, operations, &read);
    case CHANGE_UPSERT: {
        done = upsert(change, plan, operations, &read);
        return done;
    }
    case CHANGE_DELETE:
        plan->is_removal = 1;
        if (!plan->is_applied && !(flags_of(plan) & SPACE_DECIDES))
            predict(plan);
        return change_delete(change);
    default:
        plan->is_insert = plan->is_given = kind == CHANGE_INSERT;
        plan->row = below(2) ? any_row(plan->space) : plan->row;
        if (plan->row.is_bad) {
            plan->is_predicted = 1;
            plan->expected = FAILURE_HOOK;
        } else if (!(flags_of(plan) & SPACE_DECIDES)) {
            Row given = plan->row;
            if (flags_of(plan) & SPACE_FILLS && !given.has_count)
                plan->row.has_count = 1, plan->row.count = 7, pack(&plan->row);
            predict(plan);
            plan->row = given;
        }
        return store(change, plan);
    }
}

static void check_duplicate(const Plan *plan)
{
    for (int number = 0; number < index_count(plan->space); number++)
        if ((number ? others[plan->space][number - 1].index : spaces[plan->space].primary) == engine.failed_index) {
            CHECK(number ? is_taken_in(&model, plan->space, number, &plan->row)
                         : find_row(&model, plan->space, &plan->row) >= 0);
            return;
        }
    CHECK(!"an index of the space has failed");
}

/* Make a change, and compare what comes of it with what is expected. Returns whether it was made. */
static int make_change(Plan *plan)
{
    Change change;
    remember(plan);
    int done = run(&change, plan);
    if (!plan->depth)
        have_memory();
    if (done < 0 && (plan->is_short || (!plan->depth && ran_short))) {
        CHECK(engine.failure == FAILURE_MEMORY || engine.failure == FAILURE_HOOK || engine.failure == plan->expected);
        without_memory++;
    } else if (done < 0 && has_logged && log_answer < 0 && !engine.running) {
        CHECK(engine.failure == FAILURE_HOOK);
    } else if (!plan->has_ended) {
        CHECK(plan->is_predicted);
        CHECK((done < 0) == (plan->expected != FAILURE_NONE));
        CHECK(done == 0 || engine.failure == plan->expected);
    }
    if (done < 0 && !plan->has_ended) {
        refused++;
        forget_changes(plan);
        if (engine.failure == FAILURE_DUPLICATE && !(flags_of(plan) & SPACE_DECIDES))
            check_duplicate(plan);
    } else if (!plan->has_ended) {
        apply_plan(plan);
    }
    change_free(&change);
    return done == 0;
}

static void change_inside(Plan *outer)
{
    Plan plan = any_plan(outer->depth + 1);
    if (outer->depth <= NESTING_MAX)
        make_change(&plan);
}

#endif
