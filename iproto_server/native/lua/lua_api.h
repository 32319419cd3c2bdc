/* LuaJIT's C API, whose functions lupa's module exports. They are looked up at run time: no header of LuaJIT is needed,
 * and the compiled module loads where there is no lupa.
 *
 * Source: https://luajit.org/ and https://www.lua.org/manual/5.1/manual.html#3
 */
#ifndef IPROTO_SERVER_LUA_API_H
#define IPROTO_SERVER_LUA_API_H

#include <stddef.h>
#include <stdint.h>

typedef struct lua_State lua_State;
typedef int (*lua_CFunction)(lua_State *);
typedef void *(*lua_Alloc)(void *data, void *block, size_t old_size, size_t new_size);

enum { LUA_IDSIZE = 60 };
typedef struct lua_Debug {
    int event;
    const char *name, *namewhat, *what, *source;
    int currentline, nups, linedefined, lastlinedefined;
    char short_src[LUA_IDSIZE];
    int i_ci;
} lua_Debug;
typedef void (*lua_Hook)(lua_State *, lua_Debug *);
enum { LUA_MASKCOUNT = 1 << 3, LUA_GCCOLLECT = 2, LUA_GCCOUNT = 3 };

enum { LUA_REGISTRYINDEX = -10000, LUA_GLOBALSINDEX = -10002, LUA_MULTRET = -1 };
enum {
    LUA_TNONE = -1, LUA_TNIL, LUA_TBOOLEAN, LUA_TLIGHTUSERDATA, LUA_TNUMBER, LUA_TSTRING, LUA_TTABLE, LUA_TFUNCTION,
    LUA_TUSERDATA, LUA_TTHREAD, LUA_TPROTO, LUA_TCDATA,
};

static inline int lua_upvalueindex(int number)
{
    return LUA_GLOBALSINDEX - number;
}

/* FUNCTION(type, name, parameters) for each function that is used. */
#define LUA_API_FUNCTIONS(FUNCTION)                                            \
    FUNCTION(int, lua_gettop, (lua_State *))                                   \
    FUNCTION(void, lua_settop, (lua_State *, int))                             \
    FUNCTION(void, lua_pushvalue, (lua_State *, int))                          \
    FUNCTION(void, lua_replace, (lua_State *, int))                            \
    FUNCTION(int, lua_checkstack, (lua_State *, int))                          \
    FUNCTION(int, lua_type, (lua_State *, int))                                \
    FUNCTION(const char *, lua_typename, (lua_State *, int))                   \
    FUNCTION(double, lua_tonumber, (lua_State *, int))                         \
    FUNCTION(double, luaL_checknumber, (lua_State *, int))                     \
    FUNCTION(int, lua_toboolean, (lua_State *, int))                           \
    FUNCTION(const char *, lua_tolstring, (lua_State *, int, size_t *))        \
    FUNCTION(const void *, lua_topointer, (lua_State *, int))                  \
    FUNCTION(size_t, lua_objlen, (lua_State *, int))                           \
    FUNCTION(void, lua_pushnil, (lua_State *))                                 \
    FUNCTION(void, lua_pushnumber, (lua_State *, double))                      \
    FUNCTION(void, lua_pushboolean, (lua_State *, int))                        \
    FUNCTION(void, lua_pushlstring, (lua_State *, const char *, size_t))       \
    FUNCTION(void, lua_pushcclosure, (lua_State *, lua_CFunction, int))        \
    FUNCTION(void, lua_createtable, (lua_State *, int, int))                   \
    FUNCTION(void, lua_pushlightuserdata, (lua_State *, void *))               \
    FUNCTION(void *, lua_newuserdata, (lua_State *, size_t))                   \
    FUNCTION(void *, lua_touserdata, (lua_State *, int))                       \
    FUNCTION(void, lua_getfield, (lua_State *, int, const char *))             \
    FUNCTION(void, lua_setfield, (lua_State *, int, const char *))             \
    FUNCTION(void, lua_rawget, (lua_State *, int))                             \
    FUNCTION(void, lua_rawset, (lua_State *, int))                             \
    FUNCTION(void, lua_rawgeti, (lua_State *, int, int))                       \
    FUNCTION(void, lua_rawseti, (lua_State *, int, int))                       \
    FUNCTION(int, lua_next, (lua_State *, int))                                \
    FUNCTION(int, lua_getmetatable, (lua_State *, int))                        \
    FUNCTION(int, lua_setmetatable, (lua_State *, int))                        \
    FUNCTION(void, lua_call, (lua_State *, int, int))                          \
    FUNCTION(int, lua_pcall, (lua_State *, int, int, int))                     \
    FUNCTION(int, lua_error, (lua_State *))                                    \
    FUNCTION(void, lua_concat, (lua_State *, int))                             \
    FUNCTION(lua_State *, lua_newthread, (lua_State *))                        \
    FUNCTION(int, lua_gc, (lua_State *, int, int))                             \
    FUNCTION(lua_Alloc, lua_getallocf, (lua_State *, void **))                 \
    FUNCTION(void, lua_setallocf, (lua_State *, lua_Alloc, void *))            \
    FUNCTION(int, lua_getinfo, (lua_State *, const char *, lua_Debug *))       \
    FUNCTION(int, lua_sethook, (lua_State *, lua_Hook, int, int))              \
    FUNCTION(lua_Hook, lua_gethook, (lua_State *))                             \
    FUNCTION(int, lua_gethookmask, (lua_State *))                              \
    FUNCTION(int, lua_gethookcount, (lua_State *))                             \
    FUNCTION(void, luaL_traceback, (lua_State *, lua_State *, const char *, int)) \
    FUNCTION(void, luaL_where, (lua_State *, int))                             \
    FUNCTION(int, luaL_ref, (lua_State *, int))                                \
    FUNCTION(void, luaL_unref, (lua_State *, int, int))

#define DECLARE(type, name, parameters) extern type(*name) parameters;
LUA_API_FUNCTIONS(DECLARE)
#undef DECLARE

/* Look the functions up in the library with a path, which is loaded already. Returns the name of what is missing; NULL
 * if nothing is. */
const char *lua_api_load(const char *path);

#endif
