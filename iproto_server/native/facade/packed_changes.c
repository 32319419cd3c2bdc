/* Changes with packed update operations. */
#include "../native.h"

/* The operations for a space that changes rows by its own methods. */
static PyObject *parsed_operations(SpaceObject *core, const GivenOperations *given)
{
    return PyObject_CallMethod((PyObject *)core, "parse_packed", "y#k", (const char *)given->at,
                               (Py_ssize_t)(given->end - given->at), (unsigned long)given->index_base);
}

static PyObject *change_custom(SpaceObject *core, const GivenOperations *given, const char *method, PyObject *one, PyObject *other)
{
    PyObject *operations = parsed_operations(core, given);
    PyObject *row = !operations ? NULL
        : other ? PyObject_CallMethod((PyObject *)core, method, "OOO", one, other, operations)
                : PyObject_CallMethod((PyObject *)core, method, "OO", one, operations);
    Py_XDECREF(operations);
    return row;
}

static PackedOperations packed_operations(const SpaceObject *core, const GivenOperations *given)
{
    return (PackedOperations){given->at, given->end, given->index_base, core->names};
}

static PyObject *update_plain(SpaceObject *core, PyObject *id, PyObject *key, const GivenOperations *given, int is_exempt)
{
    uint64_t number;
    UpdateOperations read;
    PackedOperations packed = packed_operations(core, given);
    ChangeCall call = {.packed = &packed, .is_exempt = is_exempt};
    if (space_read_index((PyObject *)core, id, &number) < 0)
        return NULL;
    int is_known = read_packed_operations(&read, &packed);
    return PyErr_Occurred() ? NULL : space_update(core, number, KEY_OF_LIST(key), &call, is_known ? &read : NULL);
}

PyObject *facade_update_packed(SpaceFacade *space, PyObject *id, PyObject *key, const GivenOperations *given)
{
    SpaceObject *core = facade_core(space, PRIVILEGE_WRITE);
    PyObject *row = !core ? NULL
        : core->is_custom ? change_custom(core, given, "update", id, key)
                          : update_plain(core, id, key, given, space->exempts_updates);
    Py_XDECREF((PyObject *)core);
    return row;
}

static PyObject *upsert_plain(SpaceObject *core, PyObject *row, const GivenOperations *given)
{
    UpdateOperations read;
    PackedOperations packed = packed_operations(core, given);
    ChangeCall call = {.packed = &packed};
    int is_known = read_packed_operations(&read, &packed);
    return PyErr_Occurred() ? NULL : space_upsert(core, row, 1, &call, is_known ? &read : NULL);
}

PyObject *facade_upsert_packed(SpaceFacade *space, PyObject *row, const GivenOperations *given)
{
    SpaceObject *core = facade_core(space, PRIVILEGE_WRITE);
    PyObject *stored = core ? new_tuple(((RawObject *)row)->raw, core->format, NULL) : NULL, *done = NULL;
    if (stored)
        done = core->is_custom ? change_custom(core, given, "upsert", stored, NULL) : upsert_plain(core, stored, given);
    Py_XDECREF(stored);
    Py_XDECREF((PyObject *)core);
    return done;
}
