/* A connection's requests, from the bytes that arrive to the function that answers each. */
#include "../native.h"
#include <time.h>

/* -- one request after another -- */

/* Handle a frame. Returns its cost, in units of LOOK_AT_TIME; -1 with an exception. */
static int handle_one(ConnectionObject *self, PyObject *handle, Position at, Position end)
{
    return handle_frame(handle, (PyObject *)self, at, end);
}

/* As time.perf_counter. */
static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Returns whether there is time for more; 0, too, before a request that must wait; -1 with an exception. */
static int handle_backlog(ConnectionObject *self, PyObject *handle, FramesObject *backlog, double end_time)
{
    int cost = 0;
    while (frames_left(backlog)) {
        if (is_closing(self) || connection_must_hold(self))
            return 0;
        if (cost >= LOOK_AT_TIME)
            cost = 0;
        Position at, end;
        PyObject *data = frames_take(backlog, &at, &end);
        int done = handle_one(self, handle, at, end);
        Py_DECREF(data);
        if (done < 0)
            return -1;
        cost += done;
        if (cost >= LOOK_AT_TIME && seconds() >= end_time)
            return 0;
    }
    return 1;
}

/* _handle_frames(frames, end) */
PyObject *handle_frames(ConnectionObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != 2 || Py_TYPE(args[0]) != &Frames_Type)
        return PyErr_Format(PyExc_TypeError, "_handle_frames() takes frames and a time");
    double end = PyFloat_AsDouble(args[1]);
    if (PyErr_Occurred() || !has_handle(self))
        return NULL;
    PyObject *handle = Py_NewRef(self->handle);
    int goes_on = handle_backlog(self, handle, (FramesObject *)args[0], end);
    finish_requests(handle);
    Py_DECREF(handle);
    return goes_on < 0 ? NULL : PyBool_FromLong(goes_on);
}

/* -- what arrives -- */

void note_served_at_once(ConnectionObject *self)
{
    if (self->has_hurried)
        self->has_hurried = 0;
    else if (self->server->turns)
        self->server->turns->has_others = 1;
}

/* Call a method with the frames of `data` from `at` on. */
static PyObject *hand_over(ConnectionObject *self, const char *method, PyObject *data, Position at, Py_ssize_t count)
{
    FramesObject *frames = new_frames();
    Py_ssize_t start = at - (Position)PyBytes_AS_STRING(data);
    PyObject *done = NULL;
    if (frames && frames_put(frames, data, start, PyBytes_GET_SIZE(data), count) == 0)
        done = PyObject_CallMethod((PyObject *)self, method, "O", frames);
    Py_XDECREF(frames);
    return done;
}

/* Handle `count` requests, of which few come at once, without looking at the time. */
static PyObject *handle_few(ConnectionObject *self, PyObject *handle, PyObject *data, Py_ssize_t count)
{
    Position at = (Position)PyBytes_AS_STRING(data);
    for (; count && !is_closing(self); count--) {
        if (connection_must_hold(self))
            return hand_over(self, "_hold", data, at, count);
        Position frame = at + FRAME_HEAD;
        at = frame + big_endian(at + 1, 4);
        if (handle_one(self, handle, frame, at) < 0)
            return NULL;
    }
    Py_RETURN_NONE;
}

/* How many whole frames the data is, if nothing else is to be looked at before it; else 0. */
static Py_ssize_t whole_frames(const ConnectionObject *self, PyObject *data)
{
    int is_usual = self->decoder && Py_TYPE(self->decoder) == &FrameDecoder_Type && !is_held(self)
        && self->fault == Py_None;
    return is_usual ? decoder_count(self->decoder, data) : 0;
}

PyObject *receive_data(ConnectionObject *self, PyObject *data)
{
    if (!PyBytes_CheckExact(data))
        return PyErr_Format(PyExc_TypeError, "what is received is bytes");
    if (!has_handle(self))
        return NULL;
    self->has_received = 1;
    if (self->server->traffic)
        self->server->traffic->received += PyBytes_GET_SIZE(data);
    Py_ssize_t count = whole_frames(self, data);
    if (!count)
        return PyObject_CallMethod((PyObject *)self, "_received", "O", data);
    if (count > REQUESTS_AT_ONCE)
        return hand_over(self, "_handle_many", data, (Position)PyBytes_AS_STRING(data), count);
    note_served_at_once(self);
    PyObject *handle = Py_NewRef(self->handle), *done = handle_few(self, handle, data, count);
    finish_requests(handle);
    Py_DECREF(handle);
    return done;
}
