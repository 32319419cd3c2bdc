/* tuple:update and tuple:upsert, as far as the engine knows the operations. */
#include "lua_tuple.h"

/* Names of a tuple's fields: a packed array of texts. */
typedef struct {
    Position at, end;
} Names;

static Names names_of(lua_State *lua, const LuaTuple *tuple)
{
    int top = lua_gettop(lua);
    lua_push_kept(lua, LUA_KEPT_NAMES);
    lua_rawgeti(lua, -1, (int)tuple->format);
    size_t size = 0;
    const char *text = lua_type(lua, -1) == LUA_TSTRING ? lua_tolstring(lua, -1, &size) : NULL;
    Names names = {(Position)text, (Position)text + size};
    lua_settop(lua, top); /* the table keeps the text */
    return names;
}

static int field_of(void *context, const uint8_t *name, size_t size, int32_t *field_no)
{
    const Names *names = context;
    uint32_t count = 0;
    MsgpackValue value;
    Position at = names->at ? msgpack_array(names->at, names->end, &count) : NULL;
    for (uint32_t place = 0; at && place < count; place++) {
        at = msgpack_read(at, names->end, &value);
        if (at && value.type == MSGPACK_STRING && value.size == size && !memcmp(value.bytes, name, size)) {
            *field_no = (int32_t)place;
            return 1;
        }
    }
    return 0;
}

/* Write the new row. Returns 0, maybe with an exception, if the engine does not know the operations. */
static int write_updated(const LuaTuple *tuple, const Buffer *packed, Names *names, Buffer *row)
{
    UpdateOperations operations;
    UpdatedRow updated;
    UpdateDoubles doubles = {0, 0};
    if (!update_read(&operations, packed->data, packed->data + packed->size, 1, field_of, names)
        || !update_row(&updated, &operations, tuple->row, tuple->size, &doubles))
        return 0;
    uint8_t *at = buffer_grow(row, (Py_ssize_t)updated.size);
    if (at)
        update_write(&updated, at);
    return at != NULL;
}

static void push_text(lua_State *lua, const void *text, size_t size)
{
    lua_pushlstring(lua, text, size);
}

/* Tables of operations are packed with sparse arrays as maps. */
static LuaEncoding operations_encoding(lua_State *lua)
{
    LuaEncoding encoding = *lua_msgpack_encoding(lua);
    encoding.sparse_convert = encoding.load_metatables = 1;
    encoding.sparse_ratio = 1;
    encoding.sparse_safe = 0;
    return encoding;
}

/* Pack the elements of a table as one array. */
static int encode_operations(lua_State *lua, Buffer *buffer, int place, LuaFailure *failure)
{
    LuaEncoding encoding = operations_encoding(lua);
    size_t count = lua_objlen(lua, place);
    int done = write_array_header(buffer, count) == 1;
    *failure = (LuaFailure){LUA_FAILURE_TEXT, 0, "not enough memory"};
    for (size_t number = 1; done && number <= count; number++) {
        lua_rawgeti(lua, place, (int)number);
        done = lua_encode(lua, buffer, lua_gettop(lua), &encoding, failure);
        if (done)
            lua_settop(lua, -2);
    }
    return done;
}

/* The words of Tarantool's encoder of operations, which is another one. */
static void reword(LuaFailure *failure)
{
    static const char known[] = "unsupported Lua type ", other[] = "can not encode Lua type: ";
    char type[64];
    if (failure->kind != LUA_FAILURE_TEXT || strncmp(failure->text, known, sizeof known - 1))
        return;
    snprintf(type, sizeof type, "%s", failure->text + sizeof known - 1);
    snprintf(failure->text, sizeof failure->text, "%s%s", other, type);
}

/* tuple_update(tuple, operations): the row after operations that the engine knows and true; else the packed operations
 * and false */
int tuple_update(lua_State *lua)
{
    const LuaTuple *tuple = tuple_check(lua, 1);
    LuaFailure failure;
    LuaPacking packing;
    Buffer row;
    lua_packing_begin(&packing);
    buffer_init(&row);
    if (!encode_operations(lua, &packing.buffer, 2, &failure)) {
        reword(&failure);
        return lua_packing_raise(lua, &packing, &failure);
    }
    Names names = names_of(lua, tuple); /* from here on no code of Lua can change them */
    int is_known = write_updated(tuple, &packing.buffer, &names, &row);
    PyErr_Clear(); /* of memory: the other way may have enough */
    if (is_known) {
        buffer_free(&packing.buffer);
        packing.buffer = row;
        if (!row.bytes)
            packing.buffer.data = packing.buffer.first;
    }
    lua_packing_push(lua, &packing, push_text);
    lua_pushboolean(lua, is_known);
    return 2;
}
