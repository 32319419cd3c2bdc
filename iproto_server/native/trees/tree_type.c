/* Tree, the binding of the engine's index (engine/core/index/index.h), and the base class of box.index.index.Index.
 *
 * The values of a primary index are rows, those of a secondary one the rows' encoded primary keys. Their objects are
 * made on demand: the only copy of a row is in the records of the primary index.
 */
#include "tree_entries.h"

Index *index_of_object(PyObject *self)
{
    return PyObject_TypeCheck(self, &Tree_Type) ? index_of(self) : NULL;
}

TreeObject *quick_of(PyObject *object)
{
    if (!PyObject_TypeCheck(object, &Tree_Type))
        return NULL;
    TreeObject *tree = (TreeObject *)object;
    return tree->key_of && Py_TYPE(tree->key_of) == &RowKey_Type && tree->encode_key
        && Py_TYPE(tree->encode_key) == &ClientKey_Type ? tree : NULL;
}

static PyObject *tree_subscript(PyObject *self, PyObject *key)
{
    PyObject *value = PyBytes_CheckExact(key) ? tree_object_get(self, key) : NULL;
    if (!value && !PyErr_Occurred())
        PyErr_SetObject(PyExc_KeyError, key);
    return value;
}

static Py_ssize_t tree_length(PyObject *self)
{
    return (Py_ssize_t)core(self)->size;
}

static PyObject *tree_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *self = type->tp_alloc(type, 0);
    if (self && !(((TreeObject *)self)->index = index_new(NULL, NULL, NULL, NULL))) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return self;
}

/* Tree(layout=None, primary=None, *, is_unique=True, is_multikey=False, is_ordered=True, keys_of=None, key_of=None,
 * encode_key=None, is_exact=True) */
static int tree_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"layout", "primary", "is_unique", "is_multikey", "is_ordered", "keys_of", "key_of",
                            "encode_key", "is_exact", NULL};
    PyObject *layout = Py_None, *primary = Py_None, *keys_of = Py_None, *key_of = Py_None, *encode_key = Py_None;
    int is_unique = 1, is_multikey = 0, is_ordered = 1, is_exact = 1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO$pppOOOp:Tree", names, &layout, &primary, &is_unique, &is_multikey,
                                     &is_ordered, &keys_of, &key_of, &encode_key, &is_exact))
        return -1;
    Index *rows = primary == Py_None ? NULL : index_of_object(primary);
    if ((layout != Py_None && !PyTuple_Check(layout))
        || (primary != Py_None && (!rows || layout == Py_None || !index_holds_rows(rows)))) {
        PyErr_SetString(PyExc_TypeError, "a tree is made with the layout of its keys, and with a tree of rows");
        return -1;
    }
    KeyLayout made = {0};
    if (layout != Py_None && tree_read_layout(&made, layout) < 0)
        return -1;
    Index *index = index_new(layout == Py_None ? NULL : &made, rows, keys_of == Py_None ? NULL : &tree_python_keys,
                             keys_of == Py_None ? NULL : keys_of);
    if (!index) {
        PyErr_NoMemory();
        return -1;
    }
    if (index->hook)
        Py_INCREF(keys_of);
    index->is_unique = (uint8_t)is_unique;
    index->is_multikey = (uint8_t)is_multikey;
    TreeObject *tree = (TreeObject *)self;
    index_release(tree->index);
    tree->index = index;
    tree->is_ordered = (char)is_ordered;
    tree->is_exact = (char)is_exact;
    Py_XSETREF(tree->key_of, key_of == Py_None ? NULL : Py_NewRef(key_of));
    Py_XSETREF(tree->encode_key, encode_key == Py_None ? NULL : Py_NewRef(encode_key));
    return 0;
}

static void tree_dealloc(PyObject *self)
{
    index_release(index_of(self));
    Py_XDECREF(((TreeObject *)self)->key_of);
    Py_XDECREF(((TreeObject *)self)->encode_key);
    Py_TYPE(self)->tp_free(self);
}

/* adopt(other): share the entries of an index of the same kind from now on */
static PyObject *tree_method_adopt(PyObject *self, PyObject *other)
{
    Index *index = index_of_object(other);
    if (!index) {
        PyErr_SetString(PyExc_TypeError, "adopt() takes an index");
        return NULL;
    }
    index_retain(index);
    index_release(index_of(self));
    ((TreeObject *)self)->index = index;
    Py_RETURN_NONE;
}

static PyObject *tree_method_shares_entries(PyObject *self, PyObject *other)
{
    return PyBool_FromLong(index_of_object(other) == index_of(self));
}

static PyObject *tree_method_set(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != 2 || check_bytes(args[0]) < 0 || check_bytes(args[1]) < 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "set() takes a key and a value");
        return NULL;
    }
    return tree_object_set(self, args[0], args[1]) < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *tree_method_remove(PyObject *self, PyObject *key)
{
    if (check_bytes(key) < 0)
        return NULL;
    return tree_object_remove(self, key) < 0 ? NULL : Py_NewRef(Py_None);
}

/* encode_unique_key(key): the encoded key of a single row */
static PyObject *tree_method_encode_unique_key(PyObject *self, PyObject *given)
{
    PyObject *values = PySequence_Tuple(given);
    PyObject *key = values ? tree_unique_key((TreeObject *)self, ((PyTupleObject *)values)->ob_item, PyTuple_GET_SIZE(values))
                           : NULL;
    Py_XDECREF(values);
    return key;
}

static PyObject *tree_method_sizeof(PyObject *self, PyObject *none)
{
    size_t handles = index_of(self)->own.room * sizeof(uintptr_t);
    return PyLong_FromSize_t(sizeof(TreeObject) + sizeof(Index) + tree_memory(core(self)) + handles);
}

static PyObject *get_holds_rows(PyObject *self, void *closure)
{
    return PyBool_FromLong(index_holds_rows(index_of(self)));
}

static PyGetSetDef tree_attributes[] = {
    {"holds_rows", get_holds_rows, NULL, "Whether entries of secondary indexes may refer to its rows.", NULL},
    {NULL},
};

#define FAST(name, function, text) {name, (PyCFunction)(void (*)(void))function, METH_FASTCALL, text}
static PyMethodDef tree_methods[] = {
    FAST("get", tree_method_get, "The value of a key, or a default."),
    FAST("set", tree_method_set, "Add or overwrite an entry."),
    {"remove", tree_method_remove, METH_O, "Remove an entry."},
    {"encode_unique_key", tree_method_encode_unique_key, METH_O, "Encode the key of a single row."},
    {"adopt", tree_method_adopt, METH_O, "Share the entries of an index of the same kind."},
    {"shares_entries", tree_method_shares_entries, METH_O, "Whether another index has the same entries."},
    FAST("insert", tree_method_insert, "Add an entry, unless there is one with its key."),
    {"first", tree_method_first, METH_O, "The first entry that is not below a key."},
    {"first_value", tree_method_first_value, METH_O, "The value of the first key that starts with a prefix."},
    {"last", tree_method_last, METH_O, "The last entry below a key."},
    FAST("count_between", tree_method_count, "How many entries an interval has."),
    FAST("range_values", tree_method_range_values, "Values in an interval."),
    FAST("after", tree_method_after, "Keys and values behind a key."),
    {"clear", tree_method_clear, METH_NOARGS, "Remove every entry."},
    {"load", tree_method_load, METH_VARARGS, "Fill an empty tree at once."},
    {"append", tree_method_append, METH_VARARGS, "Add entries behind all others."},
    {"build_from", tree_method_build_from, METH_O, "Fill an empty tree from the rows that it refers to."},
    {"rows_fit", tree_method_rows_fit, METH_O, "Whether all rows are known to fit a format."},
    {"values_size", tree_method_values_size, METH_NOARGS, "The bytes of all values."},
    {"bsize", tree_method_sizeof, METH_NOARGS, "Bytes that the entries take, without the rows."},
    {"__sizeof__", tree_method_sizeof, METH_NOARGS, "Bytes that the entries take, without the rows."},
    {NULL},
};

static PyMappingMethods tree_mapping = {
    .mp_length = tree_length, .mp_subscript = tree_subscript, .mp_ass_subscript = tree_assign,
};

PyTypeObject Tree_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native._native.Tree",
    .tp_doc = "The ordered map.",
    .tp_basicsize = sizeof(TreeObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_new = tree_new,
    .tp_init = tree_init,
    .tp_getset = tree_attributes,
    .tp_dealloc = tree_dealloc,
    .tp_methods = tree_methods,
    .tp_as_mapping = &tree_mapping,
};
