/* Python functions and classes that compiled code calls for what is rare. The module that has one gives it once, when it
 * is imported.
 */
#include "../native.h"

static const char *const names[HOOKS] = {
    [HOOK_FRAMING_ERROR] = "framing_error",
    [HOOK_REQUEST_ERROR] = "request_error",
    [HOOK_DECODE_EXTENSION] = "decode_extension",
    [HOOK_ENCODE_EXTENSION] = "encode_extension",
};
static PyObject *given[HOOKS];

PyObject *hook(int place)
{
    if (!given[place])
        PyErr_Format(PyExc_RuntimeError, "the hook %s was not set", names[place]);
    return given[place];
}

/* set_hook(name, callable) */
FUNCTION(native_set_hook)
{
    if (count != 2 || !PyUnicode_Check(args[0]) || !PyCallable_Check(args[1]))
        return PyErr_Format(PyExc_TypeError, "set_hook() takes a name and a function");
    for (int place = 0; place < HOOKS; place++)
        if (PyUnicode_CompareWithASCIIString(args[0], names[place]) == 0) {
            Py_XSETREF(given[place], Py_NewRef(args[1]));
            Py_RETURN_NONE;
        }
    return PyErr_Format(PyExc_LookupError, "compiled code calls no %R", args[0]);
}
