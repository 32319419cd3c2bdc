/* The base classes of ServerState, FairScheduler and Batch: what all connections of a server share. */
#include "../native.h"

/* -- Traffic -- */

static PyMemberDef traffic_members[] = {
    {"received", T_LONGLONG, offsetof(TrafficObject, received), 0, "Bytes received."},
    {"sent", T_LONGLONG, offsetof(TrafficObject, sent), 0, "Bytes handed to transports."},
    {NULL},
};

PyTypeObject Traffic_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native._native.Traffic",
    .tp_doc = "Counts bytes.",
    .tp_basicsize = sizeof(TrafficObject),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = PyType_GenericNew,
    .tp_members = traffic_members,
};

/* -- the fair scheduler -- */

static PyMemberDef scheduler_members[] = {
    {"has_others", T_BOOL, offsetof(SchedulerObject, has_others), 0,
     "Whether a connection was served at once since this was last set to False."},
    {NULL},
};

PyTypeObject Scheduler_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native._native.SchedulerState",
    .tp_doc = "Whether connections without a backlog are served.",
    .tp_basicsize = sizeof(SchedulerObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .tp_new = PyType_GenericNew,
    .tp_members = scheduler_members,
};

/* -- group commit -- */

GC_FIELDS(batch, offsetof(BatchObject, connections))

static PyObject *batch_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    BatchObject *self = (BatchObject *)type->tp_alloc(type, 0);
    if (self && !(self->connections = PyList_New(0)))
        Py_CLEAR(self);
    return (PyObject *)self;
}

int batch_add(BatchObject *self, PyObject *connection)
{
    if (PyList_Append(self->connections, connection) < 0)
        return -1;
    if (self->is_scheduled)
        return 0;
    PyObject *done = PyObject_CallMethod((PyObject *)self, "_schedule", NULL);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static PyObject *method_batch_add(PyObject *self, PyObject *connection)
{
    return batch_add((BatchObject *)self, connection) < 0 ? NULL : Py_NewRef(Py_None);
}

/* _take_connections(): the connections; there are none from then on */
static PyObject *method_take_connections(PyObject *object, PyObject *ignored)
{
    BatchObject *self = (BatchObject *)object;
    PyObject *none = PyList_New(0), *connections = self->connections;
    if (none)
        self->connections = none;
    return none ? connections : NULL;
}

static PyMethodDef batch_methods[] = {
    {"add", method_batch_add, METH_O, "Send the connection's responses at the end of this iteration."},
    {"_take_connections", method_take_connections, METH_NOARGS, "Return the connections, and forget them."},
    {NULL},
};

static PyMemberDef batch_members[] = {
    {"_connections", T_OBJECT_EX, offsetof(BatchObject, connections), READONLY, "The connections with responses."},
    {"_is_scheduled", T_BOOL, offsetof(BatchObject, is_scheduled), 0, "Whether the end of the iteration is awaited."},
    {NULL},
};

PyTypeObject Batch_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native._native.OutputBatch",
    .tp_doc = "The connections with responses to send at the end of an iteration.",
    .tp_basicsize = sizeof(BatchObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = batch_new,
    .tp_methods = batch_methods,
    .tp_members = batch_members,
    .tp_traverse = batch_traverse,
    .tp_clear = batch_clear,
    .tp_dealloc = batch_dealloc,
};

/* -- the server -- */

int server_is_full(const ServerObject *self)
{
    return self->in_flight - self->parked >= self->in_flight_max || self->parked >= self->parked_max;
}

static PyObject *get_is_full(PyObject *self, void *closure)
{
    return PyBool_FromLong(server_is_full((ServerObject *)self));
}

GC_FIELDS(server, offsetof(ServerObject, batch), offsetof(ServerObject, turns), offsetof(ServerObject, traffic),
          offsetof(ServerObject, transactions), offsetof(ServerObject, unsent))

static const TypedField batch_field = {offsetof(ServerObject, batch), &Batch_Type, "batch"};
static const TypedField turns_field = {offsetof(ServerObject, turns), &Scheduler_Type, "turns"};
static const TypedField traffic_field = {offsetof(ServerObject, traffic), &Traffic_Type, "traffic"};
static const TypedField transactions_field = {offsetof(ServerObject, transactions), &Manager_Type, "transactions"};

static PyGetSetDef server_attributes[] = {
    {"batch", get_typed_field, set_typed_field, "The group commit.", (void *)&batch_field},
    {"turns", get_typed_field, set_typed_field, "The fair scheduler.", (void *)&turns_field},
    {"traffic", get_typed_field, set_typed_field, "Counts the bytes of all connections.", (void *)&traffic_field},
    {"transactions", get_typed_field, set_typed_field, "The transaction manager.", (void *)&transactions_field},
    {"is_full", get_is_full, NULL, "Whether as many requests are in flight, or parked, as may be.", NULL},
    {NULL},
};

static PyMemberDef server_members[] = {
    {"unsent", T_OBJECT_EX, offsetof(ServerObject, unsent), 0, "The limit of unsent bytes."},
    {"in_flight", T_PYSSIZET, offsetof(ServerObject, in_flight), 0, "The number of unanswered requests."},
    {"parked", T_PYSSIZET, offsetof(ServerObject, parked), 0, "The number of those that wait for other requests."},
    {"in_flight_max", T_PYSSIZET, offsetof(ServerObject, in_flight_max), 0, "How many that are not parked there may be."},
    {"parked_max", T_PYSSIZET, offsetof(ServerObject, parked_max), 0, "How many may be parked."},
    {"write_high_water", T_PYSSIZET, offsetof(ServerObject, high_water), 0,
     "Bytes that a connection may leave unsent before its requests wait."},
    {NULL},
};

PyTypeObject Server_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    BASE_TYPE(server, ServerObject, "SharedState", "The counters and limits that all connections share."),
    .tp_getset = server_attributes,
    .tp_members = server_members,
};
