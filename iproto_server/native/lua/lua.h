/* LuaJIT's values as MessagePack and back. */
#ifndef IPROTO_SERVER_LUA_H
#define IPROTO_SERVER_LUA_H

#include "../values/values.h"
#include "lua_api.h"

/* What Lua code has given to compiled code: references of the registry. */
typedef struct {
    int null;               /* box.NULL */
    int new_int64, new_uint64;
    int encode_other;       /* packs a cdata of another type: returns a string, or nil if it cannot */
    int decode_extension;   /* the value of a packed extension */
    int array_mt, map_mt;   /* metatables of decoded tables */
    int serialize;          /* the text `__serialize` */
    uint16_t int64_type, uint64_type, pointer_type; /* numbers of cdata's types */
} LuaValues;
extern LuaValues lua_values;

/* How tables are packed. Source: `msgpack.cfg` */
typedef struct {
    int sparse_ratio, sparse_safe, max_depth;
    char sparse_convert, deep_as_nil, invalid_as_nil, invalid_numbers, load_metatables, use_tostring;
} LuaEncoding;

/* Why a value cannot be packed: a text, or an error of Lua code, a reference of the registry. */
typedef struct {
    const char *text;
    int raised;
} LuaFailure;

/* lua_encode.c: append the value at a place of the stack, which is counted from its bottom. Returns 1; 0 with the failure.
 * The stack is as it was. Functions of `__serialize` are called. It needs the interpreter's lock. */
int lua_encode(lua_State *lua, Buffer *buffer, int place, const LuaEncoding *encoding, LuaFailure *failure);
uint16_t lua_cdata_type(const void *payload);

/* lua_decode.c: push the value at `at`, which is well-formed, and return the position behind it. It may raise an error of
 * Lua, as of a lack of memory. */
Position lua_decode(lua_State *lua, Position at, Position end);


/* lua_module.c: the functions for Lua code, and `load_lua(path)`, which finds LuaJIT's functions in lupa's module */
__attribute__((visibility("default"))) int luaopen_iproto(lua_State *lua);
PyObject *native_load_lua(PyObject *module, PyObject *path);

#endif
