/* Space, the base class of SpaceDefinition: what the engine has of a space, with the Python objects that it was made of. */
#include "../native.h"

static SpaceObject *self_of(PyObject *self)
{
    return (SpaceObject *)self;
}

/* -- failures -- */

static int refuse(SpaceObject *space, int code, PyObject *one, PyObject *other)
{
    PyObject *done = !one ? PyObject_CallMethod((PyObject *)space, "_refuse", "i", code)
        : !other ? PyObject_CallMethod((PyObject *)space, "_refuse", "iO", code, one)
                 : PyObject_CallMethod((PyObject *)space, "_refuse", "iOO", code, one, other);
    Py_XDECREF(done);
    return -1;
}

/* The object of an index of the engine, borrowed. */
static PyObject *index_object(SpaceObject *space, const Index *index)
{
    if (space->primary && ((TreeObject *)space->primary)->index == index)
        return space->primary;
    for (Py_ssize_t number = 0; number < PyTuple_GET_SIZE(space->secondaries); number++)
        if (((TreeObject *)PyTuple_GET_ITEM(space->secondaries, number))->index == index)
            return PyTuple_GET_ITEM(space->secondaries, number);
    return Py_None;
}

static int refuse_by_index(SpaceObject *space, int code, PyObject *index)
{
    PyObject *done = PyObject_CallMethod((PyObject *)space, "_refuse_by_index", "iO", code, index);
    Py_XDECREF(done);
    return -1;
}

int space_raise(SpaceObject *space)
{
    enum { TUPLE_FOUND = 3, READONLY_ERROR = 7, NO_SUCH_INDEX_ID = 35, CANT_UPDATE_PRIMARY_KEY = 94, SUB_STMT_MAX = 121 };
    Engine *engine = space->core.engine;
    switch (engine->failure) {
    case FAILURE_MEMORY: PyErr_NoMemory(); return -1;
    case FAILURE_READ_ONLY: return refuse(space, READONLY_ERROR, NULL, NULL);
    case FAILURE_NESTING: return refuse(space, SUB_STMT_MAX, NULL, NULL);
    case FAILURE_DUPLICATE: return refuse_by_index(space, TUPLE_FOUND, index_object(space, engine->failed_index));
    case FAILURE_PRIMARY_KEY: return refuse_by_index(space, CANT_UPDATE_PRIMARY_KEY, space->primary);
    case FAILURE_NO_PRIMARY: {
        PyObject *done = PyObject_CallMethod((PyObject *)space, "primary_index", NULL);
        Py_XDECREF(done);
        return -1;
    }
    default: return -1;
    }
}

/* -- format -- */

/* Take what the engine needs of a Format. */
static int set_format(PyObject *object, PyObject *format, void *closure)
{
    SpaceObject *self = self_of(object);
    if (!format) {
        PyErr_SetString(PyExc_TypeError, "format cannot be deleted");
        return -1;
    }
    PyObject *check = PyObject_GetAttrString(format, "check"), *names = check ? PyObject_GetAttrString(format, "names") : NULL;
    if (!names || !PyDict_CheckExact(names)) {
        if (names)
            PyErr_SetString(PyExc_TypeError, "the names of a format are a dict");
        Py_XDECREF(check);
        Py_XDECREF(names);
        return -1;
    }
    const RowFormat *known = Py_TYPE(check) == &RowCheck_Type ? row_check_format(check) : NULL;
    self->core.is_checked = known != NULL;
    self->core.format = known ? *known : (RowFormat){0};
    Py_XSETREF(self->format, Py_NewRef(format));
    Py_XSETREF(self->check, check);
    Py_XSETREF(self->names, names);
    return 0;
}

static PyObject *get_format(PyObject *self, void *closure)
{
    if (!self_of(self)->format)
        PyErr_SetString(PyExc_AttributeError, "format");
    return Py_XNewRef(self_of(self)->format);
}

/* _use_doubles(field numbers) */
static PyObject *use_doubles(PyObject *self, PyObject *numbers)
{
    UpdateDoubles doubles = {0, 0};
    PyObject *each = PyObject_GetIter(numbers), *number;
    while (each && (number = PyIter_Next(each))) {
        unsigned long field = PyLong_AsUnsignedLong(number);
        Py_DECREF(number);
        if (PyErr_Occurred())
            break;
        if (field < 64)
            doubles.first |= (uint64_t)1 << field;
        else
            doubles.has_more = 1;
    }
    Py_XDECREF(each);
    if (PyErr_Occurred())
        return NULL;
    self_of(self)->core.doubles = doubles;
    Py_RETURN_NONE;
}

/* -- indexes -- */

static int read_fields(PyObject *numbers, uint64_t *fields, uint8_t *has_more)
{
    *fields = 0;
    *has_more = 0;
    PyObject *each = PyObject_GetIter(numbers), *number;
    while (each && (number = PyIter_Next(each))) {
        unsigned long field = PyLong_AsUnsignedLong(number);
        Py_DECREF(number);
        if (PyErr_Occurred())
            break;
        if (field < 64)
            *fields |= (uint64_t)1 << field;
        else
            *has_more = 1;
    }
    Py_XDECREF(each);
    return PyErr_Occurred() ? -1 : 0;
}

/* _use_indexes(indexes, primary, secondaries, fields): a dict by number, an index or None, a tuple, and the fields that the
 * keys of each depend on, the primary one first */
static PyObject *use_indexes(PyObject *object, PyObject *const *args, Py_ssize_t count)
{
    static uint64_t last_version;
    SpaceObject *self = self_of(object);
    if (count != 4 || !PyDict_CheckExact(args[0]) || !PyTuple_CheckExact(args[2]) || !PyTuple_CheckExact(args[3])
        || PyTuple_GET_SIZE(args[3]) != PyTuple_GET_SIZE(args[2]) + 1 || PyTuple_GET_SIZE(args[2]) > SPACE_INDEXES_MAX) {
        PyErr_SetString(PyExc_TypeError, "_use_indexes() takes indexes, the primary one, the others, and their fields");
        return NULL;
    }
    Py_ssize_t others = PyTuple_GET_SIZE(args[2]);
    SpaceIndex *made = PyMem_Calloc((size_t)others + 1, sizeof *made);
    uint64_t primary_fields;
    uint8_t has_more;
    int failed = !made || read_fields(PyTuple_GET_ITEM(args[3], 0), &primary_fields, &has_more) < 0;
    for (Py_ssize_t number = 0; !failed && number < others; number++) {
        made[number].index = index_of_object(PyTuple_GET_ITEM(args[2], number));
        failed = !made[number].index || read_fields(PyTuple_GET_ITEM(args[3], number + 1), &made[number].fields,
                                                    &made[number].has_more) < 0;
        /* A part of the primary key is behind the key of each entry. */
        made[number].fields |= primary_fields;
        made[number].has_more |= has_more;
    }
    Index *primary = args[1] == Py_None ? NULL : index_of_object(args[1]);
    if (failed || (args[1] != Py_None && !primary)) {
        PyMem_Free(made);
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "indexes are Trees");
        return NULL;
    }
    PyMem_Free(self->core.others);
    self->indexes_version = ++last_version;
    self->core.others = made;
    self->core.count = (int)others;
    self->core.primary = primary;
    self->core.primary_fields = primary_fields;
    self->core.has_more_primary_fields = has_more;
    Py_XSETREF(self->indexes, Py_NewRef(args[0]));
    Py_XSETREF(self->primary, primary ? Py_NewRef(args[1]) : NULL);
    Py_XSETREF(self->secondaries, Py_NewRef(args[2]));
    Py_RETURN_NONE;
}

static PyObject *get_primary(PyObject *self, void *closure)
{
    PyObject *primary = self_of(self)->primary;
    return Py_NewRef(primary ? primary : Py_None);
}

/* -- what has effects beside the row -- */

static void set_flag(SpaceObject *self, uint8_t flag, int is_set)
{
    self->core.flags = (uint8_t)(is_set ? self->core.flags | flag : self->core.flags & ~flag);
}

static PyObject *get_attached(PyObject *self, void *closure)
{
    return Py_NewRef(self_of(self)->attached);
}

static int set_attached(PyObject *self, PyObject *value, void *closure)
{
    PyObject *given = value ? value : Py_None;
    Py_XSETREF(self_of(self)->attached, Py_NewRef(given));
    set_flag(self_of(self), SPACE_FILLS, given != Py_None);
    return 0;
}

static PyObject *get_system_hook(PyObject *self, void *closure)
{
    return Py_NewRef(self_of(self)->system_hook);
}

static int set_system_hook(PyObject *self, PyObject *value, void *closure)
{
    PyObject *given = value ? value : Py_None;
    Py_XSETREF(self_of(self)->system_hook, Py_NewRef(given));
    set_flag(self_of(self), SPACE_EFFECTS, given != Py_None);
    return 0;
}

/* Let a list of triggers set a flag of the space while there are any. */
static int set_triggers(SpaceObject *self, TriggersObject **place, PyObject *value, uint8_t flag)
{
    if (!value || !PyObject_TypeCheck(value, &Triggers_Type) || ((TriggersObject *)value)->space) {
        PyErr_SetString(PyExc_TypeError, "a list of triggers of its own is needed");
        return -1;
    }
    if (*place)
        (*place)->space = NULL;
    Py_XSETREF(*place, (TriggersObject *)Py_NewRef(value));
    (*place)->space = &self->core;
    (*place)->flag = flag;
    triggers_tell_space(*place);
    return 0;
}

static PyObject *get_on_replace(PyObject *self, void *closure)
{
    return Py_XNewRef((PyObject *)self_of(self)->on_replace);
}

static int set_on_replace(PyObject *self, PyObject *value, void *closure)
{
    return set_triggers(self_of(self), &self_of(self)->on_replace, value, SPACE_NOTIFIES);
}

static PyObject *get_before_replace(PyObject *self, void *closure)
{
    return Py_XNewRef((PyObject *)self_of(self)->before_replace);
}

static int set_before_replace(PyObject *self, PyObject *value, void *closure)
{
    return set_triggers(self_of(self), &self_of(self)->before_replace, value, SPACE_DECIDES);
}

/* -- plain attributes -- */

static PyObject *get_id(PyObject *self, void *closure)
{
    return PyLong_FromUnsignedLong(self_of(self)->core.id);
}

static int set_id(PyObject *self, PyObject *value, void *closure)
{
    unsigned long id = value ? PyLong_AsUnsignedLong(value) : 0;
    if (PyErr_Occurred() || id > UINT32_MAX) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_OverflowError, "the number of a space has 32 bits");
        return -1;
    }
    self_of(self)->core.id = (uint32_t)id;
    return 0;
}

static PyMemberDef space_members[] = {
    {"is_temporary", T_BOOL, offsetof(SpaceObject, core.is_temporary), 0, "Whether rows are neither logged nor kept."},
    {"is_local", T_BOOL, offsetof(SpaceObject, core.is_local), 0, "Whether rows are not replicated."},
    {"is_dropped", T_BOOL, offsetof(SpaceObject, is_dropped), 0, "Whether the space was dropped."},
    {"_is_custom", T_BOOL, offsetof(SpaceObject, is_custom), 0, "Whether the class changes rows by its own methods."},
    {"bsize", T_PYSSIZET, offsetof(SpaceObject, core.bsize), 0, "Bytes of all rows together."},
    {"indexes", T_OBJECT_EX, offsetof(SpaceObject, indexes), READONLY, "The indexes by number."},
    {"secondaries", T_OBJECT_EX, offsetof(SpaceObject, secondaries), READONLY, "The other indexes, by number."},
    {"_transactions", T_OBJECT_EX, offsetof(SpaceObject, manager), READONLY, "The transaction manager."},
    {NULL},
};

static PyGetSetDef space_attributes[] = {
    {"id", get_id, set_id, "The number in `_space`.", NULL},
    {"format", get_format, set_format, "The format of rows.", NULL},
    {"primary", get_primary, NULL, "The index with number 0, or None.", NULL},
    {"attached", get_attached, set_attached, "The sequence that fills a field, or None.", NULL},
    {"system_hook", get_system_hook, set_system_hook, "The effect of a change of a system row, or None.", NULL},
    {"on_replace", get_on_replace, set_on_replace, "The triggers after a change.", NULL},
    {"before_replace", get_before_replace, set_before_replace, "The triggers that decide what is stored.", NULL},
    {NULL},
};

#define FAST(name, function, text) {name, (PyCFunction)(void (*)(void))function, METH_FASTCALL, text}
static PyMethodDef space_methods[] = {
    {"insert", space_method_insert, METH_O, "Store a new row and return it."},
    {"replace", space_method_replace, METH_O, "Store a row in the place of another, and return it."},
    FAST("update", space_method_update, "Change the row with a whole key of a unique index."),
    FAST("upsert", space_method_upsert, "Store a row, or change the one with its primary key."),
    FAST("delete", space_method_delete, "Remove the row with a whole key of a unique index."),
    FAST("exchange", space_method_exchange, "Put a row in the place of another without a statement."),
    FAST("find", space_method_find, "The packed row with a whole key of a unique index, or None."),
    FAST("first", space_method_first, "The first packed row whose key begins with a key, or None."),
    FAST("_use_indexes", use_indexes, "Replace all indexes."),
    {"_use_doubles", use_doubles, METH_O, "Set the numbers of fields of type `double`."},
    {NULL},
};

/* -- the type -- */

static PyObject *space_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    SpaceObject *self = (SpaceObject *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->core.hooks = &space_hooks;
    self->core.context = self;
    self->attached = Py_NewRef(Py_None);
    self->system_hook = Py_NewRef(Py_None);
    self->secondaries = PyTuple_New(0);
    return (PyObject *)self;
}

/* Space(transactions) */
static int space_init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    SpaceObject *self = self_of(object);
    PyObject *manager;
    if (!PyArg_ParseTuple(args, "O!:Space", &Manager_Type, &manager))
        return -1;
    Py_XSETREF(self->manager, (ManagerObject *)Py_NewRef(manager));
    self->core.engine = &self->manager->engine;
    return 0;
}

static int space_traverse(PyObject *object, visitproc visit, void *arg)
{
    SpaceObject *self = self_of(object);
    Py_VISIT(self->manager);
    Py_VISIT(self->format);
    Py_VISIT(self->check);
    Py_VISIT(self->names);
    Py_VISIT(self->indexes);
    Py_VISIT(self->primary);
    Py_VISIT(self->secondaries);
    Py_VISIT(self->attached);
    Py_VISIT(self->system_hook);
    Py_VISIT(self->on_replace);
    Py_VISIT(self->before_replace);
    return 0;
}

/* Cycles go through what rows bring about; the indexes stay while statements may refer to the space. */
static int space_clear(PyObject *object)
{
    SpaceObject *self = self_of(object);
    Py_XSETREF(self->attached, Py_NewRef(Py_None));
    Py_XSETREF(self->system_hook, Py_NewRef(Py_None));
    return 0;
}

static void space_dealloc(PyObject *object)
{
    SpaceObject *self = self_of(object);
    PyObject_GC_UnTrack(object);
    if (self->on_replace)
        self->on_replace->space = NULL;
    if (self->before_replace)
        self->before_replace->space = NULL;
    PyMem_Free(self->core.others);
    Py_XDECREF(self->manager);
    Py_XDECREF(self->format);
    Py_XDECREF(self->check);
    Py_XDECREF(self->names);
    Py_XDECREF(self->indexes);
    Py_XDECREF(self->primary);
    Py_XDECREF(self->secondaries);
    Py_XDECREF(self->attached);
    Py_XDECREF(self->system_hook);
    Py_XDECREF((PyObject *)self->on_replace);
    Py_XDECREF((PyObject *)self->before_replace);
    Py_TYPE(object)->tp_free(object);
}

PyTypeObject Space_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native._native.Space",
    .tp_doc = "A space of the engine.",
    .tp_basicsize = sizeof(SpaceObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = space_new,
    .tp_init = space_init,
    .tp_methods = space_methods,
    .tp_members = space_members,
    .tp_getset = space_attributes,
    .tp_traverse = space_traverse,
    .tp_clear = space_clear,
    .tp_dealloc = space_dealloc,
};
