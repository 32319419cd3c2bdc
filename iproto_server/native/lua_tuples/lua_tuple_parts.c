/* Parts of tuples for Lua code: tables, slices, and copies with other fields. */
#include "lua_tuple.h"

/* tuple_table(tuple, from, count): at most so many fields from a place on, which is from 0, as a table */
int tuple_table(lua_State *lua)
{
    const LuaTuple *tuple = tuple_check(lua, 1);
    Position end = tuple->row + tuple->size, at = tuple_field(tuple, lua_tonumber(lua, 2) + 1);
    double wanted = lua_tonumber(lua, 3);
    lua_createtable(lua, 0, 0);
    for (int place = 1; at && at < end && place <= wanted; place++) {
        at = lua_decode(lua, at, end);
        lua_rawseti(lua, -2, place);
    }
    if (lua_msgpack_encoding(lua)->save_metatables) {
        lua_push_kept(lua, LUA_KEPT_ARRAY_MT);
        lua_setmetatable(lua, -2);
    }
    return 1;
}

/* Whether the argument behind the tuple asks for names only; an error for what is no table of options. */
static int is_names_only(lua_State *lua)
{
    static const char usage[] = "Usage: tuple:tomap(opts)";
    int count = lua_gettop(lua), names_only = 0;
    if (count != 1 && (count != 2 || lua_type(lua, 2) != LUA_TTABLE))
        lua_raise_text(lua, usage);
    if (count == 2) {
        lua_getfield(lua, 2, "names_only");
        if (lua_type(lua, -1) != LUA_TNIL && lua_type(lua, -1) != LUA_TBOOLEAN)
            lua_raise_text(lua, usage);
        names_only = lua_toboolean(lua, -1);
    }
    return names_only;
}

/* tuple:tomap([options]): the fields by their names, and by their numbers unless options.names_only is true */
int tuple_map(lua_State *lua)
{
    enum { NAMES = 3, MAP };
    int names_only = is_names_only(lua);
    const LuaTuple *tuple = tuple_check(lua, 1);
    Position end = tuple->row + tuple->size, at = tuple_field(tuple, 1);
    lua_settop(lua, NAMES - 1);
    lua_push_kept(lua, LUA_KEPT_NAME_LISTS);
    lua_rawgeti(lua, NAMES, (int)tuple->format);
    lua_replace(lua, NAMES);
    int named = lua_type(lua, NAMES) == LUA_TTABLE ? (int)lua_objlen(lua, NAMES) : 0;
    int count = (int)tuple_count(tuple), wanted = names_only && named < count ? named : count;
    lua_createtable(lua, names_only ? 0 : count, named < count ? named : count);
    for (int place = 1; at && place <= wanted; place++) {
        at = lua_decode(lua, at, end);
        if (!names_only) {
            lua_pushvalue(lua, -1);
            lua_rawseti(lua, MAP, place);
        }
        if (place <= named) {
            lua_rawgeti(lua, NAMES, place);
            lua_pushvalue(lua, -2);
            lua_rawset(lua, MAP);
        }
        lua_settop(lua, MAP);
    }
    return 1;
}

/* -- arguments -- */

/* As lua_tointeger: what is no number is 0. */
static int64_t integer_at(lua_State *lua, int place)
{
    double number = lua_tonumber(lua, place);
    return number > -9223372036854775808.0 && number < 9223372036854775808.0 ? (int64_t)number : 0;
}

/* -- slices -- */

/* tuple:slice(from[, to]): the fields from a place on, which is from 0 or from the end, up to that in front of `to` */
int tuple_slice(lua_State *lua)
{
    const LuaTuple *tuple = tuple_check(lua, 1);
    int arguments = lua_gettop(lua);
    if (arguments < 2)
        return lua_raise_text(lua, "tuple.slice(): bad arguments");
    int64_t count = tuple_count(tuple), from = integer_at(lua, 2), to = count;
    if (from >= count || from < -count)
        return lua_raise_text(lua, "tuple.slice(): start >= field count");
    if (from < 0)
        from += count;
    if (arguments > 2) {
        to = integer_at(lua, 3);
        if (to > count || !to || to <= -count)
            return lua_raise_text(lua, "tuple.slice(): end > field count");
        if (to < 0)
            to += count;
    }
    if (to <= from)
        return lua_raise_text(lua, "tuple.slice(): start must be less than end");
    Position at = tuple_field(tuple, (double)from + 1);
    if (!lua_checkstack(lua, (int)(to - from) + 8))
        return lua_raise_text(lua, "stack overflow");
    for (int64_t left = to - from; at && left; left--)
        at = lua_decode(lua, at, tuple->row + tuple->size);
    return (int)(to - from);
}

/* -- copies with other fields -- */

static void push_new(lua_State *lua, const void *row, size_t size)
{
    lua_push_tuple(lua, row, size, 0);
}

/* tuple:transform(from, count[, value …]): a copy in which values have replaced some fields from a number on, which
 * counts from 1 or from the end */
int tuple_transform_fields(lua_State *lua)
{
    const LuaTuple *tuple = tuple_check(lua, 1);
    int arguments = lua_gettop(lua), added = arguments - 3;
    if (arguments < 3)
        return lua_raise_text(lua, "tuple.transform(): bad arguments");
    int64_t count = tuple_count(tuple), from = integer_at(lua, 2), removed = integer_at(lua, 3);
    if (!from || from < -count)
        return lua_raise_text(lua, "tuple.transform(): offset is out of bound");
    from = from < 0 ? from + count : from > count ? count : from - 1;
    if (removed < 0)
        return lua_raise_text(lua, "tuple.transform(): len is negative");
    removed = removed > count - from ? count - from : removed;
    Position end = tuple->row + tuple->size, first = count ? tuple_field(tuple, 1) : end;
    Position middle = tuple_skip(first, end, (uint32_t)from), rest = tuple_skip(middle, end, (uint32_t)removed);
    const LuaEncoding *encoding = lua_msgpack_encoding(lua);
    LuaFailure failure = {LUA_FAILURE_TEXT, 0, "not enough memory"};
    LuaPacking packing;
    lua_packing_begin(&packing);
    Buffer *buffer = &packing.buffer;
    int done = write_array_header(buffer, (uint64_t)(count - removed + added)) == 1
        && buffer_append(buffer, first, middle - first) == 1;
    for (int place = 4; done && place <= arguments; place++)
        done = lua_encode(lua, buffer, place, encoding, &failure);
    if (done && buffer_append(buffer, rest, end - rest) == 1)
        return lua_packing_push(lua, &packing, push_new);
    PyErr_Clear();
    return lua_packing_raise(lua, &packing, &failure);
}
