/* What changes have made of rows, by key: the twins of functions in spark/source/fates.py, which answer False or None
 * where Python has to do it.
 */
#include "cells.h"

/* A mask of as many bytes as there are cells. Returns 0 with an exception. */
static int mask_init(Py_buffer *mask, PyObject *object, const Cells *cells)
{
    if (PyObject_GetBuffer(object, mask, PyBUF_SIMPLE) < 0)
        return 0;
    if (mask->len == cells->count)
        return 1;
    PyBuffer_Release(mask);
    PyErr_SetString(PyExc_ValueError, "a mask has a byte for each value");
    return 0;
}

/* Note the fate of a key: the tuple if it is this task's, True if it is another's, None if there is none. Returns 0 with
 * an exception. */
static int note(PyObject *fates, const Cells *keys, const Cells *tuples, const char *is_own, Py_ssize_t row)
{
    PyObject *fate = tuples->start[row] < 0 ? Py_NewRef(Py_None)
        : is_own[row]                       ? raw_of(tuples, row)
                                            : Py_NewRef(Py_True);
    PyObject *key = fate ? raw_of(keys, row) : NULL;
    int is_noted = key && PyDict_SetItem(fates, key, fate) == 0;
    Py_XDECREF(key);
    Py_XDECREF(fate);
    return is_noted;
}

/* quick_fates(fates, data, key starts, key ends, tuple starts, tuple ends, mask): whether the fates of keys were noted */
FUNCTION(native_quick_fates)
{
    if (count != 7 || !PyDict_CheckExact(args[0])) {
        PyErr_SetString(PyExc_TypeError, "quick_fates() takes a dict, bytes, four arrays of offsets and a mask");
        return NULL;
    }
    Cells keys, tuples;
    Py_buffer mask;
    if (!cells_init(&keys, args[1], args[2], args[3]))
        return NULL;
    PyObject *result = NULL;
    if (cells_init(&tuples, args[1], args[4], args[5])) {
        if (mask_init(&mask, args[6], &tuples)) {
            int is_known = keys.count == tuples.count;
            for (Py_ssize_t row = 0; is_known && row < keys.count; row++)
                is_known = keys.start[row] >= 0 && is_inside(&keys, row)
                    && (tuples.start[row] < 0 || is_inside(&tuples, row));
            Py_ssize_t row = 0;
            while (is_known && row < keys.count && note(args[0], &keys, &tuples, mask.buf, row))
                row++;
            if (!is_known || row == keys.count)
                result = PyBool_FromLong(is_known);
            PyBuffer_Release(&mask);
        }
        cells_free(&tuples);
    }
    cells_free(&keys);
    return result;
}

/* quick_touched(fates, data, start, end): a byte for each key, 1 where it has a fate */
FUNCTION(native_quick_touched)
{
    if (count != 4 || !PyDict_CheckExact(args[0])) {
        PyErr_SetString(PyExc_TypeError, "quick_touched() takes a dict, bytes and two arrays of offsets");
        return NULL;
    }
    Cells keys;
    if (!cells_init(&keys, args[1], args[2], args[3]))
        return NULL;
    PyObject *touched = PyBytes_FromStringAndSize(NULL, keys.count);
    for (Py_ssize_t row = 0; touched && row < keys.count; row++) {
        if (keys.start[row] < 0 || !is_inside(&keys, row)) {
            Py_SETREF(touched, Py_NewRef(Py_None));
            break;
        }
        PyObject *key = raw_of(&keys, row);
        int is_touched = key ? PyDict_Contains(args[0], key) : -1;
        Py_XDECREF(key);
        if (is_touched < 0)
            Py_CLEAR(touched);
        else
            PyBytes_AS_STRING(touched)[row] = (char)is_touched;
    }
    cells_free(&keys);
    return touched;
}
