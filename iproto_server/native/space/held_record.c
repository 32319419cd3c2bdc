/* HeldRecord: the record of a row that is in no space, and the method of spaces that puts it in and takes it out. */
#include "../native.h"

typedef struct {
    PyObject_HEAD
    Record *record; /* NULL once it is in the space again */
    SpaceObject *space;
} HeldRecord;

static PyObject *new_held(SpaceObject *space, Record *record)
{
    HeldRecord *self = PyObject_New(HeldRecord, &HeldRecord_Type);
    if (!self) {
        record_free(record);
        return NULL;
    }
    self->record = record;
    self->space = (SpaceObject *)Py_NewRef((PyObject *)space);
    return (PyObject *)self;
}

static void held_dealloc(PyObject *object)
{
    HeldRecord *self = (HeldRecord *)object;
    if (self->record)
        record_free(self->record);
    Py_DECREF(self->space);
    PyObject_Free(object);
}

PyTypeObject HeldRecord_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native._native.HeldRecord",
    .tp_doc = "The record of a row that was taken out of its space.",
    .tp_basicsize = sizeof(HeldRecord),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_dealloc = held_dealloc,
};

/* Set the new row: packed, held, or none. Returns the held record, or NULL; -1 in `*failed` with an exception. */
static Record *read_row(Change *change, SpaceObject *space, PyObject *row, int *failed)
{
    *failed = 0;
    if (row == Py_None)
        return NULL;
    if (PyBytes_CheckExact(row)) {
        change->row.data = (const uint8_t *)PyBytes_AS_STRING(row);
        change->row.size = (size_t)PyBytes_GET_SIZE(row);
        return NULL;
    }
    HeldRecord *held = Py_TYPE(row) == &HeldRecord_Type ? (HeldRecord *)row : NULL;
    if (!held || held->space != space || !held->record) {
        PyErr_SetString(PyExc_TypeError, "exchange() takes bytes, None, or a record that was taken out of this space");
        *failed = -1;
        return NULL;
    }
    change->row.data = held->record->data + held->record->key_size;
    change->row.size = held->record->size - held->record->key_size;
    return held->record;
}

/* exchange(key, row): put a row in the place of the one with a key, without a statement; the record that was there, or None */
PyObject *space_method_exchange(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    SpaceObject *space = (SpaceObject *)self;
    if (count != 2 || !PyBytes_CheckExact(args[0]) || !space->core.primary) {
        PyErr_SetString(PyExc_TypeError, "exchange() takes a key and a row, of a space with an index");
        return NULL;
    }
    Change change;
    ChangeCall call = {NULL};
    Record *replaced = NULL, *given = NULL;
    int done;
    change_init(&change, &space->core, CHANGE_REPLACE, &call);
    if (key_buffer_set(&change.key, (const uint8_t *)PyBytes_AS_STRING(args[0]), (size_t)PyBytes_GET_SIZE(args[0])) < 0) {
        PyErr_NoMemory();
        done = -1;
    } else {
        change_find(&change);
        given = read_row(&change, space, args[1], &done);
        if (!done && (done = change_exchange(&change, given, &replaced)) < 0)
            space_raise(space);
    }
    if (!done && given)
        ((HeldRecord *)args[1])->record = NULL;
    change_free(&change);
    change_call_free(&call);
    if (done < 0)
        return NULL;
    return replaced ? new_held(space, replaced) : Py_NewRef(Py_None);
}
