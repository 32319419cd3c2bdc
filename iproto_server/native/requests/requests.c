/* From bytes to requests: the twins of the quick road of protocol/request.py, and of the loop in framing.py.
 *
 * A request is known here when its header and body are short maps with keys that are expected; everything else,
 * and all that is wrong, is for Python.
 */
#include "../native.h"

typedef struct {
    PyObject_HEAD
    PyObject *type, *sync, *schema_version, *stream_id, *body;
} RequestObject;

static PyObject *zero, *numbers[0x40]; /* the keys of bodies */

static int make_numbers(void)
{
    for (int number = 0; !zero && number < 0x40; number++)
        if (!(numbers[number] = PyLong_FromLong(number)))
            return -1;
    zero = numbers[0];
    return 0;
}

static PyObject *new_request(PyObject *type, PyObject *sync, PyObject *version, PyObject *stream, PyObject *body)
{
    RequestObject *self = PyObject_New(RequestObject, &Request_Type);
    if (!self)
        return NULL;
    self->type = Py_NewRef(type);
    self->sync = Py_NewRef(sync);
    self->schema_version = Py_NewRef(version);
    self->stream_id = Py_NewRef(stream);
    self->body = Py_NewRef(body);
    return (PyObject *)self;
}

static PyObject *request_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"type", "sync", "schema_version", "stream_id", "body", NULL};
    PyObject *parts[5];
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOOO:Request", names, parts, parts + 1, parts + 2, parts + 3,
                                     parts + 4))
        return NULL;
    return new_request(parts[0], parts[1], parts[2], parts[3], parts[4]);
}

static void request_dealloc(PyObject *self)
{
    RequestObject *request = (RequestObject *)self;
    Py_DECREF(request->type);
    Py_DECREF(request->sync);
    Py_DECREF(request->schema_version);
    Py_DECREF(request->stream_id);
    Py_DECREF(request->body);
    PyObject_Free(self);
}

static PyObject *request_repr(PyObject *self)
{
    RequestObject *request = (RequestObject *)self;
    return PyUnicode_FromFormat("Request(type=%S, sync=%S, schema_version=%S, stream_id=%S, body=%R)", request->type,
                                request->sync, request->schema_version, request->stream_id, request->body);
}

static PyMemberDef request_members[] = {
    {"type", T_OBJECT, offsetof(RequestObject, type), READONLY, "what is asked for"},
    {"sync", T_OBJECT, offsetof(RequestObject, sync), READONLY, "the number to answer with"},
    {"schema_version", T_OBJECT, offsetof(RequestObject, schema_version), READONLY, "the one the client knows"},
    {"stream_id", T_OBJECT, offsetof(RequestObject, stream_id), READONLY, "the stream that it belongs to"},
    {"body", T_OBJECT, offsetof(RequestObject, body), READONLY, "what belongs to the type"},
    {NULL},
};

PyTypeObject Request_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.protocol.request.Request",
    .tp_doc = "One request.",
    .tp_basicsize = sizeof(RequestObject),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = request_new,
    .tp_dealloc = request_dealloc,
    .tp_repr = request_repr,
    .tp_members = request_members,
};

/* The values of a header by key; `seen` has a bit for each that is there. */
int read_header(Position *at, Position end, uint64_t values[HEADER_KEYS])
{
    if (*at >= end || **at < 0x82 || **at > 0x83)
        return 0;
    int pairs = *(*at)++ & 0x0f, seen = 0;
    while (pairs--) {
        if (*at >= end)
            return 0;
        uint8_t key = *(*at)++;
        if ((key != REQUEST_TYPE && key != SYNC && key != SCHEMA_VERSION) || seen & 1 << key
            || !read_number(at, end, &values[key]))
            return 0;
        seen |= 1 << key;
    }
    return (seen & 3) == 3;
}

static int is_array(Position at, Position end)
{
    return at < end && ((*at & 0xf0) == 0x90 || *at == 0xdc || *at == 0xdd);
}

static int is_text(Position at, Position end)
{
    return at < end && ((*at >= 0xa0 && *at < 0xc0) || (*at >= 0xd9 && *at <= 0xdb));
}

/* An array as it is. */
static PyObject *read_packed(Position *at, Position end)
{
    Position start = *at;
    if (!is_array(start, end) || !skip_value(at, end, 1))
        return NULL;
    return PyBytes_FromStringAndSize((const char *)start, *at - start);
}

/* The body of a CALL; NULL, maybe without an exception, for another one. */
static PyObject *read_call(Position *at, Position end)
{
    if (*at >= end || *(*at)++ != 0x82)
        return NULL;
    PyObject *body = PyDict_New();
    for (int pair = 0; body && pair < 2; pair++) {
        uint8_t key = *at < end ? *(*at)++ : 0;
        PyObject *value = key == BODY_TUPLE ? read_packed(at, end) : NULL;
        if (key == BODY_FUNCTION_NAME && is_text(*at, end))
            value = read_value(at, end, 1);
        if (!value || PyDict_SetItem(body, numbers[key], value) < 0)
            Py_CLEAR(body);
        Py_XDECREF(value);
    }
    if (body && PyDict_GET_SIZE(body) != 2)
        Py_CLEAR(body);
    return body;
}

static PyObject *read_row_item(uint8_t key, Position *at, Position end)
{
    if (key >= BODY_SPACE_ID && key <= BODY_INDEX_BASE) {
        uint64_t number;
        return read_unsigned(at, end, &number) ? PyLong_FromUnsignedLong((uint32_t)number) : NULL;
    }
    return key == BODY_KEY || key == BODY_TUPLE || key == BODY_OPS ? read_packed(at, end) : NULL;
}

uint64_t required_keys(uint64_t type)
{
    switch (type) {
    case REQUEST_SELECT: return BIT(BODY_SPACE_ID) | BIT(BODY_LIMIT) | BIT(BODY_KEY);
    case REQUEST_INSERT: case REQUEST_REPLACE: return BIT(BODY_SPACE_ID) | BIT(BODY_TUPLE);
    case REQUEST_UPDATE: return BIT(BODY_SPACE_ID) | BIT(BODY_KEY) | BIT(BODY_TUPLE);
    case REQUEST_DELETE: return BIT(BODY_SPACE_ID) | BIT(BODY_KEY);
    case REQUEST_UPSERT: return BIT(BODY_SPACE_ID) | BIT(BODY_TUPLE) | BIT(BODY_OPS);
    default: return 0;
    }
}

static PyObject *read_row(Position *at, Position end, uint64_t needed)
{
    if (*at >= end || (**at & 0xf0) != 0x80)
        return NULL;
    int pairs = *(*at)++ & 0x0f;
    PyObject *body = PyDict_New();
    while (body && pairs--) {
        uint8_t key = *at < end ? *(*at)++ : 0;
        PyObject *value = read_row_item(key, at, end);
        if (!value || PyDict_SetItem(body, numbers[key], value) < 0)
            Py_CLEAR(body);
        else
            needed &= ~BIT(key);
        Py_XDECREF(value);
    }
    if (needed)
        Py_CLEAR(body);
    return body;
}

static PyObject *read_body(uint64_t type, Position *at, Position end)
{
    if (type == REQUEST_CALL)
        return read_call(at, end);
    uint64_t needed = required_keys(type);
    if (needed)
        return read_row(at, end, needed);
    if (type != REQUEST_PING && type != REQUEST_NOP)
        return NULL;
    if (type == REQUEST_PING && *at < end && !skip_value(at, end, 0))
        return NULL;
    return PyDict_New();
}

static PyObject *read_request(Position at, Position end)
{
    uint64_t header[HEADER_KEYS] = {0};
    if (!read_header(&at, end, header))
        return NULL;
    PyObject *body = read_body(header[REQUEST_TYPE], &at, end), *request = NULL;
    if (!body || at != end) {
        Py_XDECREF(body);
        return NULL;
    }
    uint32_t schema_version = (uint32_t)header[SCHEMA_VERSION];
    PyObject *type = PyLong_FromUnsignedLongLong(header[REQUEST_TYPE]);
    PyObject *sync = PyLong_FromUnsignedLongLong(header[SYNC]);
    PyObject *version = schema_version ? PyLong_FromUnsignedLong(schema_version) : Py_NewRef(zero);
    if (type && sync && version)
        request = new_request(type, sync, version, zero, body);
    Py_XDECREF(type);
    Py_XDECREF(sync);
    Py_XDECREF(version);
    Py_DECREF(body);
    return request;
}

FUNCTION(native_decode_request)
{
    if (count != 1 || make_numbers() < 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "decode_request() takes a frame");
        return NULL;
    }
    if (PyBytes_CheckExact(args[0])) {
        Position at = (Position)PyBytes_AS_STRING(args[0]);
        PyObject *request = read_request(at, at + PyBytes_GET_SIZE(args[0]));
        if (request || PyErr_Occurred())
            return request;
    }
    return PyObject_CallOneArg(python_functions[PYTHON_DECODE_REQUEST], args[0]);
}

/* Append frames to a list; -1 with an exception. */
static int append_frames(PyObject *list, Position at, Py_ssize_t count)
{
    while (count--) {
        Py_ssize_t length = (Py_ssize_t)big_endian(at + 1, 4);
        PyObject *frame = PyBytes_FromStringAndSize((const char *)at + FRAME_HEAD, length);
        int failed = !frame || PyList_Append(list, frame) < 0;
        Py_XDECREF(frame);
        if (failed)
            return -1;
        at += FRAME_HEAD + length;
    }
    return 0;
}

/* cut_frames(data, position, stop, max_frame, frames): append the whole frames of the usual kind that begin before
 * `stop` to a list or to Frames; answer where the first other one begins. */
FUNCTION(native_cut_frames)
{
    int is_list = count == 5 && PyList_CheckExact(args[4]);
    if (count != 5 || !PyBytes_CheckExact(args[0]) || !(is_list || Py_TYPE(args[4]) == &Frames_Type)) {
        PyErr_SetString(PyExc_TypeError, "cut_frames() takes data, position, stop, max_frame and a list or Frames");
        return NULL;
    }
    Py_ssize_t position = PyLong_AsSsize_t(args[1]), stop = PyLong_AsSsize_t(args[2]);
    Py_ssize_t max_frame = PyLong_AsSsize_t(args[3]), size = PyBytes_GET_SIZE(args[0]);
    if (PyErr_Occurred())
        return NULL;
    Position data = (Position)PyBytes_AS_STRING(args[0]);
    Py_ssize_t start = position, found = 0;
    while (position >= 0 && position < stop && size - position >= FRAME_HEAD && data[position] == 0xce) {
        Py_ssize_t length = (Py_ssize_t)big_endian(data + position + 1, 4);
        if (length > max_frame || length > size - position - FRAME_HEAD)
            break;
        found++;
        position += FRAME_HEAD + length;
    }
    int failed = is_list ? append_frames(args[4], data + start, found)
                         : frames_put((FramesObject *)args[4], args[0], start, position, found);
    return failed ? NULL : PyLong_FromSsize_t(position);
}
