/* Writes packed values as JSON: the twin of `quick_json` in spark/source/arrow/json_text.py. It writes integers,
 * strings, booleans, nil, arrays, and maps with different strings as keys; all else is left to Python.
 */
#include "arrow_columns.h"

#define DEPTH_MAX 64
#define KEYS_MAX 64
#define TEXTS_MAX INT32_MAX

/* The texts written so far. */
typedef struct {
    uint8_t *data;
    size_t size, room;
    Position at, end; /* the value being read */
} Texts;

/* Make room for some bytes. Returns 0 if there is none. */
static int reserve(Texts *texts, size_t more)
{
    if (texts->room - texts->size >= more)
        return 1;
    size_t room = 2 * texts->room + more;
    uint8_t *data = PyMem_RawRealloc(texts->data, room);
    if (!data)
        return 0;
    texts->data = data;
    texts->room = room;
    return 1;
}

static int write_bytes(Texts *texts, const void *data, size_t size)
{
    if (!reserve(texts, size))
        return 0;
    memcpy(texts->data + texts->size, data, size);
    texts->size += size;
    return 1;
}

static int write_number(Texts *texts, int is_negative, uint64_t number)
{
    char digits[21];
    char *first = digits + sizeof digits;
    do
        *--first = (char)('0' + number % 10);
    while (number /= 10);
    if (is_negative)
        *--first = '-';
    return write_bytes(texts, first, (size_t)(digits + sizeof digits - first));
}

/* Write a string with quotes and escapes; bytes that are not ASCII stay as they are. */
static int write_string(Texts *texts, Position at, size_t size)
{
    static const char hex[] = "0123456789abcdef";
    if (!reserve(texts, 6 * size + 2))
        return 0;
    uint8_t *to = texts->data + texts->size;
    *to++ = '"';
    for (Position end = at + size; at < end; at++) {
        if (*at >= 0x20 && *at != '"' && *at != '\\') {
            *to++ = *at;
            continue;
        }
        *to++ = '\\';
        switch (*at) {
        case '"': case '\\': *to++ = *at; break;
        case '\b': *to++ = 'b'; break;
        case '\f': *to++ = 'f'; break;
        case '\n': *to++ = 'n'; break;
        case '\r': *to++ = 'r'; break;
        case '\t': *to++ = 't'; break;
        default:
            memcpy(to, "u00", 3);
            to[3] = (uint8_t)hex[*at >> 4];
            to[4] = (uint8_t)hex[*at & 15];
            to += 5;
        }
    }
    *to++ = '"';
    texts->size = (size_t)(to - texts->data);
    return 1;
}

/* Read a big-endian number behind the first byte of a value. Returns 0 if it is not there. */
static int read_bits(Texts *texts, int width, uint64_t *bits)
{
    if (texts->end - texts->at < width)
        return 0;
    *bits = big_endian(texts->at, width);
    texts->at += width;
    return 1;
}

/* Read the head of a string. Returns 0 for another value. */
static int read_string(Texts *texts, Position *string, size_t *size)
{
    uint64_t length;
    if (texts->at >= texts->end)
        return 0;
    uint8_t first = *texts->at++;
    if (first >= 0xa0 && first < 0xc0)
        length = first & 0x1f;
    else if (first < 0xd9 || first > 0xdb || !read_bits(texts, 1 << (first - 0xd9), &length))
        return 0;
    if ((uint64_t)(texts->end - texts->at) < length)
        return 0;
    *string = texts->at;
    *size = (size_t)length;
    texts->at += length;
    return 1;
}

static int write_value(Texts *texts, int depth);

static int write_array(Texts *texts, uint64_t count, int depth)
{
    if (!write_bytes(texts, "[", 1))
        return 0;
    for (uint64_t place = 0; place < count; place++)
        if ((place && !write_bytes(texts, ",", 1)) || !write_value(texts, depth))
            return 0;
    return write_bytes(texts, "]", 1);
}

static int write_map(Texts *texts, uint64_t count, int depth)
{
    struct {
        Position at;
        size_t size;
    } keys[KEYS_MAX];
    if (count > KEYS_MAX || !write_bytes(texts, "{", 1))
        return 0;
    for (uint64_t place = 0; place < count; place++) {
        if (!read_string(texts, &keys[place].at, &keys[place].size))
            return 0;
        for (uint64_t other = 0; other < place; other++)
            if (keys[other].size == keys[place].size && !memcmp(keys[other].at, keys[place].at, keys[place].size))
                return 0;
        if ((place && !write_bytes(texts, ",", 1)) || !write_string(texts, keys[place].at, keys[place].size)
            || !write_bytes(texts, ":", 1) || !write_value(texts, depth))
            return 0;
    }
    return write_bytes(texts, "}", 1);
}

/* Write the value at the position and go behind it. Returns 0 if Python has to write it. */
static int write_value(Texts *texts, int depth)
{
    if (texts->at >= texts->end || depth > DEPTH_MAX)
        return 0;
    uint8_t first = *texts->at;
    uint64_t bits;
    if ((first >= 0xa0 && first < 0xc0) || (first >= 0xd9 && first <= 0xdb)) {
        Position string;
        size_t size;
        return read_string(texts, &string, &size) && write_string(texts, string, size);
    }
    texts->at++;
    if (first < 0x80)
        return write_number(texts, 0, first);
    if (first >= 0xe0)
        return write_number(texts, 1, (uint64_t)(256 - first));
    if (first < 0x90)
        return write_map(texts, first & 0x0f, depth + 1);
    if (first < 0xa0)
        return write_array(texts, first & 0x0f, depth + 1);
    switch (first) {
    case 0xc0: return write_bytes(texts, "null", 4);
    case 0xc2: return write_bytes(texts, "false", 5);
    case 0xc3: return write_bytes(texts, "true", 4);
    case 0xcc: case 0xcd: case 0xce: case 0xcf:
        return read_bits(texts, 1 << (first & 3), &bits) && write_number(texts, 0, bits);
    case 0xd0: case 0xd1: case 0xd2: case 0xd3: {
        int width = 1 << (first & 3), unused = 64 - 8 * width;
        if (!read_bits(texts, width, &bits))
            return 0;
        int64_t number = (int64_t)(bits << unused) >> unused;
        return write_number(texts, number < 0, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
    }
    case 0xdc: case 0xdd:
        return read_bits(texts, first == 0xdc ? 2 : 4, &bits) && write_array(texts, bits, depth + 1);
    case 0xde: case 0xdf:
        return read_bits(texts, first == 0xde ? 2 : 4, &bits) && write_map(texts, bits, depth + 1);
    default: return 0;
    }
}

/* Write all values. Returns 0 if Python has to. */
static int write_all(const Cells *cells, Texts *texts, int32_t *offsets, uint8_t *bits, int *are_missing)
{
    for (Py_ssize_t row = 0; row < cells->count; row++) {
        offsets[row] = (int32_t)texts->size;
        int is_there = cells->start[row] >= 0;
        if (is_there && (!is_inside(cells, row) || cells->start[row] == cells->end[row]))
            return 0;
        if (!is_there || cells->data[cells->start[row]] == 0xc0) {
            *are_missing = 1;
            bits[row / 8] &= (uint8_t)~(1 << row % 8);
            continue;
        }
        texts->at = cells->data + cells->start[row];
        texts->end = cells->data + cells->end[row];
        if (!write_value(texts, 0) || texts->at != texts->end || texts->size > TEXTS_MAX)
            return 0;
    }
    offsets[cells->count] = (int32_t)texts->size;
    return 1;
}

/* quick_json(data, start, end): the validity bitmap, the offsets and the texts; nil is missing */
KERNEL(quick_json)
{
    Cells cells;
    if (count != 3) {
        PyErr_SetString(PyExc_TypeError, "quick_json() takes bytes and two arrays of offsets");
        return NULL;
    }
    if (!cells_init(&cells, args[0], args[1], args[2]))
        return NULL;
    Texts texts = {0};
    int are_missing = 0;
    Py_ssize_t size = (cells.count + 7) / 8;
    PyObject *result = NULL;
    PyObject *offsets = PyBytes_FromStringAndSize(NULL, (cells.count + 1) * (Py_ssize_t)sizeof(int32_t));
    PyObject *bits = PyBytes_FromStringAndSize(NULL, size);
    if (offsets && bits) {
        memset(PyBytes_AS_STRING(bits), 0xff, (size_t)size);
        if (write_all(&cells, &texts, (int32_t *)PyBytes_AS_STRING(offsets), (uint8_t *)PyBytes_AS_STRING(bits),
                      &are_missing))
            result = Py_BuildValue("OOy#", are_missing ? bits : Py_None, offsets, texts.data ? (char *)texts.data : "",
                                   (Py_ssize_t)texts.size);
        else
            result = Py_NewRef(Py_None);
    }
    PyMem_RawFree(texts.data);
    Py_XDECREF(offsets);
    Py_XDECREF(bits);
    cells_free(&cells);
    return result;
}
