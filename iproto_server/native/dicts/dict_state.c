/* What every transactional dict has (box/txn/transactional_dict.py), and what undoes a change of one. */
#include "../native.h"

PyObject *absent;

int make_absent(void)
{
    return absent || (absent = PyObject_CallNoArgs((PyObject *)&PyBaseObject_Type)) ? 0 : -1;
}

static PyObject *state_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    return type->tp_alloc(type, 0);
}

int dict_state_init(PyObject *object, PyObject *args, PyObject *named)
{
    DictState *self = (DictState *)object;
    PyObject *box, *manager, *values;
    if (!PyArg_ParseTuple(args, "OO!O:DictState", &box, &Manager_Type, &manager, &values))
        return -1;
    Py_XSETREF(self->box, Py_NewRef(box));
    Py_XSETREF(self->manager, Py_NewRef(manager));
    Py_XSETREF(self->values, Py_NewRef(values));
    return 0;
}

int dict_state_traverse(PyObject *object, visitproc visit, void *arg)
{
    DictState *self = (DictState *)object;
    Py_VISIT(self->box);
    Py_VISIT(self->manager);
    Py_VISIT(self->values);
    return 0;
}

int dict_state_clear(PyObject *object)
{
    DictState *self = (DictState *)object;
    Py_CLEAR(self->box);
    Py_CLEAR(self->manager);
    Py_CLEAR(self->values);
    return 0;
}

static void state_dealloc(PyObject *object)
{
    PyObject_GC_UnTrack(object);
    dict_state_clear(object);
    Py_TYPE(object)->tp_free(object);
}

static PyMethodDef state_methods[] = {
    {"__class_getitem__", Py_GenericAlias, METH_O | METH_CLASS, "The class with types of keys and values."},
    {NULL},
};

static PyMemberDef state_members[] = {
    {"_box", T_OBJECT_EX, offsetof(DictState, box), READONLY, "The box."},
    {"_transactions", T_OBJECT_EX, offsetof(DictState, manager), READONLY, "The box's transactions."},
    {"values", T_OBJECT_EX, offsetof(DictState, values), READONLY, "The values by key."},
    {NULL},
};

PyTypeObject DictState_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native._native.DictState",
    .tp_doc = "What every transactional dict has.",
    .tp_basicsize = sizeof(DictState),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = state_new,
    .tp_init = dict_state_init,
    .tp_traverse = dict_state_traverse,
    .tp_clear = dict_state_clear,
    .tp_dealloc = state_dealloc,
    .tp_methods = state_methods,
    .tp_members = state_members,
};

/* -- entries -- */

void dict_entry_free(DictEntry *entry)
{
    Py_CLEAR(entry->value);
    Py_CLEAR(entry->moment);
}

PyObject *dict_entry_state(const DictEntry *entry)
{
    return entry->value ? PyTuple_Pack(2, entry->value, entry->moment) : Py_NewRef(absent);
}

/* -- undoing -- */

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *owner, *key;
    DictEntry before;
} UndoObject;

static PyObject *undo_vectorcall(PyObject *callable, PyObject *const *args, size_t flags, PyObject *names)
{
    static PyObject *name;
    UndoObject *self = (UndoObject *)callable;
    if (PyVectorcall_NARGS(flags) || names) {
        PyErr_SetString(PyExc_TypeError, "an undo takes no arguments");
        return NULL;
    }
    if (!self->owner) {
        PyErr_SetString(PyExc_RuntimeError, "the dict is gone");
        return NULL;
    }
    PyObject *state = name || (name = PyUnicode_InternFromString("_restore")) ? dict_entry_state(&self->before) : NULL;
    if (!state)
        return NULL;
    PyObject *given[] = {self->owner, self->key, state};
    PyObject *done = PyObject_VectorcallMethod(name, given, 3, NULL);
    Py_DECREF(state);
    return done;
}

static int undo_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(((UndoObject *)object)->owner);
    return 0;
}

static int undo_clear(PyObject *object)
{
    Py_CLEAR(((UndoObject *)object)->owner);
    return 0;
}

static void undo_dealloc(PyObject *object)
{
    PyObject_GC_UnTrack(object);
    Py_XDECREF(((UndoObject *)object)->owner);
    Py_DECREF(((UndoObject *)object)->key);
    dict_entry_free(&((UndoObject *)object)->before);
    PyObject_GC_Del(object);
}

PyTypeObject DictUndo_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native._native.DictUndo",
    .tp_doc = "Undoes the change of a key.",
    .tp_basicsize = sizeof(UndoObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(UndoObject, call),
    .tp_call = PyVectorcall_Call,
    .tp_traverse = undo_traverse,
    .tp_clear = undo_clear,
    .tp_dealloc = undo_dealloc,
};

int dict_undo_later(DictState *self, PyObject *key, const DictEntry *before)
{
    TransactionObject *running = running_transaction((ManagerObject *)self->manager);
    if (!running)
        return 0;
    UndoObject *undo = PyObject_GC_New(UndoObject, &DictUndo_Type);
    if (!undo)
        return -1;
    undo->call = undo_vectorcall;
    undo->owner = Py_NewRef((PyObject *)self);
    undo->key = Py_NewRef(key);
    undo->before = (DictEntry){Py_XNewRef(before->value), Py_XNewRef(before->moment)};
    PyObject_GC_Track((PyObject *)undo);
    int failed = add_callback(&running->on_rollback, (PyObject *)undo);
    Py_DECREF(undo);
    return failed;
}
