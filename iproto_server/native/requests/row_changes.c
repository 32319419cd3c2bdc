/* Changes of rows by requests, from packed row to packed row: neither a Tuple nor a Statement is made.
 *
 * That is for a space that is usual (spaces.c) and has no triggers, with a change that is a transaction by itself and is
 * logged. For all others, and for whatever is refused, nothing has changed here.
 */
#include "../native.h"

#include "../../engine/core/budget.h"

typedef struct {
    const RowRequest *request;
    Response *response;
    PyObject *manager;
    Quick *quick;
    Tree *primary;
    const RowFormat *format;
    TreeKey key; /* the primary key of the row, and where that is */
    KeyBuffer bytes;
    Place at;
    PackedRow old;  /* no `data` for none; gone when the change is made */
    PyObject *kept; /* the same as bytes or None, from then on */
    ChangedIndex indexes[CHANGE_INDEXES_MAX];
    int count;
} Change;

/* Whether it is all as it must be. */
static int begin(Change *change, const RowRequest *request, Response *response)
{
    PyObject *space = request->space, *triggers, *primary;
    change->request = request;
    change->response = response;
    change->kept = NULL;
    change->bytes.data = NULL;
    change->old = (PackedRow){NULL, 0};
    change->count = 0;
    if (!space_is_usual(space) || !(triggers = space_triggers(space)) || PyTuple_GET_SIZE(triggers))
        return 0;
    change->manager = space_manager(space);
    primary = SPACE(space, PRIMARY);
    return commits_plainly(change->manager, space) && primary && (change->quick = quick_of(primary))
        && (change->primary = tree_object_of_rows(change->quick->tree)) && (change->format = space_row_format(space));
}

static int no_memory(void)
{
    PyErr_NoMemory();
    return -1;
}

/* -- where the row is. Each returns 1; 0 unknown; -1 with an exception -- */

static int set_old(Change *change)
{
    if (!change->at.is_found)
        return 1;
    const Record *record = tree_record(change->primary, tree_handle(change->primary, change->at));
    if (!record || record->key_size)
        return 0;
    change->old = (PackedRow){record->data, record->size};
    return 1;
}

/* The row with the primary key of another one. */
static int find_like(Change *change, const uint8_t *row, size_t size)
{
    int done = find_row_like(change->primary, row, size, &change->key, &change->bytes, &change->at);
    return done > 0 ? set_old(change) : done < 0 ? no_memory() : 0;
}

/* The row that an entry of a secondary index refers to. */
static int find_referred(Change *change, Tree *tree, Place place)
{
    Handle32 handle = tree_handle(tree, place);
    const Record *record = handle & TREE_PAIR ? NULL : tree_record(tree, handle);
    key_buffer_free(&change->bytes);
    return record && !record->key_size ? find_like(change, record->data, record->size) : 0;
}

/* The row with the key of the request, if there is one. */
static int find_requested(Change *change)
{
    int is_primary, values;
    Quick *quick = space_index(change->request->space, change->request->index_id, &is_primary);
    if (!quick || !quick->is_exact)
        return 0;
    int done = request_key(quick, &change->request->key, &change->bytes, &values);
    if (done <= 0 || values != client_key_parts(quick->encode_key))
        return done < 0 ? -1 : 0;
    Tree *tree = tree_object_core(quick->tree);
    change->key = tree_key(tree, change->bytes.data, change->bytes.size);
    change->at = tree_find(tree, &change->key);
    if (is_primary)
        return set_old(change);
    return change->at.is_found ? find_referred(change, tree, change->at) : 1;
}

/* -- making the change. These return 1; 0 unknown, nothing has changed; -1 with an exception -- */

static int touch(Change *change, PyObject *secondaries)
{
    if (!secondaries || !PyTuple_CheckExact(secondaries) || !changed_indexes(change->quick, secondaries, change->indexes))
        return 0;
    change->count = (int)PyTuple_GET_SIZE(secondaries);
    return 1;
}

static int is_affordable(const Change *change, size_t size)
{
    return budget.limit == BUDGET_UNLIMITED || !size
        || budget_allows(change->old.size, size, (size_t)change->count + !change->old.data, 0, 0);
}

static PyObject *bytes_of(const PackedRow *row)
{
    return row->data ? PyBytes_FromStringAndSize((const char *)row->data, (Py_ssize_t)row->size) : Py_NewRef(Py_None);
}

/* The size of all rows of the space, with the change. */
static PyObject *bsize_with(const Change *change, size_t size)
{
    Py_ssize_t now = PyLong_AsSsize_t(SPACE(change->request->space, BSIZE));
    if (now == -1 && PyErr_Occurred())
        return NULL;
    return PyLong_FromSsize_t(now + (Py_ssize_t)size - (Py_ssize_t)change->old.size);
}

/* Change the engine's trees, once all that may fail is done. */
static int change_trees(Change *change, const LogRow *row, size_t size, PyObject *bsize)
{
    const uint8_t *data = size ? row->data : NULL;
    int done = change_found_row(change->primary, change->indexes, change->count, &change->key, change->at, data, size);
    if (done == CHANGE_DONE) {
        set_slot(change->request->space, space_slots + SPACE_BSIZE, bsize);
        return 1;
    }
    log_row_take_back(row, change->manager);
    return done == CHANGE_NO_MEMORY ? no_memory() : 0;
}

/* Put the row that is in the log's, or none if `size` is 0, in the place of the old one. */
static int commit_row(Change *change, const LogRow *row, size_t size)
{
    if (!is_affordable(change, size))
        return 0;
    PyObject *committed = NULL, *bsize = bsize_with(change, size);
    int done = -1;
    change->kept = bytes_of(&change->old);
    if (change->kept && bsize)
        committed = new_committed_change(change->request->space, change->quick->tree, change->kept, row, size);
    if (committed && log_row_append(row, change->manager, committed) == 0)
        done = change_trees(change, row, size, bsize);
    if (done > 0 && log_row_commit(change->manager) < 0)
        done = -1;
    Py_XDECREF(committed);
    Py_XDECREF(bsize);
    return done;
}

static int respond(const Change *change, const PackedRow *row)
{
    return answer_rows(change->request, change->response, row, row->data != NULL);
}

/* -- INSERT and REPLACE: these, too, return 1; 0 or -1, maybe with an exception -- */

static int put(Change *change, const PackedRow *row, const PackedRow *answered)
{
    LogRow log_row = {NULL};
    int done = 0;
    uint64_t type = change->old.data ? REQUEST_REPLACE : REQUEST_INSERT;
    if (touch(change, SPACE(change->request->space, SECONDARIES))
        && log_row_open(&log_row, change->manager, type, change->request->space, row->size) == 0) {
        memcpy(log_row.data, row->data, row->size);
        done = commit_row(change, &log_row, row->size) > 0 && respond(change, answered) > 0;
    }
    log_row_close(&log_row);
    return done;
}

static PackedRow requested_row(const RowRequest *request)
{
    return (PackedRow){request->tuple.at, (size_t)(request->tuple.end - request->tuple.at)};
}

/* Find the place of the row of the request, which must fit the format. */
static int find_place(Change *change, const PackedRow *row)
{
    return format_fits(change->format, row->data, row->size, 0) ? find_like(change, row->data, row->size) : 0;
}

static int store(Change *change, int is_insert)
{
    PackedRow row = requested_row(change->request);
    if (find_place(change, &row) <= 0 || (is_insert && change->at.is_found))
        return 0;
    return put(change, &row, &row);
}

/* -- UPDATE and UPSERT -- */

/* Put the updated row in the place of the old one. */
static int put_updated(Change *change, const UpdatedRow *updated, int is_answered)
{
    LogRow log_row = {NULL};
    PyObject *space = change->request->space, *touched = updated_indexes(space, updated);
    int done = 0;
    if (touched && touch(change, touched)
        && log_row_open(&log_row, change->manager, REQUEST_REPLACE, space, updated->size) == 0) {
        update_write(updated, log_row.data);
        PackedRow answered = {is_answered ? log_row.data : NULL, updated->size};
        done = format_fits(change->format, log_row.data, updated->size, 1)
            && commit_row(change, &log_row, updated->size) > 0 && respond(change, &answered) > 0;
    }
    log_row_close(&log_row);
    Py_XDECREF(touched);
    return done;
}

/* Read operations whose values are known to be well-formed. */
static int read_operations(const Change *change, UpdateOperations *operations, Span given)
{
    PyObject *names = format_names(SPACE(change->request->space, FORMAT));
    PackedOperations packed = {given.at, given.end, change->request->index_base, names};
    return read_packed_operations(operations, &packed) && operations->is_plain;
}

static int apply(Change *change, const UpdateOperations *operations, int is_answered)
{
    UpdateDoubles doubles;
    UpdatedRow updated;
    if (!space_doubles(change->request->space, &doubles)
        || !update_row(&updated, operations, change->old.data, change->old.size, &doubles)
        || !update_keeps_key(change->request->space, &updated))
        return 0;
    return put_updated(change, &updated, is_answered);
}

static int update(Change *change)
{
    UpdateOperations operations;
    if (!read_operations(change, &operations, change->request->tuple) || find_requested(change) <= 0)
        return 0;
    return change->old.data ? apply(change, &operations, 1) : respond(change, &change->old);
}

static int upsert(Change *change)
{
    static const PackedRow none = {NULL, 0};
    UpdateOperations operations;
    PackedRow row = requested_row(change->request);
    if (!read_operations(change, &operations, change->request->operations) || find_place(change, &row) <= 0)
        return 0;
    return change->old.data ? apply(change, &operations, 0) : put(change, &row, &none);
}

/* -- DELETE -- */

static int remove_old(Change *change)
{
    KeyValue values[KEY_PARTS_MAX];
    uint32_t fields[KEY_PARTS_MAX];
    const KeyLayout *layout = change->primary->layout;
    for (int part = 0; part < layout->own; part++)
        fields[part] = layout->parts[part].field_no;
    size_t size = find_key(change->old.data, change->old.size, fields, layout->own, values);
    LogRow log_row = {NULL};
    PyObject *space = change->request->space;
    int done = 0;
    if (size && touch(change, SPACE(space, SECONDARIES))
        && log_row_open(&log_row, change->manager, REQUEST_DELETE, space, size) == 0) {
        put_key(log_row.data, values, layout->own);
        if (commit_row(change, &log_row, 0) > 0) {
            PackedRow removed = {(Position)PyBytes_AS_STRING(change->kept), (size_t)PyBytes_GET_SIZE(change->kept)};
            done = respond(change, &removed) > 0;
        }
    }
    log_row_close(&log_row);
    return done;
}

static int remove_requested(Change *change)
{
    if (find_requested(change) <= 0)
        return 0;
    return change->old.data ? remove_old(change) : respond(change, &change->old);
}

/* -- all of them -- */

int change_response(const RowRequest *request, Response *response)
{
    Change change;
    int done = 0;
    if (begin(&change, request, response))
        switch (request->type) {
        case REQUEST_INSERT: done = store(&change, 1); break;
        case REQUEST_REPLACE: done = store(&change, 0); break;
        case REQUEST_UPDATE: done = update(&change); break;
        case REQUEST_UPSERT: done = upsert(&change); break;
        case REQUEST_DELETE: done = remove_requested(&change); break;
        }
    key_buffer_free(&change.bytes);
    Py_XDECREF(change.kept);
    return done > 0 ? 1 : PyErr_Occurred() ? -1 : 0;
}
