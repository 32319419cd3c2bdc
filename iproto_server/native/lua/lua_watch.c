/* How long Lua code runs: a limit, and tracebacks for another thread. Both use LuaJIT's hook, which it calls before an
 * instruction of interpreted code; compiled code does not call it. */
#include "../native.h"

#include <poll.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

LuaRun lua_run;

static lua_State *state; /* a coroutine that is never collected */

void lua_watch(lua_State *lua)
{
    state = lua ? lua_newthread(lua) : NULL;
    if (lua)
        luaL_ref(lua, LUA_REGISTRYINDEX);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* -- the limit -- */

enum { INSTRUCTIONS = 10000 }; /* between two looks at the clock */

static struct {
    double seconds, begin; /* the hook has seen this begin of the run, or of the fiber */
    unsigned long number;
    unsigned long fiber, seen_fiber;
    int is_exceeded;
} limit;

/* Whether the innermost function is one of these modules that have to finish what they do. */
static int is_own_code(lua_State *lua, lua_Debug *at)
{
    static const char *const before[] = {"@builtin/internal.fibers.", "@builtin/internal.box."};
    if (!lua_getinfo(lua, "S", at))
        return 0;
    if (limit.is_exceeded)
        return !strncmp(at->source, "@builtin/", strlen("@builtin/"));
    for (size_t place = 0; place < sizeof before / sizeof *before; place++)
        if (!strncmp(at->source, before[place], strlen(before[place])))
            return 1;
    return 0;
}

/* Once the time is over, each instruction of the same run raises the error: code that catches it does not go on. */
static void on_instructions(lua_State *lua, lua_Debug *at)
{
    unsigned long number = atomic_load_explicit(&lua_run.number, memory_order_relaxed);
    if (number != limit.number || limit.fiber != limit.seen_fiber) {
        limit.number = number;
        limit.seen_fiber = limit.fiber;
        limit.begin = now();
        if (limit.is_exceeded)
            lua_sethook(lua, on_instructions, LUA_MASKCOUNT, INSTRUCTIONS);
        limit.is_exceeded = 0;
        return;
    }
    if ((!limit.is_exceeded && now() - limit.begin < limit.seconds) || is_own_code(lua, at))
        return;
    limit.is_exceeded = 1;
    lua_sethook(lua, on_instructions, LUA_MASKCOUNT, 1);
    char text[128];
    int size = snprintf(text, sizeof text, "Lua code has run for more than %g s without a yield (lua_time_limit)",
                        limit.seconds);
    luaL_where(lua, 0);
    lua_pushlstring(lua, text, (size_t)size);
    lua_concat(lua, 2);
    lua_error(lua);
}

int lua_set_time_limit(lua_State *lua)
{
    limit.seconds = luaL_checknumber(lua, 1);
    lua_sethook(lua, on_instructions, LUA_MASKCOUNT, INSTRUCTIONS);
    return 0;
}

int lua_begin_fiber(lua_State *lua)
{
    limit.fiber++;
    lua_memory_is_limited = 1;
    return 0;
}

/* -- tracebacks -- */

enum { TRACEBACK_MAX = 8192, LENDING_INSTRUCTIONS = 100000 };
enum { TRACEBACK_NONE, TRACEBACK_ASKED, TRACEBACK_READY };

static struct {
    atomic_int phase;
    lua_Hook hook; /* what the hook was before */
    int mask, count;
    unsigned long number; /* of the run that is asked for */
    size_t size;
    char text[TRACEBACK_MAX];
} traceback;

static unsigned long running_number(void)
{
    return atomic_load_explicit(&lua_run.depth, memory_order_relaxed)
        ? atomic_load_explicit(&lua_run.number, memory_order_relaxed) : 0;
}

/* Let other threads run Python code, for which a call of a client leaves no time. */
static void on_long_run(lua_State *lua, lua_Debug *at)
{
    if (traceback.number != running_number()) {
        lua_sethook(lua, traceback.hook, traceback.mask, traceback.count);
        return;
    }
    if (PyGILState_Check())
        PyEval_RestoreThread(PyEval_SaveThread());
    if (traceback.hook == on_instructions)
        on_instructions(lua, at);
}

static void on_instruction(lua_State *lua, lua_Debug *at)
{
    if (traceback.number != running_number()) {
        lua_sethook(lua, traceback.hook, traceback.mask, traceback.count);
        atomic_store(&traceback.phase, TRACEBACK_NONE);
        return;
    }
    lua_sethook(lua, on_long_run, LUA_MASKCOUNT, LENDING_INSTRUCTIONS);
    int before = lua_memory_limit(0);
    luaL_traceback(lua, lua, NULL, 0);
    size_t size = 0;
    const char *text = lua_tolstring(lua, -1, &size);
    traceback.size = size < TRACEBACK_MAX ? size : TRACEBACK_MAX;
    memcpy(traceback.text, text, traceback.size);
    lua_settop(lua, -2);
    lua_memory_limit(before);
    atomic_store(&traceback.phase, TRACEBACK_READY);
}

/* Called in another thread. Source: the program `lua` sets a hook in its signal handler. */
static void ask_traceback(unsigned long number)
{
    lua_Hook hook = lua_gethook(state);
    if (hook != on_instruction && hook != on_long_run) {
        traceback.hook = hook;
        traceback.mask = lua_gethookmask(state);
        traceback.count = lua_gethookcount(state);
    }
    traceback.number = number;
    atomic_store(&traceback.phase, TRACEBACK_ASKED);
    lua_sethook(state, on_instruction, LUA_MASKCOUNT, 1);
}

/* -- the thread that watches -- */

enum { SIGNALS_MAX = 256 };
static const double TICK = 0.025, PATIENCE = 0.25; /* for a traceback, which compiled code does not give */

static struct {
    unsigned long number;
    double since;
    int is_asked, is_reported;
    double reported_seconds; /* a report that is to be taken; 0 for none */
} seen;

static int is_long(void)
{
    return seen.is_asked && seen.number == running_number();
}

static void look(double threshold)
{
    unsigned long number = running_number();
    double time = now(), elapsed = time - seen.since;
    int is_same = number == seen.number;
    if (seen.is_asked && !seen.is_reported
        && (!is_same || atomic_load(&traceback.phase) == TRACEBACK_READY || elapsed > threshold + PATIENCE)) {
        seen.is_reported = 1;
        seen.reported_seconds = elapsed;
    }
    if (!is_same) {
        seen.number = number;
        seen.since = time;
        seen.is_asked = seen.is_reported = 0;
    } else if (number && state && !seen.is_asked && elapsed > threshold) {
        seen.is_asked = 1;
        ask_traceback(number);
    }
}

/* Python cannot end the process as long as compiled Lua code keeps the interpreter's lock. */
static void end_process(int status)
{
    static const char text[] = "iproto-server: Lua code does not end: ending the process\n";
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
        status = 1;
    _exit(status);
}

typedef struct {
    int descriptor, count, stops;
    double end, threshold, grace, second_grace, stop_at;
    char signals[SIGNALS_MAX];
} Watch;

static void read_signals(Watch *watch)
{
    int room = SIGNALS_MAX - watch->count;
    ssize_t count = room ? read(watch->descriptor, watch->signals + watch->count, (size_t)room) : 0;
    for (ssize_t place = 0; place < count; place++) {
        int number = watch->signals[watch->count + place];
        if (number != SIGTERM && number != SIGINT)
            continue;
        double due = now() + (watch->stops ? watch->second_grace : watch->grace);
        watch->stops++;
        if (due < watch->stop_at)
            watch->stop_at = due;
    }
    if (count > 0)
        watch->count += (int)count;
}

static void watch_until(Watch *watch)
{
    for (;;) {
        double left = watch->end - now();
        struct pollfd polled = {watch->descriptor, POLLIN, 0};
        double tick = left < TICK ? left > 0 ? left : 0 : TICK;
        if (poll(&polled, 1, (int)(tick * 1000) + 1) > 0)
            read_signals(watch);
        look(watch->threshold);
        int is_stuck = is_long() && atomic_load(&traceback.phase) == TRACEBACK_ASKED;
        if (is_stuck && now() > watch->stop_at)
            end_process(128 + SIGTERM);
        if (!is_stuck && (watch->count || seen.reported_seconds || left <= 0))
            return;
    }
}

/* -- functions of Python -- */

PyObject *native_lua_begin(PyObject *module, PyObject *ignored)
{
    lua_run_begin();
    Py_RETURN_NONE;
}

PyObject *native_lua_end(PyObject *module, PyObject *ignored)
{
    lua_memory_is_limited = 0;
    if (lua_run_end() && state)
        lua_memory_collect(state);
    Py_RETURN_NONE;
}

/* watch_lua(descriptor, seconds, threshold, left, grace, second_grace) */
PyObject *native_watch_lua(PyObject *module, PyObject *args)
{
    Watch watch = {0};
    double seconds, left;
    if (!PyArg_ParseTuple(args, "iddddd", &watch.descriptor, &seconds, &watch.threshold, &left, &watch.grace,
                          &watch.second_grace))
        return NULL;
    watch.end = now() + seconds;
    watch.stop_at = now() + left;
    Py_BEGIN_ALLOW_THREADS
    watch_until(&watch);
    Py_END_ALLOW_THREADS
    return PyBytes_FromStringAndSize(watch.signals, watch.count);
}

PyObject *native_long_lua(PyObject *module, PyObject *ignored)
{
    if (!seen.reported_seconds)
        Py_RETURN_NONE;
    double seconds = seen.reported_seconds;
    seen.reported_seconds = 0;
    if (atomic_load(&traceback.phase) != TRACEBACK_READY)
        return Py_BuildValue("(dO)", seconds, Py_None);
    PyObject *text = PyUnicode_DecodeUTF8(traceback.text, (Py_ssize_t)traceback.size, "replace");
    atomic_store(&traceback.phase, TRACEBACK_NONE);
    return text ? Py_BuildValue("(dN)", seconds, text) : NULL;
}
