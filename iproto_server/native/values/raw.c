/* Raw: a value that is packed already. */
#include "values.h"

PyObject *raw_alloc(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *self = type->tp_alloc(type, 0);
    if (self && !(((RawObject *)self)->raw = PyBytes_FromStringAndSize("\x90", 1)))
        Py_CLEAR(self);
    return self;
}

static int raw_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"raw", NULL};
    PyObject *raw;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "S:Raw", names, &raw))
        return -1;
    Py_XSETREF(((RawObject *)self)->raw, Py_NewRef(raw));
    return 0;
}

void raw_free(PyObject *self)
{
    Py_XDECREF(((RawObject *)self)->raw);
    Py_TYPE(self)->tp_free(self);
}

PyObject *new_raw(Position start, Position end)
{
    PyObject *bytes = PyBytes_FromStringAndSize((const char *)start, end - start);
    RawObject *self = bytes ? PyObject_New(RawObject, &Raw_Type) : NULL;
    if (self)
        self->raw = bytes;
    else
        Py_XDECREF(bytes);
    return (PyObject *)self;
}

static PyObject *raw_repr(PyObject *self)
{
    return PyUnicode_FromFormat("Raw(%R)", ((RawObject *)self)->raw);
}

static PyMemberDef raw_members[] = {
    {"raw", T_OBJECT, offsetof(RawObject, raw), READONLY, "the packed bytes"},
    {NULL},
};

PyTypeObject Raw_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.codec.msgpack.Raw",
    .tp_doc = "A value that is packed already: pack() copies its bytes.",
    .tp_basicsize = sizeof(RawObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_new = raw_alloc,
    .tp_init = raw_init,
    .tp_dealloc = raw_free,
    .tp_repr = raw_repr,
    .tp_members = raw_members,
};
