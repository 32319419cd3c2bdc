/* LuaJIT's values as MessagePack and back. */
#ifndef IPROTO_SERVER_LUA_H
#define IPROTO_SERVER_LUA_H

#include "../values/values.h"
#include "lua_api.h"
#include "lua_limits.h"

/* What Lua code has given to compiled code: keys of the registry, the same in all states, where those of `luaL_ref` are
 * positive. */
enum { LUA_RECENT_ROWS = 8 };
enum {
    LUA_KEPT_FIRST = -100,
    LUA_KEPT_NULL = LUA_KEPT_FIRST,  /* box.NULL */
    LUA_KEPT_INT64, LUA_KEPT_UINT64, LUA_KEPT_TEXT, LUA_KEPT_CONST_TEXT, /* types; those of texts are `char *` */
    LUA_KEPT_ENCODE_OTHER,           /* packs a value that compiled code cannot, see internal/msgpack/extensions.lua */
    LUA_KEPT_DECODE_EXTENSION,       /* the value of a packed extension */
    LUA_KEPT_ARRAY_MT, LUA_KEPT_MAP_MT, /* metatables of decoded tables */
    LUA_KEPT_SERIALIZE,              /* the text `__serialize` */
    LUA_KEPT_TUPLE,                  /* the type of tuples */
    LUA_KEPT_TUPLE_METHODS,
    LUA_KEPT_FORMATS, LUA_KEPT_NAME_LISTS, LUA_KEPT_NAMES, /* by the number of a format: see internal/native.lua */
    LUA_KEPT_ENCODING,               /* two LuaEncodings as cdata: of the module msgpack, and of rows */
    LUA_KEPT_TUPLE_ENCODING,
    LUA_KEPT_NEW_ERROR,              /* makes a box.error of a code, a message and the name of a type */
    LUA_KEPT_PUSH_PACKED, LUA_KEPT_ENCODE_PROTECTED, /* functions of compiled code */
    LUA_KEPT_ROWS,                   /* tuples that were pushed of late, at this key and behind it */
};
static inline void lua_push_kept(lua_State *lua, int key)
{
    lua_rawgeti(lua, LUA_REGISTRYINDEX, key);
}

/* Numbers of cdata's types, the same in all states. */
typedef struct {
    uint16_t int64, uint64, single, real, pointer, text, const_text, tuple, encoding;
} LuaTypes;
extern LuaTypes lua_types;
uint16_t lua_cdata_type(const void *payload); /* lua_module.c: the number of a cdata's type */

/* How tables are packed, and unpacked: `struct msgpack_options` in internal/native.lua. Source: `msgpack.cfg` */
typedef struct {
    int32_t sparse_ratio, sparse_safe, max_depth; /* a negative sparse_safe is none */
    uint8_t sparse_convert, deep_as_nil, invalid_as_nil, invalid_numbers, load_metatables, use_tostring;
    uint8_t save_metatables;
    uint8_t in_order; /* for lua_decode_ordered */
} LuaEncoding;

/* Why a value cannot be packed. */
typedef struct {
    enum {
        LUA_FAILURE_TEXT,    /* an error with a text, and the position of the code that has called the function */
        LUA_FAILURE_LUAJIT,  /* a box.error of the type LuajitError */
        LUA_FAILURE_CLIENT,  /* a box.error with a code */
        LUA_FAILURE_RAISED,  /* an error of Lua code, which is on top of the stack */
    } kind;
    int code;
    char text[512];
} LuaFailure;

/* lua_encode.c: append values at places of the stack, which are counted from its bottom. These return 1; 0 with the
 * failure. The stack is as it was, but for what is LUA_FAILURE_RAISED. Functions of `__serialize` are called. They need
 * the interpreter's lock. */
int lua_encode(lua_State *lua, Buffer *buffer, int place, const LuaEncoding *encoding, LuaFailure *failure);
/* An array, or a table or tuple that is one. */
int lua_encode_row(lua_State *lua, Buffer *buffer, int place, const LuaEncoding *encoding, LuaFailure *failure);
/* The values from a place on as one array. */
int lua_encode_values(lua_State *lua, Buffer *buffer, int place, int count, const LuaEncoding *encoding,
                      LuaFailure *failure);
int lua_encode_protected(lua_State *lua); /* for LUA_KEPT_ENCODE_PROTECTED */

/* lua_packing.c: a buffer that Lua code gets, with the interpreter's lock, which is held between beginning and end */
typedef struct {
    Buffer buffer;
    PyGILState_STATE lock;
    int is_memory_limited;
} LuaPacking;
void lua_packing_begin(LuaPacking *packing);
/* End: call a function that pushes one value of the buffer's bytes, and which may raise an error of Lua. Returns 1. */
int lua_packing_push(lua_State *lua, LuaPacking *packing, void (*push)(lua_State *, const void *, size_t));
/* End: raise the failure as an error of Lua. */
int lua_packing_raise(lua_State *lua, LuaPacking *packing, const LuaFailure *failure);
int lua_push_packed(lua_State *lua); /* for LUA_KEPT_PUSH_PACKED */
int lua_raise_text(lua_State *lua, const char *text); /* behind the position of the code that called the function */
void lua_make_text(lua_State *lua); /* of the error on top of the stack, such as one of box */
int lua_raise_failure(lua_State *lua, const LuaFailure *failure);

/* ../lua_tuples/lua_recent.c: how the module msgpack packs, and how rows of tuples are packed: however sparse they are */
const LuaEncoding *lua_msgpack_encoding(lua_State *lua);
const LuaEncoding *lua_tuple_encoding(lua_State *lua);
/* As lua_push_tuple; a row of the database that was pushed of late is the same tuple. */
void lua_push_row(lua_State *lua, const void *row, size_t size, uint32_t format);
void lua_forget_recent(void); /* a new state begins */

/* lua_decode.c: push the value at `at`, which is well-formed, and return the position behind it. They may raise an
 * error of Lua, as of a lack of memory. */
Position lua_decode(lua_State *lua, Position at, Position end);
Position lua_decode_with(lua_State *lua, Position at, Position end, const LuaEncoding *encoding);
/* The same with maps as tables of their keys and values, one behind the other, and extensions as nil. */
Position lua_decode_ordered(lua_State *lua, Position at, Position end);

/* lua_msgpack.c: a table of the functions of the module with some options */
int lua_msgpack_functions(lua_State *lua);

/* ../lua_tuples/lua_tuple.c */
typedef struct {
    const char *name;
    lua_CFunction function;
} LuaFunction;
extern const LuaFunction lua_tuple_functions[]; /* up to a NULL */
/* Push a tuple with a row, a packed array, and with the number of the format that names its fields, or 0. It may raise
 * an error of Lua, as of a lack of memory. */
void lua_push_tuple(lua_State *lua, const void *row, size_t size, uint32_t format);
/* The row of the tuple at a place of the stack, as long as that is there; NULL if there is no tuple. */
const uint8_t *lua_tuple_data(lua_State *lua, int place, size_t *size);

/* lua_module.c: the functions for Lua code, and `load_lua(path)`, which finds LuaJIT's functions in lupa's module */
__attribute__((visibility("default"))) int luaopen_iproto(lua_State *lua);
PyObject *native_load_lua(PyObject *module, PyObject *path);

#endif
