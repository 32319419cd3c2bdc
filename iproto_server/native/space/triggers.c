/* The base class of TriggerList: the functions of an event, which a space's changes look at. */
#include "../native.h"

static TriggersObject *as_triggers(PyObject *self)
{
    return (TriggersObject *)self;
}

void triggers_tell_space(TriggersObject *triggers)
{
    if (!triggers->space)
        return;
    if (PyTuple_GET_SIZE(triggers->functions) && !triggers->is_off)
        triggers->space->flags |= triggers->flag;
    else
        triggers->space->flags &= (uint8_t)~triggers->flag;
}

static PyObject *triggers_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *self = type->tp_alloc(type, 0);
    if (self && !(as_triggers(self)->functions = PyTuple_New(0)))
        Py_CLEAR(self);
    return self;
}

static PyObject *get_functions(PyObject *self, void *closure)
{
    return Py_NewRef(as_triggers(self)->functions);
}

static int set_functions(PyObject *object, PyObject *functions, void *closure)
{
    TriggersObject *self = as_triggers(object);
    if (!functions || !PyTuple_CheckExact(functions)) {
        PyErr_SetString(PyExc_TypeError, "the functions of an event are a tuple");
        return -1;
    }
    Py_SETREF(self->functions, Py_NewRef(functions));
    triggers_tell_space(self);
    return 0;
}

static PyObject *get_is_off(PyObject *self, void *closure)
{
    return PyBool_FromLong(as_triggers(self)->is_off);
}

static int set_is_off(PyObject *self, PyObject *value, void *closure)
{
    int is_off = value ? PyObject_IsTrue(value) : 0;
    if (is_off < 0)
        return -1;
    as_triggers(self)->is_off = (uint8_t)is_off;
    triggers_tell_space(as_triggers(self));
    return 0;
}

static int triggers_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(as_triggers(self)->functions);
    return 0;
}

static int triggers_clear(PyObject *object)
{
    TriggersObject *self = as_triggers(object);
    PyObject *none = PyTuple_New(0); /* the only one */
    if (none)
        Py_SETREF(self->functions, none);
    return 0;
}

static void triggers_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    Py_XDECREF(as_triggers(self)->functions);
    Py_TYPE(self)->tp_free(self);
}

static PyGetSetDef triggers_attributes[] = {
    {"functions", get_functions, set_functions, "The functions, in the order in which they run; a tuple.", NULL},
    {"is_off", get_is_off, set_is_off, "Whether none of them runs.", NULL},
    {NULL},
};

PyTypeObject Triggers_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native._native.Triggers",
    .tp_doc = "The functions of an event.",
    .tp_basicsize = sizeof(TriggersObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = triggers_new,
    .tp_getset = triggers_attributes,
    .tp_traverse = triggers_traverse,
    .tp_clear = triggers_clear,
    .tp_dealloc = triggers_dealloc,
};
