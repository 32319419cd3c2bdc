/* Trees: the binding of the engine's indexes. */
#ifndef IPROTO_SERVER_TREES_H
#define IPROTO_SERVER_TREES_H

#include "../keys/keys.h"
#include "../../engine/core/iproto_engine.h"

/* tree_type.c: an index, the base of Python's index classes. Keys and values must be bytes. What is returned is a new reference;
 * NULL, maybe with an exception, where there is no such entry. `is_row` is set to whether it is the row of the entry, and
 * not its value. */
extern PyTypeObject Tree_Type;
typedef struct {
    PyObject_HEAD
    Index *index;
    PyObject *key_of, *encode_key; /* a RowKey, or another function in a multikey index; a ClientKey; or NULL */
    char is_exact, is_ordered;     /* unique, and no part may be nil; whether partial keys and ranges can be asked for */
} TreeObject;
Index *index_of_object(PyObject *tree); /* borrowed; NULL for other objects */
TreeObject *quick_of(PyObject *tree);   /* borrowed; NULL for other objects, and if a row may have many keys */
void row_ref_free(RowRef *row);
/* The encoded key of a packed row in a primary index; of a client's packed key, of which `count` becomes the number of
 * values. NULL, maybe with an exception, where these need more than the core knows. */
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
int tree_object_set(PyObject *tree, PyObject *key, PyObject *value);
/* Append rows of a block to a primary index. Returns how many, fewer where a row needs a closer look, or its key is not
 * above all others; -1 with an exception. */
Py_ssize_t tree_object_append(PyObject *tree, const uint8_t *block, const BlockRow *rows, size_t count);
int tree_object_remove(PyObject *tree, PyObject *key);

/* tree_view.c */
extern PyTypeObject TreeView_Type;

#endif
