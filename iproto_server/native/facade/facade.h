/* Facades: what procedures see of spaces and indexes.
 *
 * The classes of box/api/space.py and box/api/space_index.py inherit from these types. Rights and rows pass through here
 * once; what is rare is a method of the Python class, or of the engine space's Python class, which is named where it is
 * called.
 */
#ifndef IPROTO_SERVER_FACADE_H
#define IPROTO_SERVER_FACADE_H

#include "../sessions/sessions.h"
#include "../space/space.h"

#define FACADE_METHOD(name)                                                                                     \
    static PyObject *name(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
#define FACADE_ENTRY(name, function, signature, text)                                                           \
    {name, (PyCFunction)(void (*)(void))function, METH_FASTCALL | METH_KEYWORDS, name signature "\n--\n\n" text}

/* space_facade.c */
typedef struct {
    PyObject_HEAD
    SpaceObject *core;
    PyObject *sessions; /* a SessionFacade */
    PyObject *primary;  /* the IndexFacade of the index with number 0 */
    char exempts_updates, exempts_new_rows; /* from the memory limit */
} SpaceFacade;
extern PyTypeObject SpaceFacade_Type;
enum { NO_RIGHT = 0 };
/* The engine space, a new reference, for a caller with a privilege, or NO_RIGHT; NULL with a BoxError ACCESS_DENIED or
 * NO_SUCH_SPACE. */
SpaceObject *facade_core(SpaceFacade *self, int right);

/* index_facade.c */
typedef struct {
    PyObject_HEAD
    SpaceFacade *space;
    PyObject *id;
} IndexFacade;
extern PyTypeObject IndexFacade_Type;
/* Of a space and the number of an index. New references; NULL with an exception. */
PyObject *facade_store(SpaceFacade *space, PyObject *values, int is_insert);
PyObject *facade_first(IndexFacade *index, PyObject *key);
PyObject *facade_min(IndexFacade *index, PyObject *key);
PyObject *facade_max(IndexFacade *index, PyObject *key);
PyObject *facade_select_rows(IndexFacade *index, PyObject *key, uint64_t iterator, uint64_t offset, uint64_t limit);
PyObject *facade_get(SpaceFacade *space, PyObject *id, PyObject *key);
PyObject *facade_update(SpaceFacade *space, PyObject *id, PyObject *key, PyObject *operations);
PyObject *facade_delete(SpaceFacade *space, PyObject *id, PyObject *key);
PyObject *facade_select(IndexFacade *index, PyObject *const *args, Py_ssize_t count, PyObject *names);

/* packed_rows.c: rows without objects of Python. Operations have field numbers from `index_base` on. */
typedef struct {
    Position at, end;
    uint32_t index_base;
} GivenOperations;
typedef struct {
    Buffer bytes;     /* copies of rows, one behind the other */
    uint32_t count;   /* of those that a selection has found */
    PyObject *object; /* in place of them a Tuple, or a list of some, where Python has found or changed them; or NULL */
    PyObject *format; /* of the space */
} PackedRows;
void packed_rows_init(PackedRows *rows);
void packed_rows_free(PackedRows *rows);
/* These return 1; 0 for no row; -1 with an exception. */
int facade_get_packed(IndexFacade *index, const Key *key, PackedRows *rows);
int facade_select_packed(IndexFacade *index, const Key *key, uint64_t iterator, uint64_t offset, uint64_t limit,
                         PackedRows *rows);
int facade_store_packed(SpaceFacade *space, PackedRow row, int is_insert, PackedRows *rows);
int facade_delete_packed(IndexFacade *index, const Key *key, PackedRows *rows);
int facade_update_packed(IndexFacade *index, const Key *key, const GivenOperations *operations, PackedRows *rows);
int facade_upsert_packed(SpaceFacade *space, PackedRow row, const GivenOperations *operations); /* 0, or -1 */

/* facade_lookup.c */
extern PyTypeObject SpacesFacade_Type, IndexesFacade_Type;

/* facade_arguments.c: keys and rows as procedures give them */
/* What is found belongs to `given`, or is it. Returns -1 with an exception. */
int read_given_key(PyObject *const *given, Key *key);
/* A new reference, as the space stores it; NULL with an exception. `is_whole` is set to whether it was packed here. */
PyObject *read_given_row(PyObject *values, PyObject *format, int *is_whole);
/* What the core does not know is parsed by the space's `parse_operations` into `call->operations`. Returns whether the
 * core knows them; -1 with an exception. */
int read_operations(UpdateOperations *read, Buffer *buffer, SpaceObject *core, ChangeCall *call);
PyObject *native_as_key(PyObject *module, PyObject *key);
FUNCTION(native_as_row);

#endif
