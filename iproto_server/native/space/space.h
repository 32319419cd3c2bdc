/* Spaces: their rows and indexes. */
#ifndef IPROTO_SERVER_SPACE_H
#define IPROTO_SERVER_SPACE_H

#include "../keys/keys.h"
#include "../module/module.h"
#include "../transaction/transaction.h"
#include "../trees/trees.h"
#include "../../engine/core/iproto_engine.h"

/* space_table.c: the base class of SpaceRegistry */
extern PyTypeObject SpaceTable_Type;
typedef struct {
    PyObject_HEAD
    PyObject *spaces; /* a dict */
    unsigned long long schema_version;
    PyObject *last_key; /* the last number that was looked for, or NULL */
    uint64_t last_number;
} SpaceTable;
PyObject *find_space(SpaceTable *self, uint64_t number); /* borrowed; NULL, maybe with an exception */

/* A client's key: its values; or, if `packed` is not NULL, the packed array of them. */
typedef struct {
    PyObject *const *values;
    Py_ssize_t count;
    Position packed, end;
} Key;
#define KEY_OF_LIST(list) &(Key){((PyListObject *)(list))->ob_item, PyList_GET_SIZE(list), NULL, NULL}

/* space_type.c: the base class of MemtxSpace */
typedef struct SpaceObject {
    PyObject_HEAD
    Space core;
    ManagerObject *manager;
    PyObject *format, *check, *names;           /* a Format, its check of rows, and the fields' numbers, a dict */
    PyObject *indexes, *primary, *secondaries;  /* a dict by number; an index or NULL; a tuple */
    uint64_t indexes_version;                   /* another one whenever the indexes are others */
    PyObject *attached, *system_hook;
    struct TriggersObject *on_replace, *before_replace;
    char is_dropped;
    char is_custom; /* the class has methods of its own in place of those that change rows */
} SpaceObject;
extern PyTypeObject Space_Type;
static inline SpaceObject *as_space(PyObject *object) /* NULL for other objects */
{
    return PyObject_TypeCheck(object, &Space_Type) ? (SpaceObject *)object : NULL;
}
/* Raise what a function of the engine has reported for a change. Returns -1. */
int space_raise(SpaceObject *space);

/* triggers.c: the base class of TriggerList */
typedef struct TriggersObject {
    PyObject_HEAD
    PyObject *functions; /* a tuple */
    Space *space;        /* whose flag says whether there are any; NULL for none */
    uint8_t flag;
    uint8_t is_off;      /* none of them runs */
} TriggersObject;
extern PyTypeObject Triggers_Type;
void triggers_tell_space(TriggersObject *triggers); /* set its flag */

/* space_hooks.c: a change for the hooks */
typedef struct {
    PyObject *row, *old;    /* Tuples of the new and of the old row, or NULL: made when they are needed */
    PyObject *operations;   /* an Operations, or NULL: made when it is needed, of one of the next two */
    PyObject *given;        /* operations as procedures give them */
    const struct PackedOperations *packed;
    PyObject *ran;          /* the triggers that have run, a tuple, or NULL */
    const uint8_t *made;    /* of the change, when `row` was made */
    int is_exempt;          /* from the memory limit */
    int is_kept;            /* triggers have kept the old row */
} ChangeCall;
extern const SpaceHooks space_hooks;
int space_undone(void *context, Statement *statement, Change *refused);
PyObject *call_row(Change *change); /* borrowed: a Tuple, or None for no row; NULL with an exception */
PyObject *call_old(Change *change);
void change_call_free(ChangeCall *call);
int apply_in_parts(SpaceObject *space, Change *change, const struct PackedOperations *packed); /* updates.c */

/* space_changes.c: changes of rows. A new reference; NULL with an exception. `row` is a Tuple; `is_whole` says that it was
 * packed here. */
PyObject *space_store(SpaceObject *space, PyObject *row, int is_insert, int is_whole, int is_exempt); /* the row */
PyObject *space_delete(SpaceObject *space, uint64_t index_id, const Key *key);   /* the old row, or None */
PyObject *space_update(SpaceObject *space, uint64_t index_id, const Key *key, ChangeCall *call,
                       const UpdateOperations *operations);                      /* the new row, or None */
PyObject *space_upsert(SpaceObject *space, PyObject *row, int is_whole, ChangeCall *call,
                       const UpdateOperations *operations);                      /* None */
/* The same with packed rows: 1, and the row that the function above returns is appended to `given`; 0 for no row; -1 with an
 * exception. */
int space_store_packed(SpaceObject *space, PackedRow row, int is_insert, int is_exempt, Buffer *given);
int space_delete_packed(SpaceObject *space, uint64_t index_id, const Key *key, Buffer *given);
int space_update_packed(SpaceObject *space, uint64_t index_id, const Key *key, ChangeCall *call,
                        const UpdateOperations *operations, Buffer *given);

/* updates.c: reading operations. They return 1; 0, maybe with an exception, where Python has to do it */
typedef struct PackedOperations {
    Position at, end;
    uint32_t index_base;
    PyObject *names; /* the fields' numbers, a dict, or NULL */
} PackedOperations;
enum { LARGEST_OPERATION_COUNT = 4000 }; /* of one request. Source: BOX_UPDATE_OP_CNT_MAX of 2.6 */
int read_packed_operations(UpdateOperations *operations, const PackedOperations *packed);
int read_parsed_operations(UpdateOperations *operations, PyObject *parsed); /* an Operations */
int read_given_operations(UpdateOperations *operations, Buffer *buffer, SpaceObject *space, PyObject *given);

/* lookups.c. Rows are bytes or None, new references; NULL with an exception. */
/* Find the encoded primary key of the row with a whole key of a unique index. Returns 1, also if the primary index has no
 * such row; 0 if there is none; -1 with an exception. */
int space_locate(SpaceObject *space, uint64_t index_id, const Key *key, KeyBuffer *primary_key);
PyObject *space_find(SpaceObject *space, uint64_t index_id, const Key *key);
PyObject *space_first(SpaceObject *space, uint64_t index_id, const Key *key);
/* These two also return NULL without an exception, where Python has to look. */
PyObject *space_last(SpaceObject *space, uint64_t index_id, const Key *key);
PyObject *space_select(SpaceObject *space, uint64_t index_id, uint64_t iterator, uint64_t offset, uint64_t limit,
                       const Key *key); /* a list of bytes */
TreeObject *space_index(SpaceObject *space, uint64_t index_id); /* borrowed; NULL where Python has to look */
/* The encoded key of a request, of so many values; 1, or 0 unknown, or -1 with an exception */
int request_key(TreeObject *index, const Key *key, KeyBuffer *encoded, int *values);

/* Rows of an index of space_index() where the engine has them: how many, TREE_SELECT_MAX at the most; TREE_ROWS_UNKNOWN, maybe
 * with an exception, where Python has to look. They are valid until a row changes. The first function takes a whole key of
 * a unique index. */
int space_find_row(TreeObject *index, const Key *key, PackedRow *row);
int space_find_rows(TreeObject *index, const Key *key, uint64_t iterator, uint64_t offset, uint64_t limit, PackedRow *rows);

PyObject *key_list(const Key *key); /* the values, a new list; NULL with an exception */

/* lookups.c: the encoded key of a single row; NULL with an exception */
PyObject *tree_unique_key(TreeObject *index, PyObject *const *values, Py_ssize_t count);

/* Read an index's number and a key, which Python gives. They return -1 with an exception. */
int space_read_index(PyObject *space, PyObject *number, uint64_t *index_id);
int space_read_key(PyObject *list, Key *key);

/* Methods of spaces */
#define SPACE_METHOD(name) PyObject *space_method_##name(PyObject *self, PyObject *const *args, Py_ssize_t count)
PyObject *space_method_insert(PyObject *self, PyObject *row);
PyObject *space_method_replace(PyObject *self, PyObject *row);
SPACE_METHOD(update);
SPACE_METHOD(upsert);
SPACE_METHOD(delete);
SPACE_METHOD(exchange); /* held_record.c */
extern PyTypeObject HeldRecord_Type;
SPACE_METHOD(find);
SPACE_METHOD(first);

FUNCTION(native_apply_request);
FUNCTION(native_set_memory_limit);
FUNCTION(native_memory_allows);
FUNCTION(native_memory_usage);
FUNCTION(native_release_free_memory);
FUNCTION(native_memory_outside);

#endif
