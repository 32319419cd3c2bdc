/* Transactions of the engine: the running one, and those that are not written yet. */
#ifndef IPROTO_SERVER_TRANSACTION_H
#define IPROTO_SERVER_TRANSACTION_H

#include "../log/log.h"
#include "../module/module.h"

#include "../../engine/core/iproto_engine.h"

/* transaction.c: the statements of one transaction, a sequence of Statement, with its callbacks */
typedef struct ManagerObject ManagerObject;
typedef struct {
    PyObject_HEAD
    Transaction core;
    ManagerObject *manager;
    PyObject *on_commit, *on_rollback; /* lists, or NULL while they are empty */
} TransactionObject;
extern PyTypeObject Transaction_Type, Savepoint_Type;
extern PyTypeObject *statement_type; /* a named tuple */
TransactionObject *new_transaction(ManagerObject *manager);
static inline TransactionObject *transaction_of(const Transaction *core)
{
    return (TransactionObject *)((char *)core - offsetof(TransactionObject, core));
}
Py_ssize_t callback_count(PyObject *list); /* 0 for NULL */
int add_callback(PyObject **list, PyObject *callback); /* -1 with an exception */
int prepare_statements(void);              /* -1 with an exception */
PyObject *record_row(const Record *record); /* bytes or None */

/* manager.c: the base class of TransactionManager */
struct ManagerObject {
    PyObject_HEAD
    Engine engine;
    PyObject *journal, *unwritten;       /* `unwritten`: a list of transactions */
    PyObject *write_soon, *on_change, *take_out, *interactive;
    char is_writing, is_write_due, has_logged;
    struct SavedError *saved;            /* exceptions that go on after something was undone */
};
extern PyTypeObject Manager_Type;
static inline TransactionObject *running_transaction(const ManagerObject *manager)
{
    return manager->engine.running ? transaction_of(manager->engine.running) : NULL;
}
/* Whether nothing but a transaction of its own can be between a request and the spaces. */
static inline int manager_is_idle(const ManagerObject *manager)
{
    return !manager->engine.running && manager->take_out == Py_None && manager->interactive == Py_None;
}
int manager_begin(ManagerObject *manager);     /* these two: -1 with an exception */
int manager_commit(ManagerObject *manager);    /* undone, and ended, if it fails */
void manager_rollback(ManagerObject *manager); /* an exception goes on unless another one is raised */

/* log/statements.c: `log_append` of a transaction, whose statements in temporary spaces are left out. */
int log_append_transaction(PyObject *log, const Transaction *transaction);

/* manager_hooks.c */
extern const EngineHooks manager_hooks;

/* stack.c */
int ensure_stack(void); /* -1 with a RecursionError: there is no room to change a row and to undo that */

FUNCTION(native_ensure_stack);

#endif
