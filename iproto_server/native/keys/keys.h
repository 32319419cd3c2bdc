/* Keys of rows and of clients, and the check of rows: decoded values to the byte strings that indexes are ordered by.
 *
 * Values whose types the engine knows are encoded here; all others by a function of Python that comes with the part of
 * the key. key_encoding.py says what the bytes are.
 */
#ifndef IPROTO_SERVER_KEYS_H
#define IPROTO_SERVER_KEYS_H

#include "../values/values.h"

/* key_values.c */
typedef struct {
    Py_ssize_t field_no;
    FieldType kind;   /* FIELD_OTHER: only `encode` knows the values */
    char is_nullable;
    PyObject *encode; /* encodes a value that is not nil, or refuses it */
    PyObject *read;   /* finds the value in the decoded fields; NULL: it is the whole field */
} DecodedPart;
FieldType field_kind(PyObject *name); /* of a field type's name */
/* These return -1 with an exception, otherwise 1. */
int write_key_byte(Buffer *buffer, uint8_t byte);
int write_key_bytes(Buffer *buffer, PyObject *bytes);
int write_key_value(Buffer *buffer, const DecodedPart *part, PyObject *value);
PyObject *finish_key(Buffer *buffer, int done); /* bytes if `done` is 1; frees the buffer */

/* row_key.c: RowKey(parts, rest=(), rest_if_nil=False, has_tail=False) */
extern PyTypeObject RowKey_Type;

/* client_key.c: ClientKey(parts) */
extern PyTypeObject ClientKey_Type;
/* The encoded key; NULL with an exception. `is_exact`: it must be whole and without nil. */
PyObject *client_key(PyObject *self, PyObject *const *values, Py_ssize_t count, int is_exact);
Py_ssize_t client_key_parts(PyObject *self); /* how many parts a whole key has */

/* row_check.c: RowCheck(parts, exact_field_count, explain) */
extern PyTypeObject RowCheck_Type;
const RowFormat *row_check_format(PyObject *check); /* NULL if the engine does not know all of it */

#endif
