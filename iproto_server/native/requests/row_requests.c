/* Requests for rows: the twin of server/requests/dml.py, for somebody who may read and change everything, and spaces
 * that are usual (spaces.c).
 */
#include "../native.h"

enum { READ = 1, WRITE = 2 };

#define SHORT_KEY 4096 /* as in server/requests/dml.py */

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

static int read_item(RowBody *body, uint8_t key, Position *at, Position end)
{
    if (key > BODY_OPS || body->seen & BIT(key))
        return 0;
    body->seen |= BIT(key);
    if (key >= BODY_SPACE_ID && key < BODY_NUMBERS)
        return read_number(at, end, &body->numbers[key]) && body->numbers[key] <= UINT32_MAX;
    switch (key) {
    case BODY_KEY: return read_array(at, end, &body->key, &body->key_end);
    case BODY_TUPLE: return read_array(at, end, &body->tuple, &body->tuple_end);
    case BODY_OPS: return read_array(at, end, &body->operations, &body->operations_end);
    default: return 0;
    }
}

static int read_body(RowBody *body, uint64_t required, Position at, Position end)
{
    *body = (RowBody){.seen = 0};
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

/* -- each of them, with Tuples; a list of rows, or a row, or None; NULL, maybe without an exception -- */

static PyObject *select_rows(const RowRequest *request, PyObject *index_id)
{
    enum { LAST_ITERATOR = 12 };
    const uint64_t *numbers = request->body->numbers;
    PyObject *iterator = PyLong_FromUnsignedLongLong(numbers[BODY_ITERATOR]);
    PyObject *offset = PyLong_FromUnsignedLongLong(numbers[BODY_OFFSET]);
    PyObject *limit = PyLong_FromUnsignedLongLong(numbers[BODY_LIMIT]), *rows = NULL;
    if (iterator && offset && limit && numbers[BODY_ITERATOR] <= LAST_ITERATOR)
        rows = space_select(request->space, index_id, iterator, offset, limit, &request->key);
    Py_XDECREF(iterator);
    Py_XDECREF(offset);
    Py_XDECREF(limit);
    return rows;
}

static PyObject *row_of(const RowRequest *request)
{
    PyObject *raw = bytes_of(request->body->tuple, request->body->tuple_end);
    PyObject *row = raw ? new_tuple(raw, SPACE(request->space, FORMAT), NULL) : NULL;
    Py_XDECREF(raw);
    return row;
}

static PyObject *store_row(const RowRequest *request, int is_insert)
{
    PyObject *row = row_of(request), *stored = row ? space_store(request->space, row, is_insert) : NULL;
    Py_XDECREF(row);
    return stored;
}

static PackedOperations operations_of(const RowRequest *request, Position at, Position end)
{
    PyObject *names = format_names(SPACE(request->space, FORMAT));
    return (PackedOperations){at, end, (uint32_t)request->body->numbers[BODY_INDEX_BASE], names};
}

static PyObject *update_row_of(const RowRequest *request, PyObject *index_id)
{
    PackedOperations operations = operations_of(request, request->body->tuple, request->body->tuple_end);
    return space_update_packed(request->space, index_id, &request->key, &operations);
}

static PyObject *upsert_row(const RowRequest *request)
{
    PackedOperations operations = operations_of(request, request->body->operations, request->body->operations_end);
    PyObject *row = row_of(request), *done = row ? space_upsert_packed(request->space, row, &operations) : NULL;
    Py_XDECREF(row);
    return done;
}

static PyObject *carry_out(const RowRequest *request, PyObject *index_id)
{
    switch (request->type) {
    case REQUEST_SELECT: return select_rows(request, index_id);
    case REQUEST_UPDATE: return update_row_of(request, index_id);
    case REQUEST_UPSERT: return upsert_row(request);
    case REQUEST_DELETE: return space_delete(request->space, index_id, &request->key);
    default: return store_row(request, request->type == REQUEST_INSERT);
    }
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

/* What comes of writing a response: where that has failed, or is for Python, nothing is left of it. */
static int written(Response *response, int done)
{
    if (done <= 0)
        response_drop(response);
    return done;
}

int answer_rows(const RowRequest *request, Response *response, const PackedRow *rows, int count)
{
    Buffer *buffer = response_begin(response, request->connection);
    return buffer ? written(response, write_packed_rows(buffer, request->sync, request->schema_version, rows, count))
                  : -1;
}

static int answer_raws(const RowRequest *request, Response *response, PyObject *const *raws, Py_ssize_t count)
{
    Buffer *buffer = response_begin(response, request->connection);
    return buffer ? written(response, write_rows(buffer, request->sync, request->schema_version, raws, count)) : -1;
}

static int answer_result(const RowRequest *request, Response *response, PyObject *answer)
{
    if (PyList_CheckExact(answer))
        return answer_raws(request, response, ((PyListObject *)answer)->ob_item, PyList_GET_SIZE(answer));
    if (answer == Py_None)
        return answer_raws(request, response, NULL, 0);
    return answer_raws(request, response, &((RawObject *)answer)->raw, 1);
}

/* The response with Tuples: 1; 0 unknown; -1 with an exception. */
static int respond(const RowRequest *request, Response *response)
{
    PyObject *index_id = PyLong_FromUnsignedLongLong(request->body->numbers[BODY_INDEX_ID]);
    PyObject *answer = index_id ? carry_out(request, index_id) : NULL;
    Py_XDECREF(index_id);
    if (answer && request->type == REQUEST_SELECT && PyList_CheckExact(answer)
        && may_send(request->connection, total_size(answer)) <= 0)
        Py_CLEAR(answer); /* Python lets the request wait */
    if (!answer)
        return PyErr_Occurred() ? -1 : 0;
    int done = answer_result(request, response, answer);
    if (!done) {
        PyErr_SetString(PyExc_OverflowError, "the rows do not fit into a response");
        done = -1;
    }
    Py_DECREF(answer);
    return done;
}

/* Answer a request of which code of Python may hear. Returns 1; 0 unknown; -1 if it has failed: `refusal` then is the
 * answer, or NULL with an exception. */
static int respond_aloud(Handle *self, PyObject *session, const RowRequest *request, Response *response,
                         PyObject **refusal)
{
    int done = -1;
    /* An exception may have come before. */
    if (!PyErr_Occurred() && begin_request(self, session, request->sync) == 0)
        done = respond(request, response);
    if (done < 0) {
        set_slot(self->sessions, &sessions_current, session);
        *refusal = failed(self, request->sync, "a trigger");
    }
    end_request(self);
    return done;
}

static int answer_request(Handle *self, PyObject *session, RowRequest *request)
{
    set_slot(self->manager, manager_slots + MANAGER_HAS_LOGGED, Py_False);
    Response response;
    PyObject *refusal = NULL;
    int done = request->type == REQUEST_SELECT ? select_response(request, &response) : change_response(request, &response);
    int is_quick = done > 0;
    if (!is_quick)
        done = respond_aloud(self, session, request, &response, &refusal);
    if (!done || (done < 0 && !refusal))
        return done;
    if (note_request(self, request->type, session, request->sync) < 0) {
        if (done > 0)
            response_drop(&response);
        Py_XDECREF(refusal);
        return -1;
    }
    PyObject *sent = done > 0 ? response_send(&response, self->manager) : reply(request->connection, self->manager, refusal);
    Py_XDECREF(sent);
    return !sent ? -1 : is_quick ? 1 + request->found : LOOK_AT_TIME;
}

/* The space and the key. Returns -1 with an exception; 0 unknown. */
static int find_space(Handle *self, RowRequest *request)
{
    static const uint8_t no_values[] = {0x90};
    const RowBody *body = request->body;
    if (body->seen & BIT(BODY_KEY))
        request->key = (Key){NULL, 0, body->key, body->key_end};
    else
        request->key = (Key){NULL, 0, no_values, no_values + 1};
    if (body->key_end - body->key > SHORT_KEY)
        return 0; /* not the key of any row */
    if (schema_version(self, &request->schema_version) < 0)
        return -1;
    request->space = handle_space(self, body->numbers[BODY_SPACE_ID]);
    return request->space && Py_TYPE(request->space) == stored_space_type;
}

int handle_rows(Handle *self, PyObject *connection, const uint64_t *header, Position at, Position end)
{
    uint64_t type = header[REQUEST_TYPE], needed = required_keys(type);
    RowBody body;
    RowRequest request = {.type = type, .sync = header[SYNC], .body = &body, .connection = connection};
    PyObject *session;
    if (!needed || !read_body(&body, needed, at, end) || !(session = session_of(self, connection))
        || !may_everything(session, type == REQUEST_SELECT ? READ : WRITE) || find_space(self, &request) <= 0)
        return PyErr_Occurred() ? -1 : 0;
    Py_INCREF(session);
    Py_INCREF(request.space);
    int cost = answer_request(self, session, &request);
    Py_DECREF(session);
    Py_DECREF(request.space);
    return cost <= 0 ? cost : cost + (int)((end - at) / 1024);
}
