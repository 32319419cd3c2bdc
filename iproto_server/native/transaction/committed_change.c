/* A committed transaction that has changed one row: what iproto_server.box.txn.statement.Committed is for others.
 *
 * Its statement is made only if it has to be undone: the new row is among the bytes of the log until then.
 */
#include "../native.h"

typedef struct {
    PyObject_HEAD
    PyObject *space, *primary, *tree, *old; /* the primary index, its tree, and bytes or None */
    PyObject *logged;                       /* LogRows */
    Py_ssize_t start, size;                 /* of the new row in there; no size for none */
} ChangeObject;

static PyTypeObject *statement_type;

PyObject *new_committed_change(PyObject *space, PyObject *tree, PyObject *old, const LogRow *row, size_t size)
{
    if (!statement_type && !(statement_type = find_class("iproto_server.box.txn.statement", "Statement", NULL, 0)))
        return NULL;
    ChangeObject *self = PyObject_GC_New(ChangeObject, &CommittedChange_Type);
    if (!self)
        return NULL;
    self->space = Py_NewRef(space);
    self->primary = Py_NewRef(SPACE(space, PRIMARY));
    self->tree = Py_NewRef(tree);
    self->old = Py_NewRef(old);
    self->logged = Py_NewRef(row->rows);
    self->start = row->place;
    self->size = (Py_ssize_t)size;
    PyObject_GC_Track((PyObject *)self);
    return (PyObject *)self;
}

static PyObject *new_row(ChangeObject *self)
{
    if (!self->size)
        Py_RETURN_NONE;
    return log_rows_part(self->logged, self->start, self->size);
}

/* The statement, with the key that the row has in the primary index. */
static PyObject *statement_of(ChangeObject *self)
{
    PyObject *new = new_row(self), *statement = NULL;
    PyObject *key = new ? tree_object_row_key(self->tree, new == Py_None ? self->old : new) : NULL;
    if (key && (statement = statement_type->tp_alloc(statement_type, 6))) {
        PyObject *parts[] = {self->space, key, self->old, new, self->primary, Py_None};
        for (int place = 0; place < 6; place++)
            PyTuple_SET_ITEM(statement, place, Py_NewRef(parts[place]));
    }
    if (!statement && !PyErr_Occurred())
        PyErr_SetString(PyExc_RuntimeError, "the key of a row that was changed cannot be made");
    Py_XDECREF(key);
    Py_XDECREF(new);
    return statement;
}

static Py_ssize_t change_length(PyObject *self)
{
    return 2;
}

/* The statements, and what is to be called if they are undone. */
static PyObject *change_item(PyObject *self, Py_ssize_t place)
{
    if (place < 0 || place > 1) {
        PyErr_SetString(PyExc_IndexError, "a committed transaction has two parts");
        return NULL;
    }
    PyObject *list = PyList_New(place ? 0 : 1);
    if (!list || place)
        return list;
    PyObject *statement = statement_of((ChangeObject *)self);
    if (!statement) {
        Py_DECREF(list);
        return NULL;
    }
    PyList_SET_ITEM(list, 0, statement);
    return list;
}

static int change_traverse(PyObject *object, visitproc visit, void *arg)
{
    ChangeObject *self = (ChangeObject *)object;
    Py_VISIT(self->space);
    Py_VISIT(self->primary);
    return 0;
}

static int change_clear(PyObject *object)
{
    Py_CLEAR(((ChangeObject *)object)->space);
    Py_CLEAR(((ChangeObject *)object)->primary);
    return 0;
}

static void change_dealloc(PyObject *object)
{
    PyObject_GC_UnTrack(object);
    change_clear(object);
    Py_DECREF(((ChangeObject *)object)->tree);
    Py_DECREF(((ChangeObject *)object)->old);
    Py_DECREF(((ChangeObject *)object)->logged);
    PyObject_GC_Del(object);
}

static PyObject *change_statements(PyObject *self, void *closure)
{
    return change_item(self, 0);
}

static PyObject *change_on_rollback(PyObject *self, void *closure)
{
    return change_item(self, 1);
}

static PyGetSetDef change_attributes[] = {
    {"statements", change_statements, NULL, "The changes, a list of one Statement.", NULL},
    {"on_rollback", change_on_rollback, NULL, "What to call if they are undone: nothing.", NULL},
    {NULL},
};

static PySequenceMethods change_sequence = {.sq_length = change_length, .sq_item = change_item};

PyTypeObject CommittedChange_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native.CommittedChange",
    .tp_doc = "A committed transaction of one change: its statements, and what to call if they are undone.",
    .tp_basicsize = sizeof(ChangeObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_as_sequence = &change_sequence,
    .tp_getset = change_attributes,
    .tp_traverse = change_traverse,
    .tp_clear = change_clear,
    .tp_dealloc = change_dealloc,
};
