/* Scans consecutive rows of a log. */
#ifndef SPARK_ROW_SCANNER_H
#define SPARK_ROW_SCANNER_H

#include "kernels.h"

enum { ROW_INSERT = 2, ROW_REPLACE, ROW_UPDATE, ROW_DELETE, ROW_UPSERT = 9 };

/* A plain row. Offsets are relative to the buffer; negative if there is no value. */
typedef struct {
    int64_t type, lsn, member, space;
    int64_t base; /* the number of the first field in operations */
    int64_t key, key_end, tuple, tuple_end, operations, operations_end;
    int64_t item, item_end; /* the first item of the key, or of the tuple if there is no key */
    int is_last;            /* in its transaction */
} LogRow;

/* Read a row and move `at` past it. Returns 0 if the row is not plain. */
int next_log_row(Position begin, Position *at, Position end, LogRow *row);

#endif
