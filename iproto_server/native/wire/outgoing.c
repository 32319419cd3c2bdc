/* A connection's responses: where they are written, and how they are sent. */
#include "../native.h"

static PyObject *is_closing_name, *write_name;

static int make_names(void)
{
    if (!is_closing_name)
        is_closing_name = PyUnicode_InternFromString("is_closing");
    if (!write_name)
        write_name = PyUnicode_InternFromString("write");
    return is_closing_name && write_name ? 0 : -1;
}

/* A connection of ours; NULL for other objects, which only have `reply`. */
static ConnectionObject *as_connection(PyObject *object)
{
    return PyObject_TypeCheck(object, &Connection_Type) ? (ConnectionObject *)object : NULL;
}

/* -- responses -- */

/* Have what was answered sent at the end of the iteration. */
static int announce_output(ConnectionObject *self)
{
    if (self->has_output)
        return 0;
    if (!self->server->batch) {
        PyErr_SetString(PyExc_AttributeError, "batch");
        return -1;
    }
    self->has_output = 1;
    return batch_add(self->server->batch, (PyObject *)self);
}

/* Let a large response count among what is unsent. */
static int note_large(ConnectionObject *self)
{
    PyObject *done = self->server->unsent ? PyObject_CallMethod(self->server->unsent, "add", "O", self) : NULL;
    if (!done && !PyErr_Occurred())
        PyErr_SetString(PyExc_AttributeError, "unsent");
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* A response of so many bytes was put into the output: have it sent. */
static PyObject *announce(ConnectionObject *self, Py_ssize_t size)
{
    if ((size > LARGE_ANSWER && note_large(self) < 0) || announce_output(self) < 0)
        return NULL;
    Py_RETURN_NONE;
}

int may_send(PyObject *object, Py_ssize_t size)
{
    ConnectionObject *self = as_connection(object);
    if (size <= LARGE_ANSWER || !self)
        return 1;
    PyObject *answer = PyObject_CallMethod(object, "admit", "n", size);
    int may = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    return may;
}

Buffer *response_begin(Response *response, PyObject *object)
{
    ConnectionObject *self = as_connection(object);
    response->connection = object;
    response->buffer = &response->own;
    response->start = 0;
    if (!self) {
        buffer_init(&response->own);
        return response->buffer;
    }
    response->buffer = output_buffer(self->output);
    if (response->buffer) {
        response->buffer->is_shared = 1;
        response->start = response->buffer->size;
    }
    return response->buffer;
}

void response_drop(Response *response)
{
    if (response->buffer == &response->own)
        buffer_free(&response->own);
    else
        output_cut(((ConnectionObject *)response->connection)->output, response->start);
}

PyObject *response_send(Response *response, PyObject *manager)
{
    if (response->buffer == &response->own)
        return reply(response->connection, manager, buffer_take(&response->own));
    ConnectionObject *self = (ConnectionObject *)response->connection;
    if (((ManagerObject *)manager)->has_logged && output_mark(self->output, response->start) < 0) {
        response_drop(response);
        return NULL;
    }
    return announce(self, response->buffer->size - response->start);
}

static PyObject *add_response(ConnectionObject *self, PyObject *response, int has_logged)
{
    if (is_lost(self))
        Py_RETURN_NONE;
    return output_add(self->output, response, has_logged) < 0 ? NULL : announce(self, PyBytes_GET_SIZE(response));
}

/* Takes the response over, which may be NULL with an exception. */
PyObject *reply(PyObject *object, PyObject *manager, PyObject *response)
{
    if (!response)
        return NULL;
    ConnectionObject *self = as_connection(object);
    PyObject *done = self && PyBytes_CheckExact(response)
        ? add_response(self, response, ((ManagerObject *)manager)->has_logged)
        : PyObject_CallMethod(object, "reply", "O", response);
    Py_DECREF(response);
    return done;
}

/* reply(response) */
PyObject *send_reply(ConnectionObject *self, PyObject *response)
{
    if (!PyBytes_Check(response))
        return PyErr_Format(PyExc_TypeError, "a response is bytes");
    if (!self->server->transactions)
        return PyErr_Format(PyExc_AttributeError, "transactions");
    return add_response(self, response, self->server->transactions->has_logged);
}

/* push(frame) */
PyObject *push_frame(ConnectionObject *self, PyObject *frame)
{
    if (!PyBytes_Check(frame))
        return PyErr_Format(PyExc_TypeError, "a frame is bytes");
    if (is_closing(self) || is_lost(self))
        Py_RETURN_NONE;
    return output_push(self->output, frame) < 0 || announce_output(self) < 0 ? NULL : Py_NewRef(Py_None);
}

/* -- sending -- */

/* Takes the data over, which may be NULL with an exception. */
static PyObject *send_data(ConnectionObject *self, PyObject *data)
{
    if (!data || !PyBytes_GET_SIZE(data)) {
        Py_XDECREF(data);
        return data ? Py_NewRef(Py_None) : NULL;
    }
    PyObject *transport = Py_XNewRef(self->transport), *closing = NULL, *done = NULL;
    if (!transport)
        PyErr_SetString(PyExc_AttributeError, "_transport");
    else if (make_names() == 0)
        closing = PyObject_CallMethodNoArgs(transport, is_closing_name);
    int is_shut = closing ? PyObject_IsTrue(closing) : -1;
    Py_XDECREF(closing);
    if (is_shut > 0)
        done = Py_NewRef(Py_None);
    else if (!is_shut) {
        if (self->server->traffic)
            self->server->traffic->sent += PyBytes_GET_SIZE(data);
        done = PyObject_CallMethodOneArg(transport, write_name, data);
        if (done && (is_closing(self) || is_held(self)))
            Py_SETREF(done, PyObject_CallMethod((PyObject *)self, "_sent", NULL));
    }
    Py_XDECREF(transport);
    Py_DECREF(data);
    return done;
}

/* _send(data) */
PyObject *send_bytes(ConnectionObject *self, PyObject *data)
{
    if (!PyBytes_Check(data))
        return PyErr_Format(PyExc_TypeError, "what is sent is bytes");
    return send_data(self, Py_NewRef(data));
}

/* send_output() */
PyObject *send_output(ConnectionObject *self)
{
    self->has_output = 0;
    return output_size(self->output) ? send_data(self, output_take(self->output)) : Py_NewRef(Py_None);
}

/* send_outputs(connections) */
FUNCTION(native_send_outputs)
{
    if (count != 1 || !PyList_CheckExact(args[0])) {
        PyErr_SetString(PyExc_TypeError, "send_outputs takes a list of connections");
        return NULL;
    }
    for (Py_ssize_t place = 0; place < PyList_GET_SIZE(args[0]); place++) {
        PyObject *object = Py_NewRef(PyList_GET_ITEM(args[0], place));
        ConnectionObject *self = as_connection(object);
        PyObject *done = self ? send_output(self) : PyObject_CallMethod(object, "send_output", NULL);
        Py_DECREF(object);
        if (!done)
            return NULL;
        Py_DECREF(done);
    }
    Py_RETURN_NONE;
}
