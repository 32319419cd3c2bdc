/* The functions of the module msgpack, closures of its options. */
#include "../native.h"

static const LuaEncoding *options_of(lua_State *lua)
{
    return lua_topointer(lua, lua_upvalueindex(1));
}

static void push_text(lua_State *lua, const void *text, size_t size)
{
    lua_pushlstring(lua, text, size);
}

/* encode(value) */
static int encode(lua_State *lua)
{
    int count = lua_gettop(lua);
    if (count == 0)
        return lua_raise_text(lua, "msgpack.encode: a Lua object expected");
    if (count > 1)
        return lua_raise_text(lua, "msgpack.encode: argument 2 must be of type 'struct ibuf'");
    LuaFailure failure;
    LuaPacking packing;
    lua_packing_begin(&packing);
    int done = lua_encode(lua, &packing.buffer, 1, options_of(lua), &failure);
    return done ? lua_packing_push(lua, &packing, push_text) : lua_packing_raise(lua, &packing, &failure);
}

/* -- reading from texts and from memory -- */

static Position pointer_at(lua_State *lua, int place)
{
    Position at;
    memcpy(&at, lua_topointer(lua, place), sizeof at);
    return at;
}

static int is_pointer(lua_State *lua, int place)
{
    if (lua_type(lua, place) != LUA_TCDATA)
        return 0;
    uint16_t type = lua_cdata_type(lua_topointer(lua, place));
    return type == lua_types.text || type == lua_types.const_text;
}

/* Push a pointer of the type of the first argument. */
static void push_pointer(lua_State *lua, Position at)
{
    int is_const = lua_cdata_type(lua_topointer(lua, 1)) == lua_types.const_text;
    lua_push_kept(lua, is_const ? LUA_KEPT_CONST_TEXT : LUA_KEPT_TEXT);
    lua_call(lua, 0, 1);
    memcpy((void *)(uintptr_t)lua_topointer(lua, -1), &at, sizeof at);
}

/* The end of memory of unknown size: greater than any position, and less than half of the addresses behind it. */
static Position far_behind(Position at)
{
    return (Position)((uintptr_t)at + ((uintptr_t)1 << 40));
}

static int decode_text(lua_State *lua, const char *name)
{
    size_t size;
    char text[80];
    Position start = (Position)lua_tolstring(lua, 1, &size), end = start + size;
    double offset = lua_gettop(lua) > 1 ? luaL_checknumber(lua, 2) : 1;
    if (offset >= 1 && offset < (double)size + 1) {
        Position at = start + (size_t)offset - 1, behind = msgpack_skip_within(at, end, MSGPACK_DEPTH_MAX);
        if (behind) {
            lua_decode_with(lua, at, behind, options_of(lua));
            lua_pushnumber(lua, (double)(behind - start) + 1);
            return 2;
        }
        snprintf(text, sizeof text, "msgpack.%s: invalid MsgPack", name);
    } else {
        snprintf(text, sizeof text, "msgpack.%s: %s", name, size ? "offset is out of bounds" : "invalid MsgPack");
    }
    return lua_raise_text(lua, text);
}

static int decode_memory(lua_State *lua, Position at, Position end, const char *name)
{
    Position behind = msgpack_skip_within(at, end, MSGPACK_DEPTH_MAX);
    char text[80];
    if (behind) {
        lua_decode_with(lua, at, behind, options_of(lua));
        push_pointer(lua, behind);
        return 2;
    }
    snprintf(text, sizeof text, "msgpack.%s: invalid MsgPack", name);
    return lua_raise_text(lua, text);
}

/* decode(text[, offset]), decode(pointer, size): the value, and the offset or pointer behind it */
static int decode(lua_State *lua)
{
    if (lua_type(lua, 1) == LUA_TSTRING)
        return decode_text(lua, "decode");
    if (!is_pointer(lua, 1))
        return lua_raise_text(lua, "msgpack.decode: a Lua string or 'char *' expected");
    double size = luaL_checknumber(lua, 2);
    if (size <= -1)
        return lua_raise_text(lua, "msgpack.decode: size can't be negative");
    Position at = pointer_at(lua, 1);
    return decode_memory(lua, at, at + (ptrdiff_t)size, "decode");
}

/* decode_unchecked(text[, offset]), decode_unchecked(pointer): the same of memory of any size */
static int decode_unchecked(lua_State *lua)
{
    if (lua_type(lua, 1) == LUA_TSTRING)
        return decode_text(lua, "decode");
    if (!is_pointer(lua, 1))
        return lua_raise_text(lua, "msgpack.decode: a Lua string or 'char *' expected");
    Position at = pointer_at(lua, 1);
    return decode_memory(lua, at, far_behind(at), "decode");
}

/* -- heads -- */

static int refuse_header(lua_State *lua, const char *name, const char *message)
{
    char text[100];
    snprintf(text, sizeof text, "msgpack.%s: %s", name, message);
    return lua_raise_text(lua, text);
}

/* Read the head of an array or map from memory. */
static int decode_header(lua_State *lua, const char *name, uint8_t fixed, uint8_t wide)
{
    if (lua_gettop(lua) != 2) {
        char text[100];
        snprintf(text, sizeof text, "Usage: msgpack.%s(ptr, size)", name);
        return lua_raise_text(lua, text);
    }
    if (!is_pointer(lua, 1))
        return refuse_header(lua, name, "'char *' expected");
    double size = luaL_checknumber(lua, 2);
    if (size < 1)
        return refuse_header(lua, name, "non-positive size");
    Position at = pointer_at(lua, 1);
    if ((*at & 0xf0) != fixed && *at != wide && *at != wide + 1)
        return refuse_header(lua, name, "unexpected msgpack type");
    int width = (*at & 0xf0) == fixed ? 0 : *at == wide ? 2 : 4;
    if (width + 1 > size)
        return refuse_header(lua, name, "unexpected end of buffer");
    lua_pushnumber(lua, width ? (double)big_endian(at + 1, width) : (*at & 0x0f));
    push_pointer(lua, at + 1 + width);
    return 2;
}

/* decode_array_header(pointer, size): the number of elements, and the pointer to the first */
static int decode_array_header(lua_State *lua)
{
    return decode_header(lua, "decode_array_header", 0x90, 0xdc);
}

/* decode_map_header(pointer, size): the same for pairs */
static int decode_map_header(lua_State *lua)
{
    return decode_header(lua, "decode_map_header", 0x80, 0xde);
}

static const LuaFunction functions[] = {
    {"encode", encode},
    {"decode", decode},
    {"decode_unchecked", decode_unchecked},
    {"decode_array_header", decode_array_header},
    {"decode_map_header", decode_map_header},
};

int lua_msgpack_functions(lua_State *lua)
{
    if (lua_type(lua, 1) != LUA_TCDATA || lua_cdata_type(lua_topointer(lua, 1)) != lua_types.encoding)
        return lua_raise_text(lua, "msgpack_functions() takes struct msgpack_options");
    lua_createtable(lua, 0, 16);
    for (size_t place = 0; place < sizeof functions / sizeof *functions; place++) {
        lua_pushvalue(lua, 1);
        lua_pushcclosure(lua, functions[place].function, 1);
        lua_setfield(lua, -2, functions[place].name);
    }
    return 1;
}
