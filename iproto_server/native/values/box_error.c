/* Errors for clients, raised in C. */
#include "values.h"

/* The arguments as a tuple; NULL with an exception. */
static PyObject *build_arguments(PyObject *code, const char *format, va_list values)
{
    PyObject *given = format ? Py_VaBuildValue(format, values) : PyTuple_New(0);
    if (given && !PyTuple_Check(given))
        Py_SETREF(given, PyTuple_Pack(1, given));
    PyObject *list = given ? PySequence_List(given) : NULL, *arguments = NULL;
    if (list && PyList_Insert(list, 0, code) == 0)
        arguments = PyList_AsTuple(list);
    Py_XDECREF(list);
    Py_XDECREF(given);
    return arguments;
}

void raise_box_error(const char *code, const char *format, ...)
{
    PyObject *module = PyImport_ImportModule("iproto_server.errors");
    PyObject *type = module ? PyObject_GetAttrString(module, "BoxError") : NULL;
    PyObject *codes = type ? PyObject_GetAttrString(module, "ErrorCode") : NULL;
    PyObject *number = codes ? PyObject_GetAttrString(codes, code) : NULL;
    va_list values;
    va_start(values, format);
    PyObject *arguments = number ? build_arguments(number, format, values) : NULL;
    va_end(values);
    PyObject *error = arguments ? PyObject_CallObject(type, arguments) : NULL;
    if (error)
        PyErr_SetObject(type, error);
    Py_XDECREF(error);
    Py_XDECREF(arguments);
    Py_XDECREF(number);
    Py_XDECREF(codes);
    Py_XDECREF(type);
    Py_XDECREF(module);
}
