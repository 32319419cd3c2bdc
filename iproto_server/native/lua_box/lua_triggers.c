/* Triggers of spaces that are functions of Lua: they get rows without Tuples of Python. */
#include "../native.h"

typedef struct {
    int reference;
    uint32_t format;
    const RowRef *old, *row;
    const char *name, *operation;
    size_t name_size;
} Notice;

static void push_row(lua_State *lua, const RowRef *row, uint32_t format)
{
    if (row->data)
        lua_push_row(lua, row->data, row->size, format);
    else
        lua_pushnil(lua);
}

int lua_trigger(lua_State *lua)
{
    const Notice *notice = lua_touserdata(lua, 1);
    lua_rawgeti(lua, LUA_REGISTRYINDEX, notice->reference);
    push_row(lua, notice->old, notice->format);
    push_row(lua, notice->row, notice->format);
    lua_pushlstring(lua, notice->name, notice->name_size);
    lua_pushlstring(lua, notice->operation, strlen(notice->operation));
    lua_memory_limit(1);
    lua_call(lua, 4, 0);
    lua_memory_limit(0);
    return 0;
}

int lua_notify(PyObject *trigger, SpaceObject *space, const RowRef *old, const RowRef *row, const char *operation)
{
    static PyObject *name_of;
    lua_State *lua = lua_running();
    if (!lua)
        PyErr_SetString(PyExc_RuntimeError, "Lua has ended");
    if (!lua || (!name_of && !(name_of = PyUnicode_InternFromString("name"))) || lua_check_depth() < 0)
        return -1;
    Py_ssize_t size;
    PyObject *name = PyObject_GetAttr((PyObject *)space, name_of);
    const char *text = name ? PyUnicode_AsUTF8AndSize(name, &size) : NULL;
    int done = -1;
    if (text) {
        Notice notice = {lua_function_reference(trigger), lua_format(lua, space->format), old, row, text, operation,
                         (size_t)size};
        done = lua_run_protected(lua, lua_box_values.trigger, &notice);
    }
    Py_XDECREF(name);
    return done;
}
