#include "key.h"

int row_fields(RowFields *fields, const uint8_t *row, size_t size)
{
    fields->end = row + size;
    fields->first = fields->next = msgpack_array(row, fields->end, &fields->count);
    fields->read = 0;
    return fields->first != NULL;
}

/* Read a value, and find the position behind it. Returns NULL if it does not end before `end`, or is none. */
static const uint8_t *read_whole(const uint8_t *at, const uint8_t *end, MsgpackValue *value)
{
    const uint8_t *behind = msgpack_read(at, end, value);
    return behind && value->type == MSGPACK_OTHER ? msgpack_skip(at, end) : behind;
}

const MsgpackValue *row_field(RowFields *fields, uint32_t number, MsgpackValue *other)
{
    static const MsgpackValue nil = {.type = MSGPACK_NIL};
    if (number >= fields->count)
        return &nil;
    while (fields->read <= number && fields->read < ROW_FIELDS_READ) {
        if (!(fields->next = read_whole(fields->next, fields->end, fields->values + fields->read)))
            return fields->count = 0, NULL;
        fields->read++;
    }
    if (number < fields->read)
        return fields->values + number;
    const uint8_t *at = fields->next;
    for (uint32_t skipped = fields->read; at && skipped < number; skipped++)
        at = msgpack_skip(at, fields->end);
    return at && msgpack_read(at, fields->end, other) ? other : NULL;
}
