/* Packed values put together: responses, rows of the log, and a row of which one field is assigned. The twins of
 * functions in protocol/response.py, server/calls.py, storage/xlog/encoder.py, storage/wal.py and
 * box/update/execute.py.
 */
#include "native.h"

#define RESPONSE_HEAD 35

/* What a response with DATA begins with; `size` is that of the values. */
static void put_response_head(uint8_t *at, uint64_t sync, uint32_t version, uint32_t count, Py_ssize_t size)
{
    at[0] = 0xce;
    put_big_endian(at + 1, (uint64_t)(RESPONSE_HEAD - 5 + size), 4);
    memcpy(at + 5, "\x83\x00\xce\x00\x00\x00\x00\x01\xcf", 9);
    put_big_endian(at + 14, sync, 8);
    memcpy(at + 22, "\x05\xce", 2);
    put_big_endian(at + 24, version, 4);
    memcpy(at + 28, "\x81\x30\xdd", 3);
    put_big_endian(at + 31, count, 4);
}

/* The numbers of a response. Returns 0 where they are none, or too large. */
static int read_numbers(PyObject *const *args, uint64_t *sync, uint32_t *version)
{
    if (!PyLong_CheckExact(args[0]) || !PyLong_CheckExact(args[1]))
        return 0;
    *sync = PyLong_AsUnsignedLongLong(args[0]);
    unsigned long long number = PyErr_Occurred() ? 0 : PyLong_AsUnsignedLongLong(args[1]);
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    *version = (uint32_t)number;
    return number <= UINT32_MAX;
}

/* encode_tuples(sync, schema_version, raws) */
FUNCTION(native_encode_tuples)
{
    uint64_t sync;
    uint32_t version;
    PyObject *response = NULL;
    if (count == 3 && (PyTuple_CheckExact(args[2]) || PyList_CheckExact(args[2]))
        && read_numbers(args, &sync, &version)) {
        Py_ssize_t rows = PySequence_Fast_GET_SIZE(args[2]), size = 0, place = 0;
        PyObject **raws = PySequence_Fast_ITEMS(args[2]);
        while (place < rows && PyBytes_CheckExact(raws[place]) && size < UINT32_MAX)
            size += PyBytes_GET_SIZE(raws[place++]);
        if (place == rows && size < UINT32_MAX - RESPONSE_HEAD) {
            response = PyBytes_FromStringAndSize(NULL, RESPONSE_HEAD + size);
            if (!response)
                return NULL;
            uint8_t *at = (uint8_t *)PyBytes_AS_STRING(response);
            put_response_head(at, sync, version, (uint32_t)rows, size);
            at += RESPONSE_HEAD;
            for (place = 0; place < rows; place++) {
                memcpy(at, PyBytes_AS_STRING(raws[place]), (size_t)PyBytes_GET_SIZE(raws[place]));
                at += PyBytes_GET_SIZE(raws[place]);
            }
            return response;
        }
    }
    return PyObject_Vectorcall(python_functions[PYTHON_ENCODE_TUPLES], args, (size_t)count, NULL);
}

static int write_result(Buffer *buffer, PyObject *result, uint32_t *values)
{
    *values = 0;
    if (result == Py_None)
        return 1;
    if (!PyTuple_Check(result)) {
        *values = 1;
        return write_value(buffer, result, 0);
    }
    if (!PyTuple_CheckExact(result) || PyTuple_GET_SIZE(result) > UINT32_MAX)
        return 0;
    int done = 1;
    for (; done == 1 && *values < PyTuple_GET_SIZE(result); (*values)++)
        done = write_value(buffer, PyTuple_GET_ITEM(result, *values), 0);
    return done;
}

/* encode_result(sync, schema_version, result) */
FUNCTION(native_encode_result)
{
    uint64_t sync;
    uint32_t version, values;
    if (count == 3 && read_numbers(args, &sync, &version)) {
        Buffer buffer;
        buffer_init(&buffer);
        PyObject *response = NULL;
        int done = buffer_grow(&buffer, RESPONSE_HEAD) ? write_result(&buffer, args[2], &values) : -1;
        if (buffer.size >= UINT32_MAX)
            done = 0;
        if (done > 0) {
            put_response_head(buffer.data, sync, version, values, buffer.size - RESPONSE_HEAD);
            response = PyBytes_FromStringAndSize((const char *)buffer.data, buffer.size);
        }
        buffer_free(&buffer);
        if (done)
            return response;
    }
    return PyObject_Vectorcall(python_functions[PYTHON_ENCODE_RESULT], args, (size_t)count, NULL);
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
    Buffer buffer;
    buffer_init(&buffer); /* which has room for all but the row */
    memcpy(buffer_grow(&buffer, 2), "\x84\x00", 2);
    write_unsigned(&buffer, numbers[0]);
    *buffer_grow(&buffer, 1) = 0x02;
    write_unsigned(&buffer, numbers[1]);
    *buffer_grow(&buffer, 1) = 0x03;
    write_unsigned(&buffer, numbers[2]);
    uint64_t bits;
    memcpy(&bits, &timestamp, sizeof bits);
    memcpy(buffer_grow(&buffer, 2), "\x04\xcb", 2);
    put_big_endian(buffer_grow(&buffer, 8), bits, 8);
    memcpy(buffer_grow(&buffer, 2), "\x82\x10", 2);
    write_unsigned(&buffer, numbers[4]);
    *buffer_grow(&buffer, 1) = numbers[0] == 5 ? 0x20 : 0x21; /* DELETE has a key, the others a tuple */
    Py_ssize_t size = PyBytes_GET_SIZE(args[5]);
    PyObject *row = PyBytes_FromStringAndSize(NULL, buffer.size + size);
    if (row) {
        memcpy(PyBytes_AS_STRING(row), buffer.data, (size_t)buffer.size);
        memcpy(PyBytes_AS_STRING(row) + buffer.size, PyBytes_AS_STRING(args[5]), (size_t)size);
    }
    buffer_free(&buffer);
    return row;
}

/* assign(field_no, value, raw): the row with another value in a field; None where that needs a closer look */
FUNCTION(native_assign)
{
    if (count != 3 || !PyBytes_CheckExact(args[1]) || !PyBytes_CheckExact(args[2])) {
        PyErr_SetString(PyExc_TypeError, "assign() takes a field's number, a packed value and a row");
        return NULL;
    }
    Py_ssize_t field_no = PyLong_AsSsize_t(args[0]), added = PyBytes_GET_SIZE(args[1]);
    if (field_no == -1 && PyErr_Occurred())
        return NULL;
    Position row = (Position)PyBytes_AS_STRING(args[2]), end = row + PyBytes_GET_SIZE(args[2]);
    if (row >= end || (*row & 0xf0) != 0x90 || field_no < 0 || field_no >= (*row & 0x0f))
        Py_RETURN_NONE;
    Position at = row + 1;
    for (Py_ssize_t place = 0; place < field_no; place++)
        if (!skip_value(&at, end, 1))
            Py_RETURN_NONE;
    Position after = at;
    if (!skip_value(&after, end, 1))
        Py_RETURN_NONE;
    PyObject *changed = PyBytes_FromStringAndSize(NULL, (at - row) + added + (end - after));
    if (changed) {
        char *into = PyBytes_AS_STRING(changed);
        memcpy(into, row, (size_t)(at - row));
        memcpy(into + (at - row), PyBytes_AS_STRING(args[1]), (size_t)added);
        memcpy(into + (at - row) + added, after, (size_t)(end - after));
    }
    return changed;
}

/* first_key(row): the first field, as the array of a key */
FUNCTION(native_first_key)
{
    if (count != 1 || !PyBytes_CheckExact(args[0])) {
        PyErr_SetString(PyExc_TypeError, "first_key() takes a row");
        return NULL;
    }
    Position row = (Position)PyBytes_AS_STRING(args[0]), end = row + PyBytes_GET_SIZE(args[0]);
    if (row < end && *row > 0x90 && *row <= 0x9f) {
        Position after = row + 1;
        if (skip_value(&after, end, 1)) {
            PyObject *key = PyBytes_FromStringAndSize((const char *)row, after - row);
            if (key)
                PyBytes_AS_STRING(key)[0] = (char)0x91;
            return key;
        }
    }
    return PyObject_CallOneArg(python_functions[PYTHON_FIRST_KEY], args[0]);
}
