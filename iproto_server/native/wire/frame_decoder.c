/* The types of the decoders, for Python; framing.c does the work. */
#include "../native.h"

static FrameDecoder *as_decoder(PyObject *object)
{
    return (FrameDecoder *)object;
}

static int are_bytes(PyObject *data)
{
    if (PyBytes_CheckExact(data))
        return 1;
    PyErr_SetString(PyExc_TypeError, "what arrives is bytes");
    return 0;
}

static int are_frames(PyObject *frames)
{
    if (Py_TYPE(frames) == &Frames_Type)
        return 1;
    PyErr_SetString(PyExc_TypeError, "frames are put into Frames");
    return 0;
}

/* feed_to(frames, data) */
static PyObject *feed_to(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != 2)
        return PyErr_Format(PyExc_TypeError, "feed_to() takes frames and data");
    if (!are_frames(args[0]) || !are_bytes(args[1]) || decoder_feed(as_decoder(self), args[1], (FramesObject *)args[0]) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *more_to(PyObject *self, PyObject *frames)
{
    return are_frames(frames) && decoder_cut_more(as_decoder(self), (FramesObject *)frames) == 0 ? Py_NewRef(Py_None) : NULL;
}

/* The frames as a list; if that has failed, the exception gets those that were complete. */
static PyObject *as_list(FramesObject *frames, int failed)
{
    PyObject *type = NULL, *error = NULL, *traceback = NULL;
    if (failed) {
        PyErr_Fetch(&type, &error, &traceback);
        PyErr_NormalizeException(&type, &error, &traceback);
    }
    PyObject *list = PySequence_List((PyObject *)frames);
    if (!failed)
        return list;
    if (list && PyObject_SetAttrString(error, "frames", list) == 0)
        PyErr_Restore(type, error, traceback);
    else {
        Py_XDECREF(type);
        Py_XDECREF(error);
        Py_XDECREF(traceback);
    }
    Py_XDECREF(list);
    return NULL;
}

static PyObject *feed(PyObject *self, PyObject *data)
{
    FramesObject *frames = are_bytes(data) ? new_frames() : NULL;
    PyObject *list = frames ? as_list(frames, decoder_feed(as_decoder(self), data, frames) < 0) : NULL;
    Py_XDECREF(frames);
    return list;
}

static PyObject *more(PyObject *self, PyObject *nothing)
{
    FramesObject *frames = new_frames();
    PyObject *list = frames ? as_list(frames, decoder_cut_more(as_decoder(self), frames) < 0) : NULL;
    Py_XDECREF(frames);
    return list;
}

static PyObject *limit_to(PyObject *object, PyObject *number)
{
    FrameDecoder *self = as_decoder(object);
    unsigned long long limit = PyLong_AsUnsignedLongLong(number);
    if (PyErr_Occurred())
        return NULL;
    self->max_frame = limit < self->largest ? limit : self->largest;
    Py_RETURN_NONE;
}

static PyObject *clear(PyObject *object, PyObject *nothing)
{
    FrameDecoder *self = as_decoder(object);
    Py_CLEAR(self->rest);
    Py_CLEAR(self->part);
    self->part_size = self->missing = 0;
    Py_RETURN_NONE;
}

static PyObject *decoder_buffered(PyObject *object, void *closure)
{
    const FrameDecoder *self = as_decoder(object);
    return PyLong_FromSsize_t(self->part_size + (self->rest ? PyBytes_GET_SIZE(self->rest) : 0));
}

static PyObject *decoder_has_part(PyObject *self, void *closure)
{
    return PyBool_FromLong(as_decoder(self)->part != NULL);
}

static PyObject *decoder_has_more(PyObject *self, void *closure)
{
    return PyBool_FromLong(as_decoder(self)->rest != NULL);
}

static PyObject *new_decoder(PyTypeObject *type, PyObject *args, PyObject *keywords, const Framing *framing)
{
    static char *names[] = {"max_frame", "at_once", NULL};
    unsigned long long max_frame;
    Py_ssize_t at_once = PY_SSIZE_T_MAX;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "K|n", names, &max_frame, &at_once))
        return NULL;
    FrameDecoder *self = (FrameDecoder *)type->tp_alloc(type, 0);
    if (self) {
        self->framing = framing;
        self->largest = self->max_frame = max_frame < framing->length_max ? max_frame : framing->length_max;
        self->at_once = at_once;
    }
    return (PyObject *)self;
}

static PyObject *decoder_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    return new_decoder(type, args, keywords, &iproto_framing);
}

static PyObject *decoder_15_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    return new_decoder(type, args, keywords, &tarantool_15_framing);
}

static void decoder_dealloc(PyObject *object)
{
    Py_XDECREF(as_decoder(object)->rest);
    Py_XDECREF(as_decoder(object)->part);
    Py_TYPE(object)->tp_free(object);
}

static PyMethodDef decoder_methods[] = {
    {"feed", feed, METH_O, "feed($self, data, /)\n--\n\nReturn the frames that the next bytes complete."},
    {"feed_to", (PyCFunction)(void (*)(void))feed_to, METH_FASTCALL,
     "feed_to($self, frames, data, /)\n--\n\nAppend the frames that the next bytes complete."},
    {"more", more, METH_NOARGS, "more($self, /)\n--\n\nReturn the next frames of what was fed."},
    {"more_to", more_to, METH_O, "more_to($self, frames, /)\n--\n\nAppend the next frames of what was fed."},
    {"limit_to", limit_to, METH_O, "limit_to($self, max_frame, /)\n--\n\nTake frames up to another size."},
    {"clear", clear, METH_NOARGS, "clear($self, /)\n--\n\nForget what is held."},
    {NULL},
};

static PyGetSetDef decoder_attributes[] = {
    {"buffered", decoder_buffered, NULL, "The number of bytes that are held.", NULL},
    {"has_part", decoder_has_part, NULL, "Whether there is a part of a frame of which more has to come.", NULL},
    {"has_more", decoder_has_more, NULL, "Whether there is something that `more` has to look at.", NULL},
    {NULL},
};

PyTypeObject FrameDecoder_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native._native.FrameDecoder",
    .tp_doc = "Cuts the incoming bytes of a connection into frames.",
    .tp_basicsize = sizeof(FrameDecoder),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = decoder_new,
    .tp_dealloc = decoder_dealloc,
    .tp_methods = decoder_methods,
    .tp_getset = decoder_attributes,
};

PyTypeObject FrameDecoder15_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native._native.FrameDecoder15",
    .tp_doc = "Cuts the incoming bytes of a Tarantool 1.5 connection into requests.",
    .tp_basicsize = sizeof(FrameDecoder),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_base = &FrameDecoder_Type,
    .tp_new = decoder_15_new,
    .tp_dealloc = decoder_dealloc,
};
