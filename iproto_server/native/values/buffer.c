/* Buffers: bytes that grow as they are written. */
#include "values.h"

void buffer_init(Buffer *buffer)
{
    buffer->data = buffer->first;
    buffer->size = 0;
    buffer->room = sizeof buffer->first;
    buffer->bytes = NULL;
    buffer->is_shared = 0;
}

void buffer_free(Buffer *buffer)
{
    Py_CLEAR(buffer->bytes);
}

/* Let the buffer have room for so many bytes. Returns 0; -1 with an exception, and nothing has changed. */
int buffer_reserve(Buffer *buffer, Py_ssize_t room)
{
    if (room <= buffer->room)
        return 0;
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, room);
    if (!bytes)
        return -1;
    memcpy(PyBytes_AS_STRING(bytes), buffer->data, (size_t)buffer->size);
    Py_XSETREF(buffer->bytes, bytes);
    buffer->data = (uint8_t *)PyBytes_AS_STRING(bytes);
    buffer->room = room;
    return 0;
}

void buffer_hold(Buffer *buffer, PyObject *bytes)
{
    Py_XSETREF(buffer->bytes, Py_NewRef(bytes));
    buffer->data = (uint8_t *)PyBytes_AS_STRING(bytes);
    buffer->size = buffer->room = PyBytes_GET_SIZE(bytes);
}

/* What was written, as bytes, which are copied only if there are few. The buffer is empty then, also if that fails. */
PyObject *buffer_take(Buffer *buffer)
{
    PyObject *bytes = buffer->bytes;
    if (!bytes)
        bytes = PyBytes_FromStringAndSize((const char *)buffer->data, buffer->size);
    else if (PyBytes_GET_SIZE(bytes) != buffer->size)
        _PyBytes_Resize(&bytes, buffer->size);
    char is_shared = buffer->is_shared;
    buffer_init(buffer);
    buffer->is_shared = is_shared;
    return bytes;
}

int buffer_make_room(Buffer *buffer, Py_ssize_t count)
{
    if (count > PY_SSIZE_T_MAX / 4 - buffer->size) {
        PyErr_NoMemory();
        return -1;
    }
    return buffer_reserve(buffer, 2 * (buffer->size + count));
}

int buffer_insert(Buffer *buffer, Py_ssize_t at, Py_ssize_t count)
{
    if (!buffer_grow(buffer, count))
        return -1;
    memmove(buffer->data + at + count, buffer->data + at, (size_t)(buffer->size - count - at));
    return 1;
}
