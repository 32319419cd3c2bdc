/* How the keys of a tree are made from rows: by a layout, or by a function of Python. */
#include "tree_entries.h"

static int key_type(const char *name)
{
    static const char *const names[] = {
        "unsigned", "integer", "number", "double", "boolean", "string", "varbinary",
    };
    for (int type = KEY_UNSIGNED; type <= KEY_VARBINARY; type++)
        if (!strcmp(name, names[type]))
            return type;
    PyErr_Format(PyExc_ValueError, "a tree makes no keys of the type %.100s", name);
    return -1;
}

static int add_part(KeyLayout *layout, PyObject *given)
{
    unsigned int field_no;
    const char *name;
    int is_nullable, type;
    if (!PyTuple_Check(given)) {
        PyErr_SetString(PyExc_TypeError, "a part of a key is a tuple");
        return -1;
    }
    if (!PyArg_ParseTuple(given, "Isp", &field_no, &name, &is_nullable) || (type = key_type(name)) < 0)
        return -1;
    layout->parts[layout->count++] = (KeyPart){field_no, (uint8_t)type, (uint8_t)is_nullable};
    return 0;
}

/* Read (parts, own, is_rest_for_nil), of which a part is (field number, type, whether it may be nil). */
int tree_read_layout(KeyLayout *layout, PyObject *given)
{
    PyObject *parts;
    int own, is_rest_for_nil;
    if (!PyArg_ParseTuple(given, "O!ip", &PyTuple_Type, &parts, &own, &is_rest_for_nil))
        return -1;
    if (own < 1 || own > PyTuple_GET_SIZE(parts) || PyTuple_GET_SIZE(parts) > KEY_PARTS_MAX) {
        PyErr_SetString(PyExc_ValueError, "a key has between one and 16 parts");
        return -1;
    }
    for (Py_ssize_t place = 0; place < PyTuple_GET_SIZE(parts); place++)
        if (add_part(layout, PyTuple_GET_ITEM(parts, place)) < 0)
            return -1;
    layout->own = (uint8_t)own;
    layout->is_rest_for_nil = (uint8_t)is_rest_for_nil;
    layout->is_wide = (uint8_t)key_needs_wide_hints(layout);
    return 0;
}

/* -- keys that Python makes -- */

/* Append what Python has returned, a list of keys. Returns -1 with an exception. */
static int add_keys(PyObject *made, KeyList *keys)
{
    if (!PyList_CheckExact(made)) {
        PyErr_SetString(PyExc_TypeError, "the keys of a row are a list");
        return -1;
    }
    for (Py_ssize_t number = 0; number < PyList_GET_SIZE(made); number++) {
        PyObject *key = PyList_GET_ITEM(made, number);
        if (check_bytes(key) < 0)
            return -1;
        if (key_list_add(keys, (const uint8_t *)PyBytes_AS_STRING(key), (size_t)PyBytes_GET_SIZE(key)) < 0) {
            PyErr_NoMemory();
            return -1;
        }
    }
    return 0;
}

static PyObject *decoded_fields(RowRef *row)
{
    if (!row->decoded) {
        PyObject *raw = bytes_of(row->data, row->size);
        row->decoded = raw ? unpack_array(raw) : NULL;
        Py_XDECREF(raw);
    }
    return row->decoded;
}

static int keys_by_python(void *context, RowRef *row, const uint8_t *primary_key, size_t size, KeyList *keys)
{
    PyObject *fields = decoded_fields(row), *key = fields ? bytes_of(primary_key, primary_key ? size : 0) : NULL;
    PyObject *made = key ? PyObject_CallFunctionObjArgs(context, fields, key, NULL) : NULL;
    int done = made ? add_keys(made, keys) : -1;
    Py_XDECREF(made);
    Py_XDECREF(key);
    return done;
}

static void release_function(void *context)
{
    Py_XDECREF((PyObject *)context);
}

const IndexHook tree_python_keys = {keys_by_python, release_function};

void row_ref_free(RowRef *row)
{
    Py_CLEAR(row->decoded);
}
