/* Transactions: their end, and what may be undone. */
#ifndef IPROTO_SERVER_TRANSACTION_H
#define IPROTO_SERVER_TRANSACTION_H

#include "../log/log.h"
#include "../module/module.h"

/* commits.c */
int commit(PyObject *manager);    /* -1 with an exception: undone, and ended */
void roll_back(PyObject *manager); /* because of an exception, which goes on unless another one is raised */
void call_handling(PyObject *name, PyObject *const *args, size_t count); /* a method, in the same way */
/* A change that is a transaction by itself, without statements: whether it may be one; its row in the log, of which
 * `data` has yet to be filled; both kept for the write; the same taken back; or, once the change is made, committed.
 * They return -1 with an exception. `log_row_close` is due after `log_row_open`, failed or not. */
int commits_plainly(PyObject *manager, PyObject *space);
int log_row_open(LogRow *row, PyObject *manager, uint64_t type, PyObject *space, size_t size);
int log_row_append(const LogRow *row, PyObject *manager, PyObject *committed);
void log_row_take_back(const LogRow *row, PyObject *manager);
int log_row_commit(PyObject *manager);

/* committed_change.c: `old` is bytes or None; the new row has `size` bytes at the log row's data */
extern PyTypeObject CommittedChange_Type;
PyObject *new_committed_change(PyObject *space, PyObject *tree, PyObject *old, const LogRow *row, size_t size);

/* stack.c */
int ensure_stack(void); /* -1 with a RecursionError: there is no room to change a row and to undo that */

FUNCTION(native_ensure_stack);

#endif
