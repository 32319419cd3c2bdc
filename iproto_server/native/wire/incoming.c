/* A connection's requests: the twin of the shortest ways through Connection (server/connection/connection.py), from what
 * has arrived to the function that answers requests. They are carried out where they are.
 */
#include "../native.h"
#include <time.h>

enum { NAME_CONFIG, NAME_HIGH_WATER, NAME_IS_FULL, NAME_TURNS, NAME_HAS_OTHERS, NAME_HOLD, NAME_CARRY_OUT_MANY, NAMES };
static PyObject *names[NAMES];

static int make_names(void)
{
    static const char *const texts[NAMES] = {
        "config", "write_high_water", "is_full", "turns", "has_others", "_hold", "_carry_out_many",
    };
    for (int place = 0; place < NAMES; place++)
        if (!names[place] && !(names[place] = PyUnicode_InternFromString(texts[place])))
            return -1;
    return 0;
}

/* -- one request after another -- */

/* Whose requests are carried out, and by what; and the configuration whose limit of unsent bytes is known. */
typedef struct {
    PyObject *connection, *handle, *config;
    Py_ssize_t high_water;
    int cost; /* of what was carried out since the time was looked at */
} Run;

static void begin_run(Run *run, PyObject *connection, PyObject *handle)
{
    *run = (Run){.connection = connection, .handle = handle, .cost = LOOK_AT_TIME};
}

/* Returns -1 with an exception. */
static int end_run(Run *run)
{
    Py_CLEAR(run->config);
    return finish_requests(run->handle);
}

/* Whether the server has as many requests in flight as it may have; -1 with an exception. */
static int is_full(PyObject *connection)
{
    PyObject *full = PyObject_GetAttr(get_slot(connection, &connection_server), names[NAME_IS_FULL]);
    int answer = full ? PyObject_IsTrue(full) : -1;
    Py_XDECREF(full);
    return answer;
}

/* Look at the limit of unsent bytes. Returns -1 with an exception. */
static int look_at_limit(Run *run)
{
    PyObject *config = PyObject_GetAttr(get_slot(run->connection, &connection_server), names[NAME_CONFIG]);
    if (config != run->config) {
        PyObject *limit = config ? PyObject_GetAttr(config, names[NAME_HIGH_WATER]) : NULL;
        run->high_water = limit ? PyLong_AsSsize_t(limit) : -1;
        Py_XDECREF(limit);
        Py_XSETREF(run->config, Py_XNewRef(config));
    }
    Py_XDECREF(config);
    return PyErr_Occurred() ? -1 : 0;
}

/* Whether the next request must wait, or none will be answered; -1 with an exception. */
static int must_stop(Run *run)
{
    PyObject *connection = run->connection;
    if (get_slot(connection, &connection_is_closing) != Py_False
        || get_slot(connection, &connection_is_write_paused) != Py_False
        || get_slot(connection, &connection_is_suspended) != Py_False)
        return 1;
    Py_ssize_t size = unsent_size(connection);
    Py_ssize_t held = PyLong_AsSsize_t(get_slot(connection, &connection_held_size));
    Py_ssize_t in_flight = PyLong_AsSsize_t(get_slot(connection, &connection_in_flight));
    if ((size < 0 || held < 0 || in_flight < 0) && PyErr_Occurred())
        return -1;
    if (size + held > 0) {
        /* Only code of Python can have changed the limit. */
        if ((!run->config || run->cost >= LOOK_AT_TIME) && look_at_limit(run) < 0)
            return -1;
        if (size + held > run->high_water)
            return 1;
    }
    return in_flight > 0 ? is_full(connection) : 0;
}

/* Returns -1 with an exception. */
static int carry_out(Run *run, Position at, Position end)
{
    int cost = handle_frame(run->handle, run->connection, at, end);
    run->cost += cost;
    return cost < 0 ? -1 : 0;
}

/* As time.perf_counter. */
static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Returns whether there is time for more; -1 with an exception. */
static int carry_out_backlog(Run *run, FramesObject *backlog, double end_time)
{
    while (frames_left(backlog)) {
        int stops = must_stop(run);
        if (stops)
            return stops < 0 ? -1 : 0;
        if (run->cost >= LOOK_AT_TIME)
            run->cost = 0;
        Position at, end;
        PyObject *data = frames_take(backlog, &at, &end);
        int failed = carry_out(run, at, end);
        Py_DECREF(data);
        if (failed)
            return -1;
        if (run->cost >= LOOK_AT_TIME && seconds() >= end_time)
            return 0;
    }
    return 1;
}

/* carry_out_until(connection, backlog, handle, end) */
FUNCTION(native_carry_out_until)
{
    if (make_names() < 0)
        return NULL;
    if (count != 4 || !is_plain_connection(args[0]) || Py_TYPE(args[1]) != &Frames_Type)
        return PyObject_Vectorcall(python_functions[PYTHON_CARRY_OUT_UNTIL], args, (size_t)count, NULL);
    double end = PyFloat_AsDouble(args[3]);
    if (PyErr_Occurred())
        return NULL;
    Run run;
    begin_run(&run, args[0], args[2]);
    int goes_on = carry_out_backlog(&run, (FramesObject *)args[1], end);
    return end_run(&run) < 0 || goes_on < 0 ? NULL : PyBool_FromLong(goes_on);
}

/* -- what arrives -- */

/* Whether nothing else is to be looked at before what arrives. */
static int is_idle(PyObject *connection)
{
    PyObject *decoder = get_slot(connection, &connection_decoder);
    return is_plain_connection(connection) && decoder && Py_TYPE(decoder) == &FrameDecoder_Type
        && get_slot(connection, &connection_is_held) == Py_False && get_slot(connection, &connection_fault) == Py_None;
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

/* Call a method with the frames of `data` from `at` on. */
static PyObject *hand_over(PyObject *connection, int method, PyObject *data, Position at, Py_ssize_t count)
{
    FramesObject *frames = new_frames();
    Py_ssize_t start = at - (Position)PyBytes_AS_STRING(data);
    PyObject *done = NULL;
    if (frames && frames_put(frames, data, start, PyBytes_GET_SIZE(data), count) == 0)
        done = PyObject_CallMethodOneArg(connection, names[method], (PyObject *)frames);
    Py_XDECREF(frames);
    return done;
}

static PyObject *carry_out_few(Run *run, PyObject *data, Py_ssize_t count)
{
    Position at = (Position)PyBytes_AS_STRING(data);
    for (; count; count--) {
        if (get_slot(run->connection, &connection_is_closing) != Py_False)
            break;
        int stops = must_stop(run);
        if (stops)
            return stops < 0 ? NULL : hand_over(run->connection, NAME_HOLD, data, at, count);
        Position frame = at + FRAME_HEAD;
        at = frame + big_endian(at + 1, 4);
        run->cost = 0;
        if (carry_out(run, frame, at) < 0)
            return NULL;
    }
    Py_RETURN_NONE;
}

/* Carry out every request that is complete now; NULL, maybe without an exception, where Python has to do it. */
PyObject *receive_data(PyObject *connection, PyObject *data)
{
    if (!PyBytes_CheckExact(data) || !is_idle(connection) || make_names() < 0)
        return NULL;
    Py_ssize_t count = decoder_count((FrameDecoder *)get_slot(connection, &connection_decoder), data);
    PyObject *server = get_slot(connection, &connection_server);
    TrafficObject *traffic = traffic_of(connection);
    if (!count || !traffic || (count <= REQUESTS_AT_ONCE && note_visit(connection, server) < 0))
        return NULL;
    traffic->received += PyBytes_GET_SIZE(data);
    set_slot(connection, &connection_has_received, Py_True);
    if (count > REQUESTS_AT_ONCE)
        return hand_over(connection, NAME_CARRY_OUT_MANY, data, (Position)PyBytes_AS_STRING(data), count);
    Run run;
    begin_run(&run, connection, get_slot(connection, &connection_handle));
    PyObject *done = carry_out_few(&run, data, count);
    if (end_run(&run) < 0)
        Py_CLEAR(done);
    return done;
}
