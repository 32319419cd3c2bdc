/* JSON paths into fields of tuples, as in `tuple['[3].address["street"]']`.
 *
 * Source: Tarantool reference, "JSON paths"; which texts are paths is that of Tarantool 2.6.0.
 */
#include "lua_recent.h"

typedef struct {
    int is_name;
    uint32_t number; /* from 1 */
    const char *name;
    size_t size;
} Step;

static int is_letter(char symbol)
{
    return (symbol >= 'a' && symbol <= 'z') || (symbol >= 'A' && symbol <= 'Z') || symbol == '_' || (symbol & 0x80);
}

static int is_digit(char symbol)
{
    return symbol >= '0' && symbol <= '9';
}

static const char *take_identifier(const char *at, const char *end, Step *step)
{
    const char *start = at;
    if (at == end || !is_letter(*at))
        return NULL;
    while (at < end && (is_letter(*at) || is_digit(*at)))
        at++;
    *step = (Step){1, 0, start, (size_t)(at - start)};
    return at;
}

static const char *take_quoted(const char *at, const char *end, Step *step)
{
    char quote = *at++;
    const char *closing = memchr(at, quote, (size_t)(end - at));
    if (!closing || closing == at)
        return NULL;
    *step = (Step){1, 0, at, (size_t)(closing - at)};
    return closing + 1;
}

static const char *take_number(const char *at, const char *end, Step *step)
{
    const char *start = at;
    uint64_t number = 0;
    while (at < end && is_digit(*at) && number < UINT64_MAX / 10 - 1)
        number = 10 * number + (uint64_t)(*at++ - '0');
    *step = (Step){0, (uint32_t)number, NULL, 0};
    return at == start || !step->number ? NULL : at;
}

/* Read a step of a path; at `start` it needs no dot. Returns the position behind it; NULL if there is none. */
static const char *take_step(const char *at, const char *end, const char *start, Step *step)
{
    if (*at == '.')
        return take_identifier(at + 1, end, step);
    if (*at != '[')
        return at == start ? take_identifier(at, end, step) : NULL;
    if (++at == end)
        return NULL;
    at = *at == '"' || *at == '\'' ? take_quoted(at, end, step) : take_number(at, end, step);
    return at && at < end && *at == ']' ? at + 1 : NULL;
}

static int is_step_key(const MsgpackValue *key, const Step *step)
{
    if (step->is_name)
        return key->type == MSGPACK_STRING && key->size == step->size && !memcmp(key->bytes, step->name, step->size);
    return key->type == MSGPACK_UNSIGNED && key->number == step->number;
}

static Position go_to_key(Position at, Position end, const Step *step)
{
    uint32_t pairs;
    MsgpackValue key;
    at = msgpack_map(at, end, &pairs);
    for (; at && pairs; pairs--) {
        Position value = msgpack_skip(at, end);
        if (value && msgpack_read(at, end, &key) && is_step_key(&key, step))
            return value;
        at = value ? msgpack_skip(value, end) : NULL;
    }
    return NULL;
}

static Position go_to(Position at, Position end, const Step *step)
{
    uint32_t count;
    Position first = msgpack_array(at, end, &count);
    if (!first)
        return go_to_key(at, end, step);
    return step->is_name || step->number > count ? NULL : tuple_skip(first, end, step->number - 1);
}

Position tuple_path(lua_State *lua, const LuaTuple *tuple, int place)
{
    size_t size;
    const char *path = lua_tolstring(lua, place, &size), *end = path + size;
    Step step;
    int is_path = memchr(path, '.', size) || memchr(path, '[', size);
    if (!is_path || !(path = take_step(path, end, path, &step)))
        return NULL;
    double number = step.number;
    if (step.is_name) {
        lua_pushlstring(lua, step.name, step.size);
        number = lua_field_number(lua, tuple->format, lua_gettop(lua));
        lua_settop(lua, -2);
    }
    Position at = tuple_field(tuple, number);
    for (const char *start = path; at && path < end;) {
        path = take_step(path, end, start, &step);
        at = path ? go_to(at, tuple->row + tuple->size, &step) : NULL;
        if (!path)
            return NULL;
    }
    return at;
}
