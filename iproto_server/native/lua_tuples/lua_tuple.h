/* Tuples as values of Lua, for the files about them. */
#ifndef IPROTO_SERVER_LUA_TUPLE_H
#define IPROTO_SERVER_LUA_TUPLE_H

#include "../native.h"

/* `struct tuple` of prelude.lua */
typedef struct {
    uint32_t size, format;
    uint8_t row[];
} LuaTuple;

/* lua_tuple.c */
const LuaTuple *tuple_at(lua_State *lua, int place); /* NULL if there is none */
const LuaTuple *tuple_check(lua_State *lua, int place); /* raises an error then */
uint32_t tuple_count(const LuaTuple *tuple); /* of fields */
Position tuple_skip(Position at, Position end, uint32_t count); /* some values that are there */
Position tuple_field(const LuaTuple *tuple, double number); /* from 1; NULL if there is none */

/* lua_tuple_path.c: the value at the path at a place of the stack; NULL if there is none, or it is a single name */
Position tuple_path(lua_State *lua, const LuaTuple *tuple, int place);

/* lua_tuple_parts.c, lua_tuple_update.c: functions of Lua */
int tuple_table(lua_State *lua);
int tuple_map(lua_State *lua);
int tuple_slice(lua_State *lua);
int tuple_transform_fields(lua_State *lua);
int tuple_update(lua_State *lua);

#endif
