/* Rows of logs, one behind the other. */
#ifndef SPARK_ROW_SCANNER_H
#define SPARK_ROW_SCANNER_H

#include "kernels.h"

enum { ROW_INSERT = 2, ROW_REPLACE, ROW_UPDATE, ROW_DELETE };

/* A plain row: offsets are those of the buffer, below 0 where there is nothing. */
typedef struct {
    int64_t type, lsn, member, space;
    int64_t tuple, tuple_end;
    int64_t item, item_end; /* the first one of the key, or else of the tuple */
    int is_last;            /* of its transaction */
} LogRow;

/* Read a row, and go behind it. Returns 0 where it is not plain. */
int next_log_row(Position begin, Position *at, Position end, LogRow *row);

#endif
