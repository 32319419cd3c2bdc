/* Cutting packed values out of bytes without unpacking them. */
#include "../native.h"

/* The bytes of an argument; `bytes_close` is due if that has not failed, with -1 and an exception. */
typedef struct {
    Position start, end;
    Py_buffer view; /* without `obj` for exact bytes, which need none */
} Bytes;

static int bytes_open(Bytes *bytes, PyObject *given)
{
    bytes->view.obj = NULL;
    if (PyBytes_CheckExact(given)) {
        bytes->start = (Position)PyBytes_AS_STRING(given);
        bytes->end = bytes->start + PyBytes_GET_SIZE(given);
        return 0;
    }
    if (PyObject_GetBuffer(given, &bytes->view, PyBUF_SIMPLE) < 0)
        return -1;
    bytes->start = bytes->view.buf;
    bytes->end = bytes->start + bytes->view.len;
    return 0;
}

/* Returns `result`. */
static PyObject *bytes_close(Bytes *bytes, PyObject *result)
{
    if (bytes->view.obj)
        PyBuffer_Release(&bytes->view);
    return result;
}

static PyObject *malformed(const char *text)
{
    raise_box_error("INVALID_MSGPACK", "s", text);
    return NULL;
}

static PyObject *slice(Position from, Position to)
{
    return PyBytes_FromStringAndSize((const char *)from, to - from);
}

/* is_valid(raw) */
PyObject *native_is_valid(PyObject *module, PyObject *raw)
{
    Bytes bytes;
    if (bytes_open(&bytes, raw) < 0)
        return NULL;
    int is_valid = msgpack_skip_within(bytes.start, bytes.end, MSGPACK_DEPTH_MAX) == bytes.end;
    return bytes_close(&bytes, PyBool_FromLong(is_valid));
}

/* skip(raw, start) */
FUNCTION(native_skip)
{
    Bytes bytes;
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "skip() takes bytes and a position");
        return NULL;
    }
    Py_ssize_t start = PyNumber_AsSsize_t(args[1], PyExc_IndexError);
    if ((start == -1 && PyErr_Occurred()) || bytes_open(&bytes, args[0]) < 0)
        return NULL;
    Position behind = NULL;
    if (start >= 0 && start < bytes.end - bytes.start)
        behind = msgpack_skip_within(bytes.start + start, bytes.end, MSGPACK_DEPTH_MAX);
    return bytes_close(&bytes, behind ? PyLong_FromSsize_t(behind - bytes.start) : malformed("malformed value"));
}

/* -- arrays -- */

static int is_array(uint8_t head)
{
    return (head & 0xf0) == 0x90 || head == 0xdc || head == 0xdd;
}

static int is_map(uint8_t head)
{
    return (head & 0xf0) == 0x80 || head == 0xde || head == 0xdf;
}

/* Read the head of an array or map. Returns the position behind it, NULL if there is none; `values` is the number of
 * values that it claims to have. */
static Position read_head(const Bytes *bytes, int (*is_kind)(uint8_t), uint64_t *values)
{
    Position body;
    uint64_t size;
    return msgpack_head(bytes->start, bytes->end, &body, &size, values) && is_kind(*bytes->start) ? body : NULL;
}

/* Whether so many values are there. No list is made for what is only claimed. */
static int are_there(Position at, Position end, uint64_t values)
{
    for (; at && values; values--)
        at = msgpack_skip_within(at, end, MSGPACK_DEPTH_MAX - 1);
    return at != NULL;
}

/* Cut out the next values, which are there, and move on. */
static PyObject *cut(Position *at, Position end, uint64_t values)
{
    PyObject *items = PyList_New((Py_ssize_t)values);
    for (Py_ssize_t place = 0; items && place < (Py_ssize_t)values; place++) {
        Position behind = msgpack_skip(*at, end);
        PyObject *item = slice(*at, behind);
        if (item)
            PyList_SET_ITEM(items, place, item);
        else
            Py_CLEAR(items);
        *at = behind;
    }
    return items;
}

/* split_array(raw) */
PyObject *native_split_array(PyObject *module, PyObject *raw)
{
    Bytes bytes;
    uint64_t values;
    if (bytes_open(&bytes, raw) < 0)
        return NULL;
    Position at = read_head(&bytes, is_array, &values);
    if (!at || !are_there(at, bytes.end, values))
        return bytes_close(&bytes, malformed("malformed array"));
    PyObject *items = cut(&at, bytes.end, values);
    if (items && at != bytes.end) {
        Py_CLEAR(items);
        malformed("bytes after an array");
    }
    return bytes_close(&bytes, items);
}

/* first_items(raw, count) */
FUNCTION(native_first_items)
{
    Bytes bytes;
    uint64_t values;
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "first_items() takes an array and a number");
        return NULL;
    }
    Py_ssize_t wanted = PyNumber_AsSsize_t(args[1], PyExc_OverflowError);
    if ((wanted == -1 && PyErr_Occurred()) || bytes_open(&bytes, args[0]) < 0)
        return NULL;
    Position at = read_head(&bytes, is_array, &values);
    if (wanted < 0 || (uint64_t)wanted < values)
        values = wanted < 0 ? 0 : (uint64_t)wanted;
    PyObject *items = at && are_there(at, bytes.end, values) ? cut(&at, bytes.end, values) : malformed("malformed array");
    return bytes_close(&bytes, items);
}

/* -- maps -- */

static PyObject *cut_pair(Position *at, Position end)
{
    Position middle = msgpack_skip(*at, end), behind = msgpack_skip(middle, end);
    PyObject *key = slice(*at, middle), *value = key ? slice(middle, behind) : NULL;
    PyObject *pair = value ? PyTuple_Pack(2, key, value) : NULL;
    Py_XDECREF(key);
    Py_XDECREF(value);
    *at = behind;
    return pair;
}

/* split_map(raw) */
PyObject *native_split_map(PyObject *module, PyObject *raw)
{
    Bytes bytes;
    uint64_t values;
    if (bytes_open(&bytes, raw) < 0)
        return NULL;
    Position at = read_head(&bytes, is_map, &values);
    if (!at || !are_there(at, bytes.end, values))
        return bytes_close(&bytes, malformed("malformed map"));
    PyObject *pairs = PyList_New((Py_ssize_t)(values / 2));
    for (Py_ssize_t place = 0; pairs && place < (Py_ssize_t)(values / 2); place++) {
        PyObject *pair = cut_pair(&at, bytes.end);
        if (pair)
            PyList_SET_ITEM(pairs, place, pair);
        else
            Py_CLEAR(pairs);
    }
    if (pairs && at != bytes.end) {
        Py_CLEAR(pairs);
        malformed("bytes after a map");
    }
    return bytes_close(&bytes, pairs);
}

/* -- heads -- */

/* How many values, divided by `each`, the head claims. */
static PyObject *claimed(PyObject *raw, int (*is_kind)(uint8_t), int each, const char *otherwise)
{
    Bytes bytes;
    uint64_t values;
    if (bytes_open(&bytes, raw) < 0)
        return NULL;
    int is_there = read_head(&bytes, is_kind, &values) != NULL;
    return bytes_close(&bytes, is_there ? PyLong_FromUnsignedLongLong(values / (unsigned)each) : malformed(otherwise));
}

/* array_count(raw) */
PyObject *native_array_count(PyObject *module, PyObject *raw)
{
    return claimed(raw, is_array, 1, "malformed array");
}

/* map_count(raw) */
PyObject *native_map_count(PyObject *module, PyObject *raw)
{
    return claimed(raw, is_map, 2, "malformed map");
}

static PyObject *header(PyObject *number, int (*write)(Buffer *, uint64_t))
{
    unsigned long long count = PyLong_AsUnsignedLongLong(number);
    if (count == (unsigned long long)-1 && PyErr_Occurred())
        return NULL;
    if (count > UINT32_MAX)
        return PyErr_Format(PyExc_OverflowError, "an array or map cannot have %llu items", count);
    Buffer buffer;
    buffer_init(&buffer);
    write(&buffer, count); /* there is room for it */
    return buffer_take(&buffer);
}

/* array_header(count) */
PyObject *native_array_header(PyObject *module, PyObject *number)
{
    return header(number, write_array_header);
}

/* map_header(count) */
PyObject *native_map_header(PyObject *module, PyObject *number)
{
    return header(number, write_map_header);
}
