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

/* outgoing.c */
extern PyTypeObject Traffic_Type;
typedef struct {
    PyObject_HEAD
    long long received, sent;
} TrafficObject;
static inline int is_plain_connection(PyObject *connection)
{
    return Py_TYPE(connection) == known[KNOWN_CONNECTION];
}
/* Borrowed; NULL where something else counts. */
static inline TrafficObject *traffic_of(PyObject *connection)
{
    PyObject *traffic = get_slot(connection, &connection_traffic);
    return traffic && Py_TYPE(traffic) == &Traffic_Type ? (TrafficObject *)traffic : NULL;
}
PyObject *send_output(PyObject *connection);           /* these two: NULL, maybe without an exception */
PyObject *send_bytes(PyObject *connection, PyObject *data);
Py_ssize_t unsent_size(PyObject *connection); /* of what it has answered; -1 with an exception */
int may_send(PyObject *connection, Py_ssize_t size); /* whether rows may be answered now; -1 with an exception */
PyObject *reply(PyObject *connection, PyObject *manager, PyObject *response);
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

/* incoming.c */
enum { REQUESTS_AT_ONCE = 4 }; /* so many requests that come together are handled without looking at the time */
PyObject *receive_data(PyObject *connection, PyObject *data);

FUNCTION(native_encode_response);
FUNCTION(native_encode_tuples);
FUNCTION(native_encode_result);
FUNCTION(native_carry_out_until);
FUNCTION(native_send_outputs);

#endif
