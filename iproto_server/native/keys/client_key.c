/* ClientKey: checks and encodes the key that a client or a procedure gives, or the beginning of one.
 *
 * A part's function encodes the values that are not known here. It raises the BoxError KEY_PART_TYPE for those that the
 * part does not accept, nil among them.
 */
#include "../native.h"

typedef struct {
    PyObject_VAR_HEAD
    vectorcallfunc vectorcall;
    DecodedPart parts[];
} ClientKey;

static int write_part(Buffer *buffer, const DecodedPart *part, PyObject *value, int is_exact)
{
    if (part->is_nullable && value == Py_None && !is_exact)
        return write_key_byte(buffer, 0);
    if (part->is_nullable && write_key_byte(buffer, 1) < 0)
        return -1;
    return write_key_value(buffer, part, value);
}

static int check_count(const ClientKey *self, Py_ssize_t count, int is_exact)
{
    if (is_exact && count != Py_SIZE(self))
        raise_box_error("EXACT_MATCH", "(nn)", Py_SIZE(self), count);
    else if (count > Py_SIZE(self))
        raise_box_error("KEY_PART_COUNT", "(nn)", Py_SIZE(self), count);
    else
        return 0;
    return -1;
}

PyObject *client_key(PyObject *object, PyObject *const *values, Py_ssize_t count, int is_exact)
{
    const ClientKey *self = (ClientKey *)object;
    if (check_count(self, count, is_exact) < 0)
        return NULL;
    Buffer buffer;
    buffer_init(&buffer);
    int done = 1;
    for (Py_ssize_t place = 0; done > 0 && place < count; place++)
        done = write_part(&buffer, self->parts + place, values[place], is_exact);
    return finish_key(&buffer, done);
}

Py_ssize_t client_key_parts(PyObject *self)
{
    return Py_SIZE(self);
}

/* The key of a sequence, whose length is checked before its values are looked at: it may have millions. A tuple of its own
 * keeps the values while Python code encodes one. */
static PyObject *key_of(PyObject *self, PyObject *given, int is_exact)
{
    Py_ssize_t count = PySequence_Size(given);
    if (count < 0 || check_count((ClientKey *)self, count, is_exact) < 0)
        return NULL;
    PyObject *values = PySequence_Tuple(given);
    PyObject *key = values ? client_key(self, ((PyTupleObject *)values)->ob_item, PyTuple_GET_SIZE(values), is_exact) : NULL;
    Py_XDECREF(values);
    return key;
}

static PyObject *key_call(PyObject *self, PyObject *const *args, size_t flags, PyObject *names)
{
    if (names || PyVectorcall_NARGS(flags) != 1)
        return PyErr_Format(PyExc_TypeError, "a key is made of one sequence of values");
    return key_of(self, args[0], 0);
}

/* exact(key) */
static PyObject *method_exact(PyObject *self, PyObject *key)
{
    return key_of(self, key, 1);
}

/* -- making one -- */

/* Read (type, is_nullable, encode). */
static int add_part(DecodedPart *part, PyObject *given)
{
    PyObject *kind, *encode;
    int is_nullable;
    if (!PyTuple_Check(given))
        return PyErr_Format(PyExc_TypeError, "a part is a tuple"), -1;
    if (!PyArg_ParseTuple(given, "UpO", &kind, &is_nullable, &encode))
        return -1;
    *part = (DecodedPart){0, field_kind(kind), (char)is_nullable, Py_NewRef(encode), NULL};
    return 0;
}

static PyObject *key_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *parts;
    if (!PyArg_ParseTuple(args, "O!:ClientKey", &PyTuple_Type, &parts))
        return NULL;
    ClientKey *self = (ClientKey *)type->tp_alloc(type, PyTuple_GET_SIZE(parts)); /* filled with zeros */
    if (!self)
        return NULL;
    self->vectorcall = key_call;
    for (Py_ssize_t place = 0; place < Py_SIZE(self); place++)
        if (add_part(self->parts + place, PyTuple_GET_ITEM(parts, place)) < 0) {
            Py_DECREF(self);
            return NULL;
        }
    return (PyObject *)self;
}

static int key_traverse(PyObject *object, visitproc visit, void *arg)
{
    ClientKey *self = (ClientKey *)object;
    for (Py_ssize_t place = 0; place < Py_SIZE(self); place++)
        Py_VISIT(self->parts[place].encode);
    return 0;
}

static void key_dealloc(PyObject *object)
{
    ClientKey *self = (ClientKey *)object;
    PyObject_GC_UnTrack(object);
    for (Py_ssize_t place = 0; place < Py_SIZE(self); place++)
        Py_XDECREF(self->parts[place].encode);
    Py_TYPE(object)->tp_free(object);
}

static PyMethodDef key_methods[] = {
    {"exact", method_exact, METH_O, "exact($self, key)\n--\n\nEncode a whole key without nil."},
    {NULL},
};

PyTypeObject ClientKey_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native._native.ClientKey",
    .tp_doc = "Checks and encodes a client's key.",
    .tp_basicsize = sizeof(ClientKey),
    .tp_itemsize = sizeof(DecodedPart),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(ClientKey, vectorcall),
    .tp_new = key_new,
    .tp_methods = key_methods,
    .tp_traverse = key_traverse,
    .tp_dealloc = key_dealloc,
};
