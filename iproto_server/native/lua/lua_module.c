/* The functions of compiled code that modules of Lua call: `package.loadlib(path, 'luaopen_iproto')()` is a table of
 * them. */
#include "../native.h"

LuaTypes lua_types;

/* -- setup -- */

/* LuaJIT's GC64 objects have the number six bytes in front of what they hold, which set_up() checks with integers. */
uint16_t lua_cdata_type(const void *payload)
{
    uint16_t type;
    memcpy(&type, (const uint8_t *)payload - 6, sizeof type);
    return type;
}

static const struct {
    const char *name;
    int key;
} kept[] = {
    {"null", LUA_KEPT_NULL},
    {"int64", LUA_KEPT_INT64},
    {"uint64", LUA_KEPT_UINT64},
    {"text", LUA_KEPT_TEXT},
    {"const_text", LUA_KEPT_CONST_TEXT},
    {"encode_other", LUA_KEPT_ENCODE_OTHER},
    {"decode_extension", LUA_KEPT_DECODE_EXTENSION},
    {"array_mt", LUA_KEPT_ARRAY_MT},
    {"map_mt", LUA_KEPT_MAP_MT},
    {"serialize", LUA_KEPT_SERIALIZE},
    {"tuple", LUA_KEPT_TUPLE},
    {"tuple_methods", LUA_KEPT_TUPLE_METHODS},
    {"formats", LUA_KEPT_FORMATS},
    {"name_lists", LUA_KEPT_NAME_LISTS},
    {"names", LUA_KEPT_NAMES},
    {"encoding", LUA_KEPT_ENCODING},
    {"tuple_encoding", LUA_KEPT_TUPLE_ENCODING},
    {"new_error", LUA_KEPT_NEW_ERROR},
};

/* Keep what setup() was given. */
static void keep(lua_State *lua)
{
    lua_forget_recent();
    for (size_t place = 0; place < sizeof kept / sizeof *kept; place++) {
        lua_getfield(lua, 1, kept[place].name);
        lua_rawseti(lua, LUA_REGISTRYINDEX, kept[place].key);
    }
    lua_pushcclosure(lua, lua_push_packed, 0);
    lua_rawseti(lua, LUA_REGISTRYINDEX, LUA_KEPT_PUSH_PACKED);
    lua_pushcclosure(lua, lua_encode_protected, 0);
    lua_rawseti(lua, LUA_REGISTRYINDEX, LUA_KEPT_ENCODE_PROTECTED);
}

static uint16_t type_of(lua_State *lua, const char *name)
{
    lua_getfield(lua, 1, name);
    const void *payload = lua_type(lua, -1) == LUA_TCDATA ? lua_topointer(lua, -1) : NULL;
    lua_settop(lua, -2);
    return payload ? lua_cdata_type(payload) : 0;
}

/* Whether eight bytes of a cdata are where compiled code looks for them. */
static int has_payload(lua_State *lua, const char *name, uint64_t value)
{
    uint64_t found = 0;
    lua_getfield(lua, 1, name);
    if (lua_type(lua, -1) == LUA_TCDATA)
        memcpy(&found, lua_topointer(lua, -1), sizeof found);
    lua_settop(lua, -2);
    return found == value;
}

/* Whether the numbers of types are where compiled code looks for them, and are those of other states. */
static int know_types(const LuaTypes *types)
{
    const uint16_t *numbers = (const uint16_t *)types;
    for (size_t place = 0; place < sizeof *types / sizeof *numbers; place++)
        for (size_t other = 0; other < place; other++)
            if (!numbers[place] || numbers[place] == numbers[other])
                return 0;
    if (lua_types.int64 && memcmp(&lua_types, types, sizeof *types))
        return 0;
    lua_types = *types;
    return 1;
}

/* setup(values): what compiled code has to know; `an_int64` and `a_uint64` are -5LL and 5ULL, `a_tuple` has 3 bytes
 * that it says are 7. Returns whether compiled code understands the objects of this LuaJIT; if not, nothing
 * has changed. */
static int set_up(lua_State *lua)
{
    LuaTypes types = {
        .int64 = type_of(lua, "an_int64"),
        .uint64 = type_of(lua, "a_uint64"),
        .single = type_of(lua, "a_float"),
        .real = type_of(lua, "a_double"),
        .pointer = type_of(lua, "null"),
        .text = type_of(lua, "a_text"),
        .const_text = type_of(lua, "a_const_text"),
        .tuple = type_of(lua, "a_tuple"),
        .encoding = type_of(lua, "encoding"),
    };
    int is_known = has_payload(lua, "an_int64", (uint64_t)-5) && has_payload(lua, "a_uint64", 5)
        && has_payload(lua, "a_tuple", 7) && know_types(&types);
    if (is_known)
        keep(lua);
    lua_pushboolean(lua, is_known);
    return 1;
}

/* -- the module -- */

static const LuaFunction functions[] = {
    {"begin_fiber", lua_begin_fiber},
    {"msgpack_functions", lua_msgpack_functions},
    {"set_memory_limit", lua_set_memory_limit},
    {"set_time_limit", lua_set_time_limit},
    {"setup", set_up},
    {NULL, NULL},
};

static void add_functions(lua_State *lua, const LuaFunction *each)
{
    for (; each->name; each++) {
        lua_pushcclosure(lua, each->function, 0);
        lua_setfield(lua, -2, each->name);
    }
}

int luaopen_iproto(lua_State *lua)
{
    lua_watch(lua);
    lua_createtable(lua, 0, 16);
    add_functions(lua, functions);
    add_functions(lua, lua_tuple_functions);
    return 1;
}

PyObject *native_load_lua(PyObject *module, PyObject *path)
{
    const char *text = PyUnicode_AsUTF8(path), *missing = text ? lua_api_load(text) : NULL;
    if (missing == text && text)
        PyErr_Format(PyExc_OSError, "%s is not loaded", text);
    else if (missing)
        PyErr_Format(PyExc_OSError, "%s has no function %s", text, missing);
    if (!text || missing)
        return NULL;
    Py_RETURN_NONE;
}
