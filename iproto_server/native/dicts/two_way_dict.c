/* Transactional dicts that are searched by value, too, outside of streams (box/txn/transactional_two_way_dict.py).
 *
 * The values are in one dict, and the keys of each value in a dict of their own, each key with its moment. Keys and values may run
 * Python code when they are hashed and compared.
 */
#include "../native.h"

typedef struct {
    DictState base;
    PyObject *keys;
} TwoWayDict;

/* -- entries -- */

static IncrementalDictObject *values_of(const TwoWayDict *self)
{
    return (IncrementalDictObject *)self->base.values;
}

/* The keys of a value, a new reference; NULL, maybe without an exception, if there are none. */
static PyObject *keys_of(const TwoWayDict *self, PyObject *value)
{
    PyObject *keys = PyDict_GetItemWithError(self->keys, value);
    if (!keys || is_incremental_dict(keys))
        return Py_XNewRef(keys);
    PyErr_SetString(PyExc_TypeError, "the keys of a value must be an IncrementalDict");
    return NULL;
}

/* Load the entry of a key, which `dict_entry_free` frees. Returns -1 with an exception, and nothing is to be freed. */
static int load(const TwoWayDict *self, PyObject *key, DictEntry *entry)
{
    *entry = (DictEntry){Py_XNewRef(incremental_dict_get(values_of(self), key)), NULL};
    if (!entry->value)
        return PyErr_Occurred() ? -1 : 0;
    PyObject *keys = keys_of(self, entry->value);
    entry->moment = keys ? Py_XNewRef(incremental_dict_get((IncrementalDictObject *)keys, key)) : NULL;
    Py_XDECREF(keys);
    if (!entry->moment && PyErr_Occurred()) {
        dict_entry_free(entry);
        return -1;
    }
    if (!entry->moment)
        entry->moment = Py_NewRef(Py_None);
    return 0;
}

/* A change that fails halfway leaves a key without a moment: these and `load` can deal with it when it is undone. */

static int discard(IncrementalDictObject *dict, PyObject *key)
{
    PyObject *value;
    int found = incremental_dict_pop(dict, key, &value);
    Py_XDECREF(value);
    return found < 0 ? -1 : 0;
}

static int drop(const TwoWayDict *self, PyObject *key, PyObject *value)
{
    PyObject *keys = keys_of(self, value);
    int failed = !keys && PyErr_Occurred();
    if (keys)
        failed = discard((IncrementalDictObject *)keys, key) < 0
            || (!incremental_dict_size((IncrementalDictObject *)keys) && PyDict_DelItem(self->keys, value) < 0);
    Py_XDECREF(keys);
    return failed ? -1 : discard(values_of(self), key);
}

static int add(const TwoWayDict *self, PyObject *key, PyObject *value, PyObject *moment)
{
    if (incremental_dict_set(values_of(self), key, value) < 0)
        return -1;
    PyObject *keys = keys_of(self, value);
    int is_new = !keys && !PyErr_Occurred();
    if (is_new)
        keys = incremental_dict_new(Py_TYPE(self->base.values));
    int failed = !keys || incremental_dict_set((IncrementalDictObject *)keys, key, moment) < 0
        || (is_new && PyDict_SetItem(self->keys, value, keys) < 0);
    Py_XDECREF(keys);
    return failed ? -1 : 0;
}

/* Whether a value can be hashed, and the dict of its keys used; with an exception if not. */
static int may_be_value(const TwoWayDict *self, PyObject *value)
{
    PyObject *keys = keys_of(self, value);
    Py_XDECREF(keys);
    return keys || !PyErr_Occurred();
}

/* Replace an entry; `value` is NULL for a missing key. The key is then the last one. Returns -1 with an exception. */
static int exchange(const TwoWayDict *self, PyObject *key, const DictEntry *before, PyObject *value, PyObject *moment)
{
    if (before->value && drop(self, key, before->value) < 0)
        return -1;
    return value ? add(self, key, value, moment) : 0;
}

/* -- TwoWayDict -- */

static TwoWayDict *as_dict(PyObject *object)
{
    TwoWayDict *self = (TwoWayDict *)object;
    if (!self->base.values || !self->keys) {
        PyErr_SetString(PyExc_RuntimeError, "the dict has not been initialized");
        return NULL;
    }
    return self;
}

static int dict_init(PyObject *object, PyObject *args, PyObject *named)
{
    PyObject *box, *manager, *values, *keys;
    if (!PyArg_ParseTuple(args, "OO!O!O!:TwoWayDict", &box, &Manager_Type, &manager, &IncrementalTable_Type, &values,
                          &PyDict_Type, &keys))
        return -1;
    PyObject *of_state = PyTuple_Pack(3, box, manager, values);
    int failed = !of_state || dict_state_init(object, of_state, NULL) < 0;
    Py_XDECREF(of_state);
    if (!failed)
        Py_XSETREF(((TwoWayDict *)object)->keys, Py_NewRef(keys));
    return failed ? -1 : 0;
}

static int dict_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(((TwoWayDict *)object)->keys);
    return dict_state_traverse(object, visit, arg);
}

static int dict_clear(PyObject *object)
{
    Py_CLEAR(((TwoWayDict *)object)->keys);
    return dict_state_clear(object);
}

static void dict_dealloc(PyObject *object)
{
    PyObject_GC_UnTrack(object);
    dict_clear(object);
    Py_TYPE(object)->tp_free(object);
}

/* Whether changes are to be made here, and not in a stream's transaction. */
static int is_outside_of_streams(const TwoWayDict *self)
{
    PyObject *manager = self->base.manager;
    return ((ManagerObject *)manager)->interactive == Py_None;
}

static PyObject *put_in_stream(PyObject *self, PyObject *key, PyObject *value, PyObject *moment)
{
    static PyObject *name;
    PyObject *given[] = {self, key, value, moment};
    if (!name && !(name = PyUnicode_InternFromString("_put_in_stream")))
        return NULL;
    return PyObject_VectorcallMethod(name, given, 4, NULL);
}

/* put(key, value, moment=None) */
static PyObject *dict_put(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    static const char *const known_names[] = {"key", "value", "moment"};
    PyObject *taken[3] = {NULL, NULL, Py_None};
    if (take_arguments("put", known_names, 2, 3, args, count, names, taken) < 0)
        return NULL;
    TwoWayDict *self = as_dict(object);
    DictEntry before;
    if (!self)
        return NULL;
    if (!is_outside_of_streams(self))
        return put_in_stream(object, taken[0], taken[1], taken[2]);
    if (!may_be_value(self, taken[1]) || load(self, taken[0], &before) < 0)
        return NULL;
    PyObject *moment = taken[2] == Py_None && before.moment ? before.moment : taken[2];
    /* The undo comes first: a change that fails halfway needs nothing else. */
    int failed = dict_undo_later(&self->base, taken[0], &before) < 0
        || exchange(self, taken[0], &before, taken[1], moment) < 0;
    dict_entry_free(&before);
    return failed ? NULL : Py_NewRef(Py_None);
}

static PyObject *remove_in_stream(PyObject *self, PyObject *key)
{
    static PyObject *name;
    if (!name && !(name = PyUnicode_InternFromString("_remove_in_stream")))
        return NULL;
    return PyObject_CallMethodOneArg(self, name, key);
}

/* remove(key) */
static PyObject *dict_remove(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    static const char *const known_names[] = {"key"};
    PyObject *taken[1] = {NULL};
    if (take_arguments("remove", known_names, 1, 1, args, count, names, taken) < 0)
        return NULL;
    TwoWayDict *self = as_dict(object);
    DictEntry before;
    if (!self)
        return NULL;
    if (!is_outside_of_streams(self))
        return remove_in_stream(object, taken[0]);
    if (load(self, taken[0], &before) < 0)
        return NULL;
    if (!before.value)
        Py_RETURN_NONE;
    int failed = dict_undo_later(&self->base, taken[0], &before) < 0
        || exchange(self, taken[0], &before, NULL, NULL) < 0;
    PyObject *moment = failed ? NULL : Py_NewRef(before.moment);
    dict_entry_free(&before);
    return moment;
}

/* moment(key) */
static PyObject *dict_moment(PyObject *object, PyObject *key)
{
    TwoWayDict *self = as_dict(object);
    DictEntry entry;
    if (!self || load(self, key, &entry) < 0)
        return NULL;
    PyObject *moment = Py_NewRef(entry.value ? entry.moment : Py_None);
    dict_entry_free(&entry);
    return moment;
}

/* _load(key) */
static PyObject *dict_load(PyObject *object, PyObject *key)
{
    TwoWayDict *self = as_dict(object);
    DictEntry entry;
    if (!self || load(self, key, &entry) < 0)
        return NULL;
    PyObject *state = dict_entry_state(&entry);
    dict_entry_free(&entry);
    return state;
}

/* _store(key, state) */
static PyObject *dict_store(PyObject *object, PyObject *const *args, Py_ssize_t count)
{
    TwoWayDict *self = as_dict(object);
    PyObject *value = NULL, *moment = NULL;
    DictEntry before;
    if (!self)
        return NULL;
    if (count != 2 || (args[1] != absent && !PyArg_Parse(args[1], "(OO)", &value, &moment))) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "_store() takes a key and its state");
        return NULL;
    }
    if (load(self, args[0], &before) < 0)
        return NULL;
    int failed = exchange(self, args[0], &before, value, moment);
    dict_entry_free(&before);
    return failed ? NULL : Py_NewRef(Py_None);
}

static PyMethodDef dict_methods[] = {
    {"put", (PyCFunction)(void (*)(void))dict_put, METH_FASTCALL | METH_KEYWORDS,
     "put($self, key, value, moment=None)\n--\n\nStore a value, and when that was."},
    {"remove", (PyCFunction)(void (*)(void))dict_remove, METH_FASTCALL | METH_KEYWORDS,
     "remove($self, key)\n--\n\nRemove a key, which may be missing; return when it was put."},
    {"moment", dict_moment, METH_O, "Return when a key was put."},
    {"_load", dict_load, METH_O, "Return the state of a key."},
    {"_store", (PyCFunction)(void (*)(void))dict_store, METH_FASTCALL, "Set the state of a key."},
    {NULL},
};

static PyMemberDef dict_members[] = {
    {"keys", T_OBJECT_EX, offsetof(TwoWayDict, keys), READONLY, "The keys of each value, with their moments."},
    {NULL},
};

PyTypeObject TwoWayDict_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native._native.TwoWayDict",
    .tp_doc = "Values by key, and keys by value.",
    .tp_basicsize = sizeof(TwoWayDict),
    .tp_base = &DictState_Type,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_init = dict_init,
    .tp_traverse = dict_traverse,
    .tp_clear = dict_clear,
    .tp_dealloc = dict_dealloc,
    .tp_methods = dict_methods,
    .tp_members = dict_members,
};
