/* Fast path for requests for rows, for users who may read and change everything. */
#include "../native.h"


/* -- each of them, with Tuples; a list of rows, or a row, or None; NULL, maybe without an exception -- */

static SpaceObject *space_of(const RowRequest *request)
{
    return (SpaceObject *)request->space;
}

static PyObject *select_rows(const RowRequest *request)
{
    return space_select(space_of(request), request->index_id, request->iterator, request->offset, request->limit,
                        &request->key);
}

static PyObject *row_of(const RowRequest *request)
{
    Span tuple = request->tuple;
    PyObject *raw = PyBytes_FromStringAndSize((const char *)tuple.at, tuple.end - tuple.at);
    PyObject *row = raw ? new_tuple(raw, space_of(request)->format, NULL) : NULL;
    Py_XDECREF(raw);
    return row;
}

static PyObject *store_row(const RowRequest *request, int is_insert)
{
    PyObject *row = row_of(request), *stored = row ? space_store(space_of(request), row, is_insert, 1, 0) : NULL;
    Py_XDECREF(row);
    return stored;
}

static PyObject *update_row_of(const RowRequest *request)
{
    UpdateOperations read;
    PackedOperations packed = {request->tuple.at, request->tuple.end, request->index_base, space_of(request)->names};
    ChangeCall call = {.packed = &packed};
    int is_known = read_packed_operations(&read, &packed);
    if (PyErr_Occurred())
        return NULL;
    return space_update(space_of(request), request->index_id, &request->key, &call, is_known ? &read : NULL);
}

static PyObject *upsert_row(const RowRequest *request)
{
    UpdateOperations read;
    Span operations = request->operations;
    PackedOperations packed = {operations.at, operations.end, request->index_base, space_of(request)->names};
    ChangeCall call = {.packed = &packed};
    int is_known = read_packed_operations(&read, &packed);
    PyObject *row = PyErr_Occurred() ? NULL : row_of(request);
    PyObject *done = row ? space_upsert(space_of(request), row, 1, &call, is_known ? &read : NULL) : NULL;
    Py_XDECREF(row);
    return done;
}

static PyObject *carry_out(const RowRequest *request)
{
    switch (request->type) {
    case REQUEST_SELECT: return select_rows(request);
    case REQUEST_UPDATE: return update_row_of(request);
    case REQUEST_UPSERT: return upsert_row(request);
    case REQUEST_DELETE: return space_delete(space_of(request), request->index_id, &request->key);
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

/* What comes of writing a response. Returns 1; -1 with an exception, and nothing is left of it. */
static int written(Response *response, int failed)
{
    if (failed)
        response_drop(response);
    return failed ? -1 : 1;
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

/* Write the response with Tuples. Returns 1; 0 unknown; -1 with an exception. */
static int respond(FastPath *self, RowRequest *request, Response *response)
{
    PyObject *answer = carry_out(request);
    request->schema_version = schema_version(self); /* the row may have changed the schema */
    if (answer && request->type == REQUEST_SELECT && PyList_CheckExact(answer)
        && may_send(request->connection, total_size(answer)) <= 0)
        Py_CLEAR(answer); /* Python lets the request wait */
    if (!answer)
        return PyErr_Occurred() ? -1 : 0;
    int done = answer_result(request, response, answer);
    Py_DECREF(answer);
    return done;
}

/* Answer a request of which code of Python may hear. Returns 1; 0 unknown; -1 if it has failed: `refusal` then is the
 * answer, or NULL with an exception. */
static int respond_aloud(FastPath *self, SessionObject *session, RowRequest *request, Response *response,
                         PyObject **refusal)
{
    int done = -1;
    /* An exception may have come before. */
    if (!PyErr_Occurred()) {
        begin_request(self, session, request->sync);
        done = respond(self, request, response);
    }
    if (done < 0) {
        Py_XSETREF(self->sessions->current, Py_NewRef(session));
        *refusal = failed(self, request->sync, "a trigger");
    }
    end_request(self);
    return done;
}

static int answer_request(FastPath *self, SessionObject *session, RowRequest *request)
{
    ((ManagerObject *)self->manager)->has_logged = 0;
    Response response;
    PyObject *refusal = NULL;
    int done = request->type == REQUEST_SELECT ? select_response(request, &response) : change_response(request, &response);
    int is_quick = done > 0;
    if (!is_quick)
        done = respond_aloud(self, session, request, &response, &refusal);
    if (!done || (done < 0 && !refusal))
        return done;
    note_request(self, request->type, session, request->sync);
    PyObject *sent = done > 0 ? response_send(&response, self->manager) : reply(request->connection, self->manager, refusal);
    Py_XDECREF(sent);
    return !sent ? -1 : is_quick ? 1 + request->found : LOOK_AT_TIME;
}

/* Read a request that has only these keys. Returns 0 for another one. */
static int read_request(RowRequest *request, Position at, Position end)
{
    static const uint8_t no_values[] = {0x90};
    static const uint64_t known = ~(BIT(BODY_FETCH_POSITION) | BIT(BODY_AFTER_POSITION) | BIT(BODY_AFTER_TUPLE));
    const BodyRule *rule = body_rule((uint8_t)request->type);
    Body body;
    if (read_body(rule, at, end, &body) || missing_key(rule, &body) || body.seen[0] & ~known || body.seen[1])
        return 0;
    request->space_id = (uint32_t)body_number(&body, BODY_SPACE_ID);
    request->index_id = (uint32_t)body_number(&body, BODY_INDEX_ID);
    request->limit = (uint32_t)body_number(&body, BODY_LIMIT);
    request->offset = (uint32_t)body_number(&body, BODY_OFFSET);
    request->iterator = (uint32_t)body_number(&body, BODY_ITERATOR);
    request->index_base = (uint32_t)body_number(&body, BODY_INDEX_BASE);
    request->tuple = body_span(&body, BODY_TUPLE);
    request->operations = body_span(&body, BODY_OPS);
    Span key = body_has(&body, BODY_KEY) ? body.values[BODY_KEY] : (Span){no_values, no_values + 1};
    request->key = (Key){NULL, 0, key.at, key.end};
    return key.end - key.at <= SHORT_KEY;
}

/* Whether the space is one that the engine has without rules in Python. */
static int find_plain_space(FastPath *self, RowRequest *request)
{
    request->schema_version = schema_version(self);
    request->space = find_space(self->catalog, request->space_id);
    return request->space && as_space(request->space) && !space_of(request)->is_custom;
}

int handle_rows(FastPath *self, PyObject *connection, const Header *header, Position at, Position end)
{
    RowRequest request = {.type = header->type, .sync = header->sync, .connection = connection};
    SessionObject *session;
    if (!is_row_request((uint8_t)header->type) || !read_request(&request, at, end)
        || !(session = session_of(self, connection))
        || !may_everything(session, header->type == REQUEST_SELECT ? PRIVILEGE_READ : PRIVILEGE_WRITE) || !find_plain_space(self, &request))
        return PyErr_Occurred() ? -1 : 0;
    Py_INCREF(session);
    Py_INCREF(request.space);
    int cost = answer_request(self, session, &request);
    Py_DECREF(session);
    Py_DECREF(request.space);
    return cost <= 0 ? cost : cost + (int)((end - at) / 1024);
}
