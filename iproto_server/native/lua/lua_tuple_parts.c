/* Parts of tuples for Lua code: tables, slices, iterators, and copies with other fields. */
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

/* -- iterators -- */

/* The iterator's function has a tuple, the number of the field behind which it is, and the offset of the next one. */
static Position next_field(lua_State *lua, const LuaTuple *tuple, double behind)
{
    int is_next = lua_tonumber(lua, lua_upvalueindex(2)) == behind && behind > 0;
    if (is_next && lua_topointer(lua, lua_upvalueindex(1)) == tuple) {
        uint32_t offset = (uint32_t)lua_tonumber(lua, lua_upvalueindex(3));
        return offset < tuple->size ? tuple->row + offset : NULL;
    }
    return tuple_field(tuple, behind + 1);
}

static void set_upvalue(lua_State *lua, int number, double value)
{
    lua_pushnumber(lua, value);
    lua_replace(lua, lua_upvalueindex(number));
}

/* (tuple, number): the next field's number and value; nil at the end. For another key it returns false. */
static int iterate(lua_State *lua)
{
    const LuaTuple *tuple = tuple_check(lua, 1);
    int type = lua_type(lua, 2);
    double behind = type == LUA_TNUMBER ? lua_tonumber(lua, 2) : 0;
    Position at = type == LUA_TNUMBER || type == LUA_TNIL || type == LUA_TNONE ? next_field(lua, tuple, behind) : NULL;
    if (!at) {
        if ((type == LUA_TNUMBER || type == LUA_TNIL || type == LUA_TNONE) && behind == tuple_count(tuple))
            lua_pushnil(lua);
        else
            lua_pushboolean(lua, 0);
        return 1;
    }
    double number = (double)(uint32_t)behind + 1;
    lua_pushnumber(lua, number);
    at = lua_decode(lua, at, tuple->row + tuple->size);
    lua_pushvalue(lua, 1);
    lua_replace(lua, lua_upvalueindex(1));
    set_upvalue(lua, 2, number);
    set_upvalue(lua, 3, (double)(at - tuple->row));
    return 2;
}

/* tuple_iterator(): a function that iterates fields; it is fast for one tuple in order */
int tuple_iterator(lua_State *lua)
{
    lua_pushnil(lua);
    lua_pushnumber(lua, 0);
    lua_pushnumber(lua, 0);
    lua_pushcclosure(lua, iterate, 3);
    return 1;
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
    const LuaEncoding *encoding = lua_tuple_encoding(lua);
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
