/* Objects of Python in Lua: userdata that own a reference. */
#include "../native.h"

#define MAGIC UINT64_C(0x6c7561206f626a73)
static const char METATABLE[] = "iproto_server.handle";

typedef struct {
    uint64_t magic;
    PyObject *object;
} LuaHandle;

static LuaHandle *handle_at(lua_State *lua, int place)
{
    LuaHandle *handle = lua_type(lua, place) == LUA_TUSERDATA && lua_objlen(lua, place) == sizeof *handle
        ? lua_touserdata(lua, place) : NULL;
    return handle && handle->magic == MAGIC ? handle : NULL;
}

PyObject *lua_handle(lua_State *lua, int place)
{
    LuaHandle *handle = handle_at(lua, place);
    return handle ? handle->object : NULL;
}

void lua_set_handle(lua_State *lua, int place, PyObject *object)
{
    Py_XSETREF(handle_at(lua, place)->object, object);
}

static int collect(lua_State *lua)
{
    LuaHandle *handle = handle_at(lua, 1);
    if (handle && handle->object && Py_IsInitialized()) {
        PyGILState_STATE lock = PyGILState_Ensure();
        Py_CLEAR(handle->object);
        PyGILState_Release(lock);
    }
    return 0;
}

int lua_push_handle(lua_State *lua)
{
    LuaHandle *handle = lua_newuserdata(lua, sizeof *handle);
    handle->magic = MAGIC;
    handle->object = NULL;
    lua_getfield(lua, LUA_REGISTRYINDEX, METATABLE);
    if (lua_type(lua, -1) == LUA_TNIL) {
        lua_settop(lua, -2);
        lua_createtable(lua, 0, 2);
        lua_pushcclosure(lua, collect, 0);
        lua_setfield(lua, -2, "__gc");
        lua_pushboolean(lua, 0);
        lua_setfield(lua, -2, "__metatable");
        lua_pushvalue(lua, -1);
        lua_setfield(lua, LUA_REGISTRYINDEX, METATABLE);
    }
    lua_setmetatable(lua, -2);
    return lua_gettop(lua);
}
