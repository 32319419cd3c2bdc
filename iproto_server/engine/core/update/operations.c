/* Reading update operations. */
#include "update.h"

#include <string.h>

/* Read a value and go behind it. */
static int take(const uint8_t **at, const uint8_t *end, MsgpackValue *value)
{
    const uint8_t *behind = msgpack_read(*at, end, value);
    if (behind && value->type == MSGPACK_OTHER)
        behind = msgpack_skip(*at, end);
    *at = behind;
    return behind != NULL;
}

/* The same for a number that is packed as unsigned: a positive one may be packed as signed. */
static int take_unsigned(const uint8_t **at, const uint8_t *end, MsgpackValue *value)
{
    const uint8_t *head = *at;
    return take(at, end, value) && value->type == MSGPACK_UNSIGNED && *head < 0xd0;
}

static int take_int32(const uint8_t **at, const uint8_t *end, int32_t *number)
{
    MsgpackValue value;
    if (!take(at, end, &value))
        return 0;
    int64_t wide = (int64_t)value.number;
    *number = (int32_t)wide;
    if (value.type == MSGPACK_UNSIGNED)
        return value.number <= INT32_MAX;
    return value.type == MSGPACK_NEGATIVE && wide >= INT32_MIN;
}

static int take_opcode(const uint8_t **at, const uint8_t *end, char *opcode)
{
    MsgpackValue value;
    if (end - *at >= 2 && **at == 0xa1) {
        *opcode = (char)(*at)[1];
        *at += 2;
        return 1;
    }
    if (!take(at, end, &value) || value.type != MSGPACK_STRING || value.size != 1)
        return 0;
    *opcode = (char)*value.bytes;
    return 1;
}

static int take_field(const uint8_t **at, const uint8_t *end, int32_t index_base, UpdateFieldOf field_of, void *names,
                      int32_t *field_no)
{
    MsgpackValue value;
    const uint8_t *start = *at;
    if (start < end && *start < 0x80) {
        *field_no = *(*at)++;
    } else if (msgpack_read(start, end, &value) && value.type == MSGPACK_STRING) {
        *at = value.bytes + value.size;
        return field_of && field_of(names, value.bytes, value.size, field_no);
    } else if (!take_int32(at, end, field_no)) {
        return 0;
    }
    int64_t from_zero = (int64_t)*field_no - index_base;
    if (from_zero >= 0 && from_zero <= INT32_MAX)
        *field_no = (int32_t)from_zero;
    else if (*field_no >= 0)
        return 0;
    return 1;
}

static int is_nested(uint8_t head)
{
    return (head >= 0x80 && head < 0xa0) || (head >= 0xdc && head < 0xe0) || (head >= 0xc7 && head <= 0xc9)
        || (head >= 0xd4 && head <= 0xd8);
}

static int take_splice(const uint8_t **at, const uint8_t *end, int32_t index_base, UpdateOperation *operation)
{
    if (!take_int32(at, end, &operation->offset) || !take_int32(at, end, &operation->cut))
        return 0;
    if (operation->offset >= 0) {
        int64_t from_zero = (int64_t)operation->offset - index_base;
        if (from_zero < 0 || from_zero > INT32_MAX)
            return 0;
        operation->offset = (int32_t)from_zero;
    }
    return take(at, end, &operation->argument) && operation->argument.type == MSGPACK_STRING;
}

static int take_argument(const uint8_t **at, const uint8_t *end, int32_t index_base, UpdateOperation *operation,
                         int *is_plain)
{
    MsgpackValue *argument = &operation->argument;
    const uint8_t *start = *at;
    switch (operation->opcode) {
    case '=': case '!':
        if (!(*at = msgpack_skip(start, end)))
            return 0;
        *argument = (MsgpackValue){.type = MSGPACK_OTHER, .bytes = start, .size = (size_t)(*at - start)};
        *is_plain &= !is_nested(*start);
        return 1;
    case '+': case '-':
        return take(at, end, argument)
            && (argument->type == MSGPACK_UNSIGNED || argument->type == MSGPACK_NEGATIVE
                || argument->type == MSGPACK_DOUBLE);
    case ':':
        return take_splice(at, end, index_base, operation);
    case '#': /* of no fields is an error */
        return take_unsigned(at, end, argument) && (argument->number &= UINT32_MAX);
    default: /* & | ^ */
        return take_unsigned(at, end, argument);
    }
}

/* Whether there is an operation with so many parts. */
static int is_operation(char opcode, uint32_t parts)
{
    return opcode && strchr("=!#+-&|^", opcode) ? parts == 3 : opcode == ':' && parts == 5;
}

static int take_operation(const uint8_t **at, const uint8_t *end, int32_t index_base, UpdateFieldOf field_of,
                          void *names, UpdateOperation *operation, int *is_plain)
{
    uint32_t parts;
    return (*at = msgpack_array(*at, end, &parts)) && take_opcode(at, end, &operation->opcode)
        && is_operation(operation->opcode, parts)
        && take_field(at, end, index_base, field_of, names, &operation->field_no)
        && take_argument(at, end, index_base, operation, is_plain);
}

int update_read_next(UpdateOperations *operations, const uint8_t **at, const uint8_t *end, uint32_t count,
                     uint32_t index_base, UpdateFieldOf field_of, void *names)
{
    operations->count = 0;
    operations->is_plain = 1;
    if (count > UPDATE_OPERATIONS_MAX)
        return UPDATE_UNKNOWN;
    for (uint32_t number = 0; number < count; number++)
        if (!take_operation(at, end, (int32_t)index_base, field_of, names, operations->all + number, &operations->is_plain))
            return UPDATE_UNKNOWN;
    operations->count = (int)count;
    return UPDATE_DONE;
}

int update_read(UpdateOperations *operations, const uint8_t *at, const uint8_t *end, uint32_t index_base,
                UpdateFieldOf field_of, void *names)
{
    uint32_t count;
    operations->count = 0;
    operations->is_plain = 1;
    if (!(at = msgpack_array(at, end, &count)) || !count
        || !update_read_next(operations, &at, end, count, index_base, field_of, names))
        return UPDATE_UNKNOWN;
    return at == end ? UPDATE_DONE : UPDATE_UNKNOWN;
}
