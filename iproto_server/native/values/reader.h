/* Decoding of MessagePack, shared by the compiled modules of iproto_server and of spark.
 *
 * The buffer is read between `at` and `end` only: no byte is read before it is known to be there. A function that
 * returns NULL without an exception, or 0, has met something that it leaves to Python.
 */
#ifndef IPROTO_SERVER_READER_H
#define IPROTO_SERVER_READER_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

/* Deeper values are left to Python. */
#define DEEPEST 32

typedef const uint8_t *Position;

static inline uint64_t big_endian(Position at, int width)
{
    uint64_t value = 0;
    for (int place = 0; place < width; place++)
        value = value << 8 | at[place];
    return value;
}

int skip_value(Position *at, Position end, int depth);
int read_unsigned(Position *at, Position end, uint64_t *value);
PyObject *read_value(Position *at, Position end, int depth);

#endif
