/* Engines and their transactions: statements that are logged as a whole or undone as a whole.
 *
 * What the core does not know comes from hooks: functions of the engine's user with a context of its own.
 */
#ifndef IPROTO_ENGINE_TRANSACTION_H
#define IPROTO_ENGINE_TRANSACTION_H

#include "../space/space.h"

/* Results of functions that may fail. The hook that failed knows why, or `failure` of the engine says so. */
enum { ENGINE_OK = 0, ENGINE_FAILED = -1 };

/* -- failures that the core reports -- */

typedef enum {
    FAILURE_NONE,
    FAILURE_HOOK,          /* the hook knows */
    FAILURE_MEMORY,        /* malloc has none */
    FAILURE_READ_ONLY,
    FAILURE_NESTING,
    FAILURE_NO_PRIMARY,
    FAILURE_DUPLICATE,     /* `index` has the key */
    FAILURE_PRIMARY_KEY,   /* an update would change it */
    FAILURE_ACTIVE,        /* a transaction is running */
} Failure;

/* -- transactions -- */

/* One change of one row. The old record belongs to the statement; while the transaction is taken out, it is a copy of the
 * one in the space, and the new record belongs to the statement, too. */
struct Statement {
    Space *space;          /* retained */
    Index *primary;        /* the primary index that has changed */
    void *owner;           /* of the hooks: what keeps that index */
    Record *old, *made;    /* NULL for none */
    void *effect;          /* of the hooks: what reverts the effect of a system row; NULL for none */
    uint8_t is_local;      /* the effect is this instance's own */
    uint8_t is_told;       /* its undoing: triggers have been notified */
};

typedef struct {
    Statement *all, few[1];
    size_t count, room;
    uint8_t is_out; /* its rows are taken out of the spaces */
} Transaction;

void transaction_init(Transaction *transaction);
void transaction_free(Transaction *transaction, const Engine *engine);

/* A point of the running transaction to roll back to. The hooks' marks are theirs. */
typedef struct {
    size_t position, marks[2];
    int nesting;
} Savepoint;

/* Those that return an int return -1 if they fail. All get the context of the engine. */
typedef struct {
    int (*prepare)(void *context);                    /* before a transaction begins */
    Transaction *(*begin)(void *context);             /* make an empty one; NULL if that fails */
    int (*log)(void *context, const Transaction *transaction); /* 1: written later; 0: needs no more; -1: refused */
    int (*committed)(void *context, Transaction *transaction, int is_unwritten); /* takes it over */
    void (*rolled_back)(void *context, Transaction *transaction); /* undone; takes it over */
    void (*mark)(void *context, Savepoint *savepoint);
    void (*trim)(void *context, const Savepoint *savepoint); /* drop what came after a savepoint */
    void (*undoing)(void *context, int begins);       /* before and after statements are undone */
    int (*undone)(void *context, Statement *statement, Change *refused); /* notify triggers; `refused`: see `after` */
    int (*revert)(void *context, Statement *statement); /* the effect of a system row */
    void (*forget)(void *context, void *effect);
    void (*panic)(void *context);                     /* a transaction cannot be undone; does not return */
    void (*tracker_rolled_back)(void *context, size_t position);
} EngineHooks;

enum { NESTING_MAX = 4 }; /* nested statements: a change, and those of its triggers. Source: TXN_SUB_STMT_MAX of 2.6 */

struct Engine {
    Transaction *running; /* NULL for none */
    uint64_t begun;       /* transactions so far, which tell whether another one is running */
    int nesting;          /* statements whose triggers are running */
    uint8_t is_read_only;
    uint8_t is_tracked;   /* an interactive transaction notes what is read and changed */
    const EngineHooks *hooks;
    void *context;
    Failure failure;      /* of the last function that failed */
    const Index *failed_index;
};

int engine_fails(Engine *engine, Failure failure); /* notes it; returns ENGINE_FAILED */
int engine_begin(Engine *engine);
int engine_commit(Engine *engine);                 /* a failed commit has rolled back */
void engine_rollback(Engine *engine);              /* without a transaction, nothing */
void engine_mark(Engine *engine, Savepoint *savepoint);
int engine_rollback_to(Engine *engine, const Savepoint *savepoint);

/* Undo the statements after the first `position` ones of a transaction, the newest first. */
int transaction_undo(Engine *engine, Transaction *transaction, size_t position);

/* Undo the last statement, which the hook `after` of a change has refused. */
int transaction_undo_refused(Engine *engine, Transaction *transaction, Change *refused);

/* Take the rows of a suspended transaction out of the spaces, and put them in again, where others may have changed. */
int transaction_take_out(Engine *engine, Transaction *transaction);
int transaction_put_in(Engine *engine, Transaction *transaction);

#endif
