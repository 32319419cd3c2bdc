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
    return lua_encode_row(lua, buffer, place, lua_msgpack_encoding(lua), &failure) ? 0 : raise_failure(lua, &failure);
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

/* The elements of a table, up to its length: what the table says of itself does not count, and nil is a value. */
static int encode_elements(lua_State *lua, int place, Buffer *buffer, LuaFailure *failure)
{
    int count = (int)lua_objlen(lua, place), top = lua_gettop(lua);
    if (!lua_checkstack(lua, count + 8)) {
        *failure = (LuaFailure){LUA_FAILURE_TEXT, 0, "stack overflow"};
        return 0;
    }
    for (int number = 1; number <= count; number++)
        lua_rawgeti(lua, place, number);
    int done = lua_encode_values(lua, buffer, top + 1, count, lua_msgpack_encoding(lua), failure);
    if (done || failure->kind != LUA_FAILURE_RAISED)
        lua_settop(lua, top);
    return done;
}

static int is_nothing(lua_State *lua, int place)
{
    int type = lua_type(lua, place);
    if (type != LUA_TCDATA)
        return type == LUA_TNIL || type == LUA_TNONE;
    const void *payload = lua_topointer(lua, place);
    uint64_t pointer = 1;
    if (lua_cdata_type(payload) == lua_types.pointer) /* others may be shorter */
        memcpy(&pointer, payload, sizeof pointer);
    return !pointer;
}

int lua_pack_key(lua_State *lua, int place, Buffer *buffer)
{
    LuaFailure failure;
    size_t size;
    const uint8_t *row = lua_tuple_data(lua, place, &size);
    if (row)
        return buffer_append(buffer, row, (Py_ssize_t)size) == 1 ? 0 : -1;
    if (lua_check_depth() < 0)
        return -1;
    int done = lua_type(lua, place) == LUA_TTABLE ? encode_elements(lua, place, buffer, &failure)
        : lua_encode_values(lua, buffer, place, !is_nothing(lua, place), lua_msgpack_encoding(lua), &failure);
    return done ? 0 : raise_failure(lua, &failure);
}
