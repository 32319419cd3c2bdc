/* The base class of Connection: the state that every request looks at. Requests are in incoming.c, responses in
 * outgoing.c.
 */
#include "../native.h"

int connection_is_behind(const ConnectionObject *self)
{
    return output_size(self->output) + self->held_size > self->server->high_water || self->waits & (WAIT_READER | WAIT_ROOM);
}

int connection_must_hold(const ConnectionObject *self)
{
    return self->waits || connection_is_behind(self) || (self->in_flight > 0 && server_is_full(self->server));
}

static ConnectionObject *as_connection(PyObject *self)
{
    return (ConnectionObject *)self;
}

static PyObject *connection_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    PyObject *server = args && PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, 0) : NULL;
    if (!server || !PyObject_TypeCheck(server, &Server_Type))
        return PyErr_Format(PyExc_TypeError, "a connection needs a SharedState");
    ConnectionObject *self = as_connection(type->tp_alloc(type, 0));
    if (!self)
        return NULL;
    self->server = (ServerObject *)Py_NewRef(server);
    self->fault = Py_NewRef(Py_None);
    self->has_received = 1;
    if (!(self->output = (Output *)PyObject_CallNoArgs((PyObject *)&Output_Type)))
        Py_CLEAR(self);
    return (PyObject *)self;
}

/* -- methods -- */

static PyObject *method_must_hold(PyObject *self, PyObject *ignored)
{
    return PyBool_FromLong(connection_must_hold(as_connection(self)));
}

static PyObject *get_is_behind(PyObject *self, void *closure)
{
    return PyBool_FromLong(connection_is_behind(as_connection(self)));
}

static PyObject *get_is_closing(PyObject *self, void *closure)
{
    return PyBool_FromLong(is_closing(as_connection(self)));
}

static PyObject *get_is_held(PyObject *self, void *closure)
{
    return PyBool_FromLong(is_held(as_connection(self)));
}

static PyObject *get_is_lost(PyObject *self, void *closure)
{
    return PyBool_FromLong(is_lost(as_connection(self)));
}

static PyObject *method_data_received(PyObject *self, PyObject *data)
{
    return receive_data(as_connection(self), data);
}

static PyObject *method_handle_frames(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    return handle_frames(as_connection(self), args, count);
}

static PyObject *method_served_at_once(PyObject *self, PyObject *ignored)
{
    note_served_at_once(as_connection(self));
    Py_RETURN_NONE;
}

static PyObject *method_reply(PyObject *self, PyObject *response)
{
    return send_reply(as_connection(self), response);
}

static PyObject *method_push(PyObject *self, PyObject *frame)
{
    return push_frame(as_connection(self), frame);
}

static PyObject *method_send_output(PyObject *self, PyObject *ignored)
{
    return send_output(as_connection(self));
}

static PyObject *method_send(PyObject *self, PyObject *data)
{
    return send_bytes(as_connection(self), data);
}

#define METHOD(name, function, flags, text) {name, (PyCFunction)(void (*)(void))function, flags, text}

static PyMethodDef connection_methods[] = {
    METHOD("data_received", method_data_received, METH_O, "Handle every request that is complete now."),
    METHOD("must_hold", method_must_hold, METH_NOARGS, "Whether the next request has to wait."),
    METHOD("_handle_frames", method_handle_frames, METH_FASTCALL, "Handle requests until a time."),
    METHOD("_served_at_once", method_served_at_once, METH_NOARGS, "Tell the scheduler of a connection without backlog."),
    METHOD("reply", method_reply, METH_O, "Send a response at the end of this iteration, after its rows are logged."),
    METHOD("push", method_push, METH_O, "Send a frame that answers no request."),
    METHOD("send_output", method_send_output, METH_NOARGS, "Hand all responses to the transport, in one piece."),
    METHOD("_send", method_send, METH_O, "Hand bytes to the transport."),
    {NULL},
};

static const TypedField output_field = {offsetof(ConnectionObject, output), &Output_Type, "_output"};
static const TypedField decoder_field = {offsetof(ConnectionObject, decoder), &FrameDecoder_Type, "_decoder"};

static PyGetSetDef connection_attributes[] = {
    {"_output", get_typed_field, set_typed_field, "The responses to send.", (void *)&output_field},
    {"_decoder", get_typed_field, set_typed_field, "Cuts what arrives into frames.", (void *)&decoder_field},
    {"is_behind", get_is_behind, NULL, "Whether the client has so much to read that it gets no events.", NULL},
    {"is_closing", get_is_closing, NULL, "Whether no more requests are handled.", NULL},
    {"is_held", get_is_held, NULL, "Whether it is not read from, and requests are held.", NULL},
    {"is_lost", get_is_lost, NULL, "Whether the transport is closed.", NULL},
    {NULL},
};

#define OBJECT(name, field, text) {name, T_OBJECT_EX, offsetof(ConnectionObject, field), 0, text}
#define FLAG(name, field, text) {name, T_BOOL, offsetof(ConnectionObject, field), 0, text}
#define COUNT(name, field, text) {name, T_PYSSIZET, offsetof(ConnectionObject, field), 0, text}

static PyMemberDef connection_members[] = {
    {"_server", T_OBJECT_EX, offsetof(ConnectionObject, server), READONLY, "What all connections share."},
    OBJECT("_fault", fault, "The FramingError behind the last whole frame; None."),
    OBJECT("_handle", handle, "Answers a request: (connection, frame)."),
    OBJECT("_transport", transport, "The transport."),
    OBJECT("session", session, "The client's session."),
    COUNT("_held_size", held_size, "Bytes of responses that were handed over until their rows are in the log."),
    COUNT("in_flight", in_flight, "The number of unanswered requests."),
    FLAG("_has_output", has_output, "Whether there are responses for the batch."),
    FLAG("_has_received", has_received, "Whether bytes came since was_used() was called."),
    FLAG("_has_hurried", has_hurried, "Whether requests had to be held since it was served at once."),
    {"_phase", T_UBYTE, offsetof(ConnectionObject, phase), 0, "What it does with requests, a Phase."},
    {"_waits", T_UBYTE, offsetof(ConnectionObject, waits), 0, "Why requests wait, a Wait; 0 for no reason."},
    {NULL},
};

static int connection_traverse(PyObject *object, visitproc visit, void *arg)
{
    ConnectionObject *self = as_connection(object);
    Py_VISIT(self->server);
    Py_VISIT(self->decoder);
    Py_VISIT(self->fault);
    Py_VISIT(self->handle);
    Py_VISIT(self->transport);
    Py_VISIT(self->session);
    return 0;
}

/* The server and the output stay: methods may still be called, and other objects break the cycle. */
static int connection_clear(PyObject *object)
{
    ConnectionObject *self = as_connection(object);
    Py_CLEAR(self->fault);
    Py_CLEAR(self->handle);
    Py_CLEAR(self->transport);
    Py_CLEAR(self->session);
    return 0;
}

static void connection_dealloc(PyObject *object)
{
    ConnectionObject *self = as_connection(object);
    PyObject_GC_UnTrack(object);
    connection_clear(object);
    Py_XDECREF(self->server);
    Py_XDECREF(self->output);
    Py_XDECREF(self->decoder);
    Py_TYPE(object)->tp_free(object);
}

PyTypeObject Connection_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native._native.ConnectionState",
    .tp_doc = "The state of a connection, its requests and responses.",
    .tp_basicsize = sizeof(ConnectionObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_new = connection_new,
    .tp_methods = connection_methods,
    .tp_getset = connection_attributes,
    .tp_members = connection_members,
    .tp_traverse = connection_traverse,
    .tp_clear = connection_clear,
    .tp_dealloc = connection_dealloc,
};
