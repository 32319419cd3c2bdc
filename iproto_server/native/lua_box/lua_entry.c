/* From Python to Lua: calls of clients, and what Lua code is attached to. */
#include "../native.h"

LuaAttached lua_attached;
LuaBoxValues lua_box_values;
static lua_State *main_state;

lua_State *lua_running(void)
{
    lua_State *innermost = lua_innermost();
    return innermost ? innermost : main_state;
}

/* -- what is attached -- */

/* lua_attach(box, ask, finished) */
FUNCTION(native_lua_attach)
{
    if (count != 3)
        return PyErr_Format(PyExc_TypeError, "lua_attach() takes a box and two functions");
    PyObject *manager = PyObject_GetAttrString(args[0], "transactions");
    PyObject *sessions = manager ? PyObject_GetAttrString(args[0], "session") : NULL;
    if (!sessions || !PyObject_TypeCheck(manager, &Manager_Type) || !PyObject_TypeCheck(sessions, &Sessions_Type)) {
        Py_XDECREF(manager);
        Py_XDECREF(sessions);
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "a box is needed");
    }
    Py_XSETREF(lua_attached.box, Py_NewRef(args[0]));
    Py_XSETREF(lua_attached.ask, Py_NewRef(args[1]));
    Py_XSETREF(lua_attached.finished, Py_NewRef(args[2]));
    Py_XSETREF(lua_attached.manager, (ManagerObject *)manager);
    Py_XSETREF(lua_attached.sessions, (SessionsObject *)sessions);
    Py_RETURN_NONE;
}

/* lua_detach(): before LuaJIT ends */
PyObject *native_lua_detach(PyObject *module, PyObject *ignored)
{
    Py_CLEAR(lua_attached.box);
    Py_CLEAR(lua_attached.ask);
    Py_CLEAR(lua_attached.finished);
    Py_CLEAR(lua_attached.manager);
    Py_CLEAR(lua_attached.sessions);
    main_state = NULL;
    lua_watch(NULL);
    Py_RETURN_NONE;
}

/* -- calls -- */

enum { RETURNED = 1 };

/* finished(number, kind, values …): a call that has waited has ended */
static int finished(lua_State *lua)
{
    LuaCall call = lua_call_begin(lua);
    PyObject *result = NULL, *type, *error = NULL, *traceback, *done = NULL;
    if (lua_tonumber(lua, 2) == RETURNED)
        result = lua_results(lua, 3);
    else
        lua_raise_described(lua, 3);
    if (!result) {
        PyErr_Fetch(&type, &error, &traceback);
        PyErr_NormalizeException(&type, &error, &traceback);
        Py_XDECREF(type);
        Py_XDECREF(traceback);
    }
    PyObject *number = PyLong_FromDouble(lua_tonumber(lua, 1));
    if (number && lua_attached.finished)
        done = PyObject_CallFunctionObjArgs(lua_attached.finished, number, result ? result : Py_None,
                                            error ? error : Py_None, NULL);
    Py_XDECREF(number);
    Py_XDECREF(result);
    Py_XDECREF(error);
    return lua_call_end(&call, done);
}

/* -- the module -- */

static int keep(lua_State *lua, const char *name)
{
    lua_getfield(lua, 1, name);
    return luaL_ref(lua, LUA_REGISTRYINDEX);
}

static int keep_function(lua_State *lua, lua_CFunction function)
{
    lua_pushcclosure(lua, function, 0);
    return luaL_ref(lua, LUA_REGISTRYINDEX);
}

/* setup_box(values) */
static int setup_box(lua_State *lua)
{
    lua_box_values = (LuaBoxValues){
        .invoke = keep_function(lua, lua_invoke),
        .trigger = keep_function(lua, lua_trigger),
        .define_format = keep(lua, "define_format"),
        .enter = keep(lua, "enter"),
        .new_error = keep(lua, "new_error"),
        .describe_error = keep(lua, "describe_error"),
        .function_numbers = keep(lua, "function_numbers"),
    };
    return 0;
}

const LuaFunction lua_entry_functions[] = {{"finished", finished}, {"setup_box", setup_box}, {NULL, NULL}};

static void add_functions(lua_State *lua, const LuaFunction *functions)
{
    for (; functions->name; functions++) {
        lua_pushcclosure(lua, functions->function, 0);
        lua_setfield(lua, -2, functions->name);
    }
}

int luaopen_iproto_box(lua_State *lua)
{
    main_state = lua;
    lua_createtable(lua, 0, 32);
    add_functions(lua, lua_row_functions);
    add_functions(lua, lua_transaction_functions);
    add_functions(lua, lua_entry_functions);
    return 1;
}
