/* Values between Python and MessagePack: tuples, keys, and what packs and unpacks. */
#ifndef IPROTO_SERVER_VALUES_H
#define IPROTO_SERVER_VALUES_H

#include "reader.h"

#include "../../engine/core/iproto_engine.h"

#include <structmember.h>

static inline void put_big_endian(uint8_t *at, uint64_t value, int width)
{
    for (int place = width; place--; value >>= 8)
        at[place] = (uint8_t)value;
}

/* Write a number in MessagePack's shortest form. Returns the position behind it. */
enum { UNSIGNED_SIZE_MAX = 9 };
static inline uint8_t *put_unsigned(uint8_t *at, uint64_t value)
{
    if (value < 0x80) {
        *at = (uint8_t)value;
        return at + 1;
    }
    int power = (value >= 0x100) + (value >= 0x10000) + (value >= 0x100000000); /* of two: the width */
    *at = (uint8_t)(0xcc + power);
    put_big_endian(at + 1, value, 1 << power);
    return at + 1 + (1 << power);
}

#define FUNCTION(name) PyObject *name(PyObject *module, PyObject *const *args, Py_ssize_t count)

/* box_error.c */
/* Raise the BoxError of a member of ErrorCode; its arguments as in `Py_BuildValue`, NULL for none. It runs Python code. */
void raise_box_error(const char *code, const char *format, ...);

/* buffer.c */
typedef struct {
    uint8_t *data;
    Py_ssize_t size, room;
    PyObject *bytes; /* which `data` is in, once `first` is too small; else NULL */
    char is_shared;  /* whether Python code may write to it, so that none may run while a value is written */
    uint8_t first[1024];
} Buffer;

void buffer_init(Buffer *buffer); /* not shared */
void buffer_free(Buffer *buffer);
int buffer_reserve(Buffer *buffer, Py_ssize_t room); /* 0; -1 with an exception */
void buffer_hold(Buffer *buffer, PyObject *bytes); /* instead of what it holds; what is written goes elsewhere */
PyObject *buffer_take(Buffer *buffer); /* all of it as bytes, and the buffer is empty; NULL with an exception */
int buffer_make_room(Buffer *buffer, Py_ssize_t count); /* for some more bytes; -1 with an exception */
int buffer_insert(Buffer *buffer, Py_ssize_t at, Py_ssize_t count); /* some bytes at a place: 1; -1 with an exception */

/* Append some bytes, and return where they begin; NULL with an exception. */
static inline uint8_t *buffer_grow(Buffer *buffer, Py_ssize_t count)
{
    if (count > buffer->room - buffer->size && buffer_make_room(buffer, count) < 0)
        return NULL;
    uint8_t *at = buffer->data + buffer->size;
    buffer->size += count;
    return at;
}

/* Append a copy of some bytes. Returns 1; -1 with an exception. */
static inline int buffer_append(Buffer *buffer, const void *data, Py_ssize_t size)
{
    uint8_t *at = buffer_grow(buffer, size);
    if (!at)
        return -1;
    memcpy(at, data, (size_t)size);
    return 1;
}

/* unpack.c */
/* Read a value that is inside of `depth` arrays and maps. Returns NULL without an exception if it is malformed, or nested
 * too deep. Extension types run Python code. */
PyObject *read_value(Position *at, Position end, int depth);
PyObject *unpack(PyObject *raw);       /* exactly one value */
PyObject *unpack_array(PyObject *raw); /* the same; a list */

/* writer.c */
/* Write a value that is inside of `depth` arrays and maps. These return 1; -1 with an exception, and the buffer has a part
 * of it; 0, too, if the buffer is shared and the value needs Python code. */
int write_value(Buffer *buffer, PyObject *value, int depth);
int write_sequence(Buffer *buffer, PyObject *sequence, int depth);
int write_unsigned(Buffer *buffer, uint64_t value);
int write_negative(Buffer *buffer, int64_t value);
int write_float(Buffer *buffer, double number);
int write_string(Buffer *buffer, const void *data, Py_ssize_t size);
int write_array_header(Buffer *buffer, uint64_t count);
int write_map_header(Buffer *buffer, uint64_t pairs);
int refuse_value(Buffer *buffer, const char *code, const char *text); /* with a BoxError */
int refuse_size(Buffer *buffer); /* of a value that is nested too deep or too large */
PyObject *pack(PyObject *value); /* bytes */

/* extensions.c */
int is_error_extension(int type); /* its payload is MessagePack */
PyObject *decode_extension(int type, Position payload, Position end, PyObject *described);
int write_extension(Buffer *buffer, PyObject *value, int depth); /* returns as `write_value` */

/* Objects of a type that are kept for the next ones, since making and dropping them is what costs. Their type is a
 * static one, and they take no part in garbage collection. */
#ifdef __SANITIZE_ADDRESS__
#define FREE_MAX 0 /* so that uses of what was freed are found */
#else
#define FREE_MAX 128
#endif
typedef struct {
    int count;
    PyObject *objects[FREE_MAX + 1];
} FreeList;

/* A new object, of which only the head is set; NULL with an exception. */
static inline PyObject *free_list_new(FreeList *list, PyTypeObject *type)
{
    return list->count ? PyObject_Init(list->objects[--list->count], type) : _PyObject_New(type);
}

static inline void free_list_drop(FreeList *list, PyObject *object)
{
    if (list->count < FREE_MAX)
        list->objects[list->count++] = object;
    else
        PyObject_Free(object);
}

/* raw.c */
extern PyTypeObject Raw_Type;
typedef struct {
    PyObject_HEAD
    PyObject *raw; /* bytes */
} RawObject;
PyObject *new_raw(Position start, Position end);
PyObject *raw_alloc(PyTypeObject *type, PyObject *args, PyObject *kwargs); /* of a subclass: an empty array */
void raw_free(PyObject *self);

/* tuples.c */
extern PyTypeObject Tuple_Type;
typedef struct {
    RawObject base;
    PyObject *format, *fields; /* fields NULL: not decoded yet */
    char peeks;                /* how many more fields may be decoded without the others */
} TupleObject;
enum { PEEKS_MAX = 3 };
PyObject *tuple_fields(TupleObject *self); /* borrowed */
PyObject *tuple_transform(PyObject *self, PyObject *const *args, Py_ssize_t count); /* tuple_transform.c */
PyObject *new_tuple(PyObject *raw, PyObject *format, PyObject *fields); /* fields may be NULL */
PyObject *stored_tuple(PyObject *raw, PyObject *format); /* the same of bytes that are known to be well-formed */
PyObject *tuple_dict(TupleObject *self, int names_only); /* a new dict; NULL with an exception */

/* format_type.c */
extern PyTypeObject Format_Type;
PyObject *format_names(PyObject *format); /* borrowed: the fields' numbers, a dict; NULL for no Format */
/* Its number among those of which Lua code knows the names; 0 for one without names. */
uint32_t format_number(PyObject *format, int *is_new);
PyObject *format_packed_names(PyObject *format); /* borrowed: a tuple; NULL for no Format */

/* tuple_map.c */
extern PyTypeObject TupleMap_Type;
PyObject *new_tuple_map(PyObject *row, int names_only);
int write_tuple_map(Buffer *buffer, PyObject *map); /* returns as `write_value` */

/* durations.c */
extern PyTypeObject Durations_Type;

PyObject *native_pack(PyObject *module, PyObject *value);
PyObject *native_unpack(PyObject *module, PyObject *raw);
FUNCTION(native_skip);
FUNCTION(native_first_items);
PyObject *native_is_valid(PyObject *module, PyObject *raw);
PyObject *native_split_array(PyObject *module, PyObject *raw);
PyObject *native_split_map(PyObject *module, PyObject *raw);
PyObject *native_array_count(PyObject *module, PyObject *raw);
PyObject *native_map_count(PyObject *module, PyObject *raw);
PyObject *native_array_header(PyObject *module, PyObject *number);
PyObject *native_map_header(PyObject *module, PyObject *number);

#endif
