#include "format.h"

#include "msgpack.h"

static int is_array(uint8_t head)
{
    return (head & 0xf0) == 0x90 || head == 0xdc || head == 0xdd;
}

static int is_map(uint8_t head)
{
    return (head & 0xf0) == 0x80 || head == 0xde || head == 0xdf;
}

/* Whether a value of a type, with a first byte, may be in a field. */
static int value_fits(const FormatField *field, MsgpackType type, uint8_t head)
{
    switch (field->type) {
    case FIELD_OTHER:
        return 0;
    case FIELD_ANY:
        return 1;
    default:
        break;
    }
    switch (type) {
    case MSGPACK_NIL:
        return field->is_nullable;
    case MSGPACK_BOOLEAN:
        return field->type == FIELD_BOOLEAN;
    case MSGPACK_UNSIGNED:
        return field->type == FIELD_UNSIGNED || field->type == FIELD_INTEGER || field->type == FIELD_NUMBER;
    case MSGPACK_NEGATIVE:
        return field->type == FIELD_INTEGER || field->type == FIELD_NUMBER;
    case MSGPACK_DOUBLE:
        return field->type == FIELD_DOUBLE || field->type == FIELD_NUMBER;
    case MSGPACK_STRING:
        return field->type == FIELD_STRING;
    case MSGPACK_BINARY:
        return field->type == FIELD_VARBINARY;
    default:
        return field->type == FIELD_ARRAY ? is_array(head) : field->type == FIELD_MAP && is_map(head);
    }
}

int format_fits(const RowFormat *format, const uint8_t *row, size_t size, int is_whole)
{
    const uint8_t *end = row + size;
    uint32_t count;
    const uint8_t *at = msgpack_array(row, end, &count);
    if (!at || count < format->count || (format->exact && count != format->exact))
        return 0;
    uint32_t looked_at = is_whole ? format->count : count;
    for (uint32_t number = 0; number < looked_at; number++) {
        MsgpackValue value;
        const uint8_t *field = at;
        if (!(at = msgpack_read(at, end, &value)) || (value.type == MSGPACK_OTHER && !is_whole))
            return 0;
        if (number < format->count && !value_fits(format->fields + number, value.type, *field))
            return 0;
        if (value.type == MSGPACK_OTHER && !(at = msgpack_skip(field, end)))
            return 0;
    }
    return is_whole || at == end;
}
