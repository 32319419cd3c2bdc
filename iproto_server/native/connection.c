/* Many requests of one connection, and their responses: the twins of carry_out_until and of Connection.reply
 * (server/connection.py).
 */
#include "native.h"
#include <time.h>

enum { NAME_SERVER, NAME_CONFIG, NAME_HIGH_WATER, NAME_IS_FULL, NAME_BATCH, NAME_ADD, NAME_REPLY, NAME_POPLEFT, NAMES };
static PyObject *names[NAMES];

static int make_names(void)
{
    static const char *const texts[NAMES] = {
        "_server", "config", "write_high_water", "is_full", "batch", "add", "reply", "popleft",
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

static PyObject *attribute(PyObject *owner, int first, int second)
{
    PyObject *middle = PyObject_GetAttr(owner, names[first]);
    PyObject *found = middle ? PyObject_GetAttr(middle, names[second]) : NULL;
    Py_XDECREF(middle);
    return found;
}

/* Have what was answered sent at the end of the iteration. */
static int announce_output(PyObject *connection)
{
    set_slot(connection, &connection_has_output, Py_True);
    PyObject *batch = attribute(get_slot(connection, &connection_server), NAME_BATCH, NAME_ADD);
    PyObject *done = batch ? PyObject_CallOneArg(batch, connection) : NULL;
    Py_XDECREF(batch);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static int append_number(PyObject *list, Py_ssize_t number)
{
    PyObject *value = PyLong_FromSsize_t(number);
    int failed = !value || PyList_Append(list, value) < 0;
    Py_XDECREF(value);
    return failed ? -1 : 0;
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
        done = put_aside(connection, response, get_slot(manager, &manager_has_logged) == Py_True) < 0
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
        || get_slot(connection, &connection_is_write_paused) != Py_False)
        return 1;
    PyObject *limit = attribute(get_slot(connection, &connection_server), NAME_CONFIG, NAME_HIGH_WATER);
    Py_ssize_t high_water = limit ? PyLong_AsSsize_t(limit) : -1;
    Py_XDECREF(limit);
    Py_ssize_t size = PyLong_AsSsize_t(get_slot(connection, &connection_output_size));
    Py_ssize_t held = PyLong_AsSsize_t(get_slot(connection, &connection_held_size));
    Py_ssize_t in_flight = PyLong_AsSsize_t(get_slot(connection, &connection_in_flight));
    if (PyErr_Occurred())
        return -1;
    return size + held > high_water || (in_flight > 0 && is_full(connection));
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
