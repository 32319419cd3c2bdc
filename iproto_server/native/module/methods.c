/* Compiled methods of Python's classes.
 *
 * They are descriptors as those of C's own classes are, so that calling one costs no more. Each keeps the Python
 * method whose place it takes.
 */
#include "../native.h"

static MethodTable *const tables[] = {
    &index_face_methods, &space_face_methods, &spaces_facade_methods,
    &indexes_facade_methods,
};

static Method *find_method(PyTypeObject *type, const char *name)
{
    for (size_t number = 0; number < sizeof tables / sizeof *tables; number++) {
        MethodTable *table = tables[number];
        if (strcmp(type->tp_name, table->name))
            continue;
        for (int place = 0; place < table->count; place++)
            if (!strcmp(name, table->methods[place].definition.ml_name))
                return table->prepare(type) < 0 ? NULL : table->methods + place;
    }
    PyErr_Format(PyExc_LookupError, "%s.%s has no compiled twin", type->tp_name, name);
    return NULL;
}

/* take_over_method(class, name): the compiled twin of a method. */
PyObject *take_over_method(PyObject *module, PyObject *args)
{
    PyTypeObject *type;
    const char *name;
    if (!PyArg_ParseTuple(args, "O!s", &PyType_Type, &type, &name))
        return NULL;
    Method *method = find_method(type, name);
    PyObject *python = method ? PyObject_GetAttrString((PyObject *)type, name) : NULL;
    if (!python)
        return NULL;
    Py_XSETREF(method->python, python);
    return PyDescr_NewMethod(type, &method->definition);
}

#define ARGUMENTS_MAX 8

/* Call the Python method with what the compiled one was called with. */
PyObject *call_python(const Method *method, PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    PyObject *few[ARGUMENTS_MAX + 1], **all = few;
    Py_ssize_t total = count + (names ? PyTuple_GET_SIZE(names) : 0);
    if (total > ARGUMENTS_MAX && !(all = PyMem_New(PyObject *, (size_t)total + 1)))
        return PyErr_NoMemory();
    all[0] = self;
    for (Py_ssize_t place = 0; place < total; place++)
        all[place + 1] = args[place];
    PyObject *result = PyObject_Vectorcall(method->python, all, (size_t)count + 1, names);
    if (all != few)
        PyMem_Free(all);
    return result;
}
