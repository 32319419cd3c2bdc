/* Requests: read, and executed. */
#ifndef IPROTO_SERVER_REQUESTS_H
#define IPROTO_SERVER_REQUESTS_H

#include "../space/space.h"
#include "../wire/wire.h"

/* requests.c */
extern PyTypeObject Request_Type;
enum {
    REQUEST_SELECT = 1, REQUEST_INSERT, REQUEST_REPLACE, REQUEST_UPDATE, REQUEST_DELETE, REQUEST_UPSERT = 9,
    REQUEST_CALL = 10, REQUEST_NOP = 12, REQUEST_PING = 64,
};
enum { REQUEST_TYPE = 0x00, SYNC = 0x01, SCHEMA_VERSION = 0x05, HEADER_KEYS };
enum {
    BODY_SPACE_ID = 0x10, BODY_INDEX_ID, BODY_LIMIT, BODY_OFFSET, BODY_ITERATOR, BODY_INDEX_BASE, BODY_NUMBERS,
    BODY_KEY = 0x20, BODY_TUPLE, BODY_FUNCTION_NAME, BODY_OPS = 0x28,
};
#define BIT(key) ((uint64_t)1 << (key))
int read_header(Position *at, Position end, uint64_t values[HEADER_KEYS]);
/* `read_unsigned`, without a call for the kinds of numbers that requests are made of. */
static inline int read_number(Position *at, Position end, uint64_t *value)
{
    if (*at < end && **at < 0x80) {
        *value = *(*at)++;
        return 1;
    }
    int width = *at < end && **at >= 0xcc && **at <= 0xce ? 1 << (**at - 0xcc) : 0;
    if (width && end - *at > width) {
        *value = big_endian(*at + 1, width);
        *at += 1 + width;
        return 1;
    }
    return read_unsigned(at, end, value);
}
uint64_t required_keys(uint64_t type); /* a bit for each key that a request for rows must have; 0 for other requests */

/* calls.c: what answers requests */
/* What a request has cost at the most, in rough units: a row that is read or changed, or a KiB. After LOOK_AT_TIME of
 * them somebody may have to wait for others, and after code of Python: it is not known what that has done. */
enum { LOOK_AT_TIME = 8 };
int handle_frame(PyObject *handle, PyObject *connection, Position at, Position end); /* the cost; -1 with an exception */
/* Due after the last of several frames of a connection: until then its session's `sync` may be an older one. */
int finish_requests(PyObject *handle); /* -1 with an exception */
enum { COUNTED_TYPES = 128 };
typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *answer;     /* of Python, for all requests */
    PyObject *dispatcher; /* which says what errors are answered, and waits */
    PyObject *calls, *setuid, *box, *manager, *sessions, *catalog;
    unsigned long long counts[COUNTED_TYPES]; /* of requests, by type, since Python has asked */
    PyObject *session; /* of which `sync` is not set yet, or NULL */
    uint64_t sync;
    PyObject *space_key; /* the last number of a space that was asked for, or NULL */
    uint64_t space_number;
} Handle;
extern PyTypeObject Handle_Type;
PyObject *session_of(Handle *self, PyObject *connection); /* borrowed */
int may_everything(PyObject *session, unsigned long privilege);
int schema_version(Handle *self, uint32_t *version);
/* A request of which code of Python hears nothing: counted, and the session's `sync` to be set later. */
int note_request(Handle *self, uint64_t type, PyObject *session, uint64_t sync); /* -1 with an exception */
/* A request that code of Python may look at; not counted. Returns -1 with an exception. */
int begin_request(Handle *self, PyObject *session, uint64_t sync);
void end_request(Handle *self);
PyObject *failed(Handle *self, uint64_t sync, const char *who); /* the answer to the exception */
PyObject *handle_space(Handle *self, uint64_t number);          /* borrowed; NULL, maybe without an exception */

/* row_requests.c, row_selects.c, row_changes.c: requests for rows; NULL, maybe without an exception */
typedef struct {
    uint64_t numbers[BODY_NUMBERS], seen; /* numbers that are not there are 0 */
    Position key, key_end, tuple, tuple_end, operations, operations_end; /* operations: of UPSERT */
} RowBody;
typedef struct {
    uint64_t type, sync;
    uint32_t schema_version;
    const RowBody *body;
    PyObject *connection, *space;
    Key key;
    int found; /* how many rows were read */
} RowRequest;
/* They return 1; 0 where Python has to look, and nothing has changed; -1 with an exception. */
int select_response(RowRequest *request, Response *response); /* of rows as they are in the engine */
int change_response(const RowRequest *request, Response *response); /* the same, and the change is made */

/* Write the response with these rows: 1; 0 where that is for Python; -1 with an exception. */
int answer_rows(const RowRequest *request, Response *response, const PackedRow *rows, int count);

/* Answer a request for rows. Returns its cost; 0 unknown, nothing has changed; -1 with an exception. */
int handle_rows(Handle *self, PyObject *connection, const uint64_t *header, Position at, Position end);

FUNCTION(native_decode_request);
FUNCTION(native_quick_handle);

#endif
