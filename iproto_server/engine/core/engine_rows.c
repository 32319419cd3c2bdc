#include "engine.h"

#include <stdlib.h>

/* -- checking rows -- */

int engine_check_format(const IprotoSpace *space, const uint8_t *row, size_t size)
{
    uint32_t number;
    switch (format_check(space->fields, space->field_count, space->exact_field_count, row, size, &number)) {
    case FORMAT_FINE:
        return 0;
    case FORMAT_DAMAGED:
        return engine_fail(IPROTO_ER_INVALID_MSGPACK, "Invalid MsgPack - row");
    case FORMAT_NO_ARRAY:
        return engine_fail(IPROTO_ER_TUPLE_NOT_ARRAY, "Tuple/Key must be MsgPack array");
    case FORMAT_COUNT:
        return engine_fail(IPROTO_ER_EXACT_FIELD_COUNT, "Tuple field count %u does not match space field count %u",
                           number, space->exact_field_count);
    case FORMAT_TYPE:
        return engine_fail(IPROTO_ER_FIELD_TYPE,
                           "Tuple field %u type does not match one required by operation: expected %s", number + 1,
                           engine_field_name(space->fields[number].type));
    case FORMAT_MISSING:
        return engine_fail(IPROTO_ER_FIELD_MISSING, "Tuple field %u required by space format is missing", number + 1);
    }
    return -1;
}

int engine_check_row(IprotoSpace *space, const uint8_t *row, size_t size)
{
    if (!row)
        return engine_fail_null("the row");
    if (size > ENGINE_ROW_MAX)
        return engine_fail(IPROTO_ER_MEMTX_MAX_TUPLE_SIZE,
                           "Failed to allocate %zu bytes for tuple: tuple is too large.", size);
    if (engine_check_format(space, row, size) < 0)
        return -1;
    if (key_of_row(&engine_primary(space)->layout, row, size, &space->engine->key) <= 0)
        return engine_fail_memory(size, "a key");
    return 0;
}

static TreeKey primary_key(const IprotoSpace *space)
{
    const KeyBuffer *key = &space->engine->key;
    return tree_key(&engine_primary(space)->tree, key->data, key->size);
}

static int begin_change(const IprotoSpace *space)
{
    if (!space)
        return engine_fail_null("the space");
    if (engine_check_change(space->engine) < 0)
        return -1;
    if (!space->index_count)
        return engine_fail(IPROTO_ER_NO_SUCH_INDEX_ID, "No index #0 is defined in space '%s'", space->name);
    return 0;
}

/* The row with a primary key; NULL if there is none. */
static const Record *find(const IprotoSpace *space, const TreeKey *key)
{
    Tree *primary = &engine_primary(space)->tree;
    Place place = tree_find(primary, key);
    return place.is_found ? records_at(primary->records, tree_handle(primary, place)) : NULL;
}

/* Store a row, and tell where it is. */
static int store(IprotoSpace *space, const TreeKey *key, const uint8_t *row, size_t size, IprotoTuple *result)
{
    if (engine_change(space, key, row, size) < 0)
        return -1;
    if (result)
        *result = engine_tuple(find(space, key));
    return 0;
}

int iproto_space_replace(IprotoSpace *space, const void *row, size_t size, IprotoTuple *result)
{
    if (begin_change(space) < 0 || engine_check_row(space, row, size) < 0)
        return -1;
    TreeKey key = primary_key(space);
    return store(space, &key, row, size, result);
}

int iproto_space_insert(IprotoSpace *space, const void *row, size_t size, IprotoTuple *result)
{
    if (begin_change(space) < 0 || engine_check_row(space, row, size) < 0)
        return -1;
    TreeKey key = primary_key(space);
    if (find(space, &key))
        return engine_fail(IPROTO_ER_TUPLE_FOUND, "Duplicate key exists in unique index '%s' in space '%s'",
                           engine_primary(space)->name, space->name);
    return store(space, &key, row, size, result);
}

/* Find the row that changes, and make its primary key. Returns 1; 0 if there is none; -1. */
static int find_changed(IprotoIndex *index, const void *key, size_t size, const Record **found)
{
    if (!index)
        return engine_fail_null("the index");
    if (begin_change(index->space) < 0)
        return -1;
    int done = engine_find(index, key, size, found);
    if (done > 0 && key_of_row(&engine_primary(index->space)->layout, (*found)->data, (*found)->size,
                               &index->space->engine->key) <= 0)
        return engine_fail_memory((*found)->size, "a key");
    return done;
}

int iproto_index_delete(IprotoIndex *index, const void *key, size_t size, IprotoTuple *result)
{
    const Record *found;
    int done = find_changed(index, key, size, &found);
    if (done <= 0)
        return done;
    TreeKey primary = primary_key(index->space);
    if (engine_change(index->space, &primary, NULL, 0) < 0)
        return -1;
    if (result)
        *result = engine_tuple(found); /* it is kept */
    return 1;
}

/* -- update operations -- */

static int field_of(void *names, const uint8_t *name, size_t size, int32_t *field_no)
{
    const EngineFieldNames *all = names;
    for (uint32_t number = 0; number < all->count; number++)
        if (all->all[number].size == size && !memcmp(all->all[number].name, name, size)) {
            *field_no = (int32_t)number;
            return 1;
        }
    return 0;
}

/* Say why operations were refused. `operation` may not be read to its end. */
static int fail_update(UpdateProblem problem, int number, const UpdateOperation *operation)
{
    int field = operation->field_no >= 0 ? operation->field_no + 1 : operation->field_no;
    switch (problem) {
    case UPDATE_TOO_MANY:
        return engine_fail(IPROTO_ER_ILLEGAL_PARAMS, "Illegal parameters, too many operations for update");
    case UPDATE_OPCODE:
        return engine_fail(IPROTO_ER_UNKNOWN_UPDATE_OP,
                           "Unknown UPDATE operation #%d: no such operation, or wrong number of arguments", number + 1);
    case UPDATE_FIELD:
        return engine_fail(IPROTO_ER_ILLEGAL_PARAMS, "Illegal parameters, field id must be a number or a string");
    case UPDATE_NO_NAME:
        return engine_fail(IPROTO_ER_NO_SUCH_FIELD_NAME, "Field of operation #%d was not found in the tuple",
                           number + 1);
    case UPDATE_NO_NUMBER:
        return engine_fail(IPROTO_ER_NO_SUCH_FIELD_NO, "Field %d was not found in the tuple", field);
    case UPDATE_ARGUMENT:
        return engine_fail(IPROTO_ER_UPDATE_ARG_TYPE,
                           "Argument type in operation '%c' on field %d does not match field type: expected %s",
                           operation->opcode, field,
                           operation->opcode == ':' ? "a string"
                               : operation->opcode == '+' || operation->opcode == '-' ? "a number"
                               : "a positive integer");
    case UPDATE_OFFSET:
        return engine_fail(IPROTO_ER_UPDATE_SPLICE, "SPLICE error on field %d: offset is out of bound", field);
    case UPDATE_NOTHING:
        return engine_fail(IPROTO_ER_UPDATE_FIELD, "Field %d UPDATE error: cannot delete 0 fields", field);
    case UPDATE_TWICE:
        return engine_fail(IPROTO_ER_UPDATE_FIELD, "Field %d UPDATE error: double update of the same field", field);
    case UPDATE_OVERFLOW:
        return engine_fail(IPROTO_ER_UPDATE_INTEGER_OVERFLOW,
                           "Integer overflow when performing '%c' operation on field %d", operation->opcode, field);
    case UPDATE_UNSUPPORTED:
        return engine_fail(IPROTO_ER_UNSUPPORTED, "The engine does not support operation #%d on this value",
                           number + 1);
    default:
        return engine_fail(IPROTO_ER_INVALID_MSGPACK, "Invalid MsgPack - update operation #%d", number + 1);
    }
}

static int read_operations(IprotoSpace *space, const void *operations, size_t size, uint32_t index_base)
{
    UpdateOperations *read = &space->engine->operations;
    if (!operations)
        return engine_fail_null("the operations");
    if (size > UINT32_MAX)
        return engine_fail(IPROTO_ER_INVALID_MSGPACK, "Invalid MsgPack - update operations");
    const uint8_t *at = operations;
    if (update_read(read, at, at + size, index_base, field_of, &space->names))
        return 0;
    if (read->problem == UPDATE_NO_NUMBER) /* as it was given */
        return engine_fail(IPROTO_ER_NO_SUCH_FIELD_NO, "Field %d was not found in the tuple",
                           read->all[read->problem_at].field_no);
    return fail_update(read->problem, read->problem_at, read->all + read->problem_at);
}

/* Write the row that operations have made to `engine->row`. */
static int write_row(IprotoEngine *engine)
{
    size_t size = engine->updated.size;
    if (size > engine->row_room) {
        uint8_t *row = realloc(engine->row, 2 * size);
        if (!row)
            return engine_fail_memory(2 * size, "tuple");
        engine->row = row;
        engine->row_room = 2 * size;
    }
    update_write(&engine->updated, engine->row);
    return 0;
}

/* Make and check a new row. Returns 1; 0 if it has another primary key; -1. `old_key` is in `engine->key`. */
static int make_row(IprotoSpace *space, const Record *old, int is_upsert, KeyBuffer *new_key)
{
    IprotoEngine *engine = space->engine;
    UpdatedRow *new = &engine->updated;
    int (*apply)(UpdatedRow *, const UpdateOperations *, const uint8_t *, size_t, const UpdateDoubles *) =
        is_upsert ? update_row_where_it_fits : update_row;
    if (!apply(new, &engine->operations, old->data, old->size, &space->doubles))
        return fail_update(new->problem, new->problem_at, engine->operations.all + new->problem_at);
    if (new->size > ENGINE_ROW_MAX)
        return engine_fail(IPROTO_ER_MEMTX_MAX_TUPLE_SIZE,
                           "Failed to allocate %zu bytes for tuple: tuple is too large.", new->size);
    if (write_row(engine) < 0 || engine_check_format(space, engine->row, new->size) < 0)
        return -1;
    if (key_of_row(&engine_primary(space)->layout, engine->row, new->size, new_key) <= 0)
        return engine_fail_memory(new->size, "a key");
    return new_key->size == engine->key.size && !memcmp(new_key->data, engine->key.data, new_key->size);
}

/* Update a row. Returns as `make_row`. */
static int update(IprotoSpace *space, const Record *old, int is_upsert, IprotoTuple *result)
{
    KeyBuffer new_key = {0};
    int done = make_row(space, old, is_upsert, &new_key);
    key_buffer_free(&new_key);
    if (done <= 0)
        return done;
    TreeKey key = primary_key(space);
    return store(space, &key, space->engine->row, space->engine->updated.size, result) < 0 ? -1 : 1;
}

int iproto_index_update(IprotoIndex *index, const void *key, size_t key_size, const void *operations, size_t size,
                        uint32_t index_base, IprotoTuple *result)
{
    const Record *old;
    int done = find_changed(index, key, key_size, &old);
    if (done < 0 || read_operations(index->space, operations, size, index_base) < 0)
        return -1;
    if (!done)
        return 0;
    IprotoSpace *space = index->space;
    done = update(space, old, 0, result);
    if (!done)
        return engine_fail(IPROTO_ER_CANT_UPDATE_PRIMARY_KEY,
                           "Attempt to modify a tuple field which is part of index '%s' in space '%s'",
                           engine_primary(space)->name, space->name);
    return done;
}

int iproto_space_upsert(IprotoSpace *space, const void *row, size_t row_size, const void *operations, size_t size,
                        uint32_t index_base)
{
    if (begin_change(space) < 0 || engine_check_row(space, row, row_size) < 0
        || read_operations(space, operations, size, index_base) < 0)
        return -1;
    TreeKey key = primary_key(space);
    const Record *old = find(space, &key);
    if (!old)
        return store(space, &key, row, row_size, NULL);
    return update(space, old, 1, NULL) < 0 ? -1 : 0; /* nothing is done if the primary key would change */
}
