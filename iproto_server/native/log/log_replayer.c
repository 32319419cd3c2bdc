/* LogReplayer: applies rows of logs to primary indexes. Rows that need a closer look are left to the caller. */
#include "../native.h"

enum { TARGETS_MAX = 64 };

/* A space whose rows change. */
typedef struct {
    uint64_t space_id;
    PyObject *tree, *space; /* references, both NULL if its rows are left to the caller */
    Replay replay;
    FieldName fields[REPLAY_NAMES_MAX];
} Target;

typedef struct {
    PyObject_HEAD
    PyObject *target_of;
    Target *targets; /* of the spaces met so far */
    int count, latest;
} LogReplayerObject;

static LogReplayerObject *as_replayer(PyObject *object)
{
    return (LogReplayerObject *)object;
}

static void forget_targets(LogReplayerObject *self)
{
    while (self->count) {
        Target *target = self->targets + --self->count;
        if (target->tree)
            replay_end(&target->replay);
        Py_XDECREF(target->tree);
        Py_XDECREF(target->space);
    }
}

/* Read the names of fields from the dict; updates that use others are left to the caller. Returns -1 with an
 * exception. */
static int read_names(Target *target, PyObject *names)
{
    PyObject *name, *number;
    Py_ssize_t place = 0;
    int count = 0;
    while (names && count < REPLAY_NAMES_MAX && PyDict_Next(names, &place, &name, &number)) {
        Py_ssize_t size;
        const char *text = PyUnicode_IsIdentifier(name) ? PyUnicode_AsUTF8AndSize(name, &size) : NULL;
        unsigned long field = PyLong_AsUnsignedLong(number);
        if (PyErr_Occurred())
            return -1;
        if (text)
            target->fields[count++] = (FieldName){(const uint8_t *)text, (size_t)size, (uint32_t)field};
    }
    target->replay.names = target->fields;
    target->replay.name_count = count;
    return 0;
}

static Tree *tree_of_rows(PyObject *object)
{
    Index *index = index_of_object(object);
    return index && index_holds_rows(index) ? &index->tree : NULL;
}

/* Set the tree and the space that the function has returned for an id. Returns -1 with an exception. */
static int set_target(Target *target, PyObject *found)
{
    if (found == Py_None)
        return 0;
    int is_pair = PyTuple_CheckExact(found) && PyTuple_GET_SIZE(found) == 2;
    SpaceObject *space = is_pair ? as_space(PyTuple_GET_ITEM(found, 1)) : NULL;
    if (!space || !tree_of_rows(PyTuple_GET_ITEM(found, 0))) {
        PyErr_SetString(PyExc_TypeError, "rows of a log go to a tree of rows, of a space");
        return -1;
    }
    target->tree = Py_NewRef(PyTuple_GET_ITEM(found, 0));
    target->space = Py_NewRef((PyObject *)space);
    replay_begin(&target->replay, tree_of_rows(target->tree));
    target->replay.doubles = space->core.doubles;
    return read_names(target, space->names);
}

/* Returns -1 with an exception. */
static int add_target(LogReplayerObject *self, uint64_t space_id)
{
    PyObject *found = self->target_of ? PyObject_CallFunction(self->target_of, "K", (unsigned long long)space_id)
                                      : PyErr_Format(PyExc_RuntimeError, "the replay has ended");
    if (!found)
        return -1;
    if (self->count == TARGETS_MAX)
        forget_targets(self);
    Target *target = self->targets + self->count++;
    *target = (Target){.space_id = space_id};
    int failed = set_target(target, found) < 0;
    Py_DECREF(found);
    if (failed)
        forget_targets(self);
    return failed ? -1 : 0;
}

/* The target of a space's rows; NULL with an exception. */
static Target *find_target(LogReplayerObject *self, uint64_t space_id)
{
    if (self->latest < self->count && self->targets[self->latest].space_id == space_id)
        return self->targets + self->latest;
    for (self->latest = 0; self->latest < self->count; self->latest++)
        if (self->targets[self->latest].space_id == space_id)
            return self->targets + self->latest;
    if (add_target(self, space_id) < 0)
        return NULL;
    self->latest = self->count - 1;
    return self->targets + self->latest;
}

/* Make a change. Returns 1; 0 if it is left to the caller; -1 with an exception. */
static int apply_row(LogReplayerObject *self, const uint8_t *block, const BlockRow *row)
{
    if (!row->has_space)
        return 0;
    Target *target = find_target(self, row->space_id);
    if (!target || !target->tree)
        return target ? 0 : -1;
    int done = replay_row(&target->replay, block, row);
    if (done < 0)
        PyErr_NoMemory();
    return done;
}

/* apply(rows, position, member, lsn, last): the position of the first row that is left to the caller */
static PyObject *replayer_apply(PyObject *object, PyObject *const *args, Py_ssize_t given)
{
    if (given != 5 || Py_TYPE(args[0]) != &BlockRows_Type)
        return PyErr_Format(PyExc_TypeError, "apply() takes BlockRows, a position, a member and two LSNs");
    size_t position;
    const uint8_t *block;
    const BlockRows *found = block_rows(args[0], &block);
    unsigned long long member = PyLong_AsUnsignedLongLong(args[2]);
    unsigned long long lsn = PyErr_Occurred() ? 0 : PyLong_AsUnsignedLongLong(args[3]);
    unsigned long long last = PyErr_Occurred() ? 0 : PyLong_AsUnsignedLongLong(args[4]);
    if (PyErr_Occurred() || block_rows_position(args[0], args[1], &position) < 0)
        return NULL;
    for (; position < found->count; position++, lsn++) {
        const BlockRow *row = found->rows + position;
        if (row->member != member || row->lsn != lsn || lsn > last)
            break;
        int done = apply_row(as_replayer(object), block, row);
        if (done < 0)
            return NULL;
        if (!done)
            break;
    }
    return PyLong_FromSize_t(position);
}

static PyObject *replayer_forget(PyObject *self, PyObject *ignored)
{
    forget_targets(as_replayer(self));
    Py_RETURN_NONE;
}

/* LogReplayer(target_of) */
static PyObject *replayer_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"", NULL};
    PyObject *target_of;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O:LogReplayer", names, &target_of))
        return NULL;
    LogReplayerObject *self = as_replayer(type->tp_alloc(type, 0));
    if (!self)
        return NULL;
    self->target_of = Py_NewRef(target_of);
    if (!(self->targets = PyMem_New(Target, TARGETS_MAX))) {
        PyErr_NoMemory();
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static int replayer_traverse(PyObject *object, visitproc visit, void *arg)
{
    LogReplayerObject *self = as_replayer(object);
    Py_VISIT(self->target_of);
    for (int place = 0; place < self->count; place++) {
        Py_VISIT(self->targets[place].tree);
        Py_VISIT(self->targets[place].space);
    }
    return 0;
}

static int replayer_clear(PyObject *object)
{
    forget_targets(as_replayer(object));
    Py_CLEAR(as_replayer(object)->target_of);
    return 0;
}

static void replayer_dealloc(PyObject *object)
{
    PyObject_GC_UnTrack(object);
    forget_targets(as_replayer(object));
    PyMem_Free(as_replayer(object)->targets);
    Py_XDECREF(as_replayer(object)->target_of);
    Py_TYPE(object)->tp_free(object);
}

static PyMethodDef replayer_methods[] = {
    {"apply", (PyCFunction)(void (*)(void))replayer_apply, METH_FASTCALL, "Apply rows of a block."},
    {"forget", replayer_forget, METH_NOARGS, "Forget the spaces, whose definitions have changed."},
    {NULL},
};

PyTypeObject LogReplayer_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native._native.LogReplayer",
    .tp_doc = "Applies rows of logs to primary indexes.",
    .tp_basicsize = sizeof(LogReplayerObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = replayer_new,
    .tp_dealloc = replayer_dealloc,
    .tp_traverse = replayer_traverse,
    .tp_clear = replayer_clear,
    .tp_methods = replayer_methods,
};
