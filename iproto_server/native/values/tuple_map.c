/* The twins of TupleMap and pack_map: a tuple as a mapping, which is packed from the bytes of the tuple. */
#include "../native.h"

#include "../../engine/core/msgpack.h"

typedef struct {
    RawObject base; /* of which `raw` is not set: it is made when it is asked for */
    TupleObject *row;
    PyObject *items; /* a dict that is never changed; NULL until somebody reads */
    char names_only;
} TupleMapObject;

/* -- packing -- */

static int append(Buffer *buffer, Position from, Position to)
{
    uint8_t *at = buffer_grow(buffer, to - from);
    if (!at)
        return -1;
    memcpy(at, from, (size_t)(to - from));
    return 1;
}

static int append_numbered(Buffer *buffer, Position at, Position end, uint32_t count)
{
    int done = 1;
    for (uint32_t number = 1; done == 1 && number <= count; number++) {
        Position next = msgpack_skip(at, end);
        done = next ? write_unsigned(buffer, number) : 0;
        if (done == 1)
            done = append(buffer, at, next);
        at = next;
    }
    return done;
}

/* The packed names of a format, borrowed, none for None; NULL where Python has to look for them. */
static PyObject *names_of(PyObject *format)
{
    static PyObject *none;
    if (format && format != Py_None)
        return format_packed_names(format);
    return none ? none : (none = PyTuple_New(0));
}

/* Returns as `write_value`. */
static int write_map(Buffer *buffer, const TupleObject *row, int names_only)
{
    Position start = (Position)PyBytes_AS_STRING(row->base.raw), end = start + PyBytes_GET_SIZE(row->base.raw);
    uint32_t count = 0;
    Position at = msgpack_array(start, end, &count);
    PyObject *names = at ? names_of(row->format) : NULL;
    if (!names)
        return PyErr_Occurred() ? -1 : 0;
    uint32_t named = PyTuple_GET_SIZE(names) < count ? (uint32_t)PyTuple_GET_SIZE(names) : count, field = 0;
    int done = write_map_header(buffer, (uint64_t)named + (names_only ? 0 : count));
    if (done == 1 && !names_only)
        done = append_numbered(buffer, at, end, count);
    for (; done == 1 && field < named; field++) {
        Position next = msgpack_skip(at, end);
        PyObject *name = PyTuple_GET_ITEM(names, field);
        if (!next || !PyBytes_CheckExact(name))
            return 0;
        Py_ssize_t size = PyBytes_GET_SIZE(name);
        uint8_t *to = buffer_grow(buffer, size + (next - at));
        if (!to)
            return -1;
        memcpy(to, PyBytes_AS_STRING(name), (size_t)size);
        memcpy(to + size, at, (size_t)(next - at));
        at = next;
    }
    for (; done == 1 && at && field < count; field++)
        at = msgpack_skip(at, end);
    return done == 1 && at != end ? 0 : done;
}

int write_tuple_map(Buffer *buffer, PyObject *map)
{
    return write_map(buffer, ((TupleMapObject *)map)->row, ((TupleMapObject *)map)->names_only);
}

static PyObject *pack(PyObject *row, int names_only)
{
    Buffer buffer;
    buffer_init(&buffer);
    PyObject *packed = NULL;
    if (write_map(&buffer, (TupleObject *)row, names_only) == 1)
        packed = PyBytes_FromStringAndSize((const char *)buffer.data, buffer.size);
    buffer_free(&buffer);
    if (packed || PyErr_Occurred())
        return packed;
    PyObject *args[] = {row, names_only ? Py_True : Py_False};
    return PyObject_Vectorcall(python_functions[PYTHON_PACK_MAP], args, 2, NULL);
}

/* pack_map(row, names_only) */
FUNCTION(native_pack_map)
{
    if (count == 2 && PyObject_TypeCheck(args[0], &Tuple_Type) && PyBool_Check(args[1]))
        return pack(args[0], args[1] == Py_True);
    return PyObject_Vectorcall(python_functions[PYTHON_PACK_MAP], args, (size_t)count, NULL);
}

/* -- the mapping -- */

static FreeList free_maps;

PyObject *new_tuple_map(PyObject *row, int names_only)
{
    TupleMapObject *self = (TupleMapObject *)free_list_new(&free_maps, &TupleMap_Type);
    if (self) {
        self->base.raw = NULL;
        self->row = (TupleObject *)Py_NewRef(row);
        self->items = NULL;
        self->names_only = (char)names_only;
    }
    return (PyObject *)self;
}

static PyObject *map_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"row", "names_only", NULL};
    PyObject *row;
    int names_only = 1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|p:TupleMap", names, &Tuple_Type, &row, &names_only))
        return NULL;
    return new_tuple_map(row, names_only);
}

static int map_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return 0; /* it has been made */
}

static void map_dealloc(PyObject *self)
{
    Py_DECREF(((TupleMapObject *)self)->row);
    Py_XDECREF(((TupleMapObject *)self)->items);
    free_list_drop(&free_maps, self);
}

/* What reads are answered from, borrowed; NULL with an exception. */
static PyObject *items_of(PyObject *object)
{
    TupleMapObject *self = (TupleMapObject *)object;
    if (!self->items)
        self->items = tuple_dict(self->row, self->names_only);
    return self->items;
}

static PyObject *map_raw(PyObject *self, void *closure)
{
    return pack((PyObject *)((TupleMapObject *)self)->row, ((TupleMapObject *)self)->names_only);
}

static PyObject *map_subscript(PyObject *self, PyObject *key)
{
    PyObject *items = items_of(self);
    return items ? PyObject_GetItem(items, key) : NULL;
}

static Py_ssize_t map_length(PyObject *self)
{
    PyObject *items = items_of(self);
    return items ? PyDict_GET_SIZE(items) : -1;
}

static int map_contains(PyObject *self, PyObject *key)
{
    PyObject *items = items_of(self);
    return items ? PyDict_Contains(items, key) : -1;
}

static PyObject *map_iter(PyObject *self)
{
    PyObject *items = items_of(self);
    return items ? PyObject_GetIter(items) : NULL;
}

static PyObject *map_compare(PyObject *self, PyObject *other, int operator)
{
    if ((operator != Py_EQ && operator != Py_NE) || !PyType_HasFeature(Py_TYPE(other), Py_TPFLAGS_MAPPING))
        Py_RETURN_NOTIMPLEMENTED;
    PyObject *items = items_of(self), *copy = items ? PyDict_New() : NULL, *result = NULL;
    if (copy && PyDict_Update(copy, other) == 0)
        result = PyObject_RichCompare(items, copy, operator);
    Py_XDECREF(copy);
    return result;
}

static PyObject *map_repr(PyObject *self)
{
    PyObject *items = items_of(self);
    return items ? PyUnicode_FromFormat("TupleMap(%R)", items) : NULL;
}

static PyObject *map_get(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"key", "default", NULL};
    PyObject *key, *otherwise = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:get", names, &key, &otherwise))
        return NULL;
    PyObject *items = items_of(self), *found = items ? PyDict_GetItemWithError(items, key) : NULL;
    return Py_XNewRef(found || PyErr_Occurred() ? found : otherwise);
}

static PyObject *of_items(PyObject *self, const char *name)
{
    PyObject *items = items_of(self);
    return items ? PyObject_CallMethod(items, name, NULL) : NULL;
}

static PyObject *map_keys(PyObject *self, PyObject *none)
{
    return of_items(self, "keys");
}

static PyObject *map_values(PyObject *self, PyObject *none)
{
    return of_items(self, "values");
}

static PyObject *map_items(PyObject *self, PyObject *none)
{
    return of_items(self, "items");
}

static PyMethodDef map_methods[] = {
    {"get", (PyCFunction)(void (*)(void))map_get, METH_VARARGS | METH_KEYWORDS, "The value of a key, or a default."},
    {"keys", map_keys, METH_NOARGS, "The keys."},
    {"values", map_values, METH_NOARGS, "The values."},
    {"items", map_items, METH_NOARGS, "The pairs of key and value."},
    {NULL},
};

static PyGetSetDef map_properties[] = {
    {"raw", map_raw, NULL, "The packed map."},
    {NULL},
};

static PyMappingMethods map_mapping = {.mp_length = map_length, .mp_subscript = map_subscript};
static PySequenceMethods map_sequence = {.sq_contains = map_contains};

PyTypeObject TupleMap_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.box.tuple.tuple.TupleMap",
    .tp_doc = "A tuple as a read-only mapping with the items of Tuple.tomap.",
    .tp_basicsize = sizeof(TupleMapObject),
    .tp_base = &Raw_Type,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_MAPPING,
    .tp_new = map_new,
    .tp_init = map_init,
    .tp_dealloc = map_dealloc,
    .tp_hash = PyObject_HashNotImplemented,
    .tp_richcompare = map_compare,
    .tp_repr = map_repr,
    .tp_iter = map_iter,
    .tp_methods = map_methods,
    .tp_getset = map_properties,
    .tp_as_mapping = &map_mapping,
    .tp_as_sequence = &map_sequence,
};
