/* One packed value to a Python value: the twin of codec.unpack. */
#include "../native.h"

PyObject *unpack(PyObject *raw)
{
    if (PyBytes_CheckExact(raw)) {
        Position at = (Position)PyBytes_AS_STRING(raw), end = at + PyBytes_GET_SIZE(raw);
        PyObject *value = read_value(&at, end, 0);
        if (value && at == end)
            return value;
        Py_XDECREF(value);
        if (PyErr_Occurred())
            return NULL;
    }
    return PyObject_CallOneArg(python_functions[PYTHON_UNPACK], raw);
}

PyObject *unpack_array(PyObject *raw)
{
    PyObject *fields = unpack(raw);
    if (fields && !PyList_CheckExact(fields)) {
        Py_DECREF(fields);
        PyErr_SetString(PyExc_TypeError, "a tuple must be a packed array");
        return NULL;
    }
    return fields;
}

FUNCTION(native_unpack)
{
    if (count != 1) {
        PyErr_SetString(PyExc_TypeError, "unpack() takes the packed value");
        return NULL;
    }
    return unpack(args[0]);
}
