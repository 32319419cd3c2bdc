/* A space: its indexes, and what else a change of its rows (change/change.h) has to know.
 *
 * A space says by flags which of its hooks are to be called, so that a plain space pays one test for all of them.
 */
#ifndef IPROTO_ENGINE_SPACE_H
#define IPROTO_ENGINE_SPACE_H

#include "../index/index.h"
#include "../update/update.h"
#include "../values/format.h"

typedef struct Space Space;
typedef struct Engine Engine;       /* transaction/transaction.h */
typedef struct Statement Statement;
typedef struct Change Change;       /* change/change.h */

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

enum { SPACE_INDEXES_MAX = 128 };

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

#endif
