/* Arguments of methods that are called without a tuple and a dict of them. */
#include "module.h"

int take_arguments(const char *method, const char *const *known_names, int count_min, int count_max,
                          PyObject *const *args, Py_ssize_t count, PyObject *names, PyObject **taken)
{
    int left = 0;
    for (Py_ssize_t place = 0; place < count && place < count_max; place++)
        taken[place] = args[place];
    for (Py_ssize_t place = 0; names && place < PyTuple_GET_SIZE(names); place++) {
        int number = 0;
        while (number < count_max
               && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, place), known_names[number]))
            number++;
        if (number < count || number == count_max) {
            PyErr_Format(PyExc_TypeError, "%s() got an unexpected argument %R", method, PyTuple_GET_ITEM(names, place));
            return -1;
        }
        taken[number] = args[count + place];
    }
    while (left < count_min && taken[left])
        left++;
    if (left < count_min || count > count_max) {
        PyErr_Format(PyExc_TypeError, "%s() takes %d to %d arguments", method, count_min, count_max);
        return -1;
    }
    return 0;
}
