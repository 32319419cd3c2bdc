/* Unpacking: from MessagePack to Python's values.
 *
 * A function that returns NULL without an exception has met malformed bytes, or values that are nested too deep.
 */
#include "../native.h"

/* Longer values are checked before anything is made of them: a few bytes may claim large arrays inside each other. */
enum { CHECK_FIRST = 1024 };

/* Errors inside of more errors than this stay packed: each may have causes and fields with further errors. */
enum { ERRORS_MAX = 8 };

typedef struct {
    Position at, end;
    int errors; /* how many errors the value is inside of */
} Reader;

static PyObject *read_next(Reader *reader, int depth);

static int is_container(uint8_t first)
{
    return (first >= 0x80 && first < 0xa0) || (first >= 0xdc && first <= 0xdf);
}

/* Whether a long value that is inside of `depth` arrays and maps is well-formed; short ones are not looked at. */
static int is_sound(Position at, Position end, int depth)
{
    return end - at <= CHECK_FIRST || !is_container(*at) || msgpack_skip_within(at, end, MSGPACK_DEPTH_MAX - depth);
}

static PyObject *read_array(Reader *reader, uint64_t count, int depth)
{
    if (count > (uint64_t)(reader->end - reader->at) || (count && depth >= MSGPACK_DEPTH_MAX))
        return NULL;
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (Py_ssize_t place = 0; list && place < (Py_ssize_t)count; place++) {
        PyObject *item = read_next(reader, depth + 1);
        if (item)
            PyList_SET_ITEM(list, place, item);
        else
            Py_CLEAR(list);
    }
    return list;
}

/* The key of a dict that stands for a value; it takes over the value. Returns NULL with an exception. */
static PyObject *as_key(PyObject *value)
{
    PyObject *key = NULL;
    if (PyList_CheckExact(value)) {
        key = PyTuple_New(PyList_GET_SIZE(value));
        for (Py_ssize_t place = 0; key && place < PyList_GET_SIZE(value); place++) {
            PyObject *item = as_key(Py_NewRef(PyList_GET_ITEM(value, place)));
            if (item)
                PyTuple_SET_ITEM(key, place, item);
            else
                Py_CLEAR(key);
        }
    } else if (PyDict_CheckExact(value)) {
        PyObject *name, *item;
        Py_ssize_t position = 0, place = 0;
        key = PyTuple_New(PyDict_GET_SIZE(value));
        while (key && PyDict_Next(value, &position, &name, &item)) {
            PyObject *part = as_key(Py_NewRef(item)), *pair = part ? PyTuple_Pack(2, name, part) : NULL;
            Py_XDECREF(part);
            if (pair)
                PyTuple_SET_ITEM(key, place++, pair);
            else
                Py_CLEAR(key);
        }
    } else {
        return value;
    }
    Py_DECREF(value);
    return key;
}

static PyObject *read_map(Reader *reader, uint64_t pairs, int depth)
{
    if (pairs && depth >= MSGPACK_DEPTH_MAX)
        return NULL;
    PyObject *dict = PyDict_New();
    for (; dict && pairs; pairs--) {
        PyObject *key = read_next(reader, depth + 1), *value = NULL;
        if (key && (PyList_CheckExact(key) || PyDict_CheckExact(key)))
            key = as_key(key);
        if (key)
            value = read_next(reader, depth + 1);
        if (!value || PyDict_SetItem(dict, key, value) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(key);
        Py_XDECREF(value);
    }
    return dict;
}

/* The value that an error's payload holds, a new reference: None if it is malformed; NULL with an exception. */
static PyObject *read_description(const Reader *reader, Position at, Position end, int depth)
{
    Reader inside = {at, end, reader->errors + 1};
    PyObject *described = NULL;
    if (at < end && reader->errors < ERRORS_MAX && is_sound(at, end, depth))
        described = read_next(&inside, depth);
    if (described && inside.at != end)
        Py_SETREF(described, Py_NewRef(Py_None));
    return described || PyErr_Occurred() ? described : Py_NewRef(Py_None);
}

/* Read an extension that begins at `start`, whose body has its type and its payload. */
static PyObject *read_extension(const Reader *reader, Position start, Position body, Position end, int depth)
{
    int type = (int8_t)*body++;
    if (type < 0)
        return new_raw(start, end);
    PyObject *described = Py_NewRef(Py_None);
    if (is_error_extension(type))
        Py_SETREF(described, read_description(reader, body, end, depth + 1));
    PyObject *value = described ? decode_extension(type, body, end, described) : NULL;
    Py_XDECREF(described);
    return value;
}

static PyObject *read_numeric(Reader *reader, uint8_t first)
{
    Position body = reader->at + 1;
    int width = 1 << (first & 3); /* the heads of numbers are in this order */
    if (reader->end - body < width)
        return NULL;
    reader->at = body + width;
    uint64_t bits = big_endian(body, width);
    switch (first) {
    case 0xca: {
        uint32_t single = (uint32_t)bits;
        float number;
        memcpy(&number, &single, sizeof number);
        return PyFloat_FromDouble((double)number);
    }
    case 0xcb: {
        double number;
        memcpy(&number, &bits, sizeof number);
        return PyFloat_FromDouble(number);
    }
    case 0xcf: return PyLong_FromUnsignedLongLong(bits);
    case 0xd0: return PyLong_FromLong((int8_t)bits);
    case 0xd1: return PyLong_FromLong((int16_t)bits);
    case 0xd2: return PyLong_FromLong((int32_t)bits);
    default: return PyLong_FromLongLong((int64_t)bits);
    }
}

static PyObject *read_text(Position body, uint64_t size)
{
    return PyUnicode_DecodeUTF8((const char *)body, (Py_ssize_t)size, "surrogateescape");
}

/* Read a value whose head tells its size. */
static PyObject *read_sized(Reader *reader, int depth)
{
    Position start = reader->at, body;
    uint64_t size, values;
    if (!msgpack_head(start, reader->end, &body, &size, &values))
        return NULL;
    reader->at = body + size;
    switch (*start) {
    case 0xc4: case 0xc5: case 0xc6: return PyBytes_FromStringAndSize((const char *)body, (Py_ssize_t)size);
    case 0xd9: case 0xda: case 0xdb: return read_text(body, size);
    case 0xdc: case 0xdd: return read_array(reader, values, depth);
    case 0xde: case 0xdf: return read_map(reader, values / 2, depth);
    default: return read_extension(reader, start, body, reader->at, depth);
    }
}

static PyObject *read_next(Reader *reader, int depth)
{
    if (reader->at >= reader->end)
        return NULL;
    uint8_t first = *reader->at;
    if (first >= 0xc0 && first < 0xe0) {
        if (first >= 0xca && first <= 0xd3)
            return read_numeric(reader, first);
        if (first != 0xc0 && first != 0xc2 && first != 0xc3)
            return read_sized(reader, depth);
        reader->at++;
        return Py_NewRef(first == 0xc0 ? Py_None : first == 0xc3 ? Py_True : Py_False);
    }
    Position body = ++reader->at;
    if (first < 0x80 || first >= 0xe0)
        return PyLong_FromLong((int8_t)first);
    if (first < 0x90)
        return read_map(reader, first & 0x0f, depth);
    if (first < 0xa0)
        return read_array(reader, first & 0x0f, depth);
    uint64_t size = first & 0x1f;
    if (size > (uint64_t)(reader->end - body))
        return NULL;
    reader->at += size;
    return read_text(body, size);
}

PyObject *read_value(Position *at, Position end, int depth)
{
    if (*at >= end || !is_sound(*at, end, depth))
        return NULL;
    Reader reader = {*at, end, 0};
    PyObject *value = read_next(&reader, depth);
    *at = reader.at;
    return value;
}

static PyObject *refuse(Position at, Position end)
{
    raise_box_error("INVALID_MSGPACK", "s", msgpack_skip(at, end) == end ? "nested too deep" : "malformed value");
    return NULL;
}

static PyObject *unpack_all(Position at, Position end)
{
    Position start = at;
    PyObject *value = read_value(&at, end, 0);
    if (value && at != end)
        Py_CLEAR(value);
    return value || PyErr_Occurred() ? value : refuse(start, end);
}

PyObject *unpack(PyObject *raw)
{
    if (PyBytes_CheckExact(raw)) {
        Position at = (Position)PyBytes_AS_STRING(raw);
        Py_INCREF(raw); /* a hook may take it from a tuple */
        PyObject *value = unpack_all(at, at + PyBytes_GET_SIZE(raw));
        Py_DECREF(raw);
        return value;
    }
    Py_buffer view;
    if (PyObject_GetBuffer(raw, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    PyObject *value = unpack_all(view.buf, (Position)view.buf + view.len);
    PyBuffer_Release(&view);
    return value;
}

PyObject *unpack_array(PyObject *raw)
{
    PyObject *fields = unpack(raw);
    if (fields && !PyList_CheckExact(fields)) {
        Py_DECREF(fields);
        PyErr_SetString(PyExc_TypeError, "a tuple must be a packed array");
        return NULL;
    }
    return fields;
}

PyObject *native_unpack(PyObject *module, PyObject *raw)
{
    return unpack(raw);
}
