/* Bytes that arrive, and responses that leave. */
#ifndef IPROTO_SERVER_WIRE_H
#define IPROTO_SERVER_WIRE_H

#include "../module/module.h"
#include "../space/space.h"

/* rows.c */
/* Append a response to a buffer. They return 1; 0 where that is for Python; -1 with an exception; then nothing was
 * appended. */
int write_ok(Buffer *buffer, uint64_t sync, uint32_t version);
int write_rows(Buffer *buffer, uint64_t sync, uint32_t version, PyObject *const *raws, Py_ssize_t count);
int write_packed_rows(Buffer *buffer, uint64_t sync, uint32_t version, const PackedRow *rows, int count);
int write_result(Buffer *buffer, uint64_t sync, uint32_t version, PyObject *result);
/* Write what is in front of the tuple or key, and return the position behind it. */
uint8_t *put_change_head(uint8_t *at, uint64_t type, uint64_t replica_id, uint64_t lsn, double timestamp, uint64_t space);
enum { CHANGE_HEAD_MAX = 17 + 4 * UNSIGNED_SIZE_MAX };
PyObject *first_key(PyObject *row); /* NULL, maybe without an exception */

/* outgoing.c */
extern PyTypeObject Traffic_Type, Output_Type;
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

/* frames.c: frames that wait. Each is given as the place where it begins and ends; what is returned, a new reference,
 * keeps its bytes there. */
enum { FRAME_HEAD = 5 }; /* of a usual length */
typedef struct FramesObject FramesObject;
extern PyTypeObject Frames_Type;
FramesObject *new_frames(void);
Py_ssize_t frames_left(const FramesObject *self);
PyObject *frames_take(FramesObject *self, Position *at, Position *end); /* one must be left */
/* Put so many frames, which are these bytes with usual lengths before them, behind the others; -1 with an exception. */
int frames_put(FramesObject *self, PyObject *data, Py_ssize_t start, Py_ssize_t end, Py_ssize_t count);

/* incoming.c */
PyObject *receive_data(PyObject *connection, PyObject *data);

FUNCTION(native_cut_frames);
FUNCTION(native_encode_tuples);
FUNCTION(native_encode_result);
FUNCTION(native_carry_out_until);
FUNCTION(native_send_outputs);

#endif
