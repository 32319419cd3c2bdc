/* Requests for rows: the twin of server/requests/dml.py, for somebody who may read and change everything, and spaces
 * that are usual (spaces.c).
 */
#include "native.h"

enum { READ = 1, WRITE = 2 };

#define SHORT_KEY 4096 /* as in server/requests/dml.py */

/* What a body has. Numbers that are not there are 0. */
typedef struct {
    uint64_t numbers[BODY_NUMBERS], seen;
    Position key, key_end, tuple, tuple_end, operations, operations_end; /* operations: of UPSERT */
} Body;

static int is_array(Position at, Position end)
{
    return at < end && ((*at & 0xf0) == 0x90 || *at == 0xdc || *at == 0xdd);
}

static int read_array(Position *at, Position end, Position *array, Position *array_end)
{
    if (!is_array(*at, end))
        return 0;
    *array = *at;
    int fits = skip_value(at, end, 1);
    *array_end = *at;
    return fits;
}

static int read_item(Body *body, uint8_t key, Position *at, Position end)
{
    if (key > BODY_OPS || body->seen & BIT(key))
        return 0;
    body->seen |= BIT(key);
    if (key >= BODY_SPACE_ID && key < BODY_NUMBERS)
        return read_unsigned(at, end, &body->numbers[key]) && body->numbers[key] <= UINT32_MAX;
    switch (key) {
    case BODY_KEY: return read_array(at, end, &body->key, &body->key_end);
    case BODY_TUPLE: return read_array(at, end, &body->tuple, &body->tuple_end);
    case BODY_OPS: return read_array(at, end, &body->operations, &body->operations_end);
    default: return 0;
    }
}

static int read_body(Body *body, uint64_t required, Position at, Position end)
{
    *body = (Body){.seen = 0};
    if (at >= end || (*at & 0xf0) != 0x80)
        return 0;
    int pairs = *at++ & 0x0f, fits = 1;
    while (fits && pairs--) {
        uint8_t key = at < end ? *at++ : 0;
        fits = read_item(body, key, &at, end);
    }
    return fits && at == end && (body->seen & required) == required;
}

static PyObject *bytes_of(Position at, Position end)
{
    return PyBytes_FromStringAndSize((const char *)at, end - at);
}

/* -- each of them; a list of rows, or a row, or None; NULL, maybe without an exception -- */

typedef struct {
    PyObject *space, *index_id;
    Key key;
} Place;

static PyObject *select_rows(const Body *body, const Place *place)
{
    enum { LAST_ITERATOR = 12 };
    PyObject *iterator = PyLong_FromUnsignedLongLong(body->numbers[BODY_ITERATOR]);
    PyObject *offset = PyLong_FromUnsignedLongLong(body->numbers[BODY_OFFSET]);
    PyObject *limit = PyLong_FromUnsignedLongLong(body->numbers[BODY_LIMIT]), *rows = NULL;
    if (iterator && offset && limit && body->numbers[BODY_ITERATOR] <= LAST_ITERATOR)
        rows = space_select(place->space, place->index_id, iterator, offset, limit, &place->key);
    Py_XDECREF(iterator);
    Py_XDECREF(offset);
    Py_XDECREF(limit);
    return rows;
}

static PyObject *row_of(const Body *body, const Place *place)
{
    PyObject *raw = bytes_of(body->tuple, body->tuple_end);
    PyObject *row = raw ? new_tuple(raw, SPACE(place->space, FORMAT), NULL) : NULL;
    Py_XDECREF(raw);
    return row;
}

static PyObject *store_row(const Body *body, const Place *place, int is_insert)
{
    PyObject *row = row_of(body, place), *stored = row ? space_store(place->space, row, is_insert) : NULL;
    Py_XDECREF(row);
    return stored;
}

static PackedOperations operations_of(const Body *body, const Place *place, Position at, Position end)
{
    PyObject *names = format_names(SPACE(place->space, FORMAT));
    return (PackedOperations){at, end, (uint32_t)body->numbers[BODY_INDEX_BASE], names};
}

static PyObject *update_row(const Body *body, const Place *place)
{
    PackedOperations operations = operations_of(body, place, body->tuple, body->tuple_end);
    return space_update_packed(place->space, place->index_id, &place->key, &operations);
}

static PyObject *upsert_row(const Body *body, const Place *place)
{
    PackedOperations operations = operations_of(body, place, body->operations, body->operations_end);
    PyObject *row = row_of(body, place), *done = row ? space_upsert_packed(place->space, row, &operations) : NULL;
    Py_XDECREF(row);
    return done;
}

static PyObject *carry_out(uint64_t type, const Body *body, const Place *place)
{
    switch (type) {
    case REQUEST_SELECT: return select_rows(body, place);
    case REQUEST_UPDATE: return update_row(body, place);
    case REQUEST_UPSERT: return upsert_row(body, place);
    case REQUEST_DELETE: return space_delete(place->space, place->index_id, &place->key);
    default: return store_row(body, place, type == REQUEST_INSERT);
    }
}

/* -- the request -- */

/* The space, of which there is a new reference, and the key. */
static int find_place(Handle *self, const Body *body, Place *place)
{
    static const uint8_t no_values[] = {0x90};
    Key none = {NULL, 0, no_values, no_values + 1}, given = {NULL, 0, body->key, body->key_end};
    *place = (Place){NULL, PyLong_FromUnsignedLongLong(body->numbers[BODY_INDEX_ID]),
                     body->seen & BIT(BODY_KEY) ? given : none};
    if (body->key_end - body->key > SHORT_KEY)
        return 0; /* not the key of any row */
    if (place->index_id)
        place->space = handle_space(self, body->numbers[BODY_SPACE_ID]);
    return place->space && Py_TYPE(place->space) == stored_space_type;
}

/* How many bytes rows have. */
static Py_ssize_t total_size(PyObject *rows)
{
    Py_ssize_t size = 0;
    for (Py_ssize_t place = 0; place < PyList_GET_SIZE(rows); place++) {
        PyObject *row = PyList_GET_ITEM(rows, place);
        size += PyBytes_CheckExact(row) ? PyBytes_GET_SIZE(row) : 0;
    }
    return size;
}

static PyObject *response_of(PyObject *answer, uint64_t sync, uint32_t version)
{
    if (PyList_CheckExact(answer))
        return encode_rows(sync, version, ((PyListObject *)answer)->ob_item, PyList_GET_SIZE(answer));
    if (answer == Py_None)
        return encode_rows(sync, version, NULL, 0);
    return encode_rows(sync, version, &((RawObject *)answer)->raw, 1);
}

static PyObject *answer_request(Handle *self, PyObject *connection, PyObject *session, PyObject *sync, uint64_t type,
                                const Body *body, const Place *place)
{
    uint32_t version;
    if (schema_version(self, &version) < 0 || begin_request(self, type, session, sync) < 0)
        return NULL;
    PyObject *answer = carry_out(type, body, place), *response = NULL;
    if (answer && type == REQUEST_SELECT && PyList_CheckExact(answer)) {
        int may = may_send(connection, total_size(answer));
        if (may <= 0)
            Py_CLEAR(answer); /* Python lets the request wait */
    }
    if (!answer && !PyErr_Occurred()) {
        end_request(self);
        return forget_request(self, type);
    }
    if (answer && !(response = response_of(answer, PyLong_AsUnsignedLongLong(sync), version)) && !PyErr_Occurred())
        PyErr_SetString(PyExc_OverflowError, "the rows do not fit into a response");
    if (!response)
        response = failed(self, sync, "a trigger");
    Py_XDECREF(answer);
    end_request(self);
    return reply(connection, self->manager, response);
}

PyObject *handle_rows(Handle *self, PyObject *connection, PyObject *sync, uint64_t type, Position at, Position end)
{
    uint64_t needed = required_keys(type);
    Body body;
    Place place = {NULL, NULL, {NULL, 0, NULL, NULL}};
    PyObject *session = NULL, *done = NULL;
    if (needed && read_body(&body, needed, at, end) && (session = session_of(self, connection))
        && may_everything(session, type == REQUEST_SELECT ? READ : WRITE) && find_place(self, &body, &place))
        done = answer_request(self, connection, session, sync, type, &body, &place);
    Py_XDECREF(place.space);
    Py_XDECREF(place.index_id);
    Py_XDECREF(session);
    return done;
}
