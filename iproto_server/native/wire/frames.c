/* A queue of frames that wait to be handled.
 *
 * They are kept in pieces. A piece is one frame, or several as they arrived, with their lengths before them: then only a
 * position moves when a frame is taken.
 */
#include "../native.h"

typedef struct {
    PyObject *data; /* bytes */
    Py_ssize_t position, count; /* of the frames that are left; with lengths before them, unless it is bare */
    int is_bare;
} Piece;

struct FramesObject {
    PyObject_HEAD
    Piece *pieces;
    Py_ssize_t first, end, room; /* the pieces in use are those from `first` to `end` */
    Py_ssize_t count;            /* of all frames */
};

/* Make room for a piece at one of the ends. Returns -1 with an exception. */
static int reserve(FramesObject *self, int at_front)
{
    if (self->first == self->end)
        self->first = self->end = at_front ? self->room : 0;
    if (at_front ? self->first > 0 : self->end < self->room)
        return 0;
    Py_ssize_t used = self->end - self->first, room = 2 * used + 4;
    Piece *pieces = PyMem_New(Piece, (size_t)room);
    if (!pieces) {
        PyErr_NoMemory();
        return -1;
    }
    Py_ssize_t first = at_front ? room - used : 0;
    if (used)
        memcpy(pieces + first, self->pieces + self->first, (size_t)used * sizeof(Piece));
    PyMem_Free(self->pieces);
    self->pieces = pieces;
    self->first = first;
    self->end = first + used;
    self->room = room;
    return 0;
}

/* Add a piece; this takes over the reference to `data`. */
static int put_piece(FramesObject *self, PyObject *data, Py_ssize_t position, Py_ssize_t count, int is_bare, int at_front)
{
    if (!data || reserve(self, at_front) < 0) {
        Py_XDECREF(data);
        return -1;
    }
    self->pieces[at_front ? --self->first : self->end++] = (Piece){data, position, count, is_bare};
    self->count += count;
    return 0;
}

static int put_frame(FramesObject *self, PyObject *frame, int at_front)
{
    if (!PyBytes_CheckExact(frame)) {
        PyErr_SetString(PyExc_TypeError, "a frame is bytes");
        return -1;
    }
    return put_piece(self, Py_NewRef(frame), 0, 1, 1, at_front);
}

int frames_put(FramesObject *self, PyObject *data, Py_ssize_t start, Py_ssize_t end, Py_ssize_t count)
{
    if (!count)
        return 0;
    int is_whole = !start && end == PyBytes_GET_SIZE(data);
    PyObject *kept = is_whole ? Py_NewRef(data) : PyBytes_FromStringAndSize(PyBytes_AS_STRING(data) + start, end - start);
    return put_piece(self, kept, 0, count, 0, 0);
}

int frames_put_bare(FramesObject *self, PyObject *data, Py_ssize_t start, Py_ssize_t end)
{
    return put_piece(self, PyBytes_FromStringAndSize(PyBytes_AS_STRING(data) + start, end - start), 0, 1, 1, 0);
}

Py_ssize_t frames_left(const FramesObject *self)
{
    return self->count;
}

/* The next frame of a piece, whose position moves on. */
static Position next_frame(Piece *piece, Position *end)
{
    Position at = (Position)PyBytes_AS_STRING(piece->data) + piece->position;
    Py_ssize_t size = PyBytes_GET_SIZE(piece->data);
    if (!piece->is_bare) {
        size = (Py_ssize_t)big_endian(at + 1, 4);
        at += FRAME_HEAD;
        piece->position += FRAME_HEAD + size;
    }
    piece->count--;
    *end = at + size;
    return at;
}

PyObject *frames_take(FramesObject *self, Position *at, Position *end)
{
    Piece *piece = self->pieces + self->first;
    *at = next_frame(piece, end);
    self->count--;
    if (piece->count)
        return Py_NewRef(piece->data);
    self->first++;
    return piece->data;
}

static PyObject *bytes_of(Position at, Position end)
{
    return PyBytes_FromStringAndSize((const char *)at, end - at);
}

static PyObject *frames_popleft(PyObject *object, PyObject *nothing)
{
    FramesObject *self = (FramesObject *)object;
    if (!self->count) {
        PyErr_SetString(PyExc_IndexError, "there are no frames");
        return NULL;
    }
    int is_bare = self->pieces[self->first].is_bare;
    Position at, end;
    PyObject *data = frames_take(self, &at, &end);
    if (is_bare)
        return data;
    PyObject *frame = bytes_of(at, end);
    Py_DECREF(data);
    return frame;
}

static PyObject *done(int result)
{
    return result < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *frames_append(PyObject *self, PyObject *frame)
{
    return done(put_frame((FramesObject *)self, frame, 0));
}

static PyObject *frames_appendleft(PyObject *self, PyObject *frame)
{
    return done(put_frame((FramesObject *)self, frame, 1));
}

/* Append the pieces of another queue, which keeps them. */
static int extend_by_pieces(FramesObject *self, const FramesObject *other)
{
    Py_ssize_t end = other->end;
    for (Py_ssize_t place = other->first; place < end; place++) {
        Piece piece = other->pieces[place];
        if (put_piece(self, Py_NewRef(piece.data), piece.position, piece.count, piece.is_bare, 0) < 0)
            return -1;
    }
    return 0;
}

static int extend(FramesObject *self, PyObject *frames)
{
    if (Py_TYPE(frames) == &Frames_Type && frames != (PyObject *)self)
        return extend_by_pieces(self, (FramesObject *)frames);
    PyObject *list = PySequence_List(frames);
    int result = list ? 0 : -1;
    for (Py_ssize_t place = 0; !result && place < PyList_GET_SIZE(list); place++)
        result = put_frame(self, PyList_GET_ITEM(list, place), 0);
    Py_XDECREF(list);
    return result;
}

static PyObject *frames_extend(PyObject *self, PyObject *frames)
{
    return done(extend((FramesObject *)self, frames));
}

static PyObject *frames_iter(PyObject *object)
{
    FramesObject *self = (FramesObject *)object;
    PyObject *list = PyList_New(0), *iterator = NULL;
    int failed = !list;
    for (Py_ssize_t place = self->first; !failed && place < self->end; place++)
        for (Piece piece = self->pieces[place]; !failed && piece.count;) {
            Position end, at = next_frame(&piece, &end);
            PyObject *frame = bytes_of(at, end);
            failed = !frame || PyList_Append(list, frame) < 0;
            Py_XDECREF(frame);
        }
    if (!failed)
        iterator = PyObject_GetIter(list);
    Py_XDECREF(list);
    return iterator;
}

static Py_ssize_t frames_length(PyObject *self)
{
    return ((FramesObject *)self)->count;
}

FramesObject *new_frames(void)
{
    FramesObject *self = PyObject_New(FramesObject, &Frames_Type);
    if (self) {
        self->pieces = NULL;
        self->first = self->end = self->room = self->count = 0;
    }
    return self;
}

static PyObject *frames_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *first = NULL;
    if (!PyArg_ParseTuple(args, "|O:Frames", &first))
        return NULL;
    FramesObject *self = new_frames();
    if (self && first && extend(self, first) < 0)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static void frames_dealloc(PyObject *object)
{
    FramesObject *self = (FramesObject *)object;
    while (self->first < self->end)
        Py_DECREF(self->pieces[self->first++].data);
    PyMem_Free(self->pieces);
    PyObject_Free(self);
}

static PyMethodDef frames_methods[] = {
    {"append", frames_append, METH_O, "append($self, frame, /)\n--\n\nAdd a frame at the end."},
    {"appendleft", frames_appendleft, METH_O, "appendleft($self, frame, /)\n--\n\nAdd a frame in front of the others."},
    {"extend", frames_extend, METH_O, "extend($self, frames, /)\n--\n\nAdd several frames at the end."},
    {"popleft", frames_popleft, METH_NOARGS, "popleft($self, /)\n--\n\nTake the first frame."},
    {NULL},
};

static PySequenceMethods frames_sequence = {.sq_length = frames_length};

PyTypeObject Frames_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native._native.Frames",
    .tp_doc = "A queue of frames.",
    .tp_basicsize = sizeof(FramesObject),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = frames_new,
    .tp_dealloc = frames_dealloc,
    .tp_iter = frames_iter,
    .tp_as_sequence = &frames_sequence,
    .tp_methods = frames_methods,
};
