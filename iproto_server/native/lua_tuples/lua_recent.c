/* What the state of Lua that has run last has used of late, so that it need not be looked up or made again. */
#include "lua_recent.h"

LuaRecent lua_recent;

void lua_forget_recent(void)
{
    memset(&lua_recent, 0, sizeof lua_recent);
}

static const LuaEncoding *kept_encoding(lua_State *lua, int key)
{
    lua_push_kept(lua, key);
    const LuaEncoding *encoding = lua_topointer(lua, -1);
    lua_settop(lua, -2);
    return encoding;
}

void lua_recent_begin(lua_State *lua, const void *registry)
{
    lua_forget_recent();
    lua_recent.registry = registry;
    lua_recent.encoding = kept_encoding(lua, LUA_KEPT_ENCODING);
    lua_recent.tuple_encoding = kept_encoding(lua, LUA_KEPT_TUPLE_ENCODING);
}

const LuaEncoding *lua_msgpack_encoding(lua_State *lua)
{
    return lua_recent_of(lua)->encoding;
}

const LuaEncoding *lua_tuple_encoding(lua_State *lua)
{
    return lua_recent_of(lua)->tuple_encoding;
}

/* -- rows -- */

enum { ROW_MAX = 65536 }; /* bytes of a row that is kept */

void lua_push_row(lua_State *lua, const void *row, size_t size, uint32_t format)
{
    LuaRecent *recent = lua_recent_of(lua);
    for (int place = 0; place < LUA_RECENT_ROWS; place++) {
        const LuaTuple *tuple = recent->rows[place];
        if (tuple && tuple->size == size && tuple->format == format && !memcmp(tuple->row, row, size)) {
            lua_checkstack(lua, 8);
            lua_push_kept(lua, LUA_KEPT_ROWS + place);
            return;
        }
    }
    lua_push_tuple(lua, row, size, format);
    if (size > ROW_MAX)
        return;
    int place = recent->next_row++ % LUA_RECENT_ROWS;
    recent->rows[place] = NULL; /* an error of Lua may come in between */
    lua_pushvalue(lua, -1);
    lua_rawseti(lua, LUA_REGISTRYINDEX, LUA_KEPT_ROWS + place);
    recent->rows[place] = lua_topointer(lua, -1);
}

/* -- names of fields -- */

static uint32_t find_number(lua_State *lua, uint32_t format, int name)
{
    int top = lua_gettop(lua);
    lua_push_kept(lua, LUA_KEPT_FORMATS);
    lua_rawgeti(lua, -1, (int)format);
    uint32_t number = 0;
    if (lua_type(lua, -1) == LUA_TTABLE) {
        lua_pushvalue(lua, name);
        lua_rawget(lua, -2);
        number = (uint32_t)lua_tonumber(lua, -1);
    }
    lua_settop(lua, top);
    return number;
}

uint32_t lua_field_number(lua_State *lua, uint32_t format, int name)
{
    size_t size;
    const char *text = lua_tolstring(lua, name, &size);
    if (!format)
        return 0;
    if (size > sizeof lua_recent.names->text)
        return find_number(lua, format, name);
    /* The same text is at the same address, where another text may be later. */
    LuaRecentName *each = &lua_recent_of(lua)->names[((uintptr_t)text >> 4 ^ format) % LUA_RECENT_NAMES];
    if (each->address == text && each->format == format && each->size == size && !memcmp(each->text, text, size))
        return each->number;
    uint32_t number = find_number(lua, format, name);
    *each = (LuaRecentName){text, (uint32_t)size, format, number, {0}};
    memcpy(each->text, text, size);
    return number;
}
