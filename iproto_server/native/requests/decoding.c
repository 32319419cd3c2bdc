/* From frames to requests as Python objects. */
#include "../native.h"

/* -- Request -- */

typedef struct {
    PyObject_HEAD
    unsigned long long type, sync, schema_version, stream_id;
    PyObject *body;
} RequestObject;

static PyObject *new_request(const Header *header, PyObject *body)
{
    RequestObject *self = PyObject_New(RequestObject, &Request_Type);
    if (!self)
        return NULL;
    self->type = header->type;
    self->sync = header->sync;
    self->schema_version = header->schema_version;
    self->stream_id = header->stream_id;
    self->body = Py_NewRef(body);
    return (PyObject *)self;
}

static int read_part(PyObject *number, uint64_t *part)
{
    *part = PyLong_AsUnsignedLongLong(number);
    return *part != (uint64_t)-1 || !PyErr_Occurred();
}

static PyObject *request_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"type", "sync", "schema_version", "stream_id", "body", NULL};
    PyObject *parts[4], *body;
    Header header;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOOO!:Request", names, parts, parts + 1, parts + 2, parts + 3,
                                     &PyDict_Type, &body)
        || !read_part(parts[0], &header.type) || !read_part(parts[1], &header.sync)
        || !read_part(parts[2], &header.schema_version) || !read_part(parts[3], &header.stream_id))
        return NULL;
    return new_request(&header, body);
}

static void request_dealloc(PyObject *self)
{
    Py_DECREF(((RequestObject *)self)->body);
    PyObject_Free(self);
}

static PyObject *request_repr(PyObject *self)
{
    const RequestObject *request = (RequestObject *)self;
    return PyUnicode_FromFormat("Request(type=%llu, sync=%llu, schema_version=%llu, stream_id=%llu, body=%R)",
                                request->type, request->sync, request->schema_version, request->stream_id,
                                request->body);
}

static PyMemberDef request_members[] = {
    {"type", T_ULONGLONG, offsetof(RequestObject, type), READONLY, "The type of the request."},
    {"sync", T_ULONGLONG, offsetof(RequestObject, sync), READONLY, "The number to answer with."},
    {"schema_version", T_ULONGLONG, offsetof(RequestObject, schema_version), READONLY, "The one the client knows."},
    {"stream_id", T_ULONGLONG, offsetof(RequestObject, stream_id), READONLY, "The stream that it belongs to."},
    {"body", T_OBJECT_EX, offsetof(RequestObject, body), READONLY, "The values by key."},
    {NULL},
};

PyTypeObject Request_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native._native.Request",
    .tp_doc = "A request.",
    .tp_basicsize = sizeof(RequestObject),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = request_new,
    .tp_dealloc = request_dealloc,
    .tp_repr = request_repr,
    .tp_members = request_members,
};

/* -- errors. These return NULL with a RequestError -- */

enum { INVALID_MSGPACK = 20, MISSING_REQUEST_FIELD = 69 };

static PyObject *refuse(uint64_t sync, int code, const char *text)
{
    PyObject *make = hook(HOOK_REQUEST_ERROR);
    PyObject *error = make ? PyObject_CallFunction(make, "Kis", (unsigned long long)sync, code, text) : NULL;
    if (error)
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
    return NULL;
}

static PyObject *malformed(uint64_t sync, const char *text)
{
    return refuse(sync, INVALID_MSGPACK, text);
}

static PyObject *missing(uint64_t sync, int key)
{
    static const char *const names[BODY_KEYS] = {
        [BODY_SPACE_ID] = "space id", [BODY_LIMIT] = "limit", [BODY_KEY] = "key", [BODY_TUPLE] = "tuple",
        [BODY_FUNCTION_NAME] = "function name", [BODY_USER_NAME] = "user name", [BODY_EXPR] = "expression",
        [BODY_OPS] = "operations", [BODY_EVENT_KEY] = "event key",
    };
    return refuse(sync, MISSING_REQUEST_FIELD, names[key]);
}

/* -- bodies -- */

static PyObject *value_at(Span value, Kind kind, int is_row)
{
    switch (kind) {
    case KIND_UINT:
        return PyLong_FromUnsignedLongLong(number_at(value.at) & (is_row ? UINT32_MAX : UINT64_MAX)); /* as Tarantool does */
    case KIND_STR: case KIND_DOUBLE: case KIND_BOOL:
        return read_value(&value.at, value.end, 0);
    default:
        return PyBytes_FromStringAndSize((const char *)value.at, value.end - value.at);
    }
}

static int put(PyObject *dict, int key, PyObject *value)
{
    PyObject *number = value ? PyLong_FromLong(key) : NULL;
    int failed = !number || PyDict_SetItem(dict, number, value) < 0;
    Py_XDECREF(number);
    Py_XDECREF(value);
    return failed ? -1 : 0;
}

static PyObject *as_dict(const BodyRule *rule, const Body *body, int is_row)
{
    PyObject *dict = PyDict_New();
    for (int word = 0; dict && word < 2; word++)
        for (uint64_t left = body->seen[word]; dict && left; left &= left - 1) {
            int key = 64 * word + __builtin_ctzll(left);
            if (put(dict, key, value_at(body->values[key], (Kind)rule->kinds[key], is_row)) < 0)
                Py_CLEAR(dict);
        }
    return dict;
}

/* Whether all items of a well-formed array are unsigned numbers. */
static int are_numbers(Span array)
{
    uint32_t count;
    uint64_t number = 0;
    Position at = msgpack_array(array.at, array.end, &count);
    while (count && read_unsigned(&at, array.end, &number))
        count--;
    return !count;
}

static PyObject *decode_sql(const BodyRule *rule, const Body *body, uint64_t sync)
{
    int has_text = body_has(body, BODY_SQL_TEXT), has_id = body_has(body, BODY_STMT_ID);
    if (has_text && has_id)
        return malformed(sync, "SQL text and statement id are incompatible options in one request: choose one");
    return has_text || has_id ? as_dict(rule, body, 0) : refuse(sync, MISSING_REQUEST_FIELD, "SQL text or stmt id");
}

static PyObject *decode_call(const BodyRule *rule, const Body *body)
{
    PyObject *dict = as_dict(rule, body, 0);
    if (dict && !body_has(body, BODY_TUPLE) && put(dict, BODY_TUPLE, PyBytes_FromStringAndSize("\x90", 1)) < 0)
        Py_CLEAR(dict);
    return dict;
}

static PyObject *decode_body(const Header *header, Position at, Position end)
{
    const BodyRule *rule = body_rule((uint8_t)header->type);
    if (!rule)
        return at == end || is_value(at, end) ? PyDict_New() : malformed(header->sync, "packet body");
    Body body;
    const char *fault = read_body(rule, at, end, &body);
    if (fault)
        return malformed(header->sync, fault);
    int key = missing_key(rule, &body);
    if (key)
        return missing(header->sync, key);
    switch (header->type) {
    case REQUEST_EXECUTE: case REQUEST_PREPARE:
        return decode_sql(rule, &body, header->sync);
    case REQUEST_CALL: case REQUEST_CALL_16: case REQUEST_EVAL:
        return decode_call(rule, &body);
    case REQUEST_ID:
        if (body_has(&body, BODY_FEATURES) && !are_numbers(body.values[BODY_FEATURES]))
            return malformed(header->sync, rule->refused);
    }
    return as_dict(rule, &body, is_row_request((uint8_t)header->type));
}

/* decode_request(frame) */
FUNCTION(native_decode_request)
{
    if (count != 1 || !PyBytes_CheckExact(args[0]))
        return PyErr_Format(PyExc_TypeError, "decode_request() takes a frame");
    Position at = (Position)PyBytes_AS_STRING(args[0]), end = at + PyBytes_GET_SIZE(args[0]);
    Header header;
    if (!read_header(&at, end, &header))
        return malformed(header.sync, "packet header");
    if (header.type == REQUEST_NOP && at != end)
        return malformed(header.sync, "packet body");
    header.type &= 0xff;
    header.schema_version &= UINT32_MAX;
    PyObject *body = decode_body(&header, at, end);
    PyObject *request = body ? new_request(&header, body) : NULL;
    Py_XDECREF(body);
    return request;
}
