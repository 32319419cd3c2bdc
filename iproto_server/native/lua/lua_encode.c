/* Values of Lua as MessagePack.
 *
 * Nothing here raises an error of Lua, which would leave without freeing the buffer: functions of Lua are called protected,
 * and tables are read without their metamethods. What is wrong is returned as text.
 */
#include "../native.h"

#include <math.h>

enum { TUPLE_NOT_ARRAY = 22 }; /* the code of an error */

typedef struct {
    lua_State *lua;
    Buffer *buffer;
    const LuaEncoding *encoding;
    LuaFailure *failure;
} Encoder;

static int encode(Encoder *encoder, int place, int depth);

/* Note what is wrong. Returns 0. */
static int refuse(Encoder *encoder, const char *error)
{
    PyErr_Clear(); /* of the buffer, without memory */
    snprintf(encoder->failure->text, sizeof encoder->failure->text, "%s", error);
    return 0;
}

/* Whether something was written, as functions of writer.c say. */
static int is_written(Encoder *encoder, int done)
{
    return done == 1 ? 1 : refuse(encoder, "not enough memory");
}

/* -- scalars -- */

static int encode_nil(Encoder *encoder)
{
    return is_written(encoder, buffer_append(encoder->buffer, "\xc0", 1));
}

static int encode_signed(Encoder *encoder, int64_t value)
{
    Buffer *buffer = encoder->buffer;
    return is_written(encoder, value < 0 ? write_negative(buffer, value) : write_unsigned(buffer, (uint64_t)value));
}

static int encode_number(Encoder *encoder, double number)
{
    Buffer *buffer = encoder->buffer;
    if (!isfinite(number) && !encoder->encoding->invalid_numbers)
        return encoder->encoding->invalid_as_nil ? encode_nil(encoder) : refuse(encoder, "number must not be NaN or Inf");
    if (number == floor(number) && number >= 0 && number < 18446744073709551616.0)
        return is_written(encoder, write_unsigned(buffer, (uint64_t)number));
    if (number == floor(number) && number >= -9223372036854775808.0 && number < 0)
        return encode_signed(encoder, (int64_t)number);
    return is_written(encoder, write_float(buffer, number));
}

static int encode_text(Encoder *encoder, int place)
{
    size_t size;
    const char *text = lua_tolstring(encoder->lua, place, &size);
    return is_written(encoder, write_string(encoder->buffer, text, (Py_ssize_t)size));
}

/* -- what cannot be packed -- */

static int encode_unsupported(Encoder *encoder, int type)
{
    static const char *const errors[] = {
        [LUA_TLIGHTUSERDATA] = "unsupported Lua type 'userdata'", [LUA_TFUNCTION] = "unsupported Lua type 'function'",
        [LUA_TUSERDATA] = "unsupported Lua type 'userdata'",      [LUA_TTHREAD] = "unsupported Lua type 'thread'",
        [LUA_TPROTO] = "unsupported Lua type 'proto'",            [LUA_TCDATA] = "unsupported Lua type 'cdata'",
    };
    return encoder->encoding->invalid_as_nil ? encode_nil(encoder) : refuse(encoder, errors[type]);
}

/* -- cdata -- */

/* The number of a cdata's type. LuaJIT's GC64 objects have it six bytes in front of what they hold; `lua_module.c` checks
 * that with integers. */
uint16_t lua_cdata_type(const void *payload)
{
    uint16_t type;
    memcpy(&type, (const uint8_t *)payload - 6, sizeof type);
    return type;
}

static int encode_other_cdata(Encoder *encoder, int place)
{
    lua_State *lua = encoder->lua;
    lua_push_kept(lua, LUA_KEPT_ENCODE_OTHER);
    lua_pushvalue(lua, place);
    size_t size;
    const char *packed = lua_pcall(lua, 1, 1, 0) == 0 && lua_type(lua, -1) == LUA_TSTRING
        ? lua_tolstring(lua, -1, &size) : NULL;
    int done = packed ? is_written(encoder, buffer_append(encoder->buffer, packed, (Py_ssize_t)size))
        : encode_unsupported(encoder, LUA_TCDATA);
    lua_settop(lua, -2);
    return done;
}

static int encode_cdata(Encoder *encoder, int place)
{
    const void *payload = lua_topointer(encoder->lua, place);
    uint16_t type = lua_cdata_type(payload);
    uint64_t bits;
    size_t size;
    const uint8_t *row = lua_tuple_data(encoder->lua, place, &size);
    if (row)
        return is_written(encoder, buffer_append(encoder->buffer, row, (Py_ssize_t)size));
    memcpy(&bits, payload, sizeof bits);
    if (type == lua_types.uint64)
        return is_written(encoder, write_unsigned(encoder->buffer, bits));
    if (type == lua_types.int64)
        return encode_signed(encoder, (int64_t)bits);
    if (type == lua_types.pointer && !bits)
        return encode_nil(encoder);
    return encode_other_cdata(encoder, place);
}

/* -- tables -- */

typedef struct {
    int is_map;
    uint64_t count; /* of pairs, or of elements */
} Shape;

/* The shape of a table without a hint: an array if its keys are 1, 2 and so on, with not too many missing. */
static int find_shape(Encoder *encoder, int place, Shape *shape)
{
    lua_State *lua = encoder->lua;
    const LuaEncoding *encoding = encoder->encoding;
    uint64_t count = 0, largest = 0;
    shape->is_map = 0;
    lua_pushnil(lua);
    while (lua_next(lua, place)) {
        double key = lua_type(lua, -2) == LUA_TNUMBER ? lua_tonumber(lua, -2) : 0;
        if (key >= 1 && key == floor(key) && key <= INT32_MAX)
            largest = key > (double)largest ? (uint64_t)key : largest;
        else
            shape->is_map = 1;
        count++;
        lua_settop(lua, -2);
    }
    int is_sparse = encoding->sparse_ratio > 0 && encoding->sparse_safe >= 0 && largest > (uint64_t)encoding->sparse_safe
        && largest > count * (uint64_t)encoding->sparse_ratio;
    if (!shape->is_map && is_sparse) {
        if (!encoding->sparse_convert)
            return refuse(encoder, "excessively sparse array");
        shape->is_map = 1;
    }
    shape->count = shape->is_map ? count : largest;
    return 1;
}

static uint64_t count_pairs(lua_State *lua, int place)
{
    uint64_t count = 0;
    for (lua_pushnil(lua); lua_next(lua, place); lua_settop(lua, -2))
        count++;
    return count;
}

static int encode_map(Encoder *encoder, int place, uint64_t pairs, int depth)
{
    lua_State *lua = encoder->lua;
    int done = is_written(encoder, write_map_header(encoder->buffer, pairs));
    lua_pushnil(lua);
    while (done && lua_next(lua, place)) {
        int value = lua_gettop(lua);
        done = encode(encoder, value - 1, depth + 1) && encode(encoder, value, depth + 1);
        lua_settop(lua, value - 1);
    }
    if (!done)
        lua_settop(lua, -2);
    return done;
}

static int encode_array(Encoder *encoder, int place, uint64_t count, int depth)
{
    lua_State *lua = encoder->lua;
    int done = is_written(encoder, write_array_header(encoder->buffer, count));
    for (uint64_t number = 1; done && number <= count; number++) {
        lua_rawgeti(lua, place, (int)number);
        done = encode(encoder, lua_gettop(lua), depth + 1);
        lua_settop(lua, -2);
    }
    return done;
}

/* Pack what the table's function `__serialize`, which is on the stack, returns for it. */
static int encode_serialized(Encoder *encoder, int place, int depth)
{
    lua_State *lua = encoder->lua;
    lua_pushvalue(lua, place);
    if (lua_pcall(lua, 1, 1, 0)) {
        encoder->failure->raised = luaL_ref(lua, LUA_REGISTRYINDEX);
        return 0;
    }
    if (depth >= encoder->encoding->max_depth + 1)
        return refuse(encoder, "Too high nest level");
    return encode(encoder, lua_gettop(lua), depth + 1);
}

static int encode_table(Encoder *encoder, int place, int depth)
{
    lua_State *lua = encoder->lua;
    int top = lua_gettop(lua), done;
    if (depth > encoder->encoding->max_depth)
        return encoder->encoding->deep_as_nil ? encode_nil(encoder) : refuse(encoder, "Too high nest level");
    Shape shape = {-1, 0};
    if (encoder->encoding->load_metatables && lua_getmetatable(lua, place)) {
        lua_push_kept(lua, LUA_KEPT_SERIALIZE);
        lua_rawget(lua, -2);
        if (lua_type(lua, -1) == LUA_TFUNCTION) {
            done = encode_serialized(encoder, place, depth);
            lua_settop(lua, top);
            return done;
        }
        if (lua_type(lua, -1) == LUA_TSTRING)
            shape.is_map = *lua_tolstring(lua, -1, NULL) == 'm';
    }
    if (shape.is_map == 1)
        shape.count = count_pairs(lua, place);
    else if (shape.is_map == 0)
        shape.count = lua_objlen(lua, place);
    else if (!find_shape(encoder, place, &shape)) {
        lua_settop(lua, top);
        return 0;
    }
    done = (shape.is_map ? encode_map : encode_array)(encoder, place, shape.count, depth);
    lua_settop(lua, top);
    return done;
}

/* -- values -- */

static int encode(Encoder *encoder, int place, int depth)
{
    lua_State *lua = encoder->lua;
    int type = lua_type(lua, place);
    if (!lua_checkstack(lua, 8))
        return refuse(encoder, "stack overflow");
    switch (type) {
    case LUA_TNONE: case LUA_TNIL: return encode_nil(encoder);
    case LUA_TBOOLEAN: return is_written(encoder, buffer_append(encoder->buffer, lua_toboolean(lua, place) ? "\xc3" : "\xc2", 1));
    case LUA_TNUMBER: return encode_number(encoder, lua_tonumber(lua, place));
    case LUA_TSTRING: return encode_text(encoder, place);
    case LUA_TTABLE: return encode_table(encoder, place, depth);
    case LUA_TCDATA: return encode_cdata(encoder, place);
    default: return encode_unsupported(encoder, type);
    }
}

int lua_encode(lua_State *lua, Buffer *buffer, int place, const LuaEncoding *encoding, LuaFailure *failure)
{
    *failure = (LuaFailure){"", 0, 0};
    Encoder encoder = {lua, buffer, encoding, failure};
    return encode(&encoder, place, 0);
}

int lua_encode_row(lua_State *lua, Buffer *buffer, int place, const LuaEncoding *encoding, LuaFailure *failure)
{
    Py_ssize_t start = buffer->size;
    if (!lua_encode(lua, buffer, place, encoding, failure))
        return 0;
    uint8_t head = buffer->data[start];
    if ((head & 0xf0) == 0x90 || head == 0xdc || head == 0xdd)
        return 1;
    *failure = (LuaFailure){"Tuple/Key must be MsgPack array", TUPLE_NOT_ARRAY, 0};
    return 0;
}

int lua_encode_values(lua_State *lua, Buffer *buffer, int place, int count, const LuaEncoding *encoding,
                      LuaFailure *failure)
{
    *failure = (LuaFailure){"", 0, 0};
    Encoder encoder = {lua, buffer, encoding, failure};
    int done = is_written(&encoder, write_array_header(buffer, (uint64_t)count));
    for (int end = place + count; done && place < end; place++)
        done = encode(&encoder, place, 1);
    return done;
}
