/* The headers and bodies of requests: what may be in them, and where it is.
 *
 * Only kinds of values are checked here. Values stay where they are: nobody knows yet whether the client may do what it
 * asks for, and there may be millions of items.
 */
#include "../native.h"

enum { PAIRS_MAX = 1024 }; /* Tarantool knows fewer than a hundred keys */

/* -- kinds -- */

static const uint8_t kinds_from_c0[0x20] = {
    KIND_NIL, KIND_EXT, KIND_BOOL, KIND_BOOL, KIND_BIN, KIND_BIN, KIND_BIN, KIND_EXT, KIND_EXT, KIND_EXT, KIND_FLOAT,
    KIND_DOUBLE, KIND_UINT, KIND_UINT, KIND_UINT, KIND_UINT, KIND_INT, KIND_INT, KIND_INT, KIND_INT, KIND_EXT, KIND_EXT,
    KIND_EXT, KIND_EXT, KIND_EXT, KIND_STR, KIND_STR, KIND_STR, KIND_ARRAY, KIND_ARRAY, KIND_MAP, KIND_MAP,
};

static Kind kind_of(uint8_t first)
{
    if (first < 0x80)
        return KIND_UINT;
    if (first < 0xc0)
        return first < 0x90 ? KIND_MAP : first < 0xa0 ? KIND_ARRAY : KIND_STR;
    return first < 0xe0 ? (Kind)kinds_from_c0[first - 0xc0] : KIND_INT;
}

#define EACH(from, to, kind) [from ... to] = kind

/* The keys up to 0x2b have a kind even where a header has no use for them; nil is the kind of those up to 0x52. */
static const uint8_t header_kinds[] = {
    EACH(0x00, 0x03, KIND_UINT), [0x04] = KIND_DOUBLE, EACH(0x05, 0x1f, KIND_UINT),
    [BODY_KEY] = KIND_ARRAY, [BODY_TUPLE] = KIND_ARRAY, EACH(0x22, 0x25, KIND_STR), [0x26] = KIND_MAP, [0x27] = KIND_STR,
    [BODY_OPS] = KIND_ARRAY, EACH(0x29, 0x2b, KIND_MAP), EACH(0x2c, 0x52, KIND_NIL),
};
static const uint8_t row_kinds[BODY_KEYS] = {
    EACH(BODY_SPACE_ID, BODY_INDEX_BASE, KIND_UINT), [BODY_KEY] = KIND_ARRAY, [BODY_TUPLE] = KIND_ARRAY,
    [BODY_OPS] = KIND_ARRAY, [BODY_TUPLE_META] = KIND_MAP, [BODY_SPACE_NAME] = KIND_STR, [BODY_INDEX_NAME] = KIND_STR,
    [BODY_FETCH_POSITION] = KIND_BOOL, [BODY_AFTER_POSITION] = KIND_STR, [BODY_AFTER_TUPLE] = KIND_ARRAY,
};
static const uint8_t call_kinds[BODY_KEYS] = {
    [BODY_FUNCTION_NAME] = KIND_STR, [BODY_EXPR] = KIND_STR, [BODY_TUPLE] = KIND_ARRAY,
};
static const uint8_t auth_kinds[BODY_KEYS] = {[BODY_USER_NAME] = KIND_STR, [BODY_TUPLE] = KIND_ARRAY};
static const uint8_t id_kinds[BODY_KEYS] = {
    [BODY_VERSION] = KIND_UINT, [BODY_FEATURES] = KIND_ARRAY, [BODY_AUTH_TYPE] = KIND_STR,
};
static const uint8_t sql_kinds[BODY_KEYS] = {
    [BODY_SQL_TEXT] = KIND_ANY, [BODY_SQL_BIND] = KIND_ANY, [BODY_STMT_ID] = KIND_ANY,
};
static const uint8_t begin_kinds[BODY_KEYS] = {[BODY_TIMEOUT] = KIND_DOUBLE, [BODY_TXN_ISOLATION] = KIND_UINT};
static const uint8_t watch_kinds[BODY_KEYS] = {[BODY_EVENT_KEY] = KIND_STR};

/* -- the bodies of all types -- */

#define ROWS(...) {row_kinds, 1, NULL, "packet body", {__VA_ARGS__}}
#define CALLS(...) {call_kinds, 0, "missing request body", "packet body", {__VA_ARGS__}}
#define SQL {sql_kinds, 1, "missing request body", "packet body", {0}}
#define BEGINS {begin_kinds, 0, NULL, "request body", {0}}
#define WATCHES {watch_kinds, 0, "missing request body", "packet body", {BODY_EVENT_KEY}}

static const BodyRule rules[] = {
    [REQUEST_SELECT] = ROWS(BODY_SPACE_ID, BODY_LIMIT, BODY_KEY),
    [REQUEST_INSERT] = ROWS(BODY_SPACE_ID, BODY_TUPLE),
    [REQUEST_REPLACE] = ROWS(BODY_SPACE_ID, BODY_TUPLE),
    [REQUEST_UPDATE] = ROWS(BODY_SPACE_ID, BODY_KEY, BODY_TUPLE),
    [REQUEST_DELETE] = ROWS(BODY_SPACE_ID, BODY_KEY),
    [REQUEST_UPSERT] = ROWS(BODY_SPACE_ID, BODY_TUPLE, BODY_OPS),
    [REQUEST_CALL_16] = CALLS(BODY_FUNCTION_NAME),
    [REQUEST_CALL] = CALLS(BODY_FUNCTION_NAME),
    [REQUEST_EVAL] = CALLS(BODY_EXPR),
    [REQUEST_AUTH] = {auth_kinds, 0, "missing request body", "packet body", {BODY_USER_NAME, BODY_TUPLE}},
    [REQUEST_EXECUTE] = SQL,
    [REQUEST_PREPARE] = SQL,
    [REQUEST_BEGIN] = BEGINS,
    [REQUEST_COMMIT] = BEGINS,
    [REQUEST_ID] = {id_kinds, 0, "request body", "request body", {0}},
    [REQUEST_WATCH] = WATCHES,
    [REQUEST_UNWATCH] = WATCHES,
    [REQUEST_WATCH_ONCE] = WATCHES,
};

const BodyRule *body_rule(uint8_t type)
{
    return type < sizeof rules / sizeof *rules && rules[type].kinds ? rules + type : NULL;
}

int is_row_request(uint8_t type)
{
    const BodyRule *rule = body_rule(type);
    return rule && rule->kinds == row_kinds;
}

/* -- reading -- */

/* Go past a value that is inside `depth` maps. */
static inline int skip(Position *at, Position end, int depth)
{
    uint8_t first = *at < end ? **at : 0xc1;
    int size = first < 0x80 ? 1 : kind_of(first) == KIND_UINT ? 1 + (1 << (first - 0xcc)) : 0;
    if (!size || size > end - *at)
        return skip_value(at, end, depth);
    *at += size;
    return 1;
}

int is_value(Position at, Position end)
{
    return skip(&at, end, 0) && at == end;
}

static int read_map(Position *at, Position end, uint64_t *pairs)
{
    Position here = *at;
    if (here >= end || kind_of(*here) != KIND_MAP)
        return 0;
    int width = *here < 0x90 ? 0 : *here == 0xde ? 2 : 4;
    if (end - here <= width)
        return 0;
    *pairs = width ? big_endian(here + 1, width) : *here & 0x0f;
    *at = here + 1 + width;
    return *pairs <= PAIRS_MAX;
}

/* Go past a pair. Its key becomes NO_KEY if it is no unsigned number. */
#define NO_KEY UINT64_MAX
static inline int read_pair(Position *at, Position end, uint64_t *key, Span *value)
{
    Position start = *at;
    if (!skip(at, end, 1))
        return 0;
    *key = kind_of(*start) == KIND_UINT ? number_at(start) : NO_KEY;
    value->at = *at;
    if (!skip(at, end, 1))
        return 0;
    value->end = *at;
    return 1;
}

int read_header(Position *at, Position end, Header *header)
{
    uint64_t pairs, key;
    int is_refused = 0;
    *header = (Header){0};
    if (!read_map(at, end, &pairs))
        return 0;
    for (Span value; pairs; pairs--) {
        if (!read_pair(at, end, &key, &value)) {
            header->sync = 0;
            return 0;
        }
        if (is_refused || key >= sizeof header_kinds || header_kinds[key] != kind_of(*value.at))
            is_refused = 1;
        else if (key == HEADER_TYPE)
            header->type = number_at(value.at);
        else if (key == HEADER_SYNC)
            header->sync = number_at(value.at);
        else if (key == HEADER_SCHEMA_VERSION)
            header->schema_version = number_at(value.at);
        else if (key == HEADER_STREAM_ID)
            header->stream_id = number_at(value.at);
    }
    return !is_refused;
}

/* Read the pairs of a body. Returns the text of what is wrong, or NULL. */
static const char *read_pairs(const BodyRule *rule, Position at, Position end, uint64_t pairs, Body *body)
{
    static const char malformed[] = "packet body";
    const char *fault = NULL;
    uint64_t key;
    for (Span value; pairs; pairs--) {
        Position start = at;
        if (!read_pair(&at, end, &key, &value))
            return malformed;
        if (rule->kinds == row_kinds && value.at - start > 1)
            continue; /* as in Tarantool, which looks at the first byte of a key alone */
        Kind wanted = key < BODY_KEYS ? (Kind)rule->kinds[key] : KIND_NONE;
        if (wanted == KIND_NONE ? key == NO_KEY && !rule->has_any_keys
                                : wanted != KIND_ANY && wanted != kind_of(*value.at))
            fault = rule->refused;
        if (wanted != KIND_NONE) {
            body->values[key] = value;
            body->seen[key / 64] |= BIT(key % 64);
        }
    }
    return at == end ? fault : malformed;
}

const char *read_body(const BodyRule *rule, Position at, Position end, Body *body)
{
    uint64_t pairs;
    Position whole = at;
    body->seen[0] = body->seen[1] = 0;
    if (at == end)
        return rule->absent;
    if (read_map(&at, end, &pairs))
        return read_pairs(rule, at, end, pairs, body);
    return is_value(whole, end) ? rule->refused : "packet body";
}

int missing_key(const BodyRule *rule, const Body *body)
{
    int has_name = body_has(body, BODY_SPACE_NAME);
    for (int place = 0; place < REQUIRED_MAX && rule->required[place]; place++) {
        int key = rule->required[place];
        if (!body_has(body, key) && !(key == BODY_SPACE_ID && has_name))
            return key;
    }
    return 0;
}

uint64_t body_number(const Body *body, int key)
{
    return body_has(body, key) ? number_at(body->values[key].at) : 0;
}
