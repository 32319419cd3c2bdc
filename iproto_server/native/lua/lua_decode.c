/* MessagePack as values of Lua. */
#include "../native.h"

/* Integers from here on are cdata, others numbers: those have 53 bits. */
static const uint64_t NUMBER_END = 100000000000000;

/* Push a new integer of 64 bits. */
static void push_int64(lua_State *lua, int type, uint64_t value)
{
    lua_push_kept(lua, type);
    lua_call(lua, 0, 1);
    memcpy((void *)(uintptr_t)lua_topointer(lua, -1), &value, sizeof value);
}

static void push_unsigned(lua_State *lua, uint64_t value)
{
    if (value < NUMBER_END)
        lua_pushnumber(lua, (double)value);
    else
        push_int64(lua, LUA_KEPT_UINT64, value);
}

static void push_signed(lua_State *lua, int64_t value)
{
    if (value > -(int64_t)NUMBER_END && value < (int64_t)NUMBER_END)
        lua_pushnumber(lua, (double)value);
    else
        push_int64(lua, LUA_KEPT_INT64, (uint64_t)value);
}

static void push_numeric(lua_State *lua, uint8_t first, uint64_t bits)
{
    float single;
    double number;
    uint32_t low = (uint32_t)bits;
    switch (first) {
    case 0xca: memcpy(&single, &low, sizeof single); lua_pushnumber(lua, (double)single); break;
    case 0xcb: memcpy(&number, &bits, sizeof number); lua_pushnumber(lua, number); break;
    case 0xd0: lua_pushnumber(lua, (int8_t)bits); break;
    case 0xd1: lua_pushnumber(lua, (int16_t)bits); break;
    case 0xd2: lua_pushnumber(lua, (int32_t)bits); break;
    case 0xd3: push_signed(lua, (int64_t)bits); break;
    default: push_unsigned(lua, bits);
    }
}

static void set_metatable(lua_State *lua, int key, const LuaEncoding *encoding)
{
    if (!encoding->save_metatables)
        return;
    lua_push_kept(lua, key);
    lua_setmetatable(lua, -2);
}

static Position push_array(lua_State *lua, Position at, Position end, uint64_t count, const LuaEncoding *encoding)
{
    lua_createtable(lua, (int)count, 0);
    for (uint64_t place = 1; place <= count; place++) {
        at = lua_decode_with(lua, at, end, encoding);
        lua_rawseti(lua, -2, (int)place);
    }
    set_metatable(lua, LUA_KEPT_ARRAY_MT, encoding);
    return at;
}

static Position push_ordered(lua_State *lua, Position at, Position end, uint64_t pairs, const LuaEncoding *encoding)
{
    at = push_array(lua, at, end, 2 * pairs, encoding);
    lua_push_kept(lua, LUA_KEPT_MAP_MT);
    lua_setmetatable(lua, -2);
    return at;
}

static Position push_map(lua_State *lua, Position at, Position end, uint64_t pairs, const LuaEncoding *encoding)
{
    if (encoding->in_order)
        return push_ordered(lua, at, end, pairs, encoding);
    lua_createtable(lua, 0, (int)pairs);
    for (; pairs; pairs--) {
        at = lua_decode_with(lua, at, end, encoding);
        at = lua_decode_with(lua, at, end, encoding);
        lua_rawset(lua, -3);
    }
    set_metatable(lua, LUA_KEPT_MAP_MT, encoding);
    return at;
}

/* Push the value of an extension; what is wrong with it is raised as an error. */
static void push_extension(lua_State *lua, Position body, size_t size)
{
    lua_push_kept(lua, LUA_KEPT_DECODE_EXTENSION);
    lua_pushnumber(lua, (int8_t)*body);
    lua_pushlstring(lua, (const char *)body + 1, size - 1);
    lua_call(lua, 2, 2);
    if (lua_type(lua, -1) == LUA_TSTRING)
        lua_raise_text(lua, lua_tolstring(lua, -1, NULL));
    lua_settop(lua, -2);
}

/* Push a value that has a size or a number of values in its head. */
static Position push_sized(lua_State *lua, Position at, Position end, const LuaEncoding *encoding)
{
    Position body;
    uint64_t size, values;
    if (!msgpack_head(at, end, &body, &size, &values))
        return NULL;
    uint8_t first = *at;
    if (!lua_checkstack(lua, 8))
        lua_raise_text(lua, "stack overflow");
    if ((first & 0xf0) == 0x90 || first == 0xdc || first == 0xdd)
        return push_array(lua, body, end, values, encoding);
    if ((first & 0xf0) == 0x80 || first == 0xde || first == 0xdf)
        return push_map(lua, body, end, values / 2, encoding);
    int is_text = (first & 0xe0) == 0xa0 || (first >= 0xd9 && first <= 0xdb) || (first >= 0xc4 && first <= 0xc6);
    if (is_text)
        lua_pushlstring(lua, (const char *)body, size);
    else if (encoding->in_order)
        lua_push_kept(lua, LUA_KEPT_NULL);
    else
        push_extension(lua, body, size);
    return body + size;
}

Position lua_decode_with(lua_State *lua, Position at, Position end, const LuaEncoding *encoding)
{
    uint8_t first = *at;
    if (first < 0x80 || first >= 0xe0) {
        lua_pushnumber(lua, (int8_t)first);
        return at + 1;
    }
    if (first == 0xc0) {
        lua_push_kept(lua, LUA_KEPT_NULL);
        return at + 1;
    }
    if (first == 0xc2 || first == 0xc3) {
        lua_pushboolean(lua, first == 0xc3);
        return at + 1;
    }
    if (first < 0xca || first > 0xd3)
        return push_sized(lua, at, end, encoding);
    int width = 1 << (first & 3); /* the heads of numbers are in this order */
    push_numeric(lua, first, big_endian(at + 1, width));
    return at + 1 + width;
}

Position lua_decode(lua_State *lua, Position at, Position end)
{
    /* Numbers and other short values do not depend on options. */
    int is_short = *at < 0x80 || *at >= 0xe0 || (*at >= 0xca && *at <= 0xd3) || *at == 0xc0 || *at == 0xc2 || *at == 0xc3;
    return lua_decode_with(lua, at, end, is_short ? NULL : lua_msgpack_encoding(lua));
}

Position lua_decode_ordered(lua_State *lua, Position at, Position end)
{
    static const LuaEncoding encoding = {.save_metatables = 1, .in_order = 1};
    return lua_decode_with(lua, at, end, &encoding);
}
