/* From Python's values to MessagePack: the twin of codec.pack.
 *
 * Unknown, and left to Python: subclasses of the plain types, what needs an extension type, what is nested deep,
 * and all that has no MessagePack form.
 */
#include "../native.h"

void buffer_init(Buffer *buffer)
{
    buffer->data = buffer->first;
    buffer->size = 0;
    buffer->room = sizeof buffer->first;
    buffer->bytes = NULL;
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
    buffer_init(buffer);
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

static int write_headed(Buffer *buffer, uint8_t first, uint64_t value, int width)
{
    uint8_t *at = buffer_grow(buffer, 1 + width);
    if (!at)
        return -1;
    at[0] = first;
    put_big_endian(at + 1, value, width);
    return 1;
}

int write_unsigned(Buffer *buffer, uint64_t value)
{
    uint8_t *at = buffer_grow(buffer, UNSIGNED_SIZE_MAX);
    if (!at)
        return -1;
    buffer->size -= at + UNSIGNED_SIZE_MAX - put_unsigned(at, value);
    return 1;
}

static int write_integer(Buffer *buffer, PyObject *number)
{
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
    if (overflow > 0) {
        unsigned long long large = PyLong_AsUnsignedLongLong(number);
        if (large == (unsigned long long)-1 && PyErr_Occurred()) {
            PyErr_Clear();
            return 0;
        }
        return write_unsigned(buffer, large);
    }
    if (overflow < 0)
        return 0;
    if (value >= 0)
        return write_unsigned(buffer, (uint64_t)value);
    if (value >= -0x20)
        return write_headed(buffer, (uint8_t)value, 0, 0);
    if (value >= -0x80)
        return write_headed(buffer, 0xd0, (uint64_t)value, 1);
    if (value >= -0x8000)
        return write_headed(buffer, 0xd1, (uint64_t)value, 2);
    if (value >= -0x80000000LL)
        return write_headed(buffer, 0xd2, (uint64_t)value, 4);
    return write_headed(buffer, 0xd3, (uint64_t)value, 8);
}

/* `small` is the first byte for a size of 0, `small_max` the largest that it tells; `wide` that for one byte, or 0. */
static int write_size(Buffer *buffer, uint64_t size, uint8_t small, uint64_t small_max, uint8_t wide, uint8_t wider)
{
    if (small && size <= small_max)
        return write_headed(buffer, (uint8_t)(small + size), 0, 0);
    if (wide && size < 0x100)
        return write_headed(buffer, wide, size, 1);
    if (size < 0x10000)
        return write_headed(buffer, wider, size, 2);
    if (size < 0x100000000)
        return write_headed(buffer, wider + 1, size, 4);
    return 0;
}

int write_map_header(Buffer *buffer, uint64_t pairs)
{
    return write_size(buffer, pairs, 0x80, 0x0f, 0, 0xde);
}

static int write_copy(Buffer *buffer, const void *data, Py_ssize_t size)
{
    uint8_t *at = buffer_grow(buffer, size);
    if (!at)
        return -1;
    memcpy(at, data, (size_t)size);
    return 1;
}

static int write_short_text(Buffer *buffer, PyObject *text, Py_ssize_t size)
{
    uint8_t *at = buffer_grow(buffer, 1 + size);
    if (!at)
        return -1;
    *at = (uint8_t)(0xa0 + size);
    memcpy(at + 1, PyUnicode_1BYTE_DATA(text), (size_t)size);
    return 1;
}

static int write_text(Buffer *buffer, PyObject *text)
{
    if (PyUnicode_IS_COMPACT_ASCII(text)) {
        Py_ssize_t size = PyUnicode_GET_LENGTH(text);
        if (size < 0x20)
            return write_short_text(buffer, text, size);
        int done = write_size(buffer, (uint64_t)size, 0xa0, 0x1f, 0xd9, 0xda);
        return done == 1 ? write_copy(buffer, PyUnicode_1BYTE_DATA(text), size) : done;
    }
    PyObject *encoded = PyUnicode_AsEncodedString(text, "utf-8", "surrogateescape");
    if (!encoded) {
        PyErr_Clear(); /* Python has words for it */
        return 0;
    }
    Py_ssize_t size = PyBytes_GET_SIZE(encoded);
    int done = write_size(buffer, (uint64_t)size, 0xa0, 0x1f, 0xd9, 0xda);
    if (done == 1)
        done = write_copy(buffer, PyBytes_AS_STRING(encoded), size);
    Py_DECREF(encoded);
    return done;
}

static int write_items(Buffer *buffer, PyObject *const *items, Py_ssize_t count, int depth)
{
    int done = write_size(buffer, (uint64_t)count, 0x90, 0x0f, 0, 0xdc);
    /* Nothing that is written runs Python's code, so nothing can change meanwhile. */
    for (Py_ssize_t place = 0; done == 1 && place < count; place++)
        done = write_value(buffer, items[place], depth + 1);
    return done;
}

static int write_dict(Buffer *buffer, PyObject *dict, int depth)
{
    int done = write_map_header(buffer, (uint64_t)PyDict_GET_SIZE(dict));
    PyObject *key, *value;
    Py_ssize_t position = 0;
    while (done == 1 && PyDict_Next(dict, &position, &key, &value)) {
        done = write_value(buffer, key, depth + 1);
        if (done == 1)
            done = write_value(buffer, value, depth + 1);
    }
    return done;
}

/* Write a value. Returns 1; 0 where it is unknown, and the buffer holds a part of it; -1 with an exception. */
int write_value(Buffer *buffer, PyObject *value, int depth)
{
    PyTypeObject *type = Py_TYPE(value);
    if (type == &PyUnicode_Type)
        return write_text(buffer, value);
    if (type == &PyLong_Type)
        return write_integer(buffer, value);
    if (type == &Tuple_Type || type == &Raw_Type) {
        PyObject *raw = ((RawObject *)value)->raw;
        return PyBytes_CheckExact(raw) ? write_copy(buffer, PyBytes_AS_STRING(raw), PyBytes_GET_SIZE(raw)) : 0;
    }
    if (type == &TupleMap_Type)
        return write_tuple_map(buffer, value);
    if (value == Py_None)
        return write_headed(buffer, 0xc0, 0, 0);
    if (type == &PyBool_Type)
        return write_headed(buffer, value == Py_True ? 0xc3 : 0xc2, 0, 0);
    if (type == &PyFloat_Type) {
        double number = PyFloat_AS_DOUBLE(value);
        uint64_t bits;
        memcpy(&bits, &number, sizeof bits);
        return write_headed(buffer, 0xcb, bits, 8);
    }
    if (type == &PyBytes_Type) {
        Py_ssize_t size = PyBytes_GET_SIZE(value);
        int done = write_size(buffer, (uint64_t)size, 0, 0, 0xc4, 0xc5);
        return done == 1 ? write_copy(buffer, PyBytes_AS_STRING(value), size) : done;
    }
    if (depth > DEEPEST)
        return 0;
    if (type == &PyDict_Type)
        return write_dict(buffer, value, depth);
    if (type == &PyList_Type)
        return write_items(buffer, ((PyListObject *)value)->ob_item, PyList_GET_SIZE(value), depth);
    if (type == &PyTuple_Type)
        return write_items(buffer, ((PyTupleObject *)value)->ob_item, PyTuple_GET_SIZE(value), depth);
    return 0;
}

FUNCTION(native_pack)
{
    if (count != 1) {
        PyErr_SetString(PyExc_TypeError, "pack() takes the value");
        return NULL;
    }
    PyObject *value = args[0];
    if (Py_TYPE(value) == &Tuple_Type || Py_TYPE(value) == &Raw_Type)
        return Py_NewRef(((RawObject *)value)->raw);
    Buffer buffer;
    buffer_init(&buffer);
    int done = write_value(&buffer, value, 0);
    PyObject *packed = NULL;
    if (done == 1)
        packed = buffer_take(&buffer);
    buffer_free(&buffer);
    return done ? packed : PyObject_CallOneArg(python_functions[PYTHON_PACK], value);
}
