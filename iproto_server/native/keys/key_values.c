/* Single values as parts of keys. */
#include "../native.h"

FieldType field_kind(PyObject *name)
{
    static const char *const names[] = {
        "", "any", "unsigned", "string", "number", "double", "integer", "boolean", "varbinary", "array", "map",
    };
    for (int kind = FIELD_ANY; kind <= FIELD_MAP; kind++)
        if (!PyUnicode_CompareWithASCIIString(name, names[kind]))
            return (FieldType)kind;
    return FIELD_OTHER;
}

static void invert(uint8_t *at, int size)
{
    while (size--)
        at[size] ^= 0xff;
}

/* A positive integer as key_encoding.encode_number writes it: 88 bits. */
static void put_number(uint8_t *at, uint64_t value)
{
    int bits = 64 - __builtin_clzll(value);
    unsigned __int128 key = ((unsigned __int128)(unsigned)(bits + 3069) << 76) + ((unsigned __int128)value << (77 - bits));
    put_big_endian(at, (uint64_t)(key >> 24), 8);
    put_big_endian(at + 8, (uint64_t)key & 0xffffff, 3);
}

/* A double whose bytes sort as doubles do. */
static void put_double(uint8_t *at, double value)
{
    uint64_t bits;
    if (value != value) {
        bits = 0;
    } else if (value == 0) {
        bits = (uint64_t)1 << 63;
    } else {
        memcpy(&bits, &value, sizeof bits);
        bits = value > 0 ? bits | (uint64_t)1 << 63 : ~bits;
    }
    put_big_endian(at, bits, 8);
}

/* The absolute value and the sign of an int. Returns 0 where it needs more than 64 bits. */
static int take_apart(PyObject *number, uint64_t *size, int *is_negative)
{
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
    *is_negative = overflow < 0 || (!overflow && value < 0);
    if (!overflow) {
        *size = *is_negative ? -(uint64_t)value : (uint64_t)value;
        return 1;
    }
    if (overflow < 0)
        return 0;
    *size = PyLong_AsUnsignedLongLong(number);
    if (*size == (uint64_t)-1 && PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    return 1;
}

static int write_number_key(Buffer *buffer, PyObject *value)
{
    if (PyFloat_CheckExact(value)) {
        double number = PyFloat_AS_DOUBLE(value);
        uint8_t *at = buffer_grow(buffer, 11);
        if (!at)
            return -1;
        put_double(at, number);
        memset(at + 8, number < 0 ? 0xff : 0, 3);
        return 1;
    }
    uint64_t size;
    int is_negative;
    if (!PyLong_CheckExact(value) || !take_apart(value, &size, &is_negative))
        return 0;
    uint8_t *at = buffer_grow(buffer, 11);
    if (!at)
        return -1;
    if (!size) {
        memset(at, 0, 11);
        at[0] = 0x80;
        return 1;
    }
    put_number(at, size);
    if (is_negative)
        invert(at, 11);
    return 1;
}

static int write_integer_key(Buffer *buffer, PyObject *value, FieldType kind)
{
    uint64_t size;
    int is_negative;
    if (!PyLong_CheckExact(value) || !take_apart(value, &size, &is_negative))
        return 0;
    if (is_negative && kind == FIELD_UNSIGNED)
        return 0;
    int width = kind == FIELD_UNSIGNED ? 8 : 9;
    uint8_t *at = buffer_grow(buffer, width);
    if (!at)
        return -1;
    if (kind == FIELD_INTEGER) {
        uint64_t half = (uint64_t)1 << 63;
        *at++ = !is_negative && size >= half;
        size = is_negative ? half - size : size + half;
    }
    put_big_endian(at, size, 8);
    return 1;
}

/* Bytes, and two zeros behind them; a zero among them is followed by a one. */
static int write_text_key(Buffer *buffer, const char *data, Py_ssize_t size)
{
    const char *end = data + size, *zero;
    while ((zero = memchr(data, 0, (size_t)(end - data)))) {
        Py_ssize_t count = zero + 1 - data;
        uint8_t *at = buffer_grow(buffer, count + 1);
        if (!at)
            return -1;
        memcpy(at, data, (size_t)count);
        at[count] = 1;
        data += count;
    }
    uint8_t *at = buffer_grow(buffer, end - data + 2);
    if (!at)
        return -1;
    memcpy(at, data, (size_t)(end - data));
    at[end - data] = at[end - data + 1] = 0;
    return 1;
}

static int write_string_key(Buffer *buffer, PyObject *text)
{
    if (!PyUnicode_CheckExact(text))
        return 0;
    if (PyUnicode_IS_COMPACT_ASCII(text))
        return write_text_key(buffer, (const char *)PyUnicode_1BYTE_DATA(text), PyUnicode_GET_LENGTH(text));
    PyObject *encoded = PyUnicode_AsEncodedString(text, "utf-8", "surrogateescape");
    if (!encoded) {
        PyErr_Clear(); /* Python has words for it */
        return 0;
    }
    int done = write_text_key(buffer, PyBytes_AS_STRING(encoded), PyBytes_GET_SIZE(encoded));
    Py_DECREF(encoded);
    return done;
}

/* Append a value that is not nil. Returns 0 where it is not known, -1 with an exception. */
static int write_known(Buffer *buffer, PyObject *value, FieldType kind)
{
    uint8_t *at;
    switch (kind) {
    case FIELD_STRING:
        return write_string_key(buffer, value);
    case FIELD_VARBINARY:
        if (!PyBytes_CheckExact(value))
            return 0;
        return write_text_key(buffer, PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value));
    case FIELD_NUMBER:
        return write_number_key(buffer, value);
    case FIELD_UNSIGNED:
    case FIELD_INTEGER:
        return write_integer_key(buffer, value, kind);
    case FIELD_DOUBLE:
        if (!PyFloat_CheckExact(value))
            return 0;
        if (!(at = buffer_grow(buffer, 8)))
            return -1;
        put_double(at, PyFloat_AS_DOUBLE(value));
        return 1;
    case FIELD_BOOLEAN:
        if (!PyBool_Check(value))
            return 0;
        if (!(at = buffer_grow(buffer, 1)))
            return -1;
        *at = value == Py_True;
        return 1;
    default:
        return 0;
    }
}

int write_key_bytes(Buffer *buffer, PyObject *bytes)
{
    if (PyBytes_CheckExact(bytes))
        return buffer_append(buffer, PyBytes_AS_STRING(bytes), PyBytes_GET_SIZE(bytes));
    PyErr_Format(PyExc_TypeError, "a key is made of bytes, not of %.100s", Py_TYPE(bytes)->tp_name);
    return -1;
}

int write_key_byte(Buffer *buffer, uint8_t byte)
{
    return buffer_append(buffer, &byte, 1);
}

int write_key_value(Buffer *buffer, const DecodedPart *part, PyObject *value)
{
    int done = write_known(buffer, value, part->kind);
    if (done)
        return done;
    PyObject *encoded = PyObject_CallOneArg(part->encode, value);
    done = encoded ? write_key_bytes(buffer, encoded) : -1;
    Py_XDECREF(encoded);
    return done;
}

PyObject *finish_key(Buffer *buffer, int done)
{
    PyObject *key = done > 0 ? PyBytes_FromStringAndSize((const char *)buffer->data, buffer->size) : NULL;
    buffer_free(buffer);
    return key;
}
