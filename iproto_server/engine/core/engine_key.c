#include "engine.h"

static IprotoFieldType type_of(const KeyPart *part)
{
    static const IprotoFieldType types[] = {
        IPROTO_UNSIGNED, IPROTO_INTEGER, IPROTO_NUMBER, IPROTO_DOUBLE, IPROTO_BOOLEAN, IPROTO_STRING, IPROTO_VARBINARY,
    };
    return types[part->type];
}

static int fail_part(const IprotoIndex *index, uint32_t part)
{
    return engine_fail(IPROTO_ER_KEY_PART_TYPE,
                       "Supplied key type of part %u does not match index part type: expected %s", part,
                       engine_type_name(type_of(index->layout.parts + part)));
}

static int fits_part(const KeyPart *part, const uint8_t *at, const uint8_t *end)
{
    FormatField field = {engine_field_type(type_of(part)), part->is_nullable};
    MsgpackValue value;
    msgpack_read(at, end, &value);
    return format_value_fits(&field, value.type, *at);
}

/* Say what is wrong with a key that was not encoded. */
static int fail_key(const IprotoIndex *index, const uint8_t *key, size_t size)
{
    const uint8_t *end = key + size, *at = key;
    uint32_t count;
    if (msgpack_skip(key, end) != end)
        return engine_fail(IPROTO_ER_INVALID_MSGPACK, "Invalid MsgPack - key");
    if (!(at = msgpack_array(key, end, &count)))
        return engine_fail(IPROTO_ER_TUPLE_NOT_ARRAY, "Tuple/Key must be MsgPack array");
    if (count > index->layout.own)
        return engine_fail(IPROTO_ER_KEY_PART_COUNT, "Invalid key part count (expected [0..%u], got %u)",
                           index->layout.own, count);
    for (uint32_t part = 0; part < count; part++) {
        if (!fits_part(index->layout.parts + part, at, end))
            return fail_part(index, part);
        at = msgpack_skip(at, end);
    }
    return engine_fail(IPROTO_ER_INVALID_MSGPACK, "Invalid MsgPack - key");
}

int engine_encode_key(const IprotoIndex *index, const void *key, size_t size, KeyBuffer *made)
{
    static const uint8_t no_parts[] = {0x90};
    if (!key && size)
        return engine_fail_null("the key");
    if (size > UINT32_MAX)
        return engine_fail(IPROTO_ER_INVALID_MSGPACK, "Invalid MsgPack - key");
    if (!key) {
        key = no_parts;
        size = 1;
    }
    int count, done = key_of_values(&index->layout, key, size, made, &count);
    if (done < 0)
        return engine_fail_memory(size, "a key");
    return done ? count : fail_key(index, key, size);
}

/* Whether all of a key's parts are there, and none of them is nil; such a key has at most one row. */
static int check_exact(const IprotoIndex *index, const uint8_t *key, size_t size, int count)
{
    if (count != index->layout.own)
        return engine_fail(IPROTO_ER_EXACT_MATCH, "Invalid key part count in an exact match (expected %u, got %d)",
                           index->layout.own, count);
    uint32_t parts;
    const uint8_t *end = key + size, *at = msgpack_array(key, end, &parts);
    for (uint32_t part = 0; part < parts; part++) {
        if (*at == 0xc0)
            return fail_part(index, part);
        at = msgpack_skip(at, end);
    }
    return 0;
}

int engine_find(IprotoIndex *index, const void *key, size_t size, const Record **found)
{
    if (!index->is_unique)
        return engine_fail(IPROTO_ER_MORE_THAN_ONE_TUPLE,
                           "Get() doesn't support partial keys and non-unique indexes");
    KeyBuffer made = {0};
    int done = engine_encode_key(index, key, size, &made);
    if (done >= 0 && (done = check_exact(index, key, size, done)) >= 0) {
        TreeKey wanted = tree_key(&index->tree, made.data, made.size);
        Place place = tree_find(&index->tree, &wanted);
        done = place.is_found;
        *found = done ? records_at(index->tree.records, tree_handle(&index->tree, place)) : NULL;
    }
    key_buffer_free(&made);
    return done;
}

/* -- reading rows by keys -- */

int iproto_index_get(IprotoIndex *index, const void *key, size_t size, IprotoTuple *result)
{
    const Record *found;
    if (!index)
        return engine_fail_null("the index");
    if (engine_check(index->space->engine) < 0)
        return -1;
    int done = engine_find(index, key, size, &found);
    if (done > 0 && result)
        *result = engine_tuple(found);
    return done;
}
