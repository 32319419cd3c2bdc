/* The functions of LuaJIT, found in lupa's module. */
#define _GNU_SOURCE
#include "lua_api.h"

#include <dlfcn.h>

#define DEFINE(type, name, parameters) type(*name) parameters;
LUA_API_FUNCTIONS(DEFINE)
#undef DEFINE

const char *lua_api_load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    if (!library)
        return path;
    /* All are looked for first: functions that were found in another library stay what they are. */
#define CHECK(type, name, parameters) \
    if (!dlsym(library, #name))       \
        return #name;
    LUA_API_FUNCTIONS(CHECK)
#undef CHECK
#define FIND(type, name, parameters) *(void **)&name = dlsym(library, #name);
    LUA_API_FUNCTIONS(FIND)
#undef FIND
    return NULL;
}
