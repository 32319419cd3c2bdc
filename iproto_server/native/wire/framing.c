/* Cuts a stream of bytes into frames: the decoders of both protocols, which differ in what comes before a frame.
 *
 * IPROTO: the length as an unsigned integer of MessagePack; it is not a part of the frame. Tarantool 1.5: a header of
 * three numbers of 32 bits, of which the second is the length of what follows; it is a part of the frame.
 *
 * A decoder holds only what has arrived of the last frame, in one piece of memory that doubles as it grows. A frame that
 * is announced but not sent costs nothing.
 */
#include "../native.h"

static void read_length(Position at, Position end, FrameHead *head)
{
    *head = (FrameHead){1, *at, 0};
    if (*at < 0x80)
        return;
    if (*at < 0xcc || *at > 0xcf) {
        head->size = 0;
        return;
    }
    int width = 1 << (*at - 0xcc);
    head->size = 1 + width;
    if (end - at < head->size)
        head->missing = head->size - (int)(end - at);
    else
        head->length = big_endian(at + 1, width);
}

static void read_header_15(Position at, Position end, FrameHead *head)
{
    enum { HEADER = 12 };
    *head = (FrameHead){HEADER, 0, 0};
    if (end - at < HEADER)
        head->missing = HEADER - (int)(end - at);
    else
        head->length = at[4] | (uint64_t)at[5] << 8 | (uint64_t)at[6] << 16 | (uint64_t)at[7] << 24;
}

const Framing iproto_framing = {read_length, 0, PY_SSIZE_T_MAX, "too big packet size in the header: %llu"};
const Framing tarantool_15_framing = {read_header_15, 1, (uint64_t)1 << 31, "received package is too big"};

/* -- faults -- */

/* These return -1 with an exception. */

static int raise_error(PyObject *error)
{
    if (error)
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
    return -1;
}

static int refuse(const char *reason)
{
    PyObject *make = hook(HOOK_FRAMING_ERROR);
    return raise_error(make ? PyObject_CallFunction(make, "s", reason) : NULL);
}

static int refuse_length(const Framing *framing, uint64_t length)
{
    char reason[64];
    snprintf(reason, sizeof reason, framing->too_large, (unsigned long long)length);
    PyObject *make = hook(HOOK_FRAMING_ERROR);
    return raise_error(make ? PyObject_CallFunction(make, "sK", reason, (unsigned long long)length) : NULL);
}

/* -- the part of a frame -- */

/* Append bytes to the part. */
static int keep(FrameDecoder *self, Position from, Py_ssize_t size)
{
    Py_ssize_t needed = self->part_size + size, room = self->part ? PyBytes_GET_SIZE(self->part) : 0;
    if (needed > room) {
        room = self->part && needed < 2 * room ? 2 * room : needed;
        if (!self->part)
            self->part = PyBytes_FromStringAndSize(NULL, room);
        else if (_PyBytes_Resize(&self->part, room) < 0)
            self->part_size = 0;
        if (!self->part)
            return -1;
    }
    memcpy(PyBytes_AS_STRING(self->part) + self->part_size, from, (size_t)size);
    self->part_size = needed;
    return 0;
}

/* Take the part as bytes of its own; NULL with an exception. */
static PyObject *take_part(FrameDecoder *self)
{
    PyObject *part = self->part;
    if (PyBytes_GET_SIZE(part) != self->part_size)
        _PyBytes_Resize(&part, self->part_size);
    self->part = NULL;
    self->part_size = 0;
    return part;
}

/* -- cutting -- */

/* The position behind the whole frames with usual lengths that begin before `stop`, and their number. */
static Py_ssize_t skip_usual(const FrameDecoder *self, PyObject *data, Py_ssize_t position, Py_ssize_t stop,
                             Py_ssize_t *count)
{
    Position bytes = (Position)PyBytes_AS_STRING(data);
    Py_ssize_t size = PyBytes_GET_SIZE(data);
    for (*count = 0; position < stop && size - position >= FRAME_HEAD && bytes[position] == FRAME_U32; ++*count) {
        uint64_t length = big_endian(bytes + position + 1, FRAME_HEAD - 1);
        if (length > self->max_frame || (Py_ssize_t)length > size - position - FRAME_HEAD)
            break;
        position += FRAME_HEAD + (Py_ssize_t)length;
    }
    return position;
}

/* Where frames are cut out that begin before this position. */
static Py_ssize_t stop_of(const FrameDecoder *self, PyObject *data, Py_ssize_t position)
{
    Py_ssize_t size = PyBytes_GET_SIZE(data);
    return size - position < self->at_once ? size : position + self->at_once;
}

/* Cut out one frame. Returns 1; 0 if it has to wait; -1 with an exception. */
static int cut_one(FrameDecoder *self, PyObject *data, Py_ssize_t *position, FramesObject *frames)
{
    Position at = (Position)PyBytes_AS_STRING(data) + *position;
    Py_ssize_t size = PyBytes_GET_SIZE(data) - *position;
    FrameHead head;
    self->framing->read(at, at + size, &head);
    if (!head.size)
        return refuse("packet length");
    if (!head.missing && head.length > self->largest)
        return refuse_length(self->framing, head.length);
    if (!head.missing && head.length > self->max_frame)
        return 0;
    Py_ssize_t missing = head.missing ? head.missing : head.size + (Py_ssize_t)head.length - size;
    if (missing > 0) {
        self->missing = missing;
        *position += size;
        return keep(self, at, size);
    }
    Py_ssize_t end = *position + head.size + (Py_ssize_t)head.length;
    Py_ssize_t start = self->framing->is_kept ? *position : *position + head.size;
    *position = end;
    return frames_put_bare(frames, data, start, end) < 0 ? -1 : 1;
}

/* Cut out the frames that begin from a position on; what is left is kept. */
static int cut(FrameDecoder *self, PyObject *data, Py_ssize_t position, FramesObject *frames)
{
    Py_ssize_t stop = stop_of(self, data, position), count;
    for (int done = 1; done > 0 && position < stop;) {
        if (!self->framing->is_kept) {
            Py_ssize_t start = position;
            position = skip_usual(self, data, start, stop, &count);
            if (frames_put(frames, data, start, position, count) < 0)
                return -1;
        }
        if (position < stop && (done = cut_one(self, data, &position, frames)) < 0)
            return -1;
    }
    if (position < PyBytes_GET_SIZE(data)) {
        self->rest = Py_NewRef(data);
        self->position = position;
    }
    return 0;
}

/* Put what has arrived behind what was not cut yet. */
static int append_rest(FrameDecoder *self, PyObject *data)
{
    Py_ssize_t before = PyBytes_GET_SIZE(self->rest) - self->position, size = PyBytes_GET_SIZE(data);
    PyObject *rest = PyBytes_FromStringAndSize(NULL, before + size);
    if (!rest)
        return -1;
    memcpy(PyBytes_AS_STRING(rest), PyBytes_AS_STRING(self->rest) + self->position, (size_t)before);
    memcpy(PyBytes_AS_STRING(rest) + before, PyBytes_AS_STRING(data), (size_t)size);
    Py_SETREF(self->rest, rest);
    self->position = 0;
    return 0;
}

int decoder_feed(FrameDecoder *self, PyObject *data, FramesObject *frames)
{
    if (self->rest)
        return append_rest(self, data);
    if (!self->part)
        return cut(self, data, 0, frames);
    Py_ssize_t size = PyBytes_GET_SIZE(data);
    if (keep(self, (Position)PyBytes_AS_STRING(data), size) < 0)
        return -1;
    self->missing -= size;
    if (self->missing > 0)
        return 0;
    PyObject *whole = take_part(self);
    int done = whole ? cut(self, whole, 0, frames) : -1;
    Py_XDECREF(whole);
    return done;
}

int decoder_cut_more(FrameDecoder *self, FramesObject *frames)
{
    PyObject *data = self->rest;
    Py_ssize_t position = self->position;
    if (!data)
        return 0;
    self->rest = NULL;
    int done = cut(self, data, position, frames);
    if (!done && self->rest && self->position == position) {
        FrameHead head;
        Position at = (Position)PyBytes_AS_STRING(data) + position;
        self->framing->read(at, (Position)PyBytes_AS_STRING(data) + PyBytes_GET_SIZE(data), &head);
        Py_CLEAR(self->rest);
        done = refuse_length(self->framing, head.length);
    }
    Py_DECREF(data);
    return done;
}

/* -- for connections -- */

Py_ssize_t decoder_count(const FrameDecoder *self, PyObject *data)
{
    Py_ssize_t count;
    if (self->framing != &iproto_framing || self->rest || self->part)
        return 0;
    return skip_usual(self, data, 0, stop_of(self, data, 0), &count) == PyBytes_GET_SIZE(data) ? count : 0;
}
