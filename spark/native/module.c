/* The module `pyspark_tarantool.native._native`: its kernels replace Python functions and classes by name. */
#include "kernels.h"

/* Must equal the number in spark/native/__init__.py; it changes with the kernels' names, parameters or results. */
#define INTERFACE 1

#ifndef FINGERPRINT
#define FINGERPRINT "" /* of the sources; setup.py defines it */
#endif

#define ENTRY(function, text) {#function, (PyCFunction)(void (*)(void))function, METH_FASTCALL, text}
static PyMethodDef kernels[] = {
    ENTRY(quick_rows, "Find the rows of logs in a buffer."),
    ENTRY(quick_tuples, "Find the tuples of a space in a buffer of rows of a snapshot."),
    ENTRY(quick_raws, "Take packed values out of a buffer."),
    ENTRY(quick_integers, "Make a column of packed integers."),
    ENTRY(quick_strings, "Make a column of packed strings."),
    ENTRY(quick_search, "Search for byte strings that follow a byte."),
    {NULL},
};

/* take_over(name, python): the compiled twin of a function or class, None if there is none. */
static PyObject *take_over(PyObject *module, PyObject *args)
{
    const char *name;
    PyObject *python;
    if (!PyArg_ParseTuple(args, "sO", &name, &python))
        return NULL;
    for (PyMethodDef *kernel = kernels; kernel->ml_name; kernel++)
        if (!strcmp(name, kernel->ml_name))
            return PyCFunction_New(kernel, NULL);
    return Py_NewRef(strcmp(name, "KeyStates") ? Py_None : (PyObject *)&KeyStates_Type);
}

static PyMethodDef methods[] = {
    {"take_over", take_over, METH_VARARGS, "The compiled twin of a function or class; None if there is none."},
    {NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "pyspark_tarantool.native._native",
    .m_doc = "Compiled kernels of the data source.",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit__native(void)
{
    PyObject *module = PyType_Ready(&KeyStates_Type) < 0 ? NULL : PyModule_Create(&definition);
    if (module && (PyModule_AddIntConstant(module, "INTERFACE", INTERFACE) < 0
                   || PyModule_AddStringConstant(module, "FINGERPRINT", FINGERPRINT) < 0))
        Py_CLEAR(module);
    return module;
}
