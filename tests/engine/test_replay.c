/* Random rows of logs, applied to a primary index, against a plain array of rows; and damaged blocks.
 *
 *     test_replay ROWS SEED
 */
#include "random_rows.h"
#include "log/replay.h"
#include "memory/slab.h"

enum { IDS = 300, FIELDS = 4 };

static const KeyLayout PRIMARY = {1, 1, 0, 0, {{0, KEY_UNSIGNED, 0}}};

/* A row as its packed fields. */
typedef struct {
    Packed fields[FIELDS];
    int is_there;
} Row;

static Row rows[IDS];
static Tree primary;
static Records records;
static FieldName names[] = {{(const uint8_t *)"id", 2, 0}, {(const uint8_t *)"status", 6, 1}};

static void make_value(Packed *value)
{
    value->size = 0;
    switch (below(6)) {
    case 0: put_unsigned(value, below(200)); break;
    case 1: put_integer(value, -1 - (int64_t)below(1000)); break;
    case 2: put_byte(value, 0xc0); break;
    case 3: put_double(value, 1.5); break;
    case 4: put_byte(value, 0x92), put_unsigned(value, 1), put_byte(value, 0xa1), put_byte(value, 'x'); break;
    default: put_string(value, "RTWxyzRTWxyzRTWxyzRTWxyz", (uint8_t)below(25));
    }
}

static void make_row(Row *row, uint64_t id)
{
    row->is_there = 1;
    row->fields[0].size = 0;
    put_unsigned(row->fields, id);
    for (int field = 1; field < FIELDS; field++)
        make_value(row->fields + field);
}

static void put_row(Packed *packed, const Row *row)
{
    put_byte(packed, 0x90 + FIELDS);
    for (int field = 0; field < FIELDS; field++)
        put_bytes(packed, row->fields[field].data, row->fields[field].size);
}

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

static void put_head(Packed *packed, BlockRowType type, uint64_t lsn, uint64_t place, uint64_t count)
{
    put_byte(packed, (uint8_t)(0x84 + (count > 1) + (count > 1 && place + 1 == count)));
    put_byte(packed, 0x00), put_byte(packed, (uint8_t)type);
    put_bytes(packed, "\x02\x01\x03", 3);
    put_unsigned(packed, lsn);
    put_byte(packed, 0x04);
    put_double(packed, 1700000000.25);
    if (count > 1)
        put_byte(packed, 0x08), put_unsigned(packed, place);
    if (count > 1 && place + 1 == count)
        put_bytes(packed, "\x09\x01", 2);
}

static void put_key(Packed *packed, uint64_t id)
{
    put_byte(packed, 0x20), put_byte(packed, 0x91);
    put_unsigned(packed, id);
}

/* An update of a row, in the block and in the plain array. Returns whether it is one that C carries out. */
static int make_update(Packed *packed, uint64_t id)
{
    int base = (int)below(2), count = 1 + (int)below(3), is_usual = 1;
    Row changed = rows[id];
    put_bytes(packed, base ? "\x84\x10\xcd\x02\x00\x15\x01" : "\x83\x10\xcd\x02\x00", base ? 7 : 5);
    put_key(packed, id);
    put_byte(packed, 0x21), put_byte(packed, (uint8_t)(0x90 + count));
    while (count--) {
        Packed value;
        make_value(&value);
        uint64_t field = below(12) ? 1 + below(FIELDS - 1) : below(2) ? 0 : FIELDS + 1;
        put_byte(packed, 0x93), put_byte(packed, 0xa1), put_byte(packed, '=');
        if (field == 1 && below(2))
            put_bytes(packed, "\xa6status", 7);
        else
            put_unsigned(packed, field + (uint64_t)base);
        put_bytes(packed, value.data, value.size);
        if (field < FIELDS)
            changed.fields[field] = value;
        is_usual &= field < FIELDS;
    }
    const Packed *before = rows[id].fields, *after = changed.fields;
    is_usual &= before->size == after->size && !memcmp(before->data, after->data, before->size);
    if (is_usual && rows[id].is_there)
        rows[id] = changed;
    return is_usual || !rows[id].is_there;
}

/* Add a random row. Returns whether it is one that C applies; it is applied to the plain array then. */
static int make_change(Packed *packed, BlockRowType type, uint64_t id)
{
    if (type == BLOCK_UPDATE)
        return make_update(packed, id);
    put_bytes(packed, "\x82\x10\xcd\x02\x00", 5);
    if (type == BLOCK_DELETE) {
        put_key(packed, id);
        rows[id].is_there = 0;
        return 1;
    }
    Row row;
    make_row(&row, id);
    put_byte(packed, 0x21);
    put_row(packed, &row);
    if (type == BLOCK_INSERT && rows[id].is_there)
        return 0;
    rows[id] = row;
    return 1;
}

static void check_rows(void)
{
    Place place = tree_begin();
    for (uint64_t id = 0; id < IDS; id++) {
        if (!rows[id].is_there)
            continue;
        Packed expected = {.size = 0};
        put_row(&expected, rows + id);
        CHECK(!tree_is_end(&primary, place));
        const Record *record = tree_record(&primary, tree_handle(&primary, place));
        CHECK(record->size == expected.size && !record->key_size && !memcmp(record->data, expected.data, expected.size));
        place = tree_next(&primary, place);
    }
    CHECK(tree_is_end(&primary, place));
}

/* Read and apply a block of which some bytes were changed, and which is cut off somewhere. */
static void check_damaged(const Block *block)
{
    size_t size = below(4) ? block->size : below(block->size + 1);
    Block damaged = {malloc(size ? size : 1), size, 0};
    if (size)
        memcpy(damaged.data, block->data, size);
    for (uint64_t damage = below(4); size && damage; damage--)
        damaged.data[below(size)] = (uint8_t)next_random();
    BlockRows found = {0};
    CHECK(block_read(&found, damaged.data, size) >= 0);
    Records own = {0};
    Tree tree = {.layout = &PRIMARY, .records = &own, .pairs = &own};
    Replay replay;
    replay_begin(&replay, &tree);
    for (size_t place = 0; place < found.count; place++)
        CHECK(replay_row(&replay, damaged.data, found.rows + place) >= 0);
    replay_end(&replay);
    tree_clear(&tree);
    records_clear(&own);
    block_free(&found);
    free(damaged.data);
}

int main(int argument_count, char **arguments)
{
    CHECK(argument_count == 3);
    unsigned long operations = strtoul(arguments[1], NULL, 10), applied = 0;
    random_state = strtoul(arguments[2], NULL, 10) * 2654435761u + 1;
    primary.layout = &PRIMARY;
    primary.records = primary.pairs = &records;
    uint64_t lsn = 1;
    for (unsigned long done = 0; done < operations;) {
        Block block = {0};
        uint64_t count = 1 + below(8);
        int are_usual[8];
        Replay replay;
        replay_begin(&replay, &primary);
        replay.names = names;
        replay.name_count = 2;
        for (uint64_t place = 0; place < count; place++, lsn++, done++) {
            BlockRowType type = BLOCK_INSERT + (BlockRowType)below(4);
            uint64_t id = below(done / 2000 % 2 ? IDS : 20);
            Packed packed = {.size = 0};
            put_head(&packed, type, lsn, place, count);
            are_usual[place] = make_change(&packed, type, id);
            add_to_block(&block, &packed);
        }
        BlockRows found = {0};
        CHECK(block_read(&found, block.data, block.size) == 1 && found.count == count);
        for (size_t place = 0; place < count; place++) {
            CHECK(found.rows[place].lsn == lsn - count + place && found.rows[place].member == 1);
            int is_done = replay_row(&replay, block.data, found.rows + place);
            CHECK(is_done == are_usual[place]);
            applied += (unsigned long)is_done;
        }
        replay_end(&replay);
        check_damaged(&block);
        block_free(&found);
        free(block.data);
        if (done % 64 < 8)
            check_rows();
    }
    check_rows();
    tree_clear(&primary);
    records_clear(&records);
    CHECK(slab_used() == 0);
    printf("%lu rows, %lu applied\n", operations, applied);
    return 0;
}
