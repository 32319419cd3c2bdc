/* Tuples as values of Lua: cdata of the type `struct tuple`, which has a row, and the number of the format that names
 * its fields.
 */
#include "lua_recent.h"

/* The last field that was looked for, from which the next ones are near: loops read fields in order. It is forgotten
 * when a tuple is made, which may be where another one has been. */
static struct {
    const LuaTuple *tuple;
    uint32_t place, offset;
} last;

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
    last.tuple = NULL;
}

const LuaTuple *tuple_at(lua_State *lua, int place)
{
    if (lua_type(lua, place) != LUA_TCDATA)
        return NULL;
    const LuaTuple *tuple = lua_topointer(lua, place);
    return lua_cdata_type(tuple) == lua_types.tuple ? tuple : NULL;
}

const LuaTuple *tuple_check(lua_State *lua, int place)
{
    const LuaTuple *tuple = tuple_at(lua, place);
    if (!tuple) {
        char text[100];
        int type = lua_type(lua, place);
        const char *found = type == LUA_TNONE ? "no value" : lua_typename(lua, type);
        snprintf(text, sizeof text, "Invalid argument #%d (box.tuple expected, got %s)", place, found);
        lua_raise_text(lua, text);
    }
    return tuple;
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

uint32_t tuple_count(const LuaTuple *tuple)
{
    uint32_t count = 0;
    msgpack_array(tuple->row, tuple->row + tuple->size, &count);
    return count;
}

Position tuple_skip(Position at, Position end, uint32_t count)
{
    for (; at && count; count--)
        at = msgpack_skip(at, end);
    return at;
}

/* A number of C, as LuaJIT converts it for functions of C. */
static uint32_t as_unsigned(double number)
{
    return number > -9223372036854775808.0 && number < 9223372036854775808.0 ? (uint32_t)(int64_t)number : 0;
}

Position tuple_field(const LuaTuple *tuple, double number)
{
    uint32_t count, place = as_unsigned(number - 1);
    Position end = tuple->row + tuple->size, at = msgpack_array(tuple->row, end, &count);
    if (!at || place >= count)
        return NULL;
    int is_near = last.tuple == tuple && place >= last.place;
    at = is_near ? tuple_skip(tuple->row + last.offset, end, place - last.place) : tuple_skip(at, end, place);
    last.tuple = at ? tuple : NULL;
    last.place = place;
    last.offset = at ? (uint32_t)(at - tuple->row) : 0;
    return at;
}

/* -- functions for Lua -- */

static int push_value(lua_State *lua, const LuaTuple *tuple, Position at)
{
    if (at)
        lua_decode(lua, at, tuple->row + tuple->size);
    else
        lua_pushnil(lua);
    return 1;
}

/* tuple_index(tuple, key): a field by its number, name or path; else a method. A field that is nil is found by its
 * number only. */
static int index_tuple(lua_State *lua)
{
    const LuaTuple *tuple = tuple_at(lua, 1);
    int type = lua_type(lua, 2);
    if (tuple && type == LUA_TNUMBER)
        return push_value(lua, tuple, tuple_field(tuple, lua_tonumber(lua, 2)));
    if (tuple && type == LUA_TSTRING) {
        uint32_t number = lua_field_number(lua, tuple->format, 2);
        Position at = number ? tuple_field(tuple, number) : tuple_path(lua, tuple, 2);
        if (at && *at != 0xc0)
            return push_value(lua, tuple, at);
    }
    lua_push_kept(lua, LUA_KEPT_TUPLE_METHODS);
    lua_pushvalue(lua, 2);
    lua_rawget(lua, -2);
    return 1;
}

/* tuple_field(tuple, number): the field and true; nothing if there is none */
static int get_field(lua_State *lua)
{
    const LuaTuple *tuple = tuple_check(lua, 1);
    Position at = tuple_field(tuple, lua_tonumber(lua, 2));
    if (!at)
        return 0;
    push_value(lua, tuple, at);
    lua_pushboolean(lua, 1);
    return 2;
}

/* tuple_length(tuple): the number of fields */
static int count_fields(lua_State *lua)
{
    lua_pushnumber(lua, tuple_count(tuple_check(lua, 1)));
    return 1;
}

/* tuple_size(tuple): the number of bytes */
static int size_of(lua_State *lua)
{
    lua_pushnumber(lua, tuple_check(lua, 1)->size);
    return 1;
}

/* tuple_row(tuple): the packed fields */
static int row_of(lua_State *lua)
{
    const LuaTuple *tuple = tuple_check(lua, 1);
    lua_pushlstring(lua, (const char *)tuple->row, tuple->size);
    return 1;
}

/* tuple_format(tuple): the number of its format */
static int format_of(lua_State *lua)
{
    lua_pushnumber(lua, tuple_check(lua, 1)->format);
    return 1;
}

/* tuple_equal(tuple, other): whether they have the same bytes */
static int are_equal(lua_State *lua)
{
    const LuaTuple *tuple = tuple_check(lua, 1), *other = tuple_check(lua, 2);
    lua_pushboolean(lua, tuple->size == other->size && !memcmp(tuple->row, other->row, tuple->size));
    return 1;
}

static void push_new(lua_State *lua, const void *row, size_t size)
{
    lua_push_tuple(lua, row, size, 0);
}

/* tuple_new(value …): a tuple of a table or of another tuple; a tuple of the values if there are more, or if the only
 * one has another type */
static int make_tuple(lua_State *lua)
{
    int count = lua_gettop(lua);
    const LuaTuple *tuple = count == 1 ? tuple_at(lua, 1) : NULL;
    if (tuple) {
        push_new(lua, tuple->row, tuple->size);
        return 1;
    }
    int is_whole = count == 1 && lua_type(lua, 1) == LUA_TTABLE;
    /* Only one table stays an array however sparse it is, as in Tarantool. */
    const LuaEncoding *encoding = is_whole ? lua_tuple_encoding(lua) : lua_msgpack_encoding(lua);
    LuaFailure failure;
    LuaPacking packing;
    lua_packing_begin(&packing);
    int done = is_whole ? lua_encode_row(lua, &packing.buffer, 1, encoding, &failure)
        : lua_encode_values(lua, &packing.buffer, 1, count, encoding, &failure);
    return done ? lua_packing_push(lua, &packing, push_new) : lua_packing_raise(lua, &packing, &failure);
}

/* tuple_of(row, format): a tuple of a row, which is a packed array, with the number of a format */
static int tuple_of(lua_State *lua)
{
    size_t size;
    uint32_t count;
    const char *row = lua_tolstring(lua, 1, &size);
    Position start = (Position)row;
    if (!row || !msgpack_array(start, start + size, &count) || msgpack_skip(start, start + size) != start + size)
        return lua_raise_text(lua, "tuple_of() takes a packed array and the number of a format");
    lua_push_tuple(lua, row, size, (uint32_t)lua_tonumber(lua, 2));
    return 1;
}

/* tuples_of(text, offset, format): a table of tuples of the packed array of rows at an offset from 1 in a text, with the
 * number of a format; nil if there is no such array */
static int tuples_of(lua_State *lua)
{
    size_t size;
    uint32_t count, fields;
    const char *text = lua_tolstring(lua, 1, &size);
    double offset = lua_tonumber(lua, 2);
    if (!text || !(offset >= 1 && offset <= (double)size))
        return 0;
    Position start = (Position)text + (size_t)offset - 1, end = (Position)text + size;
    Position at = msgpack_array(start, end, &count), behind;
    if (!at || !msgpack_skip(start, end))
        return 0;
    lua_createtable(lua, (int)count, 0);
    for (uint32_t place = 1; place <= count; place++, at = behind) {
        behind = msgpack_skip(at, end);
        if (!msgpack_array(at, end, &fields))
            return 0;
        lua_push_tuple(lua, at, (size_t)(behind - at), (uint32_t)lua_tonumber(lua, 3));
        lua_rawseti(lua, -2, (int)place);
    }
    return 1;
}

/* tuple_in_order(tuple): the fields, where a map is a table of its keys and values, one behind the other, and
 * extensions are nil */
static int in_order(lua_State *lua)
{
    const LuaTuple *tuple = tuple_check(lua, 1);
    lua_decode_ordered(lua, tuple->row, tuple->row + tuple->size);
    return 1;
}

const LuaFunction lua_tuple_functions[] = {
    {"tuple_equal", are_equal},
    {"tuple_field", get_field},
    {"tuple_format", format_of},
    {"tuple_in_order", in_order},
    {"tuple_index", index_tuple},
    {"tuple_length", count_fields},
    {"tuple_map", tuple_map},
    {"tuple_new", make_tuple},
    {"tuple_of", tuple_of},
    {"tuple_row", row_of},
    {"tuple_size", size_of},
    {"tuple_slice", tuple_slice},
    {"tuple_table", tuple_table},
    {"tuple_transform", tuple_transform_fields},
    {"tuple_update", tuple_update},
    {"tuples_of", tuples_of},
    {NULL, NULL},
};
