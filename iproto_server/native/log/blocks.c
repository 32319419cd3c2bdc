/* The head of a block: a marker, the size of the payload behind the head, the checksum of the block before (always 0),
 * the checksum of the payload, and a string as padding.
 */
#include "../native.h"

#include <errno.h>

enum { PAYLOAD_MAX = INT32_MAX };

static const uint8_t plain_marker[] = "\xd5\xba\x0b\xab", zstd_marker[] = "\xd5\xba\x0b\xba";

int add_block_markers(PyObject *module)
{
    PyObject *plain = PyBytes_FromStringAndSize((const char *)plain_marker, BLOCK_MARKER_SIZE);
    PyObject *zstd = PyBytes_FromStringAndSize((const char *)zstd_marker, BLOCK_MARKER_SIZE);
    int failed = !plain || !zstd || PyModule_AddObjectRef(module, "PLAIN_MARKER", plain) < 0
        || PyModule_AddObjectRef(module, "ZSTD_MARKER", zstd) < 0;
    Py_XDECREF(plain);
    Py_XDECREF(zstd);
    return failed ? -1 : 0;
}

/* with_head(marker, payload, crc): a block */
FUNCTION(native_with_head)
{
    if (count != 3 || !PyBytes_CheckExact(args[0]) || PyBytes_GET_SIZE(args[0]) != BLOCK_MARKER_SIZE
        || !PyBytes_CheckExact(args[1]))
        return PyErr_Format(PyExc_TypeError, "with_head() takes a marker, a payload and its checksum");
    unsigned long crc = PyLong_AsUnsignedLong(args[2]);
    if (PyErr_Occurred())
        return NULL;
    if (crc > UINT32_MAX)
        return PyErr_Format(PyExc_OverflowError, "a checksum has 32 bits");
    Py_ssize_t size = PyBytes_GET_SIZE(args[1]);
    if (size > PAYLOAD_MAX) {
        errno = EFBIG; /* no reader would take it */
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    PyObject *block = PyBytes_FromStringAndSize(NULL, BLOCK_HEAD_SIZE + size);
    if (!block)
        return NULL;
    uint8_t *first = (uint8_t *)PyBytes_AS_STRING(block), *end = first + BLOCK_HEAD_SIZE;
    memcpy(first, PyBytes_AS_STRING(args[0]), BLOCK_MARKER_SIZE);
    uint8_t *at = put_unsigned(first + BLOCK_MARKER_SIZE, (uint64_t)size);
    *at++ = 0;
    at = put_unsigned(at, crc);
    memset(at, 0, (size_t)(end - at));
    *at = (uint8_t)(0xa0 + (end - at - 1));
    memcpy(end, PyBytes_AS_STRING(args[1]), (size_t)size);
    return block;
}

static PyObject *malformed(void)
{
    PyErr_SetString(PyExc_ValueError, "malformed head of a block");
    return NULL;
}

/* decode_head(head): whether the rows are compressed, their size, and their checksum */
FUNCTION(native_decode_head)
{
    if (count != 1 || !PyBytes_CheckExact(args[0]) || PyBytes_GET_SIZE(args[0]) != BLOCK_HEAD_SIZE)
        return PyErr_Format(PyExc_TypeError, "decode_head() takes %d bytes", BLOCK_HEAD_SIZE);
    Position at = (Position)PyBytes_AS_STRING(args[0]), end = at + BLOCK_HEAD_SIZE;
    int is_compressed = !memcmp(at, zstd_marker, BLOCK_MARKER_SIZE);
    if (!is_compressed && memcmp(at, plain_marker, BLOCK_MARKER_SIZE))
        return PyErr_Format(PyExc_ValueError, "no block: unknown marker %02x%02x%02x%02x", at[0], at[1], at[2], at[3]);
    uint64_t size, crc;
    at += BLOCK_MARKER_SIZE;
    if (!read_unsigned(&at, end, &size) || !read_unsigned(&at, end, &crc) || !read_unsigned(&at, end, &crc))
        return malformed();
    if (at < end && (!skip_value(&at, end, 0) || at < end))
        return malformed();
    if (size > PAYLOAD_MAX)
        return PyErr_Format(PyExc_ValueError, "a block of %llu bytes is too large", (unsigned long long)size);
    return Py_BuildValue("OKK", is_compressed ? Py_True : Py_False, (unsigned long long)size, (unsigned long long)crc);
}
