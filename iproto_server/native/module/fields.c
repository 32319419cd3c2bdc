/* Fields that take objects of one type only. */
#include "fields.h"

PyObject *get_typed_field(PyObject *self, void *field)
{
    const TypedField *known = field;
    PyObject *value = *field_at(self, known->offset);
    if (!value)
        PyErr_SetString(PyExc_AttributeError, known->name);
    return Py_XNewRef(value);
}

int set_typed_field(PyObject *self, PyObject *value, void *field)
{
    const TypedField *known = field;
    if (!value || !PyObject_TypeCheck(value, known->type)) {
        PyErr_Format(PyExc_TypeError, "%s is a %s, not %.100s", known->name, strrchr(known->type->tp_name, '.') + 1,
                     value ? Py_TYPE(value)->tp_name : "nothing");
        return -1;
    }
    Py_XSETREF(*field_at(self, known->offset), Py_NewRef(value));
    return 0;
}
