/* The functions of compiled code that modules of Lua call: `package.loadlib(path, 'luaopen_iproto')()` is a table of them. */
#include "../native.h"

LuaValues lua_values;

/* -- errors -- */

/* Raise an error with a text, after the position of the code that has called the function. */
static int raise_text(lua_State *lua, const char *text)
{
    luaL_where(lua, 1);
    lua_pushlstring(lua, text, strlen(text));
    lua_concat(lua, 2);
    return lua_error(lua);
}

static int raise_failure(lua_State *lua, const LuaFailure *failure)
{
    if (failure->text)
        return raise_text(lua, failure->text);
    lua_rawgeti(lua, LUA_REGISTRYINDEX, failure->raised);
    luaL_unref(lua, LUA_REGISTRYINDEX, failure->raised);
    return lua_error(lua);
}

/* -- options -- */

static int int_option(lua_State *lua, int table, const char *name)
{
    lua_getfield(lua, table, name);
    double value = lua_tonumber(lua, -1);
    lua_settop(lua, -2);
    return value > 0 ? (int)value : 0;
}

static char flag_option(lua_State *lua, int table, const char *name)
{
    lua_getfield(lua, table, name);
    int value = lua_toboolean(lua, -1);
    lua_settop(lua, -2);
    return (char)value;
}

static LuaEncoding read_encoding(lua_State *lua, int table)
{
    return (LuaEncoding){
        .sparse_ratio = int_option(lua, table, "encode_sparse_ratio"),
        .sparse_safe = int_option(lua, table, "encode_sparse_safe"),
        .max_depth = int_option(lua, table, "encode_max_depth"),
        .sparse_convert = flag_option(lua, table, "encode_sparse_convert"),
        .deep_as_nil = flag_option(lua, table, "encode_deep_as_nil"),
        .invalid_as_nil = flag_option(lua, table, "encode_invalid_as_nil"),
        .invalid_numbers = flag_option(lua, table, "encode_invalid_numbers"),
        .load_metatables = flag_option(lua, table, "encode_load_metatables"),
        .use_tostring = flag_option(lua, table, "encode_use_tostring"),
    };
}

/* -- functions -- */

/* encode(options, value …): the packed values, one behind the other */
static int encode_values(lua_State *lua)
{
    LuaEncoding encoding = read_encoding(lua, 1);
    LuaFailure failure;
    Buffer buffer;
    int count = lua_gettop(lua), done = 1;
    PyGILState_STATE lock = PyGILState_Ensure();
    buffer_init(&buffer);
    for (int place = 2; done && place <= count; place++)
        done = lua_encode(lua, &buffer, place, &encoding, &failure);
    PyObject *packed = done ? buffer_take(&buffer) : NULL;
    buffer_free(&buffer);
    PyErr_Clear();
    if (packed) /* a lack of memory leaves the bytes behind */
        lua_pushlstring(lua, PyBytes_AS_STRING(packed), (size_t)PyBytes_GET_SIZE(packed));
    Py_XDECREF(packed);
    PyGILState_Release(lock);
    if (packed)
        return 1;
    return done ? raise_text(lua, "not enough memory") : raise_failure(lua, &failure);
}

/* decode(text, position): the value at a position, and that behind it; nothing if there is no well-formed value */
static int decode_value(lua_State *lua)
{
    size_t size;
    const char *text = lua_tolstring(lua, 1, &size);
    double from = lua_tonumber(lua, 2);
    if (!text || !(from >= 1 && from <= (double)size))
        return 0;
    Position start = (Position)text, at = start + (size_t)from - 1, end = start + size;
    end = msgpack_skip_within(at, end, MSGPACK_DEPTH_MAX);
    if (!end)
        return 0;
    lua_settop(lua, 1);
    lua_decode(lua, at, end);
    lua_pushnumber(lua, (double)(end - start) + 1);
    return 2;
}

static int keep(lua_State *lua, const char *name)
{
    lua_getfield(lua, 1, name);
    return luaL_ref(lua, LUA_REGISTRYINDEX);
}

static uint16_t type_of(lua_State *lua, const char *name)
{
    lua_getfield(lua, 1, name);
    const void *payload = lua_type(lua, -1) == LUA_TCDATA ? lua_topointer(lua, -1) : NULL;
    lua_settop(lua, -2);
    return payload ? lua_cdata_type(payload) : 0;
}

/* Whether an integer has its type and its value where compiled code looks for them. */
static int is_laid_out(lua_State *lua, const char *name, const char *other, uint64_t value)
{
    uint64_t found = 0;
    lua_getfield(lua, 1, name);
    if (lua_type(lua, -1) == LUA_TCDATA)
        memcpy(&found, lua_topointer(lua, -1), sizeof found);
    lua_settop(lua, -2);
    return found == value && type_of(lua, name) != type_of(lua, other);
}

/* setup(values): what compiled code has to know; `int64` and `uint64` are -5LL and 5ULL. Returns whether it understands
 * the objects of this LuaJIT. */
static int set_up(lua_State *lua)
{
    lua_values = (LuaValues){
        .null = keep(lua, "null"),
        .new_int64 = keep(lua, "new_int64"),
        .new_uint64 = keep(lua, "new_uint64"),
        .encode_other = keep(lua, "encode_other"),
        .decode_extension = keep(lua, "decode_extension"),
        .array_mt = keep(lua, "array_mt"),
        .map_mt = keep(lua, "map_mt"),
        .int64_type = type_of(lua, "int64"),
        .uint64_type = type_of(lua, "uint64"),
        .pointer_type = type_of(lua, "null"),
    };
    lua_pushlstring(lua, "__serialize", 11);
    lua_values.serialize = luaL_ref(lua, LUA_REGISTRYINDEX);
    lua_pushboolean(lua, is_laid_out(lua, "int64", "uint64", (uint64_t)-5) && is_laid_out(lua, "uint64", "null", 5));
    return 1;
}

/* -- the module -- */

static const struct {
    const char *name;
    lua_CFunction function;
} functions[] = {
    {"encode", encode_values},
    {"decode", decode_value},
    {"setup", set_up},
};

int luaopen_iproto(lua_State *lua)
{
    lua_createtable(lua, 0, sizeof functions / sizeof *functions);
    for (size_t place = 0; place < sizeof functions / sizeof *functions; place++) {
        lua_pushcclosure(lua, functions[place].function, 0);
        lua_setfield(lua, -2, functions[place].name);
    }
    return 1;
}

PyObject *native_load_lua(PyObject *module, PyObject *path)
{
    const char *text = PyUnicode_AsUTF8(path), *missing = text ? lua_api_load(text) : NULL;
    if (missing)
        PyErr_Format(PyExc_OSError, "%s has no function %s", text, missing);
    if (!text || missing)
        return NULL;
    Py_RETURN_NONE;
}
