/* The base class of Format: what compiled code looks at of the format of rows. */
#include "../native.h"

typedef struct {
    PyObject_HEAD
    PyObject *check, *names, *packed_names;
    uint32_t number; /* for Lua code; 0: not numbered yet */
} FormatObject;

static FormatObject *as_format(PyObject *object)
{
    return PyObject_TypeCheck(object, &Format_Type) ? (FormatObject *)object : NULL;
}

PyObject *format_names(PyObject *object)
{
    FormatObject *format = as_format(object);
    return format && format->names && PyDict_CheckExact(format->names) ? format->names : NULL;
}

PyObject *format_packed_names(PyObject *object)
{
    FormatObject *format = as_format(object);
    return format && format->packed_names && PyTuple_CheckExact(format->packed_names) ? format->packed_names : NULL;
}

uint32_t format_number(PyObject *object, int *is_new)
{
    static uint32_t last;
    FormatObject *format = as_format(object);
    *is_new = format && !format->number && format->packed_names && PyTuple_CheckExact(format->packed_names)
        && PyTuple_GET_SIZE(format->packed_names);
    if (*is_new)
        format->number = ++last;
    return format ? format->number : 0;
}

static int format_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((FormatObject *)self)->check);
    Py_VISIT(((FormatObject *)self)->names);
    Py_VISIT(((FormatObject *)self)->packed_names);
    return 0;
}

static int format_clear(PyObject *self)
{
    Py_CLEAR(((FormatObject *)self)->check);
    Py_CLEAR(((FormatObject *)self)->names);
    Py_CLEAR(((FormatObject *)self)->packed_names);
    return 0;
}

static void format_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    format_clear(self);
    Py_TYPE(self)->tp_free(self);
}

static PyMemberDef format_members[] = {
    {"check", T_OBJECT_EX, offsetof(FormatObject, check), 0, "Raises BoxError unless the fields of a row fit."},
    {"names", T_OBJECT_EX, offsetof(FormatObject, names), 0, "The fields' numbers, from 0, by name."},
    {"packed_names", T_OBJECT_EX, offsetof(FormatObject, packed_names), 0, "The names, packed, in the same order."},
    {NULL},
};

PyTypeObject Format_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native._native.FormatBase",
    .tp_doc = "The format of rows.",
    .tp_basicsize = sizeof(FormatObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = PyType_GenericNew,
    .tp_members = format_members,
    .tp_traverse = format_traverse,
    .tp_clear = format_clear,
    .tp_dealloc = format_dealloc,
};
