/* The base class of Space, a space as procedures see it. */
#include "../native.h"

static SpaceFacade *facade_of(PyObject *self)
{
    return (SpaceFacade *)self;
}

/* -- who may do what -- */

/* Whether the caller may read and change all spaces. */
static int may_all(const SpaceFacade *self)
{
    PyObject *session = ((SessionsObject *)self->sessions)->current;
    return session && PyObject_TypeCheck(session, &Session_Type)
        && may_everything((SessionObject *)session, PRIVILEGE_READ | PRIVILEGE_WRITE);
}

static int run(PyObject *done)
{
    Py_XDECREF(done);
    return done ? 0 : -1;
}

SpaceObject *facade_core(SpaceFacade *self, int right)
{
    if (!self->core || !self->sessions) {
        PyErr_SetString(PyExc_TypeError, "the facade has no space");
        return NULL;
    }
    if (right && !may_all(self) && run(PyObject_CallMethod((PyObject *)self, "_check_access", "i", right)) < 0)
        return NULL;
    /* Code outside of transactions, such as a timer's callback, must not see uncommitted rows. */
    PyObject *take_out = self->core->manager->take_out;
    if (take_out != Py_None && run(PyObject_CallNoArgs(take_out)) < 0)
        return NULL;
    if (self->core->is_dropped) {
        PyObject *name = PyObject_GetAttrString((PyObject *)self->core, "name");
        if (name)
            raise_box_error("NO_SUCH_SPACE", "(O)", name);
        Py_XDECREF(name);
        return NULL;
    }
    return (SpaceObject *)Py_NewRef((PyObject *)self->core);
}

static PyObject *method_core(PyObject *self, PyObject *ignored)
{
    return (PyObject *)facade_core(facade_of(self), NO_RIGHT);
}

static PyObject *method_readable(PyObject *self, PyObject *ignored)
{
    return (PyObject *)facade_core(facade_of(self), PRIVILEGE_READ);
}

static PyObject *method_writable(PyObject *self, PyObject *ignored)
{
    return (PyObject *)facade_core(facade_of(self), PRIVILEGE_WRITE);
}

/* -- rows -- */

PyObject *facade_store(SpaceFacade *self, PyObject *values, int is_insert)
{
    int is_whole;
    SpaceObject *core = facade_core(self, PRIVILEGE_WRITE);
    PyObject *row = core ? read_given_row(values, core->format, &is_whole) : NULL, *stored = NULL;
    if (row && core->is_custom)
        stored = PyObject_CallMethod((PyObject *)core, is_insert ? "insert" : "replace", "O", row);
    else if (row)
        stored = space_store(core, row, is_insert, is_whole, self->exempts_new_rows);
    Py_XDECREF(row);
    Py_XDECREF((PyObject *)core);
    return stored;
}

static PyObject *upsert_custom(SpaceObject *core, PyObject *row, PyObject *given)
{
    PyObject *operations = PyObject_CallMethod((PyObject *)core, "parse_operations", "(O)", given);
    PyObject *done = operations ? PyObject_CallMethod((PyObject *)core, "upsert", "OO", row, operations) : NULL;
    Py_XDECREF(operations);
    return done;
}

static PyObject *upsert_row(SpaceObject *core, PyObject *row, int is_whole, PyObject *given)
{
    UpdateOperations read;
    Buffer buffer;
    buffer_init(&buffer);
    ChangeCall call = {.given = given};
    int is_known = read_operations(&read, &buffer, core, &call);
    PyObject *done = is_known < 0 ? NULL : space_upsert(core, row, is_whole, &call, is_known ? &read : NULL);
    buffer_free(&buffer);
    return done;
}

static PyObject *upsert(SpaceFacade *self, PyObject *values, PyObject *operations)
{
    int is_whole;
    SpaceObject *core = facade_core(self, PRIVILEGE_WRITE);
    PyObject *row = core ? read_given_row(values, core->format, &is_whole) : NULL, *done = NULL;
    if (row)
        done = core->is_custom ? upsert_custom(core, row, operations) : upsert_row(core, row, is_whole, operations);
    Py_XDECREF(row);
    Py_XDECREF((PyObject *)core);
    return done;
}

/* -- methods. The primary index has number 0 -- */

static PyObject *zero;

FACADE_METHOD(method_insert)
{
    static const char *const known_names[] = {"values"};
    PyObject *taken[1] = {NULL};
    return take_arguments("insert", known_names, 1, 1, args, count, names, taken) < 0 ? NULL
        : facade_store(facade_of(self), taken[0], 1);
}

FACADE_METHOD(method_replace)
{
    static const char *const known_names[] = {"values"};
    PyObject *taken[1] = {NULL};
    return take_arguments("replace", known_names, 1, 1, args, count, names, taken) < 0 ? NULL
        : facade_store(facade_of(self), taken[0], 0);
}

FACADE_METHOD(method_get)
{
    static const char *const known_names[] = {"key"};
    PyObject *taken[1] = {NULL};
    return take_arguments("get", known_names, 1, 1, args, count, names, taken) < 0 ? NULL
        : facade_get(facade_of(self), zero, taken[0]);
}

FACADE_METHOD(method_select)
{
    PyObject *primary = facade_of(self)->primary;
    if (!primary || !PyObject_TypeCheck(primary, &IndexFacade_Type))
        return PyErr_Format(PyExc_TypeError, "the facade has no primary index");
    return facade_select((IndexFacade *)primary, args, count, names);
}

FACADE_METHOD(method_update)
{
    static const char *const known_names[] = {"key", "operations"};
    PyObject *taken[2] = {NULL, NULL};
    return take_arguments("update", known_names, 2, 2, args, count, names, taken) < 0 ? NULL
        : facade_update(facade_of(self), zero, taken[0], taken[1]);
}

FACADE_METHOD(method_upsert)
{
    static const char *const known_names[] = {"values", "operations"};
    PyObject *taken[2] = {NULL, NULL};
    return take_arguments("upsert", known_names, 2, 2, args, count, names, taken) < 0 ? NULL
        : upsert(facade_of(self), taken[0], taken[1]);
}

FACADE_METHOD(method_delete)
{
    static const char *const known_names[] = {"key"};
    PyObject *taken[1] = {NULL};
    return take_arguments("delete", known_names, 1, 1, args, count, names, taken) < 0 ? NULL
        : facade_delete(facade_of(self), zero, taken[0]);
}

static PyMethodDef space_methods[] = {
    {"core", method_core, METH_NOARGS, "core($self)\n--\n\nThe engine space."},
    {"readable", method_readable, METH_NOARGS, "readable($self)\n--\n\nThe engine space, if the caller may read it."},
    {"writable", method_writable, METH_NOARGS, "writable($self)\n--\n\nThe engine space, if the caller may change it."},
    FACADE_ENTRY("insert", method_insert, "($self, values)", "Store a new row."),
    FACADE_ENTRY("replace", method_replace, "($self, values)", "Store a row, replacing the one with the same primary key."),
    FACADE_ENTRY("get", method_get, "($self, key)", "The row with that primary key, or None."),
    FACADE_ENTRY("select", method_select, "($self, key=None, *, iterator=None, offset=0, limit=4294967295, after=None)",
           "The rows an iterator over the primary index finds; see `Index.select`."),
    FACADE_ENTRY("update", method_update, "($self, key, operations)", "Change the row with that primary key."),
    FACADE_ENTRY("upsert", method_upsert, "($self, values, operations)",
           "Store the row, or apply the operations to the row that has its primary key."),
    FACADE_ENTRY("delete", method_delete, "($self, key)", "Remove the row with that primary key."),
    {NULL},
};

static PyMemberDef space_members[] = {
    {"_core", T_OBJECT_EX, offsetof(SpaceFacade, core), READONLY, "The engine space."},
    {"_session", T_OBJECT_EX, offsetof(SpaceFacade, sessions), READONLY, "The current session."},
    {"primary", T_OBJECT_EX, offsetof(SpaceFacade, primary), 0, "The index with number 0."},
    {"exempts_updates", T_BOOL, offsetof(SpaceFacade, exempts_updates), 0,
     "Whether updates may exceed the memory limit."},
    {"exempts_new_rows", T_BOOL, offsetof(SpaceFacade, exempts_new_rows), 0,
     "Whether new rows may exceed the memory limit."},
    {NULL},
};

/* -- the type -- */

/* SpaceFacade(core, sessions) */
static int space_init(PyObject *object, PyObject *args, PyObject *kwargs)
{
    SpaceFacade *self = facade_of(object);
    PyObject *core, *sessions;
    if (!PyArg_ParseTuple(args, "O!O!:SpaceFacade", &Space_Type, &core, &Sessions_Type, &sessions)
        || (!zero && !(zero = PyLong_FromLong(0))))
        return -1;
    Py_XSETREF(self->core, (SpaceObject *)Py_NewRef(core));
    Py_XSETREF(self->sessions, Py_NewRef(sessions));
    return 0;
}

static int space_traverse(PyObject *object, visitproc visit, void *arg)
{
    SpaceFacade *self = facade_of(object);
    Py_VISIT(self->core);
    Py_VISIT(self->sessions);
    Py_VISIT(self->primary);
    return 0;
}

static int space_clear(PyObject *object)
{
    SpaceFacade *self = facade_of(object);
    Py_CLEAR(self->core);
    Py_CLEAR(self->sessions);
    Py_CLEAR(self->primary);
    return 0;
}

static void space_dealloc(PyObject *object)
{
    PyObject_GC_UnTrack(object);
    space_clear(object);
    Py_TYPE(object)->tp_free(object);
}

PyTypeObject SpaceFacade_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native._native.SpaceFacade",
    .tp_doc = "A space as procedures see it.",
    .tp_basicsize = sizeof(SpaceFacade),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = PyType_GenericNew,
    .tp_init = space_init,
    .tp_methods = space_methods,
    .tp_members = space_members,
    .tp_traverse = space_traverse,
    .tp_clear = space_clear,
    .tp_dealloc = space_dealloc,
};
