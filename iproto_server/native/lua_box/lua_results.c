/* What Lua code returns, for Python. */
#include "../native.h"

static PyObject *raw_value(lua_State *lua, int place)
{
    Buffer buffer;
    buffer_init(&buffer);
    PyObject *raw = lua_pack_value(lua, place, &buffer) == 0 ? new_raw(buffer.data, buffer.data + buffer.size) : NULL;
    buffer_free(&buffer);
    return raw;
}

PyObject *lua_results(lua_State *lua, int place)
{
    int count = lua_gettop(lua) - place + 1;
    if (count <= 0)
        return Py_NewRef(Py_None);
    if (count == 1)
        return raw_value(lua, place);
    PyObject *values = PyTuple_New(count);
    for (int number = 0; values && number < count; number++) {
        PyObject *raw = raw_value(lua, place + number);
        if (raw)
            PyTuple_SET_ITEM(values, number, raw);
        else
            Py_CLEAR(values);
    }
    return values;
}

static PyObject *text_at(lua_State *lua, int place)
{
    size_t size = 0;
    const char *text = lua_type(lua, place) == LUA_TSTRING ? lua_tolstring(lua, place, &size) : NULL;
    return text ? PyUnicode_DecodeUTF8(text, (Py_ssize_t)size, "surrogateescape") : Py_NewRef(Py_None);
}

void lua_raise_error(int code, PyObject *message, PyObject *kind)
{
    PyObject *module = PyImport_ImportModule("iproto_server.errors");
    PyObject *type = module ? PyObject_GetAttrString(module, "BoxError") : NULL;
    PyObject *make = type ? PyObject_GetAttrString(type, "with_message") : NULL;
    PyObject *args = make ? Py_BuildValue("(iO)", code, message) : NULL;
    PyObject *named = args ? Py_BuildValue("{sO}", "type", kind ? kind : Py_None) : NULL;
    PyObject *error = named ? PyObject_Call(make, args, named) : NULL;
    if (error)
        PyErr_SetObject(type, error);
    Py_XDECREF(module);
    Py_XDECREF(type);
    Py_XDECREF(make);
    Py_XDECREF(args);
    Py_XDECREF(named);
    Py_XDECREF(error);
}

/* Raise the error that MessagePack at a place describes. Returns 0 without a description; -1 with the exception. */
static int raise_packed(lua_State *lua, int place)
{
    size_t size = 0;
    const char *packed = lua_type(lua, place) == LUA_TSTRING ? lua_tolstring(lua, place, &size) : NULL;
    if (!packed)
        return 0;
    PyObject *module = PyImport_ImportModule("iproto_server.codec.extensions");
    PyObject *error = module ? PyObject_CallMethod(module, "error_from_packed_stack", "y#", packed, (Py_ssize_t)size) : NULL;
    Py_XDECREF(module);
    if (!error)
        return -1;
    int is_error = PyExceptionInstance_Check(error);
    if (is_error)
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_DECREF(error);
    return is_error ? -1 : 0;
}

void lua_raise_described(lua_State *lua, int place)
{
    if (raise_packed(lua, place + 3) < 0)
        return;
    PyObject *message = text_at(lua, place + 1), *kind = message ? text_at(lua, place + 2) : NULL;
    if (kind)
        lua_raise_error((int)lua_tonumber(lua, place), message, kind);
    Py_XDECREF(message);
    Py_XDECREF(kind);
}
