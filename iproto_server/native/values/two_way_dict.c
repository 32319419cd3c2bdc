/* The twin of box.txn.transactional_two_way_dict.TransactionalTwoWayDict, outside of streams.
 *
 * Keys are numbers and texts here, and values numbers: comparing these runs no code of Python.
 */
#include "../native.h"

enum { BOX_TRANSACTIONS, BOX_VALUES, BOX_KEYS, DICT_SLOTS };
static Slot slots[DICT_SLOTS] = {{"_transactions", 0}, {"values", 0}, {"keys", 0}};
static PyObject *undo_name;
static PyTypeObject *incremental_dict_type; /* of Python */

/* -- what undoes a change, if its transaction is undone -- */

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *owner, *key, *before, *moment; /* before and moment: NULL where the key was missing */
} UndoObject;

static PyObject *absent; /* of Python */

static PyObject *undo_vectorcall(PyObject *callable, PyObject *const *args, size_t flags, PyObject *names)
{
    UndoObject *self = (UndoObject *)callable;
    if (PyVectorcall_NARGS(flags) || names) {
        PyErr_SetString(PyExc_TypeError, "an undo takes no arguments");
        return NULL;
    }
    if (!self->owner) {
        PyErr_SetString(PyExc_RuntimeError, "the dict is gone");
        return NULL;
    }
    PyObject *state = self->before ? PyTuple_Pack(2, self->before, self->moment) : Py_NewRef(absent);
    if (!state)
        return NULL;
    PyObject *given[] = {self->owner, Py_None, self->key, state};
    PyObject *done = PyObject_VectorcallMethod(undo_name, given, 4, NULL);
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
    Py_XDECREF(((UndoObject *)object)->before);
    Py_XDECREF(((UndoObject *)object)->moment);
    PyObject_GC_Del(object);
}

PyTypeObject DictUndo_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native.DictUndo",
    .tp_doc = "Undoes the change of a key.",
    .tp_basicsize = sizeof(UndoObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(UndoObject, call),
    .tp_call = PyVectorcall_Call,
    .tp_traverse = undo_traverse,
    .tp_clear = undo_clear,
    .tp_dealloc = undo_dealloc,
};

/* Have a change undone with the running transaction, if there is one. Returns -1 with an exception. */
static int undo_later(PyObject *self, PyObject *manager, PyObject *key, PyObject *before, PyObject *moment)
{
    TransactionObject *running = running_transaction((ManagerObject *)manager);
    if (!running)
        return 0;
    UndoObject *undo = PyObject_GC_New(UndoObject, &DictUndo_Type);
    if (!undo)
        return -1;
    undo->call = undo_vectorcall;
    undo->owner = Py_NewRef(self);
    undo->key = Py_NewRef(key);
    undo->before = Py_XNewRef(before);
    undo->moment = Py_XNewRef(moment);
    PyObject_GC_Track((PyObject *)undo);
    int failed = add_callback(&running->on_rollback, (PyObject *)undo);
    Py_DECREF(undo);
    return failed;
}

/* -- changes -- */

typedef struct {
    PyObject *manager, *keys;
    IncrementalDictObject *values;
} Parts;

static int is_plain(PyObject *key)
{
    return PyLong_CheckExact(key) || PyUnicode_CheckExact(key) || PyFloat_CheckExact(key);
}

/* Returns 0 where Python has to make the change. */
static int find_parts(PyObject *self, PyObject *key, Parts *parts)
{
    PyObject *values = get_slot(self, slots + BOX_VALUES);
    *parts = (Parts){get_slot(self, slots + BOX_TRANSACTIONS), get_slot(self, slots + BOX_KEYS),
                     (IncrementalDictObject *)values};
    return is_plain(key) && parts->manager && PyObject_TypeCheck(parts->manager, &Manager_Type)
        && ((ManagerObject *)parts->manager)->interactive == Py_None && values && is_incremental_dict(values)
        && parts->keys && PyDict_CheckExact(parts->keys);
}

/* Find the keys of a value, borrowed, or NULL. Returns 0, maybe with an exception, where Python has to make the change. */
static int find_keys(const Parts *parts, PyObject *value, IncrementalDictObject **keys)
{
    PyObject *found = PyDict_GetItemWithError(parts->keys, value);
    *keys = (IncrementalDictObject *)found;
    return found ? is_incremental_dict(found) : !PyErr_Occurred();
}

static int drop(IncrementalDictObject *dict, PyObject *key)
{
    PyObject *value;
    int found = incremental_dict_pop(dict, key, &value);
    Py_XDECREF(value);
    return found < 0 ? -1 : 0;
}

static int drop_key(const Parts *parts, PyObject *key, PyObject *value, IncrementalDictObject *keys)
{
    if (drop(keys, key) < 0)
        return -1;
    return incremental_dict_size(keys) ? 0 : PyDict_DelItem(parts->keys, value);
}

static int add_key(const Parts *parts, PyObject *key, PyObject *value, PyObject *moment)
{
    IncrementalDictObject *keys;
    if (!find_keys(parts, value, &keys))
        return -1;
    if (keys)
        return incremental_dict_add(keys, key, moment);
    PyObject *first = incremental_dict_new(incremental_dict_type);
    if (!first)
        return -1;
    int failed = incremental_dict_add((IncrementalDictObject *)first, key, moment) < 0
                 || PyDict_SetItem(parts->keys, value, first) < 0;
    Py_DECREF(first);
    return failed ? -1 : 0;
}

/* Replace the value `before`, NULL where the key is missing, whose moment is owned by the caller. The undo comes first:
 * it is all that a change without memory for the rest needs. Returns -1 with an exception. */
static int exchange(PyObject *self, const Parts *parts, PyObject *key, PyObject *before,
                    IncrementalDictObject *keys_before, PyObject *moment_before, PyObject *value, PyObject *moment)
{
    if (undo_later(self, parts->manager, key, before, moment_before) < 0
        || (before && (drop_key(parts, key, before, keys_before) < 0 || drop(parts->values, key) < 0)))
        return -1;
    if (!value)
        return 0;
    if (moment == Py_None && moment_before)
        moment = moment_before;
    return incremental_dict_add(parts->values, key, value) < 0 || add_key(parts, key, value, moment) < 0 ? -1 : 0;
}

/* Set the value of a key, or remove it where that is NULL. Returns None, for a removed key its moment; NULL, maybe
 * without an exception. */
static PyObject *change(PyObject *self, PyObject *key, PyObject *value, PyObject *moment)
{
    Parts parts;
    IncrementalDictObject *keys = NULL;
    if (!find_parts(self, key, &parts) || (value && (!PyLong_CheckExact(value) || !find_keys(&parts, value, &keys))))
        return NULL;
    PyObject *before = incremental_dict_get(parts.values, key);
    if (!before && (PyErr_Occurred() || !value))
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    if (before && (!PyLong_CheckExact(before) || !find_keys(&parts, before, &keys)))
        return NULL;
    PyObject *moment_before = before && keys ? incremental_dict_get(keys, key) : NULL;
    if (before && !moment_before)
        return NULL;
    Py_XINCREF(before);
    Py_XINCREF(moment_before);
    int failed = exchange(self, &parts, key, before, keys, moment_before, value, moment);
    Py_XDECREF(before);
    if (!failed && !value)
        return moment_before; /* there is one, as the key was there */
    Py_XDECREF(moment_before);
    return failed ? NULL : Py_NewRef(Py_None);
}

/* -- methods -- */

static int prepare(PyTypeObject *type)
{
    static PyTypeObject *prepared;
    if (prepared == type)
        return 0;
    PyObject *module = PyImport_ImportModule("iproto_server.box.txn.transactional_dict");
    PyObject *found = module ? PyObject_GetAttrString(module, "ABSENT") : NULL;
    Py_XDECREF(module);
    if (!found || find_slots((PyObject *)type, slots, DICT_SLOTS) < 0
        || !(undo_name = PyUnicode_InternFromString("_undo"))
        || !(incremental_dict_type = find_class("iproto_server.box.txn.incremental_dict", "IncrementalDict", NULL, 0))) {
        Py_XDECREF(found);
        return -1;
    }
    absent = found;
    prepared = (PyTypeObject *)Py_NewRef(type);
    return 0;
}

enum { PUT, REMOVE, METHODS };
static Method methods[METHODS];

METHOD_FUNCTION(method_put)
{
    int is_plain_call = (count == 2 || count == 3) && !names;
    ANSWER(is_plain_call ? change(self, args[0], args[1], count == 3 ? args[2] : Py_None) : NULL, methods[PUT]);
}

METHOD_FUNCTION(method_remove)
{
    ANSWER(count == 1 && !names ? change(self, args[0], NULL, NULL) : NULL, methods[REMOVE]);
}

static Method methods[METHODS] = {
    METHOD_ENTRY("put", method_put, "put($self, key, value, moment=None)\n--\n\nStore a value, and when that was."),
    METHOD_ENTRY("remove", method_remove, "remove($self, key)\n--\n\nRemove a key, which may be missing; return when it was put."),
};

MethodTable two_way_dict_methods = {"TransactionalTwoWayDict", prepare, methods, METHODS};
