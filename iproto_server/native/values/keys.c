/* Rows and clients' keys to the byte strings that indexes are ordered by, and the check of a row: the twins of what
 * box/key/key_def.py and box/tuple/format.py put together for an index or a space.
 *
 * Each is an object that is called as the Python function would be, which it was made with. It calls that function
 * where it meets what it does not know; so the function is where errors come from.
 */
#include "../native.h"

static FieldType kind_of(PyObject *name)
{
    static const char *const names[] = {
        "", "any", "unsigned", "string", "number", "double", "integer", "boolean", "varbinary", "array", "map",
    };
    for (int kind = FIELD_ANY; kind <= FIELD_MAP; kind++)
        if (!PyUnicode_CompareWithASCIIString(name, names[kind]))
            return (FieldType)kind;
    return FIELD_OTHER;
}

typedef struct {
    Py_ssize_t field_no;
    FieldType kind;
    int is_nullable;
    PyObject *encode; /* the Python function that encodes a value */
} Part;

enum { PARTS_MAX = FORMAT_FIELDS_MAX };

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *python;
    Py_ssize_t count, exact;
    int has_tail; /* whether the encoded primary key follows */
    Part parts[PARTS_MAX];
    RowFormat format; /* the same parts, of the check of a row */
} Plan;

/* -- one value -- */

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

static int write_bytes(Buffer *buffer, PyObject *bytes)
{
    if (!PyBytes_CheckExact(bytes)) {
        PyErr_Format(PyExc_TypeError, "a key is made of bytes, not of %.100s", Py_TYPE(bytes)->tp_name);
        return -1;
    }
    uint8_t *at = buffer_grow(buffer, PyBytes_GET_SIZE(bytes));
    if (!at)
        return -1;
    memcpy(at, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
    return 1;
}

static int write_byte(Buffer *buffer, uint8_t byte)
{
    uint8_t *at = buffer_grow(buffer, 1);
    if (!at)
        return -1;
    *at = byte;
    return 1;
}

/* Append the value of a row that fits the part. Returns -1 with an exception. */
static int write_part(Buffer *buffer, const Part *part, PyObject *value)
{
    if (part->is_nullable) {
        if (!value || value == Py_None)
            return write_byte(buffer, 0);
        if (write_byte(buffer, 1) < 0)
            return -1;
    }
    int done = write_known(buffer, value, part->kind);
    if (done)
        return done;
    PyObject *encoded = PyObject_CallOneArg(part->encode, value);
    done = encoded ? write_bytes(buffer, encoded) : -1;
    Py_XDECREF(encoded);
    return done;
}

static PyObject *finish(Buffer *buffer, int done)
{
    PyObject *key = done > 0 ? PyBytes_FromStringAndSize((const char *)buffer->data, buffer->size) : NULL;
    buffer_free(buffer);
    return key;
}

/* -- the key of a row: (fields) or (fields, encoded primary key) -- */

/* Returns NULL without an exception where a field is missing. */
static PyObject *make_row_key(Plan *plan, PyObject *fields, PyObject *primary_key)
{
    Buffer buffer;
    buffer_init(&buffer);
    int done = 1;
    for (Py_ssize_t place = 0; done > 0 && place < plan->count; place++) {
        const Part *part = plan->parts + place;
        /* A Python encoder might do anything to the fields. */
        PyObject *value = part->field_no < PyList_GET_SIZE(fields) ? PyList_GET_ITEM(fields, part->field_no) : NULL;
        if (!value && !part->is_nullable) {
            done = 0;
            break;
        }
        Py_XINCREF(value);
        done = write_part(&buffer, part, value);
        Py_XDECREF(value);
    }
    if (done > 0 && plan->has_tail)
        done = write_bytes(&buffer, primary_key);
    return finish(&buffer, done);
}

/* For other files: the key of a row in an index, which is bytes; NULL with an exception. For the primary index the
 * primary key may be NULL. */
PyObject *row_key(PyObject *self, PyObject *fields, PyObject *primary_key)
{
    PyObject *key = make_row_key((Plan *)self, fields, primary_key);
    if (key || PyErr_Occurred())
        return key;
    PyObject *args[] = {fields, primary_key ? primary_key : Py_None};
    key = PyObject_Vectorcall(((Plan *)self)->python, args, 2, NULL);
    if (key && !PyBytes_CheckExact(key)) {
        PyErr_SetString(PyExc_TypeError, "a key is made of bytes");
        Py_CLEAR(key);
    }
    return key;
}

static PyObject *row_key_call(PyObject *self, PyObject *const *args, size_t flags, PyObject *names)
{
    Plan *plan = (Plan *)self;
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    if (!names && count >= 1 && (!plan->has_tail || count >= 2) && PyList_CheckExact(args[0])) {
        PyObject *key = make_row_key(plan, args[0], plan->has_tail ? args[1] : NULL);
        if (key || PyErr_Occurred())
            return key;
    }
    return PyObject_Vectorcall(plan->python, args, flags, names);
}

/* -- a client's key: (values) -- */

/* For other files, too. Nothing in here runs Python's code. */
PyObject *client_key(PyObject *self, PyObject *const *values, Py_ssize_t count)
{
    Plan *plan = (Plan *)self;
    if (count > plan->count)
        return NULL;
    Buffer buffer;
    buffer_init(&buffer);
    int done = 1;
    for (Py_ssize_t place = 0; done > 0 && place < count; place++) {
        const Part *part = plan->parts + place;
        if (part->is_nullable)
            done = write_byte(&buffer, values[place] != Py_None);
        if (done > 0 && !(part->is_nullable && values[place] == Py_None))
            done = write_known(&buffer, values[place], part->kind);
    }
    return finish(&buffer, done);
}

Py_ssize_t client_key_parts(PyObject *self)
{
    return ((Plan *)self)->count;
}

static PyObject *client_key_call(PyObject *self, PyObject *const *args, size_t flags, PyObject *names)
{
    if (!names && PyVectorcall_NARGS(flags) == 1 && PyList_CheckExact(args[0])) {
        PyObject *key = client_key(self, ((PyListObject *)args[0])->ob_item, PyList_GET_SIZE(args[0]));
        if (key || PyErr_Occurred())
            return key;
    }
    return PyObject_Vectorcall(((Plan *)self)->python, args, flags, names);
}

/* -- the check of a row: (fields) -- */

static int fits(PyObject *value, FieldType kind)
{
    PyTypeObject *type = Py_TYPE(value);
    int overflow;
    switch (kind) {
    case FIELD_ANY: return 1;
    case FIELD_STRING: return type == &PyUnicode_Type;
    case FIELD_NUMBER: return type == &PyLong_Type || type == &PyFloat_Type;
    case FIELD_INTEGER: return type == &PyLong_Type;
    case FIELD_UNSIGNED: return type == &PyLong_Type && PyLong_AsLongLongAndOverflow(value, &overflow) >= 0;
    case FIELD_DOUBLE: return type == &PyFloat_Type;
    case FIELD_BOOLEAN: return type == &PyBool_Type;
    case FIELD_VARBINARY: return type == &PyBytes_Type;
    case FIELD_ARRAY: return type == &PyList_Type;
    case FIELD_MAP: return type == &PyDict_Type;
    default: return 0;
    }
}

/* For other files: whether a list of fields is known to fit. */
int row_fits(PyObject *self, PyObject *fields)
{
    Plan *plan = (Plan *)self;
    Py_ssize_t count = PyList_GET_SIZE(fields);
    int is_fit = count >= plan->count && (!plan->exact || count == plan->exact);
    for (Py_ssize_t place = 0; is_fit && place < plan->count; place++) {
        PyObject *value = PyList_GET_ITEM(fields, place);
        is_fit = fits(value, plan->parts[place].kind) || (plan->parts[place].is_nullable && value == Py_None);
    }
    return is_fit;
}

const RowFormat *row_check_format(PyObject *self)
{
    return &((Plan *)self)->format;
}

static PyObject *row_check_call(PyObject *self, PyObject *const *args, size_t flags, PyObject *names)
{
    if (!names && PyVectorcall_NARGS(flags) == 1 && PyList_CheckExact(args[0]) && row_fits(self, args[0]))
        Py_RETURN_NONE;
    return PyObject_Vectorcall(((Plan *)self)->python, args, flags, names);
}

/* -- making them -- */

static int add_part(Plan *plan, PyObject *given)
{
    Part *part = plan->parts + plan->count;
    PyObject *kind, *encode;
    if (!PyArg_ParseTuple(given, "nUpO", &part->field_no, &kind, &part->is_nullable, &encode))
        return -1;
    if (part->field_no < 0) {
        PyErr_SetString(PyExc_ValueError, "fields are counted from 0");
        return -1;
    }
    part->kind = kind_of(kind);
    part->encode = Py_NewRef(encode);
    plan->format.fields[plan->count] = (FormatField){(uint8_t)part->kind, (uint8_t)part->is_nullable};
    plan->format.count = (uint32_t)++plan->count;
    return 0;
}

/* Make a plan of parts, tuples (field number, type, whether nullable, encoder), unless there are many of them. */
static PyObject *new_plan(PyTypeObject *type, PyObject *parts, PyObject *python, vectorcallfunc call)
{
    if (!PyTuple_CheckExact(parts) || PyTuple_GET_SIZE(parts) > PARTS_MAX)
        return Py_NewRef(python);
    Plan *plan = PyObject_GC_New(Plan, type);
    if (!plan)
        return NULL;
    plan->vectorcall = call;
    plan->python = Py_NewRef(python);
    plan->count = plan->exact = 0;
    plan->has_tail = 0;
    plan->format.count = plan->format.exact = 0;
    PyObject_GC_Track((PyObject *)plan);
    for (Py_ssize_t place = 0; place < PyTuple_GET_SIZE(parts); place++)
        if (add_part(plan, PyTuple_GET_ITEM(parts, place)) < 0) {
            Py_DECREF(plan);
            return NULL;
        }
    return (PyObject *)plan;
}

static int plan_traverse(PyObject *self, visitproc visit, void *arg)
{
    Plan *plan = (Plan *)self;
    Py_VISIT(plan->python);
    for (Py_ssize_t place = 0; place < plan->count; place++)
        Py_VISIT(plan->parts[place].encode);
    return 0;
}

static void plan_dealloc(PyObject *self)
{
    Plan *plan = (Plan *)self;
    PyObject_GC_UnTrack(self);
    Py_DECREF(plan->python);
    while (plan->count)
        Py_DECREF(plan->parts[--plan->count].encode);
    PyObject_GC_Del(self);
}

#define PLAN_TYPE(variable, name, text)                                                                        \
    PyTypeObject variable = {                                                                                  \
        PyVarObject_HEAD_INIT(NULL, 0)                                                                         \
        .tp_name = "iproto_server.native." name,                                                               \
        .tp_doc = text,                                                                                        \
        .tp_basicsize = sizeof(Plan),                                                                          \
        .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,                      \
        .tp_call = PyVectorcall_Call,                                                                          \
        .tp_vectorcall_offset = offsetof(Plan, vectorcall),                                                    \
        .tp_traverse = plan_traverse,                                                                          \
        .tp_dealloc = plan_dealloc,                                                                            \
    }

PLAN_TYPE(RowKey_Type, "RowKey", "Encodes the key of a row.");
PLAN_TYPE(ClientKey_Type, "ClientKey", "Checks and encodes a client's key.");
PLAN_TYPE(RowCheck_Type, "RowCheck", "Checks the fields of a row.");

/* quick_row_key(parts, has_tail, python) */
FUNCTION(native_row_key)
{
    if (count != 3) {
        PyErr_SetString(PyExc_TypeError, "quick_row_key() takes the parts, whether there is a tail, a function");
        return NULL;
    }
    PyObject *plan = new_plan(&RowKey_Type, args[0], args[2], row_key_call);
    if (plan && Py_TYPE(plan) == &RowKey_Type)
        ((Plan *)plan)->has_tail = args[1] == Py_True;
    return plan;
}

/* quick_client_key(parts, python) */
FUNCTION(native_client_key)
{
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "quick_client_key() takes the parts and a function");
        return NULL;
    }
    return new_plan(&ClientKey_Type, args[0], args[1], client_key_call);
}

/* quick_row_check(parts, exact_field_count, python) */
FUNCTION(native_row_check)
{
    if (count != 3) {
        PyErr_SetString(PyExc_TypeError, "quick_row_check() takes the parts, a number of fields, a function");
        return NULL;
    }
    Py_ssize_t exact = PyLong_AsSsize_t(args[1]);
    if (exact < 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "a number of fields is not negative");
        return NULL;
    }
    PyObject *plan = new_plan(&RowCheck_Type, args[0], args[2], row_check_call);
    if (plan && Py_TYPE(plan) == &RowCheck_Type) {
        ((Plan *)plan)->exact = exact;
        ((Plan *)plan)->format.exact = (uint32_t)exact;
    }
    return plan;
}
