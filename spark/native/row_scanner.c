/* Scans rows of logs and of snapshots: the twins of functions in row_scanner.py and snapshot_rows.py of
 * spark/source/decode/. They return None if numpy has to do the work.
 */
#include "row_scanner.h"

#define USUAL_ROW 64 /* assumed size in bytes; smaller rows make the table grow */
#define ROOM_MAX 65536

#define UNFINISHED 0x85 /* first byte of the header of a row that does not end its transaction */

/* The columns of a log row, equal to `_RowColumn` in spark/source/decode/row_scanner.py. The columns of its key or
 * tuple follow; a snapshot row has only those. */
enum {
    TYPE, LSN, MEMBER, TSN, TIMESTAMP, SPACE, BASE, KEY, KEY_END, TUPLE, TUPLE_END, OPERATIONS, OPERATIONS_END, ROW
};

/* The columns of a key or tuple; the start and end of each item follow. */
enum { VALUE, VALUE_END, COUNT, ITEMS };

/* The state of the scanner. */
typedef struct {
    Position begin, at, end; /* the buffer, and the position in it */
    int64_t *into;           /* the row's place in the first column */
    Py_ssize_t room, items;  /* rows per column; items wanted of each key or tuple */
    Py_ssize_t value;        /* the first column of the key or tuple */
    int64_t space;           /* the space whose snapshot rows are wanted */
} Reading;

static inline void put(const Reading *reading, Py_ssize_t column, int64_t number)
{
    reading->into[column * reading->room] = number;
}

static inline void put_of_value(const Reading *reading, Py_ssize_t column, int64_t number)
{
    put(reading, reading->value + column, number);
}

static inline int is_next(Reading *reading, uint8_t octet)
{
    return reading->at < reading->end && *reading->at++ == octet;
}

static int read_number(Reading *reading, int64_t *number)
{
    uint64_t found;
    if (!read_unsigned(&reading->at, reading->end, &found) || found > INT64_MAX)
        return 0;
    *number = (int64_t)found;
    return 1;
}

/* `84 00 TYPE 02 MEMBER 03 LSN 04 TIMESTAMP`, followed by `08 BEFORE` and `09 01` in transactions of several rows. */
static int read_row_head(Reading *reading, uint8_t *type)
{
    Position at = reading->at;
    if (reading->end - at < 7)
        return 0;
    int pairs = at[0] - 0x80;
    int is_small = at[6] < 0x80, width = is_small ? 0 : 1 << (at[6] & 3); /* of the LSN after its first byte */
    if (pairs < 4 || pairs > 6 || at[1] != 0x00 || at[3] != 0x02 || at[4] >= 0x80 || at[5] != 0x03
        || !(is_small || (at[6] >= 0xcc && at[6] <= 0xcf)) || reading->end - at < 7 + width + 10)
        return 0;
    *type = at[2];
    put(reading, TYPE, at[2]);
    put(reading, MEMBER, at[4]);
    uint64_t lsn = is_small ? at[6] : big_endian(at + 7, width);
    at += 7 + width;
    if (lsn > INT64_MAX || at[0] != 0x04 || at[1] != 0xcb)
        return 0;
    put(reading, LSN, (int64_t)lsn);
    put(reading, TIMESTAMP, (int64_t)big_endian(at + 2, 8));
    reading->at = at + 10;
    int64_t before = 0;
    if (pairs > 4 && !(is_next(reading, 0x08) && read_number(reading, &before)))
        return 0;
    if (pairs > 5 && !(is_next(reading, 0x09) && is_next(reading, 0x01)))
        return 0;
    put(reading, TSN, (int64_t)lsn - before);
    return 1;
}

/* Skip an array, and record where it and the wanted items begin and end. */
static int read_array(Reading *reading)
{
    Position end = reading->end, begin = reading->begin;
    if (reading->at >= end)
        return 0;
    put_of_value(reading, VALUE, reading->at - begin);
    uint8_t first = *reading->at++;
    int64_t count = first & 0x0f;
    if (first == 0xdc || first == 0xdd) {
        int width = first == 0xdc ? 2 : 4;
        if (end - reading->at < width)
            return 0;
        count = (int64_t)big_endian(reading->at, width);
        reading->at += width;
    } else if ((first & 0xf0) != 0x90) {
        return 0;
    }
    put_of_value(reading, COUNT, count);
    for (int64_t place = 0; place < count; place++) {
        int is_wanted = place < reading->items;
        if (is_wanted)
            put_of_value(reading, ITEMS + 2 * place, reading->at - begin);
        if (!skip_value(&reading->at, end, 1))
            return 0;
        if (is_wanted)
            put_of_value(reading, ITEMS + 2 * place + 1, reading->at - begin);
    }
    for (int64_t place = count; place < reading->items; place++) {
        put_of_value(reading, ITEMS + 2 * place, -1);
        put_of_value(reading, ITEMS + 2 * place + 1, -1);
    }
    put_of_value(reading, VALUE_END, reading->at - begin);
    return 1;
}

/* Skip the operations of an UPDATE or UPSERT, and record where they begin and end. */
static int read_operations(Reading *reading)
{
    if (reading->at >= reading->end)
        return 0;
    uint8_t first = *reading->at;
    put(reading, OPERATIONS, reading->at - reading->begin);
    if (((first & 0xf0) != 0x90 && first != 0xdc && first != 0xdd) || !skip_value(&reading->at, reading->end, 1))
        return 0;
    put(reading, OPERATIONS_END, reading->at - reading->begin);
    return 1;
}

/* `82 10 SPACE 21 TUPLE`, `82 10 SPACE 20 KEY`, the UPDATE `83 10 SPACE [15 BASE] 20 KEY 21 OPERATIONS`, or the UPSERT
 * `83 10 SPACE [15 BASE] 28 OPERATIONS 21 TUPLE`.
 */
static int read_row_body(Reading *reading, uint8_t type)
{
    int is_update = type == ROW_UPDATE, is_upsert = type == ROW_UPSERT;
    if (((type < ROW_INSERT || type > ROW_DELETE) && !is_upsert) || reading->end - reading->at < 2)
        return 0;
    int has_tuple = type <= ROW_REPLACE || is_upsert, pairs = *reading->at++ - 0x80;
    int64_t number;
    if ((is_update || is_upsert ? pairs != 3 && pairs != 4 : pairs != 2) || *reading->at++ != 0x10
        || !read_number(reading, &number))
        return 0;
    put(reading, SPACE, number);
    number = 0;
    if (pairs == 4) {
        if (!is_next(reading, 0x15) || reading->at >= reading->end || *reading->at >= 0x80)
            return 0;
        number = *reading->at++;
    }
    put(reading, BASE, number);
    put(reading, OPERATIONS, -1);
    put(reading, OPERATIONS_END, -1);
    if ((is_upsert && !(is_next(reading, 0x28) && read_operations(reading)))
        || !is_next(reading, has_tuple ? 0x21 : 0x20))
        return 0;
    int64_t value = reading->at - reading->begin;
    if (!read_array(reading))
        return 0;
    int64_t value_end = reading->at - reading->begin;
    put(reading, KEY, has_tuple ? -1 : value);
    put(reading, KEY_END, has_tuple ? -1 : value_end);
    put(reading, TUPLE, has_tuple ? value : -1);
    put(reading, TUPLE_END, has_tuple ? value_end : -1);
    return !is_update || (is_next(reading, 0x21) && read_operations(reading));
}

/* Double the room of the columns, keeping their contents. */
static int64_t *widen(int64_t *table, Py_ssize_t columns, Py_ssize_t *room)
{
    int64_t *wider = PyMem_Malloc((size_t)(2 * *room * columns) * sizeof *wider);
    for (Py_ssize_t column = 0; wider && column < columns; column++)
        memcpy(wider + 2 * column * *room, table + column * *room, (size_t)*room * sizeof *table);
    PyMem_Free(table);
    *room *= 2;
    return wider;
}

typedef int (*ReadRow)(Reading *);

/* Read all rows of the buffer. Returns their columns, concatenated; None if a row is not plain. */
static PyObject *columns_of(Reading *reading, ReadRow read_row)
{
    Py_ssize_t columns = reading->value + ITEMS + 2 * reading->items, rows = 0;
    Py_ssize_t room = (reading->end - reading->begin) / USUAL_ROW + 16;
    if (room > ROOM_MAX)
        room = ROOM_MAX; /* initially: a large block may have a few large rows */
    int64_t *table = PyMem_Malloc((size_t)(room * columns) * sizeof *table);
    int is_plain = 1;
    while (table && is_plain && reading->at < reading->end) {
        if (rows == room && !(table = widen(table, columns, &room)))
            break;
        reading->room = room;
        reading->into = table + rows++;
        is_plain = read_row(reading);
    }
    if (!table)
        return PyErr_NoMemory();
    PyObject *found = Py_NewRef(Py_None);
    if (is_plain) {
        Py_SETREF(found, PyBytes_FromStringAndSize(NULL, columns * rows * (Py_ssize_t)sizeof *table));
        for (Py_ssize_t column = 0; found && column < columns; column++)
            memcpy((int64_t *)PyBytes_AS_STRING(found) + column * rows, table + column * room,
                   (size_t)rows * sizeof *table);
    }
    PyMem_Free(table);
    return found;
}

/* Returns 0 with an exception, or without one if there is nothing to scan. */
static int reading_init(Reading *reading, PyObject *data, PyObject *size, PyObject *items)
{
    Py_ssize_t length = PyLong_AsSsize_t(size), wanted = PyLong_AsSsize_t(items);
    if (PyErr_Occurred() || length <= 0 || length > PyBytes_GET_SIZE(data) || wanted < 0 || wanted > 1000)
        return 0;
    Position begin = (Position)PyBytes_AS_STRING(data);
    *reading = (Reading){.begin = begin, .at = begin, .end = begin + length, .items = wanted};
    return 1;
}

static int read_log_row(Reading *reading)
{
    uint8_t type;
    return read_row_head(reading, &type) && read_row_body(reading, type);
}

int next_log_row(Position begin, Position *at, Position end, LogRow *row)
{
    int64_t told[ROW + ITEMS + 2];
    Reading reading = {.begin = begin, .at = *at, .end = end, .into = told, .room = 1, .items = 1, .value = ROW};
    row->is_last = reading.at < end && *reading.at != UNFINISHED;
    if (!read_log_row(&reading))
        return 0;
    *at = reading.at;
    row->type = told[TYPE];
    row->lsn = told[LSN];
    row->member = told[MEMBER];
    row->space = told[SPACE];
    row->base = told[BASE];
    row->key = told[KEY];
    row->key_end = told[KEY_END];
    row->operations = told[OPERATIONS];
    row->operations_end = told[OPERATIONS_END];
    row->tuple = told[TUPLE];
    row->tuple_end = told[TUPLE_END];
    row->item = told[ROW + ITEMS];
    row->item_end = told[ROW + ITEMS + 1];
    return 1;
}

/* quick_rows(data, size, items): the columns, concatenated; None if a row is not plain */
KERNEL(quick_rows)
{
    if (count != 3 || !PyBytes_CheckExact(args[0])) {
        PyErr_SetString(PyExc_TypeError, "quick_rows() takes bytes and two numbers");
        return NULL;
    }
    Reading reading;
    if (!reading_init(&reading, args[0], args[1], args[2]))
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    reading.value = ROW;
    return columns_of(&reading, read_log_row);
}

/* Skip a number of a header: an unsigned integer, or a time. */
static int skip_header_number(Reading *reading)
{
    uint8_t first = reading->at < reading->end ? *reading->at : 0xc1;
    int is_number = first < 0x80 || (first >= 0xca && first <= 0xcf);
    return is_number && skip_value(&reading->at, reading->end, 1);
}

/* `8. 00 02 …`: the header of an INSERT. */
static int skip_snapshot_header(Reading *reading)
{
    Position at = reading->at;
    if (reading->end - at < 3 || at[0] < 0x82 || at[0] > 0x84 || at[1] != 0x00 || at[2] != ROW_INSERT)
        return 0;
    reading->at += 3;
    for (int pair = at[0] - 0x81; pair; pair--)
        if (!skip_header_number(reading) || !skip_header_number(reading))
            return 0;
    return 1;
}

/* The header of an INSERT, and `82 10 SPACE 21 TUPLE`. */
static int read_snapshot_row(Reading *reading)
{
    if (!skip_snapshot_header(reading))
        return 0;
    int64_t space;
    return is_next(reading, 0x82) && is_next(reading, 0x10) && read_number(reading, &space)
        && space == reading->space && is_next(reading, 0x21) && read_array(reading);
}

/* quick_tuples(data, size, space, items): the columns, concatenated; None if a row is not plain or of another space */
KERNEL(quick_tuples)
{
    if (count != 4 || !PyBytes_CheckExact(args[0])) {
        PyErr_SetString(PyExc_TypeError, "quick_tuples() takes bytes and three numbers");
        return NULL;
    }
    int64_t space = PyLong_AsLongLong(args[2]);
    Reading reading;
    if (PyErr_Occurred() || !reading_init(&reading, args[0], args[1], args[3]))
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    reading.space = space;
    return columns_of(&reading, read_snapshot_row);
}
