/* Packed values in a buffer: arrays of offsets, one for each row; negative if there is no value. */
#ifndef SPARK_ARROW_COLUMNS_H
#define SPARK_ARROW_COLUMNS_H

#include "kernels.h"

typedef struct {
    Position data;
    int64_t size;
    Py_ssize_t count;
    const int64_t *start, *end; /* end is NULL if the ends are not needed */
    Py_buffer views[2];
} Cells;

/* Returns 0 with an exception. `end` is NULL if the ends are not needed. */
int cells_init(Cells *cells, PyObject *data, PyObject *start, PyObject *end);
void cells_free(Cells *cells);

/* Whether a present value lies within the buffer. */
static inline int is_inside(const Cells *cells, Py_ssize_t row)
{
    return cells->start[row] <= cells->end[row] && cells->end[row] <= cells->size;
}

/* The bytes of a value; NULL with an exception. */
static inline PyObject *raw_of(const Cells *cells, Py_ssize_t row)
{
    return PyBytes_FromStringAndSize((const char *)cells->data + cells->start[row],
                                     (Py_ssize_t)(cells->end[row] - cells->start[row]));
}

#endif
