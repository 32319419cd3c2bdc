/* Tuples as values of Lua: cdata of the type `struct tuple`, which has a row, and the number of the format that names its
 * fields.
 */
#include "../native.h"

typedef struct {
    uint32_t size, format;
    uint8_t row[];
} LuaTuple;

/* -- for other compiled code -- */

void lua_push_tuple(lua_State *lua, const void *row, size_t size, uint32_t format)
{
    lua_checkstack(lua, 8);
    lua_push_kept(lua, LUA_KEPT_TUPLE);
    lua_pushnumber(lua, (double)size);
    lua_call(lua, 1, 1);
    LuaTuple *tuple = (LuaTuple *)(uintptr_t)lua_topointer(lua, -1);
    tuple->size = (uint32_t)size;
    tuple->format = format;
    memcpy(tuple->row, row, size);
}

static const LuaTuple *tuple_at(lua_State *lua, int place)
{
    if (lua_type(lua, place) != LUA_TCDATA)
        return NULL;
    const LuaTuple *tuple = lua_topointer(lua, place);
    return lua_cdata_type(tuple) == lua_types.tuple ? tuple : NULL;
}

const uint8_t *lua_tuple_data(lua_State *lua, int place, size_t *size)
{
    const LuaTuple *tuple = tuple_at(lua, place);
    if (!tuple)
        return NULL;
    *size = tuple->size;
    return tuple->row;
}

/* -- fields -- */

/* The position of a field, whose number is from 1; NULL if there is none. */
static Position position_of(const LuaTuple *tuple, double number)
{
    uint32_t count;
    Position end = tuple->row + tuple->size, at = msgpack_array(tuple->row, end, &count);
    if (!at || !(number >= 1 && number < (double)count + 1))
        return NULL;
    for (uint32_t before = (uint32_t)number - 1; at && before; before--)
        at = msgpack_skip(at, end);
    return at;
}

/* Push a field, nil if there is none. */
static int push_field(lua_State *lua, const LuaTuple *tuple, double number)
{
    Position at = position_of(tuple, number);
    if (at)
        lua_decode(lua, at, tuple->row + tuple->size);
    else
        lua_pushnil(lua);
    return 1;
}

/* The number of the field that the tuple's format gives the name at a place of the stack; 0 if it gives it to none. */
static double named_field(lua_State *lua, const LuaTuple *tuple, int name)
{
    if (!tuple->format)
        return 0;
    int top = lua_gettop(lua);
    lua_push_kept(lua, LUA_KEPT_FORMATS);
    lua_rawgeti(lua, -1, (int)tuple->format);
    double number = 0;
    if (lua_type(lua, -1) == LUA_TTABLE) {
        lua_pushvalue(lua, name);
        lua_rawget(lua, -2);
        number = lua_tonumber(lua, -1);
    }
    lua_settop(lua, top);
    return number;
}

/* -- functions for Lua -- */

/* tuple_index(tuple, key): a field by its number or name; else a method */
static int index_tuple(lua_State *lua)
{
    const LuaTuple *tuple = tuple_at(lua, 1);
    int type = lua_type(lua, 2);
    if (tuple && type == LUA_TNUMBER)
        return push_field(lua, tuple, lua_tonumber(lua, 2));
    if (tuple && type == LUA_TSTRING) {
        double number = named_field(lua, tuple, 2);
        if (number)
            return push_field(lua, tuple, number);
    }
    lua_push_kept(lua, LUA_KEPT_TUPLE_METHODS);
    lua_pushvalue(lua, 2);
    lua_rawget(lua, -2);
    return 1;
}

/* tuple_length(tuple): the number of fields */
static int count_fields(lua_State *lua)
{
    const LuaTuple *tuple = tuple_at(lua, 1);
    uint32_t count = 0;
    if (tuple)
        msgpack_array(tuple->row, tuple->row + tuple->size, &count);
    lua_pushnumber(lua, count);
    return 1;
}

static void push_new(lua_State *lua, const void *row, size_t size)
{
    lua_push_tuple(lua, row, size, 0);
}

/* tuple_new(value …): a tuple of a table or of another tuple; a tuple of the values if there are more, or there is one of
 * another type */
static int make_tuple(lua_State *lua)
{
    int count = lua_gettop(lua);
    const LuaTuple *tuple = count == 1 ? tuple_at(lua, 1) : NULL;
    if (tuple) {
        push_new(lua, tuple->row, tuple->size);
        return 1;
    }
    int is_whole = count == 1 && lua_type(lua, 1) == LUA_TTABLE;
    const LuaEncoding *encoding = lua_tuple_encoding(lua);
    LuaFailure failure;
    LuaPacking packing;
    lua_packing_begin(&packing);
    int done = is_whole ? lua_encode_row(lua, &packing.buffer, 1, encoding, &failure)
        : lua_encode_values(lua, &packing.buffer, 1, count, encoding, &failure);
    return done ? lua_packing_push(lua, &packing, push_new) : lua_packing_raise(lua, &packing, &failure);
}

const LuaFunction lua_tuple_functions[] = {
    {"tuple_index", index_tuple},
    {"tuple_length", count_fields},
    {"tuple_new", make_tuple},
    {NULL, NULL},
};
