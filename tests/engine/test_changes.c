/* Random changes of rows in a primary index and three others, against a plain array of rows. Memory runs out now and
 * then: a change is then made in all indexes, or in none.
 *
 *     test_changes OPERATIONS SEED
 */
#include "row_changes.h"
#include "memory/slab.h"

enum { IDS = 400, INDEXES = 3 };

static const KeyLayout PRIMARY = {1, 1, 0, 0, {{0, KEY_UNSIGNED, 0}}};
static const KeyLayout LAYOUTS[INDEXES] = {
    {1, 2, 0, 1, {{1, KEY_STRING, 0}, {0, KEY_UNSIGNED, 0}}},
    {1, 2, 1, 0, {{2, KEY_NUMBER, 1}, {0, KEY_UNSIGNED, 0}}}, /* unique but for nil */
    {2, 3, 0, 1, {{3, KEY_INTEGER, 1}, {2, KEY_NUMBER, 1}, {0, KEY_UNSIGNED, 0}}},
};
static const int IS_UNIQUE[INDEXES] = {0, 1, 0};

static Packed rows[IDS];
static int is_there[IDS];
static size_t count;

static Tree primary, trees[INDEXES];
static Records records, pairs;

static void make_row(Packed *row, uint64_t id)
{
    static const char *const words[] = {"ready", "taken", "a\0b", "", "a much longer word than a hint has bytes"};
    static const uint8_t sizes[] = {5, 5, 3, 0, 41};
    row->size = 0;
    put_byte(row, 0x94);
    put_unsigned(row, id);
    uint64_t word = below(5);
    put_string(row, words[word], sizes[word]);
    switch (below(5)) {
    case 0: put_byte(row, 0xc0); break;
    case 1: put_double(row, (double)below(2000) / 8); break;
    case 2: put_double(row, -(double)below(100)); break;
    case 3: put_integer(row, -(int64_t)below(1000)); break;
    default: put_unsigned(row, below(3) ? below(3000) : next_random());
    }
    if (below(4))
        put_integer(row, (int64_t)below(10) - 5);
    else
        put_byte(row, 0xc0);
}

static void key_of(const KeyLayout *layout, const Packed *row, KeyBuffer *key)
{
    CHECK(key_of_row(layout, row->data, row->size, key) == 1);
}

static int compare_keys(const uint8_t *one, size_t one_size, const uint8_t *other, size_t other_size)
{
    int order = memcmp(one, other, one_size < other_size ? one_size : other_size);
    return order ? order : (one_size > other_size) - (one_size < other_size);
}

/* Whether another row has the key of a row in a unique index. */
static int is_taken(const Packed *row, uint64_t id)
{
    KeyBuffer key = {0}, other = {0};
    int taken = 0;
    key_of(&LAYOUTS[1], row, &key);
    for (uint64_t each = 0; each < IDS && !taken; each++) {
        if (!is_there[each] || each == id)
            continue;
        key_of(&LAYOUTS[1], rows + each, &other);
        taken = !compare_keys(key.data, key.size, other.data, other.size);
    }
    key_buffer_free(&key);
    key_buffer_free(&other);
    return taken;
}

/* Every other time, let none or one of the next allocations succeed. */
static void lose_memory(void)
{
    allocations_left = below(2) ? -1ul : below(2);
}

static int change(uint64_t id, const Packed *row)
{
    uint8_t key[8];
    for (int place = 0; place < 8; place++)
        key[place] = (uint8_t)(id >> 8 * (7 - place));
    TreeKey wanted = tree_key(&primary, key, 8);
    ChangedIndex indexes[INDEXES];
    for (int place = 0; place < INDEXES; place++)
        indexes[place] = (ChangedIndex){trees + place, IS_UNIQUE[place]};
    lose_memory();
    int done = change_row(&primary, indexes, INDEXES, &wanted, row ? row->data : NULL, row ? row->size : 0);
    CHECK(done != CHANGE_NO_MEMORY || !allocations_left);
    allocations_left = -1ul;
    return done;
}

/* How many rows have a key below a bound. */
static size_t count_below(const KeyLayout *layout, const uint8_t *bound, size_t size)
{
    KeyBuffer key = {0};
    size_t found = 0;
    for (int id = 0; id < IDS; id++)
        if (is_there[id]) {
            key_of(layout, rows + id, &key);
            found += compare_keys(key.data, key.size, bound, size) < 0;
        }
    key_buffer_free(&key);
    return found;
}

static void check_bound(Tree *tree, const KeyLayout *layout, const Packed *row)
{
    KeyBuffer key = {0};
    key_of(layout, row, &key);
    size_t size = below(key.size + 1);
    if (size && below(2))
        key.data[size - 1]++; /* the end of those that start so */
    TreeKey wanted = tree_key(tree, key.data, size);
    size_t found = tree_distance(tree, tree_begin(), tree_lower_bound(tree, &wanted));
    CHECK(found == count_below(layout, key.data, size));
    key_buffer_free(&key);
}

static void check_tree(Tree *tree, const KeyLayout *layout)
{
    uint8_t before[512];
    size_t before_size = 0, found = 0;
    CHECK(tree->size == count);
    for (Place place = tree_begin(); !tree_is_end(tree, place); place = tree_next(tree, place), found++) {
        size_t size;
        const uint8_t *key = tree_record_key(tree, tree_handle(tree, place), &size);
        CHECK(key && compare_keys(before, before_size, key, size) < 0);
        int is_exact;
        KeyHint hint = key_hint(layout, key, size, &is_exact), kept = tree_hint(tree, place);
        CHECK(kept.high == hint.high && kept.low == hint.low);
        memcpy(before, key, before_size = size);
    }
    CHECK(found == count);
}

int main(int argument_count, char **arguments)
{
    CHECK(argument_count == 3);
    unsigned long operations = strtoul(arguments[1], NULL, 10);
    random_state = strtoul(arguments[2], NULL, 10) * 2654435761u + 1;
    primary.layout = &PRIMARY;
    primary.records = primary.pairs = &records;
    for (int place = 0; place < INDEXES; place++) {
        trees[place].layout = LAYOUTS + place;
        trees[place].records = &records;
        trees[place].pairs = &pairs;
        trees[place].has_references = 1;
    }
    unsigned long refused = 0, without_memory = 0;
    for (unsigned long number = 0; number < operations; number++) {
        uint64_t id = below(number / 1000 % 2 ? IDS : 40); /* now and then there are few rows, and few leaves */
        Packed row;
        if (below(3)) {
            make_row(&row, id);
            int done = change(id, &row);
            if (done == CHANGE_NO_MEMORY) {
                without_memory++;
            } else if (is_taken(&row, id)) {
                CHECK(done == CHANGE_REFUSED + 1);
                refused++;
            } else {
                CHECK(done == CHANGE_DONE);
                rows[id] = row;
                count += !is_there[id];
                is_there[id] = 1;
            }
        } else if (is_there[id]) {
            int done = change(id, NULL);
            CHECK(done == CHANGE_DONE || done == CHANGE_NO_MEMORY);
            without_memory += done == CHANGE_NO_MEMORY;
            is_there[id] = done == CHANGE_NO_MEMORY;
            count -= done == CHANGE_DONE;
        } else {
            CHECK(change(id, NULL) == CHANGE_UNKNOWN);
        }
        if (number % 16 == 0) {
            make_row(&row, below(IDS));
            check_bound(&primary, &PRIMARY, &row);
            for (int place = 0; place < INDEXES; place++)
                check_bound(trees + place, LAYOUTS + place, &row);
        }
        if (number % 512 == 0) {
            check_tree(&primary, &PRIMARY);
            for (int place = 0; place < INDEXES; place++)
                check_tree(trees + place, LAYOUTS + place);
        }
    }
    for (int place = 0; place < INDEXES; place++)
        tree_clear(trees + place);
    tree_clear(&primary);
    records_clear(&records);
    CHECK(slab_used() == 0);
    printf("%lu operations, %lu refused, %lu without memory, %zu rows at the end\n", operations, refused, without_memory,
           count);
    return 0;
}
