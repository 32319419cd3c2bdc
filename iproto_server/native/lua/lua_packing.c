/* Packed values on their way to Lua code. No error of Lua is raised while objects of Python, or its lock, are held. */
#include "../native.h"

void lua_packing_begin(LuaPacking *packing)
{
    packing->lock = PyGILState_Ensure();
    packing->is_memory_limited = lua_memory_limit(0);
    buffer_init(&packing->buffer);
}

static void end(LuaPacking *packing)
{
    buffer_free(&packing->buffer);
    lua_memory_limit(packing->is_memory_limited);
    PyGILState_Release(packing->lock);
}

/* What `push_packed` pushes; the interpreter's lock is held as long as it is set. */
static struct {
    const Buffer *buffer;
    void (*push)(lua_State *, const void *, size_t);
} pushed;

int lua_push_packed(lua_State *lua)
{
    pushed.push(lua, pushed.buffer->data, (size_t)pushed.buffer->size);
    return 1;
}

int lua_packing_push(lua_State *lua, LuaPacking *packing, void (*push)(lua_State *, const void *, size_t))
{
    Buffer *buffer = &packing->buffer;
    if (!buffer->bytes) { /* the bytes are on this function's stack, which an error may leave */
        lua_memory_limit(packing->is_memory_limited);
        PyGILState_Release(packing->lock);
        push(lua, buffer->data, (size_t)buffer->size);
        return 1;
    }
    pushed.buffer = buffer;
    pushed.push = push;
    lua_push_kept(lua, LUA_KEPT_PUSH_PACKED);
    int is_raised = lua_pcall(lua, 0, 1, 0);
    end(packing);
    return is_raised ? lua_error(lua) : 1;
}

int lua_packing_raise(lua_State *lua, LuaPacking *packing, const LuaFailure *failure)
{
    end(packing);
    return lua_raise_failure(lua, failure);
}

/* -- errors -- */

int lua_raise_text(lua_State *lua, const char *text)
{
    luaL_where(lua, 1);
    lua_pushlstring(lua, text, strlen(text));
    lua_concat(lua, 2);
    return lua_error(lua);
}

int lua_raise_failure(lua_State *lua, const LuaFailure *failure)
{
    if (failure->kind == LUA_FAILURE_RAISED)
        return lua_error(lua);
    if (failure->kind == LUA_FAILURE_TEXT)
        return lua_raise_text(lua, failure->text);
    lua_push_kept(lua, LUA_KEPT_NEW_ERROR);
    lua_pushnumber(lua, failure->code);
    lua_pushlstring(lua, failure->text, strlen(failure->text));
    const char *type = failure->kind == LUA_FAILURE_LUAJIT ? "LuajitError" : "ClientError";
    lua_pushlstring(lua, type, strlen(type));
    lua_call(lua, 3, 1);
    return lua_error(lua);
}

void lua_make_text(lua_State *lua)
{
    if (lua_type(lua, -1) == LUA_TSTRING)
        return;
    lua_getfield(lua, LUA_GLOBALSINDEX, "tostring");
    lua_pushvalue(lua, -2);
    lua_pcall(lua, 1, 1, 0); /* an error is pushed as well as a result */
    lua_replace(lua, -2);
}
