/* A connection's responses: the twin of the shortest ways through Connection (server/connection/connection.py). Its
 * requests are in incoming.c.
 */
#include "native.h"

enum {
    NAME_BATCH, NAME_ADD, NAME_REPLY, NAME_SCHEDULE, NAME_SEND_OUTPUT, NAME_TRANSPORT_CLOSING, NAME_WRITE,
    NAME_AFTER_SEND, NAME_JOIN, NAME_UNSENT, NAME_ADMIT, NAMES
};
static PyObject *names[NAMES];

#define LARGE (64 * 1024) /* as in server/limits/unsent_limit.py */

static int make_names(void)
{
    static const char *const texts[NAMES] = {
        "batch", "add", "reply", "_schedule", "send_output", "is_closing", "write", "_sent", "join", "unsent", "admit",
    };
    for (int place = 0; place < NAMES; place++)
        if (!names[place] && !(names[place] = PyUnicode_InternFromString(texts[place])))
            return -1;
    return 0;
}

/* -- Traffic -- */

static PyMemberDef traffic_members[] = {
    {"received", T_LONGLONG, offsetof(TrafficObject, received), 0, "bytes received"},
    {"sent", T_LONGLONG, offsetof(TrafficObject, sent), 0, "bytes handed to transports"},
    {NULL},
};

PyTypeObject Traffic_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.server.connection.traffic.Traffic",
    .tp_doc = "Counts bytes.",
    .tp_basicsize = sizeof(TrafficObject),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = PyType_GenericNew,
    .tp_members = traffic_members,
};

static PyObject *attribute(PyObject *owner, int first, int second)
{
    PyObject *middle = PyObject_GetAttr(owner, names[first]);
    PyObject *found = middle ? PyObject_GetAttr(middle, names[second]) : NULL;
    Py_XDECREF(middle);
    return found;
}

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

static int append_number(PyObject *list, Py_ssize_t number)
{
    PyObject *value = PyLong_FromSsize_t(number);
    int failed = !value || PyList_Append(list, value) < 0;
    Py_XDECREF(value);
    return failed ? -1 : 0;
}

/* Let a large answer count among what is unsent. */
static int note_large(PyObject *connection)
{
    PyObject *add = attribute(get_slot(connection, &connection_server), NAME_UNSENT, NAME_ADD);
    PyObject *done = add ? PyObject_CallOneArg(add, connection) : NULL;
    Py_XDECREF(add);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

int may_send(PyObject *connection, Py_ssize_t size)
{
    if (size <= LARGE || !is_plain_connection(connection))
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

static int put_aside(PyObject *connection, PyObject *response, int is_logged)
{
    PyObject *output = get_slot(connection, &connection_output), *logged = get_slot(connection, &connection_logged);
    if (is_logged && append_number(logged, PyList_GET_SIZE(output)) < 0)
        return -1;
    Py_ssize_t size = PyLong_AsSsize_t(get_slot(connection, &connection_output_size));
    PyObject *sum = PyErr_Occurred() ? NULL : PyLong_FromSsize_t(size + PyBytes_GET_SIZE(response));
    if (!sum || PyList_Append(output, response) < 0) {
        Py_XDECREF(sum);
        return -1;
    }
    set_slot(connection, &connection_output_size, sum);
    Py_DECREF(sum);
    if (PyBytes_GET_SIZE(response) > LARGE && note_large(connection) < 0)
        return -1;
    return get_slot(connection, &connection_has_output) == Py_True ? 0 : announce_output(connection);
}

/* Takes the response over, which may be NULL with an exception. */
PyObject *reply(PyObject *connection, PyObject *manager, PyObject *response)
{
    if (!response || make_names() < 0) {
        Py_XDECREF(response);
        return NULL;
    }
    PyObject *done;
    if (is_plain_connection(connection) && PyBytes_CheckExact(response)
        && PyList_CheckExact(get_slot(connection, &connection_output))
        && PyList_CheckExact(get_slot(connection, &connection_logged)))
        done = put_aside(connection, response, MANAGER(manager, HAS_LOGGED) == Py_True) < 0
            ? NULL : Py_NewRef(Py_None);
    else
        done = PyObject_CallMethodOneArg(connection, names[NAME_REPLY], response);
    Py_DECREF(response);
    return done;
}

/* -- what is sent -- */

static PyObject *joined(PyObject *responses)
{
    if (PyList_GET_SIZE(responses) == 1)
        return Py_NewRef(PyList_GET_ITEM(responses, 0));
    static PyObject *nothing;
    if (!nothing && !(nothing = PyBytes_FromStringAndSize(NULL, 0)))
        return NULL;
    return PyObject_CallMethodOneArg(nothing, names[NAME_JOIN], responses);
}

enum { DATA_RECEIVED, SEND_OUTPUT, SEND, METHODS };
static Method methods[METHODS];

static PyObject *send(PyObject *connection, PyObject *responses)
{
    PyObject *transport = is_plain_connection(connection) ? get_slot(connection, &connection_transport) : NULL;
    TrafficObject *traffic = transport ? traffic_of(connection) : NULL;
    if (!traffic || !PyList_CheckExact(responses) || make_names() < 0)
        return NULL;
    if (!PyList_GET_SIZE(responses))
        Py_RETURN_NONE;
    PyObject *closing = PyObject_CallMethodNoArgs(transport, names[NAME_TRANSPORT_CLOSING]);
    int is_closing = closing ? PyObject_IsTrue(closing) : -1;
    Py_XDECREF(closing);
    if (is_closing)
        return is_closing < 0 ? NULL : Py_NewRef(Py_None);
    PyObject *data = joined(responses), *done = NULL;
    if (data) {
        traffic->sent += PyObject_Size(data);
        done = PyObject_CallMethodOneArg(transport, names[NAME_WRITE], data);
    }
    Py_XDECREF(data);
    if (done && (get_slot(connection, &connection_is_closing) != Py_False
                 || get_slot(connection, &connection_is_held) != Py_False))
        Py_SETREF(done, PyObject_CallMethodNoArgs(connection, names[NAME_AFTER_SEND]));
    return done;
}

METHOD_FUNCTION(method_send)
{
    ANSWER(count == 1 && !names ? send(self, args[0]) : NULL, methods[SEND]);
}

static PyObject *send_output(PyObject *connection)
{
    PyObject *output = is_plain_connection(connection) ? get_slot(connection, &connection_output) : NULL;
    PyObject *logged = output ? get_slot(connection, &connection_logged) : NULL;
    if (!logged || !PyList_CheckExact(output) || !PyList_CheckExact(logged))
        return NULL;
    PyObject *no_output = PyList_New(0), *zero = PyLong_FromLong(0);
    PyObject *no_logged = PyList_GET_SIZE(logged) ? PyList_New(0) : Py_NewRef(logged), *done = NULL;
    if (no_output && zero && no_logged) {
        Py_INCREF(output);
        set_slot(connection, &connection_output, no_output);
        set_slot(connection, &connection_output_size, zero);
        set_slot(connection, &connection_has_output, Py_False);
        set_slot(connection, &connection_logged, no_logged);
        done = method_send(connection, &output, 1, NULL);
        Py_DECREF(output);
    }
    Py_XDECREF(no_output);
    Py_XDECREF(zero);
    Py_XDECREF(no_logged);
    return done;
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

/* -- methods -- */

static int prepare(PyTypeObject *type)
{
    return 0; /* the class is known */
}


METHOD_FUNCTION(method_data_received)
{
    ANSWER(count == 1 && !names ? receive_data(self, args[0]) : NULL, methods[DATA_RECEIVED]);
}

METHOD_FUNCTION(method_send_output)
{
    ANSWER(!count && !names ? send_output(self) : NULL, methods[SEND_OUTPUT]);
}

static Method methods[METHODS] = {
    METHOD_ENTRY("data_received", method_data_received, "Carry out every request that is complete now."),
    METHOD_ENTRY("send_output", method_send_output, "Hand all responses to the transport, in one piece."),
    METHOD_ENTRY("_send", method_send, "Hand responses to the transport."),
};

MethodTable connection_methods = {"Connection", prepare, methods, METHODS};
