/* Spaces and transactions: the rows of a space change in all its indexes, as statements of a transaction, which is logged
 * as a whole or undone as a whole.
 *
 * What the core does not know comes from hooks: functions of the engine's user with a context of its own. A space says by
 * flags which of its hooks are to be called, so that a plain space pays one test for all of them.
 *
 * The order of a change:
 *
 *     read-only, nesting       engine_check_change
 *     fill                     hook: a sequence's value
 *     format                   format.h, or hook `explain`
 *     key, and the row there   index.h
 *     decide                   hook: another row, or none, in the place of the new one
 *     duplicate primary key    rows.c
 *     memory                   budget.h, or hook `refuse_memory`
 *     tracker                  hook `changes`
 *     all indexes              index_change
 *     take_effect              hook: the effect of a system row
 *     after                    hook: triggers; if it fails, the statement is undone
 */
#ifndef IPROTO_ENGINE_SPACE_H
#define IPROTO_ENGINE_SPACE_H

#include "../values/format.h"
#include "../index/index.h"
#include "../update/update.h"

typedef struct Space Space;
typedef struct Engine Engine;

/* Results of functions that may fail. The hook that failed knows why, or the core says so by engine_failure(). */
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
typedef struct {
    Space *space;          /* retained */
    Index *primary;        /* the primary index that has changed */
    void *owner;           /* of the hooks: what keeps that index */
    Record *old, *made;    /* NULL for none */
    void *effect;          /* of the hooks: what reverts the effect of a system row; NULL for none */
    uint8_t is_local;      /* the effect is this instance's own */
    uint8_t is_told;       /* its undoing: triggers have been notified */
} Statement;

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

typedef struct Change Change;

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

/* -- spaces -- */

enum {
    SPACE_FILLS = 1,    /* the hook `fill` */
    SPACE_DECIDES = 2,  /* `decide` */
    SPACE_EFFECTS = 4,  /* `take_effect` */
    SPACE_NOTIFIES = 8, /* `after` and `undone` */
};

typedef struct {
    int (*fill)(Space *space, Change *change);           /* put another row into `change->row` */
    int (*explain)(Space *space, Change *change);        /* check a row that the core does not know to fit; 0: it fits */
    int (*decide)(Space *space, Change *change);         /* likewise, or no row; 0: nothing is to be done, 1: go on */
    int (*apply)(Space *space, Change *change, int is_upsert); /* apply operations that the core does not know */
    int (*refuse_memory)(Space *space, Change *change);  /* 0: the change is exempt */
    int (*reads)(Space *space, Change *change);          /* the tracker: the primary key was looked up */
    int (*changes)(Space *space, Change *change);        /* the tracker: the row is about to change */
    int (*take_effect)(Space *space, Change *change, Statement *statement);
    int (*after)(Space *space, Change *change);          /* on_replace; if it fails, the statement is undone */
    void (*forget)(RowRef *row);                         /* free what hooks have decoded */
    void (*retain)(Space *space);
    void (*release)(Space *space);
    void *(*retain_primary)(Space *space);               /* returns what release_primary gets */
    void (*release_primary)(void *owner);
} SpaceHooks;

/* A secondary index, and the fields that its keys depend on: a bit for each of the first 64. */
typedef struct {
    Index *index;
    uint64_t fields;
    uint8_t has_more; /* fields beyond these, or such inside of fields */
} SpaceIndex;

struct Space {
    Engine *engine;
    const SpaceHooks *hooks;
    void *context;
    uint32_t id;
    uint8_t is_temporary, is_local, flags;
    uint8_t is_checked;      /* `format` says all: rows that do not fit it are refused by `explain` */
    RowFormat format;
    UpdateDoubles doubles;
    uint64_t primary_fields; /* a bit for each of the first 64 */
    uint8_t has_more_primary_fields;
    Index *primary;          /* NULL for none; held by the context, as the others */
    SpaceIndex *others;      /* the secondary indexes, by number */
    int count;
    size_t bsize;            /* bytes of all rows */
};

/* -- changes -- */

typedef enum { CHANGE_INSERT = 2, CHANGE_REPLACE = 3, CHANGE_UPDATE = 4, CHANGE_DELETE = 5, CHANGE_UPSERT = 9 } ChangeKind;

enum { TOUCHED_MAX = 128 }; /* as indexes of a space */

/* One change while it is made. `row` and `operations` are the caller's; the caller frees with change_free. */
struct Change {
    Space *space;
    ChangeKind kind;
    void *context;                      /* of the caller, for the hooks */
    RowRef row;                         /* the new row; no data for none */
    RowRef old;                         /* the row that is there */
    KeyBuffer key;                      /* the encoded primary key */
    const UpdateOperations *operations; /* NULL: those of the context, which `apply` knows */
    uint8_t *made;                      /* the row that operations have made, or NULL */
    Index *touched[TOUCHED_MAX];
    int touched_count;
    uint8_t is_whole;                   /* `row` is known to be well-formed */
    uint8_t is_made;                    /* whether anything has changed */
    size_t made_size;                   /* of `made` */
};

void change_init(Change *change, Space *space, ChangeKind kind, void *context);
void change_free(Change *change);

/* Whether rows may change now. */
int change_check(Change *change);

/* Find the row whose primary key is in `change->key`. */
int change_find(Change *change);

/* Store `change->row`: INSERT or REPLACE. */
int change_store(Change *change);

/* The same for UPDATE and DELETE of a row that was found, which is in `change->old`, with its key; and for UPSERT of
 * `change->row`. `is_made` tells whether a row was there, or has changed. */
int change_update(Change *change);
int change_delete(Change *change);
int change_upsert(Change *change);

/* Put a row in the place of another one in all indexes, without a statement: `change->old` and `change->row`. */
int change_plainly(Change *change);

#endif
