/* Converts packed values in a buffer to Python bytes or Arrow columns: the twins of functions in decode/packed.py,
 * arrow/cell_arrays.py and io/block_filter.py of spark/source/. They return None if numpy or Python has to do the work.
 *
 * Cells are arrays of offsets, one for each row; negative if there is no value.
 */
#include "arrow_columns.h"

#if defined(__GNUC__) && !defined(__clang__)
#define VECTORIZED __attribute__((optimize("O3")))
#else
#define VECTORIZED
#endif

#define NIL 0xc0
#define VALUES_MAX INT32_MAX

void cells_free(Cells *cells)
{
    for (int place = 0; place < 2; place++)
        PyBuffer_Release(&cells->views[place]); /* a view that was not acquired is ignored */
}

int cells_init(Cells *cells, PyObject *data, PyObject *start, PyObject *end)
{
    memset(cells, 0, sizeof *cells);
    if (!PyBytes_CheckExact(data)) {
        PyErr_SetString(PyExc_TypeError, "the values must be in bytes");
        return 0;
    }
    cells->data = (Position)PyBytes_AS_STRING(data);
    cells->size = PyBytes_GET_SIZE(data);
    PyObject *const offsets[] = {start, end};
    for (int place = 0; place < 2 && offsets[place]; place++) {
        if (PyObject_GetBuffer(offsets[place], &cells->views[place], PyBUF_SIMPLE) < 0) {
            cells_free(cells);
            return 0;
        }
    }
    cells->start = cells->views[0].buf;
    cells->end = cells->views[1].buf;
    cells->count = cells->views[0].len / (Py_ssize_t)sizeof *cells->start;
    if (end && cells->views[1].len != cells->views[0].len) {
        PyErr_SetString(PyExc_ValueError, "the arrays of starts and ends must be equally long");
        cells_free(cells);
        return 0;
    }
    return 1;
}

/* The first byte of a cell: nil if there is no value, -1 if the cell is outside of the buffer. */
static inline int first_of(const Cells *cells, Py_ssize_t row)
{
    int64_t start = cells->start[row];
    return start < 0 ? NIL : start < cells->size ? cells->data[start] : -1;
}

/* Arrow's validity bitmap; it is allocated at the first missing value. */
typedef struct {
    PyObject *bits;
    Py_ssize_t count;
} Validity;

static int set_missing(Validity *validity, Py_ssize_t row)
{
    if (!validity->bits) {
        Py_ssize_t size = (validity->count + 7) / 8;
        if (!(validity->bits = PyBytes_FromStringAndSize(NULL, size)))
            return 0;
        memset(PyBytes_AS_STRING(validity->bits), 0xff, (size_t)size);
    }
    PyBytes_AS_STRING(validity->bits)[row / 8] &= (char)~(1 << row % 8);
    return 1;
}

static PyObject *with_validity(const Validity *validity, PyObject *first, PyObject *second)
{
    PyObject *bits = validity->bits ? validity->bits : Py_None;
    return second ? PyTuple_Pack(3, bits, first, second) : PyTuple_Pack(2, bits, first);
}

/* quick_raws(data, start, end): the bytes of each value, None for missing ones */
KERNEL(quick_raws)
{
    Cells cells;
    if (count != 3) {
        PyErr_SetString(PyExc_TypeError, "quick_raws() takes bytes and two arrays of offsets");
        return NULL;
    }
    if (!cells_init(&cells, args[0], args[1], args[2]))
        return NULL;
    PyObject *raws = PyList_New(cells.count);
    for (Py_ssize_t row = 0; raws && row < cells.count; row++) {
        int is_there = cells.start[row] >= 0;
        if (is_there && !is_inside(&cells, row)) {
            Py_SETREF(raws, Py_NewRef(Py_None));
            break;
        }
        PyObject *raw = is_there ? raw_of(&cells, row) : Py_NewRef(Py_None);
        if (!raw) {
            Py_CLEAR(raws);
            break;
        }
        PyList_SET_ITEM(raws, row, raw);
    }
    cells_free(&cells);
    return raws;
}

/* Read an integer in any encoding. Returns 0 for other values, and for integers that exceed a signed 64-bit column. */
static inline int read_integer(Position at, Position end, int first, int64_t *number)
{
    if (first < 0x80 || first >= 0xe0) {
        *number = (int8_t)first;
        return 1;
    }
    if (first < 0xcc || first > 0xd3)
        return 0;
    int is_signed = first >= 0xd0, width = 1 << (first & 3);
    if (end - at <= width)
        return 0;
    uint64_t bits = big_endian(at + 1, width);
    int unused = 64 - 8 * width;
    *number = is_signed ? (int64_t)(bits << unused) >> unused : (int64_t)bits;
    return is_signed || bits <= INT64_MAX;
}

/* quick_integers(data, start): the validity bitmap, and the numbers */
KERNEL(quick_integers)
{
    Cells cells;
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "quick_integers() takes bytes and offsets");
        return NULL;
    }
    if (!cells_init(&cells, args[0], args[1], NULL))
        return NULL;
    Validity validity = {.count = cells.count};
    PyObject *result = NULL, *values = PyBytes_FromStringAndSize(NULL, cells.count * (Py_ssize_t)sizeof(int64_t));
    if (values) {
        int64_t *numbers = (int64_t *)PyBytes_AS_STRING(values);
        Py_ssize_t row = 0;
        int is_known = 1;
        for (; row < cells.count && is_known; row++) {
            int first = first_of(&cells, row);
            numbers[row] = 0;
            if (first == NIL) {
                if (!set_missing(&validity, row))
                    break;
            } else {
                is_known = first >= 0
                    && read_integer(cells.data + cells.start[row], cells.data + cells.size, first, &numbers[row]);
            }
        }
        if (!is_known)
            result = Py_NewRef(Py_None);
        else if (row == cells.count)
            result = with_validity(&validity, values, NULL);
    }
    Py_XDECREF(values);
    Py_XDECREF(validity.bits);
    cells_free(&cells);
    return result;
}

/* The header size of a string or binary value; 0 for other values. */
static inline int head_size(int first, int is_binary)
{
    if (is_binary)
        return first == 0xc4 ? 2 : first == 0xc5 ? 3 : first == 0xc6 ? 5 : 0;
    if (first >= 0xa0 && first < 0xc0)
        return 1;
    return first == 0xd9 ? 2 : first == 0xda ? 3 : first == 0xdb ? 5 : 0;
}

/* Compute the offsets of the strings. Returns their total size; -1 if one cannot be copied as it is; -2 with an
 * exception. */
static Py_ssize_t place_strings(const Cells *cells, int is_binary, int quotes, int32_t *offsets, Validity *validity)
{
    int64_t total = 0;
    for (Py_ssize_t row = 0; row < cells->count; row++) {
        offsets[row] = (int32_t)total;
        int first = first_of(cells, row);
        if (first == NIL) {
            if (!set_missing(validity, row))
                return -2;
            continue;
        }
        int head = first < 0 ? 0 : head_size(first, is_binary);
        int64_t length = cells->end[row] - cells->start[row] - head;
        if (!head || length < 0 || cells->end[row] > cells->size)
            return -1;
        total += length + quotes;
        if (total > VALUES_MAX)
            return -1;
    }
    offsets[cells->count] = (int32_t)total;
    return (Py_ssize_t)total;
}

/* Whether the only characters that JSON escapes are the given number of quotes. */
VECTORIZED static int is_plain(Position values, Py_ssize_t size, Py_ssize_t quotes)
{
    Py_ssize_t odd = 0;
    while (size) {
        uint8_t found = 0; /* cannot overflow: at most 255 bytes are counted */
        Py_ssize_t some = size < 255 ? size : 255;
        for (Py_ssize_t place = 0; place < some; place++)
            found = (uint8_t)(found + ((values[place] < 0x20) | (values[place] == '"') | (values[place] == '\\')));
        odd += found;
        values += some;
        size -= some;
    }
    return odd == quotes;
}

static void copy_strings(const Cells *cells, int is_binary, int quotes, const int32_t *offsets, uint8_t *values)
{
    for (Py_ssize_t row = 0; row < cells->count; row++) {
        int first = first_of(cells, row);
        if (first == NIL)
            continue;
        uint8_t *into = values + offsets[row];
        int64_t begin = cells->start[row] + head_size(first, is_binary);
        size_t length = (size_t)(cells->end[row] - begin);
        if (quotes) {
            *into++ = '"';
            into[length] = '"';
        }
        memcpy(into, cells->data + begin, length);
    }
}

/* quick_strings(data, start, end, kind): the validity bitmap, the offsets, and the bytes of strings ("s"), of binary
 * values ("b"), or of quoted strings ("q") that need no JSON escapes */
KERNEL(quick_strings)
{
    Cells cells;
    const char *kind = count == 4 && PyUnicode_Check(args[3]) ? PyUnicode_AsUTF8(args[3]) : NULL;
    if (!kind) {
        PyErr_SetString(PyExc_TypeError, "quick_strings() takes bytes, two arrays of offsets and a kind");
        return NULL;
    }
    if (!cells_init(&cells, args[0], args[1], args[2]))
        return NULL;
    int is_binary = *kind == 'b', quotes = *kind == 'q' ? 2 : 0;
    Validity validity = {.count = cells.count};
    PyObject *result = NULL, *values = NULL;
    PyObject *places = PyBytes_FromStringAndSize(NULL, (cells.count + 1) * (Py_ssize_t)sizeof(int32_t));
    if (places) {
        int32_t *offsets = (int32_t *)PyBytes_AS_STRING(places);
        Py_ssize_t size = place_strings(&cells, is_binary, quotes, offsets, &validity);
        if (size == -1)
            result = Py_NewRef(Py_None);
        else if (size >= 0 && (values = PyBytes_FromStringAndSize(NULL, size))) {
            uint8_t *into = (uint8_t *)PyBytes_AS_STRING(values);
            copy_strings(&cells, is_binary, quotes, offsets, into);
            /* Each present string has two quotes around it. */
            Py_ssize_t there = 0;
            for (Py_ssize_t row = 0; quotes && row < cells.count; row++)
                there += offsets[row + 1] > offsets[row];
            if (quotes && !is_plain(into, size, 2 * there))
                result = Py_NewRef(Py_None);
            else
                result = with_validity(&validity, places, values);
        }
    }
    Py_XDECREF(places);
    Py_XDECREF(values);
    Py_XDECREF(validity.bits);
    cells_free(&cells);
    return result;
}

/* quick_search(data, lead, forms): whether one of the forms follows the lead byte anywhere */
KERNEL(quick_search)
{
    if (count != 3 || !PyBytes_CheckExact(args[0]) || !PyBytes_CheckExact(args[1]) || PyBytes_GET_SIZE(args[1]) != 1
        || !PyTuple_CheckExact(args[2])) {
        PyErr_SetString(PyExc_TypeError, "quick_search() takes bytes, one byte, and a tuple of byte strings");
        return NULL;
    }
    Py_ssize_t forms = PyTuple_GET_SIZE(args[2]);
    uint8_t firsts[256] = {0}; /* first bytes of the forms */
    for (Py_ssize_t form = 0; form < forms; form++) {
        PyObject *each = PyTuple_GET_ITEM(args[2], form);
        if (!PyBytes_CheckExact(each) || !PyBytes_GET_SIZE(each)) {
            PyErr_SetString(PyExc_TypeError, "quick_search() looks for bytes");
            return NULL;
        }
        firsts[(uint8_t)*PyBytes_AS_STRING(each)] = 1;
    }
    int lead = (uint8_t)*PyBytes_AS_STRING(args[1]), is_found = 0;
    const char *at = PyBytes_AS_STRING(args[0]), *end = at + PyBytes_GET_SIZE(args[0]);
    Py_BEGIN_ALLOW_THREADS
    while (!is_found && (at = memchr(at, lead, (size_t)(end - at))) && ++at < end) {
        if (!firsts[(uint8_t)*at])
            continue;
        for (Py_ssize_t form = 0; form < forms && !is_found; form++) {
            PyObject *each = PyTuple_GET_ITEM(args[2], form);
            Py_ssize_t size = PyBytes_GET_SIZE(each);
            is_found = size <= end - at && !memcmp(at, PyBytes_AS_STRING(each), (size_t)size);
        }
    }
    Py_END_ALLOW_THREADS
    return PyBool_FromLong(is_found);
}
