/* What the parts of the public API share; iproto_engine.h is the API. */
#ifndef IPROTO_ENGINE_ENGINE_H
#define IPROTO_ENGINE_ENGINE_H

#include "index/change.h"
#include "values/format.h"
#include "iproto_engine.h"
#include "tree/tree.h"
#include "update/update.h"

/* -- errors (engine_error.c) -- */

#if defined(__GNUC__)
#define ENGINE_PRINTS __attribute__((format(printf, 2, 3)))
#else
#define ENGINE_PRINTS
#endif

/* Note a failure. Returns -1. */
int engine_fail(IprotoErrorCode code, const char *text, ...) ENGINE_PRINTS;
int engine_fail_memory(size_t size, const char *what);
int engine_fail_null(const char *what);

/* -- objects -- */

struct IprotoIndex {
    IprotoSpace *space;
    uint32_t id;
    int is_unique;
    char *name;
    KeyLayout layout;
    Tree tree;
};

typedef struct {
    char *name;
    uint32_t size; /* of the name */
} EngineFieldName;

/* Field numbers by name, and the fields that are named. */
typedef struct {
    EngineFieldName *all;
    uint32_t count;
} EngineFieldNames;

struct IprotoSpace {
    IprotoEngine *engine;
    IprotoSpace *next;
    uint32_t id, exact_field_count;
    char *name;
    EngineFieldNames names;
    FormatField *fields; /* what the format and all indexes ask of fields */
    uint32_t field_count;
    UpdateDoubles doubles;
    Records records, pairs; /* a tree of references needs `pairs`, which stay empty */
    IprotoIndex *indexes[IPROTO_INDEXES_MAX];
    ChangedIndex changed[CHANGE_INDEXES_MAX]; /* the secondary ones */
    uint32_t index_count;
    uint64_t bsize;
    IprotoCursor *cursors;
};

/* A change that can be undone. The records that are not in the space any more are kept here. */
typedef struct {
    IprotoSpace *space;
    Record *old, *new; /* one of them may be NULL */
} EngineUndo;

struct IprotoEngine {
    IprotoSpace *spaces;
    EngineUndo *undo;
    size_t undo_count, undo_room;
    int is_in_transaction, is_logging, is_failed;
    IprotoLog log;
    void *log_context;
    Record *removed; /* the row that was removed last: the caller may read it */
    KeyBuffer key;   /* the primary key of the row that changes */
    uint8_t *row;    /* the latest row that operations have made, */
    size_t row_room;
    UpdateOperations operations; /* and these operations */
    UpdatedRow updated;
};

/* -- engines and transactions (engine.c) -- */

/* Refuse calls with NULL or a failed engine, and changes while a commit is logged. Return -1. */
int engine_check(const IprotoEngine *engine);
int engine_check_change(const IprotoEngine *engine);

/* The same, and refuse a change of spaces in a transaction. */
int engine_check_schema(const IprotoEngine *engine, const char *what);

/* Change a row, and commit that if there is no transaction.
 *
 * `key` is in `engine->key`. `row` is NULL to remove the row. Returns -1 with nothing changed. */
int engine_change(IprotoSpace *space, const TreeKey *key, const uint8_t *row, size_t size);

/* -- spaces and rows (engine_rows.c) -- */

enum { ENGINE_ROW_MAX = 1 << 30 }; /* bytes */

/* Check the fields of a row; and make its primary key in `engine->key`, too. */
int engine_check_format(const IprotoSpace *space, const uint8_t *row, size_t size);
int engine_check_row(IprotoSpace *space, const uint8_t *row, size_t size);

/* -- keys (engine_key.c) -- */

/* Encode the key, or its first parts, of a request. Returns the number of parts; -1. */
int engine_encode_key(const IprotoIndex *index, const void *key, size_t size, KeyBuffer *made);

/* Find the row with a whole key of a unique index. Returns 1; 0 if there is none; -1. */
int engine_find(IprotoIndex *index, const void *key, size_t size, const Record **found);

static inline IprotoIndex *engine_primary(const IprotoSpace *space)
{
    return space->indexes[0];
}

static inline IprotoTuple engine_tuple(const Record *record)
{
    return record ? (IprotoTuple){record->data, record->size} : (IprotoTuple){NULL, 0};
}

/* -- cursors (engine_cursor.c) -- */

/* Have the cursors of a space keep their keys, before a row changes. */
void engine_keep_cursors(IprotoSpace *space);
void engine_close_cursors(IprotoSpace *space);

/* -- spaces (engine_space.c) -- */

void engine_free_space(IprotoSpace *space);
const char *engine_type_name(IprotoFieldType type);
const char *engine_field_name(uint8_t type);     /* of a FieldType */
uint8_t engine_field_type(IprotoFieldType type); /* as a FieldType */

#endif
