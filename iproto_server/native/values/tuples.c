/* Tuples: rows of spaces, as procedures and triggers see them. */
#include "../native.h"

static void tuple_set(TupleObject *self, PyObject *raw, PyObject *format, PyObject *fields)
{
    Py_XSETREF(self->base.raw, Py_NewRef(raw));
    Py_XSETREF(self->format, Py_NewRef(format));
    Py_XSETREF(self->fields, fields == Py_None ? NULL : Py_NewRef(fields));
}

static int check_parts(PyObject *raw, PyObject *fields)
{
    if (!PyBytes_CheckExact(raw)) {
        PyErr_Format(PyExc_TypeError, "a tuple is made of bytes, not of %.100s", Py_TYPE(raw)->tp_name);
        return -1;
    }
    if (fields != Py_None && !PyList_CheckExact(fields)) {
        PyErr_SetString(PyExc_TypeError, "the fields of a tuple must be a list");
        return -1;
    }
    return 0;
}

static int tuple_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"raw", "format", "fields", NULL};
    PyObject *raw, *format = Py_None, *fields = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OO:Tuple", names, &raw, &format, &fields)
        || check_parts(raw, fields) < 0)
        return -1;
    tuple_set((TupleObject *)self, raw, format, fields);
    return 0;
}

static PyObject *tuple_vectorcall(PyObject *type, PyObject *const *args, size_t flags, PyObject *names)
{
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    if (names || count < 1 || count > 3) {
        /* The long way, which knows names and says what is wrong. */
        PyObject *self = raw_alloc((PyTypeObject *)type, NULL, NULL);
        PyObject *given = PyTuple_New(count), *named = names ? PyDict_New() : NULL;
        int is_made = self && given && (named || !names);
        for (Py_ssize_t place = 0; is_made && place < count; place++)
            PyTuple_SET_ITEM(given, place, Py_NewRef(args[place]));
        for (Py_ssize_t place = 0; is_made && names && place < PyTuple_GET_SIZE(names); place++)
            is_made = !PyDict_SetItem(named, PyTuple_GET_ITEM(names, place), args[count + place]);
        is_made = is_made && !tuple_init(self, given, named);
        Py_XDECREF(given);
        Py_XDECREF(named);
        if (!is_made)
            Py_CLEAR(self);
        return self;
    }
    PyObject *format = count > 1 ? args[1] : Py_None, *fields = count > 2 ? args[2] : Py_None;
    if (check_parts(args[0], fields) < 0)
        return NULL;
    return new_tuple(args[0], format, fields == Py_None ? NULL : fields);
}

static FreeList free_tuples;

static void tuple_dealloc(PyObject *self)
{
    Py_XDECREF(((TupleObject *)self)->format);
    Py_XDECREF(((TupleObject *)self)->fields);
    if (Py_TYPE(self) != &Tuple_Type) {
        raw_free(self);
        return;
    }
    Py_XDECREF(((RawObject *)self)->raw);
    free_list_drop(&free_tuples, self);
}

/* For other files: a tuple of bytes, and of a list of fields or NULL. */
PyObject *new_tuple(PyObject *raw, PyObject *format, PyObject *fields)
{
    assert(PyBytes_CheckExact(raw) && (!fields || PyList_CheckExact(fields)));
    TupleObject *self = (TupleObject *)free_list_new(&free_tuples, &Tuple_Type);
    if (self) {
        self->base.raw = Py_NewRef(raw);
        self->format = Py_NewRef(format);
        self->fields = Py_XNewRef(fields);
        self->peeks = 0;
    }
    return (PyObject *)self;
}

PyObject *stored_tuple(PyObject *raw, PyObject *format)
{
    PyObject *self = new_tuple(raw, format, NULL);
    if (self)
        ((TupleObject *)self)->peeks = PEEKS_MAX;
    return self;
}

/* The decoded fields, borrowed; NULL with an exception. */
PyObject *tuple_fields(TupleObject *self)
{
    if (!self->fields) {
        PyObject *fields = unpack_array(self->base.raw);
        Py_XSETREF(self->fields, fields); /* a hook may have asked for them, too */
    }
    return self->fields;
}

static PyObject *tuple_get_fields(PyObject *self, void *closure)
{
    return Py_XNewRef(tuple_fields((TupleObject *)self));
}

static PyObject *tuple_names(TupleObject *self)
{
    static PyObject *names;
    PyObject *known = format_names(self->format);
    if (known)
        return Py_NewRef(known);
    if (!names && !(names = PyUnicode_InternFromString("names")))
        return NULL;
    PyObject *found = PyObject_GetAttr(self->format, names);
    if (found && !PyDict_CheckExact(found)) {
        PyErr_SetString(PyExc_TypeError, "the names of a format must be a dict");
        Py_CLEAR(found);
    }
    return found;
}

/* The number of a field; -1, maybe with an exception, where that needs a closer look. */
static Py_ssize_t field_number(TupleObject *self, PyObject *field)
{
    PyObject *names = PyUnicode_CheckExact(field) ? format_names(self->format) : NULL;
    PyObject *number = names ? PyDict_GetItemWithError(names, field) : field;
    int overflow;
    return number && PyLong_CheckExact(number) ? PyLong_AsLongAndOverflow(number, &overflow) : -1;
}

/* A field of a row, if it is a number, a text or the like. Often few are asked for, the key say, and then the rest need
 * not be decoded. NULL, maybe without an exception. */
static PyObject *peek(TupleObject *self, PyObject *field)
{
    Position at = (Position)PyBytes_AS_STRING(self->base.raw), end = at + PyBytes_GET_SIZE(self->base.raw);
    Py_ssize_t number = field_number(self, field);
    if (number < 0 || at >= end || (*at & 0xf0) != 0x90 || number >= (*at++ & 0x0f))
        return NULL;
    while (at && number--)
        at = msgpack_skip(at, end);
    int is_plain = at && at < end && (*at < 0x80 || *at >= 0xe0 || (*at >= 0xa0 && *at < 0xc7)
                                      || (*at >= 0xca && *at < 0xd4) || (*at >= 0xd9 && *at < 0xdc));
    return is_plain ? read_value(&at, end, 1) : NULL;
}

static PyObject *tuple_subscript(PyObject *self, PyObject *field)
{
    TupleObject *row = (TupleObject *)self;
    if (row->peeks && !row->fields) {
        PyObject *found = peek(row, field);
        row->peeks = (char)(found ? row->peeks - 1 : 0);
        if (found || PyErr_Occurred())
            return found;
    }
    PyObject *fields = tuple_fields((TupleObject *)self);
    if (!fields)
        return NULL;
    if (PyLong_CheckExact(field)) {
        Py_ssize_t number = PyLong_AsSsize_t(field);
        if (number >= 0 && number < PyList_GET_SIZE(fields))
            return Py_NewRef(PyList_GET_ITEM(fields, number));
        PyErr_Clear();
    }
    if (!PyUnicode_Check(field))
        return PyObject_GetItem(fields, field);
    if (!((TupleObject *)self)->format || ((TupleObject *)self)->format == Py_None) {
        PyErr_SetObject(PyExc_KeyError, field);
        return NULL;
    }
    PyObject *names = tuple_names((TupleObject *)self);
    if (!names)
        return NULL;
    PyObject *number = PyDict_GetItemWithError(names, field);
    PyObject *found = NULL;
    if (number) {
        Py_ssize_t place = PyLong_AsSsize_t(number);
        /* A nullable field may be missing at the tail: it reads as nil, as in Tarantool. */
        if (place >= 0)
            found = Py_NewRef(place < PyList_GET_SIZE(fields) ? PyList_GET_ITEM(fields, place) : Py_None);
    } else if (!PyErr_Occurred()) {
        PyErr_SetObject(PyExc_KeyError, field);
    }
    Py_DECREF(names);
    return found;
}

static Py_ssize_t tuple_length(PyObject *self)
{
    PyObject *fields = tuple_fields((TupleObject *)self);
    return fields ? PyList_GET_SIZE(fields) : -1;
}

static PyObject *tuple_item(PyObject *self, Py_ssize_t number)
{
    PyObject *fields = tuple_fields((TupleObject *)self);
    return fields ? PySequence_GetItem(fields, number) : NULL;
}

static int tuple_contains(PyObject *self, PyObject *value)
{
    PyObject *fields = tuple_fields((TupleObject *)self);
    return fields ? PySequence_Contains(fields, value) : -1;
}

static PyObject *tuple_iter(PyObject *self)
{
    PyObject *fields = tuple_fields((TupleObject *)self);
    return fields ? PyObject_GetIter(fields) : NULL;
}

static Py_hash_t tuple_hash(PyObject *self)
{
    return PyObject_Hash(((RawObject *)self)->raw);
}

static PyObject *tuple_compare(PyObject *self, PyObject *other, int operator)
{
    if (operator != Py_EQ && operator != Py_NE)
        Py_RETURN_NOTIMPLEMENTED;
    if (PyObject_TypeCheck(other, &Tuple_Type))
        return PyObject_RichCompare(((RawObject *)self)->raw, ((RawObject *)other)->raw, operator);
    if (!PyList_Check(other) && !PyTuple_Check(other))
        Py_RETURN_NOTIMPLEMENTED;
    PyObject *fields = tuple_fields((TupleObject *)self);
    PyObject *list = fields ? PySequence_List(other) : NULL;
    PyObject *result = list ? PyObject_RichCompare(fields, list, operator) : NULL;
    Py_XDECREF(list);
    return result;
}

static PyObject *tuple_repr(PyObject *self)
{
    PyObject *fields = tuple_fields((TupleObject *)self);
    return fields ? PyUnicode_FromFormat("Tuple(%R)", fields) : NULL;
}

static PyObject *tuple_get(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"field", "default", NULL};
    PyObject *field, *otherwise = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:get", names, &field, &otherwise))
        return NULL;
    PyObject *found = tuple_subscript(self, field);
    if (!found && PyErr_ExceptionMatches(PyExc_LookupError)) {
        PyErr_Clear();
        found = Py_NewRef(otherwise);
    }
    return found;
}

static PyObject *tuple_assume(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != 3 || !PyObject_TypeCheck(args[0], &Tuple_Type) || !PyLong_CheckExact(args[1])) {
        PyErr_SetString(PyExc_TypeError, "assume() takes another tuple, a field's number and its value");
        return NULL;
    }
    PyObject *theirs = tuple_fields((TupleObject *)args[0]);
    PyObject *fields = theirs ? PyList_GetSlice(theirs, 0, PyList_GET_SIZE(theirs)) : NULL;
    if (!fields)
        return NULL;
    if (PyObject_SetItem(fields, args[1], args[2]) < 0) {
        Py_DECREF(fields);
        return NULL;
    }
    Py_XSETREF(((TupleObject *)self)->fields, fields);
    Py_RETURN_NONE;
}

static int add_numbers(PyObject *map, PyObject *fields)
{
    for (Py_ssize_t place = 0; place < PyList_GET_SIZE(fields); place++) {
        PyObject *number = PyLong_FromSsize_t(place + 1);
        int failed = !number || PyDict_SetItem(map, number, PyList_GET_ITEM(fields, place)) < 0;
        Py_XDECREF(number);
        if (failed)
            return -1;
    }
    return 0;
}

static int add_names(PyObject *map, PyObject *names, PyObject *fields)
{
    PyObject *name, *number;
    Py_ssize_t position = 0, place = 0;
    while (place < PyList_GET_SIZE(fields) && PyDict_Next(names, &position, &name, &number))
        if (PyDict_SetItem(map, name, PyList_GET_ITEM(fields, place++)) < 0)
            return -1;
    return 0;
}

PyObject *tuple_dict(TupleObject *self, int names_only)
{
    PyObject *fields = tuple_fields(self), *map = fields ? PyDict_New() : NULL;
    if (!map)
        return NULL;
    int failed = !names_only && add_numbers(map, fields) < 0;
    if (!failed && self->format && self->format != Py_None) {
        PyObject *names = tuple_names(self);
        failed = !names || add_names(map, names, fields) < 0;
        Py_XDECREF(names);
    }
    if (failed)
        Py_CLEAR(map);
    return map;
}

/* Whether only names are asked for; -1 with an exception. */
static int read_names_only(const char *method, PyObject *const *args, Py_ssize_t count, PyObject *given)
{
    if (!count && !given)
        return 1;
    if (count || PyTuple_GET_SIZE(given) != 1
        || PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(given, 0), "names_only")) {
        PyErr_Format(PyExc_TypeError, "%s() takes names_only, by its name", method);
        return -1;
    }
    return PyObject_IsTrue(args[0]);
}

static PyObject *tuple_tomap(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *given)
{
    int names_only = read_names_only("tomap", args, count, given);
    return names_only < 0 ? NULL : tuple_dict((TupleObject *)self, names_only);
}

static PyObject *tuple_as_map(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *given)
{
    int names_only = read_names_only("as_map", args, count, given);
    return names_only < 0 ? NULL : new_tuple_map(self, names_only);
}

/* What a sequence has beside these: lists have it, too. */
static PyObject *of_fields(PyObject *self, const char *name, PyObject *args)
{
    PyObject *fields = tuple_fields((TupleObject *)self);
    PyObject *method = fields ? PyObject_GetAttrString(fields, name) : NULL;
    PyObject *result = method ? PyObject_CallObject(method, args) : NULL;
    Py_XDECREF(method);
    return result;
}

static PyObject *tuple_index(PyObject *self, PyObject *args)
{
    return of_fields(self, "index", args);
}

static PyObject *tuple_count(PyObject *self, PyObject *args)
{
    return of_fields(self, "count", args);
}

static PyObject *tuple_reversed(PyObject *self, PyObject *args)
{
    return of_fields(self, "__reversed__", args);
}

static PyMethodDef tuple_methods[] = {
    {"get", (PyCFunction)(void (*)(void))tuple_get, METH_VARARGS | METH_KEYWORDS, "The field, or a default."},
    {"assume", (PyCFunction)(void (*)(void))tuple_assume, METH_FASTCALL, "Take over another tuple's fields."},
    {"tomap", (PyCFunction)(void (*)(void))tuple_tomap, METH_FASTCALL | METH_KEYWORDS, "The fields by name."},
    {"as_map", (PyCFunction)(void (*)(void))tuple_as_map, METH_FASTCALL | METH_KEYWORDS,
     "The fields by name, as a read-only mapping."},
    {"transform", (PyCFunction)(void (*)(void))tuple_transform, METH_FASTCALL,
     "A copy with some fields replaced by others."},
    {"index", tuple_index, METH_VARARGS, "The number of the first field that has a value."},
    {"count", tuple_count, METH_VARARGS, "How many fields have a value."},
    {"__reversed__", tuple_reversed, METH_VARARGS, "The fields, the last first."},
    {NULL},
};

static PyMemberDef tuple_members[] = {
    {"format", T_OBJECT, offsetof(TupleObject, format), READONLY, "the format that gives fields their names"},
    {"_fields", T_OBJECT, offsetof(TupleObject, fields), READONLY, "the decoded fields, if they are"},
    {NULL},
};

static PyGetSetDef tuple_properties[] = {
    {"fields", tuple_get_fields, NULL, "The decoded fields. The list is shared: do not change it."},
    {NULL},
};

static PyMappingMethods tuple_mapping = {.mp_length = tuple_length, .mp_subscript = tuple_subscript};
static PySequenceMethods tuple_sequence = {
    .sq_length = tuple_length, .sq_item = tuple_item, .sq_contains = tuple_contains,
};

PyTypeObject Tuple_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.box.tuple.tuple.Tuple",
    .tp_doc = "An immutable row of a space, as procedures and triggers see it.",
    .tp_basicsize = sizeof(TupleObject),
    .tp_base = &Raw_Type,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_SEQUENCE,
    .tp_new = raw_alloc,
    .tp_init = tuple_init,
    .tp_vectorcall = tuple_vectorcall,
    .tp_dealloc = tuple_dealloc,
    .tp_hash = tuple_hash,
    .tp_richcompare = tuple_compare,
    .tp_repr = tuple_repr,
    .tp_iter = tuple_iter,
    .tp_methods = tuple_methods,
    .tp_members = tuple_members,
    .tp_getset = tuple_properties,
    .tp_as_mapping = &tuple_mapping,
    .tp_as_sequence = &tuple_sequence,
};
