/* Durations: how long ago moments were, counted by intervals. */
#include "../native.h"

#include <time.h>

enum { BOUNDS_MAX = 64 };

typedef struct {
    PyObject_HEAD
    PyObject *now;   /* NULL: the system's clock */
    PyObject *noted; /* moments by key, an IncrementalDict */
    int64_t earliest, bounds[BOUNDS_MAX];
    int bound_count;
    unsigned long long calls, counts[BOUNDS_MAX + 1];
    double sum; /* of nanoseconds */
} DurationsObject;

/* Whether a clock is time.time_ns itself, which is read without a call; -1 with an exception. */
static int is_system_clock(PyObject *now)
{
    static PyObject *time_ns;
    if (!time_ns) {
        PyObject *module = PyImport_ImportModule("time");
        time_ns = module ? PyObject_GetAttrString(module, "time_ns") : NULL;
        Py_XDECREF(module);
    }
    return time_ns ? now == time_ns : -1;
}

static int read_bounds(DurationsObject *self, PyObject *bounds)
{
    Py_ssize_t count = PyTuple_GET_SIZE(bounds);
    if (count > BOUNDS_MAX) {
        PyErr_Format(PyExc_ValueError, "there may be %d bounds, not %zd", BOUNDS_MAX, count);
        return -1;
    }
    for (int place = 0; place < count; place++) {
        self->bounds[place] = PyLong_AsLongLong(PyTuple_GET_ITEM(bounds, place));
        if (self->bounds[place] == -1 && PyErr_Occurred())
            return -1;
    }
    self->bound_count = (int)count;
    return 0;
}

static PyObject *durations_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    static char *names[] = {"now", "bounds", "earliest", "noted", NULL};
    PyObject *now, *bounds, *noted;
    long long earliest;
    if (!PyArg_ParseTupleAndKeywords(args, named, "OO!LO!", names, &now, &PyTuple_Type, &bounds, &earliest,
                                     &IncrementalTable_Type, &noted))
        return NULL;
    if (earliest < 0) {
        PyErr_SetString(PyExc_ValueError, "the earliest moment must not be negative");
        return NULL;
    }
    int is_system = is_system_clock(now);
    DurationsObject *self = is_system < 0 ? NULL : (DurationsObject *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->now = is_system ? NULL : Py_NewRef(now);
    self->noted = Py_NewRef(noted);
    self->earliest = earliest;
    if (read_bounds(self, bounds) < 0)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static int durations_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(((DurationsObject *)object)->now);
    Py_VISIT(((DurationsObject *)object)->noted);
    return 0;
}

/* There is no tp_clear, which would leave an object without its clock: a cycle is broken at a dict in it. */
static void durations_dealloc(PyObject *object)
{
    PyObject_GC_UnTrack(object);
    Py_XDECREF(((DurationsObject *)object)->now);
    Py_XDECREF(((DurationsObject *)object)->noted);
    Py_TYPE(object)->tp_free(object);
}

/* -- counting -- */

static void add(DurationsObject *self, int64_t duration)
{
    int low = 0, high = self->bound_count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (self->bounds[middle] < duration)
            low = middle + 1;
        else
            high = middle;
    }
    self->counts[low]++;
    if (duration > 0)
        self->sum += (double)duration;
}

static int read_clock(DurationsObject *self, int64_t *moment)
{
    if (!self->now) {
        struct timespec now;
        if (clock_gettime(CLOCK_REALTIME, &now) < 0) {
            PyErr_SetFromErrno(PyExc_OSError);
            return -1;
        }
        *moment = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
        return 0;
    }
    PyObject *now = PyObject_CallNoArgs(self->now);
    if (!now)
        return -1;
    *moment = PyLong_AsLongLong(now);
    Py_DECREF(now);
    return *moment == -1 && PyErr_Occurred() ? -1 : 0;
}

/* Count a moment, which may be NULL; `now` is set. Returns -1 with an exception. */
static int count_moment(DurationsObject *self, PyObject *moment, int64_t *now)
{
    if (read_clock(self, now) < 0)
        return -1;
    self->calls++;
    if (!moment || !PyLong_CheckExact(moment))
        return 0;
    int overflow;
    int64_t begun = PyLong_AsLongLongAndOverflow(moment, &overflow);
    if (overflow < 0 || (!overflow && begun <= self->earliest))
        return 0;
    add(self, overflow || begun > *now ? -1 : *now - begun);
    return 0;
}

static PyObject *durations_since(PyObject *object, PyObject *const *args, Py_ssize_t count)
{
    DurationsObject *self = (DurationsObject *)object;
    if (count != 2) {
        PyErr_Format(PyExc_TypeError, "since() takes 2 arguments (%zd given)", count);
        return NULL;
    }
    int64_t now;
    IncrementalDictObject *all = (IncrementalDictObject *)self->noted;
    PyObject *noted = NULL;
    if (incremental_dict_size(all) && incremental_dict_pop(all, args[1], &noted) < 0)
        return NULL;
    int failed = count_moment(self, noted ? noted : args[0], &now);
    Py_XDECREF(noted);
    return failed ? NULL : PyLong_FromLongLong(now);
}

/* -- attributes -- */

static PyObject *durations_calls(PyObject *self, void *closure)
{
    return PyLong_FromUnsignedLongLong(((DurationsObject *)self)->calls);
}

static PyObject *durations_counts(PyObject *object, void *closure)
{
    DurationsObject *self = (DurationsObject *)object;
    PyObject *counts = PyList_New(self->bound_count + 1);
    for (int place = 0; counts && place <= self->bound_count; place++) {
        PyObject *count = PyLong_FromUnsignedLongLong(self->counts[place]);
        if (count)
            PyList_SET_ITEM(counts, place, count);
        else
            Py_CLEAR(counts);
    }
    return counts;
}

static PyObject *durations_sum(PyObject *self, void *closure)
{
    return PyFloat_FromDouble(((DurationsObject *)self)->sum);
}

static PyGetSetDef durations_attributes[] = {
    {"calls", durations_calls, NULL, "The number of calls of since().", NULL},
    {"counts", durations_counts, NULL, "The number of durations in each interval.", NULL},
    {"sum", durations_sum, NULL, "The sum of all durations, in nanoseconds.", NULL},
    {NULL},
};

static PyMethodDef durations_methods[] = {
    {"since", (PyCFunction)(void (*)(void))durations_since, METH_FASTCALL,
     "Count how long ago a moment was, and return now."},
    {NULL},
};

PyTypeObject Durations_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native.Durations",
    .tp_doc = "Counts how long ago moments were, by intervals.",
    .tp_basicsize = sizeof(DurationsObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_methods = durations_methods,
    .tp_getset = durations_attributes,
    .tp_traverse = durations_traverse,
    .tp_new = durations_new,
    .tp_dealloc = durations_dealloc,
};
