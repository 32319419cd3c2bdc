/* The twin of Tuple.transform: a copy of a tuple with some fields replaced by others. Nothing of it is decoded. */
#include "../native.h"

#include "../../engine/core/msgpack.h"

static int append(Buffer *buffer, Position from, Position to)
{
    uint8_t *at = buffer_grow(buffer, to - from);
    if (at)
        memcpy(at, from, (size_t)(to - from));
    return at ? 0 : -1;
}

static int append_value(Buffer *buffer, PyObject *value)
{
    int done = write_value(buffer, value, 1);
    if (done)
        return done < 0 ? -1 : 0;
    PyObject *packed = PyObject_CallOneArg(python_functions[PYTHON_PACK], value);
    Position at = packed ? (Position)PyBytes_AS_STRING(packed) : NULL;
    int failed = !packed || append(buffer, at, at + PyBytes_GET_SIZE(packed)) < 0;
    Py_XDECREF(packed);
    return failed ? -1 : 0;
}

static int append_header(Buffer *buffer, Py_ssize_t count)
{
    int width = count < 16 ? 0 : count <= UINT16_MAX ? 2 : 4;
    uint8_t *at = buffer_grow(buffer, 1 + width);
    if (!at)
        return -1;
    at[0] = (uint8_t)(width == 0 ? 0x90 | count : width == 2 ? 0xdc : 0xdd);
    put_big_endian(at + 1, (uint64_t)count, width);
    return 0;
}

/* The position behind some fields; NULL with an exception. */
static Position behind(TupleObject *self, Position at, Position end, Py_ssize_t count)
{
    while (at && count--)
        at = msgpack_skip(at, end);
    if (!at && tuple_fields(self))
        PyErr_SetString(PyExc_ValueError, "the tuple is damaged");
    return at;
}

static PyObject *transformed(TupleObject *self, Py_ssize_t start, Py_ssize_t removed, PyObject *const *values,
                             Py_ssize_t added)
{
    Position first = (Position)PyBytes_AS_STRING(self->base.raw), end = first + PyBytes_GET_SIZE(self->base.raw);
    uint32_t count = 0;
    Position fields = behind(self, msgpack_array(first, end, &count), end, 0), from = fields, to = fields;
    if (!fields)
        return NULL;
    if (start < 0 || removed < 0 || start > (Py_ssize_t)count || removed > (Py_ssize_t)count - start)
        return PyErr_Format(PyExc_IndexError, "a tuple of %u fields has no %zd fields from %zd on", count, removed, start);
    if (!(from = behind(self, fields, end, start)) || !(to = behind(self, from, end, removed)))
        return NULL;
    Buffer buffer;
    buffer_init(&buffer);
    int failed = append_header(&buffer, (Py_ssize_t)count - removed + added) < 0 || append(&buffer, fields, from) < 0;
    for (Py_ssize_t place = 0; !failed && place < added; place++)
        failed = append_value(&buffer, values[place]) < 0;
    failed = failed || append(&buffer, to, end) < 0;
    PyObject *raw = failed ? NULL : PyBytes_FromStringAndSize((const char *)buffer.data, buffer.size), *copy = NULL;
    buffer_free(&buffer);
    if (raw)
        copy = stored_tuple(raw, added == removed ? self->format : Py_None);
    Py_XDECREF(raw);
    return copy;
}

PyObject *tuple_transform(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (count < 2) {
        PyErr_SetString(PyExc_TypeError, "transform() takes the number of a field, how many to replace, and values");
        return NULL;
    }
    Py_ssize_t start = PyNumber_AsSsize_t(args[0], PyExc_IndexError);
    Py_ssize_t removed = start == -1 && PyErr_Occurred() ? -1 : PyNumber_AsSsize_t(args[1], PyExc_IndexError);
    return PyErr_Occurred() ? NULL : transformed((TupleObject *)self, start, removed, args + 2, count - 2);
}
