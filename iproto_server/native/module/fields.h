/* Extension types with fields that hold Python objects: what the garbage collector needs. */
#ifndef IPROTO_SERVER_FIELDS_H
#define IPROTO_SERVER_FIELDS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

static inline PyObject **field_at(PyObject *self, size_t offset)
{
    return (PyObject **)((char *)self + offset);
}

static inline int visit_fields(PyObject *self, const size_t *offsets, size_t count, visitproc visit, void *arg)
{
    for (size_t place = 0; place < count; place++)
        Py_VISIT(*field_at(self, offsets[place]));
    return 0;
}

static inline void clear_fields(PyObject *self, const size_t *offsets, size_t count)
{
    for (size_t place = 0; place < count; place++)
        Py_CLEAR(*field_at(self, offsets[place]));
}

/* A field that takes objects of one type only, for PyGetSetDef's closure; fields.c. */
typedef struct {
    size_t offset;
    PyTypeObject *type;
    const char *name;
} TypedField;
PyObject *get_typed_field(PyObject *self, void *field);
int set_typed_field(PyObject *self, PyObject *value, void *field);

/* Define NAME_traverse, NAME_clear and NAME_dealloc of a type with these offsets of fields. */
#define GC_FIELDS(name, ...)                                                                                    \
    static const size_t name##_fields[] = {__VA_ARGS__};                                                        \
    enum { name##_count = sizeof name##_fields / sizeof *name##_fields };                                       \
    static int name##_traverse(PyObject *self, visitproc visit, void *arg)                                      \
    {                                                                                                           \
        return visit_fields(self, name##_fields, name##_count, visit, arg);                                     \
    }                                                                                                           \
    static int name##_clear(PyObject *self)                                                                     \
    {                                                                                                           \
        clear_fields(self, name##_fields, name##_count);                                                        \
        return 0;                                                                                               \
    }                                                                                                           \
    static void name##_dealloc(PyObject *self)                                                                  \
    {                                                                                                           \
        PyObject_GC_UnTrack(self);                                                                              \
        name##_clear(self);                                                                                     \
        Py_TYPE(self)->tp_free(self);                                                                           \
    }

/* The slots of a base class whose instances begin with their fields unset. */
#define BASE_TYPE(name, Object, text, doc)                                                                      \
    .tp_name = "iproto_server.native._native." text,                                                            \
    .tp_doc = doc,                                                                                              \
    .tp_basicsize = sizeof(Object),                                                                             \
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,                                  \
    .tp_new = PyType_GenericNew,                                                                                \
    .tp_traverse = name##_traverse,                                                                             \
    .tp_clear = name##_clear,                                                                                   \
    .tp_dealloc = name##_dealloc

#endif
