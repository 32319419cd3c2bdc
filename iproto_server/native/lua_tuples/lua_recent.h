/* What the state of Lua that has run last has used of late. */
#ifndef IPROTO_SERVER_LUA_RECENT_H
#define IPROTO_SERVER_LUA_RECENT_H

#include "lua_tuple.h"

enum { LUA_RECENT_NAMES = 64 };

typedef struct {
    const char *address; /* of the text in Lua's memory */
    uint32_t size, format, number;
    char text[28];
} LuaRecentName;

typedef struct {
    const void *registry; /* that of the state */
    const LuaEncoding *encoding, *tuple_encoding;
    const LuaTuple *rows[LUA_RECENT_ROWS]; /* those at LUA_KEPT_ROWS */
    unsigned int next_row;
    LuaRecentName names[LUA_RECENT_NAMES]; /* numbers of fields */
} LuaRecent;
extern LuaRecent lua_recent;

void lua_forget_recent(void);
void lua_recent_begin(lua_State *lua, const void *registry);

static inline LuaRecent *lua_recent_of(lua_State *lua)
{
    const void *registry = lua_topointer(lua, LUA_REGISTRYINDEX);
    if (lua_recent.registry != registry)
        lua_recent_begin(lua, registry);
    return &lua_recent;
}

/* The number of the field, from 1, that a format gives the name at a place of the stack; 0 if it gives it to none. */
uint32_t lua_field_number(lua_State *lua, uint32_t format, int name);

#endif
