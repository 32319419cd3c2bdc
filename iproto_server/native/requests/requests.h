/* Requests: read, and executed. */
#ifndef IPROTO_SERVER_REQUESTS_H
#define IPROTO_SERVER_REQUESTS_H

#include "../sessions/sessions.h"
#include "../space/space.h"
#include "../wire/wire.h"

/* The numbers of the protocol. */
enum {
    REQUEST_SELECT = 1, REQUEST_INSERT, REQUEST_REPLACE, REQUEST_UPDATE, REQUEST_DELETE, REQUEST_CALL_16, REQUEST_AUTH,
    REQUEST_EVAL, REQUEST_UPSERT, REQUEST_CALL, REQUEST_EXECUTE, REQUEST_NOP, REQUEST_PREPARE, REQUEST_BEGIN,
    REQUEST_COMMIT, REQUEST_PING = 64, REQUEST_ID = 73, REQUEST_WATCH, REQUEST_UNWATCH, REQUEST_WATCH_ONCE = 77,
};
enum { HEADER_TYPE = 0x00, HEADER_SYNC = 0x01, HEADER_SCHEMA_VERSION = 0x05, HEADER_STREAM_ID = 0x0a };
enum {
    BODY_SPACE_ID = 0x10, BODY_INDEX_ID, BODY_LIMIT, BODY_OFFSET, BODY_ITERATOR, BODY_INDEX_BASE,
    BODY_FETCH_POSITION = 0x1f, BODY_KEY, BODY_TUPLE, BODY_FUNCTION_NAME, BODY_USER_NAME,
    BODY_EXPR = 0x27, BODY_OPS, BODY_TUPLE_META = 0x2a, BODY_AFTER_POSITION = 0x2e, BODY_AFTER_TUPLE,
    BODY_SQL_TEXT = 0x40, BODY_SQL_BIND, BODY_STMT_ID = 0x43, BODY_VERSION = 0x54, BODY_FEATURES, BODY_TIMEOUT,
    BODY_EVENT_KEY, BODY_TXN_ISOLATION = 0x59, BODY_AUTH_TYPE = 0x5b, BODY_SPACE_NAME = 0x5e, BODY_INDEX_NAME,
    BODY_KEYS
};
#define BIT(key) ((uint64_t)1 << (key))

/* body.c */
typedef enum {
    KIND_NONE, /* what has no meaning */
    KIND_ANY,
    KIND_UINT, KIND_INT, KIND_FLOAT, KIND_DOUBLE, KIND_STR, KIND_BIN, KIND_ARRAY, KIND_MAP, KIND_NIL, KIND_BOOL, KIND_EXT,
} Kind;
typedef struct {
    Position at, end;
} Span;
static inline uint64_t number_at(Position at) /* of KIND_UINT */
{
    return *at < 0x80 ? *at : big_endian(at + 1, 1 << (*at - 0xcc));
}
typedef struct {
    uint64_t type, sync, schema_version, stream_id;
} Header;
/* Read a header, and go past it. Returns 0 if it is none: `sync` then is the number to answer with. */
int read_header(Position *at, Position end, Header *header);

/* What a type of requests has in its body. */
enum { REQUIRED_MAX = 3 };
typedef struct {
    const uint8_t *kinds; /* of the values, by key; values of KIND_NONE are ignored */
    int has_any_keys;     /* whether keys may be anything; those that are no unsigned numbers are ignored then */
    const char *absent;   /* the error of a request without a body; NULL if it needs none */
    const char *refused;  /* the error of a body that is no map, or has a value of another kind */
    uint8_t required[REQUIRED_MAX]; /* keys, in the order in which missing ones are reported */
} BodyRule;
const BodyRule *body_rule(uint8_t type); /* NULL for a type whose body has no meaning */
int is_row_request(uint8_t type);
typedef struct {
    uint64_t seen[2]; /* a bit for each key that is there */
    Span values[BODY_KEYS];
} Body;
static inline int body_has(const Body *body, int key)
{
    return body->seen[key / 64] >> key % 64 & 1;
}
static inline Span body_span(const Body *body, int key) /* NULLs if it is not there */
{
    return body_has(body, key) ? body->values[key] : (Span){NULL, NULL};
}
const char *read_body(const BodyRule *rule, Position at, Position end, Body *body); /* the text of an error, or NULL */
int missing_key(const BodyRule *rule, const Body *body); /* the first required key that is not there; 0 for none */
uint64_t body_number(const Body *body, int key);         /* 0 if there is none; values of KIND_UINT only */
int is_value(Position at, Position end);                 /* whether this is exactly one well-formed value */

/* decoding.c */
extern PyTypeObject Request_Type;

/* procedures.c: base classes of Procedure, Calls and Waiter */
extern PyTypeObject Procedure_Type, Procedures_Type, PendingResult_Type;
typedef struct {
    PyObject_HEAD
    PyObject *name, *function;
    char is_async, is_autonomous; /* autonomous: not called as one transaction */
    unsigned int packed; /* bits of the arguments that stay packed, which are Raw */
} ProcedureObject;
typedef struct {
    PyObject_HEAD
    PyObject *by_name;
} ProceduresObject;
/* The name in the body of a CALL, as `read_value` reads it: a new reference. */
PyObject *read_procedure_name(Position *at, Position end);
/* The procedure of that name, if there is one that is not async; a new reference, NULL, maybe with an exception. */
ProcedureObject *find_procedure(const ProceduresObject *self, PyObject *name);

/* fast_path.c: what answers requests */
/* What a request has cost at the most, in rough units: a row that is read or changed, or a KiB. After LOOK_AT_TIME of
 * them somebody may have to wait for others, and after code of Python: it is not known what that has done. */
enum { LOOK_AT_TIME = 8 };
int handle_frame(PyObject *handle, PyObject *connection, Position at, Position end); /* the cost; -1 with an exception */
/* Due after the last of several frames of a connection: until then its session's `sync` may be an older one. */
void finish_requests(PyObject *handle);
enum { COUNTED_TYPES = 128 };
typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *answer;     /* of Python, for all requests */
    PyObject *dispatcher; /* encodes errors, and answers calls that wait */
    PyObject *setuid, *box, *manager;
    ProceduresObject *procedures;
    SessionsObject *sessions;
    SpaceTable *catalog;
    unsigned long long counts[COUNTED_TYPES]; /* of requests, by type, since Python has asked */
    SessionObject *session; /* of which `sync` is not set yet, or NULL */
    uint64_t sync;
} FastPath;
extern PyTypeObject FastPath_Type;
SessionObject *session_of(FastPath *self, PyObject *connection); /* borrowed */
static inline uint32_t schema_version(const FastPath *self)
{
    return (uint32_t)self->catalog->schema_version;
}
/* A request of which code of Python hears nothing: counted, and the session's `sync` to be set later. */
void note_request(FastPath *self, uint64_t type, SessionObject *session, uint64_t sync);
/* A request that code of Python may look at; not counted. */
void begin_request(FastPath *self, SessionObject *session, uint64_t sync);
void end_request(FastPath *self);

/* calls.c */
int prepare_calls(void); /* -1 with an exception */
/* Answer a CALL. Returns its cost; 0 unknown, nothing has changed; -1 with an exception. */
int handle_call(FastPath *self, PyObject *connection, uint64_t sync, Position at, Position end);
PyObject *failed(FastPath *self, uint64_t sync, const char *who); /* the answer to the exception */

/* row_requests.c, row_selects.c, row_changes.c: requests for rows; NULL, maybe without an exception */
typedef struct {
    uint64_t type, sync;
    uint32_t schema_version, space_id, index_id, limit, offset, iterator, index_base;
    Span tuple, operations; /* operations: of UPSERT */
    PyObject *connection, *space;
    Key key;
    int found; /* how many rows were read */
} RowRequest;
enum { SHORT_KEY = 4096 }; /* bytes: a longer key is that of no row */
/* They return 1; 0 where Python has to look, and nothing has changed; -1 with an exception. */
int select_response(RowRequest *request, Response *response); /* of rows as they are in the engine */
int change_response(const RowRequest *request, Response *response); /* the same, and the change is made */

/* Write the response with these rows. Returns 1; -1 with an exception. */
int answer_rows(const RowRequest *request, Response *response, const PackedRow *rows, int count);

/* Answer a request for rows. Returns its cost; 0 unknown, nothing has changed; -1 with an exception. */
int handle_rows(FastPath *self, PyObject *connection, const Header *header, Position at, Position end);

FUNCTION(native_decode_request);

#endif
