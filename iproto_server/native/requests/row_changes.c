/* Fast path for changes of rows by requests: from packed row to packed row, where no code of an application is called. */
#include "../native.h"

/* Whether a change of the space calls no triggers, sequences or effects of system rows. */
static int is_plain(const SpaceObject *space)
{
    return !space->is_custom && !space->core.flags;
}

static PackedOperations operations_of(const RowRequest *request, Span operations)
{
    return (PackedOperations){operations.at, operations.end, request->index_base, ((SpaceObject *)request->space)->names};
}

/* Write the response: 1; -1 with an exception. */
static int respond(const RowRequest *request, Response *response, const uint8_t *row, size_t size)
{
    PackedRow answered = {row, size};
    return answer_rows(request, response, &answered, row != NULL);
}

/* End a change whose response is written already. */
static int conclude(const RowRequest *request, Response *response, int done)
{
    if (done == ENGINE_OK)
        return 1;
    response_drop(response);
    return space_raise((SpaceObject *)request->space);
}

static void use_tuple(Change *change, const RowRequest *request)
{
    change->row.data = request->tuple.at;
    change->row.size = (size_t)(request->tuple.end - request->tuple.at);
}

static int store(Change *change, const RowRequest *request, Response *response)
{
    use_tuple(change, request);
    if (respond(request, response, change->row.data, change->row.size) < 0)
        return -1;
    return conclude(request, response, change_store(change));
}

/* Find the row with the key of the request. Returns 1; 0 if there is none; -1 with an exception. */
static int find(Change *change, const RowRequest *request)
{
    SpaceObject *space = (SpaceObject *)request->space;
    if (change_check(change) < 0)
        return space_raise(space);
    int found = space_locate(space, request->index_id, &request->key, &change->key);
    if (found > 0 && change_find(change) < 0)
        return space_raise(space);
    return found < 0 ? -1 : change->old.data != NULL;
}

static int update(Change *change, const RowRequest *request, Response *response)
{
    UpdateOperations operations;
    ChangeCall *call = change->context;
    PackedOperations packed = operations_of(request, request->tuple);
    int found = find(change, request);
    if (found <= 0)
        return found < 0 ? -1 : respond(request, response, NULL, 0);
    call->packed = &packed;
    change->operations = read_packed_operations(&operations, &packed) ? &operations : NULL;
    if (PyErr_Occurred())
        return -1;
    int done = change_update(change);
    call->packed = NULL;
    if (done < 0)
        return space_raise((SpaceObject *)request->space);
    if (change->made)
        return respond(request, response, change->made, change->made_size);
    PyObject *raw = ((RawObject *)call->row)->raw;
    return respond(request, response, (const uint8_t *)PyBytes_AS_STRING(raw), (size_t)PyBytes_GET_SIZE(raw));
}

static int upsert(Change *change, const RowRequest *request, Response *response)
{
    UpdateOperations operations;
    ChangeCall *call = change->context;
    PackedOperations packed = operations_of(request, request->operations);
    use_tuple(change, request);
    call->packed = &packed;
    change->operations = read_packed_operations(&operations, &packed) ? &operations : NULL;
    if (PyErr_Occurred() || respond(request, response, NULL, 0) < 0)
        return -1;
    int done = conclude(request, response, change_upsert(change));
    call->packed = NULL;
    return done;
}

static int remove_row(Change *change, const RowRequest *request, Response *response)
{
    int found = find(change, request);
    if (found < 0 || respond(request, response, change->old.data, change->old.size) < 0)
        return -1;
    return conclude(request, response, found ? change_delete(change) : ENGINE_OK);
}

static int make_change(Change *change, const RowRequest *request, Response *response)
{
    switch (request->type) {
    case REQUEST_INSERT: case REQUEST_REPLACE: return store(change, request, response);
    case REQUEST_UPDATE: return update(change, request, response);
    case REQUEST_UPSERT: return upsert(change, request, response);
    default: return remove_row(change, request, response);
    }
}

int change_response(const RowRequest *request, Response *response)
{
    SpaceObject *space = (SpaceObject *)request->space;
    Change change;
    ChangeCall call = {NULL};
    if (!is_plain(space))
        return 0;
    if (ensure_stack() < 0)
        return -1;
    change_init(&change, &space->core, (ChangeKind)request->type, &call);
    int done = make_change(&change, request, response);
    change_free(&change);
    change_call_free(&call);
    return done;
}
