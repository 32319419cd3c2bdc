/* Limits of Lua code: its memory, and how long it runs without giving way to the event loop. */
#ifndef IPROTO_SERVER_LUA_LIMITS_H
#define IPROTO_SERVER_LUA_LIMITS_H

#include <Python.h>
#include <stdatomic.h>

#include "lua_api.h"

/* A run of Lua code: from the first call of Lua until that returns to Python, with all calls within it. Another thread
 * reads these. */
typedef struct {
    atomic_ulong number; /* of the run */
    atomic_int depth;    /* calls of Lua within each other; 0 outside of a run */
} LuaRun;
extern LuaRun lua_run;

static inline void lua_run_begin(void)
{
    int depth = atomic_load_explicit(&lua_run.depth, memory_order_relaxed);
    if (!depth)
        atomic_store_explicit(&lua_run.number, atomic_load_explicit(&lua_run.number, memory_order_relaxed) + 1,
                              memory_order_relaxed);
    atomic_store_explicit(&lua_run.depth, depth + 1, memory_order_relaxed);
}
static inline int lua_run_end(void) /* returns whether this was the outermost call */
{
    int depth = atomic_load_explicit(&lua_run.depth, memory_order_relaxed) - 1;
    atomic_store_explicit(&lua_run.depth, depth, memory_order_relaxed);
    return !depth;
}

/* lua_memory.c: whether the limit of memory holds for what is allocated now. Code that an error of Lua must not leave sets
 * it to 0 and back; code of users runs with 1. */
extern int lua_memory_is_limited;
extern int lua_memory_is_full; /* an allocation has failed since the last lua_memory_collect() */
static inline int lua_memory_limit(int is_limited) /* returns the value before */
{
    int before = lua_memory_is_limited;
    lua_memory_is_limited = is_limited;
    return before;
}
void lua_memory_collect(lua_State *lua); /* make the memory of what is unreachable free, if an allocation has failed */
int lua_set_memory_limit(lua_State *lua); /* set_memory_limit(bytes), a function of Lua */

/* lua_watch.c: functions of Lua */
int lua_set_time_limit(lua_State *lua); /* set_time_limit(seconds) */
int lua_begin_fiber(lua_State *lua); /* begin_fiber(): a fiber goes on, for which the limits hold from now on */
/* Functions of Python: begin and end a run; watch runs in another thread, and take what was found about a long one. */
PyObject *native_lua_begin(PyObject *module, PyObject *ignored);
PyObject *native_lua_end(PyObject *module, PyObject *ignored);
PyObject *native_watch_lua(PyObject *module, PyObject *args);
PyObject *native_unwatch_lua(PyObject *module, PyObject *ignored);
PyObject *native_long_lua(PyObject *module, PyObject *ignored);
void lua_watch(lua_State *lua); /* watch the code of this LuaJIT; of none for NULL */

#endif
