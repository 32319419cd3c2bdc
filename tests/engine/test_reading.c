/* Random and damaged bytes for everything that reads MessagePack and keys. A sanitizer finds what is read behind them.
 *
 *     test_reading INPUTS SEED
 */
#include "key/key.h"
#include "values/msgpack.h"
#include "random_rows.h"

static KeyLayout LAYOUT = {
    6,
    7,
    1,
    0,
    {{0, KEY_UNSIGNED, 1}, {3, KEY_STRING, 1}, {1, KEY_NUMBER, 1}, {2, KEY_INTEGER, 1}, {5, KEY_DOUBLE, 1},
     {4, KEY_VARBINARY, 1}, {6, KEY_BOOLEAN, 0}},
};

static void put_any(Packed *row)
{
    switch (below(8)) {
    case 0: put_unsigned(row, next_random() >> below(64)); break;
    case 1: put_integer(row, (int64_t)next_random()); break;
    case 2: put_double(row, (double)below(1000) / 16); break;
    case 3: put_string(row, "text\0and more", (uint8_t)below(14)); break;
    case 4: put_byte(row, 0xc0); break;
    case 5: put_byte(row, (uint8_t)(0xc2 + below(2))); break;
    case 6: put_byte(row, 0xc4), put_byte(row, 3), put_bytes(row, "\0\1\2", 3); break;
    default:
        put_byte(row, 0x82), put_unsigned(row, 1), put_unsigned(row, 2), put_byte(row, 0x91);
        put_unsigned(row, 3), put_byte(row, 0xd4), put_byte(row, 1), put_byte(row, 2);
    }
}

/* A value of the type that the layout has for a field. */
static void put_fitting(Packed *row, int field)
{
    switch (below(6) ? field : 7) {
    case 0: put_unsigned(row, next_random() >> below(64)); break;
    case 1: below(2) ? put_double(row, (double)below(1000) / 16 - 9) : put_integer(row, (int64_t)next_random()); break;
    case 2: put_integer(row, (int64_t)(next_random() >> below(64))); break;
    case 3: put_string(row, "text\0and more", (uint8_t)below(14)); break;
    case 4: put_byte(row, 0xc4), put_byte(row, 3), put_bytes(row, "\0\1\2", 3); break;
    case 5: put_double(row, (double)below(1000) / 16 - 9); break;
    case 6: put_byte(row, (uint8_t)(0xc2 + below(2))); break;
    default: put_byte(row, field == 6 ? 0xc2 : 0xc0);
    }
}

static void make_row(Packed *row)
{
    row->size = 0;
    int fields = 7 + (int)below(2), is_fitting = below(3) != 0;
    put_byte(row, (uint8_t)(0x90 + fields));
    for (int field = 0; field < fields; field++)
        is_fitting ? put_fitting(row, field) : put_any(row);
}

int main(int argument_count, char **arguments)
{
    CHECK(argument_count == 3);
    unsigned long inputs = strtoul(arguments[1], NULL, 10), rows = 0, keys = 0, exact_hints = 0;
    random_state = strtoul(arguments[2], NULL, 10) * 2654435761u + 1;
    KeyBuffer key = {0};
    for (unsigned long number = 0; number < inputs; number++) {
        Packed packed;
        make_row(&packed);
        for (uint64_t damage = below(4); damage > 1; damage--)
            packed.data[below(packed.size)] = (uint8_t)next_random();
        size_t size = below(3) ? packed.size : below(packed.size + 1);
        uint8_t *exact = malloc(size ? size : 1); /* exactly as long as what may be read */
        memcpy(exact, packed.data, size);
        const uint8_t *end = exact + size, *behind = msgpack_skip(exact, end);
        CHECK(!behind || (behind > exact && behind <= end));
        uint32_t count;
        const uint8_t *first = msgpack_array(exact, end, &count);
        CHECK(!first || (first > exact && first <= end));
        MsgpackValue value;
        rows += msgpack_read(exact, end, &value) != NULL;
        LAYOUT.count = (uint8_t)(1 + below(7));
        LAYOUT.own = (uint8_t)(1 + below(LAYOUT.count));
        LAYOUT.is_rest_for_nil = (uint8_t)below(2);
        int done = key_of_row(&LAYOUT, exact, size, &key);
        CHECK(done >= 0);
        keys += (unsigned long)done;
        if (done) {
            LAYOUT.is_wide = (uint8_t)below(2);
            int is_exact;
            size_t part = below(key.size + 1);
            KeyHint whole = key_hint(&LAYOUT, key.data, key.size, &is_exact);
            KeyHint begun = key_hint(&LAYOUT, key.data, part, &is_exact);
            CHECK(begun.high < whole.high || (begun.high == whole.high && begun.low <= whole.low));
            CHECK(part == key.size || !is_exact);
            key_hint(&LAYOUT, key.data, key.size, &is_exact);
            RowFields fields;
            KeyHint made;
            CHECK(row_fields(&fields, exact, size) && key_exact_hint(&LAYOUT, &fields, &made) == is_exact);
            CHECK(!is_exact || (made.high == whole.high && made.low == whole.low));
            exact_hints += (unsigned long)is_exact;
        }
        int ignored;
        key_hint(&LAYOUT, exact, size, &ignored);
        free(exact);
    }
    key_buffer_free(&key);
    printf("%lu inputs, %lu values, %lu keys, %lu exact hints\n", inputs, rows, keys, exact_hints);
    return 0;
}
