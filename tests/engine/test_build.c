/* Indexes that are built at once, against the same ones to which rows were added one by one; and rows of blocks.
 *
 *     test_build ROWS SEED
 */
#include "log/block.h"
#include "tree/build.h"
#include "row_changes.h"
#include "memory/slab.h"

enum { INDEXES = 5, ROWS_MAX = 3000 };

static const KeyLayout PRIMARY = {1, 1, 0, 0, {{0, KEY_UNSIGNED, 0}}};
static const KeyLayout LAYOUTS[INDEXES] = {
    {1, 2, 0, 1, {{1, KEY_STRING, 0}, {0, KEY_UNSIGNED, 0}}},
    {1, 2, 1, 0, {{2, KEY_NUMBER, 1}, {0, KEY_UNSIGNED, 0}}}, /* unique but for nil */
    {2, 3, 0, 1, {{3, KEY_INTEGER, 1}, {2, KEY_NUMBER, 1}, {0, KEY_UNSIGNED, 0}}},
    {1, 2, 0, 0, {{2, KEY_NUMBER, 1}, {0, KEY_UNSIGNED, 0}}},
    {2, 2, 0, 1, {{1, KEY_STRING, 0}, {0, KEY_UNSIGNED, 0}}},
};
static const int IS_UNIQUE[INDEXES] = {0, 1, 0, 0, 1};

typedef struct {
    Tree primary, trees[INDEXES];
    Records records, pairs;
} Space;

static void make_row(Packed *row, uint64_t id, uint64_t kinds)
{
    static const char *const words[] = {"R", "taken", "a\0b", "", "a much longer word than a hint has bytes"};
    static const uint8_t sizes[] = {1, 5, 3, 0, 41};
    row->size = 0;
    put_byte(row, 0x94);
    put_unsigned(row, id);
    uint64_t word = kinds == 5 ? 4 : below(kinds);
    put_byte(row, 0xd9), put_byte(row, (uint8_t)(sizes[word] + (word == 4)));
    put_bytes(row, words[word], sizes[word]);
    if (word == 4)
        put_byte(row, (uint8_t)('a' + below(3))); /* where words first differ */
    switch (below(kinds)) {
    case 0: put_unsigned(row, 0); break;
    case 1: put_byte(row, 0xc0); break;
    case 2: put_double(row, (double)below(20000) / 8); break;
    case 3: put_unsigned(row, next_random()); break;
    default: put_unsigned(row, below(30000));
    }
    if (below(4))
        put_integer(row, (int64_t)below(10) - 5);
    else
        put_byte(row, 0xc0);
}

static void begin(Space *space)
{
    *space = (Space){0};
    space->primary.layout = &PRIMARY;
    space->primary.records = space->primary.pairs = &space->records;
    for (int place = 0; place < INDEXES; place++) {
        space->trees[place].layout = LAYOUTS + place;
        space->trees[place].records = &space->records;
        space->trees[place].pairs = &space->pairs;
        space->trees[place].has_references = 1;
    }
}

static void end(Space *space)
{
    for (int place = 0; place < INDEXES; place++)
        tree_clear(space->trees + place);
    tree_clear(&space->primary);
    records_clear(&space->records);
}

/* Add entries for all rows, one by one. Returns 0 if two rows have the same key. */
static int add_one_by_one(Tree *tree, Tree *primary)
{
    KeyBuffer key = {0};
    int is_unique = 1;
    for (Place place = tree_begin(); is_unique && !tree_is_end(primary, place); place = tree_next(primary, place)) {
        Handle32 handle = tree_handle(primary, place);
        const Record *row = tree_record(primary, handle);
        CHECK(key_of_row(tree->layout, row->data, row->size, &key) == 1);
        TreeKey wanted = tree_key(tree, key.data, key.size);
        Place at = tree_find(tree, &wanted);
        is_unique = !at.is_found;
        if (is_unique)
            CHECK(tree_insert(tree, at, &wanted, handle) == 0);
    }
    key_buffer_free(&key);
    return is_unique;
}

static void check_same(const Tree *one, const Tree *other)
{
    CHECK(one->size == other->size);
    Place left = tree_begin(), right = tree_begin();
    for (; !tree_is_end(one, left); left = tree_next(one, left), right = tree_next(other, right)) {
        CHECK(!tree_is_end(other, right) && tree_handle(one, left) == tree_handle(other, right));
        KeyHint hint = tree_hint(one, left), same = tree_hint(other, right);
        CHECK(hint.high == same.high && hint.low == same.low);
    }
    CHECK(tree_is_end(other, right));
}

/* Build every index twice. Returns how many have a key twice. */
static int check_builds(Space *space)
{
    int repeated = 0;
    for (int place = 0; place < INDEXES; place++) {
        Tree plain = space->trees[place], *tree = space->trees + place;
        int is_unique = add_one_by_one(&plain, &space->primary);
        int done = build_references(tree, &space->primary);
        CHECK(done == (is_unique ? BUILD_DONE : BUILD_REPEATED));
        CHECK(IS_UNIQUE[place] || is_unique);
        if (is_unique)
            check_same(tree, &plain);
        else
            CHECK(!tree->size && !tree->count);
        repeated += !is_unique;
        tree_clear(&plain);
    }
    return repeated;
}

/* Change rows of a space that was built, as long as its indexes have the keys of all rows. */
static void change_some(Space *space, uint64_t count)
{
    for (uint64_t number = 0; number < 20 && count; number++) {
        uint8_t key[8];
        uint64_t id = below(3 * count);
        for (int place = 0; place < 8; place++)
            key[place] = (uint8_t)(id >> 8 * (7 - place));
        TreeKey wanted = tree_key(&space->primary, key, 8);
        ChangedIndex indexes[INDEXES];
        for (int place = 0; place < INDEXES; place++)
            indexes[place] = (ChangedIndex){space->trees + place, IS_UNIQUE[place]};
        Packed row;
        make_row(&row, id, 4);
        int done = change_row(&space->primary, indexes, INDEXES, &wanted, row.data, row.size);
        CHECK(done == CHANGE_DONE || done >= CHANGE_REFUSED);
    }
}

/* -- blocks -- */

typedef struct {
    uint8_t *data;
    size_t size, room;
} Block;

static void add_to_block(Block *block, const Packed *packed)
{
    if (block->size + packed->size > block->room)
        CHECK((block->data = realloc(block->data, block->room = 2 * (block->size + packed->size))));
    memcpy(block->data + block->size, packed->data, packed->size);
    block->size += packed->size;
}

static void add_row(Block *block, uint64_t space_id, const Packed *row)
{
    Packed head = {.size = 0};
    put_bytes(&head, "\x83\x00\x02\x03", 4);
    put_unsigned(&head, block->size);
    put_byte(&head, 0x04);
    put_double(&head, 1.5);
    put_bytes(&head, "\x82\x10", 2);
    put_unsigned(&head, space_id);
    put_byte(&head, 0x21);
    add_to_block(block, &head);
    add_to_block(block, row);
}

/* Append the rows of a block. Returns how many. */
static size_t append(Space *space, const Block *block, const BlockRows *found)
{
    KeyBuffer key = {0};
    size_t done = 0;
    while (done < found->count
           && build_append(&space->primary, block->data + found->rows[done].tuple.start, found->rows[done].tuple.size, &key) == 1)
        done++;
    key_buffer_free(&key);
    return done;
}

/* Read a block of which some bytes were changed, and which is cut off somewhere. */
static void check_damaged(const Block *block)
{
    size_t size = below(block->size + 1);
    Block damaged = {malloc(size ? size : 1), size, 0};
    if (size)
        memcpy(damaged.data, block->data, size);
    for (uint64_t damage = below(3); size && damage; damage--)
        damaged.data[below(size)] = (uint8_t)next_random();
    BlockRows found = {0};
    CHECK(block_read(&found, damaged.data, size) >= 0);
    Space space;
    begin(&space);
    append(&space, &damaged, &found);
    end(&space);
    block_free(&found);
    free(damaged.data);
}

/* Ids that are times in nanoseconds, and text with such an id: entries keep only the bits that differ. */
static void check_memory(void)
{
    enum { ROWS = 20000, BYTES_MAX = 8 };
    static const KeyLayout ids = {1, 1, 0, 1, {{0, KEY_NUMBER, 0}}};
    static const KeyLayout texts = {1, 2, 0, 1, {{1, KEY_STRING, 0}, {0, KEY_NUMBER, 0}}};
    Records records = {0}, pairs = {0};
    Tree added = {.layout = &texts, .records = &records, .pairs = &pairs, .has_references = 1}, built = added;
    Tree primary = {.layout = &ids, .records = &records, .pairs = &records};
    KeyBuffer key = {0};
    for (uint64_t number = 0; number < ROWS; number++) {
        Packed row = {.size = 0};
        put_byte(&row, 0x92);
        put_unsigned(&row, 1700000000000000000 + number * 5000 + below(5000));
        put_string(&row, "R", 1);
        CHECK(build_append(&primary, row.data, row.size, &key) == BUILD_DONE);
    }
    CHECK(add_one_by_one(&added, &primary) && build_references(&built, &primary) == BUILD_DONE);
    check_same(&added, &built);
    CHECK(tree_memory(&primary) < BYTES_MAX * ROWS);
    CHECK(tree_memory(&built) < BYTES_MAX * ROWS && tree_memory(&added) < BYTES_MAX * ROWS);
    tree_clear(&built);
    tree_clear(&added);
    tree_clear(&primary);
    records_clear(&records);
    key_buffer_free(&key);
}

int main(int argument_count, char **arguments)
{
    CHECK(argument_count == 3);
    unsigned long operations = strtoul(arguments[1], NULL, 10), done = 0, repeated = 0;
    random_state = strtoul(arguments[2], NULL, 10) * 2654435761u + 1;
    check_memory();
    while (done < operations) {
        static const uint64_t counts[] = {1, 8, 32, 128, 129, 500, ROWS_MAX};
        uint64_t count = below(counts[below(7)] + 1), kinds = 1 + below(5), id = 0;
        int is_in_order = below(8) != 0;
        Space space;
        Block block = {0};
        begin(&space);
        for (uint64_t number = 0; number < count; number++) {
            Packed row;
            id += 1 + below(3);
            make_row(&row, number && number == count / 2 && !is_in_order ? id - 1 - below(3) : id, kinds);
            add_row(&block, 512, &row);
        }
        BlockRows found = {0};
        CHECK(block_read(&found, block.data, block.size) == 1 && found.count == count);
        size_t appended = append(&space, &block, &found);
        CHECK(space.primary.size == appended && (appended == count || !is_in_order));
        int more = check_builds(&space);
        repeated += (unsigned long)more;
        if (!more)
            change_some(&space, count);
        check_damaged(&block);
        block_free(&found);
        free(block.data);
        end(&space);
        done += count + 1;
    }
    CHECK(slab_used() == 0);
    printf("%lu rows, %lu indexes with a key twice\n", operations, repeated);
    return 0;
}
