/* Primary keys of rows, packed as DELETE takes them: an array of the values of the key's fields. */
#include "../native.h"

enum { SMALL_ARRAY = 15, ARRAY_HEAD_SIZE = 3 };

size_t find_key(const uint8_t *row, size_t size, const uint32_t *fields, int count, KeyValue *values)
{
    const uint8_t *end = row + size, *first, *at;
    uint32_t in_row, field = 0;
    size_t key_size = count <= SMALL_ARRAY ? 1 : ARRAY_HEAD_SIZE;
    if (!(at = first = msgpack_array(row, end, &in_row)))
        return 0;
    for (int part = 0; part < count; part++, field++) {
        if (fields[part] >= in_row)
            return 0;
        if (fields[part] < field) {
            at = first;
            field = 0;
        }
        for (; at && field < fields[part]; field++)
            at = msgpack_skip(at, end);
        const uint8_t *after = at ? msgpack_skip(at, end) : NULL;
        if (!after)
            return 0;
        values[part] = (KeyValue){at, (size_t)(after - at)};
        key_size += values[part].size;
        at = after;
    }
    return key_size;
}

void put_key(uint8_t *at, const KeyValue *values, int count)
{
    if (count <= SMALL_ARRAY) {
        *at++ = (uint8_t)(0x90 + count);
    } else {
        *at = 0xdc;
        put_big_endian(at + 1, (uint64_t)count, 2);
        at += ARRAY_HEAD_SIZE;
    }
    for (const KeyValue *value = values; value < values + count; at += value++->size)
        memcpy(at, value->data, value->size);
}

static PyObject *cut_key(PyObject *row, const uint32_t *fields, int count)
{
    KeyValue values[KEY_VALUES_MAX];
    size_t size = find_key((const uint8_t *)PyBytes_AS_STRING(row), (size_t)PyBytes_GET_SIZE(row), fields, count, values);
    if (!size)
        return PyErr_Format(PyExc_ValueError, "the row lacks fields of its primary key");
    PyObject *key = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    if (key)
        put_key((uint8_t *)PyBytes_AS_STRING(key), values, count);
    return key;
}

/* Returns how many; 0 if parts are inside fields; -1 with an exception. */
static int read_fields(PyObject *numbers, uint32_t *fields)
{
    if (!PyTuple_CheckExact(numbers) || PyTuple_GET_SIZE(numbers) > KEY_VALUES_MAX) {
        PyErr_SetString(PyExc_TypeError, "the numbers of an index's fields are a tuple");
        return -1;
    }
    int count = (int)PyTuple_GET_SIZE(numbers);
    for (int part = 0; part < count; part++)
        fields[part] = (uint32_t)PyLong_AsUnsignedLong(PyTuple_GET_ITEM(numbers, part));
    return PyErr_Occurred() ? -1 : count;
}

PyObject *packed_primary_key(PyObject *primary, PyObject *row)
{
    static PyObject *numbers_name, *key_name;
    if ((!numbers_name && !(numbers_name = PyUnicode_InternFromString("field_numbers")))
        || (!key_name && !(key_name = PyUnicode_InternFromString("packed_key"))))
        return NULL;
    uint32_t fields[KEY_VALUES_MAX];
    PyObject *numbers = PyObject_GetAttr(primary, numbers_name);
    int count = numbers ? read_fields(numbers, fields) : -1;
    Py_XDECREF(numbers);
    if (count < 0)
        return NULL;
    return count ? cut_key(row, fields, count) : PyObject_CallMethodOneArg(primary, key_name, row);
}
