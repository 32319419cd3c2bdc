#include "update.h"

#include <float.h>
#include <string.h>

/* -- reading operations -- */

/* Read a value and go behind it. */
static int take(const uint8_t **at, const uint8_t *end, MsgpackValue *value)
{
    const uint8_t *behind = msgpack_read(*at, end, value);
    if (behind && value->type == MSGPACK_OTHER)
        behind = msgpack_skip(*at, end);
    *at = behind;
    return behind != NULL;
}

/* The same for a number that is packed as unsigned: a positive one may be packed as signed. */
static int take_unsigned(const uint8_t **at, const uint8_t *end, MsgpackValue *value)
{
    const uint8_t *head = *at;
    return take(at, end, value) && value->type == MSGPACK_UNSIGNED && *head < 0xd0;
}

static int take_int32(const uint8_t **at, const uint8_t *end, int32_t *number)
{
    MsgpackValue value;
    if (!take(at, end, &value))
        return 0;
    int64_t wide = (int64_t)value.number;
    *number = (int32_t)wide;
    if (value.type == MSGPACK_UNSIGNED)
        return value.number <= INT32_MAX;
    return value.type == MSGPACK_NEGATIVE && wide >= INT32_MIN;
}

static int take_opcode(const uint8_t **at, const uint8_t *end, char *opcode)
{
    MsgpackValue value;
    if (end - *at >= 2 && **at == 0xa1) {
        *opcode = (char)(*at)[1];
        *at += 2;
        return 1;
    }
    if (!take(at, end, &value) || value.type != MSGPACK_STRING || value.size != 1)
        return 0;
    *opcode = (char)*value.bytes;
    return 1;
}

/* Where something that should be of a type is something else. */
static UpdateProblem explain(const uint8_t *at, const uint8_t *end, UpdateProblem problem)
{
    MsgpackValue value;
    const uint8_t *behind = at;
    return !take(&behind, end, &value) ? UPDATE_DAMAGED
        : problem == UPDATE_ARGUMENT && value.type == MSGPACK_OTHER ? UPDATE_UNSUPPORTED : problem;
}

static UpdateProblem take_field(const uint8_t **at, const uint8_t *end, int32_t index_base, UpdateFieldOf field_of,
                                void *names, int32_t *field_no)
{
    MsgpackValue value;
    const uint8_t *start = *at;
    if (start < end && *start < 0x80) {
        *field_no = *(*at)++;
    } else if (msgpack_read(start, end, &value) && value.type == MSGPACK_STRING) {
        *at = value.bytes + value.size;
        return field_of && field_of(names, value.bytes, value.size, field_no) ? UPDATE_FINE : UPDATE_NO_NAME;
    } else if (!take_int32(at, end, field_no)) {
        return explain(start, end, UPDATE_FIELD);
    }
    int64_t from_zero = (int64_t)*field_no - index_base;
    if (from_zero >= 0 && from_zero <= INT32_MAX)
        *field_no = (int32_t)from_zero;
    else if (*field_no >= 0)
        return UPDATE_NO_NUMBER;
    return UPDATE_FINE;
}

static int is_nested(uint8_t head)
{
    return (head >= 0x80 && head < 0xa0) || (head >= 0xdc && head < 0xe0) || (head >= 0xc7 && head <= 0xc9)
        || (head >= 0xd4 && head <= 0xd8);
}

static UpdateProblem take_splice(const uint8_t **at, const uint8_t *end, int32_t index_base, UpdateOperation *operation)
{
    const uint8_t *start = *at;
    if (!take_int32(at, end, &operation->offset))
        return explain(start, end, UPDATE_ARGUMENT);
    start = *at;
    if (!take_int32(at, end, &operation->cut))
        return explain(start, end, UPDATE_ARGUMENT);
    if (operation->offset >= 0) {
        int64_t from_zero = (int64_t)operation->offset - index_base;
        if (from_zero < 0 || from_zero > INT32_MAX)
            return UPDATE_OFFSET;
        operation->offset = (int32_t)from_zero;
    }
    start = *at;
    return take(at, end, &operation->argument) && operation->argument.type == MSGPACK_STRING
        ? UPDATE_FINE : explain(start, end, UPDATE_ARGUMENT);
}

static UpdateProblem take_argument(const uint8_t **at, const uint8_t *end, int32_t index_base, UpdateOperation *operation,
                                   int *is_plain)
{
    MsgpackValue *argument = &operation->argument;
    const uint8_t *start = *at;
    int done = 0;
    switch (operation->opcode) {
    case '=': case '!':
        if (!(*at = msgpack_skip(start, end)))
            return UPDATE_DAMAGED;
        *argument = (MsgpackValue){.type = MSGPACK_OTHER, .bytes = start, .size = (size_t)(*at - start)};
        *is_plain &= !is_nested(*start);
        return UPDATE_FINE;
    case '+': case '-':
        done = take(at, end, argument)
            && (argument->type == MSGPACK_UNSIGNED || argument->type == MSGPACK_NEGATIVE
                || argument->type == MSGPACK_DOUBLE);
        break;
    case ':': return take_splice(at, end, index_base, operation);
    default: done = take_unsigned(at, end, argument); /* # & | ^ */
    }
    if (!done)
        return explain(start, end, UPDATE_ARGUMENT);
    if (operation->opcode == '#' && !(argument->number &= UINT32_MAX))
        return UPDATE_NOTHING;
    return UPDATE_FINE;
}

/* Whether there is an operation with so many parts. */
static int is_operation(char opcode, uint32_t parts)
{
    return opcode && strchr("=!#+-&|^", opcode) ? parts == 3 : opcode == ':' && parts == 5;
}

static UpdateProblem take_operation(const uint8_t **at, const uint8_t *end, int32_t index_base, UpdateFieldOf field_of,
                                    void *names, UpdateOperation *operation, int *is_plain)
{
    uint32_t parts;
    if (!(*at = msgpack_array(*at, end, &parts)))
        return UPDATE_DAMAGED;
    const uint8_t *start = *at;
    if (!take_opcode(at, end, &operation->opcode))
        return explain(start, end, UPDATE_OPCODE);
    if (!is_operation(operation->opcode, parts))
        return UPDATE_OPCODE;
    UpdateProblem problem = take_field(at, end, index_base, field_of, names, &operation->field_no);
    return problem ? problem : take_argument(at, end, index_base, operation, is_plain);
}

int update_read_next(UpdateOperations *operations, const uint8_t **at, const uint8_t *end, uint32_t count,
                     uint32_t index_base, UpdateFieldOf field_of, void *names)
{
    operations->count = operations->problem_at = 0;
    operations->is_plain = 1;
    operations->problem = UPDATE_TOO_MANY;
    if (count > UPDATE_OPERATIONS_MAX)
        return UPDATE_UNKNOWN;
    for (uint32_t number = 0; number < count; number++) {
        operations->problem_at = (int)number;
        operations->problem = take_operation(at, end, (int32_t)index_base, field_of, names, operations->all + number,
                                             &operations->is_plain);
        if (operations->problem)
            return UPDATE_UNKNOWN;
    }
    operations->count = (int)count;
    operations->problem = UPDATE_FINE;
    return UPDATE_DONE;
}

int update_read(UpdateOperations *operations, const uint8_t *at, const uint8_t *end, uint32_t index_base,
                UpdateFieldOf field_of, void *names)
{
    uint32_t count;
    operations->count = operations->problem_at = 0;
    operations->is_plain = 1;
    operations->problem = UPDATE_DAMAGED;
    if (!(at = msgpack_array(at, end, &count)) || !count
        || !update_read_next(operations, &at, end, count, index_base, field_of, names))
        return UPDATE_UNKNOWN;
    operations->problem = at == end ? UPDATE_FINE : UPDATE_DAMAGED;
    return at == end ? UPDATE_DONE : UPDATE_UNKNOWN;
}

/* -- new values -- */

static void put_head(UpdatePiece *piece, uint8_t first, uint64_t value, int width)
{
    piece->head[0] = first;
    piece->head_size = (uint8_t)(1 + width);
    for (; width; width--, value >>= 8)
        piece->head[width] = (uint8_t)value;
}

static void put_unsigned(UpdatePiece *piece, uint64_t value)
{
    if (value < 0x80)
        put_head(piece, (uint8_t)value, 0, 0);
    else if (value <= UINT8_MAX)
        put_head(piece, 0xcc, value, 1);
    else if (value <= UINT16_MAX)
        put_head(piece, 0xcd, value, 2);
    else if (value <= UINT32_MAX)
        put_head(piece, 0xce, value, 4);
    else
        put_head(piece, 0xcf, value, 8);
}

static void put_negative(UpdatePiece *piece, int64_t value)
{
    if (value >= -0x20)
        put_head(piece, (uint8_t)value, 0, 0);
    else if (value >= INT8_MIN)
        put_head(piece, 0xd0, (uint64_t)value, 1);
    else if (value >= INT16_MIN)
        put_head(piece, 0xd1, (uint64_t)value, 2);
    else if (value >= INT32_MIN)
        put_head(piece, 0xd2, (uint64_t)value, 4);
    else
        put_head(piece, 0xd3, (uint64_t)value, 8);
}

static void put_real(UpdatePiece *piece, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_head(piece, 0xcb, bits, 8);
    piece->is_real = 1;
}

/* Store a double as float32 if that is exact. */
static void shorten_real(UpdatePiece *piece)
{
    uint64_t wide_bits = load_big_endian(piece->head + 1, 8);
    double wide;
    memcpy(&wide, &wide_bits, sizeof wide);
    if (wide < -FLT_MAX || wide > FLT_MAX)
        return;
    float narrow = (float)wide;
    if ((double)narrow != wide)
        return;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    put_head(piece, 0xca, bits, 4);
}

static __int128 integer_of(const MsgpackValue *value)
{
    return value->type == MSGPACK_NEGATIVE ? (__int128)(int64_t)value->number : (__int128)value->number;
}

static double real_of(const MsgpackValue *value)
{
    if (value->type == MSGPACK_DOUBLE)
        return value->real;
    return value->type == MSGPACK_NEGATIVE ? (double)(int64_t)value->number : (double)value->number;
}

/* The result of + or -. Which NaN comes of others is not known here. */
static UpdateProblem add(UpdatePiece *piece, char opcode, const MsgpackValue *old, const MsgpackValue *argument)
{
    if (old->type != MSGPACK_UNSIGNED && old->type != MSGPACK_NEGATIVE && old->type != MSGPACK_DOUBLE)
        return UPDATE_ARGUMENT;
    if (old->type == MSGPACK_DOUBLE || argument->type == MSGPACK_DOUBLE) {
        double left = real_of(old), right = real_of(argument), result = opcode == '+' ? left + right : left - right;
        if (result != result)
            return UPDATE_UNSUPPORTED;
        put_real(piece, result);
        return UPDATE_FINE;
    }
    __int128 left = integer_of(old), right = integer_of(argument);
    __int128 result = opcode == '+' ? left + right : left - right;
    if (result < INT64_MIN || result > UINT64_MAX)
        return UPDATE_OVERFLOW;
    if (result < 0)
        put_negative(piece, (int64_t)result);
    else
        put_unsigned(piece, (uint64_t)result);
    return UPDATE_FINE;
}

static UpdateProblem combine(UpdatePiece *piece, char opcode, uint64_t old, uint64_t argument)
{
    put_unsigned(piece, opcode == '&' ? old & argument : opcode == '|' ? old | argument : old ^ argument);
    return UPDATE_FINE;
}

static void put_string_head(UpdatePiece *piece, uint32_t size)
{
    if (size < 0x20)
        put_head(piece, (uint8_t)(0xa0 + size), 0, 0);
    else if (size <= UINT8_MAX)
        put_head(piece, 0xd9, size, 1);
    else if (size <= UINT16_MAX)
        put_head(piece, 0xda, size, 2);
    else
        put_head(piece, 0xdb, size, 4);
}

static UpdateProblem splice(UpdatePiece *piece, const UpdateOperation *operation, const MsgpackValue *old)
{
    if (old->type != MSGPACK_STRING)
        return UPDATE_ARGUMENT;
    const MsgpackValue *paste = &operation->argument;
    int64_t length = (int64_t)old->size, start = operation->offset; /* both have 32 bits */
    if (start < 0 && (start += length + 1) < 0) /* -1 is the position behind the last byte */
        return UPDATE_OFFSET;
    if (start > length)
        start = length;
    /* A negative length is the number of bytes to keep at the end. */
    int64_t behind = operation->cut < 0 ? length + operation->cut : start + operation->cut;
    if (behind > length)
        behind = length;
    if (behind < start)
        behind = start;
    uint64_t size = (uint64_t)(start + (length - behind)) + paste->size;
    if (size > UINT32_MAX)
        return UPDATE_UNSUPPORTED;
    put_string_head(piece, (uint32_t)size);
    piece->parts[0].data = old->bytes;
    piece->parts[0].size = (size_t)start;
    piece->parts[1].data = paste->bytes;
    piece->parts[1].size = paste->size;
    piece->parts[2].data = old->bytes + behind;
    piece->parts[2].size = (size_t)(length - behind);
    return UPDATE_FINE;
}

/* -- pieces of a row -- */

static UpdatePiece piece_of(const uint8_t *data, size_t size, uint32_t fields)
{
    UpdatePiece piece = {.fields = fields};
    piece.parts[0].data = data;
    piece.parts[0].size = size;
    return piece;
}

static void insert_piece(UpdatedRow *row, int place, UpdatePiece piece)
{
    memmove(row->pieces + place + 1, row->pieces + place, (size_t)(row->count - place) * sizeof piece);
    row->pieces[place] = piece;
    row->count++;
}

static void remove_pieces(UpdatedRow *row, int from, int to)
{
    memmove(row->pieces + from, row->pieces + to, (size_t)(row->count - to) * sizeof *row->pieces);
    row->count -= to - from;
}

/* The place of the piece that a field begins, which may have to be cut; the field behind the last one is begun by the
 * place behind the last piece. Returns -1 if the row is damaged. */
static int cut(UpdatedRow *row, uint32_t field)
{
    int place = 0;
    for (; place < row->count && field >= row->pieces[place].fields; place++)
        field -= row->pieces[place].fields;
    if (!field)
        return place;
    UpdatePiece *piece = row->pieces + place;
    const uint8_t *start = piece->parts[0].data, *end = start + piece->parts[0].size, *at = start;
    for (uint32_t left = field; at && left; left--)
        at = msgpack_skip(at, end);
    if (!at)
        return -1;
    UpdatePiece rest = piece_of(at, (size_t)(end - at), piece->fields - field);
    piece->fields = field;
    piece->parts[0].size = (size_t)(at - start);
    insert_piece(row, place + 1, rest);
    return place + 1;
}

/* The piece that is a field and nothing else; NULL if the row is damaged. */
static UpdatePiece *isolate(UpdatedRow *row, uint32_t field)
{
    int place = cut(row, field);
    return place < 0 || cut(row, field + 1) < 0 ? NULL : row->pieces + place;
}

static void note_moved(UpdatedRow *row, uint32_t field)
{
    if (field < row->first_moved)
        row->first_moved = field;
}

/* -- operations -- */

/* The number from 0 of a field, of so many that are there; -1 if there is none. */
static int64_t existing(int32_t field_no, int64_t count)
{
    int64_t field = field_no < 0 ? field_no + count : field_no;
    return field < count ? field : -1;
}

static UpdateProblem insert(UpdatedRow *row, const UpdateOperation *operation)
{
    int64_t field = existing(operation->field_no, (int64_t)row->fields + 1);
    if (field < 0 || row->fields == UINT32_MAX)
        return field < 0 ? UPDATE_NO_NUMBER : UPDATE_UNSUPPORTED;
    int place = cut(row, (uint32_t)field);
    if (place < 0)
        return UPDATE_DAMAGED;
    insert_piece(row, place, piece_of(operation->argument.bytes, operation->argument.size, 1));
    row->fields++;
    note_moved(row, (uint32_t)field);
    return UPDATE_FINE;
}

static UpdateProblem delete(UpdatedRow *row, const UpdateOperation *operation)
{
    int64_t field = existing(operation->field_no, row->fields);
    if (field < 0)
        return UPDATE_NO_NUMBER;
    uint32_t left = row->fields - (uint32_t)field;
    uint32_t gone = operation->argument.number < left ? (uint32_t)operation->argument.number : left;
    int from = cut(row, (uint32_t)field), to = from < 0 ? -1 : cut(row, (uint32_t)field + gone);
    if (to < 0)
        return UPDATE_DAMAGED;
    remove_pieces(row, from, to);
    row->fields -= gone;
    note_moved(row, (uint32_t)field);
    return UPDATE_FINE;
}

/* Make one value of another: all but = ! and #. */
static UpdateProblem compute(UpdatePiece *piece, const UpdateOperation *operation)
{
    const uint8_t *start = piece->parts[0].data, *end = start + piece->parts[0].size;
    MsgpackValue old;
    UpdatePiece result = {.fields = 1, .is_changed = 1};
    UpdateProblem problem = UPDATE_ARGUMENT;
    if (piece->is_changed)
        return UPDATE_TWICE;
    if (!msgpack_read(start, end, &old))
        return UPDATE_DAMAGED;
    if (operation->opcode == ':')
        problem = splice(&result, operation, &old);
    else if (operation->opcode == '+' || operation->opcode == '-')
        problem = add(&result, operation->opcode, &old, &operation->argument);
    else if (old.type == MSGPACK_UNSIGNED && *start < 0xd0)
        problem = combine(&result, operation->opcode, old.number, operation->argument.number);
    if (problem == UPDATE_ARGUMENT && old.type == MSGPACK_OTHER)
        return UPDATE_UNSUPPORTED; /* maybe a decimal */
    if (!problem)
        *piece = result;
    return problem;
}

static UpdateProblem replace(UpdatedRow *row, const UpdateOperation *operation)
{
    int64_t field = existing(operation->field_no, row->fields);
    if (field < 0)
        return UPDATE_NO_NUMBER;
    UpdatePiece *piece = isolate(row, (uint32_t)field);
    if (!piece)
        return UPDATE_DAMAGED;
    row->touched[row->touched_count++] = (uint32_t)field;
    if (operation->opcode != '=')
        return compute(piece, operation);
    *piece = piece_of(operation->argument.bytes, operation->argument.size, 1);
    piece->is_changed = 1;
    return UPDATE_FINE;
}

static UpdateProblem apply(UpdatedRow *row, const UpdateOperation *operation)
{
    switch (operation->opcode) {
    case '!': return insert(row, operation);
    case '#': return delete(row, operation);
    case '=': return (operation->field_no == (int64_t)row->fields ? insert : replace)(row, operation);
    default: return replace(row, operation);
    }
}

/* -- the new row -- */

static size_t array_head_size(uint32_t fields)
{
    return fields < 0x10 ? 1 : fields <= UINT16_MAX ? 3 : 5;
}

static uint8_t *put_array_head(uint8_t *to, uint32_t fields)
{
    UpdatePiece piece;
    if (fields < 0x10)
        put_head(&piece, (uint8_t)(0x90 + fields), 0, 0);
    else if (fields <= UINT16_MAX)
        put_head(&piece, 0xdc, fields, 2);
    else
        put_head(&piece, 0xdd, fields, 4);
    memcpy(to, piece.head, piece.head_size);
    return to + piece.head_size;
}

/* Decide on the form of doubles, and add up the size. */
static int finish(UpdatedRow *row, const UpdateDoubles *doubles)
{
    uint32_t field = 0;
    row->size = array_head_size(row->fields);
    for (UpdatePiece *piece = row->pieces; piece < row->pieces + row->count; piece++) {
        if (piece->is_real) {
            if (field >= 64 && doubles->has_more) {
                row->problem = UPDATE_UNSUPPORTED;
                return UPDATE_UNKNOWN;
            }
            if (field >= 64 || !(doubles->first >> field & 1))
                shorten_real(piece);
        }
        field += piece->fields;
        row->size += update_piece_size(piece);
    }
    row->problem = row->size <= UINT32_MAX ? UPDATE_FINE : UPDATE_UNSUPPORTED;
    return row->problem ? UPDATE_UNKNOWN : UPDATE_DONE;
}

static int change(UpdatedRow *new_row, const UpdateOperations *operations, const uint8_t *row, size_t size,
                  const UpdateDoubles *doubles, int is_upsert)
{
    const uint8_t *end = row + size, *first = msgpack_array(row, end, &new_row->fields);
    new_row->problem = UPDATE_DAMAGED;
    new_row->problem_at = 0;
    if (!first)
        return UPDATE_UNKNOWN;
    new_row->first_moved = UPDATE_NO_FIELD;
    new_row->touched_count = 0;
    new_row->count = new_row->fields != 0;
    new_row->pieces[0] = piece_of(first, (size_t)(end - first), new_row->fields);
    for (int number = 0; number < operations->count; number++) {
        new_row->problem_at = number;
        new_row->problem = apply(new_row, operations->all + number);
        if (new_row->problem && (!is_upsert || new_row->problem == UPDATE_UNSUPPORTED))
            return UPDATE_UNKNOWN;
    }
    return finish(new_row, doubles);
}

int update_row(UpdatedRow *new_row, const UpdateOperations *operations, const uint8_t *row, size_t size,
               const UpdateDoubles *doubles)
{
    return change(new_row, operations, row, size, doubles, 0);
}

int update_row_where_it_fits(UpdatedRow *new_row, const UpdateOperations *operations, const uint8_t *row,
                             size_t size, const UpdateDoubles *doubles)
{
    return change(new_row, operations, row, size, doubles, 1);
}

void update_write(const UpdatedRow *new_row, uint8_t *to)
{
    to = put_array_head(to, new_row->fields);
    for (const UpdatePiece *piece = new_row->pieces; piece < new_row->pieces + new_row->count; piece++) {
        memcpy(to, piece->head, piece->head_size);
        to += piece->head_size;
        for (int part = 0; part < 3; part++) {
            if (piece->parts[part].size)
                memcpy(to, piece->parts[part].data, piece->parts[part].size);
            to += piece->parts[part].size;
        }
    }
}
