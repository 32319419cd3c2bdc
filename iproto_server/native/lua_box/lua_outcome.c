/* Results of Python, and its exceptions, for Lua. */
#include "../native.h"

/* What is being pushed lives until some more results, since an error of Lua may leave at any time, and since functions of Lua
 * may run meanwhile. */
enum { KEPT_RESULTS = 16 };
static PyObject *kept[KEPT_RESULTS];

static void keep(PyObject *result)
{
    static unsigned int last;
    PyObject **place = &kept[last++ % KEPT_RESULTS]; /* Py_XSETREF may evaluate its argument twice */
    Py_XSETREF(*place, result);
}

static lua_State *running; /* of the innermost call */
static int depth;          /* calls within each other */

int lua_check_depth(void)
{
    enum { DEPTH_MAX = 100 }; /* each takes several kilobytes of the stack of C */
    if (depth < DEPTH_MAX)
        return 0;
    PyErr_SetString(PyExc_RecursionError, "stack overflow");
    return -1;
}

LuaCall lua_call_begin(lua_State *lua)
{
    LuaCall call = {lua, running, PyGILState_Ensure(), lua_memory_limit(0)};
    running = lua;
    depth++;
    return call;
}

/* Let the interpreter's lock go. */
static void release(const LuaCall *call)
{
    running = call->before;
    depth--;
    lua_memory_limit(call->is_memory_limited);
    PyGILState_Release(call->lock);
}

lua_State *lua_innermost(void)
{
    return running;
}

/* -- formats of tuples -- */

/* Let Lua code know the names of a format's fields. The interpreter's lock is held, and released while Lua runs. */
static void define_format(lua_State *lua, uint32_t number, PyObject *format)
{
    PyObject *names = format_packed_names(format);
    Py_ssize_t count = names ? PyTuple_GET_SIZE(names) : 0;
    lua_rawgeti(lua, LUA_REGISTRYINDEX, lua_box_values.define_format);
    lua_pushnumber(lua, number);
    lua_createtable(lua, (int)count, 0);
    for (Py_ssize_t place = 0; place < count; place++) {
        PyObject *name = PyTuple_GET_ITEM(names, place);
        Position at = (Position)PyBytes_AS_STRING(name);
        lua_decode(lua, at, at + PyBytes_GET_SIZE(name));
        lua_rawseti(lua, -2, (int)place + 1);
    }
    if (lua_pcall(lua, 2, 0, 0))
        lua_settop(lua, -2); /* of memory: the fields of the tuple have no names then */
}

uint32_t lua_format(lua_State *lua, PyObject *format)
{
    int is_new;
    uint32_t number = format_number(format, &is_new);
    if (is_new)
        define_format(lua, number, format);
    return number;
}

/* -- values -- */

int lua_prepare(lua_State *lua, PyObject **value)
{
    if (PyObject_TypeCheck(*value, &Tuple_Type)) {
        lua_format(lua, ((TupleObject *)*value)->format);
        return 0;
    }
    if (*value == Py_None || PyObject_TypeCheck(*value, &Raw_Type) || Py_TYPE(*value) == &LuaFunction_Type)
        return 0;
    PyObject *packed = pack(*value);
    if (!packed)
        return -1;
    Py_SETREF(*value, packed);
    return 0;
}

void lua_push_value(lua_State *lua, PyObject *value)
{
    if (PyObject_TypeCheck(value, &Tuple_Type)) {
        int is_new;
        PyObject *raw = ((RawObject *)value)->raw;
        lua_push_row(lua, PyBytes_AS_STRING(raw), (size_t)PyBytes_GET_SIZE(raw),
                     format_number(((TupleObject *)value)->format, &is_new));
        return;
    }
    if (value == Py_None) {
        lua_pushnil(lua);
        return;
    }
    if (Py_TYPE(value) == &LuaFunction_Type) {
        lua_push_function(lua, value);
        return;
    }
    PyObject *raw = PyBytes_CheckExact(value) ? value : ((RawObject *)value)->raw;
    Position at = (Position)PyBytes_AS_STRING(raw);
    lua_decode(lua, at, at + PyBytes_GET_SIZE(raw));
}

/* A list of the values that can be pushed; NULL with an exception. The reference is stolen. */
static PyObject *prepared_list(const LuaCall *call, PyObject *values)
{
    PyObject *list = values ? PySequence_List(values) : NULL;
    Py_XDECREF(values);
    for (Py_ssize_t place = 0; list && place < PyList_GET_SIZE(list); place++)
        if (lua_prepare(call->lua, &((PyListObject *)list)->ob_item[place]) < 0)
            Py_CLEAR(list);
    return list;
}

/* -- errors -- */

static PyObject *attribute(PyObject *error, const char *name)
{
    PyObject *value = PyObject_GetAttrString(error, name);
    if (!value)
        PyErr_Clear();
    return value;
}

static void push_text(lua_State *lua, PyObject *text)
{
    PyObject *bytes = text && PyUnicode_Check(text) ? PyUnicode_AsEncodedString(text, "utf-8", "surrogateescape") : NULL;
    PyErr_Clear();
    if (bytes)
        lua_pushlstring(lua, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
    else
        lua_pushnil(lua);
    Py_XDECREF(bytes);
}

/* The fields that errors of a type have, as a table; nil for none. */
static void push_fields(lua_State *lua, PyObject *error)
{
    PyObject *fields = attribute(error, "fields");
    if (fields && PyDict_Check(fields) && PyDict_GET_SIZE(fields) && lua_prepare(lua, &fields) == 0)
        lua_push_value(lua, fields);
    else
        lua_pushnil(lua);
    PyErr_Clear();
    Py_XDECREF(fields);
}

void lua_push_exception(lua_State *lua)
{
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    PyErr_NormalizeException(&type, &error, &traceback);
    PyObject *code = error ? attribute(error, "code") : NULL, *kind = code ? attribute(error, "type") : NULL;
    PyObject *message = code ? attribute(error, "message") : error ? PyObject_Str(error) : NULL;
    lua_rawgeti(lua, LUA_REGISTRYINDEX, lua_box_values.new_error);
    lua_pushnumber(lua, code && PyLong_Check(code) ? (double)PyLong_AsLong(code) : PROC_LUA);
    push_text(lua, message);
    push_text(lua, kind);
    if (code)
        push_fields(lua, error);
    else
        lua_pushnil(lua);
    Py_XDECREF(code);
    Py_XDECREF(kind);
    Py_XDECREF(message);
    Py_XDECREF(type);
    Py_XDECREF(error);
    Py_XDECREF(traceback);
    PyErr_Clear();
    lua_pcall(lua, 4, 1, 0); /* an error is pushed as well as a result */
}

/* -- the end of a call -- */

static int raise(const LuaCall *call)
{
    lua_push_exception(call->lua);
    release(call);
    return lua_error(call->lua);
}

static int end_values(const LuaCall *call, PyObject *values)
{
    PyObject *list = prepared_list(call, values);
    if (!list)
        return raise(call);
    keep(list);
    release(call);
    Py_ssize_t count = PyList_GET_SIZE(list);
    lua_checkstack(call->lua, (int)count + 8);
    for (Py_ssize_t place = 0; place < count; place++)
        lua_push_value(call->lua, PyList_GET_ITEM(list, place));
    return (int)count;
}

int lua_call_end(const LuaCall *call, PyObject *result)
{
    if (!result)
        return raise(call);
    if (PyTuple_CheckExact(result))
        return end_values(call, result);
    if (result == Py_None) {
        Py_DECREF(result);
        release(call);
        return 0;
    }
    if (lua_prepare(call->lua, &result) < 0) {
        Py_DECREF(result);
        return raise(call);
    }
    keep(result);
    release(call);
    lua_push_value(call->lua, result);
    return 1;
}

/* -- rows -- */

static int push_list(lua_State *lua, PyObject *list)
{
    Py_ssize_t count = PyList_GET_SIZE(list);
    lua_createtable(lua, (int)count, 0);
    for (Py_ssize_t place = 0; place < count; place++) {
        lua_push_value(lua, PyList_GET_ITEM(list, place));
        lua_rawseti(lua, -2, (int)place + 1);
    }
    return 1;
}

/* The rows in a buffer, where they stay while Lua code runs: the buffer is on the stack of C. `end` is behind them. NULL with an
 * exception. */
static Position stable_rows(Buffer *bytes, Position *end)
{
    Position start = bytes->data;
    if (bytes->bytes) {
        PyObject *taken = buffer_take(bytes);
        if (!taken)
            return NULL;
        start = (Position)PyBytes_AS_STRING(taken);
        *end = start + PyBytes_GET_SIZE(taken);
        keep(taken);
        return start;
    }
    *end = start + bytes->size;
    return start;
}

int lua_call_end_row(const LuaCall *call, int done, PackedRows *rows)
{
    PyObject *object = rows->object;
    Position end, start = NULL;
    if (object || done <= 0) {
        rows->object = NULL;
        packed_rows_free(rows);
        return lua_call_end(call, done < 0 ? NULL : object ? object : Py_NewRef(Py_None));
    }
    uint32_t format = lua_format(call->lua, rows->format);
    start = stable_rows(&rows->bytes, &end);
    packed_rows_free(rows);
    if (!start)
        return raise(call);
    release(call);
    lua_push_row(call->lua, start, (size_t)(end - start), format);
    return 1;
}

int lua_call_end_rows(const LuaCall *call, int done, PackedRows *rows)
{
    lua_State *lua = call->lua;
    PyObject *list = rows->object ? prepared_list(call, Py_NewRef(rows->object)) : NULL;
    Position end, start = NULL;
    uint32_t format = 0, count = rows->count;
    if (done >= 0 && !rows->object) {
        format = lua_format(lua, rows->format);
        start = stable_rows(&rows->bytes, &end);
    }
    packed_rows_free(rows);
    if (!list && !start)
        return raise(call);
    if (list)
        keep(list);
    release(call);
    if (list)
        return push_list(lua, list);
    lua_createtable(lua, (int)count, 0);
    for (uint32_t place = 1; place <= count; place++) {
        Position behind = msgpack_skip(start, end);
        lua_push_row(lua, start, (size_t)(behind - start), format);
        lua_rawseti(lua, -2, (int)place);
        start = behind;
    }
    return 1;
}
