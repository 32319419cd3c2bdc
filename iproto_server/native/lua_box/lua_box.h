/* The database for Lua code.
 *
 * Functions of Lua run without the interpreter's lock. Those here take it for what they do with Python's objects, and release
 * it before they push a result or raise an error: both may leave by an error of Lua, as of a lack of memory.
 */
#ifndef IPROTO_SERVER_LUA_BOX_H
#define IPROTO_SERVER_LUA_BOX_H

#include "../facade/facade.h"
#include "../lua/lua.h"

/* lua_python.c: values. A new reference; NULL with an exception. Strings that are no UTF-8 have surrogates. */
PyObject *lua_to_python(lua_State *lua, int place);
/* Pack a key: a table or a tuple of values; a single value; an empty key of nil. Returns 0; -1 with an exception. */
int lua_pack_key(lua_State *lua, int place, Buffer *buffer);
/* The same of a table, or a tuple; an exception also for what is none of them. */
int lua_pack(lua_State *lua, int place, Buffer *buffer);
int lua_pack_value(lua_State *lua, int place, Buffer *buffer); /* any value */

/* lua_attached.c: what Lua code is attached to. The pointers are NULL without a box. */
typedef struct {
    PyObject *box;
    ManagerObject *manager;
    SessionsObject *sessions;
    PyObject *ask;      /* ask(name, arguments): a rare function of `box`; returns its results */
    PyObject *finished; /* finished(number, result, error): a call that has waited */
} LuaAttached;
extern LuaAttached lua_attached;
/* What Lua code has given to these functions: references of the registry. */
typedef struct {
    int invoke;        /* `lua_invoke` */
    int trigger;       /* `lua_trigger` */
    int define_format; /* define_format(number, names) */
    int enter;         /* enter(name, arguments …): 1 and results; 2, what describe_error returns; or 0 and a number */
    int describe_error; /* describe_error(value): a code, a message, a type, MessagePack */
    int new_error;     /* new_error(code, message, type, fields): the object of an error */
    int function_numbers; /* a table: functions that Python has, and their numbers */
} LuaBoxValues;
extern LuaBoxValues lua_box_values;
lua_State *lua_running(void); /* the innermost state; the main one outside of Lua; NULL without LuaJIT */
lua_State *lua_innermost(void); /* that of the innermost call of these functions; NULL outside of them */
PyObject *native_lua_detach(PyObject *module, PyObject *ignored);

/* lua_handles.c: objects of Python in Lua */
int lua_push_handle(lua_State *lua); /* returns the place of an empty handle, whose metatable is set */
void lua_set_handle(lua_State *lua, int place, PyObject *object); /* steals the reference */
PyObject *lua_handle(lua_State *lua, int place); /* borrowed; NULL if there is none at that place */

/* lua_outcome.c: what a function answers, kept while it is pushed */
typedef struct {
    lua_State *lua, *before;
    PyGILState_STATE lock;
    int is_memory_limited;
} LuaCall;
void lua_push_exception(lua_State *lua); /* the pending exception as an error of Lua */
void lua_push_value(lua_State *lua, PyObject *value); /* of a Tuple, a Raw, or packed bytes */
uint32_t lua_format(lua_State *lua, PyObject *format); /* its number; Lua code knows its names then */
int lua_prepare(lua_State *lua, PyObject **value); /* make it one of these; -1 with an exception */
LuaCall lua_call_begin(lua_State *lua);
int lua_check_depth(void); /* -1 with an exception: Lua and Python have called each other too often */
/* Push a result of Python, whose reference is stolen, or raise the exception. None is no value, a tuple several ones. They
 * return the number of values. */
int lua_call_end(const LuaCall *call, PyObject *result);
/* The same of rows, which are freed: one row, or no value for none; all of them as a table. `done` below 0 is an exception. */
int lua_call_end_row(const LuaCall *call, int done, PackedRows *rows);
int lua_call_end_rows(const LuaCall *call, int done, PackedRows *rows);

/* lua_functions.c: functions of Lua for Python. A new reference; NULL with an exception. The same object for the same one. */
extern PyTypeObject LuaFunction_Type, LuaProcedure_Type; /* the latter: lua_procedure.c */
PyObject *lua_function_object(lua_State *lua, int place);
int lua_function_reference(PyObject *function); /* of the registry */
void lua_push_function(lua_State *lua, PyObject *function);
/* Call the C function of a reference with a pointer, in protected mode and as a run of Lua code: code of users that it calls
 * gets the limit of memory by lua_memory_limit(1). Returns 0; -1 with an exception. */
int lua_run_protected(lua_State *lua, int reference, const void *argument);
int lua_invoke(lua_State *lua);
/* Call the function `enter` of LuaBoxValues: the results of a call; a number if it waits; NULL with an exception. The first
 * argument is the name, whose reference is kept in `name`, at first 0. */
PyObject *lua_enter(int *name, PyObject *const *args, Py_ssize_t count);

/* lua_triggers.c: call a function of Lua that is a trigger; -1 with an exception */
int lua_notify(PyObject *trigger, SpaceObject *space, const RowRef *old, const RowRef *row, const char *operation);
int lua_trigger(lua_State *lua);

/* lua_results.c: the values of Lua from a place of the stack on, as a procedure returns them */
PyObject *lua_results(lua_State *lua, int place);
/* Raise a BoxError with a message; `kind` is the name of its class in Tarantool, or NULL. */
enum { PROC_LUA = 32 };
void lua_raise_error(int code, PyObject *message, PyObject *kind);
/* The same of an error: the code, the message, the type and its description in MessagePack, or nil, are at a place and behind
 * it. */
void lua_raise_described(lua_State *lua, int place);
void lua_raise_top(lua_State *lua); /* lua_functions.c: of the error at the top of the stack, which is removed */

/* lua_rows.c, lua_transactions.c, lua_entry.c: functions of Lua */
extern const LuaFunction lua_row_functions[], lua_transaction_functions[], lua_entry_functions[];

/* lua_entry.c: from Python to Lua */
FUNCTION(native_lua_attach);
__attribute__((visibility("default"))) int luaopen_iproto_box(lua_State *lua);

#endif
