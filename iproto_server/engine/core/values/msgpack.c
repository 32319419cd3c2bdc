#include "msgpack.h"

#include <string.h>

int msgpack_head(const uint8_t *at, const uint8_t *end, const uint8_t **body, uint64_t *size, uint64_t *values)
{
    if (at >= end)
        return 0;
    uint8_t head = *at++;
    int width = 0; /* of the length behind the head */
    *size = *values = 0;
    if (head < 0x80 || head >= 0xe0 || head == 0xc0 || head == 0xc2 || head == 0xc3) {
        *body = at;
        return 1;
    }
    if (head < 0x90) {
        *values = 2 * (uint64_t)(head & 0x0f);
    } else if (head < 0xa0) {
        *values = head & 0x0f;
    } else if (head < 0xc0) {
        *size = head & 0x1f;
    } else {
        switch (head) {
        case 0xc4: case 0xd9: width = 1; break;
        case 0xc5: case 0xda: width = 2; break;
        case 0xc6: case 0xdb: width = 4; break;
        case 0xc7: case 0xc8: case 0xc9: width = 1 << (head - 0xc7); break;
        case 0xca: *size = 4; break;
        case 0xcb: *size = 8; break;
        case 0xcc: case 0xcd: case 0xce: case 0xcf: *size = (uint64_t)1 << (head - 0xcc); break;
        case 0xd0: case 0xd1: case 0xd2: case 0xd3: *size = (uint64_t)1 << (head - 0xd0); break;
        case 0xd4: case 0xd5: case 0xd6: case 0xd7: case 0xd8: *size = ((uint64_t)1 << (head - 0xd4)) + 1; break;
        case 0xdc: case 0xde: width = 2; break;
        case 0xdd: case 0xdf: width = 4; break;
        default: return 0; /* 0xc1 */
        }
        if (end - at < width)
            return 0;
        uint64_t length = load_big_endian(at, width);
        at += width;
        if (head >= 0xdc)
            *values = head >= 0xde ? 2 * length : length;
        else if (width)
            *size = length + (head >= 0xc7 && head <= 0xc9); /* an extension has its type in front */
    }
    *body = at;
    return (uint64_t)(end - at) >= *size;
}

/* How many bytes a value has whose head says that by itself; 0 for other heads. */
static inline int size_by_head(uint8_t head)
{
    static const uint8_t sizes[32] = {
        [0x00] = 1, 0, 1, 1, [0x0a] = 5, 9, 2, 3, 5, 9, 2, 3, 5, 9, /* nil, booleans, floats, integers, from 0xc0 on */
    };
    if (head < 0x80 || head >= 0xe0)
        return 1;
    if (head < 0xa0)
        return 0;
    return head < 0xc0 ? 1 + (head & 0x1f) : sizes[head - 0xc0];
}

const uint8_t *msgpack_skip(const uint8_t *at, const uint8_t *end)
{
    int known = at < end ? size_by_head(*at) : 0;
    if (known)
        return end - at >= known ? at + known : NULL;
    /* `left` cannot overflow: each head adds less than 2^33 to it and takes a byte. */
    for (uint64_t left = 1; left; left--) {
        const uint8_t *body;
        uint64_t size, values;
        if (!msgpack_head(at, end, &body, &size, &values))
            return NULL;
        at = body + size;
        left += values;
    }
    return at;
}

const uint8_t *msgpack_skip_within(const uint8_t *at, const uint8_t *end, int depth)
{
    const uint8_t *body;
    uint64_t size, values;
    int known = at < end ? size_by_head(*at) : 0;
    if (known)
        return end - at >= known ? at + known : NULL;
    if (!msgpack_head(at, end, &body, &size, &values) || (values && !depth))
        return NULL;
    at = body + size;
    for (; at && values; values--) {
        /* Without a call for most values. */
        known = at < end ? size_by_head(*at) : 0;
        if (!known)
            at = msgpack_skip_within(at, end, depth - 1);
        else
            at = end - at >= known ? at + known : NULL;
    }
    return at;
}

static int is_map(uint8_t head)
{
    return (head & 0xf0) == 0x80 || head == 0xde || head == 0xdf;
}

static int is_array(uint8_t head)
{
    return (head & 0xf0) == 0x90 || head == 0xdc || head == 0xdd;
}

static int is_extension(uint8_t head)
{
    return (head >= 0xc7 && head <= 0xc9) || (head >= 0xd4 && head <= 0xd8);
}

const uint8_t *msgpack_skip_plain(const uint8_t *at, const uint8_t *end, int depth)
{
    const uint8_t *body;
    uint64_t size, values;
    if (!msgpack_head(at, end, &body, &size, &values) || is_extension(*at))
        return NULL;
    if (!is_map(*at) && !is_array(*at))
        return body + size;
    if (!depth)
        return NULL;
    int has_keys = is_map(*at);
    at = body;
    for (uint64_t number = 0; at && number < values; number++) {
        if (has_keys && !(number & 1) && at < end && (is_map(*at) || is_array(*at)))
            return NULL;
        at = msgpack_skip_plain(at, end, depth - 1);
    }
    return at;
}

const uint8_t *msgpack_array(const uint8_t *at, const uint8_t *end, uint32_t *count)
{
    if (at < end && (*at & 0xf0) == 0x90) {
        *count = *at & 0x0f;
        return at + 1;
    }
    const uint8_t *body;
    uint64_t size, values;
    if (!msgpack_head(at, end, &body, &size, &values))
        return NULL;
    if (!is_array(*at))
        return NULL;
    *count = (uint32_t)values;
    return body;
}

const uint8_t *msgpack_map(const uint8_t *at, const uint8_t *end, uint32_t *pairs)
{
    const uint8_t *body;
    uint64_t size, values;
    if (!msgpack_head(at, end, &body, &size, &values) || !is_map(*at))
        return NULL;
    *pairs = (uint32_t)(values / 2);
    return body;
}

static void read_signed(const uint8_t *body, uint64_t size, MsgpackValue *value)
{
    int shift = 64 - 8 * (int)size;
    int64_t number = (int64_t)(load_big_endian(body, (int)size) << shift) >> shift;
    value->number = (uint64_t)number;
    value->type = number < 0 ? MSGPACK_NEGATIVE : MSGPACK_UNSIGNED;
}

const uint8_t *msgpack_read(const uint8_t *at, const uint8_t *end, MsgpackValue *value)
{
    if (at < end && *at < 0x80) {
        *value = (MsgpackValue){.type = MSGPACK_UNSIGNED, .number = *at};
        return at + 1;
    }
    if (at < end && *at == 0xcf && end - at >= 9) {
        *value = (MsgpackValue){.type = MSGPACK_UNSIGNED, .number = load_big_endian(at + 1, 8)};
        return at + 9;
    }
    if (at < end && (*at & 0xe0) == 0xa0 && end - at > (*at & 0x1f)) {
        *value = (MsgpackValue){.type = MSGPACK_STRING, .bytes = at + 1, .size = *at & 0x1f};
        return at + 1 + value->size;
    }
    const uint8_t *body;
    uint64_t size, values;
    if (!msgpack_head(at, end, &body, &size, &values))
        return NULL;
    uint8_t head = *at;
    *value = (MsgpackValue){.type = MSGPACK_OTHER};
    if (head >= 0xe0) {
        value->type = MSGPACK_NEGATIVE;
        value->number = (uint64_t)(int64_t)(int8_t)head;
    } else if ((head >= 0xa0 && head < 0xc0) || (head >= 0xd9 && head <= 0xdb) || (head >= 0xc4 && head <= 0xc6)) {
        value->type = head >= 0xc4 && head <= 0xc6 ? MSGPACK_BINARY : MSGPACK_STRING;
        value->bytes = body;
        value->size = size;
    } else if (head >= 0xcc && head <= 0xcf) {
        value->type = MSGPACK_UNSIGNED;
        value->number = load_big_endian(body, (int)size);
    } else if (head >= 0xd0 && head <= 0xd3) {
        read_signed(body, size, value);
    } else if (head == 0xc0) {
        value->type = MSGPACK_NIL;
    } else if (head == 0xc2 || head == 0xc3) {
        value->type = MSGPACK_BOOLEAN;
        value->number = head == 0xc3;
    } else if (head == 0xca) {
        uint32_t bits = (uint32_t)load_big_endian(body, 4);
        float real;
        memcpy(&real, &bits, sizeof real);
        value->type = MSGPACK_DOUBLE;
        value->real = (double)real;
    } else if (head == 0xcb) {
        uint64_t bits = load_big_endian(body, 8);
        memcpy(&value->real, &bits, sizeof bits);
        value->type = MSGPACK_DOUBLE;
    }
    return body + size;
}
