/* From results to the bytes of responses.
 *
 * Every response has a length of 5 bytes and a header of 23, whatever the numbers in them: some clients read the fields
 * at fixed places, because Tarantool writes them so.
 *
 *     0  ce LENGTH(4)  83  00 ce STATUS(4)  01 cf SYNC(8)  05 ce SCHEMA_VERSION(4)  28: BODY
 */
#include "../native.h"

enum {
    LENGTH = 5, HEAD = 28,   /* the length; the length and the header */
    DATA_HEAD = HEAD + 7,    /* the same with what is in front of the values of DATA: 81 30 dd COUNT(4) */
};

/* What a response begins with; `size` is that of its body. */
static void put_head(uint8_t *at, uint32_t status, uint64_t sync, uint32_t version, Py_ssize_t size)
{
    at[0] = FRAME_U32;
    put_big_endian(at + 1, (uint64_t)(HEAD - LENGTH + size), 4);
    memcpy(at + 5, "\x83\x00\xce", 3);
    put_big_endian(at + 8, status, 4);
    memcpy(at + 12, "\x01\xcf", 2);
    put_big_endian(at + 14, sync, 8);
    memcpy(at + 22, "\x05\xce", 2);
    put_big_endian(at + 24, version, 4);
}

/* What a response with DATA begins with; `size` is that of the values. */
static void put_data_head(uint8_t *at, uint64_t sync, uint32_t version, uint32_t count, Py_ssize_t size)
{
    put_head(at, 0, sync, version, DATA_HEAD - HEAD + size);
    memcpy(at + HEAD, "\x81\x30\xdd", 3);
    put_big_endian(at + HEAD + 3, count, 4);
}

/* -- into buffers. They return -1 with an exception; what was appended until then has to be cut off -- */

static int too_large(void)
{
    PyErr_SetString(PyExc_OverflowError, "the values do not fit into a response");
    return -1;
}

int write_ok(Buffer *buffer, uint64_t sync, uint32_t version)
{
    uint8_t *at = buffer_grow(buffer, HEAD + 1);
    if (!at)
        return -1;
    put_head(at, 0, sync, version, 1);
    at[HEAD] = 0x80;
    return 0;
}

/* Append the beginning of a response with DATA. Returns the position of its values; NULL with an exception. */
static uint8_t *open_data(Buffer *buffer, uint64_t sync, uint32_t version, Py_ssize_t count, Py_ssize_t size)
{
    if (size >= UINT32_MAX - DATA_HEAD || count > UINT32_MAX) {
        too_large();
        return NULL;
    }
    uint8_t *at = buffer_grow(buffer, DATA_HEAD + size);
    if (!at)
        return NULL;
    put_data_head(at, sync, version, (uint32_t)count, size);
    return at + DATA_HEAD;
}

int write_packed_rows(Buffer *buffer, uint64_t sync, uint32_t version, const PackedRow *rows, int count)
{
    size_t size = 0;
    for (int place = 0; place < count; place++)
        size += rows[place].size;
    uint8_t *at = open_data(buffer, sync, version, count, (Py_ssize_t)size);
    for (int place = 0; at && place < count; at += rows[place++].size)
        memcpy(at, rows[place].data, rows[place].size);
    return at ? 0 : -1;
}

int write_rows(Buffer *buffer, uint64_t sync, uint32_t version, PyObject *const *raws, Py_ssize_t count)
{
    Py_ssize_t size = 0, place = 0;
    for (; place < count && PyBytes_Check(raws[place]) && size < UINT32_MAX; place++)
        size += PyBytes_GET_SIZE(raws[place]);
    if (place < count && !PyBytes_Check(raws[place])) {
        PyErr_SetString(PyExc_TypeError, "packed values are bytes");
        return -1;
    }
    uint8_t *at = place < count ? (too_large(), NULL) : open_data(buffer, sync, version, count, size);
    for (place = 0; at && place < count; at += PyBytes_GET_SIZE(raws[place++]))
        memcpy(at, PyBytes_AS_STRING(raws[place]), (size_t)PyBytes_GET_SIZE(raws[place]));
    return at ? 0 : -1;
}

/* Append what a procedure has returned. Returns as `write_value`. */
static int write_values(Buffer *buffer, PyObject *result, uint32_t *count)
{
    *count = 0;
    if (result == Py_None)
        return 1;
    if (!PyTuple_Check(result)) {
        *count = 1;
        return write_value(buffer, result, 0);
    }
    if (PyTuple_GET_SIZE(result) > UINT32_MAX)
        return too_large();
    int done = 1;
    for (; done == 1 && *count < PyTuple_GET_SIZE(result); ++*count)
        done = write_value(buffer, PyTuple_GET_ITEM(result, *count), 0);
    return done;
}

int write_result(Buffer *buffer, uint64_t sync, uint32_t version, PyObject *result)
{
    Py_ssize_t start = buffer->size;
    uint32_t count;
    int done = buffer_grow(buffer, DATA_HEAD) ? write_values(buffer, result, &count) : -1;
    Py_ssize_t size = buffer->size - start;
    if (done > 0 && size >= UINT32_MAX)
        done = too_large();
    if (done > 0)
        put_data_head(buffer->data + start, sync, version, count, size - DATA_HEAD);
    else
        buffer->size = start;
    return done;
}

PyObject *pack_values(PyObject *result)
{
    PyObject *values = PyTuple_Check(result) ? PySequence_List(result) : PyList_New(0);
    if (values && result != Py_None && !PyTuple_Check(result) && PyList_Append(values, result) < 0)
        Py_CLEAR(values);
    for (Py_ssize_t place = 0; values && place < PyList_GET_SIZE(values); place++) {
        PyObject *packed = pack(PyList_GET_ITEM(values, place));
        if (!packed || PyList_SetItem(values, place, packed) < 0)
            Py_CLEAR(values);
    }
    return values;
}

/* -- for Python -- */

static int read_numbers(PyObject *const *args, uint64_t *sync, uint32_t *version)
{
    *sync = PyLong_AsUnsignedLongLong(args[0]);
    unsigned long long number = PyErr_Occurred() ? 0 : PyLong_AsUnsignedLongLong(args[1]);
    *version = (uint32_t)number;
    if (!PyErr_Occurred() && number > UINT32_MAX)
        PyErr_SetString(PyExc_OverflowError, "a schema version has 32 bits");
    return !PyErr_Occurred();
}

/* `raws` is a list or a tuple. */
static PyObject *encode_rows(uint64_t sync, uint32_t version, PyObject *raws)
{
    Buffer buffer;
    buffer_init(&buffer);
    if (write_rows(&buffer, sync, version, PySequence_Fast_ITEMS(raws), PySequence_Fast_GET_SIZE(raws)) == 0)
        return buffer_take(&buffer);
    buffer_free(&buffer);
    return NULL;
}

/* encode_tuples(sync, schema_version, raws) */
FUNCTION(native_encode_tuples)
{
    uint64_t sync;
    uint32_t version;
    if (count != 3)
        return PyErr_Format(PyExc_TypeError, "encode_tuples() takes two numbers and packed values");
    PyObject *raws = read_numbers(args, &sync, &version) ? PySequence_Fast(args[2], "packed values are a list") : NULL;
    if (!raws)
        return NULL;
    PyObject *response = encode_rows(sync, version, raws);
    Py_DECREF(raws);
    return response;
}

/* encode_result(sync, schema_version, result) */
FUNCTION(native_encode_result)
{
    uint64_t sync;
    uint32_t version;
    if (count != 3)
        return PyErr_Format(PyExc_TypeError, "encode_result() takes two numbers and a result");
    if (!read_numbers(args, &sync, &version))
        return NULL;
    Buffer buffer;
    buffer_init(&buffer);
    PyObject *response = write_result(&buffer, sync, version, args[2]) > 0 ? buffer_take(&buffer) : NULL;
    buffer_free(&buffer);
    return response;
}

/* encode_response(status, sync, schema_version, body) */
FUNCTION(native_encode_response)
{
    uint64_t sync;
    uint32_t version;
    if (count != 4 || !PyBytes_Check(args[3]))
        return PyErr_Format(PyExc_TypeError, "encode_response() takes three numbers and a packed map");
    unsigned long status = PyLong_AsUnsignedLong(args[0]);
    if (PyErr_Occurred() || !read_numbers(args + 1, &sync, &version))
        return NULL;
    Py_ssize_t size = PyBytes_GET_SIZE(args[3]);
    if (size > UINT32_MAX - HEAD)
        return too_large(), NULL;
    PyObject *response = PyBytes_FromStringAndSize(NULL, HEAD + size);
    if (response) {
        put_head((uint8_t *)PyBytes_AS_STRING(response), (uint32_t)status, sync, version, size);
        memcpy(PyBytes_AS_STRING(response) + HEAD, PyBytes_AS_STRING(args[3]), (size_t)size);
    }
    return response;
}
