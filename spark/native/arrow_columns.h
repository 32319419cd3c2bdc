/* Packed values in a buffer: arrays of offsets, one for each row; below 0 where there is no value. */
#ifndef SPARK_ARROW_COLUMNS_H
#define SPARK_ARROW_COLUMNS_H

#include "kernels.h"

typedef struct {
    Position data;
    int64_t size;
    Py_ssize_t count;
    const int64_t *start, *end; /* end NULL: it is not asked for */
    Py_buffer views[2];
} Cells;

/* Returns 0 with an exception. `end` is NULL where nobody asks for the ends. */
int cells_init(Cells *cells, PyObject *data, PyObject *start, PyObject *end);
void cells_free(Cells *cells);

/* Whether a value that is there is in the buffer. */
static inline int is_inside(const Cells *cells, Py_ssize_t row)
{
    return cells->start[row] <= cells->end[row] && cells->end[row] <= cells->size;
}

/* Its bytes; NULL with an exception. */
static inline PyObject *raw_of(const Cells *cells, Py_ssize_t row)
{
    return PyBytes_FromStringAndSize((const char *)cells->data + cells->start[row],
                                     (Py_ssize_t)(cells->end[row] - cells->start[row]));
}

#endif
