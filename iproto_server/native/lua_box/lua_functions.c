/* Functions of Lua as objects of Python, which triggers are. */
#include "../native.h"

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    int reference, number;
} LuaFunctionObject;

static PyObject *known; /* the objects by number, which they do not own: a dict */

/* -- calls -- */

typedef struct {
    PyObject *const *args;
    Py_ssize_t count;
    int reference;
    int *entry; /* of a call of a client: the reference of its name, the first argument; 0 before the first call */
    PyObject *result;
} Invocation;

/* What a call of a client has come to: 0 and the number of a fiber that waits, 1 and results, or 2 and an error. */
static PyObject *entry_result(lua_State *lua, int place)
{
    enum { WAITS, RETURNED };
    double kind = lua_tonumber(lua, place);
    if (kind == RETURNED)
        return lua_results(lua, place + 1);
    if (kind == WAITS)
        return PyLong_FromDouble(lua_tonumber(lua, place + 1));
    lua_raise_described(lua, place + 1);
    return NULL;
}

/* Push arguments; -1 with an exception. */
static int push_arguments(lua_State *lua, PyObject *const *args, Py_ssize_t count)
{
    lua_checkstack(lua, (int)count + 8);
    for (Py_ssize_t place = 0; place < count; place++) {
        PyObject *value = Py_NewRef(args[place]);
        int done = lua_prepare(lua, &value);
        if (done == 0)
            lua_push_value(lua, value);
        Py_DECREF(value);
        if (done < 0)
            return -1;
    }
    return 0;
}

/* Push the name of a call and its arguments. A text that is kept need not be hashed again. */
static int push_entry(lua_State *lua, const Invocation *call)
{
    if (*call->entry) {
        lua_rawgeti(lua, LUA_REGISTRYINDEX, *call->entry);
        return push_arguments(lua, call->args + 1, call->count - 1);
    }
    if (push_arguments(lua, call->args, call->count) < 0)
        return -1;
    if (call->args[0] != Py_None) {
        lua_pushvalue(lua, lua_gettop(lua) - (int)call->count + 1);
        *call->entry = luaL_ref(lua, LUA_REGISTRYINDEX);
    }
    return 0;
}

int lua_invoke(lua_State *lua)
{
    Invocation *call = lua_touserdata(lua, 1);
    lua_rawgeti(lua, LUA_REGISTRYINDEX, call->reference);
    if (call->entry ? push_entry(lua, call) < 0 : push_arguments(lua, call->args, call->count) < 0)
        return 0;
    lua_memory_limit(1);
    lua_call(lua, (int)call->count, LUA_MULTRET);
    lua_memory_limit(0);
    call->result = call->entry ? entry_result(lua, 2) : lua_results(lua, 2);
    return 0;
}

void lua_raise_top(lua_State *lua)
{
    lua_rawgeti(lua, LUA_REGISTRYINDEX, lua_box_values.describe_error);
    lua_pushvalue(lua, -2);
    if (lua_pcall(lua, 1, 4, 0) == 0) {
        lua_raise_described(lua, lua_gettop(lua) - 3);
        lua_settop(lua, -5);
    } else {
        PyErr_SetString(PyExc_RuntimeError, "an error of Lua that cannot be described");
        lua_settop(lua, -2);
    }
    lua_settop(lua, -2);
}

int lua_run_protected(lua_State *lua, int reference, const void *argument)
{
    int before = lua_memory_limit(0);
    lua_run_begin();
    lua_rawgeti(lua, LUA_REGISTRYINDEX, reference);
    lua_pushlightuserdata(lua, (void *)argument);
    int is_raised = lua_pcall(lua, 1, 0, 0);
    if (is_raised) {
        lua_memory_limit(0);
        lua_raise_top(lua);
    }
    if (lua_run_end())
        lua_memory_collect(lua);
    lua_memory_limit(before);
    return is_raised ? -1 : 0;
}

static PyObject *call_lua(Invocation call)
{
    lua_State *lua = lua_running();
    if (lua_check_depth() < 0)
        return NULL;
    if (!lua) {
        PyErr_SetString(PyExc_RuntimeError, "Lua has ended");
        return NULL;
    }
    if (lua_run_protected(lua, lua_box_values.invoke, &call) < 0)
        Py_CLEAR(call.result);
    return call.result;
}

PyObject *lua_enter(int *name, PyObject *const *args, Py_ssize_t count)
{
    return call_lua((Invocation){args, count, lua_box_values.enter, name, NULL});
}

static PyObject *function_call(PyObject *self, PyObject *const *args, size_t flags, PyObject *names)
{
    return call_lua((Invocation){args, PyVectorcall_NARGS(flags), ((LuaFunctionObject *)self)->reference, NULL, NULL});
}

/* -- objects -- */

static PyObject *find_known(lua_State *lua, int place, int *number)
{
    lua_rawgeti(lua, LUA_REGISTRYINDEX, lua_box_values.function_numbers);
    lua_pushvalue(lua, place);
    lua_rawget(lua, -2);
    *number = lua_type(lua, -1) == LUA_TNUMBER ? (int)lua_tonumber(lua, -1) : 0;
    lua_settop(lua, -3);
    PyObject *key = *number && known ? PyLong_FromLong(*number) : NULL;
    PyObject *found = key ? PyDict_GetItemWithError(known, key) : NULL;
    Py_XDECREF(key);
    return found ? (PyObject *)PyLong_AsVoidPtr(found) : NULL;
}

static int remember(lua_State *lua, int place, LuaFunctionObject *self)
{
    static int last;
    self->number = ++last;
    lua_pushvalue(lua, place);
    self->reference = luaL_ref(lua, LUA_REGISTRYINDEX);
    lua_rawgeti(lua, LUA_REGISTRYINDEX, lua_box_values.function_numbers);
    lua_pushvalue(lua, place);
    lua_pushnumber(lua, self->number);
    lua_rawset(lua, -3);
    lua_settop(lua, -2);
    PyObject *key = PyLong_FromLong(self->number), *address = PyLong_FromVoidPtr(self);
    int done = key && address && (known || (known = PyDict_New())) ? PyDict_SetItem(known, key, address) : -1;
    Py_XDECREF(key);
    Py_XDECREF(address);
    return done;
}

PyObject *lua_function_object(lua_State *lua, int place)
{
    int number;
    PyObject *found = find_known(lua, place, &number);
    if (found || PyErr_Occurred())
        return Py_XNewRef(found);
    LuaFunctionObject *self = PyObject_New(LuaFunctionObject, &LuaFunction_Type);
    if (self)
        self->vectorcall = function_call;
    if (self && remember(lua, place, self) < 0)
        Py_CLEAR(self);
    return (PyObject *)self;
}

int lua_function_reference(PyObject *function)
{
    return ((LuaFunctionObject *)function)->reference;
}

void lua_push_function(lua_State *lua, PyObject *function)
{
    lua_rawgeti(lua, LUA_REGISTRYINDEX, ((LuaFunctionObject *)function)->reference);
}

static void function_dealloc(PyObject *object)
{
    LuaFunctionObject *self = (LuaFunctionObject *)object;
    PyObject *key = known ? PyLong_FromLong(self->number) : NULL;
    if (key && PyDict_Contains(known, key) > 0)
        PyDict_DelItem(known, key);
    Py_XDECREF(key);
    lua_State *lua = lua_running();
    if (lua)
        luaL_unref(lua, LUA_REGISTRYINDEX, self->reference);
    PyObject_Free(self);
}

PyTypeObject LuaFunction_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native._native.LuaFunction",
    .tp_doc = "A function of Lua.",
    .tp_basicsize = sizeof(LuaFunctionObject),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_vectorcall_offset = offsetof(LuaFunctionObject, vectorcall),
    .tp_call = PyVectorcall_Call,
    .tp_dealloc = function_dealloc,
};
