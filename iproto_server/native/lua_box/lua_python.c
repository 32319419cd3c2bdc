/* Values of Lua as Python's. */
#include "../native.h"

/* Raise what is wrong, as an exception. Returns -1. */
static int raise_failure(lua_State *lua, const LuaFailure *failure)
{
    if (failure->kind == LUA_FAILURE_RAISED) { /* the error is at the top of the stack */
        lua_raise_top(lua);
        return -1;
    }
    PyObject *message = PyUnicode_DecodeUTF8(failure->text, (Py_ssize_t)strlen(failure->text), "surrogateescape");
    if (message)
        lua_raise_error(failure->kind == LUA_FAILURE_CLIENT ? failure->code : PROC_LUA, message, NULL);
    Py_XDECREF(message);
    return -1;
}

int lua_pack_value(lua_State *lua, int place, Buffer *buffer)
{
    LuaFailure failure;
    if (lua_check_depth() < 0)
        return -1;
    return lua_encode(lua, buffer, place, lua_msgpack_encoding(lua), &failure) ? 0 : raise_failure(lua, &failure);
}

int lua_pack(lua_State *lua, int place, Buffer *buffer)
{
    LuaFailure failure;
    if (lua_check_depth() < 0)
        return -1;
    return lua_encode_row(lua, buffer, place, lua_tuple_encoding(lua), &failure) ? 0 : raise_failure(lua, &failure);
}

/* A value that has to be packed first. */
static PyObject *packed_value(lua_State *lua, int place)
{
    Buffer buffer;
    buffer_init(&buffer);
    PyObject *value = NULL;
    if (lua_pack_value(lua, place, &buffer) == 0) {
        Position at = buffer.data;
        value = read_value(&at, buffer.data + buffer.size, 0);
        if (!value && !PyErr_Occurred())
            raise_box_error("INVALID_MSGPACK", "(s)", "a value of Lua");
    }
    buffer_free(&buffer);
    return value;
}

static PyObject *number_value(double number)
{
    if (number == (double)(long long)number && number > -9007199254740993.0 && number < 9007199254740993.0)
        return PyLong_FromLongLong((long long)number);
    return NULL;
}

PyObject *lua_to_python(lua_State *lua, int place)
{
    size_t size;
    const char *text;
    PyObject *number;
    switch (lua_type(lua, place)) {
    case LUA_TNONE: case LUA_TNIL: return Py_NewRef(Py_None);
    case LUA_TBOOLEAN: return PyBool_FromLong(lua_toboolean(lua, place));
    case LUA_TNUMBER:
        number = number_value(lua_tonumber(lua, place));
        return number || PyErr_Occurred() ? number : packed_value(lua, place);
    case LUA_TSTRING:
        text = lua_tolstring(lua, place, &size);
        return PyUnicode_DecodeUTF8(text, (Py_ssize_t)size, "surrogateescape");
    case LUA_TFUNCTION: return lua_function_object(lua, place);
    default: return packed_value(lua, place);
    }
}

static PyObject *table_key(lua_State *lua, int place)
{
    size_t count = lua_objlen(lua, place);
    PyObject *key = PyList_New((Py_ssize_t)count);
    for (size_t number = 0; key && number < count; number++) {
        lua_rawgeti(lua, place, (int)number + 1);
        PyObject *part = lua_to_python(lua, lua_gettop(lua));
        lua_settop(lua, -2);
        if (part)
            PyList_SET_ITEM(key, (Py_ssize_t)number, part);
        else
            Py_CLEAR(key);
    }
    return key;
}

PyObject *lua_to_key(lua_State *lua, int place)
{
    int type = lua_type(lua, place);
    if (type == LUA_TTABLE)
        return table_key(lua, place);
    PyObject *value = lua_to_python(lua, place);
    if (!value || PyList_CheckExact(value)) /* a tuple's fields */
        return value;
    PyObject *key = PyList_New(value != Py_None || type == LUA_TCDATA);
    if (key && PyList_GET_SIZE(key))
        PyList_SET_ITEM(key, 0, value);
    else
        Py_DECREF(value);
    return key;
}
