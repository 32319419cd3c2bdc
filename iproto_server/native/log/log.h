/* The log: how changes become its rows, the rows that wait to be written, and rows of logs and snapshots. */
#ifndef IPROTO_SERVER_LOG_H
#define IPROTO_SERVER_LOG_H

#include "../values/values.h"

#include "../../engine/core/iproto_engine.h"

/* -- row_encoder.c: rows -- */

/* A change that is to be logged. A row without effect is one of BLOCK_NOP with NO_SPACE and no data. */
typedef struct {
    uint64_t type;       /* of the request: a BlockRowType, or another one */
    uint64_t space_id;   /* or NO_SPACE: `data` is the whole body, which may be empty */
    int is_local;        /* of a space that is not replicated */
    const uint8_t *data; /* the tuple; the key of a DELETE, an array */
    size_t size;
    PyObject *owner;     /* a reference that keeps `data`; NULL for none */
} LogChange;
#define NO_SPACE UINT64_MAX

/* The numbers of rows: the member's id, the LSNs of its last row and of the last row of local spaces, and the time. */
typedef struct {
    unsigned long long replica_id, lsn, local_lsn;
    double timestamp;
} RowNumbers;

/* A transaction's rows: the greatest size that they can have, and how to write them, which gives them their numbers.
 * `put_transaction` returns the position behind them. */
size_t transaction_size_max(const LogChange *changes, Py_ssize_t count);
uint8_t *put_transaction(uint8_t *at, RowNumbers *numbers, const LogChange *changes, Py_ssize_t count);

/* -- log_rows.c: rows that wait to be written -- */

extern PyTypeObject LogRows_Type;
PyObject *new_log_rows(RowNumbers numbers);
int log_rows_append(PyObject *rows, const LogChange *changes, Py_ssize_t count); /* -1 with an exception */
void log_rows_count(PyObject *rows, const LogChange *changes, Py_ssize_t count); /* number them only */
int log_rows_are_empty(PyObject *rows);
void log_rows_begin(PyObject *rows, double timestamp);
PyObject *log_rows_part(PyObject *rows, Py_ssize_t start, Py_ssize_t size); /* bytes */

/* -- log_state.c: the log; its policy is in Python -- */

extern PyTypeObject LogState_Type;

/* Append a transaction to a log, which must be a LogState.
 *
 * The rows get their LSNs; those of local spaces have LSNs and a group of their own. A transaction without changes is
 * refused, too, if the log is closed. `data` of all changes must stay until this returns.
 *
 * Returns 1 if the rows wait to be written; 0 if not: they were written at once, they are only counted, or there are
 * none; -1 with an exception: the transaction is not logged. */
int log_append(PyObject *log, const LogChange *changes, Py_ssize_t count);

/* -- primary_key.c: the keys of rows, as DELETE takes them -- */

typedef struct {
    const uint8_t *data;
    size_t size;
} KeyValue;

/* Find the values of some fields of a row. Returns the size of an array of them; 0 if the row lacks one. */
enum { KEY_VALUES_MAX = 255 }; /* the greatest number of an index's parts */
size_t find_key(const uint8_t *row, size_t size, const uint32_t *fields, int count, KeyValue *values);
void put_key(uint8_t *at, const KeyValue *values, int count); /* the array */
PyObject *packed_primary_key(PyObject *primary, PyObject *row); /* of an Index and bytes; NULL with an exception */

/* -- blocks.c: the heads of blocks -- */

/* A block that has reached BLOCK_SIZE bytes, its head included, is written, with all of the transaction that made it so
 * large. */
enum { BLOCK_SIZE = 128 * 1024, BLOCK_HEAD_SIZE = 19, BLOCK_MARKER_SIZE = 4 };
int add_block_markers(PyObject *module); /* -1 with an exception */

/* -- block_rows.c: the rows of a block; these must be BlockRows -- */

extern PyTypeObject BlockRows_Type;
const BlockRows *block_rows(PyObject *rows, const uint8_t **block);
int block_rows_position(PyObject *rows, PyObject *given, size_t *position); /* -1 with an exception */

/* -- snapshot_rows.c, log_replayer.c: rows that are loaded; those that need a closer look are left to the caller -- */

PyObject *block_rows_append_to(PyObject *rows, PyObject *const *args, Py_ssize_t count); /* a method */
extern PyTypeObject LogReplayer_Type;

FUNCTION(native_encode_row_head);
FUNCTION(native_with_head);
FUNCTION(native_decode_head);

#endif
