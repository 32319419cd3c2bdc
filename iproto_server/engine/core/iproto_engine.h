/* The public API of the engine: spaces, indexes, rows, transactions and cursors, without Python.
 *
 * docs/ENGINE-API.md has an example, and the rules that concern several functions.
 *
 *  - Rows, keys and update operations are MessagePack. A row and a key are arrays.
 *  - Fields and parts of keys count from 0.
 *  - A function that fails returns -1 or NULL; iproto_error_code() and iproto_error_message() then say why. A failed
 *    function has changed nothing. NULL for a required pointer is an error.
 *  - All engines of a process share one allocator and one memory budget. One thread at a time may call; in the server's
 *    process it is the one that holds the interpreter's lock.
 */
#ifndef IPROTO_ENGINE_IPROTO_ENGINE_H
#define IPROTO_ENGINE_IPROTO_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The minor version grows with additions, the major one with incompatible changes. */
#define IPROTO_ENGINE_VERSION_MAJOR 1
#define IPROTO_ENGINE_VERSION_MINOR 0
#define IPROTO_ENGINE_VERSION ((uint32_t)IPROTO_ENGINE_VERSION_MAJOR << 16 | IPROTO_ENGINE_VERSION_MINOR)

#if defined(__GNUC__)
#define IPROTO_API __attribute__((visibility("default")))
#else
#define IPROTO_API
#endif

/* The version that is linked, to compare with IPROTO_ENGINE_VERSION. */
IPROTO_API uint32_t iproto_engine_version(void);

/* -- errors -- */

/* Tarantool's numbers. */
typedef enum {
    IPROTO_ER_NONE = 0,
    IPROTO_ER_ILLEGAL_PARAMS = 1,
    IPROTO_ER_MEMORY_ISSUE = 2,
    IPROTO_ER_TUPLE_FOUND = 3,
    IPROTO_ER_UNSUPPORTED = 5,
    IPROTO_ER_CREATE_SPACE = 9,
    IPROTO_ER_SPACE_EXISTS = 10,
    IPROTO_ER_INDEX_TYPE = 13,
    IPROTO_ER_MODIFY_INDEX = 14,
    IPROTO_ER_KEY_PART_TYPE = 18,
    IPROTO_ER_EXACT_MATCH = 19,
    IPROTO_ER_INVALID_MSGPACK = 20,
    IPROTO_ER_TUPLE_NOT_ARRAY = 22,
    IPROTO_ER_FIELD_TYPE = 23,
    IPROTO_ER_INDEX_PART_TYPE_MISMATCH = 24,
    IPROTO_ER_UPDATE_SPLICE = 25,
    IPROTO_ER_UPDATE_ARG_TYPE = 26,
    IPROTO_ER_FORMAT_MISMATCH_INDEX_PART = 27,
    IPROTO_ER_UNKNOWN_UPDATE_OP = 28,
    IPROTO_ER_UPDATE_FIELD = 29,
    IPROTO_ER_KEY_PART_COUNT = 31,
    IPROTO_ER_NO_SUCH_INDEX_ID = 35,
    IPROTO_ER_NO_SUCH_SPACE = 36,
    IPROTO_ER_NO_SUCH_FIELD_NO = 37,
    IPROTO_ER_EXACT_FIELD_COUNT = 38,
    IPROTO_ER_FIELD_MISSING = 39,
    IPROTO_ER_WAL_IO = 40,
    IPROTO_ER_MORE_THAN_ONE_TUPLE = 41,
    IPROTO_ER_MULTISTATEMENT_TRANSACTION = 54,
    IPROTO_ER_ITERATOR_TYPE = 72,
    IPROTO_ER_ACTIVE_TRANSACTION = 79,
    IPROTO_ER_CANT_UPDATE_PRIMARY_KEY = 94,
    IPROTO_ER_UPDATE_INTEGER_OVERFLOW = 95,
    IPROTO_ER_MEMTX_MAX_TUPLE_SIZE = 110,
    IPROTO_ER_NO_TRANSACTION = 114,
    IPROTO_ER_WRONG_SPACE_FORMAT = 141,
    IPROTO_ER_NO_SUCH_INDEX_NAME = 148,
    IPROTO_ER_SPACE_FIELD_IS_DUPLICATE = 149,
    IPROTO_ER_NULLABLE_PRIMARY = 152,
    IPROTO_ER_INDEX_EXISTS_IN_SPACE = 177,
    IPROTO_ER_NO_SUCH_FIELD_NAME = 201,
} IprotoErrorCode;

/* The last failure in this thread: its number and its text. A call that succeeds leaves them alone. */
IPROTO_API int iproto_error_code(void);
IPROTO_API const char *iproto_error_message(void);

/* -- engines -- */

typedef struct IprotoEngine IprotoEngine;
typedef struct IprotoSpace IprotoSpace;
typedef struct IprotoIndex IprotoIndex;
typedef struct IprotoCursor IprotoCursor;

/* Bytes of a row, or of a value. Those that a function returns belong to the engine, and are valid until the next call
 * that changes rows or spaces, or begins or ends a transaction. */
typedef struct {
    const uint8_t *data;
    size_t size;
} IprotoTuple;

/* Open an engine without spaces. */
IPROTO_API IprotoEngine *iproto_engine_open(void);

/* Free an engine with its spaces, indexes and cursors; an open transaction is not logged. NULL is nothing to free. */
IPROTO_API void iproto_engine_close(IprotoEngine *engine);

/* Set the memory budget of the process, in bytes; SIZE_MAX for none. New rows cannot use the last `reserve` bytes of it.
 * What is there already stays. Errors: ILLEGAL_PARAMS if `reserve` is above the limit. */
IPROTO_API int iproto_engine_set_memory(size_t limit, size_t reserve);

/* Bytes that rows and indexes of the process hold. */
IPROTO_API size_t iproto_engine_memory(void);

/* -- transactions and the log -- */

typedef enum { IPROTO_INSERT = 2, IPROTO_REPLACE = 3, IPROTO_DELETE = 5 } IprotoChangeType;

/* A changed row: INSERT where there was none, REPLACE, also for updates, or DELETE. */
typedef struct {
    uint32_t space_id;
    IprotoChangeType type;
    IprotoTuple row; /* the new row; of DELETE the primary key, an array */
    IprotoTuple old; /* the old row; NULL and 0 if there was none */
} IprotoChange;

/* Write the changes of a transaction, in order; they are valid during the call. Whatever but 0 undoes the transaction,
 * and its commit fails with WAL_IO. The function must not change rows or spaces: such calls are refused. */
typedef int (*IprotoLog)(void *context, const IprotoChange *changes, size_t count);

/* Have all commits written by a function, before they are done; NULL for none. A change outside a transaction is one of
 * its own. Errors: ACTIVE_TRANSACTION. */
IPROTO_API int iproto_engine_set_log(IprotoEngine *engine, IprotoLog log, void *context);

/* Begin a transaction, the only one of the engine. Errors: ACTIVE_TRANSACTION. */
IPROTO_API int iproto_engine_begin(IprotoEngine *engine);

/* End a transaction. A failed commit has ended it, too: its changes are undone. Errors: NO_TRANSACTION, WAL_IO,
 * MEMORY_ISSUE. If a rollback lacks memory, the engine is not consistent any more: it then refuses all other calls. */
IPROTO_API int iproto_engine_commit(IprotoEngine *engine);
IPROTO_API int iproto_engine_rollback(IprotoEngine *engine);

/* Whether a transaction is open: 1 or 0. */
IPROTO_API int iproto_engine_is_in_transaction(const IprotoEngine *engine);

/* -- spaces -- */

typedef enum {
    IPROTO_ANY, IPROTO_UNSIGNED, IPROTO_STRING, IPROTO_NUMBER, IPROTO_DOUBLE, IPROTO_INTEGER, IPROTO_BOOLEAN,
    IPROTO_VARBINARY, IPROTO_ARRAY, IPROTO_MAP,
} IprotoFieldType;

typedef struct {
    const char *name; /* not empty, and different from others */
    IprotoFieldType type;
    int is_nullable; /* may be nil or, at the end of a row, missing */
} IprotoField;

enum { IPROTO_FIELDS_MAX = 32767, IPROTO_NAME_MAX = 255, IPROTO_INDEXES_MAX = 17, IPROTO_PARTS_MAX = 16 };

/* Create a space. `exact_field_count` is the number of fields that a row must have, 0 for any; rows may have more fields
 * than the format. Names are copied. Errors: SPACE_EXISTS (name or number), CREATE_SPACE, WRONG_SPACE_FORMAT,
 * SPACE_FIELD_IS_DUPLICATE, MULTISTATEMENT_TRANSACTION (a transaction is open). */
IPROTO_API IprotoSpace *iproto_space_create(IprotoEngine *engine, uint32_t space_id, const char *name,
                                            const IprotoField *fields, size_t field_count,
                                            uint32_t exact_field_count);

/* Find a space. Errors: NO_SUCH_SPACE. */
IPROTO_API IprotoSpace *iproto_space_open(IprotoEngine *engine, const char *name);
IPROTO_API IprotoSpace *iproto_space_open_by_id(IprotoEngine *engine, uint32_t space_id);

/* Remove a space with its rows, indexes and cursors. Errors: MULTISTATEMENT_TRANSACTION. */
IPROTO_API int iproto_space_drop(IprotoSpace *space);

/* The number of rows, and the bytes of all rows. */
IPROTO_API int64_t iproto_space_len(IprotoSpace *space);
IPROTO_API int64_t iproto_space_bsize(IprotoSpace *space);

/* -- indexes -- */

typedef enum { IPROTO_TREE, IPROTO_HASH } IprotoIndexType;

typedef struct {
    uint32_t field_no;
    IprotoFieldType type; /* neither ANY, ARRAY nor MAP */
    int is_nullable;      /* not in a primary index; a unique index may have many keys with a nil */
} IprotoPart;

/* Create an index, for rows that are there, too. The first one of a space is the primary index, a unique one; others
 * have the numbers from 1 on. Version 1.0 has no HASH indexes. Errors: INDEX_TYPE, MODIFY_INDEX, NULLABLE_PRIMARY,
 * INDEX_EXISTS_IN_SPACE, FORMAT_MISMATCH_INDEX_PART, INDEX_PART_TYPE_MISMATCH, MULTISTATEMENT_TRANSACTION; FIELD_TYPE,
 * FIELD_MISSING and TUPLE_FOUND of rows that are there. */
IPROTO_API IprotoIndex *iproto_index_create(IprotoSpace *space, const char *name, IprotoIndexType type, int is_unique,
                                            const IprotoPart *parts, size_t part_count);

/* Find an index. Errors: NO_SUCH_INDEX_NAME, NO_SUCH_INDEX_ID. */
IPROTO_API IprotoIndex *iproto_index_open(IprotoSpace *space, const char *name);
IPROTO_API IprotoIndex *iproto_index_open_by_id(IprotoSpace *space, uint32_t index_id);

/* The number of entries, and the bytes that they take. */
IPROTO_API int64_t iproto_index_len(IprotoIndex *index);
IPROTO_API int64_t iproto_index_bsize(IprotoIndex *index);

/* -- rows. `result` may be NULL -- */

/* Store a row. Errors: TUPLE_FOUND, MEMORY_ISSUE, INVALID_MSGPACK, TUPLE_NOT_ARRAY, EXACT_FIELD_COUNT, FIELD_TYPE,
 * FIELD_MISSING, MEMTX_MAX_TUPLE_SIZE, NO_SUCH_INDEX_ID (the space has no primary index), WAL_IO. `result` becomes the
 * stored row. */
IPROTO_API int iproto_space_insert(IprotoSpace *space, const void *row, size_t size, IprotoTuple *result);

/* The same; a row with the same primary key is replaced. */
IPROTO_API int iproto_space_replace(IprotoSpace *space, const void *row, size_t size, IprotoTuple *result);

/* Find the row with a whole key of a unique index. Returns 1; 0 if there is none. Errors: MORE_THAN_ONE_TUPLE,
 * EXACT_MATCH, KEY_PART_TYPE, INVALID_MSGPACK, TUPLE_NOT_ARRAY. */
IPROTO_API int iproto_index_get(IprotoIndex *index, const void *key, size_t size, IprotoTuple *result);

/* Update the row with a whole key of a unique index by operations, [[opcode, field, argument…], …]; a field is a number
 * that counts from `index_base`, or a name. Returns 1 and the new row; 0 if there is no such row. Errors: as for get and
 * replace, ILLEGAL_PARAMS, UNKNOWN_UPDATE_OP, UPDATE_FIELD, UPDATE_ARG_TYPE, UPDATE_SPLICE, UPDATE_INTEGER_OVERFLOW,
 * NO_SUCH_FIELD_NO, NO_SUCH_FIELD_NAME, UNSUPPORTED, CANT_UPDATE_PRIMARY_KEY. */
IPROTO_API int iproto_index_update(IprotoIndex *index, const void *key, size_t key_size, const void *operations,
                                   size_t size, uint32_t index_base, IprotoTuple *result);

/* Store a row, or update the one with the same primary key. Operations that do not fit that one are left out, and all of
 * them if they would change the primary key. Errors: as for replace and update. */
IPROTO_API int iproto_space_upsert(IprotoSpace *space, const void *row, size_t row_size, const void *operations,
                                   size_t size, uint32_t index_base);

/* Remove the row with a whole key of a unique index. Returns 1 and the old row; 0 if there is none. Errors: as for get. */
IPROTO_API int iproto_index_delete(IprotoIndex *index, const void *key, size_t size, IprotoTuple *result);

/* -- cursors -- */

/* Tarantool's numbers. Those from REQ to LE, but ALL, go from the highest row to the lowest. */
typedef enum {
    IPROTO_EQ = 0,
    IPROTO_REQ = 1,
    IPROTO_ALL = 2, /* as GE */
    IPROTO_LT = 3,
    IPROTO_LE = 4,
    IPROTO_GE = 5,
    IPROTO_GT = 6,
} IprotoIterator;

/* Open a cursor on the rows that compare with a key, or with its first parts; NULL and 0, or an empty array, for all.
 *
 * Rows may change while it is open. It goes on from the key of the row that it has returned last: rows that come to be
 * behind that key are seen, those in front of it are not; no key is returned twice.
 *
 * Errors: ITERATOR_TYPE, KEY_PART_COUNT, KEY_PART_TYPE, INVALID_MSGPACK, TUPLE_NOT_ARRAY, MEMORY_ISSUE. */
IPROTO_API IprotoCursor *iproto_cursor_open(IprotoIndex *index, IprotoIterator iterator, const void *key, size_t size);

/* Take the next row. Returns 1; 0 at the end, from then on always. Errors: MEMORY_ISSUE, if the cursor lacked memory to
 * keep its key when a row changed. */
IPROTO_API int iproto_cursor_next(IprotoCursor *cursor, IprotoTuple *row);

/* Close a cursor, before its space or engine. NULL is nothing to close. */
IPROTO_API void iproto_cursor_close(IprotoCursor *cursor);

/* Count the rows of which a cursor would tell. */
IPROTO_API int64_t iproto_index_count(IprotoIndex *index, IprotoIterator iterator, const void *key, size_t size);

/* -- fields of rows -- */

typedef enum {
    IPROTO_VALUE_NIL, IPROTO_VALUE_BOOLEAN, IPROTO_VALUE_UNSIGNED,
    IPROTO_VALUE_NEGATIVE, /* an integer below 0 */
    IPROTO_VALUE_DOUBLE, IPROTO_VALUE_STRING, IPROTO_VALUE_BINARY, IPROTO_VALUE_ARRAY, IPROTO_VALUE_MAP,
    IPROTO_VALUE_EXTENSION,
} IprotoValueType;

typedef struct {
    IprotoValueType type;
    uint64_t number;   /* UNSIGNED; BOOLEAN: 0 or 1; NEGATIVE: as two's complement */
    double real;       /* DOUBLE */
    IprotoTuple bytes; /* STRING and BINARY: their bytes, without a zero at the end */
    IprotoTuple slice; /* the value in MessagePack */
} IprotoValue;

/* Any MessagePack array will do as a row. Errors of all: INVALID_MSGPACK, TUPLE_NOT_ARRAY. */

/* The number of fields. */
IPROTO_API int64_t iproto_tuple_field_count(const IprotoTuple *row);

/* Read a field. Returns 1; 0 if the row has none of that number. */
IPROTO_API int iproto_tuple_field(const IprotoTuple *row, uint32_t field_no, IprotoValue *value);

/* Read a field of a type. Returns 1; 0 for nil and if the row has no such field, with `*value` unchanged. Errors:
 * FIELD_TYPE, also for integers out of range. A double is read from integers, too. */
IPROTO_API int iproto_tuple_unsigned(const IprotoTuple *row, uint32_t field_no, uint64_t *value);
IPROTO_API int iproto_tuple_integer(const IprotoTuple *row, uint32_t field_no, int64_t *value);
IPROTO_API int iproto_tuple_double(const IprotoTuple *row, uint32_t field_no, double *value);
IPROTO_API int iproto_tuple_boolean(const IprotoTuple *row, uint32_t field_no, int *value);
IPROTO_API int iproto_tuple_string(const IprotoTuple *row, uint32_t field_no, IprotoTuple *value);
IPROTO_API int iproto_tuple_binary(const IprotoTuple *row, uint32_t field_no, IprotoTuple *value);

#ifdef __cplusplus
}
#endif

#endif
