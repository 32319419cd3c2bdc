/* Packing: from Python's values to MessagePack.
 *
 * Writing a value runs Python code only for extension types, subclasses of containers, and errors; and not at all if the
 * buffer is shared.
 */
#include "../native.h"

int refuse_value(Buffer *buffer, const char *code, const char *text)
{
    if (buffer->is_shared)
        return 0;
    raise_box_error(code, "s", text);
    return -1;
}

int refuse_size(Buffer *buffer)
{
    return refuse_value(buffer, "PROC_LUA", "a value that is nested too deep or is too large cannot be packed");
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

static int write_by_python(Buffer *buffer, PyObject *value, int depth);

int write_negative(Buffer *buffer, int64_t value)
{
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

/* Write an integer that is not from 0 to 2^63 - 1. */
static int write_other_integer(Buffer *buffer, PyObject *number, int depth)
{
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
    if (!overflow)
        return write_negative(buffer, value);
    unsigned long long large = overflow > 0 ? PyLong_AsUnsignedLongLong(number) : (unsigned long long)-1;
    if (overflow < 0 || (large == (unsigned long long)-1 && PyErr_Occurred())) {
        PyErr_Clear();
        return write_by_python(buffer, number, depth); /* which refuses it */
    }
    return write_unsigned(buffer, large);
}

static inline int write_integer(Buffer *buffer, PyObject *number, int depth)
{
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
    if (value < 0 || overflow)
        return write_other_integer(buffer, number, depth);
    uint8_t *at = buffer_grow(buffer, UNSIGNED_SIZE_MAX);
    if (!at)
        return -1;
    buffer->size -= at + UNSIGNED_SIZE_MAX - put_unsigned(at, (uint64_t)value);
    return 1;
}

int write_float(Buffer *buffer, double number)
{
    uint8_t *at = buffer_grow(buffer, 9);
    if (!at)
        return -1;
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    bits = big_endian_64(bits);
    at[0] = 0xcb;
    memcpy(at + 1, &bits, sizeof bits);
    return 1;
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
    return refuse_size(buffer);
}

int write_map_header(Buffer *buffer, uint64_t pairs)
{
    return write_size(buffer, pairs, 0x80, 0x0f, 0, 0xde);
}

int write_array_header(Buffer *buffer, uint64_t count)
{
    return write_size(buffer, count, 0x90, 0x0f, 0, 0xdc);
}

static int write_bytes(Buffer *buffer, const void *data, Py_ssize_t size)
{
    int done = write_size(buffer, (uint64_t)size, 0, 0, 0xc4, 0xc5);
    return done == 1 ? buffer_append(buffer, data, size) : done;
}

int write_string(Buffer *buffer, const void *data, Py_ssize_t size)
{
    int done = write_size(buffer, (uint64_t)size, 0xa0, 0x1f, 0xd9, 0xda);
    return done == 1 ? buffer_append(buffer, data, size) : done;
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
        return write_string(buffer, PyUnicode_1BYTE_DATA(text), size);
    }
    PyObject *encoded = PyUnicode_AsEncodedString(text, "utf-8", "surrogateescape");
    if (!encoded) {
        if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError))
            return -1;
        PyErr_Clear();
        return refuse_value(buffer, "PROC_LUA", "a string that has no UTF-8 form cannot be packed");
    }
    int done = write_string(buffer, PyBytes_AS_STRING(encoded), PyBytes_GET_SIZE(encoded));
    Py_DECREF(encoded);
    return done;
}

/* The packing of an element has changed the container, of which the number of elements is written already. */
static int has_changed(void)
{
    PyErr_SetString(PyExc_RuntimeError, "a container changed while it was packed");
    return -1;
}

/* These write the elements of a container. It is held meanwhile, and so is each element that runs Python code, for as
 * long as it does. */

static int write_tuple(Buffer *buffer, PyObject *tuple, int depth)
{
    Py_ssize_t count = PyTuple_GET_SIZE(tuple);
    if (count && depth >= MSGPACK_DEPTH_MAX)
        return refuse_size(buffer);
    int done = write_array_header(buffer, (uint64_t)count);
    Py_INCREF(tuple);
    for (Py_ssize_t place = 0; done == 1 && place < count; place++)
        done = write_value(buffer, PyTuple_GET_ITEM(tuple, place), depth + 1);
    Py_DECREF(tuple);
    return done;
}

static int write_list(Buffer *buffer, PyObject *list, int depth)
{
    Py_ssize_t count = PyList_GET_SIZE(list), place = 0;
    if (count && depth >= MSGPACK_DEPTH_MAX)
        return refuse_size(buffer);
    int done = write_array_header(buffer, (uint64_t)count);
    Py_INCREF(list);
    for (; done == 1 && place < PyList_GET_SIZE(list); place++)
        done = write_value(buffer, PyList_GET_ITEM(list, place), depth + 1);
    if (done == 1 && (place != count || PyList_GET_SIZE(list) != count))
        done = has_changed();
    Py_DECREF(list);
    return done;
}

static int write_pair(Buffer *buffer, PyObject *key, PyObject *value, int depth)
{
    if (PyUnicode_CheckExact(key) || PyLong_CheckExact(key)) {
        int done = write_value(buffer, key, depth);
        return done == 1 ? write_value(buffer, value, depth) : done;
    }
    Py_INCREF(value);
    int done = write_value(buffer, key, depth);
    if (done == 1)
        done = write_value(buffer, value, depth);
    Py_DECREF(value);
    return done;
}

static int write_dict(Buffer *buffer, PyObject *dict, int depth)
{
    Py_ssize_t count = PyDict_GET_SIZE(dict), pairs = 0, position = 0;
    if (count && depth >= MSGPACK_DEPTH_MAX)
        return refuse_size(buffer);
    int done = write_map_header(buffer, (uint64_t)count);
    PyObject *key, *value;
    Py_INCREF(dict);
    for (; done == 1 && pairs <= count && PyDict_Next(dict, &position, &key, &value); pairs++)
        done = write_pair(buffer, key, value, depth + 1);
    if (done == 1 && (pairs != count || PyDict_GET_SIZE(dict) != count))
        done = has_changed();
    Py_DECREF(dict);
    return done;
}

/* Write the pairs of a subclass of dict, as its method `items` has them. */
static int write_mapping(Buffer *buffer, PyObject *mapping, int depth)
{
    PyObject *pairs = PyMapping_Items(mapping);
    Py_ssize_t count = pairs ? PyList_GET_SIZE(pairs) : 0;
    int done = pairs ? write_map_header(buffer, (uint64_t)count) : -1;
    if (count && depth >= MSGPACK_DEPTH_MAX)
        done = refuse_size(buffer);
    for (Py_ssize_t place = 0; done == 1 && place < count; place++) {
        PyObject *pair = PyList_GET_ITEM(pairs, place);
        if (PyTuple_Check(pair) && PyTuple_GET_SIZE(pair) == 2) {
            done = write_pair(buffer, PyTuple_GET_ITEM(pair, 0), PyTuple_GET_ITEM(pair, 1), depth + 1);
        } else {
            PyErr_SetString(PyExc_TypeError, "the items of a dict must be pairs");
            done = -1;
        }
    }
    Py_XDECREF(pairs);
    return done;
}

/* Write the elements of a subclass of list or tuple, as iterating over it finds them. */
int write_sequence(Buffer *buffer, PyObject *sequence, int depth)
{
    PyObject *items = PySequence_List(sequence);
    int done = items ? write_list(buffer, items, depth) : -1;
    Py_XDECREF(items);
    return done;
}

static int write_buffer(Buffer *buffer, PyObject *value)
{
    Py_buffer view;
    if (PyObject_GetBuffer(value, &view, PyBUF_SIMPLE) < 0)
        return -1;
    int done = write_bytes(buffer, view.buf, view.len);
    PyBuffer_Release(&view);
    return done;
}

static int write_packed(Buffer *buffer, PyObject *value)
{
    PyObject *raw = ((RawObject *)value)->raw;
    return buffer_append(buffer, PyBytes_AS_STRING(raw), PyBytes_GET_SIZE(raw));
}

/* Write a value of another type. */
static int write_by_python(Buffer *buffer, PyObject *value, int depth)
{
    if (buffer->is_shared)
        return 0;
    Py_INCREF(value);
    int done = PyDict_Check(value)   ? write_mapping(buffer, value, depth)
               : PyList_Check(value) ? write_sequence(buffer, value, depth)
                                     : write_extension(buffer, value, depth);
    Py_DECREF(value);
    return done;
}

/* Write a value of another type, which may inherit from a plain one. */
static int write_other(Buffer *buffer, PyObject *value, int depth)
{
    if (PyObject_TypeCheck(value, &Raw_Type))
        return write_packed(buffer, value);
    if (PyUnicode_Check(value))
        return write_text(buffer, value);
    if (PyLong_Check(value))
        return write_integer(buffer, value, depth);
    if (PyFloat_Check(value))
        return write_float(buffer, PyFloat_AS_DOUBLE(value));
    if (PyBytes_Check(value) || PyByteArray_Check(value) || PyMemoryView_Check(value))
        return write_buffer(buffer, value);
    return write_by_python(buffer, value, depth);
}

int write_value(Buffer *buffer, PyObject *value, int depth)
{
    PyTypeObject *type = Py_TYPE(value);
    if (type == &PyUnicode_Type)
        return write_text(buffer, value);
    if (type == &PyLong_Type)
        return write_integer(buffer, value, depth);
    if (type == &Tuple_Type || type == &Raw_Type)
        return write_packed(buffer, value);
    if (type == &TupleMap_Type)
        return write_tuple_map(buffer, value);
    if (value == Py_None)
        return write_headed(buffer, 0xc0, 0, 0);
    if (type == &PyBool_Type)
        return write_headed(buffer, value == Py_True ? 0xc3 : 0xc2, 0, 0);
    if (type == &PyFloat_Type)
        return write_float(buffer, PyFloat_AS_DOUBLE(value));
    if (type == &PyDict_Type)
        return write_dict(buffer, value, depth);
    if (type == &PyList_Type)
        return write_list(buffer, value, depth);
    if (type == &PyTuple_Type)
        return write_tuple(buffer, value, depth);
    if (type == &PyBytes_Type)
        return write_bytes(buffer, PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value));
    return write_other(buffer, value, depth);
}

PyObject *pack(PyObject *value)
{
    if (PyObject_TypeCheck(value, &Raw_Type) && Py_TYPE(value) != &TupleMap_Type)
        return Py_NewRef(((RawObject *)value)->raw);
    Buffer buffer;
    buffer_init(&buffer);
    PyObject *packed = write_value(&buffer, value, 0) == 1 ? buffer_take(&buffer) : NULL;
    buffer_free(&buffer);
    return packed;
}

PyObject *native_pack(PyObject *module, PyObject *value)
{
    return pack(value);
}
