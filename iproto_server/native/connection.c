/* A connection's requests, and their responses: the twin of the shortest ways through Connection
 * (server/connection/connection.py).
 */
#include "native.h"
#include <time.h>

enum {
    NAME_CONFIG, NAME_HIGH_WATER, NAME_IS_FULL, NAME_BATCH, NAME_ADD, NAME_REPLY, NAME_POPLEFT,
    NAME_SCHEDULE, NAME_SEND_OUTPUT, NAME_TURNS, NAME_HAS_OTHERS, NAME_HOLD, NAME_TRANSPORT_CLOSING, NAME_WRITE, NAME_AFTER_SEND, NAME_JOIN, NAME_UNSENT,
    NAME_ADMIT, NAMES
};
static PyObject *names[NAMES];

#define LARGE (64 * 1024) /* as in server/limits/unsent_limit.py */

static int make_names(void)
{
    static const char *const texts[NAMES] = {
        "config", "write_high_water", "is_full", "batch", "add", "reply", "popleft", "_schedule",
        "send_output", "turns", "has_others", "_hold", "is_closing", "write", "_sent", "join", "unsent",
        "admit",
    };
    for (int place = 0; place < NAMES; place++)
        if (!names[place] && !(names[place] = PyUnicode_InternFromString(texts[place])))
            return -1;
    return 0;
}

static int is_plain(PyObject *connection)
{
    return Py_TYPE(connection) == known[KNOWN_CONNECTION];
}

/* -- Traffic -- */

typedef struct {
    PyObject_HEAD
    long long received, sent;
} TrafficObject;

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

/* Borrowed; NULL where something else counts. */
static TrafficObject *traffic_of(PyObject *connection)
{
    PyObject *traffic = get_slot(connection, &connection_traffic);
    return traffic && Py_TYPE(traffic) == &Traffic_Type ? (TrafficObject *)traffic : NULL;
}

/* -- */

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
    if (size <= LARGE || !is_plain(connection))
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
    if (is_plain(connection) && PyBytes_CheckExact(response)
        && PyList_CheckExact(get_slot(connection, &connection_output))
        && PyList_CheckExact(get_slot(connection, &connection_logged)))
        done = put_aside(connection, response, MANAGER(manager, HAS_LOGGED) == Py_True) < 0
            ? NULL : Py_NewRef(Py_None);
    else
        done = PyObject_CallMethodOneArg(connection, names[NAME_REPLY], response);
    Py_DECREF(response);
    return done;
}

/* Whether the server has as many requests in flight as it may have; -1 with an exception. */
static int is_full(PyObject *connection)
{
    PyObject *full = PyObject_GetAttr(get_slot(connection, &connection_server), names[NAME_IS_FULL]);
    int answer = full ? PyObject_IsTrue(full) : -1;
    Py_XDECREF(full);
    return answer;
}

/* Whether the next request must wait, or none will be answered; -1 with an exception. */
static int must_stop(PyObject *connection)
{
    if (get_slot(connection, &connection_is_closing) != Py_False
        || get_slot(connection, &connection_is_write_paused) != Py_False
        || get_slot(connection, &connection_is_suspended) != Py_False)
        return 1;
    Py_ssize_t size = PyLong_AsSsize_t(get_slot(connection, &connection_output_size));
    Py_ssize_t held = PyLong_AsSsize_t(get_slot(connection, &connection_held_size));
    Py_ssize_t in_flight = PyLong_AsSsize_t(get_slot(connection, &connection_in_flight));
    if (PyErr_Occurred())
        return -1;
    if (size + held > 0) {
        PyObject *limit = attribute(get_slot(connection, &connection_server), NAME_CONFIG, NAME_HIGH_WATER);
        Py_ssize_t high_water = limit ? PyLong_AsSsize_t(limit) : -1;
        Py_XDECREF(limit);
        if (PyErr_Occurred())
            return -1;
        if (size + held > high_water)
            return 1;
    }
    return in_flight > 0 && is_full(connection);
}

/* As time.perf_counter. */
static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int carry_out(PyObject *connection, PyObject *backlog, PyObject *handle, double end)
{
    for (;;) {
        Py_ssize_t left = PyObject_Size(backlog);
        if (left <= 0)
            return left < 0 ? -1 : 1;
        int stops = must_stop(connection);
        if (stops || PyErr_Occurred())
            return PyErr_Occurred() ? -1 : 0;
        PyObject *frame = PyObject_CallMethodNoArgs(backlog, names[NAME_POPLEFT]);
        if (!frame)
            return -1;
        PyObject *args[] = {connection, frame};
        PyObject *done = PyObject_Vectorcall(handle, args, 2, NULL);
        Py_DECREF(frame);
        if (!done)
            return -1;
        Py_DECREF(done);
        if (seconds() >= end)
            return 0;
    }
}

/* carry_out_until(connection, backlog, handle, end) */
FUNCTION(native_carry_out_until)
{
    if (make_names() < 0)
        return NULL;
    if (count != 4 || !is_plain(args[0]))
        return PyObject_Vectorcall(python_functions[PYTHON_CARRY_OUT_UNTIL], args, (size_t)count, NULL);
    double end = PyFloat_AsDouble(args[3]);
    int goes_on = PyErr_Occurred() ? -1 : carry_out(args[0], args[1], args[2], end);
    return goes_on < 0 ? NULL : PyBool_FromLong(goes_on);
}

/* -- what arrives -- */

#define AT_ONCE 4 /* as in server/connection/fair_scheduler.py */
#define HEAD 5

/* How many whole frames of the usual kind data is, and nothing else; 0 where it is something else, or too many. */
static int count_frames(PyObject *data, Py_ssize_t max_frame)
{
    Position at = (Position)PyBytes_AS_STRING(data), end = at + PyBytes_GET_SIZE(data);
    int count = 0;
    for (; at < end; count++) {
        if (count == AT_ONCE || end - at < HEAD || *at != 0xce)
            return 0;
        Py_ssize_t length = (Py_ssize_t)big_endian(at + 1, 4);
        if (length > max_frame || length > end - at - HEAD)
            return 0;
        at += HEAD + length;
    }
    return count;
}

/* Whether nothing else is to be looked at before what arrives. */
static int is_idle(PyObject *connection)
{
    PyObject *decoder = get_slot(connection, &connection_decoder);
    if (!is_plain(connection) || !decoder || Py_TYPE(decoder) != known[KNOWN_DECODER]
        || get_slot(connection, &connection_is_held) != Py_False || get_slot(connection, &connection_fault) != Py_None)
        return 0;
    PyObject *rest = get_slot(decoder, &decoder_rest), *buffer = get_slot(decoder, &decoder_buffer);
    return rest && PyBytes_CheckExact(rest) && !PyBytes_GET_SIZE(rest) && buffer && PyByteArray_CheckExact(buffer)
        && !PyByteArray_GET_SIZE(buffer);
}

/* Say that somebody was served at once, unless it has just been in a hurry. */
static int note_visit(PyObject *connection, PyObject *server)
{
    if (get_slot(connection, &connection_has_hurried) == Py_True) {
        set_slot(connection, &connection_has_hurried, Py_False);
        return 0;
    }
    PyObject *turns = PyObject_GetAttr(server, names[NAME_TURNS]);
    int failed = !turns || PyObject_SetAttr(turns, names[NAME_HAS_OTHERS], Py_True) < 0;
    Py_XDECREF(turns);
    return failed ? -1 : 0;
}

static PyObject *cut(Position *at)
{
    Py_ssize_t length = (Py_ssize_t)big_endian(*at + 1, 4);
    PyObject *frame = PyBytes_FromStringAndSize((const char *)*at + HEAD, length);
    *at += HEAD + length;
    return frame;
}

/* The next requests have to wait. */
static PyObject *hold(PyObject *connection, Position at, int count)
{
    PyObject *frames = PyList_New(count), *done = NULL;
    int place = 0;
    for (; frames && place < count; place++) {
        PyObject *frame = cut(&at);
        if (!frame)
            break;
        PyList_SET_ITEM(frames, place, frame);
    }
    if (frames && place == count)
        done = PyObject_CallMethodOneArg(connection, names[NAME_HOLD], frames);
    Py_XDECREF(frames);
    return done;
}

static PyObject *carry_out_few(PyObject *connection, Position at, int count)
{
    for (; count; count--) {
        if (get_slot(connection, &connection_is_closing) != Py_False)
            break;
        int stops = must_stop(connection);
        if (stops || PyErr_Occurred())
            return PyErr_Occurred() ? NULL : hold(connection, at, count);
        PyObject *args[] = {connection, cut(&at)};
        if (!args[1])
            return NULL;
        PyObject *done = PyObject_Vectorcall(get_slot(connection, &connection_handle), args, 2, NULL);
        Py_DECREF(args[1]);
        if (!done)
            return NULL;
        Py_DECREF(done);
    }
    Py_RETURN_NONE;
}

static PyObject *receive(PyObject *connection, PyObject *data)
{
    if (!PyBytes_CheckExact(data) || !is_idle(connection) || make_names() < 0)
        return NULL;
    Py_ssize_t max_frame = PyLong_AsSsize_t(get_slot(get_slot(connection, &connection_decoder), &decoder_max_frame));
    int count = PyErr_Occurred() ? 0 : count_frames(data, max_frame);
    PyObject *server = get_slot(connection, &connection_server);
    TrafficObject *traffic = traffic_of(connection);
    if (!count || !traffic || note_visit(connection, server) < 0)
        return NULL;
    traffic->received += PyBytes_GET_SIZE(data);
    set_slot(connection, &connection_has_received, Py_True);
    return carry_out_few(connection, (Position)PyBytes_AS_STRING(data), count);
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
    PyObject *transport = is_plain(connection) ? get_slot(connection, &connection_transport) : NULL;
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
    PyObject *output = is_plain(connection) ? get_slot(connection, &connection_output) : NULL;
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
    ANSWER(count == 1 && !names ? receive(self, args[0]) : NULL, methods[DATA_RECEIVED]);
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
