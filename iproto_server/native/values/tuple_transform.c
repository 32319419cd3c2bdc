/* Tuple.transform: a copy of a tuple with some fields replaced by others. Nothing of it is decoded. */
#include "../native.h"

/* The position behind some fields; NULL with an exception. */
static Position behind(Position at, Position end, Py_ssize_t count)
{
    while (at && count--)
        at = msgpack_skip(at, end);
    if (!at)
        raise_box_error("INVALID_MSGPACK", "s", "malformed array");
    return at;
}

/* The packed fields, of which some from `start` on give way to others; NULL with an exception. */
static PyObject *changed(PyObject *raw, Py_ssize_t start, Py_ssize_t removed, PyObject *const *values, Py_ssize_t added)
{
    Position first = (Position)PyBytes_AS_STRING(raw), end = first + PyBytes_GET_SIZE(raw);
    uint32_t count = 0;
    Position fields = behind(msgpack_array(first, end, &count), end, 0), from, to;
    if (!fields)
        return NULL;
    if (start < 0 || removed < 0 || start > (Py_ssize_t)count || removed > (Py_ssize_t)count - start)
        return PyErr_Format(PyExc_IndexError, "a tuple of %u fields has no %zd fields from %zd on", count, removed, start);
    if (!(from = behind(fields, end, start)) || !(to = behind(from, end, removed)))
        return NULL;
    Buffer buffer;
    buffer_init(&buffer);
    int done = write_array_header(&buffer, (uint64_t)count - (uint64_t)removed + (uint64_t)added);
    if (done == 1)
        done = buffer_append(&buffer, fields, from - fields);
    for (Py_ssize_t place = 0; done == 1 && place < added; place++)
        done = write_value(&buffer, values[place], 1);
    if (done == 1)
        done = buffer_append(&buffer, to, end - to);
    PyObject *packed = done == 1 ? buffer_take(&buffer) : NULL;
    buffer_free(&buffer);
    return packed;
}

PyObject *tuple_transform(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (count < 2) {
        PyErr_SetString(PyExc_TypeError, "transform() takes the number of a field, how many to replace, and values");
        return NULL;
    }
    Py_ssize_t start = PyNumber_AsSsize_t(args[0], PyExc_IndexError);
    Py_ssize_t removed = start == -1 && PyErr_Occurred() ? -1 : PyNumber_AsSsize_t(args[1], PyExc_IndexError);
    if (PyErr_Occurred())
        return NULL;
    Py_ssize_t added = count - 2;
    PyObject *old = Py_NewRef(((RawObject *)self)->raw), *raw = changed(old, start, removed, args + 2, added);
    PyObject *copy = raw ? stored_tuple(raw, added == removed ? ((TupleObject *)self)->format : Py_None) : NULL;
    Py_XDECREF(raw);
    Py_DECREF(old);
    return copy;
}
