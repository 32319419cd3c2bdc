/* The attributes of Python's classes that have `__slots__`, read and written without looking for their names.
 *
 * A class's own descriptors say where its slots are, so nothing here knows how objects are laid out. An object must be
 * known to be of the class, or of one that inherits from it.
 */
#include "../native.h"

int find_slots(PyObject *type, Slot *slots, int count)
{
    for (int place = 0; place < count; place++) {
        PyObject *descriptor = PyObject_GetAttrString(type, slots[place].name);
        if (!descriptor)
            return -1;
        if (Py_TYPE(descriptor) != &PyMemberDescr_Type
            || ((PyMemberDescrObject *)descriptor)->d_member->type != T_OBJECT_EX) {
            PyErr_Format(PyExc_TypeError, "%s of %R is no slot", slots[place].name, type);
            Py_DECREF(descriptor);
            return -1;
        }
        slots[place].offset = ((PyMemberDescrObject *)descriptor)->d_member->offset;
        Py_DECREF(descriptor);
    }
    return 0;
}
