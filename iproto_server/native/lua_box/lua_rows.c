/* Rows of spaces, found and changed by Lua code. The first argument is the handle of a space or of an index. */
#include "../native.h"

static int is_space(PyObject *object)
{
    return object && PyObject_TypeCheck(object, &SpaceFacade_Type);
}

static IndexFacade *index_at(lua_State *lua, int place)
{
    PyObject *object = lua_handle(lua, place);
    if (is_space(object))
        object = ((SpaceFacade *)object)->primary;
    if (object && PyObject_TypeCheck(object, &IndexFacade_Type))
        return (IndexFacade *)object;
    PyErr_SetString(PyExc_TypeError, "the handle of an index is needed");
    return NULL;
}

static SpaceFacade *space_at(lua_State *lua, int place)
{
    PyObject *object = lua_handle(lua, place);
    if (is_space(object))
        return (SpaceFacade *)object;
    PyErr_SetString(PyExc_TypeError, "the handle of a space is needed");
    return NULL;
}

/* facade(space id, index id or nil): a handle; nothing without such a space or index */
static PyObject *find_facade(lua_State *lua)
{
    PyObject *id = lua_to_python(lua, 1), *index_id = lua_to_python(lua, 2), *found = NULL;
    PyObject *spaces = id && index_id && lua_attached.box ? PyObject_GetAttrString(lua_attached.box, "space") : NULL;
    if (spaces)
        found = PyObject_GetItem(spaces, id);
    if (found && index_id != Py_None) {
        PyObject *indexes = PyObject_GetAttrString(found, "index");
        Py_SETREF(found, indexes ? PyObject_GetItem(indexes, index_id) : NULL);
        Py_XDECREF(indexes);
    }
    Py_XDECREF(spaces);
    Py_XDECREF(id);
    Py_XDECREF(index_id);
    return found;
}

static int facade(lua_State *lua)
{
    lua_settop(lua, 2);
    int place = lua_push_handle(lua);
    LuaCall call = lua_call_begin(lua);
    PyObject *found = find_facade(lua);
    if (!found)
        return lua_call_end(&call, NULL);
    lua_set_handle(lua, place, found);
    lua_call_end(&call, Py_NewRef(Py_None));
    return 1;
}

/* -- single rows -- */

/* A key, or another packed argument, and the rows that come of it. */
typedef struct {
    Buffer packed;
    PackedRows rows;
} Request;

static void begin(Request *request)
{
    buffer_init(&request->packed);
    packed_rows_init(&request->rows);
}

static int end(const LuaCall *call, Request *request, int done)
{
    buffer_free(&request->packed);
    return lua_call_end_row(call, done, &request->rows);
}

static Key key_of(const Buffer *packed)
{
    return (Key){NULL, 0, packed->data, packed->data + packed->size};
}

static PackedRow row_of(const Buffer *packed)
{
    return (PackedRow){packed->data, (size_t)packed->size};
}

/* With the index at the first place and the key at the second one. */
static int by_key(lua_State *lua, int (*pack)(lua_State *lua, int place, Buffer *packed),
                  int (*find)(IndexFacade *index, const Key *key, PackedRows *rows))
{
    Request request;
    LuaCall call = lua_call_begin(lua);
    begin(&request);
    IndexFacade *index = index_at(lua, 1);
    int done = index ? pack(lua, 2, &request.packed) : -1;
    if (done == 0) {
        Key key = key_of(&request.packed);
        done = find(index, &key, &request.rows);
    }
    return end(&call, &request, done);
}

/* get(index, key) */
static int get(lua_State *lua)
{
    return by_key(lua, lua_pack_key, facade_get_packed);
}

/* Pack the key that changes a row: a table that is no array is refused. */
static int pack_changing_key(lua_State *lua, int place, Buffer *packed)
{
    return lua_type(lua, place) == LUA_TTABLE ? lua_pack(lua, place, packed) : lua_pack_key(lua, place, packed);
}

/* delete(index, key): the row that was there */
static int delete(lua_State *lua)
{
    return by_key(lua, pack_changing_key, facade_delete_packed);
}

static int store(lua_State *lua, int is_insert)
{
    Request request;
    LuaCall call = lua_call_begin(lua);
    begin(&request);
    SpaceFacade *space = space_at(lua, 1);
    int done = space ? lua_pack(lua, 2, &request.packed) : -1;
    if (done == 0)
        done = facade_store_packed(space, row_of(&request.packed), is_insert, &request.rows);
    return end(&call, &request, done);
}

static int insert(lua_State *lua)
{
    return store(lua, 1);
}

static int replace(lua_State *lua)
{
    return store(lua, 0);
}

enum { INDEX_BASE = 1 };

static GivenOperations operations_in(const Buffer *buffer)
{
    return (GivenOperations){buffer->data, buffer->data + buffer->size, INDEX_BASE};
}

/* update(index, key, operations): the new row; nothing if there is none */
static int update(lua_State *lua)
{
    Request request;
    Buffer buffer;
    LuaCall call = lua_call_begin(lua);
    begin(&request);
    buffer_init(&buffer);
    IndexFacade *index = index_at(lua, 1);
    int done = index ? pack_changing_key(lua, 2, &request.packed) : -1;
    if (done == 0)
        done = lua_pack(lua, 3, &buffer);
    if (done == 0) {
        Key key = key_of(&request.packed);
        GivenOperations operations = operations_in(&buffer);
        done = facade_update_packed(index, &key, &operations, &request.rows);
    }
    buffer_free(&buffer);
    return end(&call, &request, done);
}

/* upsert(space, row, operations) */
static int upsert(lua_State *lua)
{
    Request request;
    Buffer buffer;
    LuaCall call = lua_call_begin(lua);
    begin(&request);
    buffer_init(&buffer);
    SpaceFacade *space = space_at(lua, 1);
    int done = space ? lua_pack(lua, 2, &request.packed) : -1;
    if (done == 0)
        done = lua_pack(lua, 3, &buffer);
    if (done == 0) {
        GivenOperations operations = operations_in(&buffer);
        done = facade_upsert_packed(space, row_of(&request.packed), &operations);
    }
    buffer_free(&buffer);
    return end(&call, &request, done);
}

/* -- the first and the last row -- */

/* A key as a list, for what Python does. */
static PyObject *list_at(lua_State *lua, int place)
{
    Buffer packed;
    buffer_init(&packed);
    PyObject *list = NULL;
    if (lua_pack_key(lua, place, &packed) == 0) {
        Key key = key_of(&packed);
        list = key_list(&key);
    }
    buffer_free(&packed);
    return list;
}

/* With the index at the first place and the key at the second one. */
static int with_key(lua_State *lua, PyObject *(*find)(IndexFacade *index, PyObject *key))
{
    LuaCall call = lua_call_begin(lua);
    IndexFacade *index = index_at(lua, 1);
    PyObject *key = index ? list_at(lua, 2) : NULL;
    PyObject *row = key ? find(index, key) : NULL;
    Py_XDECREF(key);
    return lua_call_end(&call, row);
}

static int min(lua_State *lua)
{
    return with_key(lua, facade_min);
}

static int max(lua_State *lua)
{
    return with_key(lua, facade_max);
}

/* -- many rows -- */

/* A number of rows, or of an iterator. */
static uint64_t count_at(lua_State *lua, int place)
{
    double number = lua_tonumber(lua, place);
    return number >= 0 && number < 9e15 ? (uint64_t)number : 0;
}

/* select(index, key, iterator, offset, limit): a table of rows */
static int select_rows(lua_State *lua)
{
    uint64_t iterator = count_at(lua, 3), offset = count_at(lua, 4), limit = count_at(lua, 5);
    Request request;
    LuaCall call = lua_call_begin(lua);
    begin(&request);
    IndexFacade *index = index_at(lua, 1);
    int done = index ? lua_pack_key(lua, 2, &request.packed) : -1;
    if (done == 0) {
        Key key = key_of(&request.packed);
        done = facade_select_packed(index, &key, iterator, offset, limit, &request.rows);
    }
    buffer_free(&request.packed);
    return lua_call_end_rows(&call, done, &request.rows);
}

static PyObject *row_at(lua_State *lua, int place)
{
    Buffer buffer;
    buffer_init(&buffer);
    PyObject *raw = lua_pack(lua, place, &buffer) == 0 ? buffer_take(&buffer) : NULL;
    PyObject *row = raw ? stored_tuple(raw, Py_None) : NULL;
    buffer_free(&buffer);
    Py_XDECREF(raw);
    return row;
}

static PyObject *iterator_of(lua_State *lua, uint64_t iterator)
{
    IndexFacade *index = index_at(lua, 1);
    PyObject *key = index ? list_at(lua, 2) : NULL, *rows = NULL;
    PyObject *after = !key ? NULL : lua_type(lua, 4) == LUA_TNIL ? Py_NewRef(Py_None) : row_at(lua, 4);
    PyObject *pairs = after ? PyObject_GetAttrString((PyObject *)index, "pairs") : NULL;
    PyObject *args = pairs ? Py_BuildValue("(O)", key) : NULL;
    PyObject *named = args ? Py_BuildValue("{sKsO}", "iterator", (unsigned long long)iterator, "after", after) : NULL;
    if (named)
        rows = PyObject_Call(pairs, args, named);
    Py_XDECREF(key);
    Py_XDECREF(after);
    Py_XDECREF(pairs);
    Py_XDECREF(args);
    Py_XDECREF(named);
    return rows;
}

/* iterate(index, key, iterator, row or nil): the handle of an iterator of Python, which begins behind the row's place */
static int iterate(lua_State *lua)
{
    lua_settop(lua, 4);
    int place = lua_push_handle(lua);
    uint64_t iterator = count_at(lua, 3);
    LuaCall call = lua_call_begin(lua);
    PyObject *rows = iterator_of(lua, iterator);
    if (!rows)
        return lua_call_end(&call, NULL);
    lua_set_handle(lua, place, rows);
    lua_call_end(&call, Py_NewRef(Py_None));
    return 1;
}

/* next_row(handle): the next row; nothing behind the last one */
static int next_row(lua_State *lua)
{
    LuaCall call = lua_call_begin(lua);
    PyObject *rows = lua_handle(lua, 1), *row = NULL;
    if (rows && PyIter_Check(rows))
        row = PyIter_Next(rows);
    else
        PyErr_SetString(PyExc_TypeError, "the handle of an iterator is needed");
    if (!row && !PyErr_Occurred())
        row = Py_NewRef(Py_None);
    return lua_call_end(&call, row);
}

const LuaFunction lua_row_functions[] = {
    {"facade", facade}, {"get", get},         {"delete", delete}, {"min", min},         {"max", max},
    {"insert", insert}, {"replace", replace}, {"update", update}, {"upsert", upsert},   {"select", select_rows},
    {"iterate", iterate}, {"next_row", next_row}, {NULL, NULL},
};
