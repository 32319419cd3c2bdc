/* The base class of SpaceRegistry: the spaces by number, and the schema version. */
#include "../native.h"

PyObject *find_space(SpaceTable *self, uint64_t number)
{
    if (!self->last_key || self->last_number != number) {
        PyObject *key = PyLong_FromUnsignedLongLong(number);
        if (!key)
            return NULL;
        Py_XSETREF(self->last_key, key);
        self->last_number = number;
    }
    return self->spaces && PyDict_CheckExact(self->spaces) ? PyDict_GetItemWithError(self->spaces, self->last_key)
                                                           : NULL;
}

GC_FIELDS(table, offsetof(SpaceTable, spaces), offsetof(SpaceTable, last_key))

static PyMemberDef table_members[] = {
    {"spaces", T_OBJECT_EX, offsetof(SpaceTable, spaces), 0, "The spaces by number, a dict."},
    {"schema_version", T_ULONGLONG, offsetof(SpaceTable, schema_version), 0, "A counter of schema changes."},
    {NULL},
};

PyTypeObject SpaceTable_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    BASE_TYPE(table, SpaceTable, "SpaceTable", "The spaces by number, and the schema version."),
    .tp_members = table_members,
};
