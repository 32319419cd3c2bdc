/* Transactions and sessions of Lua code. */
#include "../native.h"

static PyObject *none_or_error(int done)
{
    return done < 0 ? NULL : Py_NewRef(Py_None);
}

static int is_attached(void)
{
    if (!lua_attached.box)
        PyErr_SetString(PyExc_RuntimeError, "Please call box.cfg{} first");
    return lua_attached.box != NULL;
}

static int begin(lua_State *lua)
{
    LuaCall call = lua_call_begin(lua);
    PyObject *done = is_attached() ? PyObject_CallMethod((PyObject *)lua_attached.manager, "begin", NULL) : NULL;
    return lua_call_end(&call, done);
}

static int commit(lua_State *lua)
{
    LuaCall call = lua_call_begin(lua);
    return lua_call_end(&call, is_attached() ? PyObject_CallMethod(lua_attached.box, "commit", NULL) : NULL);
}

/* rollback(): of the running transaction, also inside of a trigger */
static int rollback(lua_State *lua)
{
    LuaCall call = lua_call_begin(lua);
    if (is_attached())
        manager_rollback(lua_attached.manager);
    return lua_call_end(&call, none_or_error(PyErr_Occurred() ? -1 : 0));
}

/* savepoint(): a handle */
static int savepoint(lua_State *lua)
{
    lua_settop(lua, 0);
    int place = lua_push_handle(lua);
    LuaCall call = lua_call_begin(lua);
    PyObject *set = is_attached() ? PyObject_CallMethod(lua_attached.box, "savepoint", NULL) : NULL;
    if (!set)
        return lua_call_end(&call, NULL);
    lua_set_handle(lua, place, set);
    lua_call_end(&call, Py_NewRef(Py_None));
    return 1;
}

/* rollback_to_savepoint(handle) */
static int rollback_to_savepoint(lua_State *lua)
{
    LuaCall call = lua_call_begin(lua);
    PyObject *set = lua_handle(lua, 1), *done = NULL;
    if (!set)
        PyErr_SetString(PyExc_TypeError, "the handle of a savepoint is needed");
    else if (is_attached())
        done = PyObject_CallMethod(lua_attached.box, "rollback_to_savepoint", "O", set);
    return lua_call_end(&call, done);
}

/* is_in_txn() */
static int is_in_txn(lua_State *lua)
{
    lua_pushboolean(lua, lua_attached.manager && lua_attached.manager->engine.running);
    return 1;
}

/* schema_version() */
static int schema_version_of(lua_State *lua)
{
    LuaCall call = lua_call_begin(lua);
    PyObject *catalog = is_attached() ? PyObject_GetAttrString(lua_attached.box, "catalog") : NULL;
    PyObject *version = catalog ? PyObject_GetAttrString(catalog, "schema_version") : NULL;
    Py_XDECREF(catalog);
    return lua_call_end(&call, version);
}

/* -- sessions -- */

/* The number of a session. */
static double id_of(const SessionObject *session)
{
    double id = session && session->id ? PyLong_AsDouble(session->id) : 0;
    PyErr_Clear();
    return id;
}

/* session_id() */
static int session_id(lua_State *lua)
{
    LuaCall call = lua_call_begin(lua);
    double id = lua_attached.sessions ? id_of((SessionObject *)lua_attached.sessions->current) : 0;
    lua_call_end(&call, Py_NewRef(Py_None));
    lua_pushnumber(lua, id);
    return 1;
}

/* The open session of a number; the current one if there is none. The reference is borrowed. */
static SessionObject *numbered(double id)
{
    PyObject *current = lua_attached.sessions->current;
    PyObject *open = PyObject_GetAttrString((PyObject *)lua_attached.sessions, "sessions");
    PyObject *number = open && PyDict_Check(open) ? PyLong_FromDouble(id) : NULL;
    PyObject *found = number ? PyDict_GetItemWithError(open, number) : NULL;
    Py_XDECREF(number);
    Py_XDECREF(open); /* the sessions keep it */
    PyErr_Clear();
    return (SessionObject *)(found ? found : current);
}

/* session([id]): a handle of the current session, or of the one of a number, with its user and its request, and its number */
static int session(lua_State *lua)
{
    double id_given = lua_type(lua, 1) == LUA_TNUMBER ? lua_tonumber(lua, 1) : 0;
    lua_settop(lua, 0);
    int place = lua_push_handle(lua);
    LuaCall call = lua_call_begin(lua);
    SessionObject *current = lua_attached.sessions ? (SessionObject *)lua_attached.sessions->current : NULL;
    if (current && id_given > 0)
        current = numbered(id_given);
    PyObject *state = current ? Py_BuildValue("OOK", current, current->credentials, current->sync) : NULL;
    if (!state)
        return lua_call_end(&call, current ? NULL : Py_NewRef(Py_None));
    double id = id_of(current);
    lua_set_handle(lua, place, state);
    lua_call_end(&call, Py_NewRef(Py_None));
    lua_pushnumber(lua, id);
    return 2;
}

static void use(PyObject *state)
{
    SessionObject *session = (SessionObject *)PyTuple_GET_ITEM(state, 0);
    Py_XSETREF(session->credentials, Py_NewRef(PyTuple_GET_ITEM(state, 1)));
    session->sync = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(state, 2));
    Py_XSETREF(lua_attached.sessions->current, Py_NewRef((PyObject *)session));
}

/* use_session(handle): the one that a handle has */
static int use_session(lua_State *lua)
{
    LuaCall call = lua_call_begin(lua);
    PyObject *state = lua_handle(lua, 1);
    if (state && PyTuple_CheckExact(state) && lua_attached.sessions)
        use(state);
    return lua_call_end(&call, Py_NewRef(Py_None));
}

/* leave_session(): the session of the server's own work; the user of the other one is again that of its login */
static int leave_session(lua_State *lua)
{
    LuaCall call = lua_call_begin(lua);
    SessionsObject *sessions = lua_attached.sessions;
    SessionObject *current = sessions ? (SessionObject *)sessions->current : NULL;
    PyObject *user = current ? PyObject_GetAttrString((PyObject *)current, "user") : NULL;
    if (user)
        Py_XSETREF(current->credentials, user);
    if (current)
        Py_XSETREF(sessions->current, Py_NewRef(sessions->background));
    return lua_call_end(&call, none_or_error(PyErr_Occurred() ? -1 : 0));
}

/* -- rare functions -- */

/* ask(name, arguments …): what a function of `box` in Python returns */
static int ask(lua_State *lua)
{
    int count = lua_gettop(lua);
    LuaCall call = lua_call_begin(lua);
    PyObject *name = lua_to_python(lua, 1), *arguments = name ? PyList_New(count - 1) : NULL, *result = NULL;
    for (int place = 2; arguments && place <= count; place++) {
        PyObject *value = lua_to_python(lua, place);
        if (value)
            PyList_SET_ITEM(arguments, place - 2, value);
        else
            Py_CLEAR(arguments);
    }
    if (arguments && is_attached())
        result = PyObject_CallFunctionObjArgs(lua_attached.ask, name, arguments, NULL);
    Py_XDECREF(name);
    Py_XDECREF(arguments);
    return lua_call_end(&call, result);
}

const LuaFunction lua_transaction_functions[] = {
    {"begin", begin}, {"commit", commit}, {"rollback", rollback}, {"savepoint", savepoint},
    {"rollback_to_savepoint", rollback_to_savepoint}, {"is_in_txn", is_in_txn},
    {"schema_version", schema_version_of}, {"session", session}, {"session_id", session_id}, {"use_session", use_session},
    {"leave_session", leave_session}, {"ask", ask}, {NULL, NULL},
};
