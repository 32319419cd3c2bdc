/* Spaces: their rows, indexes and facades. */
#ifndef IPROTO_SERVER_SPACE_H
#define IPROTO_SERVER_SPACE_H

#include "../module/module.h"
#include "../transaction/transaction.h"
#include "../../engine/core/block.h"
#include "../../engine/core/change.h"
#include "../../engine/core/update.h"

/* tree.c; keys and values must be bytes. What is returned is a new reference; NULL, maybe with an exception, where there
 * is no such entry. `is_row` is set to whether it is the row of the entry, and not its value. */
extern PyTypeObject Tree_Type;
int tree_object_has(PyObject *tree, PyObject *key);
/* Whether an entry stays as it is if its row becomes `row` (bytes), with the same key. */
int tree_object_keeps(PyObject *tree, PyObject *key, PyObject *row);
/* The encoded key of a packed row in a primary index; of a client's packed key, of which `count` becomes the number of
 * values. NULL, maybe with an exception, where these need more than the core knows. */
PyObject *tree_object_row_key(PyObject *tree, PyObject *raw);
PyObject *tree_object_client_key(PyObject *tree, Position key, Position end, Py_ssize_t *count);
PyObject *tree_object_get(PyObject *tree, PyObject *key); /* the value */
PyObject *tree_object_first_with(PyObject *tree, PyObject *prefix, int *is_row);
PyObject *tree_object_last_with(PyObject *tree, PyObject *prefix, int *is_row);
/* The rows that an iterator finds, a list of bytes; NULL, maybe with an exception, where Python has to look for them:
 * there are more than TREE_SELECT_MAX, say. `prefix` is an encoded key, or the beginning of one. */
enum { TREE_SELECT_MAX = 1000 };
typedef enum { TREE_EQ, TREE_REQ, TREE_ALL, TREE_LT, TREE_LE, TREE_GE, TREE_GT, TREE_ITERATORS } TreeIterator;
PyObject *tree_object_select(PyObject *tree, int iterator, PyObject *prefix, size_t offset, size_t limit);
/* The same without copies: how many, of TREE_SELECT_MAX at most, or TREE_ROWS_UNKNOWN. They are valid until a row
 * changes. */
typedef struct {
    const uint8_t *data;
    size_t size;
} PackedRow;
enum { TREE_ROWS_UNKNOWN = -1 };
int tree_find_rows(Tree *tree, int iterator, const uint8_t *prefix, size_t size, size_t offset, size_t limit,
                   PackedRow *rows);
/* The encoded primary key and the row of a key in a tree that refers to rows, both NULL where there is none. Returns 1;
 * 0 for other trees; -1 with an exception. */
int tree_object_get_both(PyObject *tree, PyObject *key, PyObject **primary_key, PyObject **row);
/* Change a row in a primary index and the secondary ones that refer to it; `row` is bytes or None. Returns as
 * `change_row` of the engine, with an exception for CHANGE_NO_MEMORY. */
int tree_object_change(PyObject *primary, PyObject *const *trees, const int *is_unique, int count, PyObject *key,
                       PyObject *row);
int tree_object_set(PyObject *tree, PyObject *key, PyObject *value);
Tree *tree_object_core(PyObject *tree);    /* the engine's tree; NULL for other objects */
Tree *tree_object_of_rows(PyObject *tree); /* the same, if it is one of rows */
Tree *tree_object_with_views(PyObject *tree); /* the same, if it has rows or pairs of its own */
/* What the engine changes of trees; 0 if they are not all of references to the rows of the primary index. */
int tree_objects_changed(PyObject *primary, PyObject *const *trees, const int *is_unique, int count,
                         ChangedIndex *indexes);
/* Append rows of a block to a primary index. Returns how many, fewer where a row needs a closer look, or its key is not
 * above all others; -1 with an exception. */
Py_ssize_t tree_object_append(PyObject *tree, const uint8_t *block, const BlockRow *rows, size_t count);
int tree_object_remove(PyObject *tree, PyObject *key);

/* tree_view.c */
extern PyTypeObject TreeView_Type;

/* changes.c */
extern PyTypeObject QuickIndex_Type;
typedef struct {
    PyObject_HEAD
    PyObject *tree, *key_of, *encode_key;
    int is_unique, is_exact; /* exact: unique, and no part may be nil */
    int is_ordered;          /* whether more may be asked for than a whole key */
} Quick;
int prepare_changes(void); /* -1 with an exception */
Quick *quick_of(PyObject *index); /* borrowed; NULL, without an exception, where Python has to do the work */
/* Change a row's entries in all indexes, or in none. `old` and `new` are lists of fields or None, `row` what the
 * primary index is to hold or None. Returns None, or the index that refuses the row; NULL as functions below. */
PyObject *change_entries(Quick *primary, PyObject *secondaries, PyObject *key, PyObject *old, PyObject *new,
                         PyObject *row);
/* The same where all indexes hold rows or refer to them: nothing of the rows is decoded. */
PyObject *change_packed(Quick *primary, PyObject *secondaries, PyObject *key, PyObject *row);
/* What the engine changes of secondary indexes; 0 where Python has to do the work. */
int changed_indexes(Quick *primary, PyObject *secondaries, ChangedIndex *indexes);

/* faces.c: the engine's indexes of a procedure's space by number, borrowed, NULL where Python has to look; and a new
 * facade for one of them, NULL, maybe without an exception */
PyObject *facade_indexes(PyObject *space);
PyObject *new_index_facade(PyObject *space, PyObject *number);

/* A client's key: its values; or, if `packed` is not NULL, the packed array of them. */
typedef struct {
    PyObject *const *values;
    Py_ssize_t count;
    Position packed, end;
} Key;
#define KEY_OF_LIST(list) &(Key){((PyListObject *)(list))->ob_item, PyList_GET_SIZE(list), NULL, NULL}

/* spaces.c, updates.c, lookups.c: the rows of a MemtxSpace.
 *
 * All of these return NULL without an exception where they do not know what to do: then nothing was changed, and the
 * method of the same name is to be called. With an exception, that is what comes of the change. `space` may be
 * anything; `row` is a Tuple, `operations` what parse_operations answers, `index_id` an int. Rights, and whether the
 * space was dropped, are the caller's business. Without a running transaction a change is one of its own. */
extern PyTypeObject *stored_space_type; /* MemtxSpace itself: what inherits from it is unknown here */
enum {
    SPACE_FORMAT, SPACE_PRIMARY, SPACE_INDEXES, SPACE_SECONDARIES, SPACE_MULTIKEYS, SPACE_BY_FIELD,
    SPACE_PRIMARY_FIELDS, SPACE_ATTACHED, SPACE_DROPPED, SPACE_DOUBLES, SPACE_TRANSACTIONS, SPACE_BSIZE,
    SPACE_ON_REPLACE, SPACE_BEFORE_REPLACE, SPACE_SYSTEM_HOOK, SPACE_SLOTS
};
extern Slot space_slots[SPACE_SLOTS];
enum {
    MANAGER_STATEMENTS, MANAGER_READ_ONLY, MANAGER_INTERACTIVE, MANAGER_TAKE_OUT, MANAGER_ON_COMMIT,
    MANAGER_ON_ROLLBACK, MANAGER_HAS_LOGGED, MANAGER_UNWRITTEN, MANAGER_IS_WRITING, MANAGER_IS_WRITE_DUE,
    MANAGER_WRITE_SOON, MANAGER_JOURNAL, MANAGER_ON_CHANGE, MANAGER_NESTING, MANAGER_SLOTS
};
extern Slot manager_slots[MANAGER_SLOTS];
#define SPACE(space, slot) get_slot(space, space_slots + SPACE_##slot)
#define MANAGER(manager, slot) get_slot(manager, manager_slots + MANAGER_##slot)
PyObject *space_manager(PyObject *space);  /* borrowed: its TransactionManager; NULL for other things */
int space_is_usual(PyObject *space); /* whether a change of a row is nothing but that, and may be made */
int space_row_fits(PyObject *space, PyObject *row); /* whether a Tuple is known to fit; -1 with an exception */
int space_packed_row_fits(PyObject *space, PyObject *raw); /* the same of bytes that are known to be well-formed */
/* The encoded primary key of a Tuple that fits; NULL, maybe with an exception, where Python has to look at it. */
PyObject *space_fitting_row_key(PyObject *space, Quick *primary, PyObject *row);
PyObject *format_names(PyObject *format); /* borrowed: the fields' numbers, a dict; NULL for no Format */
PyObject *format_packed_names(PyObject *format); /* borrowed: a tuple; NULL for no Format */
int prepare_updates(void);
const RowFormat *space_row_format(PyObject *space); /* NULL where Python checks rows */
PyObject *space_triggers(PyObject *space); /* borrowed: the `on_replace` functions, a tuple, or NULL */

PyObject *space_store(PyObject *space, PyObject *row, int is_insert); /* the row */
/* Operations of requests, packed, and as procedures give them: [("=", 1, "T")]. */
typedef struct {
    Position at, end;
    uint32_t index_base;
    PyObject *names; /* the fields' numbers, a dict, or NULL */
} PackedOperations;
PyObject *space_update(PyObject *space, PyObject *index_id, const Key *key,
                       PyObject *operations); /* the new row as a Tuple, or None */
PyObject *space_update_packed(PyObject *space, PyObject *index_id, const Key *key,
                              const PackedOperations *packed); /* the same */
PyObject *space_update_given(PyObject *space, PyObject *index_id, const Key *key,
                             PyObject *operations); /* the same */
PyObject *space_upsert(PyObject *space, PyObject *row, PyObject *operations); /* None */
PyObject *space_upsert_packed(PyObject *space, PyObject *row, const PackedOperations *packed); /* None */
PyObject *space_upsert_given(PyObject *space, PyObject *row, PyObject *operations); /* None */
/* For changes of packed rows: what `update_row` needs, the secondary indexes whose entries may change (a new reference),
 * and whether the primary key is known to stay. These return 0 or NULL, maybe with an exception, where Python has to see
 * to it. */
int read_packed_operations(UpdateOperations *operations, const PackedOperations *packed);
int space_doubles(PyObject *space, UpdateDoubles *doubles);
PyObject *updated_indexes(PyObject *space, const UpdatedRow *updated);
int update_keeps_key(PyObject *space, const UpdatedRow *updated);
/* The old row as a Tuple, or None. */
PyObject *space_delete(PyObject *space, PyObject *index_id, const Key *key);
/* The packed row as bytes, or None. */
PyObject *space_find(PyObject *space, PyObject *index_id, const Key *key);
PyObject *space_first(PyObject *space, PyObject *index_id, const Key *key);
PyObject *space_last(PyObject *space, PyObject *index_id, const Key *key);
PyObject *space_select(PyObject *space, PyObject *index_id, PyObject *iterator, PyObject *offset, PyObject *limit,
                       const Key *key); /* a list of bytes */
/* The encoded primary key and the row of a whole key, new references; the row is NULL where there is none, and the
 * key then may be. Returns 1; 0 unknown; -1 with an exception. */
int space_locate(PyObject *space, PyObject *index_id, const Key *key,
                 PyObject **primary_key, PyObject **row);

/* statements.c: the change of a row, of which a Tuple or None is there, and a Tuple or None is to be. The space must
 * be usual. Returns 1; 0 unknown, nothing was changed; -1 with an exception. */
int space_change(PyObject *space, PyObject *key, PyObject *old, PyObject *new, PyObject *secondaries);
int prepare_statements(void);

/* lookups.c */
Quick *space_index(PyObject *space, uint64_t index_id, int *is_primary); /* borrowed */
/* The encoded key of a request, of so many values; 1, or 0 unknown, or -1 with an exception */
int request_key(Quick *quick, const Key *key, KeyBuffer *encoded, int *values);

FUNCTION(native_assign);
FUNCTION(native_apply_request);
FUNCTION(native_change_entries);
FUNCTION(native_quick_index);
FUNCTION(native_set_memory_limit);
FUNCTION(native_memory_allows);
FUNCTION(native_memory_usage);
FUNCTION(native_release_free_memory);
FUNCTION(native_memory_outside);

#endif
