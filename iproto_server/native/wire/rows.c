/* Packed values put together: responses and rows of the log. The twins of functions in protocol/response.py,
 * server/requests/call.py, storage/xlog/encoder.py and storage/wal.py.
 */
#include "../native.h"

#define HEADER 28 /* bytes of the length and the header of a response */
#define RESPONSE_HEAD (HEADER + 7)

/* What a response begins with; `size` is that of its body. */
static void put_header(uint8_t *at, uint64_t sync, uint32_t version, Py_ssize_t size)
{
    at[0] = 0xce;
    put_big_endian(at + 1, (uint64_t)(HEADER - 5 + size), 4);
    memcpy(at + 5, "\x83\x00\xce\x00\x00\x00\x00\x01\xcf", 9);
    put_big_endian(at + 14, sync, 8);
    memcpy(at + 22, "\x05\xce", 2);
    put_big_endian(at + 24, version, 4);
}

/* What a response with DATA begins with; `size` is that of the values. */
static void put_response_head(uint8_t *at, uint64_t sync, uint32_t version, uint32_t count, Py_ssize_t size)
{
    put_header(at, sync, version, RESPONSE_HEAD - HEADER + size);
    memcpy(at + HEADER, "\x81\x30\xdd", 3);
    put_big_endian(at + HEADER + 3, count, 4);
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

/* Append the beginning of a response with DATA; `at` becomes where its values go. 0 where these are too large. */
static int open_response(Buffer *buffer, uint64_t sync, uint32_t version, Py_ssize_t count, Py_ssize_t size,
                         uint8_t **at)
{
    if (size >= UINT32_MAX - RESPONSE_HEAD)
        return 0;
    uint8_t *head = buffer_grow(buffer, RESPONSE_HEAD + size);
    if (!head)
        return -1;
    put_response_head(head, sync, version, (uint32_t)count, size);
    *at = head + RESPONSE_HEAD;
    return 1;
}

int write_packed_rows(Buffer *buffer, uint64_t sync, uint32_t version, const PackedRow *rows, int count)
{
    size_t size = 0;
    for (int place = 0; place < count; place++)
        size += rows[place].size;
    uint8_t *at;
    int done = open_response(buffer, sync, version, count, (Py_ssize_t)size, &at);
    for (int place = 0; done > 0 && place < count; at += rows[place++].size)
        memcpy(at, rows[place].data, rows[place].size);
    return done;
}

/* 0 where these are not bytes, or too many. */
int write_rows(Buffer *buffer, uint64_t sync, uint32_t version, PyObject *const *raws, Py_ssize_t count)
{
    Py_ssize_t size = 0, place = 0;
    while (place < count && PyBytes_CheckExact(raws[place]) && size < UINT32_MAX)
        size += PyBytes_GET_SIZE(raws[place++]);
    if (place < count)
        return 0;
    uint8_t *at;
    int done = open_response(buffer, sync, version, count, size, &at);
    for (place = 0; done > 0 && place < count; place++) {
        memcpy(at, PyBytes_AS_STRING(raws[place]), (size_t)PyBytes_GET_SIZE(raws[place]));
        at += PyBytes_GET_SIZE(raws[place]);
    }
    return done;
}

/* encode_tuples(sync, schema_version, raws) */
FUNCTION(native_encode_tuples)
{
    uint64_t sync;
    uint32_t version;
    if (count == 3 && (PyTuple_CheckExact(args[2]) || PyList_CheckExact(args[2]))
        && read_numbers(args, &sync, &version)) {
        PyObject **raws = PySequence_Fast_ITEMS(args[2]);
        Buffer buffer;
        buffer_init(&buffer);
        int done = write_rows(&buffer, sync, version, raws, PySequence_Fast_GET_SIZE(args[2]));
        if (done)
            return done < 0 ? NULL : buffer_take(&buffer);
    }
    return PyObject_Vectorcall(python_functions[PYTHON_ENCODE_TUPLES], args, (size_t)count, NULL);
}

static int write_values(Buffer *buffer, PyObject *result, uint32_t *values)
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

int write_result(Buffer *buffer, uint64_t sync, uint32_t version, PyObject *result)
{
    Py_ssize_t start = buffer->size;
    uint32_t values;
    int done = buffer_grow(buffer, RESPONSE_HEAD) ? write_values(buffer, result, &values) : -1;
    Py_ssize_t size = buffer->size - start;
    if (done > 0 && size < UINT32_MAX) {
        put_response_head(buffer->data + start, sync, version, values, size - RESPONSE_HEAD);
        return 1;
    }
    buffer->size = start;
    return done < 0 ? -1 : 0;
}

/* encode_result(sync, schema_version, result) */
FUNCTION(native_encode_result)
{
    uint64_t sync;
    uint32_t version;
    if (count == 3 && read_numbers(args, &sync, &version)) {
        Buffer buffer;
        buffer_init(&buffer);
        int done = write_result(&buffer, sync, version, args[2]);
        PyObject *response = done > 0 ? buffer_take(&buffer) : NULL;
        buffer_free(&buffer);
        if (done)
            return response;
    }
    return PyObject_Vectorcall(python_functions[PYTHON_ENCODE_RESULT], args, (size_t)count, NULL);
}

/* The response without DATA. */
int write_ok(Buffer *buffer, uint64_t sync, uint32_t version)
{
    uint8_t *at = buffer_grow(buffer, HEADER + 1);
    if (!at)
        return -1;
    put_header(at, sync, version, 1);
    at[HEADER] = 0x80;
    return 1;
}

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
