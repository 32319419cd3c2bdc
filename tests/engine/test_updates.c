/* Random update operations against a plain array of fields, and damaged rows and operations.
 *
 *     test_updates UPDATES SEED
 */
#include "random_rows.h"
#include "update/update.h"

enum { FIELDS = 24, OPERATIONS = 6, SHORT = 200 };

typedef enum { NIL, INTEGER, REAL, TEXT, ARRAY } Kind;

typedef struct {
    Kind kind;
    int is_changed;
    int number; /* REAL: in quarters */
    char text[SHORT];
    int size;
} Field;

typedef struct {
    Field fields[FIELDS + OPERATIONS];
    int count, touched[OPERATIONS], touched_count, first_moved;
} Row;

typedef struct {
    char opcode;
    int field_no, offset, cut, count;
    Field argument;
} Operation;

static const char LETTERS[] = "a text that is cut and pasted, again and again, in every place that it has";

/* -- packing -- */

static void put_small(Packed *packed, int number)
{
    if (number >= 0x100)
        put_byte(packed, 0xcd), put_big_endian(packed, (uint64_t)number, 2);
    else if (number >= 0x80)
        put_byte(packed, 0xcc), put_byte(packed, (uint8_t)number);
    else if (number >= -0x20)
        put_byte(packed, (uint8_t)number);
    else if (number >= -0x80)
        put_byte(packed, 0xd0), put_byte(packed, (uint8_t)number);
    else
        put_byte(packed, 0xd1), put_big_endian(packed, (uint64_t)(int64_t)number, 2);
}

static void put_field(Packed *packed, const Field *field, int may_shorten)
{
    float single = (float)field->number / 4;
    uint32_t bits;
    switch (field->kind) {
    case NIL: put_byte(packed, 0xc0); break;
    case INTEGER: put_small(packed, field->number); break;
    case REAL:
        if (!may_shorten) {
            put_double(packed, (double)field->number / 4);
            break;
        }
        memcpy(&bits, &single, sizeof bits);
        put_byte(packed, 0xca), put_big_endian(packed, bits, 4);
        break;
    case TEXT:
        if (field->size < 0x20)
            put_byte(packed, (uint8_t)(0xa0 + field->size));
        else
            put_byte(packed, 0xd9), put_byte(packed, (uint8_t)field->size);
        put_bytes(packed, field->text, (size_t)field->size);
        break;
    case ARRAY: put_byte(packed, 0x92), put_byte(packed, 0xc0), put_byte(packed, 0x81), put_bytes(packed, "\1\2", 2);
    }
}

static void put_array_head(Packed *packed, int count)
{
    if (count < 0x10)
        put_byte(packed, (uint8_t)(0x90 + count));
    else
        put_byte(packed, 0xdc), put_big_endian(packed, (uint64_t)count, 2);
}

/* What an operation has computed is shortened where a double need not be. */
static void put_row(Packed *packed, const Row *row, uint64_t doubles)
{
    packed->size = 0;
    put_array_head(packed, row->count);
    for (int number = 0; number < row->count; number++)
        put_field(packed, row->fields + number, row->fields[number].is_changed == 2 && !(doubles >> number & 1));
}

static void put_operations(Packed *packed, const Operation *operations, int count, int index_base, int has_names)
{
    packed->size = 0;
    put_array_head(packed, count);
    for (const Operation *each = operations; each < operations + count; each++) {
        put_byte(packed, each->opcode == ':' ? 0x95 : 0x93);
        put_byte(packed, 0xa1), put_byte(packed, (uint8_t)each->opcode);
        if (has_names && each->field_no == 1)
            put_byte(packed, 0xa3), put_bytes(packed, "one", 3);
        else
            put_small(packed, each->field_no < 0 ? each->field_no : each->field_no + index_base);
        if (each->opcode == '#') {
            put_small(packed, each->count);
        } else if (each->opcode == ':') {
            put_small(packed, each->offset < 0 ? each->offset : each->offset + index_base);
            put_small(packed, each->cut);
            put_field(packed, &each->argument, 0);
        } else {
            put_field(packed, &each->argument, 0);
        }
    }
}

/* -- the model -- */

static void move(Row *row, int field)
{
    if (field < row->first_moved)
        row->first_moved = field;
}

static int insert(Row *row, int field, const Field *value)
{
    if (field < 0)
        field += row->count + 1;
    if (field < 0 || field > row->count)
        return 0;
    memmove(row->fields + field + 1, row->fields + field, (size_t)(row->count - field) * sizeof *value);
    row->fields[field] = *value;
    row->count++;
    move(row, field);
    return 1;
}

static int delete(Row *row, int field, int count)
{
    if (!count)
        return 0;
    if (count > row->count - field)
        count = row->count - field;
    memmove(row->fields + field, row->fields + field + count, (size_t)(row->count - field - count) * sizeof(Field));
    row->count -= count;
    move(row, field);
    return 1;
}

static int splice(Field *old, const Operation *operation)
{
    if (old->kind != TEXT || operation->argument.kind != TEXT)
        return 0;
    int start = operation->offset < 0 ? operation->offset + old->size + 1 : operation->offset;
    if (start < 0)
        return 0;
    start = start > old->size ? old->size : start;
    int end = operation->cut < 0 ? old->size + operation->cut : start + operation->cut;
    end = end > old->size ? old->size : end;
    end = end < start ? start : end;
    Field made = {.kind = TEXT, .is_changed = 2};
    for (int place = 0; place < start; place++)
        made.text[made.size++] = old->text[place];
    for (int place = 0; place < operation->argument.size; place++)
        made.text[made.size++] = operation->argument.text[place];
    for (int place = end; place < old->size; place++)
        made.text[made.size++] = old->text[place];
    *old = made;
    return 1;
}

static int calculate(Field *old, char opcode, const Field *argument)
{
    int is_sum = opcode == '+' || opcode == '-', sign = opcode == '-' ? -1 : 1;
    Field made = {.kind = INTEGER, .is_changed = 2};
    if ((old->kind != INTEGER && old->kind != REAL) || (argument->kind != INTEGER && argument->kind != REAL))
        return 0;
    if (is_sum && (old->kind == REAL || argument->kind == REAL)) {
        made.kind = REAL;
        made.number = (old->kind == REAL ? old->number : 4 * old->number)
            + sign * (argument->kind == REAL ? argument->number : 4 * argument->number);
    } else if (is_sum) {
        made.number = old->number + sign * argument->number;
    } else if (old->kind == REAL || argument->kind == REAL || old->number < 0 || argument->number < 0) {
        return 0;
    } else {
        made.number = opcode == '&' ? old->number & argument->number
            : opcode == '|' ? old->number | argument->number : old->number ^ argument->number;
    }
    *old = made;
    return 1;
}

/* What is refused before the row is looked at. */
static int is_readable(const Operation *operation)
{
    switch (operation->opcode) {
    case '+': case '-': return operation->argument.kind == INTEGER || operation->argument.kind == REAL;
    case '&': case '|': case '^': return operation->argument.kind == INTEGER && operation->argument.number >= 0;
    case ':': return operation->argument.kind == TEXT;
    case '#': return operation->count > 0;
    default: return 1;
    }
}

static int apply(Row *row, const Operation *operation)
{
    int field = operation->field_no;
    if (operation->opcode == '!' || (operation->opcode == '=' && field == row->count))
        return insert(row, field, &operation->argument);
    if (field < 0)
        field += row->count;
    if (field < 0 || field >= row->count)
        return 0;
    if (operation->opcode == '#')
        return delete(row, field, operation->count);
    row->touched[row->touched_count++] = field;
    Field *old = row->fields + field;
    if (operation->opcode == '=') {
        *old = operation->argument;
        old->is_changed = 1;
        return 1;
    }
    if (old->is_changed)
        return 0;
    return operation->opcode == ':' ? splice(old, operation) : calculate(old, operation->opcode, &operation->argument);
}

/* -- random ones -- */

static Field any_field(void)
{
    Field field = {.kind = (Kind)below(5)};
    if (below(2))
        field.kind = INTEGER;
    field.number = (int)below(2000) - (below(3) ? 0 : 1000);
    field.size = field.kind == TEXT ? (int)below(20) : 0;
    memcpy(field.text, LETTERS + below(sizeof LETTERS - 21), (size_t)field.size);
    return field;
}

static Operation any_operation(void)
{
    Operation operation = {.opcode = "=!#+-&|^:"[below(9)], .argument = any_field()};
    operation.field_no = (int)below(8) - (below(4) ? 0 : 9);
    operation.offset = (int)below(12) - (below(4) ? 0 : 14);
    operation.cut = (int)below(12) - (below(4) ? 0 : 14);
    operation.count = (int)below(5);
    if (below(6) == 0)
        return operation;
    if (operation.opcode == ':')
        operation.argument = (Field){.kind = TEXT, .size = 3, .text = "new"};
    else if (!strchr("=!", operation.opcode) && operation.argument.kind != REAL)
        operation.argument = (Field){.kind = INTEGER, .number = (int)below(300)};
    operation.count += !operation.count;
    return operation;
}

static int field_of(void *names, const uint8_t *name, size_t size, int32_t *field_no)
{
    CHECK(names == (void *)LETTERS);
    *field_no = 1;
    return size == 3 && !memcmp(name, "one", 3);
}

/* -- the test -- */

static uint8_t *exact(const Packed *packed, size_t size)
{
    uint8_t *bytes = malloc(size ? size : 1);
    CHECK(bytes);
    memcpy(bytes, packed->data, size);
    return bytes;
}

static UpdateOperations operations;
static UpdatedRow updated;

/* Returns the new row, exactly as long as it is; NULL if that is unknown. */
static uint8_t *update(const uint8_t *row, size_t row_size, const uint8_t *changes, size_t size, uint32_t index_base,
                       const UpdateDoubles *doubles)
{
    if (!update_read(&operations, changes, changes + size, index_base, field_of, (void *)LETTERS)
        || !update_row(&updated, &operations, row, row_size, doubles))
        return NULL;
    uint8_t *written = malloc(updated.size);
    CHECK(written);
    update_write(&updated, written);
    return written;
}

/* Fields that are not said to be touched are what they were. */
static void check_touched(const Row *model)
{
    uint32_t moved = model->first_moved == INT32_MAX ? UPDATE_NO_FIELD : (uint32_t)model->first_moved;
    CHECK(updated.first_moved == moved && updated.touched_count == model->touched_count);
    for (int place = 0; place < model->touched_count; place++)
        CHECK((int)updated.touched[place] == model->touched[place]);
}

static int compare_with_model(void)
{
    static Row model;
    Packed row, changes, expected;
    Operation all[OPERATIONS];
    int count = 1 + (int)below(below(2) ? 2 : OPERATIONS), index_base = (int)below(2), done = 1;
    model.count = (int)below(FIELDS);
    model.touched_count = 0;
    model.first_moved = INT32_MAX;
    for (int number = 0; number < model.count; number++)
        model.fields[number] = any_field();
    for (int number = 0; number < count; number++) {
        all[number] = any_operation();
        done &= is_readable(all + number);
    }
    UpdateDoubles doubles = {below(2) ? 0 : next_random(), 0};
    put_row(&row, &model, 0);
    put_operations(&changes, all, count, index_base, (int)below(2));
    for (int number = 0; done && number < count; number++)
        done = apply(&model, all + number);
    uint8_t *old = exact(&row, row.size), *given = exact(&changes, changes.size);
    uint8_t *written = update(old, row.size, given, changes.size, (uint32_t)index_base, &doubles);
    CHECK(!done == !written);
    if (written) {
        put_row(&expected, &model, doubles.first);
        CHECK(updated.size == expected.size && !memcmp(written, expected.data, expected.size));
        CHECK(updated.fields == (uint32_t)model.count);
        check_touched(&model);
    }
    free(old);
    free(given);
    free(written);
    return done;
}

static void damage(Packed *packed)
{
    for (uint64_t left = below(3); left; left--)
        packed->data[below(packed->size)] = (uint8_t)next_random();
}

static int read_damaged(void)
{
    static Row model;
    Packed row, changes;
    Operation all[OPERATIONS];
    int count = 1 + (int)below(3), is_whole = below(2) != 0;
    model.count = (int)below(12);
    for (int number = 0; number < model.count; number++)
        model.fields[number] = any_field();
    for (int number = 0; number < count; number++)
        all[number] = any_operation();
    put_row(&row, &model, 0);
    put_operations(&changes, all, count, 0, 1);
    if (is_whole || below(2))
        damage(&changes);
    if (!is_whole)
        damage(&row);
    size_t row_size = is_whole || below(2) ? row.size : below(row.size + 1);
    size_t size = below(3) ? changes.size : below(changes.size + 1);
    UpdateDoubles doubles = {next_random(), (int)below(2)};
    uint8_t *old = exact(&row, row_size), *given = exact(&changes, size);
    uint8_t *written = update(old, row_size, given, size, (uint32_t)next_random() >> below(33) % 32, &doubles);
    int done = written != NULL;
    if (written && is_whole) {
        uint32_t fields;
        CHECK(msgpack_skip(written, written + updated.size) == written + updated.size);
        CHECK(msgpack_array(written, written + updated.size, &fields) && fields == updated.fields);
    }
    free(old);
    free(given);
    free(written);
    return done;
}

/* As many operations as there may be, each of which makes two pieces more. */
static void fill_up(void)
{
    for (int number = UPDATE_OPERATIONS_MAX; number <= UPDATE_OPERATIONS_MAX + 1; number++) {
        static uint8_t row[3 + 100] = {0xdc, 0, 100}, changes[3 + 6 * (UPDATE_OPERATIONS_MAX + 1)] = {0xdc, 0};
        uint8_t *at = changes + 3;
        changes[2] = (uint8_t)number;
        for (int place = 0; place < number; place++, at += 5)
            memcpy(at, (uint8_t[]){0x93, 0xa1, '+', (uint8_t)(3 * place + 1), 1}, 5);
        uint8_t *written = update(row, sizeof row, changes, (size_t)(at - changes), 0, &(UpdateDoubles){0, 0});
        CHECK(!written == (number > UPDATE_OPERATIONS_MAX));
        for (int field = 0; written && field < 100; field++)
            CHECK(written[3 + field] == (field % 3 == 1 && field / 3 < number));
        free(written);
    }
}

int main(int argument_count, char **arguments)
{
    CHECK(argument_count == 3);
    unsigned long updates = strtoul(arguments[1], NULL, 10), done = 0, damaged = 0;
    random_state = strtoul(arguments[2], NULL, 10) * 2654435761u + 1;
    fill_up();
    for (unsigned long number = 0; number < updates; number++) {
        done += (unsigned long)compare_with_model();
        damaged += (unsigned long)read_damaged();
    }
    CHECK(updates < 1000 || (done > updates / 5 && damaged > updates / 100));
    printf("%lu updates, %lu done, %lu done in spite of damage\n", updates, done, damaged);
    return 0;
}
