/* What all rooms of the module share: slots of Python objects, methods of Python classes. */
#ifndef IPROTO_SERVER_MODULE_H
#define IPROTO_SERVER_MODULE_H

#include "../values/values.h"
#include "fields.h"

/* arguments.c */
/* Take the arguments of a method, `count_min` of which are required, from their places or by their names; those that are
 * not given stay as they are. Returns -1 with an exception. */
int take_arguments(const char *method, const char *const *known_names, int count_min, int count_max,
                   PyObject *const *args, Py_ssize_t count, PyObject *names, PyObject **taken);

/* slots.c */
typedef struct {
    const char *name;
    Py_ssize_t offset;
} Slot;
int find_slots(PyObject *type, Slot *slots, int count); /* fills in the offsets; -1 with an exception */

/* Borrowed; NULL, without an exception, where nothing was set. */
static inline PyObject *get_slot(PyObject *self, const Slot *slot)
{
    return *(PyObject **)((char *)self + slot->offset);
}

static inline void set_slot(PyObject *self, const Slot *slot, PyObject *value)
{
    PyObject **place = (PyObject **)((char *)self + slot->offset);
    Py_XSETREF(*place, Py_NewRef(value));
}

/* hooks.c: what Python modules have given to compiled code, once; borrowed, NULL with an exception */
enum { HOOK_FRAMING_ERROR, HOOK_REQUEST_ERROR, HOOK_DECODE_EXTENSION, HOOK_ENCODE_EXTENSION, HOOKS };
PyObject *hook(int place);
FUNCTION(native_set_hook);

/* methods.c: compiled methods of Python's classes */
typedef struct {
    PyMethodDef definition;
    PyObject *python; /* what the method has taken the place of */
} Method;
typedef struct {
    const char *name;
    int (*prepare)(PyTypeObject *type); /* is told the class; -1 with an exception */
    Method *methods;
    int count;
} MethodTable;
extern MethodTable space_face_methods, index_face_methods,
    spaces_facade_methods, indexes_facade_methods;

#define METHOD_FUNCTION(name)                                                                                  \
    static PyObject *name(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
#define METHOD_ENTRY(name, function, text)                                                                     \
    {{name, (PyCFunction)(void (*)(void))function, METH_FASTCALL | METH_KEYWORDS, text}, NULL}

PyObject *take_over_method(PyObject *module, PyObject *args);
PyObject *call_python(const Method *method, PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names);

/* What a compiled method answers: what it has found, or what the Python method says where it has found nothing out. */
#define ANSWER(found, method)                                                                                  \
    do {                                                                                                       \
        PyObject *answer = (found);                                                                            \
        return answer || PyErr_Occurred() ? answer : call_python(&(method), self, args, count, names);         \
    } while (0)

#endif
