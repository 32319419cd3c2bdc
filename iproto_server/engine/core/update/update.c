/* The new row of an update: pieces of the old one, and new values between them. */
#include "pieces.h"

#include <string.h>

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

static int insert(UpdatedRow *row, const UpdateOperation *operation)
{
    int64_t field = existing(operation->field_no, (int64_t)row->fields + 1);
    if (field < 0 || row->fields == UINT32_MAX)
        return 0;
    int place = cut(row, (uint32_t)field);
    if (place < 0)
        return 0;
    insert_piece(row, place, piece_of(operation->argument.bytes, operation->argument.size, 1));
    row->fields++;
    note_moved(row, (uint32_t)field);
    return 1;
}

static int delete(UpdatedRow *row, const UpdateOperation *operation)
{
    int64_t field = existing(operation->field_no, row->fields);
    if (field < 0)
        return 0;
    uint32_t left = row->fields - (uint32_t)field;
    uint32_t gone = operation->argument.number < left ? (uint32_t)operation->argument.number : left;
    int from = cut(row, (uint32_t)field), to = from < 0 ? -1 : cut(row, (uint32_t)field + gone);
    if (to < 0)
        return 0;
    remove_pieces(row, from, to);
    row->fields -= gone;
    note_moved(row, (uint32_t)field);
    return 1;
}

static int replace(UpdatedRow *row, const UpdateOperation *operation)
{
    int64_t field = existing(operation->field_no, row->fields);
    if (field < 0)
        return 0;
    UpdatePiece *piece = isolate(row, (uint32_t)field);
    if (!piece)
        return 0;
    row->touched[row->touched_count++] = (uint32_t)field;
    if (operation->opcode != '=')
        return update_compute(piece, operation);
    *piece = piece_of(operation->argument.bytes, operation->argument.size, 1);
    piece->is_changed = 1;
    return 1;
}

static int apply(UpdatedRow *row, const UpdateOperation *operation)
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
        update_put_head(&piece, (uint8_t)(0x90 + fields), 0, 0);
    else if (fields <= UINT16_MAX)
        update_put_head(&piece, 0xdc, fields, 2);
    else
        update_put_head(&piece, 0xdd, fields, 4);
    memcpy(to, piece.head, piece.head_size);
    return to + piece.head_size;
}

/* Decide on the form of doubles, and add up the size. */
static int finish(UpdatedRow *row, const UpdateDoubles *doubles)
{
    uint32_t field = 0;
    row->size = array_head_size(row->fields);
    for (UpdatePiece *piece = row->pieces; piece < row->pieces + row->count; piece++) {
        if (piece->is_real && field >= 64 && doubles->has_more)
            return UPDATE_UNKNOWN;
        if (piece->is_real && (field >= 64 || !(doubles->first >> field & 1)))
            update_shorten_real(piece);
        field += piece->fields;
        row->size += update_piece_size(piece);
    }
    return row->size <= UINT32_MAX ? UPDATE_DONE : UPDATE_UNKNOWN;
}

int update_row(UpdatedRow *new_row, const UpdateOperations *operations, const uint8_t *row, size_t size,
               const UpdateDoubles *doubles)
{
    const uint8_t *end = row + size, *first = msgpack_array(row, end, &new_row->fields);
    if (!first)
        return UPDATE_UNKNOWN;
    new_row->first_moved = UPDATE_NO_FIELD;
    new_row->touched_count = 0;
    new_row->count = new_row->fields != 0;
    new_row->pieces[0] = piece_of(first, (size_t)(end - first), new_row->fields);
    for (int number = 0; number < operations->count; number++)
        if (!apply(new_row, operations->all + number))
            return UPDATE_UNKNOWN;
    return finish(new_row, doubles);
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
