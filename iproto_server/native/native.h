/* What the files of the compiled module share.
 *
 * Everything here is the twin of something in Python, which is the specification. A twin does what is common and
 * leaves the rest to Python: a function that returns NULL without an exception, or 0 for "no", has met something
 * that it does not know, and its caller calls the Python function, which starts over.
 *
 * What comes from clients is read through `at` and `end` only: nothing is looked at before it is known to be there.
 */
#ifndef IPROTO_SERVER_NATIVE_H
#define IPROTO_SERVER_NATIVE_H

#include "reader.h"

#include "../engine/core/block.h"
#include "../engine/core/change.h"
#include "../engine/core/format.h"
#include "../engine/core/update.h"

#include <structmember.h>

static inline void put_big_endian(uint8_t *at, uint64_t value, int width)
{
    for (int place = width; place--; value >>= 8)
        at[place] = (uint8_t)value;
}

/* Write a number in MessagePack's shortest form. Returns the position behind it. */
enum { UNSIGNED_SIZE_MAX = 9 };
static inline uint8_t *put_unsigned(uint8_t *at, uint64_t value)
{
    if (value < 0x80) {
        *at = (uint8_t)value;
        return at + 1;
    }
    int power = (value >= 0x100) + (value >= 0x10000) + (value >= 0x100000000); /* of two: the width */
    *at = (uint8_t)(0xcc + power);
    put_big_endian(at + 1, value, 1 << power);
    return at + 1 + (1 << power);
}

#define FUNCTION(name) PyObject *name(PyObject *module, PyObject *const *args, Py_ssize_t count)

/* unpack.c */
PyObject *unpack(PyObject *raw);       /* falls back on codec.unpack */
PyObject *unpack_array(PyObject *raw); /* the same; a list */

/* writer.c */
typedef struct {
    uint8_t *data;
    Py_ssize_t size, room;
    PyObject *bytes; /* which `data` is in, once `first` is too small; else NULL */
    uint8_t first[1024];
} Buffer;

void buffer_init(Buffer *buffer);
void buffer_free(Buffer *buffer);
int buffer_reserve(Buffer *buffer, Py_ssize_t room); /* 0; -1 with an exception */
void buffer_hold(Buffer *buffer, PyObject *bytes); /* instead of what it holds; what is written goes elsewhere */
PyObject *buffer_take(Buffer *buffer); /* all of it as bytes, and the buffer is empty; NULL with an exception */
int buffer_make_room(Buffer *buffer, Py_ssize_t count); /* for some more bytes; -1 with an exception */

/* Append some bytes, and return where they begin; NULL with an exception. */
static inline uint8_t *buffer_grow(Buffer *buffer, Py_ssize_t count)
{
    if (count > buffer->room - buffer->size && buffer_make_room(buffer, count) < 0)
        return NULL;
    uint8_t *at = buffer->data + buffer->size;
    buffer->size += count;
    return at;
}

int write_map_header(Buffer *buffer, uint64_t pairs);
int write_value(Buffer *buffer, PyObject *value, int depth); /* 1; 0 unknown; -1 with an exception */
int write_unsigned(Buffer *buffer, uint64_t value);

/* Objects of a type that are kept for the next ones, since making and dropping them is what costs. Their type is a
 * static one, and they take no part in garbage collection. */
#ifdef __SANITIZE_ADDRESS__
#define FREE_MAX 0 /* so that uses of what was freed are found */
#else
#define FREE_MAX 128
#endif
typedef struct {
    int count;
    PyObject *objects[FREE_MAX + 1];
} FreeList;

/* A new object, of which only the head is set; NULL with an exception. */
static inline PyObject *free_list_new(FreeList *list, PyTypeObject *type)
{
    return list->count ? PyObject_Init(list->objects[--list->count], type) : _PyObject_New(type);
}

static inline void free_list_drop(FreeList *list, PyObject *object)
{
    if (list->count < FREE_MAX)
        list->objects[list->count++] = object;
    else
        PyObject_Free(object);
}

/* tuples.c */
extern PyTypeObject Raw_Type, Tuple_Type;
typedef struct {
    PyObject_HEAD
    PyObject *raw;
} RawObject;
typedef struct {
    RawObject base;
    PyObject *format, *fields; /* fields NULL: not decoded yet */
    char peeks;                /* how many more fields may be decoded without the others */
} TupleObject;
enum { PEEKS_MAX = 3 };
PyObject *tuple_fields(TupleObject *self); /* borrowed */
PyObject *tuple_transform(PyObject *self, PyObject *const *args, Py_ssize_t count); /* tuple_transform.c */
PyObject *new_tuple(PyObject *raw, PyObject *format, PyObject *fields); /* fields may be NULL */
PyObject *stored_tuple(PyObject *raw, PyObject *format); /* the same of bytes that are known to be well-formed */
PyObject *tuple_dict(TupleObject *self, int names_only); /* a new dict; NULL with an exception */

/* tuple_map.c */
extern PyTypeObject TupleMap_Type;
PyObject *new_tuple_map(PyObject *row, int names_only);
int write_tuple_map(Buffer *buffer, PyObject *map); /* returns as `write_value` */

/* slots.c */
typedef struct {
    const char *name;
    Py_ssize_t offset;
} Slot;
int find_slots(PyObject *type, Slot *slots, int count); /* fills in the offsets; -1 with an exception */
/* A class of a module that may be imported now, with the offsets of its slots; NULL with an exception. */
PyTypeObject *find_class(const char *module, const char *name, Slot *slots, int count);

/* Borrowed; NULL, without an exception, where nothing was set. */
static inline PyObject *get_slot(PyObject *self, const Slot *slot)
{
    return *(PyObject **)((char *)self + slot->offset);
}

static inline void set_slot(PyObject *self, const Slot *slot, PyObject *value)
{
    PyObject **place = (PyObject **)((char *)self + slot->offset);
    Py_XSETREF(*place, Py_NewRef(value));
}

/* known.c: the Python classes that the road of a request goes through; NULL until there is one */
enum {
    KNOWN_SPACE, KNOWN_MANAGER, KNOWN_COMMITTED, KNOWN_LOG, KNOWN_SESSION, KNOWN_SESSIONS, KNOWN_CREDENTIALS,
    KNOWN_PROCEDURE, KNOWN_WAITER, KNOWN_CONNECTION, KNOWN_BATCH, KNOWN_DECODER, KNOWN_CATALOG,
    KNOWN_CALLS, KNOWN_COUNT
};
extern PyTypeObject *known[KNOWN_COUNT];
extern Slot space_id, space_is_temporary, space_is_local;
extern Slot log_mode, log_waiting, log_clock, log_is_failing, log_is_closed;
extern Slot session_id, session_sync, session_credentials, sessions_current, sessions_background;
extern Slot credentials_universe, procedure_name, procedure_function, procedure_is_async;
extern Slot connection_server, connection_output, connection_held_size,
    connection_has_output, connection_is_write_paused, connection_is_closing, connection_in_flight,
    connection_is_held, connection_is_suspended, connection_has_hurried, connection_fault, connection_decoder,
    connection_handle, connection_transport, connection_traffic, connection_has_received, connection_session;
extern Slot catalog_spaces, catalog_schema_version, calls_by_name;
extern Slot batch_connections, batch_is_scheduled;
extern Slot decoder_rest, decoder_buffer, decoder_max_frame;
int know_class(int place); /* -1 with an exception */
int know_classes(void);    /* all of them */

/* commits.c */
int commit(PyObject *manager);    /* -1 with an exception: undone, and ended */
void roll_back(PyObject *manager); /* because of an exception, which goes on unless another one is raised */
void call_handling(PyObject *name, PyObject *const *args, size_t count); /* a method, in the same way */
/* A change that is a transaction by itself, without statements: whether it may be one; its row in the log, of which
 * `data` has yet to be filled; both kept for the write; the same taken back; or, once the change is made, committed.
 * They return -1 with an exception. `log_row_close` is due after `log_row_open`, failed or not. */
typedef struct {
    PyObject *rows;                /* LogRows */
    Py_ssize_t start, place, end;  /* of the row, and of `data` in there */
    uint8_t *data;
} LogRow;
int commits_plainly(PyObject *manager, PyObject *space);
int log_row_open(LogRow *row, PyObject *manager, uint64_t type, PyObject *space, size_t size);
int log_row_append(const LogRow *row, PyObject *manager, PyObject *committed);
void log_row_take_back(const LogRow *row, PyObject *manager);
int log_row_commit(PyObject *manager);
void log_row_close(LogRow *row);

/* log_rows.c: the same for the rows alone, which must be LogRows */
extern PyTypeObject LogRows_Type;
int log_rows_are_empty(PyObject *rows);
void log_rows_begin(PyObject *rows, double timestamp);
int log_rows_open(LogRow *row, PyObject *rows, uint64_t type, uint64_t space_id, Py_ssize_t size);
int log_rows_append(const LogRow *row);
void log_rows_take_back(const LogRow *row);
PyObject *log_rows_part(PyObject *rows, Py_ssize_t start, Py_ssize_t size); /* bytes */

/* committed_change.c: `old` is bytes or None; the new row has `size` bytes at the log row's data */
extern PyTypeObject CommittedChange_Type;
PyObject *new_committed_change(PyObject *space, PyObject *tree, PyObject *old, const LogRow *row, size_t size);

/* stack.c */
int ensure_stack(void); /* -1 with a RecursionError: there is no room to change a row and to undo that */

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

/* keys.c */
extern PyTypeObject RowKey_Type, ClientKey_Type, RowCheck_Type;
PyObject *row_key(PyObject *self, PyObject *fields, PyObject *primary_key); /* fields must be a list */
int row_key_has_tail(PyObject *self); /* whether the primary key is at the end of it */
/* NULL, without an exception, where Python has to look at the key, or to refuse it */
PyObject *client_key(PyObject *self, PyObject *const *values, Py_ssize_t count);
Py_ssize_t client_key_parts(PyObject *self); /* how many parts a whole key has */
int row_fits(PyObject *self, PyObject *fields); /* 0: Python has to look at the row, or to refuse it */
const RowFormat *row_check_format(PyObject *self);
/* The same of a packed row; 0, too: `row_fits` has to look at the fields. `is_whole`: it is known to be well-formed. */
int packed_row_fits(PyObject *self, PyObject *raw, int is_whole);

/* tree.c; keys and values must be bytes. What is returned is a new reference; NULL, maybe with an exception, where there
 * is no such entry. `is_row` is set to whether it is the row of the entry, and not its value. */
extern PyTypeObject Tree_Type;
int tree_object_has(PyObject *tree, PyObject *key);
/* Whether an entry stays as it is if its row becomes `row` (bytes), with the same key. */
int tree_object_keeps(PyObject *tree, PyObject *key, PyObject *row);
/* The encoded key of a packed row in a primary index; of a client's packed key, of which `count` becomes the number of
 * values. NULL, maybe with an exception, where these need more than the core knows. */
PyObject *tree_object_row_key(PyObject *tree, PyObject *raw);
PyObject *tree_object_client_key(PyObject *tree, Position key, Position end, Py_ssize_t *count);
PyObject *tree_object_get(PyObject *tree, PyObject *key); /* the value */
PyObject *tree_object_first_with(PyObject *tree, PyObject *prefix, int *is_row);
PyObject *tree_object_last_with(PyObject *tree, PyObject *prefix, int *is_row);
/* The rows that an iterator finds, a list of bytes; NULL, maybe with an exception, where Python has to look for them:
 * there are more than TREE_SELECT_MAX, say. `prefix` is an encoded key, or the beginning of one. */
enum { TREE_SELECT_MAX = 1000 };
typedef enum { TREE_EQ, TREE_REQ, TREE_ALL, TREE_LT, TREE_LE, TREE_GE, TREE_GT, TREE_ITERATORS } TreeIterator;
PyObject *tree_object_select(PyObject *tree, int iterator, PyObject *prefix, size_t offset, size_t limit);
/* The same without copies: how many, of TREE_SELECT_MAX at most, or TREE_ROWS_UNKNOWN. They are valid until a row
 * changes. */
typedef struct {
    const uint8_t *data;
    size_t size;
} PackedRow;
enum { TREE_ROWS_UNKNOWN = -1 };
int tree_find_rows(Tree *tree, int iterator, const uint8_t *prefix, size_t size, size_t offset, size_t limit,
                   PackedRow *rows);
/* The encoded primary key and the row of a key in a tree that refers to rows, both NULL where there is none. Returns 1;
 * 0 for other trees; -1 with an exception. */
int tree_object_get_both(PyObject *tree, PyObject *key, PyObject **primary_key, PyObject **row);
/* Change a row in a primary index and the secondary ones that refer to it; `row` is bytes or None. Returns as
 * `change_row` of the engine, with an exception for CHANGE_NO_MEMORY. */
int tree_object_change(PyObject *primary, PyObject *const *trees, const int *is_unique, int count, PyObject *key,
                       PyObject *row);
int tree_object_set(PyObject *tree, PyObject *key, PyObject *value);
Tree *tree_object_core(PyObject *tree);    /* the engine's tree; NULL for other objects */
Tree *tree_object_of_rows(PyObject *tree); /* the same, if it is one of rows */
Tree *tree_object_with_views(PyObject *tree); /* the same, if it has rows or pairs of its own */
/* What the engine changes of trees; 0 if they are not all of references to the rows of the primary index. */
int tree_objects_changed(PyObject *primary, PyObject *const *trees, const int *is_unique, int count,
                         ChangedIndex *indexes);
/* Append rows of a block to a primary index. Returns how many, fewer where a row needs a closer look, or its key is not
 * above all others; -1 with an exception. */
Py_ssize_t tree_object_append(PyObject *tree, const uint8_t *block, const BlockRow *rows, size_t count);
int tree_object_remove(PyObject *tree, PyObject *key);

/* tree_view.c */
extern PyTypeObject TreeView_Type;

/* changes.c */
extern PyTypeObject QuickIndex_Type;
typedef struct {
    PyObject_HEAD
    PyObject *tree, *key_of, *encode_key;
    int is_unique, is_exact; /* exact: unique, and no part may be nil */
    int is_ordered;          /* whether more may be asked for than a whole key */
} Quick;
int prepare_changes(void); /* -1 with an exception */
Quick *quick_of(PyObject *index); /* borrowed; NULL, without an exception, where Python has to do the work */
/* Change a row's entries in all indexes, or in none. `old` and `new` are lists of fields or None, `row` what the
 * primary index is to hold or None. Returns None, or the index that refuses the row; NULL as functions below. */
PyObject *change_entries(Quick *primary, PyObject *secondaries, PyObject *key, PyObject *old, PyObject *new,
                         PyObject *row);
/* The same where all indexes hold rows or refer to them: nothing of the rows is decoded. */
PyObject *change_packed(Quick *primary, PyObject *secondaries, PyObject *key, PyObject *row);
/* What the engine changes of secondary indexes; 0 where Python has to do the work. */
int changed_indexes(Quick *primary, PyObject *secondaries, ChangedIndex *indexes);

/* two_way_dict.c */
extern PyTypeObject DictUndo_Type;

/* durations.c */
extern PyTypeObject Durations_Type;

/* methods.c: compiled methods of Python's classes */
typedef struct {
    PyMethodDef definition;
    PyObject *python; /* what the method has taken the place of */
} Method;
typedef struct {
    const char *name;
    int (*prepare)(PyTypeObject *type); /* is told the class; -1 with an exception */
    Method *methods;
    int count;
} MethodTable;
extern MethodTable stored_space_methods, read_space_methods, space_face_methods, index_face_methods,
    spaces_facade_methods, indexes_facade_methods, box_methods, sessions_methods, connection_methods,
    two_way_dict_methods;

#define METHOD_FUNCTION(name)                                                                                  \
    static PyObject *name(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
#define METHOD_ENTRY(name, function, text)                                                                     \
    {{name, (PyCFunction)(void (*)(void))function, METH_FASTCALL | METH_KEYWORDS, text}, NULL}

PyObject *take_over_method(PyObject *module, PyObject *args);
PyObject *call_python(const Method *method, PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names);

/* What a compiled method answers: what it has found, or what the Python method says where it has found nothing out. */
#define ANSWER(found, method)                                                                                  \
    do {                                                                                                       \
        PyObject *answer = (found);                                                                            \
        return answer || PyErr_Occurred() ? answer : call_python(&(method), self, args, count, names);         \
    } while (0)

/* faces.c: the engine's indexes of a procedure's space by number, borrowed, NULL where Python has to look; and a new
 * facade for one of them, NULL, maybe without an exception */
PyObject *facade_indexes(PyObject *space);
PyObject *new_index_facade(PyObject *space, PyObject *number);

/* A client's key: its values; or, if `packed` is not NULL, the packed array of them. */
typedef struct {
    PyObject *const *values;
    Py_ssize_t count;
    Position packed, end;
} Key;
#define KEY_OF_LIST(list) &(Key){((PyListObject *)(list))->ob_item, PyList_GET_SIZE(list), NULL, NULL}

/* spaces.c, updates.c, lookups.c: the rows of a MemtxSpace.
 *
 * All of these return NULL without an exception where they do not know what to do: then nothing was changed, and the
 * method of the same name is to be called. With an exception, that is what comes of the change. `space` may be
 * anything; `row` is a Tuple, `operations` what parse_operations answers, `index_id` an int. Rights, and whether the
 * space was dropped, are the caller's business. Without a running transaction a change is one of its own. */
extern PyTypeObject *stored_space_type; /* MemtxSpace itself: what inherits from it is unknown here */
enum {
    SPACE_FORMAT, SPACE_PRIMARY, SPACE_INDEXES, SPACE_SECONDARIES, SPACE_MULTIKEYS, SPACE_BY_FIELD,
    SPACE_PRIMARY_FIELDS, SPACE_ATTACHED, SPACE_DROPPED, SPACE_DOUBLES, SPACE_TRANSACTIONS, SPACE_BSIZE,
    SPACE_ON_REPLACE, SPACE_BEFORE_REPLACE, SPACE_SYSTEM_HOOK, SPACE_SLOTS
};
extern Slot space_slots[SPACE_SLOTS];
enum {
    MANAGER_STATEMENTS, MANAGER_READ_ONLY, MANAGER_INTERACTIVE, MANAGER_TAKE_OUT, MANAGER_ON_COMMIT,
    MANAGER_ON_ROLLBACK, MANAGER_HAS_LOGGED, MANAGER_UNWRITTEN, MANAGER_IS_WRITING, MANAGER_IS_WRITE_DUE,
    MANAGER_WRITE_SOON, MANAGER_JOURNAL, MANAGER_ON_CHANGE, MANAGER_NESTING, MANAGER_SLOTS
};
extern Slot manager_slots[MANAGER_SLOTS];
#define SPACE(space, slot) get_slot(space, space_slots + SPACE_##slot)
#define MANAGER(manager, slot) get_slot(manager, manager_slots + MANAGER_##slot)
PyObject *space_manager(PyObject *space);  /* borrowed: its TransactionManager; NULL for other things */
int space_is_usual(PyObject *space); /* whether a change of a row is nothing but that, and may be made */
int space_row_fits(PyObject *space, PyObject *row); /* whether a Tuple is known to fit; -1 with an exception */
int space_packed_row_fits(PyObject *space, PyObject *raw); /* the same of bytes that are known to be well-formed */
/* The encoded primary key of a Tuple that fits; NULL, maybe with an exception, where Python has to look at it. */
PyObject *space_fitting_row_key(PyObject *space, Quick *primary, PyObject *row);
PyObject *format_names(PyObject *format); /* borrowed: the fields' numbers, a dict; NULL for no Format */
PyObject *format_packed_names(PyObject *format); /* borrowed: a tuple; NULL for no Format */
int prepare_updates(void);
const RowFormat *space_row_format(PyObject *space); /* NULL where Python checks rows */
PyObject *space_triggers(PyObject *space); /* borrowed: the `on_replace` functions, a tuple, or NULL */

PyObject *space_store(PyObject *space, PyObject *row, int is_insert); /* the row */
/* Operations of requests, packed, and as procedures give them: [("=", 1, "T")]. */
typedef struct {
    Position at, end;
    uint32_t index_base;
    PyObject *names; /* the fields' numbers, a dict, or NULL */
} PackedOperations;
PyObject *space_update(PyObject *space, PyObject *index_id, const Key *key,
                       PyObject *operations); /* the new row as a Tuple, or None */
PyObject *space_update_packed(PyObject *space, PyObject *index_id, const Key *key,
                              const PackedOperations *packed); /* the same */
PyObject *space_update_given(PyObject *space, PyObject *index_id, const Key *key,
                             PyObject *operations); /* the same */
PyObject *space_upsert(PyObject *space, PyObject *row, PyObject *operations); /* None */
PyObject *space_upsert_packed(PyObject *space, PyObject *row, const PackedOperations *packed); /* None */
PyObject *space_upsert_given(PyObject *space, PyObject *row, PyObject *operations); /* None */
/* For changes of packed rows: what `update_row` needs, the secondary indexes whose entries may change (a new reference),
 * and whether the primary key is known to stay. These return 0 or NULL, maybe with an exception, where Python has to see
 * to it. */
int read_packed_operations(UpdateOperations *operations, const PackedOperations *packed);
int space_doubles(PyObject *space, UpdateDoubles *doubles);
PyObject *updated_indexes(PyObject *space, const UpdatedRow *updated);
int update_keeps_key(PyObject *space, const UpdatedRow *updated);
/* The old row as a Tuple, or None. */
PyObject *space_delete(PyObject *space, PyObject *index_id, const Key *key);
/* The packed row as bytes, or None. */
PyObject *space_find(PyObject *space, PyObject *index_id, const Key *key);
PyObject *space_first(PyObject *space, PyObject *index_id, const Key *key);
PyObject *space_last(PyObject *space, PyObject *index_id, const Key *key);
PyObject *space_select(PyObject *space, PyObject *index_id, PyObject *iterator, PyObject *offset, PyObject *limit,
                       const Key *key); /* a list of bytes */
/* The encoded primary key and the row of a whole key, new references; the row is NULL where there is none, and the
 * key then may be. Returns 1; 0 unknown; -1 with an exception. */
int space_locate(PyObject *space, PyObject *index_id, const Key *key,
                 PyObject **primary_key, PyObject **row);

/* statements.c: the change of a row, of which a Tuple or None is there, and a Tuple or None is to be. The space must
 * be usual. Returns 1; 0 unknown, nothing was changed; -1 with an exception. */
int space_change(PyObject *space, PyObject *key, PyObject *old, PyObject *new, PyObject *secondaries);
int prepare_statements(void);

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
Quick *space_index(PyObject *space, uint64_t index_id, int *is_primary); /* lookups.c; borrowed */
/* lookups.c: the encoded key of a request, of so many values; 1, or 0 unknown, or -1 with an exception */
int request_key(Quick *quick, const Key *key, KeyBuffer *encoded, int *values);

/* Write the response with these rows: 1; 0 where that is for Python; -1 with an exception. */
int answer_rows(const RowRequest *request, Response *response, const PackedRow *rows, int count);

/* Answer a request for rows. Returns its cost; 0 unknown, nothing has changed; -1 with an exception. */
int handle_rows(Handle *self, PyObject *connection, const uint64_t *header, Position at, Position end);

/* module.c: the Python functions that the compiled ones fall back on, in the order of the table there. */
enum {
    PYTHON_UNPACK, PYTHON_PACK, PYTHON_DECODE_REQUEST, PYTHON_ENCODE_TUPLES, PYTHON_ENCODE_RESULT, PYTHON_FIRST_KEY,
    PYTHON_CHANGE_ENTRIES, PYTHON_CARRY_OUT_UNTIL, PYTHON_PACK_MAP, PYTHON_COUNT
};
extern PyObject *python_functions[PYTHON_COUNT];

FUNCTION(native_unpack);
FUNCTION(native_pack);
FUNCTION(native_pack_map);
FUNCTION(native_decode_request);
FUNCTION(native_cut_frames);
FUNCTION(native_encode_tuples);
FUNCTION(native_encode_result);
FUNCTION(native_encode_change);
FUNCTION(native_row_key);
FUNCTION(native_client_key);
FUNCTION(native_row_check);
FUNCTION(native_assign);
FUNCTION(native_apply_request);
FUNCTION(native_first_key);
FUNCTION(native_change_entries);
FUNCTION(native_quick_index);
FUNCTION(native_quick_handle);
FUNCTION(native_carry_out_until);
FUNCTION(native_send_outputs);
FUNCTION(native_with_head);
FUNCTION(native_append_rows);
FUNCTION(native_replay_rows);
FUNCTION(native_ensure_stack);
FUNCTION(native_set_memory_limit);
FUNCTION(native_memory_allows);
FUNCTION(native_memory_usage);
FUNCTION(native_release_free_memory);
FUNCTION(native_memory_outside);

#endif
