/* The limit of the memory of Lua's objects. LuaJIT does not collect garbage when an allocation fails, so that is done when
 * the run of Lua code has ended. */
#include "../native.h"

int lua_memory_is_limited, lua_memory_is_full;

typedef struct {
    lua_Alloc allocate; /* LuaJIT's own function and data */
    void *data;
    size_t used, limit;
    size_t reserve; /* more, for what handles an error */
    size_t extra;   /* the same if what is in use has left nothing: for code that makes memory free */
} Memory;
static Memory *limited; /* of the state that was limited last */

static void *allocate(void *data, void *block, size_t old_size, size_t new_size)
{
    Memory *memory = data;
    if (!block)
        old_size = 0;
    if (new_size > old_size && lua_memory_is_limited) {
        size_t limit = memory->limit + memory->extra + (lua_memory_is_full ? memory->reserve : 0);
        if (new_size - old_size > limit || memory->used > limit - (new_size - old_size)) {
            lua_memory_is_full = 1;
            return NULL;
        }
    }
    void *result = memory->allocate(memory->data, block, old_size, new_size);
    if (result || !new_size)
        memory->used += new_size - old_size;
    return result;
}

int lua_set_memory_limit(lua_State *lua)
{
    enum { RESERVE_PART = 16, KILOBYTE = 1024 };
    size_t limit = (size_t)luaL_checknumber(lua, 1);
    /* It is never freed: LuaJIT uses it until the state has ended. */
    Memory *memory = malloc(sizeof *memory);
    if (!memory)
        return lua_raise_text(lua, "not enough memory");
    *memory = (Memory){.limit = limit, .reserve = limit / RESERVE_PART};
    memory->used = (size_t)lua_gc(lua, LUA_GCCOUNT, 0) * KILOBYTE;
    memory->allocate = lua_getallocf(lua, &memory->data);
    lua_setallocf(lua, allocate, memory);
    limited = memory;
    return 0;
}

static int collect(lua_State *lua)
{
    lua_gc(lua, LUA_GCCOLLECT, 0);
    return 0;
}

void lua_memory_collect(lua_State *lua)
{
    if (!lua_memory_is_full)
        return;
    PyObject *type, *error, *trace; /* finalizers release objects of Python */
    PyErr_Fetch(&type, &error, &trace);
    int before = lua_memory_limit(0);
    lua_pushcclosure(lua, collect, 0);
    if (lua_pcall(lua, 0, 0, 0)) /* an error of a finalizer */
        lua_settop(lua, -2);
    lua_memory_limit(before);
    lua_memory_is_full = 0;
    limited->extra = limited->used > limited->limit - limited->reserve ? limited->reserve : 0;
    PyErr_Restore(type, error, trace);
}
