/* RowKey: makes the key of a row in an index from its decoded fields.
 *
 * A key has the parts of the index. What makes it differ from all others may follow: more parts, and the encoded primary
 * key, always or only if a part of the index is nil.
 */
#include "../native.h"

typedef struct {
    PyObject_VAR_HEAD
    vectorcallfunc vectorcall;
    Py_ssize_t own;               /* how many parts are the index's */
    char rest_if_nil, has_tail;   /* whether the rest follows only nil; whether the primary key is the end of it */
    DecodedPart parts[];
} RowKey;

/* Append the value of a row. Returns 2 if it is nil, otherwise 1; -1 with an exception. */
static int write_part(Buffer *buffer, const DecodedPart *part, PyObject *value)
{
    if (part->is_nullable && (!value || value == Py_None))
        return write_key_byte(buffer, 0) < 0 ? -1 : 2;
    if (!value) {
        PyErr_SetString(PyExc_IndexError, "the row has no field for a part of the key");
        return -1;
    }
    if (part->is_nullable && write_key_byte(buffer, 1) < 0)
        return -1;
    return write_key_value(buffer, part, value);
}

/* The value of a part, a new reference; NULL, maybe without an exception, if it is missing. */
static PyObject *value_of(const DecodedPart *part, PyObject *fields)
{
    if (part->read)
        return PyObject_CallOneArg(part->read, fields);
    /* Python code that encodes a value might do anything to the fields. */
    return part->field_no < PySequence_Fast_GET_SIZE(fields)
        ? Py_NewRef(PySequence_Fast_GET_ITEM(fields, part->field_no)) : NULL;
}

/* Append parts. Returns as write_part: whether one of them is nil. */
static int write_parts(Buffer *buffer, const DecodedPart *parts, Py_ssize_t count, PyObject *fields)
{
    int result = 1;
    for (Py_ssize_t place = 0; place < count; place++) {
        PyObject *value = value_of(parts + place, fields);
        int done = PyErr_Occurred() ? -1 : write_part(buffer, parts + place, value);
        Py_XDECREF(value);
        if (done < 0)
            return -1;
        result |= done;
    }
    return result;
}

static int write_key(Buffer *buffer, const RowKey *self, PyObject *fields, PyObject *primary_key)
{
    int done = write_parts(buffer, self->parts, self->own, fields);
    if (done < 0 || (self->rest_if_nil && !(done & 2)))
        return done;
    done = write_parts(buffer, self->parts + self->own, Py_SIZE(self) - self->own, fields);
    return done < 0 || !self->has_tail ? done : write_key_bytes(buffer, primary_key);
}

/* key(fields), or key(fields, encoded primary key) */
static PyObject *key_call(PyObject *object, PyObject *const *args, size_t flags, PyObject *names)
{
    RowKey *self = (RowKey *)object;
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    if (names || count < 1 || count > 2 || (self->has_tail && count < 2))
        return PyErr_Format(PyExc_TypeError, "the key of a row is made of its fields and its encoded primary key");
    PyObject *fields = PySequence_Fast(args[0], "the fields of a row are a sequence");
    if (!fields)
        return NULL;
    Buffer buffer;
    buffer_init(&buffer);
    int done = write_key(&buffer, self, fields, count > 1 ? args[1] : NULL);
    Py_DECREF(fields);
    return finish_key(&buffer, done > 0 ? 1 : done);
}

/* -- making one -- */

/* Read (field number, type, is_nullable, encode, read or None). */
static int add_part(DecodedPart *part, PyObject *given)
{
    PyObject *kind, *encode, *read;
    Py_ssize_t field_no;
    int is_nullable;
    if (!PyTuple_Check(given))
        return PyErr_Format(PyExc_TypeError, "a part is a tuple"), -1;
    if (!PyArg_ParseTuple(given, "nUpOO", &field_no, &kind, &is_nullable, &encode, &read))
        return -1;
    if (field_no < 0) {
        PyErr_SetString(PyExc_ValueError, "fields are counted from 0");
        return -1;
    }
    *part = (DecodedPart){field_no, field_kind(kind), (char)is_nullable, Py_NewRef(encode),
                      read == Py_None ? NULL : Py_NewRef(read)};
    return 0;
}

static PyObject *key_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"parts", "rest", "rest_if_nil", "has_tail", NULL};
    PyObject *parts, *rest = NULL;
    int rest_if_nil = 0, has_tail = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|O!pp:RowKey", names, &PyTuple_Type, &parts, &PyTuple_Type, &rest,
                                     &rest_if_nil, &has_tail))
        return NULL;
    Py_ssize_t own = PyTuple_GET_SIZE(parts), more = rest ? PyTuple_GET_SIZE(rest) : 0;
    RowKey *self = (RowKey *)type->tp_alloc(type, own + more); /* filled with zeros */
    if (!self)
        return NULL;
    self->vectorcall = key_call;
    self->own = own;
    self->rest_if_nil = (char)rest_if_nil;
    self->has_tail = (char)has_tail;
    for (Py_ssize_t place = 0; place < own + more; place++)
        if (add_part(self->parts + place, place < own ? PyTuple_GET_ITEM(parts, place) : PyTuple_GET_ITEM(rest, place - own))
            < 0) {
            Py_DECREF(self);
            return NULL;
        }
    return (PyObject *)self;
}

static int key_traverse(PyObject *object, visitproc visit, void *arg)
{
    RowKey *self = (RowKey *)object;
    for (Py_ssize_t place = 0; place < Py_SIZE(self); place++) {
        Py_VISIT(self->parts[place].encode);
        Py_VISIT(self->parts[place].read);
    }
    return 0;
}

static void key_dealloc(PyObject *object)
{
    RowKey *self = (RowKey *)object;
    PyObject_GC_UnTrack(object);
    for (Py_ssize_t place = 0; place < Py_SIZE(self); place++) {
        Py_XDECREF(self->parts[place].encode);
        Py_XDECREF(self->parts[place].read);
    }
    Py_TYPE(object)->tp_free(object);
}

PyTypeObject RowKey_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native._native.RowKey",
    .tp_doc = "Makes the key of a row.",
    .tp_basicsize = sizeof(RowKey),
    .tp_itemsize = sizeof(DecodedPart),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(RowKey, vectorcall),
    .tp_new = key_new,
    .tp_traverse = key_traverse,
    .tp_dealloc = key_dealloc,
};
