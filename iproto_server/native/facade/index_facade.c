/* The base class of Index, an index as procedures see it. */
#include "../native.h"

static IndexFacade *facade_of(PyObject *self)
{
    return (IndexFacade *)self;
}

/* What is done with a key in an index. */
typedef struct {
    SpaceObject *core;
    PyObject *id;
    uint64_t number;
    Key key;
} Lookup;

/* Returns -1 with an exception, and then there is nothing to end. `key` must stay where it is. */
static int begin(Lookup *lookup, SpaceFacade *space, PyObject *id, PyObject *const *key, int right)
{
    lookup->core = facade_core(space, right);
    lookup->id = id;
    if (lookup->core && read_given_key(key, &lookup->key) == 0
        && (lookup->core->is_custom || space_read_index((PyObject *)lookup->core, id, &lookup->number) == 0))
        return 0;
    Py_XDECREF((PyObject *)lookup->core);
    return -1;
}

static PyObject *end(Lookup *lookup, PyObject *result)
{
    Py_DECREF((PyObject *)lookup->core);
    return result;
}

/* Call the method of a space that changes or finds rows by itself, with the number of the index and the key. */
static PyObject *call_custom(const Lookup *lookup, const char *method, PyObject *argument)
{
    PyObject *key = key_list(&lookup->key);
    PyObject *result = !key ? NULL
        : argument ? PyObject_CallMethod((PyObject *)lookup->core, method, "OOO", lookup->id, key, argument)
                   : PyObject_CallMethod((PyObject *)lookup->core, method, "OO", lookup->id, key);
    Py_XDECREF(key);
    return result;
}

static PyObject *tuple_of(PyObject *raw, PyObject *format)
{
    if (PyBytes_CheckExact(raw))
        return stored_tuple(raw, format);
    return PyErr_Format(PyExc_TypeError, "a row is bytes, not %.100s", Py_TYPE(raw)->tp_name);
}

/* A row that was found, as a Tuple. */
static PyObject *found_row(const Lookup *lookup, PyObject *raw)
{
    if (!raw || raw == Py_None)
        return raw;
    PyObject *row = tuple_of(raw, lookup->core->format);
    Py_DECREF(raw);
    return row;
}

/* -- single rows -- */

PyObject *facade_get(SpaceFacade *space, PyObject *id, PyObject *key)
{
    Lookup lookup;
    if (begin(&lookup, space, id, &key, PRIVILEGE_READ) < 0)
        return NULL;
    PyObject *raw = lookup.core->is_custom ? call_custom(&lookup, "find", NULL)
                                           : space_find(lookup.core, lookup.number, &lookup.key);
    return end(&lookup, found_row(&lookup, raw));
}

PyObject *facade_delete(SpaceFacade *space, PyObject *id, PyObject *key)
{
    Lookup lookup;
    if (begin(&lookup, space, id, &key, PRIVILEGE_WRITE) < 0)
        return NULL;
    return end(&lookup, lookup.core->is_custom ? call_custom(&lookup, "delete", NULL)
                                               : space_delete(lookup.core, lookup.number, &lookup.key));
}

static PyObject *update_custom(const Lookup *lookup, PyObject *given)
{
    PyObject *operations = PyObject_CallMethod((PyObject *)lookup->core, "parse_operations", "(O)", given);
    PyObject *row = operations ? call_custom(lookup, "update", operations) : NULL;
    Py_XDECREF(operations);
    return row;
}

static PyObject *update_plainly(const Lookup *lookup, PyObject *given, int is_exempt)
{
    UpdateOperations read;
    Buffer buffer;
    buffer_init(&buffer);
    ChangeCall call = {.given = given, .is_exempt = is_exempt};
    int is_known = read_operations(&read, &buffer, lookup->core, &call);
    PyObject *row = is_known < 0 ? NULL : space_update(lookup->core, lookup->number, &lookup->key, &call,
                                                       is_known ? &read : NULL);
    buffer_free(&buffer);
    return row;
}

PyObject *facade_update(SpaceFacade *space, PyObject *id, PyObject *key, PyObject *operations)
{
    Lookup lookup;
    if (begin(&lookup, space, id, &key, PRIVILEGE_WRITE) < 0)
        return NULL;
    return end(&lookup, lookup.core->is_custom ? update_custom(&lookup, operations)
                                               : update_plainly(&lookup, operations, space->exempts_updates));
}

/* -- the first and the last row -- */

static PyObject *find_first(Lookup *lookup)
{
    PyObject *raw = lookup->core->is_custom ? call_custom(lookup, "first", NULL)
                                            : space_first(lookup->core, lookup->number, &lookup->key);
    return end(lookup, found_row(lookup, raw));
}

PyObject *facade_first(IndexFacade *self, PyObject *key)
{
    Lookup lookup;
    return begin(&lookup, self->space, self->id, &key, PRIVILEGE_READ) < 0 ? NULL : find_first(&lookup);
}

/* Returns -1 with a BoxError UNSUPPORTED_INDEX_FEATURE unless the index has an order. */
static int check_order(const Lookup *lookup, IndexFacade *self, const char *what)
{
    TreeObject *index = lookup->core->is_custom ? NULL : space_index(lookup->core, lookup->number);
    if (index && index->is_ordered)
        return 0;
    PyObject *done = PyObject_CallMethod((PyObject *)self, "_check_ordered", "s", what);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

PyObject *facade_min(IndexFacade *self, PyObject *key)
{
    Lookup lookup;
    if (begin(&lookup, self->space, self->id, &key, PRIVILEGE_READ) < 0)
        return NULL;
    return check_order(&lookup, self, "min()") < 0 ? end(&lookup, NULL) : find_first(&lookup);
}

static PyObject *select_rows(Lookup *lookup, uint64_t iterator, uint64_t offset, uint64_t limit);

PyObject *facade_max(IndexFacade *self, PyObject *key)
{
    Lookup lookup;
    if (begin(&lookup, self->space, self->id, &key, PRIVILEGE_READ) < 0)
        return NULL;
    if (check_order(&lookup, self, "max()") < 0)
        return end(&lookup, NULL);
    PyObject *raw = lookup.core->is_custom ? NULL : space_last(lookup.core, lookup.number, &lookup.key);
    if (raw || PyErr_Occurred())
        return end(&lookup, found_row(&lookup, raw));
    PyObject *rows = select_rows(&lookup, TREE_REQ, 0, 1), *row = NULL;
    if (rows)
        row = Py_NewRef(PyList_GET_SIZE(rows) ? PyList_GET_ITEM(rows, 0) : Py_None);
    Py_XDECREF(rows);
    return end(&lookup, row);
}

/* -- many rows -- */

/* Packed rows in a list become Tuples. */
static PyObject *found_rows(const Lookup *lookup, PyObject *rows)
{
    if (rows && !PyList_CheckExact(rows)) {
        PyErr_Format(PyExc_TypeError, "rows are a list, not %.100s", Py_TYPE(rows)->tp_name);
        Py_CLEAR(rows);
    }
    PyObject *found = rows ? PyList_New(PyList_GET_SIZE(rows)) : NULL;
    for (Py_ssize_t place = 0; found && place < PyList_GET_SIZE(rows); place++) {
        PyObject *row = tuple_of(PyList_GET_ITEM(rows, place), lookup->core->format);
        if (row)
            PyList_SET_ITEM(found, place, row);
        else
            Py_CLEAR(found);
    }
    Py_XDECREF(rows);
    return found;
}

/* The rows that an iterator finds; those of interactive transactions, and many, by the space's `select`. */
static PyObject *select_rows(Lookup *lookup, uint64_t iterator, uint64_t offset, uint64_t limit)
{
    PyObject *rows = lookup->core->is_custom ? NULL
        : space_select(lookup->core, lookup->number, iterator, offset, limit, &lookup->key);
    PyObject *key = rows || PyErr_Occurred() ? NULL : key_list(&lookup->key);
    if (key)
        rows = PyObject_CallMethod((PyObject *)lookup->core, "select", "OKKKO", lookup->id, (unsigned long long)iterator,
                                   (unsigned long long)offset, (unsigned long long)limit, key);
    Py_XDECREF(key);
    return found_rows(lookup, rows);
}

/* The number of an iterator; -1 with an exception. */
static long long iterator_of(IndexFacade *self, PyObject *given, const Key *key)
{
    if (given == Py_None)
        return key->count ? TREE_EQ : TREE_ALL;
    PyObject *number = PyLong_Check(given) ? Py_NewRef(given)
        : PyObject_CallMethod((PyObject *)self, "_iterator_number", "(O)", given);
    long long iterator = number ? PyLong_AsLongLong(number) : -1;
    Py_XDECREF(number);
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_OverflowError))
        PyErr_Clear();
    if (iterator < 0 && !PyErr_Occurred())
        raise_box_error("ILLEGAL_PARAMS", "(s)", "Invalid iterator type");
    return iterator;
}

/* A number of rows, `most` at the most; -1 with an exception. */
static long long row_count(PyObject *given, long long most)
{
    int overflow;
    long long number = PyLong_AsLongLongAndOverflow(given, &overflow);
    if (number < 0 && !PyErr_Occurred() && overflow <= 0)
        raise_box_error("ILLEGAL_PARAMS", "(s)", "offset and limit must not be negative");
    return overflow > 0 || number > most ? most : number;
}

static PyObject *select_with(IndexFacade *self, PyObject *key, PyObject *iterator, PyObject *offset, PyObject *limit)
{
    enum { NO_LIMIT = 0xffffffffu };
    Lookup lookup;
    if (begin(&lookup, self->space, self->id, &key, PRIVILEGE_READ) < 0)
        return NULL;
    long long skipped = offset ? row_count(offset, LLONG_MAX / 2) : 0;
    long long most = limit && skipped >= 0 ? row_count(limit, LLONG_MAX / 2) : NO_LIMIT;
    long long number = skipped < 0 || most < 0 ? -1 : iterator_of(self, iterator ? iterator : Py_None, &lookup.key);
    return end(&lookup, number < 0 ? NULL : select_rows(&lookup, (uint64_t)number, (uint64_t)skipped, (uint64_t)most));
}

PyObject *facade_select_rows(IndexFacade *self, PyObject *key, uint64_t iterator, uint64_t offset, uint64_t limit)
{
    Lookup lookup;
    if (begin(&lookup, self->space, self->id, &key, PRIVILEGE_READ) < 0)
        return NULL;
    return end(&lookup, select_rows(&lookup, iterator, offset, limit));
}

PyObject *facade_select(IndexFacade *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    static const char *const known_names[] = {"key", "iterator", "offset", "limit", "after"};
    PyObject *taken[5] = {Py_None};
    if (count > 1)
        return PyErr_Format(PyExc_TypeError, "select() takes one positional argument, the key");
    if (take_arguments("select", known_names, 0, 5, args, count, names, taken) < 0)
        return NULL;
    if (!taken[4] || taken[4] == Py_None)
        return select_with(self, taken[0], taken[1], taken[2], taken[3]);
    PyObject *given = PyDict_New(), *key = NULL, *select = NULL, *rows = NULL;
    for (int place = 1; given && place < 5; place++)
        if (taken[place] && PyDict_SetItemString(given, known_names[place], taken[place]) < 0)
            Py_CLEAR(given);
    if (given && (key = PyTuple_Pack(1, taken[0])) && (select = PyObject_GetAttrString((PyObject *)self, "_select_after")))
        rows = PyObject_Call(select, key, given);
    Py_XDECREF(select);
    Py_XDECREF(key);
    Py_XDECREF(given);
    return rows;
}

/* -- methods -- */

FACADE_METHOD(method_get)
{
    static const char *const known_names[] = {"key"};
    PyObject *taken[1] = {NULL};
    return take_arguments("get", known_names, 1, 1, args, count, names, taken) < 0 ? NULL
        : facade_get(facade_of(self)->space, facade_of(self)->id, taken[0]);
}

FACADE_METHOD(method_first)
{
    static const char *const known_names[] = {"key"};
    PyObject *taken[1] = {Py_None};
    return take_arguments("first", known_names, 0, 1, args, count, names, taken) < 0 ? NULL
        : facade_first(facade_of(self), taken[0]);
}

FACADE_METHOD(method_min)
{
    static const char *const known_names[] = {"key"};
    PyObject *taken[1] = {Py_None};
    return take_arguments("min", known_names, 0, 1, args, count, names, taken) < 0 ? NULL
        : facade_min(facade_of(self), taken[0]);
}

FACADE_METHOD(method_max)
{
    static const char *const known_names[] = {"key"};
    PyObject *taken[1] = {Py_None};
    return take_arguments("max", known_names, 0, 1, args, count, names, taken) < 0 ? NULL
        : facade_max(facade_of(self), taken[0]);
}

FACADE_METHOD(method_select)
{
    return facade_select(facade_of(self), args, count, names);
}

FACADE_METHOD(method_update)
{
    static const char *const known_names[] = {"key", "operations"};
    PyObject *taken[2] = {NULL, NULL};
    return take_arguments("update", known_names, 2, 2, args, count, names, taken) < 0 ? NULL
        : facade_update(facade_of(self)->space, facade_of(self)->id, taken[0], taken[1]);
}

FACADE_METHOD(method_delete)
{
    static const char *const known_names[] = {"key"};
    PyObject *taken[1] = {NULL};
    return take_arguments("delete", known_names, 1, 1, args, count, names, taken) < 0 ? NULL
        : facade_delete(facade_of(self)->space, facade_of(self)->id, taken[0]);
}

static PyMethodDef index_methods[] = {
    FACADE_ENTRY("get", method_get, "($self, key)", "The row with a full key of a unique index, or None."),
    FACADE_ENTRY("first", method_first, "($self, key=None)",
           "The first row in the index's order whose key begins with `key`, or None."),
    FACADE_ENTRY("min", method_min, "($self, key=None)", "The row with the smallest key (that begins with `key`), or None."),
    FACADE_ENTRY("max", method_max, "($self, key=None)", "The row with the greatest key (that begins with `key`), or None."),
    FACADE_ENTRY("select", method_select, "($self, key=None, *, iterator=None, offset=0, limit=4294967295, after=None)",
           "The rows an iterator finds."),
    FACADE_ENTRY("update", method_update, "($self, key, operations)", "Change the row with a full key."),
    FACADE_ENTRY("delete", method_delete, "($self, key)", "Remove the row with a full key."),
    {NULL},
};

static PyMemberDef index_members[] = {
    {"id", T_OBJECT_EX, offsetof(IndexFacade, id), READONLY, "The number in `_index`."},
    {"space", T_OBJECT_EX, offsetof(IndexFacade, space), READONLY, "The space."},
    {NULL},
};

/* -- the type -- */

/* IndexFacade(space, id); an index without a space is none that a method is called of */
static PyObject *facade_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"space", "index_id", NULL};
    PyObject *space, *id;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O:IndexFacade", names, &SpaceFacade_Type, &space, &id))
        return NULL;
    PyObject *self = type->tp_alloc(type, 0);
    if (self) {
        facade_of(self)->space = (SpaceFacade *)Py_NewRef(space);
        facade_of(self)->id = Py_NewRef(id);
    }
    return self;
}

static int index_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(facade_of(self)->space);
    Py_VISIT(facade_of(self)->id);
    return 0;
}

/* The cycle with the space is broken by the space. */
static void index_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    Py_DECREF((PyObject *)facade_of(self)->space);
    Py_DECREF(facade_of(self)->id);
    Py_TYPE(self)->tp_free(self);
}

PyTypeObject IndexFacade_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native._native.IndexFacade",
    .tp_doc = "An index as procedures see it.",
    .tp_basicsize = sizeof(IndexFacade),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = facade_new,
    .tp_methods = index_methods,
    .tp_members = index_members,
    .tp_traverse = index_traverse,
    .tp_dealloc = index_dealloc,
};
