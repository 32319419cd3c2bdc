/* A connection's responses: where they are made, and how they are sent; the twins of the shortest ways out of a
 * Connection (server/connection/connection.py).
 */
#include "../native.h"

enum {
    NAME_BATCH, NAME_ADD, NAME_REPLY, NAME_SCHEDULE, NAME_SEND_OUTPUT, NAME_TRANSPORT_CLOSING, NAME_WRITE,
    NAME_AFTER_SEND, NAME_UNSENT, NAME_ADMIT, NAMES
};
static PyObject *names[NAMES];

static int make_names(void)
{
    static const char *const texts[NAMES] = {
        "batch", "add", "reply", "_schedule", "send_output", "is_closing", "write", "_sent", "unsent", "admit",
    };
    for (int place = 0; place < NAMES; place++)
        if (!names[place] && !(names[place] = PyUnicode_InternFromString(texts[place])))
            return -1;
    return 0;
}

/* The output of a connection of the usual kind, borrowed; NULL for others. */
static Output *output_of(PyObject *connection)
{
    PyObject *output = is_plain_connection(connection) ? get_slot(connection, &connection_output) : NULL;
    return output && Py_TYPE(output) == &Output_Type ? (Output *)output : NULL;
}

Py_ssize_t unsent_size(PyObject *connection)
{
    Output *output = output_of(connection);
    if (output)
        return output_size(output);
    PyErr_SetString(PyExc_TypeError, "a connection has an Output");
    return -1;
}

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

/* -- what is answered -- */

/* The twin of Batch.add. */
static int add_to_batch(PyObject *batch, PyObject *connection)
{
    PyObject *connections = Py_TYPE(batch) == known[KNOWN_BATCH] ? get_slot(batch, &batch_connections) : NULL, *done;
    if (!connections || !PyList_CheckExact(connections))
        done = PyObject_CallMethodOneArg(batch, names[NAME_ADD], connection);
    else if (PyList_Append(connections, connection) < 0)
        return -1;
    else if (get_slot(batch, &batch_is_scheduled) == Py_True)
        return 0;
    else
        done = PyObject_CallMethodNoArgs(batch, names[NAME_SCHEDULE]);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

/* Have what was answered sent at the end of the iteration. */
static int announce_output(PyObject *connection)
{
    set_slot(connection, &connection_has_output, Py_True);
    PyObject *batch = PyObject_GetAttr(get_slot(connection, &connection_server), names[NAME_BATCH]);
    int failed = !batch || add_to_batch(batch, connection) < 0;
    Py_XDECREF(batch);
    return failed ? -1 : 0;
}

/* Let a large answer count among what is unsent. */
static int note_large(PyObject *connection)
{
    PyObject *unsent = PyObject_GetAttr(get_slot(connection, &connection_server), names[NAME_UNSENT]);
    PyObject *done = unsent ? PyObject_CallMethodOneArg(unsent, names[NAME_ADD], connection) : NULL;
    Py_XDECREF(unsent);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

int may_send(PyObject *connection, Py_ssize_t size)
{
    if (size <= LARGE_ANSWER || !is_plain_connection(connection))
        return 1;
    if (make_names() < 0)
        return -1;
    PyObject *number = PyLong_FromSsize_t(size);
    PyObject *answer = number ? PyObject_CallMethodOneArg(connection, names[NAME_ADMIT], number) : NULL;
    int may = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(number);
    Py_XDECREF(answer);
    return may;
}

/* A response of so many bytes was put into the output: have it sent. */
static PyObject *announce(PyObject *connection, Py_ssize_t size)
{
    if ((size > LARGE_ANSWER && note_large(connection) < 0)
        || (get_slot(connection, &connection_has_output) != Py_True && announce_output(connection) < 0))
        return NULL;
    Py_RETURN_NONE;
}

Buffer *response_begin(Response *response, PyObject *connection)
{
    Output *output = output_of(connection);
    response->connection = connection;
    response->buffer = &response->own;
    response->start = 0;
    if (!output) {
        buffer_init(&response->own);
        return response->buffer;
    }
    response->buffer = make_names() < 0 ? NULL : output_buffer(output);
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
        output_cut(output_of(response->connection), response->start);
}

PyObject *response_send(Response *response, PyObject *manager)
{
    PyObject *connection = response->connection;
    if (response->buffer == &response->own)
        return reply(connection, manager, buffer_take(&response->own));
    if (((ManagerObject *)manager)->has_logged && output_mark(output_of(connection), response->start) < 0) {
        response_drop(response);
        return NULL;
    }
    return announce(connection, response->buffer->size - response->start);
}

/* Takes the response over, which may be NULL with an exception. */
PyObject *reply(PyObject *connection, PyObject *manager, PyObject *response)
{
    Output *output = output_of(connection);
    if (!response || make_names() < 0) {
        Py_XDECREF(response);
        return NULL;
    }
    PyObject *done = NULL;
    if (!output || !PyBytes_CheckExact(response))
        done = PyObject_CallMethodOneArg(connection, names[NAME_REPLY], response);
    else if (output_add(output, response, ((ManagerObject *)manager)->has_logged) == 0)
        done = announce(connection, PyBytes_GET_SIZE(response));
    Py_DECREF(response);
    return done;
}

/* -- what is sent -- */

/* Hand data to the transport of a connection of the usual kind, with compiled counters. Takes the data over. */
static PyObject *send_data(PyObject *connection, TrafficObject *traffic, PyObject *data)
{
    PyObject *transport = get_slot(connection, &connection_transport);
    PyObject *closing = PyObject_CallMethodNoArgs(transport, names[NAME_TRANSPORT_CLOSING]), *done = NULL;
    int is_closing = closing ? PyObject_IsTrue(closing) : -1;
    Py_XDECREF(closing);
    if (!is_closing) {
        traffic->sent += PyBytes_GET_SIZE(data);
        done = PyObject_CallMethodOneArg(transport, names[NAME_WRITE], data);
    }
    Py_DECREF(data);
    if (done && (get_slot(connection, &connection_is_closing) != Py_False
                 || get_slot(connection, &connection_is_held) != Py_False))
        Py_SETREF(done, PyObject_CallMethodNoArgs(connection, names[NAME_AFTER_SEND]));
    return is_closing > 0 ? Py_NewRef(Py_None) : done;
}

PyObject *send_bytes(PyObject *connection, PyObject *data)
{
    PyObject *transport = is_plain_connection(connection) ? get_slot(connection, &connection_transport) : NULL;
    TrafficObject *traffic = transport ? traffic_of(connection) : NULL;
    if (!traffic || !PyBytes_CheckExact(data) || make_names() < 0)
        return NULL;
    return PyBytes_GET_SIZE(data) ? send_data(connection, traffic, Py_NewRef(data)) : Py_NewRef(Py_None);
}

PyObject *send_output(PyObject *connection)
{
    Output *output = output_of(connection);
    TrafficObject *traffic = output && get_slot(connection, &connection_transport) ? traffic_of(connection) : NULL;
    if (!traffic || make_names() < 0)
        return NULL;
    set_slot(connection, &connection_has_output, Py_False);
    if (!output_size(output))
        Py_RETURN_NONE;
    PyObject *data = output_take(output);
    return data ? send_data(connection, traffic, data) : NULL;
}

/* send_outputs(connections) */
FUNCTION(native_send_outputs)
{
    if (count != 1 || !PyList_CheckExact(args[0]) || make_names() < 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "send_outputs takes a list of connections");
        return NULL;
    }
    for (Py_ssize_t place = 0; place < PyList_GET_SIZE(args[0]); place++) {
        PyObject *connection = Py_NewRef(PyList_GET_ITEM(args[0], place));
        PyObject *done = send_output(connection);
        if (!done && !PyErr_Occurred())
            done = PyObject_CallMethodNoArgs(connection, names[NAME_SEND_OUTPUT]);
        Py_DECREF(connection);
        if (!done)
            return NULL;
        Py_DECREF(done);
    }
    Py_RETURN_NONE;
}
