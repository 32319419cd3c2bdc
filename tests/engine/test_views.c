/* Random changes of rows while views are open and are walked in steps, against copies of the rows made when each was
 * opened. Now and then there is no memory: then a change is refused, and a walk ends.
 *
 *     test_views OPERATIONS SEED
 */
#include "memory/budget.h"
#include "row_changes.h"
#include "memory/slab.h"
#include "tree/view.h"

enum { IDS = 300, VIEWS = 3 };

/* Indexes whose keys are in the order of the rows' numbers: with exact hints and with others; with keys in front of
 * some rows; of pairs. */
typedef enum { NUMBERS, TEXTS, ODD, PAIRS, KINDS } Kind;

static const KeyLayout LAYOUTS[PAIRS] = {
    {1, 1, 0, 0, {{0, KEY_UNSIGNED, 0}}},
    {1, 1, 0, 1, {{0, KEY_STRING, 0}}},
    {1, 1, 0, 1, {{0, KEY_NUMBER, 0}}},
};

typedef struct {
    Packed rows[IDS];
    int is_there[IDS];
} Model;

typedef struct {
    View view;
    Model model;
    int next; /* the number that was not looked at yet */
} Watched;

static Tree tree;
static Records records;
static Model model;
static Watched watched[VIEWS];
static unsigned long seen, without_memory;
static int may_lack_memory;

static void put_key_field(Packed *row, Kind kind, uint64_t id)
{
    char text[200];
    if (kind == TEXTS) /* longer than what is compared without memory */
        put_string(row, text, (uint8_t)sprintf(text, "the same for all %0150d", (int)id));
    else
        put_unsigned(row, id);
}

/* A row whose key C cannot make has a decimal in its place: any extension will do. */
static int is_odd(Kind kind, uint64_t id)
{
    return kind == ODD && id % 3 == 0;
}

static void make_row(Packed *row, Kind kind, uint64_t id)
{
    row->size = 0;
    put_byte(row, 0x92);
    if (is_odd(kind, id))
        put_bytes(row, "\xd4\x01\x05", 3);
    else
        put_key_field(row, kind, id);
    uint8_t size = (uint8_t)below(100);
    char text[100];
    memset(text, 'a' + (int)below(26), sizeof text);
    put_string(row, text, size);
}

static void key_of(Kind kind, uint64_t id, KeyBuffer *key)
{
    Packed row = {.size = 0};
    put_byte(&row, 0x91);
    put_key_field(&row, kind, id);
    CHECK(key_of_row(LAYOUTS + (kind == PAIRS ? NUMBERS : kind), row.data, row.size, key) == 1);
}

static void limit_memory(void)
{
    allocations_left = may_lack_memory && !below(8) ? below(3) : -1ul;
}

/* Whether something has failed, for want of memory. */
static int has_failed(int done)
{
    CHECK(done >= 0 || !allocations_left);
    allocations_left = -1ul;
    without_memory += done < 0;
    return done < 0;
}

/* Change a row as the binding does where the core cannot make its key. */
static int change_with_key(const TreeKey *key, int has_key_in_front, const Packed *row)
{
    Place place = tree_find(&tree, key);
    Handle32 handle = place.is_found ? tree_handle(&tree, place) : NO_HANDLE;
    size_t key_size = has_key_in_front ? key->size : 0;
    limit_memory();
    if (has_failed(views_keep(&tree, key, handle)))
        return CHANGE_NO_MEMORY;
    if (!row) {
        tree_remove(&tree, place);
        records_remove(&records, handle);
    } else if (place.is_found) {
        CHECK(records_replace(&records, handle, key->key, key_size, row->data, row->size) == 0);
    } else {
        handle = records_add(&records, key->key, key_size, row->data, row->size);
        CHECK(handle != NO_HANDLE && tree_insert(&tree, place, key, handle) == 0);
    }
    return CHANGE_DONE;
}

static void change(Kind kind, uint64_t id)
{
    Packed row;
    KeyBuffer key = {0};
    int is_removal = below(3) == 0;
    key_of(kind, id, &key);
    TreeKey wanted = tree_key(&tree, key.data, key.size);
    make_row(&row, kind, id);
    int done = CHANGE_UNKNOWN;
    if (!is_removal || model.is_there[id]) {
        if (kind == PAIRS || kind == ODD) {
            done = change_with_key(&wanted, kind == PAIRS || is_odd(kind, id), is_removal ? NULL : &row);
        } else {
            limit_memory();
            done = change_row(&tree, NULL, 0, &wanted, is_removal ? NULL : row.data, row.size);
            has_failed(done);
        }
        CHECK(done == CHANGE_DONE || done == CHANGE_NO_MEMORY);
    }
    if (done == CHANGE_DONE) {
        model.is_there[id] = !is_removal;
        model.rows[id] = row;
    }
    key_buffer_free(&key);
}

static void open_one(Watched *one)
{
    limit_memory();
    int failed = has_failed(view_open(&one->view, &tree));
    CHECK(!one->view.tree == (failed || !tree.size));
    one->model = model;
    one->next = 0;
}

static void skip_missing(Watched *one)
{
    while (one->next < IDS && !one->model.is_there[one->next])
        one->next++;
}

static void walk(Watched *one, unsigned long count)
{
    const uint8_t *row;
    size_t size;
    int found = VIEW_NOTHING;
    limit_memory();
    if (view_resume(&one->view) < 0)
        found = -1;
    while (count-- && found > VIEW_END) {
        found = view_next(&one->view, &row, &size);
        if (found != VIEW_ROW)
            continue;
        skip_missing(one);
        CHECK(one->next < IDS);
        const Packed *expected = one->model.rows + one->next++;
        CHECK(size == expected->size && !memcmp(row, expected->data, size));
        seen++;
    }
    if (found > VIEW_END && view_pause(&one->view) < 0)
        found = -1;
    if (!has_failed(found) && found > VIEW_END)
        return;
    if (found == VIEW_END) {
        skip_missing(one);
        CHECK(one->next == IDS);
    }
    view_close(&one->view);
    view_close(&one->view);
}

static void step(Kind kind, unsigned long number)
{
    Watched *one = watched + below(VIEWS);
    switch (below(12)) {
    case 0: case 1:
        if (one->view.tree)
            walk(one, below(below(4) ? 8 : 100));
        else if (number / 500 % 2)
            open_one(one);
        break;
    case 2:
        if (!below(50))
            view_close(&one->view);
        break;
    default:
        change(kind, below(number / 2000 % 2 ? IDS : 30)); /* now and then there are few rows */
    }
}

static unsigned long run(Kind kind, unsigned long operations)
{
    tree.layout = kind == PAIRS ? NULL : LAYOUTS + kind;
    tree.records = tree.pairs = &records;
    for (unsigned long number = 0; number < operations; number++)
        step(kind, number);
    for (int place = 0; place < VIEWS; place++) {
        while (watched[place].view.tree)
            walk(watched + place, 10);
    }
    CHECK(!tree.views);
    tree_clear(&tree);
    records_clear(&records);
    memset(&model, 0, sizeof model);
    CHECK(slab_used() == 0 && budget_indexes() == 0);
    return operations;
}

/* Nothing is kept of what the walk has passed, or of what is above the last row; what was kept is freed. */
static void check_what_is_kept(void)
{
    tree.layout = LAYOUTS + NUMBERS;
    tree.records = tree.pairs = &records;
    model.is_there[10] = model.is_there[20] = 0;
    while (!model.is_there[10] || !model.is_there[20] || !model.is_there[30]) {
        change(NUMBERS, 10);
        change(NUMBERS, 20);
        change(NUMBERS, 30);
    }
    Watched *one = watched;
    open_one(one);
    walk(one, 1);
    change(NUMBERS, 5);
    change(NUMBERS, 10);
    change(NUMBERS, 31);
    CHECK(one->view.kept.size == 0);
    change(NUMBERS, 20);
    change(NUMBERS, 20);
    change(NUMBERS, 30);
    CHECK(one->view.kept.size == 2);
    walk(one, 1);
    CHECK(one->view.kept.size == 1);
    walk(one, 2);
    CHECK(!one->view.tree && one->view.records.room == 0);
    tree_clear(&tree);
    records_clear(&records);
    memset(&model, 0, sizeof model);
}

int main(int argument_count, char **arguments)
{
    CHECK(argument_count == 3);
    unsigned long operations = strtoul(arguments[1], NULL, 10), done = 0;
    random_state = strtoul(arguments[2], NULL, 10) * 2654435761u + 1;
    check_what_is_kept();
    may_lack_memory = 1;
    for (Kind kind = NUMBERS; kind < KINDS; kind++)
        done += run(kind, operations / KINDS);
    CHECK(done < 1000 || (seen > done / 10 && without_memory > done / 1000));
    printf("%lu operations, %lu rows seen, %lu without memory\n", done, seen, without_memory);
    return 0;
}
