/* Decodes MessagePack. Part of every compiled module.
 *
 * Left to Python: extension types, maps whose keys are arrays or maps, deeply nested values, and malformed data.
 */
#include "reader.h"

/* The head of a value: how many bytes follow it, and how many values. Returns 0 where there is none. */
typedef struct {
    uint8_t first;
    uint64_t bytes, values;
} Head;

static int read_head(Position *at, Position end, Head *head)
{
    Position here = *at;
    if (here >= end)
        return 0;
    uint8_t first = head->first = *here++;
    int width = 0; /* of the count that follows the first byte */
    head->bytes = head->values = 0;
    if (first < 0x80 || first >= 0xe0) {
        /* a small number */
    } else if (first < 0x90) {
        head->values = 2 * (uint64_t)(first & 0x0f);
    } else if (first < 0xa0) {
        head->values = first & 0x0f;
    } else if (first < 0xc0) {
        head->bytes = first & 0x1f;
    } else {
        switch (first) {
        case 0xc0: case 0xc2: case 0xc3: break;
        case 0xc4: case 0xc7: case 0xd9: width = 1; break;
        case 0xc5: case 0xc8: case 0xda: case 0xdc: case 0xde: width = 2; break;
        case 0xc6: case 0xc9: case 0xdb: case 0xdd: case 0xdf: width = 4; break;
        case 0xca: head->bytes = 4; break;
        case 0xcb: head->bytes = 8; break;
        case 0xcc: case 0xd0: head->bytes = 1; break;
        case 0xcd: case 0xd1: head->bytes = 2; break;
        case 0xce: case 0xd2: head->bytes = 4; break;
        case 0xcf: case 0xd3: head->bytes = 8; break;
        case 0xd4: case 0xd5: case 0xd6: case 0xd7: case 0xd8:
            head->bytes = 1 + ((uint64_t)1 << (first - 0xd4));
            break;
        default: return 0;
        }
        if (width) {
            if (end - here < width)
                return 0;
            uint64_t length = big_endian(here, width);
            here += width;
            if (first >= 0xdc)
                head->values = first >= 0xde ? 2 * length : length;
            else
                head->bytes = length + (first >= 0xc7 && first <= 0xc9);
        }
    }
    uint64_t left = (uint64_t)(end - here);
    /* Every value has a byte at the least, so an array cannot have more values than there are bytes. */
    if (head->bytes > left || head->values > left)
        return 0;
    *at = here;
    return 1;
}

/* Go past a value. Returns 0 where there is none, or one that is nested deep. */
int skip_value(Position *at, Position end, int depth)
{
    Head head;
    if (depth > DEEPEST || !read_head(at, end, &head))
        return 0;
    *at += head.bytes;
    for (; head.values; head.values--)
        if (!skip_value(at, end, depth + 1))
            return 0;
    return 1;
}

/* Read an unsigned number, in whatever form. */
int read_unsigned(Position *at, Position end, uint64_t *value)
{
    Head head;
    if (!read_head(at, end, &head))
        return 0;
    if (head.first < 0x80) {
        *value = head.first;
    } else if (head.first >= 0xcc && head.first <= 0xcf) {
        *value = big_endian(*at, (int)head.bytes);
        *at += head.bytes;
    } else {
        return 0;
    }
    return 1;
}

static PyObject *read_number(Position at, const Head *head)
{
    uint64_t bits = big_endian(at, (int)head->bytes);
    switch (head->first) {
    case 0xca: {
        uint32_t single = (uint32_t)bits;
        float number;
        memcpy(&number, &single, sizeof number);
        return PyFloat_FromDouble(number);
    }
    case 0xcb: {
        double number;
        memcpy(&number, &bits, sizeof number);
        return PyFloat_FromDouble(number);
    }
    case 0xd0: return PyLong_FromLong((int8_t)bits);
    case 0xd1: return PyLong_FromLong((int16_t)bits);
    case 0xd2: return PyLong_FromLong((int32_t)bits);
    case 0xd3: return PyLong_FromLongLong((int64_t)bits);
    default: return PyLong_FromUnsignedLongLong(bits);
    }
}

static PyObject *read_text(Position at, Py_ssize_t size)
{
    return PyUnicode_DecodeUTF8((const char *)at, size, "surrogateescape");
}

/* Whether so many values are really there: room is reserved for no more than a few that are only claimed. */
static int are_there(Position at, Position end, uint64_t count, int depth)
{
    if (count <= 64)
        return 1;
    while (count--)
        if (!skip_value(&at, end, depth))
            return 0;
    return 1;
}

static PyObject *read_array(Position *at, Position end, uint64_t count, int depth)
{
    if (!are_there(*at, end, count, depth + 1))
        return NULL;
    PyObject *list = PyList_New((Py_ssize_t)count);
    if (!list)
        return NULL;
    for (Py_ssize_t place = 0; place < (Py_ssize_t)count; place++) {
        PyObject *item = read_value(at, end, depth + 1);
        if (!item) {
            Py_DECREF(list);
            return NULL;
        }
        PyList_SET_ITEM(list, place, item);
    }
    return list;
}

static PyObject *read_map(Position *at, Position end, uint64_t pairs, int depth)
{
    PyObject *dict = PyDict_New();
    if (!dict)
        return NULL;
    while (pairs--) {
        PyObject *key = read_value(at, end, depth + 1);
        PyObject *value = NULL;
        int is_set = 0;
        if (key && !PyList_CheckExact(key) && !PyDict_CheckExact(key)) {
            value = read_value(at, end, depth + 1);
            is_set = value && !PyDict_SetItem(dict, key, value);
        }
        Py_XDECREF(key);
        Py_XDECREF(value);
        if (!is_set) {
            Py_DECREF(dict);
            return NULL;
        }
    }
    return dict;
}

/* Read a value. Returns NULL, maybe without an exception: see reader.h. */
PyObject *read_value(Position *at, Position end, int depth)
{
    Head head;
    if (depth > DEEPEST || !read_head(at, end, &head))
        return NULL;
    uint8_t first = head.first;
    if (first < 0x80)
        return PyLong_FromLong(first);
    if (first >= 0xe0)
        return PyLong_FromLong((int8_t)first);
    if (first < 0x90 || first == 0xde || first == 0xdf)
        return read_map(at, end, head.values / 2, depth);
    if (first < 0xa0 || first == 0xdc || first == 0xdd)
        return read_array(at, end, head.values, depth);
    Position content = *at;
    *at += head.bytes;
    if (first < 0xc0 || (first >= 0xd9 && first <= 0xdb))
        return read_text(content, (Py_ssize_t)head.bytes);
    if (first >= 0xc4 && first <= 0xc6)
        return PyBytes_FromStringAndSize((const char *)content, (Py_ssize_t)head.bytes);
    if ((first >= 0xca && first <= 0xcf) || (first >= 0xd0 && first <= 0xd3))
        return read_number(content, &head);
    if (first == 0xc0)
        Py_RETURN_NONE;
    if (first == 0xc2)
        Py_RETURN_FALSE;
    if (first == 0xc3)
        Py_RETURN_TRUE;
    return NULL; /* an extension */
}
