/* Rows for the log, and rows of logs and snapshots. */
#ifndef IPROTO_SERVER_LOG_H
#define IPROTO_SERVER_LOG_H

#include "../values/values.h"

/* log_rows.c: a row that is being written, and the rows that wait; they must be LogRows */
typedef struct {
    PyObject *rows;                /* LogRows */
    Py_ssize_t start, place, end;  /* of the row, and of `data` in there */
    uint8_t *data;
} LogRow;
extern PyTypeObject LogRows_Type;
int log_rows_are_empty(PyObject *rows);
void log_rows_begin(PyObject *rows, double timestamp);
int log_rows_open(LogRow *row, PyObject *rows, uint64_t type, uint64_t space_id, Py_ssize_t size);
int log_rows_append(const LogRow *row);
void log_rows_take_back(const LogRow *row);
PyObject *log_rows_part(PyObject *rows, Py_ssize_t start, Py_ssize_t size); /* bytes */

FUNCTION(native_encode_change);
FUNCTION(native_first_key);
FUNCTION(native_with_head);
FUNCTION(native_append_rows);
FUNCTION(native_replay_rows);

#endif
