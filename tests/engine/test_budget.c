/* The memory budget: what is counted, against what a change asks for, with random rows and a limit that is reached.
 *
 *     test_budget OPERATIONS SEED
 */
#include "memory/budget.h"
#include "row_changes.h"
#include "memory/slab.h"

enum { IDS = 30000, LIMIT = 8 * 1024 * 1024, RESERVE = LIMIT / 8, PAGE = 64 * 1024 };

static const KeyLayout PRIMARY = {1, 1, 0, 0, {{0, KEY_UNSIGNED, 0}}};
static const KeyLayout SECONDARY = {1, 2, 0, 1, {{1, KEY_INTEGER, 0}, {0, KEY_UNSIGNED, 0}}};

static Tree primary, secondary;
static Records records, pairs;
static uint32_t sizes[IDS]; /* of the rows that are there */
static uint8_t row[64 * 1024];
static unsigned long refused, allowed_when_full;

static uint32_t make_row(uint64_t id, size_t text)
{
    Packed head = {.size = 0};
    put_byte(&head, 0x93);
    put_unsigned(&head, id);
    put_integer(&head, (int64_t)below(1000));
    put_byte(&head, 0xda);
    put_big_endian(&head, text, 2);
    memcpy(row, head.data, head.size);
    memset(row + head.size, 'x', text);
    return (uint32_t)(head.size + text);
}

static void change(uint64_t id, uint32_t size)
{
    uint8_t key[8];
    for (int place = 0; place < 8; place++)
        key[place] = (uint8_t)(id >> 8 * (7 - place));
    TreeKey wanted = tree_key(&primary, key, 8);
    ChangedIndex index = {&secondary, 0};
    CHECK(change_row(&primary, &index, 1, &wanted, size ? row : NULL, size) == CHANGE_DONE);
    sizes[id] = size;
}

/* What the row's record takes in the slab cannot be less than this. */
static size_t least_memory(void)
{
    size_t size = 0;
    for (int id = 0; id < IDS; id++)
        if (sizes[id])
            size += sizeof(Record) + sizes[id] + 2 * (1 + sizeof(Handle32)) + sizeof(uintptr_t);
    return size;
}

static size_t text_size(void)
{
    return below(50) ? below(300) : below(40000);
}

static void try_to_store(uint64_t id, size_t text)
{
    uint32_t size = make_row(id, text);
    size_t before = budget_held();
    size_t growth = slab_growth(sizes[id] ? sizeof(Record) + sizes[id] : 0, sizeof(Record) + size);
    if (!budget_allows(sizes[id], size, 1 + !sizes[id], 0, 0)) {
        refused++;
        CHECK(growth || !sizes[id]);
        CHECK(before + growth + 5 * tree_leaf_memory(TREE_LEAF_ROOM, 1) > (growth && !sizes[id] ? LIMIT - RESERVE : LIMIT));
        return;
    }
    int is_in_place = sizes[id] && !growth;
    allowed_when_full += is_in_place && before > LIMIT - PAGE;
    change(id, size);
    CHECK(is_in_place || budget_held() <= LIMIT);
    CHECK(!is_in_place || budget_held() <= before + PAGE + 4 * tree_leaf_memory(TREE_LEAF_ROOM, 1));
}

int main(int argument_count, char **arguments)
{
    CHECK(argument_count == 3);
    unsigned long operations = strtoul(arguments[1], NULL, 10);
    random_state = strtoul(arguments[2], NULL, 10) * 2654435761u + 1;
    primary = (Tree){.layout = &PRIMARY, .records = &records, .pairs = &records};
    secondary = (Tree){.layout = &SECONDARY, .records = &records, .pairs = &pairs, .has_references = 1};
    CHECK(budget_allows(0, UINT32_MAX, 1, UINT32_MAX, 0)); /* no limit */
    budget.limit = LIMIT;
    budget.reserve = RESERVE;
    CHECK(!budget_allows(0, LIMIT, 1, 0, 1) && !budget_allows(0, 1, 1, LIMIT, 1) && !budget_allows(1, LIMIT, 1, 0, 1));
    CHECK(!budget_allows(0, 1, 1, LIMIT - RESERVE, 0) && budget_allows(0, 1, 1, LIMIT - RESERVE, 1));
    for (unsigned long number = 0; number < operations; number++) {
        uint64_t id = below(IDS);
        if (number / 20000 % 3 < 2 || !sizes[id])
            try_to_store(id, text_size());
        else
            change(id, 0); /* now and then it is drained */
        if (number % 4096 == 0)
            CHECK(least_memory() <= budget_held());
    }
    CHECK(operations < 100000 || (refused && allowed_when_full));
    for (uint64_t id = 0; id < IDS; id++)
        if (sizes[id]) {
            uint32_t size = sizes[id];
            CHECK(budget_allows(size, size, 1, 0, 0)); /* an update that does not grow */
            change(id, 0);
        }
    /* What is drained has room again, but for a page that stays of each size. */
    CHECK(slab_used() == 0 && budget_indexes() <= IDS * sizeof(uintptr_t) + 6 * tree_leaf_memory(TREE_LEAF_ROOM, 1));
    tree_clear(&secondary);
    tree_clear(&primary);
    records_clear(&records);
    records_clear(&pairs);
    CHECK(budget_indexes() == 0);
    printf("%lu operations, %lu refused, %lu replaced when full\n", operations, refused, allowed_when_full);
    return 0;
}
