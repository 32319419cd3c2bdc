/* The base class of box.txn.incremental_dict.IncrementalDict, and of transactional dicts. */
#include "../native.h"

static PyObject *table_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    if (PyTuple_GET_SIZE(args) || named) {
        PyErr_SetString(PyExc_TypeError, "an IncrementalDict begins empty");
        return NULL;
    }
    return incremental_dict_new(type);
}

static int table_traverse(PyObject *object, visitproc visit, void *arg)
{
    for (Entry *entry = ((IncrementalDictObject *)object)->first; entry; entry = entry->after) {
        Py_VISIT(entry->key);
        Py_VISIT(entry->value);
    }
    return 0;
}

static int table_clear(PyObject *object)
{
    incremental_dict_clear((IncrementalDictObject *)object);
    return 0;
}

static void table_dealloc(PyObject *object)
{
    PyObject_GC_UnTrack(object);
    table_clear(object);
    Py_TYPE(object)->tp_free(object);
}

static Py_ssize_t table_length(PyObject *self)
{
    return ((IncrementalDictObject *)self)->count;
}

/* Raise the KeyError, whose only argument is the key, also where that is None or a tuple. */
static void missing(PyObject *key)
{
    PyObject *arguments = PyTuple_Pack(1, key);
    if (arguments)
        PyErr_SetObject(PyExc_KeyError, arguments);
    Py_XDECREF(arguments);
}

static PyObject *table_subscript(PyObject *self, PyObject *key)
{
    PyObject *value = incremental_dict_get((IncrementalDictObject *)self, key);
    if (!value && !PyErr_Occurred())
        missing(key);
    return Py_XNewRef(value);
}

static int table_assign(PyObject *self, PyObject *key, PyObject *value)
{
    if (value)
        return incremental_dict_set((IncrementalDictObject *)self, key, value);
    int found = incremental_dict_pop((IncrementalDictObject *)self, key, &value);
    Py_XDECREF(value);
    if (!found)
        missing(key);
    return found > 0 ? 0 : -1;
}

static int table_contains(PyObject *self, PyObject *key)
{
    return incremental_dict_get((IncrementalDictObject *)self, key) ? 1 : PyErr_Occurred() ? -1 : 0;
}

static int takes_default(const char *name, Py_ssize_t count)
{
    if (count != 1 && count != 2)
        PyErr_Format(PyExc_TypeError, "%s() takes 1 or 2 arguments (%zd given)", name, count);
    return count == 1 || count == 2;
}

static PyObject *table_get(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (!takes_default("get", count))
        return NULL;
    PyObject *value = incremental_dict_get((IncrementalDictObject *)self, args[0]);
    if (!value && PyErr_Occurred())
        return NULL;
    return Py_NewRef(value ? value : count == 2 ? args[1] : Py_None);
}

static PyObject *table_pop(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (!takes_default("pop", count))
        return NULL;
    PyObject *value;
    int found = incremental_dict_pop((IncrementalDictObject *)self, args[0], &value);
    if (!found && count == 2)
        return Py_NewRef(args[1]);
    if (!found)
        missing(args[0]);
    return value;
}

static PyObject *table_clear_all(PyObject *self, PyObject *none)
{
    table_clear(self);
    Py_RETURN_NONE;
}

/* -- iteration over the keys -- */

typedef struct {
    PyObject_HEAD
    IncrementalDictObject *dict; /* NULL at the end */
    Entry *next;
    uint64_t version;
} KeysObject;

static PyObject *table_iter(PyObject *object)
{
    KeysObject *keys = PyObject_GC_New(KeysObject, &IncrementalDictKeys_Type);
    if (!keys)
        return NULL;
    keys->dict = (IncrementalDictObject *)Py_NewRef(object);
    keys->next = keys->dict->first;
    keys->version = keys->dict->version;
    PyObject_GC_Track(keys);
    return (PyObject *)keys;
}

static PyObject *keys_next(PyObject *object)
{
    KeysObject *self = (KeysObject *)object;
    if (!self->dict)
        return NULL;
    if (self->version != self->dict->version) {
        PyErr_SetString(PyExc_RuntimeError, "the dictionary has changed during iteration");
        return NULL;
    }
    if (!self->next) {
        Py_CLEAR(self->dict);
        return NULL;
    }
    PyObject *key = Py_NewRef(self->next->key);
    self->next = self->next->after;
    return key;
}

static int keys_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((KeysObject *)self)->dict);
    return 0;
}

static void keys_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    Py_XDECREF(((KeysObject *)self)->dict);
    PyObject_GC_Del(self);
}

PyTypeObject IncrementalDictKeys_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native.IncrementalDictKeys",
    .tp_doc = "Iterates over the keys of an IncrementalDict.",
    .tp_basicsize = sizeof(KeysObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_traverse = keys_traverse,
    .tp_iter = PyObject_SelfIter,
    .tp_iternext = keys_next,
    .tp_dealloc = keys_dealloc,
};

static PyMethodDef table_methods[] = {
    {"get", (PyCFunction)(void (*)(void))table_get, METH_FASTCALL, "The value of a key, or a default."},
    {"pop", (PyCFunction)(void (*)(void))table_pop, METH_FASTCALL, "Remove a key and return its value, or a default."},
    {"clear", table_clear_all, METH_NOARGS, "Remove all keys."},
    {NULL},
};

static PyMemberDef table_members[] = {
    {"buckets", T_PYSSIZET, offsetof(IncrementalDictObject, buckets), READONLY, "The number of buckets."},
    {NULL},
};

static PyMappingMethods table_mapping = {
    .mp_length = table_length,
    .mp_subscript = table_subscript,
    .mp_ass_subscript = table_assign,
};
static PySequenceMethods table_sequence = {.sq_contains = table_contains};

PyTypeObject IncrementalTable_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native.IncrementalTable",
    .tp_doc = "A dict that grows and shrinks one bucket at a time.",
    .tp_basicsize = sizeof(IncrementalDictObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .tp_as_mapping = &table_mapping,
    .tp_as_sequence = &table_sequence,
    .tp_hash = PyObject_HashNotImplemented,
    .tp_methods = table_methods,
    .tp_members = table_members,
    .tp_iter = table_iter,
    .tp_traverse = table_traverse,
    .tp_clear = table_clear,
    .tp_new = table_new,
    .tp_dealloc = table_dealloc,
};
