/* Rows, keys and update operations that are packed, as Lua code gives them and gets rows. */
#include "../native.h"

static PyObject *operations_object(SpaceObject *core, const GivenOperations *given)
{
    return PyObject_CallMethod((PyObject *)core, "parse_packed", "y#k", (const char *)given->at,
                               (Py_ssize_t)(given->end - given->at), (unsigned long)given->index_base);
}

static PackedOperations packed_operations(const SpaceObject *core, const GivenOperations *given)
{
    return (PackedOperations){given->at, given->end, given->index_base, core->names};
}

static PyObject *row_object(SpaceObject *core, PackedRow row)
{
    PyObject *raw = PyBytes_FromStringAndSize((const char *)row.data, (Py_ssize_t)row.size);
    PyObject *tuple = raw ? stored_tuple(raw, core->format) : NULL;
    Py_XDECREF(raw);
    return tuple;
}

/* What a method of Python returns: a Tuple, None, or a list. The reference is stolen. */
static int use_object(PackedRows *rows, PyObject *object)
{
    int is_none = object == Py_None;
    if (is_none)
        Py_DECREF(object);
    else
        rows->object = object;
    return !object ? -1 : !is_none;
}

void packed_rows_init(PackedRows *rows)
{
    buffer_init(&rows->bytes);
    rows->count = 0;
    rows->object = NULL;
    rows->format = NULL;
}

void packed_rows_free(PackedRows *rows)
{
    buffer_free(&rows->bytes);
    Py_CLEAR(rows->object);
    Py_CLEAR(rows->format);
}

/* -- a change, or a search -- */

typedef struct {
    SpaceObject *core;
    uint64_t number; /* of the index */
} Access;

/* Returns -1 with an exception, and then there is nothing to end. */
static int begin(Access *access, SpaceFacade *space, PyObject *index_id, int right, PackedRows *rows)
{
    access->core = facade_core(space, right);
    access->number = 0;
    if (!access->core)
        return -1;
    rows->format = Py_XNewRef(access->core->format);
    if (!index_id || access->core->is_custom || space_read_index((PyObject *)access->core, index_id, &access->number) == 0)
        return 0;
    Py_DECREF((PyObject *)access->core);
    return -1;
}

static int end(Access *access, int done)
{
    Py_DECREF((PyObject *)access->core);
    return done;
}

/* -- searches -- */

/* The key as a list, for what Python does. */
static int find_with_list(IndexFacade *index, const Key *key, PyObject *(*find)(SpaceFacade *, PyObject *, PyObject *),
                          PackedRows *rows)
{
    PyObject *list = key_list(key);
    int done = list ? use_object(rows, find(index->space, index->id, list)) : -1;
    Py_XDECREF(list);
    return done;
}

int facade_get_packed(IndexFacade *index, const Key *key, PackedRows *rows)
{
    Access access;
    PackedRow row;
    if (begin(&access, index->space, index->id, PRIVILEGE_READ, rows) < 0)
        return -1;
    TreeObject *tree = space_index(access.core, access.number);
    int done = tree ? space_find_row(tree, key, &row) : TREE_ROWS_UNKNOWN;
    if (done > 0 && buffer_append(&rows->bytes, row.data, (Py_ssize_t)row.size) != 1)
        done = -1;
    else if (done == TREE_ROWS_UNKNOWN && !PyErr_Occurred())
        done = find_with_list(index, key, facade_get, rows);
    return end(&access, done);
}

int facade_select_packed(IndexFacade *index, const Key *key, uint64_t iterator, uint64_t offset, uint64_t limit,
                         PackedRows *rows)
{
    enum { FEW = 16 };
    Access access;
    PackedRow found[FEW];
    if (begin(&access, index->space, index->id, PRIVILEGE_READ, rows) < 0)
        return -1;
    TreeObject *tree = limit && limit <= FEW && iterator < TREE_ITERATORS ? space_index(access.core, access.number) : NULL;
    int count = tree ? space_find_rows(tree, key, iterator, offset, limit, found) : TREE_ROWS_UNKNOWN, done = count;
    for (int place = 0; done >= 0 && place < count; place++)
        if (buffer_append(&rows->bytes, found[place].data, (Py_ssize_t)found[place].size) != 1)
            done = -1;
    if (count == TREE_ROWS_UNKNOWN && !PyErr_Occurred()) {
        PyObject *list = key_list(key);
        rows->object = list ? facade_select_rows(index, list, iterator, offset, limit) : NULL;
        Py_XDECREF(list);
        done = rows->object ? 0 : -1;
    }
    rows->count = done > 0 ? (uint32_t)done : 0;
    return end(&access, done < 0 ? -1 : 1);
}

/* -- changes -- */

int facade_store_packed(SpaceFacade *space, PackedRow row, int is_insert, PackedRows *rows)
{
    Access access;
    if (begin(&access, space, NULL, PRIVILEGE_WRITE, rows) < 0)
        return -1;
    int done;
    if (access.core->is_custom) {
        PyObject *tuple = row_object(access.core, row);
        done = tuple ? use_object(rows, facade_store(space, tuple, is_insert)) : -1;
        Py_XDECREF(tuple);
    } else {
        done = space_store_packed(access.core, row, is_insert, space->exempts_new_rows, &rows->bytes);
    }
    return end(&access, done);
}

int facade_delete_packed(IndexFacade *index, const Key *key, PackedRows *rows)
{
    Access access;
    if (begin(&access, index->space, index->id, PRIVILEGE_WRITE, rows) < 0)
        return -1;
    return end(&access, access.core->is_custom ? find_with_list(index, key, facade_delete, rows)
                                                     : space_delete_packed(access.core, access.number, key, &rows->bytes));
}

static PyObject *update_custom(SpaceObject *core, PyObject *index_id, const Key *key, const GivenOperations *given)
{
    PyObject *list = key_list(key), *operations = list ? operations_object(core, given) : NULL;
    PyObject *row = operations ? PyObject_CallMethod((PyObject *)core, "update", "OOO", index_id, list, operations) : NULL;
    Py_XDECREF(operations);
    Py_XDECREF(list);
    return row;
}

static int update_plain(const Access *access, const Key *key, const GivenOperations *given, int is_exempt, PackedRows *rows)
{
    UpdateOperations read;
    PackedOperations packed = packed_operations(access->core, given);
    ChangeCall call = {.packed = &packed, .is_exempt = is_exempt};
    int is_known = read_packed_operations(&read, &packed);
    return PyErr_Occurred() ? -1 : space_update_packed(access->core, access->number, key, &call, is_known ? &read : NULL,
                                                       &rows->bytes);
}

int facade_update_packed(IndexFacade *index, const Key *key, const GivenOperations *given, PackedRows *rows)
{
    Access access;
    if (begin(&access, index->space, index->id, PRIVILEGE_WRITE, rows) < 0)
        return -1;
    return end(&access, access.core->is_custom
                   ? use_object(rows, update_custom(access.core, index->id, key, given))
                   : update_plain(&access, key, given, index->space->exempts_updates, rows));
}

static PyObject *upsert_custom(SpaceObject *core, PyObject *row, const GivenOperations *given)
{
    PyObject *operations = operations_object(core, given);
    PyObject *done = operations ? PyObject_CallMethod((PyObject *)core, "upsert", "OO", row, operations) : NULL;
    Py_XDECREF(operations);
    return done;
}

static PyObject *upsert_plain(SpaceObject *core, PyObject *row, const GivenOperations *given)
{
    UpdateOperations read;
    PackedOperations packed = packed_operations(core, given);
    ChangeCall call = {.packed = &packed};
    int is_known = read_packed_operations(&read, &packed);
    return PyErr_Occurred() ? NULL : space_upsert(core, row, 1, &call, is_known ? &read : NULL);
}

int facade_upsert_packed(SpaceFacade *space, PackedRow row, const GivenOperations *given)
{
    SpaceObject *core = facade_core(space, PRIVILEGE_WRITE);
    PyObject *tuple = core ? row_object(core, row) : NULL;
    PyObject *done = !tuple ? NULL : core->is_custom ? upsert_custom(core, tuple, given) : upsert_plain(core, tuple, given);
    Py_XDECREF(tuple);
    Py_XDECREF((PyObject *)core);
    Py_XDECREF(done);
    return done ? 0 : -1;
}
