/* Extension types of MessagePack: the hooks that make their values and take them apart, both in Python. */
#include "../native.h"

enum { ERROR_EXTENSION = 3, HEAD_MAX = 6 };

/* -- from MessagePack -- */

int is_error_extension(int type)
{
    return type == ERROR_EXTENSION;
}

PyObject *decode_extension(int type, Position payload, Position end, PyObject *described)
{
    PyObject *decode = hook(HOOK_DECODE_EXTENSION), *number = decode ? PyLong_FromLong(type) : NULL;
    PyObject *bytes = number ? PyBytes_FromStringAndSize((const char *)payload, end - payload) : NULL, *value = NULL;
    if (bytes) {
        PyObject *args[] = {number, bytes, described};
        value = PyObject_Vectorcall(decode, args, 3, NULL);
    }
    Py_XDECREF(number);
    Py_XDECREF(bytes);
    return value;
}

/* -- to MessagePack -- */

/* Write the head of an extension to `at`, which has HEAD_MAX bytes. Returns how many it has; 0 if it is too large. */
static int put_head(uint8_t *at, int type, uint64_t size)
{
    int width = size < 0x100 ? 1 : size < 0x10000 ? 2 : 4;
    if (size > UINT32_MAX)
        return 0;
    if (size && size <= 16 && !(size & (size - 1))) {
        at[0] = (uint8_t)(0xd4 + __builtin_ctzll(size));
        width = 0;
    } else {
        at[0] = (uint8_t)(0xc7 + width / 2);
        put_big_endian(at + 1, size, width);
    }
    at[1 + width] = (uint8_t)type;
    return 2 + width;
}

/* Write a payload, which is packed if it is not bytes, and then its head in front of it. */
static int write_payload(Buffer *buffer, int type, PyObject *payload, int depth)
{
    Py_ssize_t start = buffer->size;
    if (!buffer_grow(buffer, HEAD_MAX))
        return -1;
    int done = PyBytes_Check(payload) ? buffer_append(buffer, PyBytes_AS_STRING(payload), PyBytes_GET_SIZE(payload))
                                      : write_value(buffer, payload, depth + 1);
    if (done != 1)
        return done;
    uint8_t head[HEAD_MAX];
    Py_ssize_t size = buffer->size - start - HEAD_MAX;
    int head_size = put_head(head, type, (uint64_t)size);
    if (!head_size)
        return refuse_size(buffer);
    uint8_t *at = buffer->data + start;
    memcpy(at, head, (size_t)head_size);
    memmove(at + head_size, at + HEAD_MAX, (size_t)size);
    buffer->size -= HEAD_MAX - head_size;
    return 1;
}

int write_extension(Buffer *buffer, PyObject *value, int depth)
{
    PyObject *encode = hook(HOOK_ENCODE_EXTENSION), *made = encode ? PyObject_CallOneArg(encode, value) : NULL;
    int done = -1, type;
    PyObject *payload;
    if (made == Py_None && PyTuple_Check(value))
        done = write_sequence(buffer, value, depth);
    else if (made && PyArg_Parse(made, "(iO)", &type, &payload)) {
        if (type < INT8_MIN || type > INT8_MAX)
            PyErr_Format(PyExc_ValueError, "there is no extension type %d", type);
        else
            done = write_payload(buffer, type, payload, depth);
    }
    Py_XDECREF(made);
    return done;
}
