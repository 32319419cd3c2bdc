/* Values of Lua as MessagePack.
 *
 * All of it runs protected: an error of Lua, as of a table that `__serialize` changes while it is read, leaves nothing
 * behind.
 */
#include "../native.h"

#include <math.h>

enum { TUPLE_NOT_ARRAY = 22 }; /* the code of an error */
enum { CONVERSIONS_MAX = 100 }; /* one `__serialize` inside of another */

typedef struct {
    lua_State *lua;
    Buffer *buffer;
    const LuaEncoding *encoding;
    LuaFailure *failure;
    int conversions;
} Encoder;

static int encode(Encoder *encoder, int place, int depth);

/* Note what is wrong. Returns 0. */
static int refuse(Encoder *encoder, const char *error)
{
    PyErr_Clear(); /* of the buffer, without memory */
    snprintf(encoder->failure->text, sizeof encoder->failure->text, "%s", error);
    return 0;
}

/* The same for what is an error object in Tarantool, not a text. */
static int refuse_as_object(Encoder *encoder, const char *error)
{
    encoder->failure->kind = LUA_FAILURE_LUAJIT;
    return refuse(encoder, error);
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

static int encode_boolean(Encoder *encoder, int value)
{
    return is_written(encoder, buffer_append(encoder->buffer, value ? "\xc3" : "\xc2", 1));
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
        return encoder->encoding->invalid_as_nil ? encode_nil(encoder)
            : refuse_as_object(encoder, "number must not be NaN or Inf");
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

/* -- cdata and userdata -- */

/* Pack what a function of Lua has put in a value's place, which is on top of the stack: true and a packed value, or
 * false and another value; nil if there is none. */
static int encode_conversion(Encoder *encoder, int depth)
{
    lua_State *lua = encoder->lua;
    int place = lua_gettop(lua);
    size_t size;
    if (lua_toboolean(lua, place - 1)) {
        const char *packed = lua_tolstring(lua, place, &size);
        return is_written(encoder, buffer_append(encoder->buffer, packed, (Py_ssize_t)size));
    }
    if (encoder->conversions == CONVERSIONS_MAX)
        return refuse(encoder, "__serialize returns its own argument");
    encoder->conversions++;
    int done = encode(encoder, place, depth);
    encoder->conversions--;
    return done;
}

/* Pack a value for which compiled code has no form. */
static int encode_other(Encoder *encoder, int place, int depth)
{
    lua_State *lua = encoder->lua;
    const LuaEncoding *encoding = encoder->encoding;
    int top = lua_gettop(lua), done;
    if (!lua_checkstack(lua, 8))
        return refuse(encoder, "stack overflow");
    lua_push_kept(lua, LUA_KEPT_ENCODE_OTHER);
    lua_pushvalue(lua, place);
    lua_pushboolean(lua, encoding->load_metatables);
    lua_pushboolean(lua, encoding->use_tostring);
    lua_call(lua, 3, 2);
    if (lua_type(lua, -2) == LUA_TBOOLEAN) {
        done = encode_conversion(encoder, depth);
    } else if (lua_type(lua, -1) == LUA_TSTRING) {
        done = refuse(encoder, lua_tolstring(lua, -1, NULL));
    } else if (encoding->invalid_as_nil) {
        done = encode_nil(encoder);
    } else {
        char text[64];
        snprintf(text, sizeof text, "unsupported Lua type '%s'", lua_typename(lua, lua_type(lua, place)));
        done = refuse(encoder, text);
    }
    lua_settop(lua, top);
    return done;
}

/* A number of C stays a floating one. */
static int encode_float(Encoder *encoder, double number, int is_single)
{
    if (!isfinite(number) && !encoder->encoding->invalid_numbers)
        return encode_number(encoder, number);
    if (!is_single)
        return is_written(encoder, write_float(encoder->buffer, number));
    float single = (float)number;
    uint32_t bits;
    uint8_t packed[5] = {0xca};
    memcpy(&bits, &single, sizeof bits);
    put_big_endian(packed + 1, bits, 4);
    return is_written(encoder, buffer_append(encoder->buffer, packed, sizeof packed));
}

static int encode_cdata(Encoder *encoder, int place, int depth)
{
    const void *payload = lua_topointer(encoder->lua, place);
    uint16_t type = lua_cdata_type(payload);
    int64_t number;
    size_t size;
    const uint8_t *row = lua_tuple_data(encoder->lua, place, &size);
    if (row)
        return is_written(encoder, buffer_append(encoder->buffer, row, (Py_ssize_t)size));
    if (type == lua_types.single)
        return encode_float(encoder, *(const float *)payload, 1);
    if (type == lua_types.real)
        return encode_float(encoder, *(const double *)payload, 0);
    if (type != lua_types.uint64 && type != lua_types.int64 && type != lua_types.pointer)
        return encode_other(encoder, place, depth);
    memcpy(&number, payload, sizeof number);
    if (type == lua_types.int64)
        return encode_signed(encoder, number);
    if (type == lua_types.uint64)
        return is_written(encoder, write_unsigned(encoder->buffer, (uint64_t)number));
    return number ? encode_other(encoder, place, depth) : encode_nil(encoder);
}

/* -- tables -- */

typedef struct {
    int is_map;
    uint64_t count; /* of elements */
} Shape;

/* Keys are counted in 32 bits. */
static uint64_t as_size(double key)
{
    return key < 9223372036854775808.0 ? (uint32_t)(int64_t)key : 0;
}

/* The shape of a table without a hint: an array if its keys are 1, 2 and so on, with not too many missing. */
static int find_shape(Encoder *encoder, int place, Shape *shape)
{
    lua_State *lua = encoder->lua;
    const LuaEncoding *encoding = encoder->encoding;
    uint64_t count = 0, largest = 0;
    shape->is_map = 0;
    lua_pushnil(lua);
    for (; lua_next(lua, place); lua_settop(lua, -2), count++) {
        double key = lua_type(lua, -2) == LUA_TNUMBER ? lua_tonumber(lua, -2) : 0;
        if (!(key >= 1 && key == floor(key))) {
            shape->is_map = 1;
            lua_settop(lua, -3);
            return 1;
        }
        if (key > (double)largest)
            largest = as_size(key);
    }
    int is_limited = encoding->sparse_ratio > 0 && encoding->sparse_safe >= 0;
    int is_sparse = is_limited && largest > (uint64_t)encoding->sparse_safe
        && largest > count * (uint64_t)encoding->sparse_ratio;
    if (is_sparse) {
        if (!encoding->sparse_convert)
            return refuse_as_object(encoder, "excessively sparse array");
        shape->is_map = 1;
    }
    shape->count = largest;
    return 1;
}

/* The greatest integer key of a table that is to be an array. */
static uint64_t greatest_key(lua_State *lua, int place)
{
    uint64_t largest = 0;
    for (lua_pushnil(lua); lua_next(lua, place); lua_settop(lua, -2)) {
        double key = lua_type(lua, -2) == LUA_TNUMBER ? lua_tonumber(lua, -2) : 0;
        if (key > (double)largest && key == floor(key))
            largest = as_size(key);
    }
    return largest;
}

/* The head follows the pairs, which are counted as they are packed: few have more than a short one is for. */
static int encode_map(Encoder *encoder, int place, int depth)
{
    lua_State *lua = encoder->lua;
    Buffer *buffer = encoder->buffer;
    Py_ssize_t start = buffer->size, more;
    uint64_t pairs = 0;
    int done = is_written(encoder, write_map_header(buffer, 0));
    lua_pushnil(lua);
    for (int value = lua_gettop(lua) + 1; done && lua_next(lua, place); pairs++) {
        done = encode(encoder, value - 1, depth + 1) && encode(encoder, value, depth + 1);
        lua_settop(lua, value - 1);
    }
    if (!done)
        return 0;
    if (pairs <= 15) {
        buffer->data[start] |= (uint8_t)pairs;
        return 1;
    }
    more = pairs <= UINT16_MAX ? 2 : 4;
    if (!is_written(encoder, buffer_insert(buffer, start + 1, more)))
        return 0;
    buffer->data[start] = more == 2 ? 0xde : 0xdf;
    put_big_endian(buffer->data + start + 1, pairs, (int)more);
    return 1;
}

static int encode_array(Encoder *encoder, int place, uint64_t count, int depth)
{
    lua_State *lua = encoder->lua;
    if (count > INT32_MAX)
        return refuse(encoder, "not enough memory");
    int done = is_written(encoder, write_array_header(encoder->buffer, count));
    for (uint64_t number = 1; done && number <= count; number++) {
        lua_rawgeti(lua, place, (int)number);
        done = encode(encoder, lua_gettop(lua), depth + 1);
        lua_settop(lua, -2);
    }
    return done;
}

/* Pack what the table's function `__serialize`, which is on top of the stack, returns for it. */
static int encode_serialized(Encoder *encoder, int place, int depth)
{
    lua_State *lua = encoder->lua;
    lua_pushvalue(lua, place);
    int before = lua_memory_limit(1), is_raised = lua_pcall(lua, 1, 1, 0);
    lua_memory_limit(before);
    if (is_raised) {
        lua_make_text(lua);
        const char *text = lua_tolstring(lua, -1, NULL);
        return refuse_as_object(encoder, text ? text : "");
    }
    lua_pushboolean(lua, 0);
    lua_pushvalue(lua, -2);
    return encode_conversion(encoder, depth);
}

/* The shape that a hint asks for, -1 for an invalid one. */
static int hinted_map(const char *hint)
{
    if (!strcmp(hint, "seq") || !strcmp(hint, "sequence") || !strcmp(hint, "array"))
        return 0;
    return !strcmp(hint, "map") || !strcmp(hint, "mapping") ? 1 : -1;
}

/* Pack a table by its metatable. Returns -1 if that says nothing. */
static int encode_by_metatable(Encoder *encoder, int place, Shape *shape, int depth)
{
    lua_State *lua = encoder->lua;
    if (!encoder->encoding->load_metatables || !lua_getmetatable(lua, place))
        return -1;
    lua_push_kept(lua, LUA_KEPT_SERIALIZE);
    lua_rawget(lua, -2);
    int type = lua_type(lua, -1);
    if (type == LUA_TFUNCTION)
        return encode_serialized(encoder, place, depth);
    if (type == LUA_TNIL)
        return -1;
    shape->is_map = type == LUA_TSTRING ? hinted_map(lua_tolstring(lua, -1, NULL)) : -1;
    if (shape->is_map < 0)
        return refuse_as_object(encoder, "invalid __serialize value");
    shape->count = shape->is_map ? 0 : greatest_key(lua, place);
    return -1;
}

static int encode_shape(Encoder *encoder, int place, const Shape *shape, int depth)
{
    if (depth >= encoder->encoding->max_depth) {
        char text[64];
        snprintf(text, sizeof text, "Too high nest level - %d", depth + 1);
        return encoder->encoding->deep_as_nil ? encode_nil(encoder) : refuse(encoder, text);
    }
    return shape->is_map ? encode_map(encoder, place, depth) : encode_array(encoder, place, shape->count, depth);
}

static int encode_table(Encoder *encoder, int place, int depth)
{
    if (!lua_checkstack(encoder->lua, 8))
        return refuse(encoder, "stack overflow");
    int top = lua_gettop(encoder->lua);
    Shape shape = {-1, 0};
    int done = encode_by_metatable(encoder, place, &shape, depth);
    if (done < 0)
        done = (shape.is_map >= 0 || find_shape(encoder, place, &shape)) && encode_shape(encoder, place, &shape, depth);
    lua_settop(encoder->lua, top);
    return done;
}

/* -- values -- */

static int encode(Encoder *encoder, int place, int depth)
{
    lua_State *lua = encoder->lua;
    switch (lua_type(lua, place)) {
    case LUA_TNONE: case LUA_TNIL: return encode_nil(encoder);
    case LUA_TBOOLEAN: return encode_boolean(encoder, lua_toboolean(lua, place));
    case LUA_TNUMBER: return encode_number(encoder, lua_tonumber(lua, place));
    case LUA_TSTRING: return encode_text(encoder, place);
    case LUA_TTABLE: return encode_table(encoder, place, depth);
    case LUA_TCDATA: return encode_cdata(encoder, place, depth);
    default: return encode_other(encoder, place, depth);
    }
}

/* -- protected -- */

/* What `lua_encode_protected` packs; it takes it at once, before any function of Lua may pack something else. */
static struct {
    Encoder *encoder;
    int depth;
} task;

/* Called with the values: packs them, one behind the other. */
int lua_encode_protected(lua_State *lua)
{
    Encoder *encoder = task.encoder;
    int count = lua_gettop(lua), depth = task.depth, done = 1;
    for (int place = 1; done && place <= count; place++)
        done = encode(encoder, place, depth);
    lua_pushboolean(lua, done);
    return 1;
}

static int encode_all(Encoder *encoder, int place, int count, int depth)
{
    lua_State *lua = encoder->lua;
    if (!lua_checkstack(lua, count + 8))
        return refuse(encoder, "stack overflow");
    lua_push_kept(lua, LUA_KEPT_ENCODE_PROTECTED);
    for (int end = place + count; place < end; place++)
        lua_pushvalue(lua, place);
    task.encoder = encoder;
    task.depth = depth;
    if (lua_pcall(lua, count, 1, 0)) {
        encoder->failure->kind = LUA_FAILURE_RAISED;
        PyErr_Clear();
        return 0;
    }
    int done = lua_toboolean(lua, -1);
    lua_settop(lua, -2);
    return done;
}

int lua_encode(lua_State *lua, Buffer *buffer, int place, const LuaEncoding *encoding, LuaFailure *failure)
{
    *failure = (LuaFailure){0};
    Encoder encoder = {lua, buffer, encoding, failure, 0};
    return encode_all(&encoder, place, 1, 0);
}

int lua_encode_row(lua_State *lua, Buffer *buffer, int place, const LuaEncoding *encoding, LuaFailure *failure)
{
    Py_ssize_t start = buffer->size;
    if (!lua_encode(lua, buffer, place, encoding, failure))
        return 0;
    uint8_t head = buffer->data[start];
    if ((head & 0xf0) == 0x90 || head == 0xdc || head == 0xdd)
        return 1;
    *failure = (LuaFailure){LUA_FAILURE_CLIENT, TUPLE_NOT_ARRAY, "Tuple/Key must be MsgPack array"};
    return 0;
}

int lua_encode_values(lua_State *lua, Buffer *buffer, int place, int count, const LuaEncoding *encoding,
                      LuaFailure *failure)
{
    *failure = (LuaFailure){0};
    Encoder encoder = {lua, buffer, encoding, failure, 0};
    return is_written(&encoder, write_array_header(buffer, (uint64_t)count)) && encode_all(&encoder, place, count, 1);
}
