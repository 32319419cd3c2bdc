/* How long Lua code runs: a limit, and tracebacks for another thread. Both use LuaJIT's hook, which it calls before an
 * instruction of interpreted code; compiled code does not call it. */
#include "../native.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
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

/* It never takes Python's lock, which compiled Lua code may keep for ever. */
enum { SIGNALS_MAX = 256, TICK_MILLISECONDS = 25 };
static const double PATIENCE = 0.25; /* for a traceback, which compiled code does not give */
static const double PYTHON_GRACE = 2; /* seconds in which Python's watchdog ends the process first */

static struct {
    pthread_t thread;
    int is_running, signals, next; /* pipes: numbers of signals are read, and passed on */
    atomic_int is_ended;
    double threshold, grace, second_grace, stop_at;
} guard;

static struct {
    unsigned long number;
    double since;
    int is_long, is_asked; /* asked for a traceback that is not reported yet */
} seen;

static struct {
    atomic_int is_there;
    double seconds;
} report;

/* Returns whether there is a new report. */
static int look(void)
{
    unsigned long number = running_number();
    double time = now(), elapsed = time - seen.since;
    int is_same = number == seen.number, is_reported = 0;
    if (seen.is_asked && (!is_same || atomic_load(&traceback.phase) == TRACEBACK_READY
                          || elapsed > guard.threshold + PATIENCE)) {
        seen.is_asked = 0;
        report.seconds = elapsed;
        atomic_store(&report.is_there, 1);
        is_reported = 1;
    }
    if (!is_same) {
        seen.number = number;
        seen.since = time;
        seen.is_long = 0;
    } else if (number && state && !seen.is_long && elapsed > guard.threshold) {
        seen.is_long = 1;
        if (!atomic_load(&report.is_there)) {
            seen.is_asked = 1;
            ask_traceback(number);
        }
    }
    return is_reported;
}

static void end_process(int status)
{
    static const char text[] = "iproto-server: Lua code does not end: ending the process\n";
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
        status = 1;
    _exit(status);
}

static void pass_on(const char *numbers, ssize_t count)
{
    if (write(guard.next, numbers, (size_t)count) < 0)
        return; /* Python's watchdog has not read for long: it looks later */
}

static void read_signals(void)
{
    char numbers[SIGNALS_MAX];
    ssize_t count = read(guard.signals, numbers, sizeof numbers);
    for (ssize_t place = 0; place < count; place++) {
        if (numbers[place] != SIGTERM && numbers[place] != SIGINT)
            continue;
        double due = now() + PYTHON_GRACE + (guard.stop_at ? guard.second_grace : guard.grace);
        if (!guard.stop_at || due < guard.stop_at)
            guard.stop_at = due;
    }
    if (count > 0)
        pass_on(numbers, count);
}

static void *watch(void *unused)
{
    static const char report_number = 0; /* no signal */
    while (!atomic_load(&guard.is_ended)) {
        struct pollfd polled = {guard.signals, POLLIN, 0};
        if (poll(&polled, 1, TICK_MILLISECONDS) > 0)
            read_signals();
        if (look())
            pass_on(&report_number, 1);
        if (guard.stop_at && now() > guard.stop_at && seen.is_long && seen.number == running_number())
            end_process(128 + SIGTERM);
    }
    return NULL;
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

/* watch_lua(signals, next, threshold, grace, second_grace) */
PyObject *native_watch_lua(PyObject *module, PyObject *args)
{
    sigset_t all, before;
    if (guard.is_running)
        return PyErr_Format(PyExc_RuntimeError, "Lua code is watched already");
    if (!PyArg_ParseTuple(args, "iiddd", &guard.signals, &guard.next, &guard.threshold, &guard.grace,
                          &guard.second_grace))
        return NULL;
    guard.stop_at = 0;
    atomic_store(&guard.is_ended, 0);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the main thread */
    int failure = pthread_create(&guard.thread, NULL, watch, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failure) {
        errno = failure;
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    guard.is_running = 1;
    Py_RETURN_NONE;
}

PyObject *native_unwatch_lua(PyObject *module, PyObject *ignored)
{
    if (guard.is_running) {
        atomic_store(&guard.is_ended, 1);
        pthread_join(guard.thread, NULL);
        guard.is_running = 0;
    }
    Py_RETURN_NONE;
}

PyObject *native_long_lua(PyObject *module, PyObject *ignored)
{
    if (!atomic_load(&report.is_there))
        Py_RETURN_NONE;
    PyObject *text = NULL;
    if (atomic_load(&traceback.phase) == TRACEBACK_READY) {
        text = PyUnicode_DecodeUTF8(traceback.text, (Py_ssize_t)traceback.size, "replace");
        atomic_store(&traceback.phase, TRACEBACK_NONE);
        if (!text)
            return NULL;
    }
    double seconds = report.seconds;
    atomic_store(&report.is_there, 0);
    return Py_BuildValue("(dN)", seconds, text ? text : Py_NewRef(Py_None));
}
