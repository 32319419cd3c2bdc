/* TupleMap: a tuple as a mapping, which is packed from the bytes of the tuple. */
#include "../native.h"

typedef struct {
    RawObject base; /* whose `raw` is not set: it is made when it is needed */
    TupleObject *row;
    PyObject *items; /* a dict that is never changed; NULL until it is read */
    char names_only;
} TupleMapObject;

/* -- packing -- */

static int refuse(Buffer *buffer, const char *text)
{
    return refuse_value(buffer, "INVALID_MSGPACK", text);
}

static int write_numbered(Buffer *buffer, Position at, Position end, uint32_t count)
{
    int done = 1;
    for (uint32_t number = 1; done == 1 && number <= count; number++) {
        Position next = msgpack_skip(at, end);
        done = next ? write_unsigned(buffer, number) : refuse(buffer, "malformed array");
        if (done == 1)
            done = buffer_append(buffer, at, next - at);
        at = next;
    }
    return done;
}

/* Write the next fields under their packed names. */
static int write_named(Buffer *buffer, Position *at, Position end, PyObject *names, Py_ssize_t count)
{
    for (Py_ssize_t field = 0; field < count; field++) {
        Position next = msgpack_skip(*at, end);
        if (!next)
            return refuse(buffer, "malformed array");
        PyObject *name = PyTuple_GET_ITEM(names, field);
        Py_ssize_t size = PyBytes_GET_SIZE(name);
        uint8_t *to = buffer_grow(buffer, size + (next - *at));
        if (!to)
            return -1;
        memcpy(to, PyBytes_AS_STRING(name), (size_t)size);
        memcpy(to + size, *at, (size_t)(next - *at));
        *at = next;
    }
    return 1;
}

/* Whether the row ends with its last fields, which have no names: 1, or what `refuse` returns. */
static int check_rest(Buffer *buffer, Position at, Position end, uint32_t count)
{
    while (at && count--)
        at = msgpack_skip(at, end);
    return !at ? refuse(buffer, "malformed array") : at < end ? refuse(buffer, "bytes after an array") : 1;
}

/* The packed names that an object has which is no Format, a tuple of bytes; NULL with an exception. */
static PyObject *other_names(PyObject *format)
{
    PyObject *given = PyObject_GetAttrString(format, "packed_names"), *names = given ? PySequence_Tuple(given) : NULL;
    Py_XDECREF(given);
    for (Py_ssize_t place = 0; names && place < PyTuple_GET_SIZE(names); place++)
        if (!PyBytes_CheckExact(PyTuple_GET_ITEM(names, place))) {
            PyErr_SetString(PyExc_TypeError, "the packed names of a format must be bytes");
            Py_CLEAR(names);
        }
    return names;
}

/* The packed names of a format, none for None; NULL with an exception. */
static PyObject *names_of(PyObject *format)
{
    if (!format || format == Py_None)
        return PyTuple_New(0);
    PyObject *names = format_packed_names(format);
    return names ? Py_NewRef(names) : other_names(format);
}

static int write_fields(Buffer *buffer, PyObject *raw, PyObject *names, int names_only)
{
    Position at = (Position)PyBytes_AS_STRING(raw), end = at + PyBytes_GET_SIZE(raw);
    uint32_t count;
    if (!(at = msgpack_array(at, end, &count)))
        return refuse(buffer, "malformed array");
    Py_ssize_t named = PyTuple_GET_SIZE(names) < count ? PyTuple_GET_SIZE(names) : (Py_ssize_t)count;
    int done = write_map_header(buffer, (uint64_t)named + (names_only ? 0 : count));
    if (done == 1 && !names_only)
        done = write_numbered(buffer, at, end, count);
    if (done == 1)
        done = write_named(buffer, &at, end, names, named);
    return done == 1 ? check_rest(buffer, at, end, count - (uint32_t)named) : done;
}

int write_tuple_map(Buffer *buffer, PyObject *map)
{
    const TupleObject *row = ((TupleMapObject *)map)->row;
    if (buffer->is_shared && row->format && row->format != Py_None && !format_packed_names(row->format))
        return 0;
    PyObject *names = names_of(row->format);
    int done = names ? write_fields(buffer, row->base.raw, names, ((TupleMapObject *)map)->names_only) : -1;
    Py_XDECREF(names);
    return done;
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

/* The items as a dict, borrowed; NULL with an exception. */
static PyObject *items_of(PyObject *object)
{
    TupleMapObject *self = (TupleMapObject *)object;
    if (!self->items)
        self->items = tuple_dict(self->row, self->names_only);
    return self->items;
}

static PyObject *map_raw(PyObject *self, void *closure)
{
    return pack(self);
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
