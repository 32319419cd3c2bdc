/* The base classes of Spaces and Indexes: facades, found by name or number as items or attributes.
 *
 * What was found before is known by what it was asked for, until a definition changes. The Python class's `__missing__`
 * finds everything else, and raises what there is to raise.
 */
#include "../native.h"

typedef struct {
    PyObject_HEAD
    PyObject *owner;  /* the catalog, or the space of the indexes */
    PyObject *found;  /* a dict */
    uint64_t version; /* of the definitions by which they were found */
} FacadesObject;

static FacadesObject *facades_of(PyObject *self)
{
    return (FacadesObject *)self;
}

static int has_owner(const FacadesObject *self)
{
    if (!self->owner)
        PyErr_SetString(PyExc_TypeError, "facades of nothing");
    return self->owner != NULL;
}

/* Forget what was found in another version. Returns -1 with an exception. */
static int use_version(FacadesObject *self, uint64_t version)
{
    if (!self->found && !(self->found = PyDict_New()))
        return -1;
    if (self->version != version) {
        PyDict_Clear(self->found);
        self->version = version;
    }
    return 0;
}

static PyObject *find(FacadesObject *self, PyObject *which)
{
    static PyObject *missing;
    int is_kept = PyUnicode_CheckExact(which) || PyLong_CheckExact(which);
    PyObject *found = is_kept ? PyDict_GetItemWithError(self->found, which) : NULL;
    if (found || PyErr_Occurred())
        return Py_XNewRef(found);
    if (!missing && !(missing = PyUnicode_InternFromString("__missing__")))
        return NULL;
    found = PyObject_CallMethodOneArg((PyObject *)self, missing, which);
    if (found && is_kept && PyDict_SetItem(self->found, which, found) < 0)
        Py_CLEAR(found);
    return found;
}

/* The attribute of the object itself, or else an item, but for names that are Python's own. */
static PyObject *attribute_or(PyObject *self, PyObject *name, binaryfunc item)
{
    PyObject *own = _PyObject_GenericGetAttrWithDict(self, name, NULL, 1);
    if (own || PyErr_Occurred())
        return own;
    if (PyUnicode_GET_LENGTH(name) > 1 && PyUnicode_READ_CHAR(name, 0) == '_' && PyUnicode_READ_CHAR(name, 1) == '_') {
        PyErr_SetObject(PyExc_AttributeError, name);
        return NULL;
    }
    return item(self, name);
}

/* -- spaces -- */

static PyObject *spaces_item(PyObject *object, PyObject *which)
{
    FacadesObject *self = facades_of(object);
    return !has_owner(self) || use_version(self, ((SpaceTable *)self->owner)->schema_version) < 0 ? NULL
        : find(self, which);
}

static PyObject *spaces_attribute(PyObject *self, PyObject *name)
{
    return attribute_or(self, name, spaces_item);
}

/* -- indexes -- */

static PyObject *indexes_item(PyObject *object, PyObject *which)
{
    FacadesObject *self = facades_of(object);
    SpaceObject *core = has_owner(self) ? facade_core((SpaceFacade *)self->owner, NO_RIGHT) : NULL;
    uint64_t version = core ? core->indexes_version : 0;
    Py_XDECREF((PyObject *)core);
    return !core || use_version(self, version) < 0 ? NULL : find(self, which);
}

static PyObject *indexes_attribute(PyObject *self, PyObject *name)
{
    return attribute_or(self, name, indexes_item);
}

/* -- the types -- */

static int set_owner(PyObject *self, PyObject *owner)
{
    Py_XSETREF(facades_of(self)->owner, Py_NewRef(owner));
    return use_version(facades_of(self), 0);
}

/* SpacesFacade(catalog) */
static int spaces_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    PyObject *catalog;
    return PyArg_ParseTuple(args, "O!:SpacesFacade", &SpaceTable_Type, &catalog) ? set_owner(self, catalog) : -1;
}

/* IndexesFacade(space) */
static int indexes_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    PyObject *space;
    return PyArg_ParseTuple(args, "O!:IndexesFacade", &SpaceFacade_Type, &space) ? set_owner(self, space) : -1;
}

static int facades_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(facades_of(self)->owner);
    Py_VISIT(facades_of(self)->found);
    return 0;
}

static int facades_clear(PyObject *self)
{
    Py_CLEAR(facades_of(self)->found);
    return 0;
}

static void facades_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    Py_XDECREF(facades_of(self)->owner);
    Py_XDECREF(facades_of(self)->found);
    Py_TYPE(self)->tp_free(self);
}

static PyMemberDef spaces_members[] = {
    {"_catalog", T_OBJECT_EX, offsetof(FacadesObject, owner), READONLY, "The catalog."},
    {"_found", T_OBJECT_EX, offsetof(FacadesObject, found), READONLY, "What was found, a dict."},
    {NULL},
};
static PyMemberDef indexes_members[] = {
    {"_space", T_OBJECT_EX, offsetof(FacadesObject, owner), READONLY, "The space."},
    {NULL},
};
static PyMappingMethods spaces_mapping = {.mp_subscript = spaces_item};
static PyMappingMethods indexes_mapping = {.mp_subscript = indexes_item};

PyTypeObject SpacesFacade_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native._native.SpacesFacade",
    .tp_doc = "Facades of spaces by name or number.",
    .tp_basicsize = sizeof(FacadesObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = PyType_GenericNew,
    .tp_init = spaces_init,
    .tp_members = spaces_members,
    .tp_getattro = spaces_attribute,
    .tp_as_mapping = &spaces_mapping,
    .tp_traverse = facades_traverse,
    .tp_clear = facades_clear,
    .tp_dealloc = facades_dealloc,
};

PyTypeObject IndexesFacade_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native._native.IndexesFacade",
    .tp_doc = "Facades of a space's indexes by name or number.",
    .tp_basicsize = sizeof(FacadesObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = PyType_GenericNew,
    .tp_init = indexes_init,
    .tp_members = indexes_members,
    .tp_getattro = indexes_attribute,
    .tp_as_mapping = &indexes_mapping,
    .tp_traverse = facades_traverse,
    .tp_clear = facades_clear,
    .tp_dealloc = facades_dealloc,
};
