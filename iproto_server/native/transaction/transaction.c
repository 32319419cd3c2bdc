/* One transaction: its statements, as a sequence of named tuples, and its callbacks. */
#include "../native.h"

PyTypeObject *statement_type;

static PyStructSequence_Field statement_fields[] = {
    {"space", "The space."},
    {"key", "The row's encoded primary key."},
    {"old", "The packed row that was there; None for none."},
    {"new", "The packed row that took its place; None for none."},
    {"primary", "The space's primary index at that moment."},
    {"undo", "Reverts the effect of a system row; None for other rows."},
    {NULL, NULL},
};

static PyStructSequence_Desc statement_description = {
    .name = "iproto_server.native._native.Statement",
    .doc = "One change of one row.",
    .fields = statement_fields,
    .n_in_sequence = 6,
};

int prepare_statements(void)
{
    return statement_type || (statement_type = PyStructSequence_NewType(&statement_description)) ? 0 : -1;
}

PyObject *record_row(const Record *record)
{
    if (!record)
        Py_RETURN_NONE;
    return PyBytes_FromStringAndSize((const char *)record->data + record->key_size, record->size - record->key_size);
}

/* The encoded primary key of a record. */
static PyObject *record_key(const Index *primary, const Record *record)
{
    if (record->key_size)
        return PyBytes_FromStringAndSize((const char *)record->data, record->key_size);
    KeyBuffer key = {0};
    PyObject *made = NULL;
    if (key_of_row(primary->tree.layout, record->data, record->size, &key) > 0)
        made = PyBytes_FromStringAndSize((const char *)(key.data ? key.data : key.first), (Py_ssize_t)key.size);
    key_buffer_free(&key);
    return made || PyErr_Occurred() ? made : PyErr_NoMemory();
}

static PyObject *new_statement(const Statement *statement)
{
    const Record *some = statement->old ? statement->old : statement->made;
    PyObject *made = PyStructSequence_New(statement_type);
    PyObject *parts[6] = {NULL};
    if (!made)
        return NULL;
    parts[0] = Py_NewRef((PyObject *)statement->space->context);
    parts[1] = some ? record_key(statement->primary, some) : Py_NewRef(Py_None);
    parts[2] = record_row(statement->old);
    parts[3] = record_row(statement->made);
    parts[4] = Py_NewRef((PyObject *)statement->owner);
    parts[5] = Py_NewRef(statement->effect ? (PyObject *)statement->effect : Py_None);
    for (int place = 0; place < 6; place++) {
        if (!parts[place]) {
            Py_CLEAR(made);
            for (; place < 6; place++)
                Py_XDECREF(parts[place]);
            return NULL;
        }
        PyStructSequence_SET_ITEM(made, place, parts[place]);
    }
    return made;
}

/* -- callbacks -- */

Py_ssize_t callback_count(PyObject *list)
{
    return list ? PyList_GET_SIZE(list) : 0;
}

int add_callback(PyObject **list, PyObject *callback)
{
    return *list || (*list = PyList_New(0)) ? PyList_Append(*list, callback) : -1;
}

/* -- the type -- */

TransactionObject *new_transaction(ManagerObject *manager)
{
    TransactionObject *self = PyObject_GC_New(TransactionObject, &Transaction_Type);
    if (!self)
        return NULL;
    transaction_init(&self->core);
    self->manager = (ManagerObject *)Py_NewRef((PyObject *)manager);
    self->on_commit = self->on_rollback = NULL;
    PyObject_GC_Track((PyObject *)self);
    return self;
}

static PyObject *transaction_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"manager", NULL};
    PyObject *manager;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!:Transaction", names, &Manager_Type, &manager))
        return NULL;
    return (PyObject *)new_transaction((ManagerObject *)manager);
}

static int transaction_traverse(PyObject *object, visitproc visit, void *arg)
{
    TransactionObject *self = (TransactionObject *)object;
    Py_VISIT(self->manager);
    Py_VISIT(self->on_commit);
    Py_VISIT(self->on_rollback);
    for (size_t number = 0; number < self->core.count; number++) {
        Py_VISIT((PyObject *)self->core.all[number].space->context);
        Py_VISIT((PyObject *)self->core.all[number].owner);
        Py_VISIT((PyObject *)self->core.all[number].effect);
    }
    return 0;
}

static int transaction_clear(PyObject *object)
{
    TransactionObject *self = (TransactionObject *)object;
    Py_CLEAR(self->on_commit);
    Py_CLEAR(self->on_rollback);
    return 0;
}

static void transaction_dealloc(PyObject *object)
{
    TransactionObject *self = (TransactionObject *)object;
    PyObject_GC_UnTrack(object);
    transaction_clear(object);
    transaction_free(&self->core, &self->manager->engine);
    Py_DECREF(self->manager);
    PyObject_GC_Del(object);
}

static Py_ssize_t transaction_length(PyObject *self)
{
    return (Py_ssize_t)((TransactionObject *)self)->core.count;
}

static PyObject *transaction_item(PyObject *object, Py_ssize_t place)
{
    TransactionObject *self = (TransactionObject *)object;
    if (place < 0 || (size_t)place >= self->core.count) {
        PyErr_SetString(PyExc_IndexError, "a transaction has no such statement");
        return NULL;
    }
    return new_statement(self->core.all + place);
}

/* -- attributes and methods -- */

static PyObject *get_list(PyObject **list)
{
    if (!*list && !(*list = PyList_New(0)))
        return NULL;
    return Py_NewRef(*list);
}

static PyObject *get_on_commit(PyObject *self, void *closure)
{
    return get_list(&((TransactionObject *)self)->on_commit);
}

static PyObject *get_on_rollback(PyObject *self, void *closure)
{
    return get_list(&((TransactionObject *)self)->on_rollback);
}

static PyObject *report(ManagerObject *manager, int done)
{
    if (done == ENGINE_OK)
        Py_RETURN_NONE;
    return manager->engine.failure == FAILURE_MEMORY ? PyErr_NoMemory() : NULL;
}

static PyObject *method_put_in(PyObject *object, PyObject *ignored)
{
    TransactionObject *self = (TransactionObject *)object;
    return report(self->manager, transaction_put_in(&self->manager->engine, &self->core));
}

static PyObject *method_take_out(PyObject *object, PyObject *ignored)
{
    TransactionObject *self = (TransactionObject *)object;
    return report(self->manager, transaction_take_out(&self->manager->engine, &self->core));
}

/* has_effect(start): whether a statement from a place on has changed the schema */
static PyObject *method_has_effect(PyObject *object, PyObject *start)
{
    TransactionObject *self = (TransactionObject *)object;
    Py_ssize_t number = PyLong_AsSsize_t(start);
    if (number == -1 && PyErr_Occurred())
        return NULL;
    int found = 0;
    for (; !found && (size_t)number < self->core.count; number++)
        found = self->core.all[number].effect != NULL;
    return PyBool_FromLong(found);
}

/* forget(): drop the statements, whose rows are taken out, and the callbacks of the commit */
static PyObject *method_forget(PyObject *object, PyObject *ignored)
{
    TransactionObject *self = (TransactionObject *)object;
    transaction_free(&self->core, &self->manager->engine);
    Py_CLEAR(self->on_commit);
    Py_RETURN_NONE;
}

static PyMethodDef transaction_methods[] = {
    {"put_in", method_put_in, METH_NOARGS, "Put the rows into the spaces again."},
    {"take_out", method_take_out, METH_NOARGS, "Take the rows out of the spaces."},
    {"has_effect", method_has_effect, METH_O, "Whether a statement from a place on has changed the schema."},
    {"forget", method_forget, METH_NOARGS, "Drop the statements, whose rows are taken out."},
    {NULL},
};

static PyGetSetDef transaction_attributes[] = {
    {"on_commit", get_on_commit, NULL, "Callbacks of the commit.", NULL},
    {"on_rollback", get_on_rollback, NULL, "Callbacks of the rollback.", NULL},
    {NULL},
};

static PySequenceMethods transaction_sequence = {.sq_length = transaction_length, .sq_item = transaction_item};

PyTypeObject Transaction_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native._native.Transaction",
    .tp_doc = "The statements of a transaction, and its callbacks.",
    .tp_basicsize = sizeof(TransactionObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = transaction_new,
    .tp_as_sequence = &transaction_sequence,
    .tp_methods = transaction_methods,
    .tp_getset = transaction_attributes,
    .tp_traverse = transaction_traverse,
    .tp_clear = transaction_clear,
    .tp_dealloc = transaction_dealloc,
};

/* -- savepoints -- */

typedef struct {
    PyObject_HEAD
    TransactionObject *transaction;
    Savepoint core;
} SavepointObject;

PyObject *new_savepoint(ManagerObject *manager)
{
    SavepointObject *self = PyObject_New(SavepointObject, &Savepoint_Type);
    if (self) {
        self->transaction = (TransactionObject *)Py_NewRef((PyObject *)running_transaction(manager));
        engine_mark(&manager->engine, &self->core);
    }
    return (PyObject *)self;
}

const Savepoint *savepoint_of(PyObject *object)
{
    return &((SavepointObject *)object)->core;
}

static void savepoint_dealloc(PyObject *self)
{
    Py_DECREF(((SavepointObject *)self)->transaction);
    PyObject_Free(self);
}

static PyMemberDef savepoint_members[] = {
    {"statements", T_OBJECT_EX, offsetof(SavepointObject, transaction), READONLY, "The transaction."},
    {"nesting", T_INT, offsetof(SavepointObject, core.nesting), READONLY, "Statements whose triggers were running."},
    {NULL},
};

PyTypeObject Savepoint_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native._native.Savepoint",
    .tp_doc = "A point of a transaction to roll back to.",
    .tp_basicsize = sizeof(SavepointObject),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_members = savepoint_members,
    .tp_dealloc = savepoint_dealloc,
};
