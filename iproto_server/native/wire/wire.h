/* Bytes that arrive, and responses that leave. */
#ifndef IPROTO_SERVER_WIRE_H
#define IPROTO_SERVER_WIRE_H

#include "../module/module.h"
#include "../space/space.h"

/* responses.c: append a response to a buffer. They return -1 with an exception, and may have appended a part of it. */
int write_ok(Buffer *buffer, uint64_t sync, uint32_t version);
int write_rows(Buffer *buffer, uint64_t sync, uint32_t version, PyObject *const *raws, Py_ssize_t count);
int write_packed_rows(Buffer *buffer, uint64_t sync, uint32_t version, const PackedRow *rows, int count);
/* What a procedure has returned: None is no value, a tuple several, and anything else one. Returns 1; 0, too, where
 * Python has to pack values: then `write_rows` appends what `pack_values` returns, a list. That runs Python code. */
int write_result(Buffer *buffer, uint64_t sync, uint32_t version, PyObject *result);
PyObject *pack_values(PyObject *result);

/* output.c: the frames that a connection has to send */
enum { LARGE_ANSWER = 64 * 1024 }; /* bytes: smaller answers never wait, and a connection with fewer unsent ones is not slow */
typedef struct Pending Pending;
typedef struct {
    PyObject_HEAD
    Pending *pending;    /* NULL while there is nothing to send */
    Py_ssize_t expected; /* how much room may be needed at once */
} Output;
extern PyTypeObject Output_Type;
Py_ssize_t output_size(const Output *self);
/* Append a frame, made elsewhere; `is_logged`: it depends on rows that are not in the log yet. -1 with an exception. */
int output_add(Output *self, PyObject *frame, int is_logged);
int output_push(Output *self, PyObject *frame); /* one that answers no request */
/* Where a response is written, NULL with an exception; then either mark that what is behind `start` depends on rows, or
 * cut the buffer back to an earlier size, if needed. */
Buffer *output_buffer(Output *self);
int output_mark(Output *self, Py_ssize_t start);
void output_cut(Output *self, Py_ssize_t size);
PyObject *output_take(Output *self); /* all frames as bytes, a new reference */

/* server_state.c: what all connections of a server share */
extern PyTypeObject Traffic_Type, Scheduler_Type, Batch_Type, Server_Type;
typedef struct {
    PyObject_HEAD
    long long received, sent;
} TrafficObject;
typedef struct {
    PyObject_HEAD
    char has_others;
} SchedulerObject;
typedef struct {
    PyObject_HEAD
    PyObject *connections; /* a list */
    char is_scheduled;
} BatchObject;
int batch_add(BatchObject *self, PyObject *connection); /* -1 with an exception */
typedef struct {
    PyObject_HEAD
    BatchObject *batch; /* these may be NULL */
    SchedulerObject *turns;
    TrafficObject *traffic;
    ManagerObject *transactions;
    PyObject *unsent;
    Py_ssize_t in_flight, parked, in_flight_max, parked_max, high_water;
} ServerObject;
int server_is_full(const ServerObject *self);

/* A response that is written to where it is sent from. `response_begin` returns where, NULL with an exception; `_send` or
 * `_drop` is due then, before anything else may be answered. */
typedef struct {
    PyObject *connection;
    Buffer *buffer;
    Py_ssize_t start;
    Buffer own;
} Response;
Buffer *response_begin(Response *response, PyObject *connection);
PyObject *response_send(Response *response, PyObject *manager); /* None; NULL with an exception */
void response_drop(Response *response);

/* frames.c: a queue of frames. A frame is given as the positions where it begins and ends; what is returned, a new
 * reference, keeps its bytes there. */
enum { FRAME_U32 = 0xce, FRAME_HEAD = 5 }; /* the usual length: its first byte, and its size */
typedef struct FramesObject FramesObject;
extern PyTypeObject Frames_Type;
FramesObject *new_frames(void);
Py_ssize_t frames_left(const FramesObject *self);
PyObject *frames_take(FramesObject *self, Position *at, Position *end); /* one must be left */
/* Add so many frames, which are these bytes with usual lengths before them; one without a length. -1 with an exception. */
int frames_put(FramesObject *self, PyObject *data, Py_ssize_t start, Py_ssize_t end, Py_ssize_t count);
int frames_put_bare(FramesObject *self, PyObject *data, Py_ssize_t start, Py_ssize_t end);

/* framing.c, frame_decoder.c: from the bytes of a connection to frames */
typedef struct {
    int size;        /* of the bytes before a frame; 0 where no frame can begin */
    uint64_t length; /* of what follows them */
    int missing;     /* bytes until that is known, at least; 0 if it is */
} FrameHead;
typedef struct {
    void (*read)(Position at, Position end, FrameHead *head);
    int is_kept; /* whether the head is a part of the frame */
    uint64_t length_max;
    const char *too_large; /* the text of the error, with a place for the length or without */
} Framing;
extern const Framing iproto_framing, tarantool_15_framing;
typedef struct {
    PyObject_HEAD
    const Framing *framing;
    PyObject *rest; /* bytes that were not cut yet, from `position` on; NULL for none */
    Py_ssize_t position;
    PyObject *part; /* bytes of the last frame, of which `missing` more must come, at least; NULL for none */
    Py_ssize_t part_size, missing;
    uint64_t largest, max_frame;
    Py_ssize_t at_once;
} FrameDecoder;
extern PyTypeObject FrameDecoder_Type, FrameDecoder15_Type;
/* Append the frames that are complete now. They return -1 with an exception. */
int decoder_feed(FrameDecoder *self, PyObject *data, FramesObject *frames);
int decoder_cut_more(FrameDecoder *self, FramesObject *frames);
/* How many whole frames with usual lengths `data` is, if nothing is held; 0 if it is something else, or more than may be
 * cut out at once. */
Py_ssize_t decoder_count(const FrameDecoder *self, PyObject *data);

/* connection.c */
extern PyTypeObject Connection_Type;
typedef struct {
    PyObject_HEAD
    ServerObject *server;
    Output *output;
    FrameDecoder *decoder;                          /* these may be NULL */
    PyObject *fault, *handle, *transport, *session; /* the session is a SessionState */
    Py_ssize_t held_size, in_flight;
    char has_output, has_received, has_hurried;
    unsigned char phase, waits; /* a Phase; reasons to wait, of which there may be several */
} ConnectionObject;
enum { WAIT_READER = 1, WAIT_ROOM = 2, WAIT_REQUEST = 4 };
enum { PHASE_SERVING, PHASE_HELD, PHASE_CLOSING, PHASE_DRAINING, PHASE_ENDED }; /* server/connection/states.py */
static inline int is_closing(const ConnectionObject *self)
{
    return self->phase == PHASE_CLOSING || self->phase == PHASE_ENDED;
}
static inline int is_held(const ConnectionObject *self)
{
    return self->phase == PHASE_HELD || self->phase == PHASE_DRAINING;
}
static inline int is_lost(const ConnectionObject *self)
{
    return self->phase == PHASE_DRAINING || self->phase == PHASE_ENDED;
}
int connection_is_behind(const ConnectionObject *self);
int connection_must_hold(const ConnectionObject *self);
static inline int has_handle(const ConnectionObject *self)
{
    if (!self->handle)
        PyErr_SetString(PyExc_AttributeError, "_handle");
    return self->handle != NULL;
}

/* incoming.c; what returns an object returns NULL with an exception */
enum { REQUESTS_AT_ONCE = 4 }; /* so many requests that come together are handled without looking at the time */
PyObject *receive_data(ConnectionObject *self, PyObject *data);
PyObject *handle_frames(ConnectionObject *self, PyObject *const *args, Py_ssize_t count);
void note_served_at_once(ConnectionObject *self);

/* outgoing.c */
PyObject *send_output(ConnectionObject *self);
PyObject *send_bytes(ConnectionObject *self, PyObject *data);
PyObject *send_reply(ConnectionObject *self, PyObject *response);
PyObject *push_frame(ConnectionObject *self, PyObject *frame);
int may_send(PyObject *connection, Py_ssize_t size); /* whether rows may be answered now; -1 with an exception */
PyObject *reply(PyObject *connection, PyObject *manager, PyObject *response);

FUNCTION(native_encode_response);
FUNCTION(native_encode_tuples);
FUNCTION(native_encode_result);
FUNCTION(native_send_outputs);

#endif
