/* Packed values put together to rows of the log: the twins of functions in storage/xlog/encoder.py and storage/wal.py. */
#include "../native.h"

uint8_t *put_change_head(uint8_t *at, uint64_t type, uint64_t replica_id, uint64_t lsn, double timestamp, uint64_t space)
{
    *at++ = 0x84;
    *at++ = 0x00;
    at = put_unsigned(at, type);
    *at++ = 0x02;
    at = put_unsigned(at, replica_id);
    *at++ = 0x03;
    at = put_unsigned(at, lsn);
    uint64_t bits;
    memcpy(&bits, &timestamp, sizeof bits);
    memcpy(at, "\x04\xcb", 2);
    put_big_endian(at + 2, bits, 8);
    memcpy(at + 10, "\x82\x10", 2);
    at = put_unsigned(at + 12, space);
    *at++ = type == REQUEST_DELETE ? 0x20 : 0x21; /* DELETE has a key, the others a tuple */
    return at;
}

static PyObject *encode_change(const uint64_t *numbers, double timestamp, PyObject *raw)
{
    uint8_t head[CHANGE_HEAD_MAX];
    Py_ssize_t before = put_change_head(head, numbers[0], numbers[1], numbers[2], timestamp, numbers[4]) - head;
    PyObject *row = PyBytes_FromStringAndSize(NULL, before + PyBytes_GET_SIZE(raw));
    if (row) {
        memcpy(PyBytes_AS_STRING(row), head, (size_t)before);
        memcpy(PyBytes_AS_STRING(row) + before, PyBytes_AS_STRING(raw), (size_t)PyBytes_GET_SIZE(raw));
    }
    return row;
}

/* encode_change(request_type, replica_id, lsn, timestamp, space_id, raw): a transaction of one change */
FUNCTION(native_encode_change)
{
    if (count != 6) {
        PyErr_SetString(PyExc_TypeError, "encode_change() takes six arguments");
        return NULL;
    }
    uint64_t numbers[5] = {0};
    for (int place = 0; place < 5; place++)
        if (place != 3)
            numbers[place] = PyLong_AsUnsignedLongLong(args[place]);
    double timestamp = PyFloat_AsDouble(args[3]);
    if (PyErr_Occurred())
        return NULL;
    if (!PyBytes_CheckExact(args[5])) {
        PyErr_SetString(PyExc_TypeError, "a row is made of bytes");
        return NULL;
    }
    return encode_change(numbers, timestamp, args[5]);
}

/* with_head(marker, payload, crc): a block of a log */
FUNCTION(native_with_head)
{
    enum { MARKER = 4, HEAD = 19 };
    if (count != 3 || !PyBytes_CheckExact(args[0]) || PyBytes_GET_SIZE(args[0]) != MARKER
        || !PyBytes_CheckExact(args[1]))
        return PyErr_Format(PyExc_TypeError, "with_head() takes a marker, a payload and its checksum");
    unsigned long crc = PyLong_AsUnsignedLong(args[2]);
    if (PyErr_Occurred())
        return NULL;
    Py_ssize_t size = PyBytes_GET_SIZE(args[1]);
    PyObject *block = PyBytes_FromStringAndSize(NULL, HEAD + size);
    if (!block)
        return NULL;
    Buffer head;
    buffer_init(&head); /* which has room for it */
    memcpy(buffer_grow(&head, MARKER), PyBytes_AS_STRING(args[0]), MARKER);
    write_unsigned(&head, (uint64_t)size);
    *buffer_grow(&head, 1) = 0;
    write_unsigned(&head, crc);
    char *at = PyBytes_AS_STRING(block);
    memset(at, 0, HEAD);
    memcpy(at, head.data, (size_t)head.size);
    if (head.size < HEAD)
        at[head.size] = (char)(0xa0 + HEAD - head.size - 1);
    memcpy(at + HEAD, PyBytes_AS_STRING(args[1]), (size_t)size);
    return block;
}

PyObject *first_key(PyObject *row)
{
    Position start = (Position)PyBytes_AS_STRING(row), end = start + PyBytes_GET_SIZE(row), after = start + 1;
    if (start >= end || *start <= 0x90 || *start > 0x9f || !skip_value(&after, end, 1))
        return NULL;
    PyObject *key = PyBytes_FromStringAndSize((const char *)start, after - start);
    if (key)
        PyBytes_AS_STRING(key)[0] = (char)0x91;
    return key;
}

/* first_key(row): the first field, as the array of a key */
FUNCTION(native_first_key)
{
    if (count != 1 || !PyBytes_CheckExact(args[0])) {
        PyErr_SetString(PyExc_TypeError, "first_key() takes a row");
        return NULL;
    }
    PyObject *key = first_key(args[0]);
    return key || PyErr_Occurred() ? key : PyObject_CallOneArg(python_functions[PYTHON_FIRST_KEY], args[0]);
}
