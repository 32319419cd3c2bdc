/* RowCheck: checks the decoded fields of a row by the format's rules for whole fields.
 *
 * A function of Python finds and raises the first error of a row that does not fit.
 */
#include "../native.h"

typedef struct {
    FieldType kind;
    char is_nullable;
    PyObject *accepted; /* a frozenset of types; NULL: every value */
} Rule;

typedef struct {
    PyObject_VAR_HEAD
    vectorcallfunc vectorcall;
    PyObject *explain;
    Py_ssize_t least, exact; /* numbers of fields; exact 0: any number */
    RowFormat format;        /* the same rules for the engine, if there are not too many */
    Rule rules[];
} RowCheck;

/* Returns -1 with an exception. */
static int fits(PyObject *value, const Rule *rule)
{
    PyTypeObject *type = Py_TYPE(value);
    int overflow;
    if (value == Py_None && rule->is_nullable)
        return 1;
    switch (rule->kind) {
    case FIELD_ANY: return 1;
    case FIELD_STRING: return type == &PyUnicode_Type;
    case FIELD_INTEGER: return type == &PyLong_Type;
    case FIELD_UNSIGNED: return type == &PyLong_Type && (PyLong_AsLongLongAndOverflow(value, &overflow) >= 0 || overflow > 0);
    case FIELD_DOUBLE: return type == &PyFloat_Type;
    case FIELD_BOOLEAN: return type == &PyBool_Type;
    case FIELD_VARBINARY: return type == &PyBytes_Type;
    case FIELD_ARRAY: return type == &PyList_Type;
    case FIELD_MAP: return type == &PyDict_Type;
    default: return rule->accepted ? PySet_Contains(rule->accepted, (PyObject *)type) : 1;
    }
}

/* Returns -1 with an exception. */
static int row_fits(const RowCheck *self, PyObject *fields)
{
    Py_ssize_t count = PySequence_Fast_GET_SIZE(fields);
    int is_fit = count >= self->least && (!self->exact || count == self->exact);
    for (Py_ssize_t place = 0; is_fit > 0 && place < Py_SIZE(self) && place < count; place++)
        is_fit = fits(PySequence_Fast_GET_ITEM(fields, place), self->rules + place);
    return is_fit;
}

const RowFormat *row_check_format(PyObject *check)
{
    return Py_SIZE(check) <= FORMAT_FIELDS_MAX ? &((RowCheck *)check)->format : NULL;
}

static PyObject *check_call(PyObject *object, PyObject *const *args, size_t flags, PyObject *names)
{
    if (names || PyVectorcall_NARGS(flags) != 1)
        return PyErr_Format(PyExc_TypeError, "a check takes the fields of a row");
    PyObject *fields = PySequence_Fast(args[0], "the fields of a row are a sequence");
    int is_fit = fields ? row_fits((RowCheck *)object, fields) : -1;
    Py_XDECREF(fields);
    if (is_fit < 0)
        return NULL;
    return is_fit ? Py_NewRef(Py_None) : PyObject_CallOneArg(((RowCheck *)object)->explain, args[0]);
}

/* -- making one -- */

/* Read (type, is_nullable, accepted types or None). */
static int add_rule(RowCheck *self, Py_ssize_t place, PyObject *given)
{
    PyObject *kind, *accepted;
    int is_nullable;
    if (!PyTuple_Check(given))
        return PyErr_Format(PyExc_TypeError, "a part is a tuple"), -1;
    if (!PyArg_ParseTuple(given, "UpO", &kind, &is_nullable, &accepted))
        return -1;
    if (accepted != Py_None && !PyFrozenSet_CheckExact(accepted)) {
        PyErr_SetString(PyExc_TypeError, "accepted types are a frozenset");
        return -1;
    }
    Rule *rule = self->rules + place;
    *rule = (Rule){field_kind(kind), (char)is_nullable, accepted == Py_None ? NULL : Py_NewRef(accepted)};
    if (!is_nullable)
        self->least = place + 1;
    if (place < FORMAT_FIELDS_MAX)
        self->format.fields[place] = (FormatField){(uint8_t)rule->kind, (uint8_t)is_nullable};
    return 0;
}

static PyObject *check_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *rules, *explain;
    unsigned int exact;
    if (!PyArg_ParseTuple(args, "O!IO:RowCheck", &PyTuple_Type, &rules, &exact, &explain))
        return NULL;
    RowCheck *self = (RowCheck *)type->tp_alloc(type, PyTuple_GET_SIZE(rules)); /* filled with zeros */
    if (!self)
        return NULL;
    self->vectorcall = check_call;
    self->explain = Py_NewRef(explain);
    self->exact = exact;
    self->format.exact = exact;
    for (Py_ssize_t place = 0; place < Py_SIZE(self); place++)
        if (add_rule(self, place, PyTuple_GET_ITEM(rules, place)) < 0) {
            Py_DECREF(self);
            return NULL;
        }
    self->format.count = (uint32_t)Py_SIZE(self);
    return (PyObject *)self;
}

static int check_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(((RowCheck *)object)->explain);
    return 0;
}

static void check_dealloc(PyObject *object)
{
    RowCheck *self = (RowCheck *)object;
    PyObject_GC_UnTrack(object);
    Py_XDECREF(self->explain);
    for (Py_ssize_t place = 0; place < Py_SIZE(self); place++)
        Py_XDECREF(self->rules[place].accepted);
    Py_TYPE(object)->tp_free(object);
}

PyTypeObject RowCheck_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native._native.RowCheck",
    .tp_doc = "Checks the fields of a row.",
    .tp_basicsize = sizeof(RowCheck),
    .tp_itemsize = sizeof(Rule),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(RowCheck, vectorcall),
    .tp_new = check_new,
    .tp_traverse = check_traverse,
    .tp_dealloc = check_dealloc,
};
