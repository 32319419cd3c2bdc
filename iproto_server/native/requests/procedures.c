/* Procedures by name: the base classes of Procedure and Calls. */
#include "../native.h"

/* -- names -- */

/* Names of procedures that clients have called, so that none is made, and hashed, for each call. */
enum { NAMES_KEPT = 32, KEPT_MAX = 48 };
typedef struct {
    PyObject *name;
    Py_ssize_t size;
    char text[KEPT_MAX];
} KeptName;
static KeptName kept_names[NAMES_KEPT];

/* Where a name is kept, if it is; it may be another one that is. */
static KeptName *place_of_name(const void *text, Py_ssize_t size)
{
    const uint8_t *bytes = text;
    return kept_names + ((size_t)size * 7 + bytes[0] * 3u + bytes[size - 1]) % NAMES_KEPT;
}

static void keep_name(PyObject *name, const void *text, Py_ssize_t size)
{
    KeptName *kept = place_of_name(text, size);
    Py_XSETREF(kept->name, Py_NewRef(name));
    kept->size = size;
    memcpy(kept->text, text, (size_t)size);
}

/* Keep the name that a procedure has: as the same object it is found without comparing it. */
static void keep_name_of(const ProcedureObject *procedure)
{
    PyObject *name = procedure->name;
    if (!PyUnicode_CheckExact(name) || !PyUnicode_IS_ASCII(name))
        return;
    Py_ssize_t size = PyUnicode_GET_LENGTH(name);
    if (size && size <= KEPT_MAX)
        keep_name(name, PyUnicode_1BYTE_DATA(name), size);
}

PyObject *read_procedure_name(Position *at, Position end)
{
    Position text = *at;
    Py_ssize_t size = text < end && (*text & 0xe0) == 0xa0 ? *text++ & 0x1f : 0;
    if (text < end && *text == 0xd9 && text == *at && end - text > 1) {
        size = text[1];
        text += 2;
    }
    if (!size || size > KEPT_MAX || size > end - text)
        return read_value(at, end, 1);
    const KeptName *kept = place_of_name(text, size);
    if (kept->size == size && !memcmp(kept->text, text, (size_t)size)) {
        *at = text + size;
        return Py_NewRef(kept->name);
    }
    PyObject *name = read_value(at, end, 1);
    if (name)
        keep_name(name, text, size);
    return name;
}

/* -- procedures -- */

enum { PACKED_MAX = 32 };

/* The bits of the numbers in a function's attribute `packed_arguments`. Returns -1 with an exception. */
static int read_packed(PyObject *function, unsigned int *bits)
{
    PyObject *numbers = PyObject_GetAttrString(function, "packed_arguments");
    *bits = 0;
    if (!numbers) {
        PyErr_Clear();
        return 0;
    }
    Py_ssize_t place = PyTuple_CheckExact(numbers) ? PyTuple_GET_SIZE(numbers) : 0;
    while (place--) {
        long number = PyLong_AsLong(PyTuple_GET_ITEM(numbers, place));
        if (number < 0 || number >= PACKED_MAX) {
            if (!PyErr_Occurred())
                PyErr_Format(PyExc_ValueError, "the number of a packed argument is from 0 to %d, not %ld",
                             PACKED_MAX - 1, number);
            Py_DECREF(numbers);
            return -1;
        }
        *bits |= 1u << number;
    }
    Py_DECREF(numbers);
    return 0;
}

static PyObject *procedure_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    static char *names[] = {"name", "function", "is_async", "is_autonomous", NULL};
    PyObject *name, *function;
    int is_async, is_autonomous = 0;
    unsigned int packed;
    if (!PyArg_ParseTupleAndKeywords(args, named, "UOp|p", names, &name, &function, &is_async, &is_autonomous)
        || read_packed(function, &packed) < 0)
        return NULL;
    ProcedureObject *self = (ProcedureObject *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->name = Py_NewRef(name);
    self->function = Py_NewRef(function);
    self->is_async = (char)is_async;
    self->is_autonomous = (char)is_autonomous;
    self->packed = packed;
    return (PyObject *)self;
}

GC_FIELDS(procedure, offsetof(ProcedureObject, name), offsetof(ProcedureObject, function))

static PyMemberDef procedure_members[] = {
    {"name", T_OBJECT_EX, offsetof(ProcedureObject, name), READONLY, "The name in CALL."},
    {"function", T_OBJECT_EX, offsetof(ProcedureObject, function), READONLY, "The function."},
    {"is_async", T_BOOL, offsetof(ProcedureObject, is_async), READONLY, "Whether it is a coroutine function."},
    {"is_autonomous", T_BOOL, offsetof(ProcedureObject, is_autonomous), READONLY,
     "Whether it is not called as one transaction."},
    {"packed", T_UINT, offsetof(ProcedureObject, packed), READONLY, "Bits of the arguments that stay packed."},
    {NULL},
};

PyTypeObject Procedure_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native._native.ProcedureState",
    .tp_doc = "A function that clients call by name.",
    .tp_basicsize = sizeof(ProcedureObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = procedure_new,
    .tp_members = procedure_members,
    .tp_traverse = procedure_traverse,
    .tp_clear = procedure_clear,
    .tp_dealloc = procedure_dealloc,
};

/* -- the table -- */

ProcedureObject *find_procedure(const ProceduresObject *self, PyObject *name)
{
    PyObject *found = self->by_name && PyDict_CheckExact(self->by_name)
        ? PyDict_GetItemWithError(self->by_name, name) : NULL;
    if (!found || !PyObject_TypeCheck(found, &Procedure_Type) || ((ProcedureObject *)found)->is_async)
        return NULL;
    ProcedureObject *procedure = (ProcedureObject *)found;
    if (procedure->name != name)
        keep_name_of(procedure);
    return (ProcedureObject *)Py_NewRef(found);
}

GC_FIELDS(procedures, offsetof(ProceduresObject, by_name))

static PyMemberDef procedures_members[] = {
    {"_by_name", T_OBJECT_EX, offsetof(ProceduresObject, by_name), 0, "The procedures by name, a dict."},
    {NULL},
};

PyTypeObject Procedures_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    BASE_TYPE(procedures, ProceduresObject, "ProcedureTable", "The procedures that clients may call."),
    .tp_members = procedures_members,
};

PyTypeObject PendingResult_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native._native.PendingResult",
    .tp_doc = "The result of a procedure that is answered later: the base class of Waiter.",
    .tp_basicsize = sizeof(PyObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_new = PyType_GenericNew,
};
