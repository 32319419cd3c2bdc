/* Keys, rows and update operations as procedures give them. */
#include "../native.h"

static int is_plain(PyObject *value)
{
    PyTypeObject *type = Py_TYPE(value);
    return type == &PyLong_Type || type == &PyUnicode_Type || type == &PyFloat_Type || type == &PyBool_Type
        || type == &PyBytes_Type || value == Py_None;
}

/* -- keys: a list, a tuple or a Tuple of parts; None for the empty key; anything else is a single part -- */

int read_given_key(PyObject *const *given, Key *key)
{
    PyObject *value = *given;
    if (PyObject_TypeCheck(value, &Tuple_Type) && !(value = tuple_fields((TupleObject *)value)))
        return -1;
    if (PyList_Check(value))
        *key = *KEY_OF_LIST(value);
    else if (PyTuple_Check(value))
        *key = (Key){((PyTupleObject *)value)->ob_item, PyTuple_GET_SIZE(value), NULL, NULL};
    else
        *key = (Key){given, value != Py_None, NULL, NULL};
    return 0;
}

/* as_key(key): the same as a list */
PyObject *native_as_key(PyObject *module, PyObject *given)
{
    Key key;
    if (PyList_Check(given))
        return Py_NewRef(given);
    return read_given_key(&given, &key) < 0 ? NULL : key_list(&key);
}

/* -- rows -- */

/* The fields as a list of their own, if all are plain. Otherwise None: they are known by what was packed, since an
 * enumeration is packed as another type, and the caller may change a list or a dict later. */
static PyObject *plain_fields(PyObject *values)
{
    PyObject **items = PySequence_Fast_ITEMS(values);
    for (Py_ssize_t place = 0; place < PySequence_Fast_GET_SIZE(values); place++)
        if (!is_plain(items[place]))
            return Py_NewRef(Py_None);
    return PySequence_List(values);
}

static PyObject *packed_row(PyObject *values, PyObject *format)
{
    PyObject *fields = plain_fields(values), *raw = NULL, *row = NULL;
    if (!fields)
        return NULL;
    Buffer buffer;
    buffer_init(&buffer);
    if (write_value(&buffer, fields == Py_None ? values : fields, 0) == 1)
        raw = PyBytes_FromStringAndSize((const char *)buffer.data, buffer.size);
    buffer_free(&buffer);
    if (raw)
        row = fields == Py_None ? stored_tuple(raw, format) : new_tuple(raw, format, fields);
    Py_XDECREF(raw);
    Py_DECREF(fields);
    return row;
}

PyObject *read_given_row(PyObject *values, PyObject *format, int *is_whole)
{
    *is_whole = 0;
    if (PyObject_TypeCheck(values, &Tuple_Type)) /* maybe of bytes that a client has sent */
        return new_tuple(((RawObject *)values)->raw, format, NULL);
    *is_whole = 1;
    if (PyList_CheckExact(values) || PyTuple_CheckExact(values))
        return packed_row(values, format);
    if (!PyList_Check(values) && !PyTuple_Check(values)) {
        raise_box_error("TUPLE_NOT_ARRAY", NULL);
        return NULL;
    }
    PyObject *list = PySequence_List(values), *row = list ? packed_row(list, format) : NULL;
    Py_XDECREF(list);
    return row;
}

/* as_row(values, space): a row as the space stores it */
FUNCTION(native_as_row)
{
    int is_whole;
    SpaceObject *space = count == 2 ? as_space(args[1]) : NULL;
    if (!space || !space->format)
        return PyErr_Format(PyExc_TypeError, "as_row() takes values and a space");
    return read_given_row(args[0], space->format, &is_whole);
}

/* -- operations -- */

int read_operations(UpdateOperations *read, Buffer *buffer, SpaceObject *core, ChangeCall *call)
{
    int is_known = read_given_operations(read, buffer, core, call->given);
    if (!is_known && !PyErr_Occurred())
        call->operations = PyObject_CallMethod((PyObject *)core, "parse_operations", "(O)", call->given);
    return PyErr_Occurred() ? -1 : is_known;
}
