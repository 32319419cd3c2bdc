/* Changes of the rows of a space, by Tuples. */
#include "../native.h"

static Change *begin(Change *change, SpaceObject *space, ChangeKind kind, ChangeCall *call)
{
    change_init(change, &space->core, kind, call);
    return change;
}

/* End a change: raise what has failed, or return a new reference to `result`. */
static PyObject *end(Change *change, ChangeCall *call, int done, PyObject *result)
{
    if (done < 0) {
        space_raise((SpaceObject *)change->space->context);
        result = NULL;
    }
    Py_XINCREF(result);
    change_free(change);
    change_call_free(call);
    return result;
}

/* What a change returns, borrowed: the stored row, the removed one, or None if triggers have kept the old one. `otherwise` is
 * for a change that has not decided anything. NULL with an exception. */
static PyObject *result_of(const ChangeCall *call, PyObject *otherwise)
{
    if (call->is_kept)
        return Py_None;
    if (call->row == Py_None)
        return call->old ? call->old : Py_None;
    return call->row ? call->row : otherwise;
}

static void use_row(Change *change, ChangeCall *call, PyObject *row, int is_whole)
{
    PyObject *raw = ((RawObject *)row)->raw;
    call->row = Py_NewRef(row);
    change->row = (RowRef){(const uint8_t *)PyBytes_AS_STRING(raw), (size_t)PyBytes_GET_SIZE(raw),
                           Py_XNewRef(((TupleObject *)row)->fields)};
    change->is_whole = (uint8_t)(is_whole || change->row.decoded);
}

PyObject *space_store(SpaceObject *space, PyObject *row, int is_insert, int is_whole, int is_exempt)
{
    Change change;
    ChangeCall call = {.is_exempt = is_exempt};
    if (ensure_stack() < 0)
        return NULL;
    begin(&change, space, is_insert ? CHANGE_INSERT : CHANGE_REPLACE, &call);
    use_row(&change, &call, row, is_whole);
    int done = change_store(&change);
    return end(&change, &call, done, result_of(&call, row));
}

/* Find the row with a whole key of a unique index: `change->key` and `change->old`. Returns 1; 0 if there is none; -1 with
 * an exception. */
static int find_old(Change *change, uint64_t index_id, const Key *key)
{
    SpaceObject *space = change->space->context;
    if (change_check(change) < 0)
        return space_raise(space);
    int found = space_locate(space, index_id, key, &change->key);
    if (found > 0 && change_find(change) < 0)
        return space_raise(space);
    return found < 0 ? -1 : change->old.data != NULL;
}

PyObject *space_delete(SpaceObject *space, uint64_t index_id, const Key *key)
{
    Change change;
    ChangeCall call = {NULL};
    if (ensure_stack() < 0)
        return NULL;
    begin(&change, space, CHANGE_DELETE, &call);
    int found = find_old(&change, index_id, key);
    if (found <= 0)
        return end(&change, &call, 0, found ? NULL : Py_None);
    PyObject *old = call_old(&change);
    int done = old ? change_delete(&change) : 0;
    return end(&change, &call, done, old ? result_of(&call, old) : NULL);
}

PyObject *space_update(SpaceObject *space, uint64_t index_id, const Key *key, ChangeCall *call,
                       const UpdateOperations *operations)
{
    Change change;
    if (ensure_stack() < 0)
        return NULL;
    begin(&change, space, CHANGE_UPDATE, call);
    change.operations = operations;
    int found = find_old(&change, index_id, key);
    if (found <= 0)
        return end(&change, call, 0, found ? NULL : Py_None);
    int done = change_update(&change);
    PyObject *result = result_of(call, NULL);
    if (done == 0 && !result && change.made) { /* the row that operations have made; the stored one may be gone */
        change.row.data = change.made;
        change.row.size = change.made_size;
        result = call_row(&change);
    }
    return end(&change, call, done, result);
}

PyObject *space_upsert(SpaceObject *space, PyObject *row, int is_whole, ChangeCall *call,
                       const UpdateOperations *operations)
{
    Change change;
    if (ensure_stack() < 0)
        return NULL;
    begin(&change, space, CHANGE_UPSERT, call);
    change.operations = operations;
    use_row(&change, call, row, is_whole);
    int done = change_upsert(&change);
    return end(&change, call, done, Py_None);
}

/* -- packed rows -- */

/* Append what a change returns: see result_of(). Returns 1; 0 for no row; -1 with an exception. */
static int append(Buffer *given, const ChangeCall *call, PackedRow otherwise)
{
    PyObject *result = result_of(call, NULL);
    PackedRow row = otherwise;
    if (result == Py_None || (!result && !otherwise.data))
        return 0;
    if (result) {
        PyObject *raw = ((RawObject *)result)->raw;
        row = (PackedRow){(const uint8_t *)PyBytes_AS_STRING(raw), (size_t)PyBytes_GET_SIZE(raw)};
    }
    return buffer_append(given, row.data, (Py_ssize_t)row.size) == 1 ? 1 : -1;
}

static int end_packed(Change *change, ChangeCall *call, int done)
{
    change_free(change);
    change_call_free(call);
    return done;
}

int space_store_packed(SpaceObject *space, PackedRow row, int is_insert, int is_exempt, Buffer *given)
{
    Change change;
    ChangeCall call = {.is_exempt = is_exempt};
    if (ensure_stack() < 0)
        return -1;
    begin(&change, space, is_insert ? CHANGE_INSERT : CHANGE_REPLACE, &call);
    change.row = (RowRef){row.data, row.size, NULL};
    int done = change_store(&change) < 0 ? space_raise(space) : append(given, &call, row);
    return end_packed(&change, &call, done);
}

int space_delete_packed(SpaceObject *space, uint64_t index_id, const Key *key, Buffer *given)
{
    Change change;
    ChangeCall call = {NULL};
    if (ensure_stack() < 0)
        return -1;
    begin(&change, space, CHANGE_DELETE, &call);
    int done = find_old(&change, index_id, key);
    Py_ssize_t start = given->size;
    if (done > 0 && buffer_append(given, change.old.data, (Py_ssize_t)change.old.size) != 1)
        done = -1;
    if (done > 0 && change_delete(&change) < 0)
        done = space_raise(space);
    if (done > 0 && (call.is_kept || (call.row && call.row != Py_None))) {
        given->size = start;
        done = append(given, &call, (PackedRow){NULL, 0});
    }
    return end_packed(&change, &call, done);
}

int space_update_packed(SpaceObject *space, uint64_t index_id, const Key *key, ChangeCall *call,
                        const UpdateOperations *operations, Buffer *given)
{
    Change change;
    if (ensure_stack() < 0)
        return -1;
    begin(&change, space, CHANGE_UPDATE, call);
    change.operations = operations;
    int done = find_old(&change, index_id, key);
    if (done > 0 && change_update(&change) < 0)
        done = space_raise(space);
    else if (done > 0) /* the row that operations have made: the stored one may be gone */
        done = append(given, call, (PackedRow){change.made, change.made_size});
    return end_packed(&change, call, done);
}

/* -- methods -- */

static int check_arguments(Py_ssize_t count, Py_ssize_t wanted, const char *what)
{
    if (count == wanted)
        return 0;
    PyErr_Format(PyExc_TypeError, "%s", what);
    return -1;
}

static int check_row(PyObject *row)
{
    if (Py_TYPE(row) == &Tuple_Type)
        return 0;
    PyErr_Format(PyExc_TypeError, "a row is a Tuple, not %.100s", Py_TYPE(row)->tp_name);
    return -1;
}

int space_read_index(PyObject *space, PyObject *number, uint64_t *index_id)
{
    *index_id = PyLong_AsUnsignedLongLong(number);
    if (!PyErr_Occurred() || !PyErr_ExceptionMatches(PyExc_OverflowError))
        return PyErr_Occurred() ? -1 : 0;
    PyErr_Clear();
    PyObject *found = PyObject_CallMethod(space, "index", "(O)", number); /* which there is not */
    Py_XDECREF(found);
    return -1;
}

int space_read_key(PyObject *list, Key *key)
{
    if (!PyList_Check(list)) {
        PyErr_Format(PyExc_TypeError, "a key is a list, not %.100s", Py_TYPE(list)->tp_name);
        return -1;
    }
    *key = *KEY_OF_LIST(list);
    return 0;
}

PyObject *space_method_insert(PyObject *self, PyObject *row)
{
    return check_row(row) < 0 ? NULL : space_store((SpaceObject *)self, row, 1, 0, 0);
}

PyObject *space_method_replace(PyObject *self, PyObject *row)
{
    return check_row(row) < 0 ? NULL : space_store((SpaceObject *)self, row, 0, 0, 0);
}

/* delete(index_id, key) */
PyObject *space_method_delete(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    uint64_t index_id;
    Key key;
    if (check_arguments(count, 2, "delete() takes an index's number and a key") < 0 || space_read_index(self, args[0], &index_id) < 0
        || space_read_key(args[1], &key) < 0)
        return NULL;
    return space_delete((SpaceObject *)self, index_id, &key);
}

/* update(index_id, key, operations) */
PyObject *space_method_update(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    uint64_t index_id;
    Key key;
    if (check_arguments(count, 3, "update() takes an index's number, a key and operations") < 0
        || space_read_index(self, args[0], &index_id) < 0 || space_read_key(args[1], &key) < 0)
        return NULL;
    UpdateOperations read;
    ChangeCall call = {.operations = Py_NewRef(args[2])};
    int is_known = read_parsed_operations(&read, args[2]);
    return PyErr_Occurred() ? NULL : space_update((SpaceObject *)self, index_id, &key, &call, is_known ? &read : NULL);
}

/* upsert(row, operations) */
PyObject *space_method_upsert(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (check_arguments(count, 2, "upsert() takes a row and operations") < 0 || check_row(args[0]) < 0)
        return NULL;
    UpdateOperations read;
    ChangeCall call = {.operations = Py_NewRef(args[1])};
    int is_known = read_parsed_operations(&read, args[1]);
    return PyErr_Occurred() ? NULL : space_upsert((SpaceObject *)self, args[0], 0, &call, is_known ? &read : NULL);
}
