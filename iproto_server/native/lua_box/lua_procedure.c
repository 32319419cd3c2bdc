/* Functions of Lua that clients call by name: what a Procedure calls. */
#include "../native.h"

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *name, *waits, *packed_arguments;
    int kept_name; /* a reference of Lua's registry, or 0 */
} LuaProcedureObject;

enum { PACKED_ARGUMENTS = 32 };

/* The arguments are the box, and those of the call. */
static PyObject *procedure_call(PyObject *object, PyObject *const *args, size_t flags, PyObject *names)
{
    LuaProcedureObject *self = (LuaProcedureObject *)object;
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    PyObject *few[1 + 8], **all = few;
    if (!count)
        return PyErr_Format(PyExc_TypeError, "the box is missing");
    if (count > 8 && !(all = PyMem_New(PyObject *, (size_t)count)))
        return PyErr_NoMemory();
    all[0] = self->name;
    memcpy(all + 1, args + 1, (size_t)(count - 1) * sizeof *all);
    PyObject *result = lua_enter(&self->kept_name, all, count);
    if (all != few)
        PyMem_Free(all);
    if (result && PyLong_CheckExact(result))
        Py_SETREF(result, PyObject_CallOneArg(self->waits, result));
    return result;
}

/* LuaProcedure(name, waits) */
static PyObject *procedure_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    static char *names[] = {"name", "waits", NULL};
    PyObject *name, *waits, *numbers = PyTuple_New(PACKED_ARGUMENTS);
    for (Py_ssize_t place = 0; numbers && place < PACKED_ARGUMENTS; place++) {
        PyObject *number = PyLong_FromSsize_t(place);
        if (number)
            PyTuple_SET_ITEM(numbers, place, number);
        else
            Py_CLEAR(numbers);
    }
    LuaProcedureObject *self = numbers && PyArg_ParseTupleAndKeywords(args, named, "OO", names, &name, &waits)
        ? (LuaProcedureObject *)type->tp_alloc(type, 0) : NULL;
    if (!self) {
        Py_XDECREF(numbers);
        return NULL;
    }
    self->vectorcall = procedure_call;
    self->name = Py_NewRef(name);
    self->waits = Py_NewRef(waits);
    self->packed_arguments = numbers;
    return (PyObject *)self;
}

GC_FIELDS(procedure, offsetof(LuaProcedureObject, name), offsetof(LuaProcedureObject, waits),
          offsetof(LuaProcedureObject, packed_arguments))

static void free_procedure(PyObject *object)
{
    lua_State *lua = lua_running();
    int name = ((LuaProcedureObject *)object)->kept_name;
    if (lua && name)
        luaL_unref(lua, LUA_REGISTRYINDEX, name);
    procedure_dealloc(object);
}

static PyMemberDef procedure_members[] = {
    {"packed_arguments", T_OBJECT_EX, offsetof(LuaProcedureObject, packed_arguments), READONLY,
     "The numbers of arguments that stay packed."},
    {NULL},
};

PyTypeObject LuaProcedure_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native._native.LuaProcedure",
    .tp_doc = "A function of Lua that clients call.",
    .tp_basicsize = sizeof(LuaProcedureObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(LuaProcedureObject, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_new = procedure_new,
    .tp_members = procedure_members,
    .tp_traverse = procedure_traverse,
    .tp_clear = procedure_clear,
    .tp_dealloc = free_procedure,
};
