#include "engine.h"

/* -- reading one field -- */

/* Begin to read a row. Returns the first field; NULL if it is none. */
static const uint8_t *read_row(const IprotoTuple *row, uint32_t *count)
{
    if (!row || !row->data) {
        engine_fail_null("the row");
        return NULL;
    }
    const uint8_t *end = row->data + row->size, *at = msgpack_array(row->data, end, count);
    if (!at && msgpack_skip(row->data, end))
        engine_fail(IPROTO_ER_TUPLE_NOT_ARRAY, "Tuple/Key must be MsgPack array");
    else if (!at)
        engine_fail(IPROTO_ER_INVALID_MSGPACK, "Invalid MsgPack - row");
    return at;
}

static IprotoValueType type_of(MsgpackType type, uint8_t head)
{
    static const IprotoValueType types[] = {
        IPROTO_VALUE_NIL, IPROTO_VALUE_BOOLEAN, IPROTO_VALUE_UNSIGNED, IPROTO_VALUE_NEGATIVE, IPROTO_VALUE_DOUBLE,
        IPROTO_VALUE_STRING, IPROTO_VALUE_BINARY,
    };
    if (type != MSGPACK_OTHER)
        return types[type];
    if ((head & 0xf0) == 0x90 || head == 0xdc || head == 0xdd)
        return IPROTO_VALUE_ARRAY;
    return (head & 0xf0) == 0x80 || head == 0xde || head == 0xdf ? IPROTO_VALUE_MAP : IPROTO_VALUE_EXTENSION;
}

int64_t iproto_tuple_field_count(const IprotoTuple *row)
{
    uint32_t count;
    return read_row(row, &count) ? (int64_t)count : -1;
}

int iproto_tuple_field(const IprotoTuple *row, uint32_t field_no, IprotoValue *value)
{
    uint32_t count;
    const uint8_t *at = value ? read_row(row, &count) : NULL;
    if (!value)
        return engine_fail_null("the value");
    if (!at)
        return -1;
    if (field_no >= count)
        return 0;
    const uint8_t *end = row->data + row->size, *behind = NULL;
    MsgpackValue read;
    while (at && field_no--)
        at = msgpack_skip(at, end);
    if (at)
        behind = msgpack_skip(at, end);
    if (!behind)
        return engine_fail(IPROTO_ER_INVALID_MSGPACK, "Invalid MsgPack - row");
    msgpack_read(at, end, &read);
    *value = (IprotoValue){.type = type_of(read.type, *at), .slice = {at, (size_t)(behind - at)}};
    value->number = read.number;
    value->real = read.real;
    value->bytes = (IprotoTuple){read.bytes, read.size};
    return 1;
}

/* -- fields of a type -- */

static int fail_type(uint32_t field_no, const char *expected)
{
    return engine_fail(IPROTO_ER_FIELD_TYPE,
                       "Tuple field %u type does not match one required by operation: expected %s", field_no + 1,
                       expected);
}

/* Read a field. Returns 0, too, for nil. */
static int read_field(const IprotoTuple *row, uint32_t field_no, const void *wanted, IprotoValue *value)
{
    if (!wanted)
        return engine_fail_null("the value");
    int done = iproto_tuple_field(row, field_no, value);
    return done > 0 && value->type == IPROTO_VALUE_NIL ? 0 : done;
}

int iproto_tuple_unsigned(const IprotoTuple *row, uint32_t field_no, uint64_t *value)
{
    IprotoValue read;
    int done = read_field(row, field_no, value, &read);
    if (done <= 0)
        return done;
    if (read.type != IPROTO_VALUE_UNSIGNED)
        return fail_type(field_no, "unsigned");
    *value = read.number;
    return 1;
}

int iproto_tuple_integer(const IprotoTuple *row, uint32_t field_no, int64_t *value)
{
    IprotoValue read;
    int done = read_field(row, field_no, value, &read);
    if (done <= 0)
        return done;
    if (read.type != IPROTO_VALUE_NEGATIVE && (read.type != IPROTO_VALUE_UNSIGNED || read.number > INT64_MAX))
        return fail_type(field_no, "integer");
    *value = (int64_t)read.number;
    return 1;
}

int iproto_tuple_double(const IprotoTuple *row, uint32_t field_no, double *value)
{
    IprotoValue read;
    int done = read_field(row, field_no, value, &read);
    if (done <= 0)
        return done;
    if (read.type == IPROTO_VALUE_DOUBLE)
        *value = read.real;
    else if (read.type == IPROTO_VALUE_UNSIGNED)
        *value = (double)read.number;
    else if (read.type == IPROTO_VALUE_NEGATIVE)
        *value = (double)(int64_t)read.number;
    else
        return fail_type(field_no, "number");
    return 1;
}

int iproto_tuple_boolean(const IprotoTuple *row, uint32_t field_no, int *value)
{
    IprotoValue read;
    int done = read_field(row, field_no, value, &read);
    if (done <= 0)
        return done;
    if (read.type != IPROTO_VALUE_BOOLEAN)
        return fail_type(field_no, "boolean");
    *value = read.number != 0;
    return 1;
}

/* Read a field of bytes. */
static int read_bytes(const IprotoTuple *row, uint32_t field_no, IprotoValueType type, const char *name,
                      IprotoTuple *value)
{
    IprotoValue read;
    int done = read_field(row, field_no, value, &read);
    if (done <= 0)
        return done;
    if (read.type != type)
        return fail_type(field_no, name);
    *value = read.bytes;
    return 1;
}

int iproto_tuple_string(const IprotoTuple *row, uint32_t field_no, IprotoTuple *value)
{
    return read_bytes(row, field_no, IPROTO_VALUE_STRING, "string", value);
}

int iproto_tuple_binary(const IprotoTuple *row, uint32_t field_no, IprotoTuple *value)
{
    return read_bytes(row, field_no, IPROTO_VALUE_BINARY, "varbinary", value);
}
