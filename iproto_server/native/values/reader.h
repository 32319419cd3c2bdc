/* Reading MessagePack with a position that moves on, for the compiled modules of iproto_server and of spark.
 *
 * No byte is read at or behind `end`. A function that returns 0 has not found what it reads.
 */
#ifndef IPROTO_SERVER_READER_H
#define IPROTO_SERVER_READER_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#include "../../engine/core/values/msgpack.h"

typedef const uint8_t *Position;

static inline uint64_t big_endian(Position at, int width)
{
    return load_big_endian(at, width);
}

/* Go past a value that is inside of `depth` arrays and maps. Returns 0 if there is none, or it is nested too deep. */
static inline int skip_value(Position *at, Position end, int depth)
{
    Position behind = msgpack_skip_within(*at, end, MSGPACK_DEPTH_MAX - depth);
    if (behind)
        *at = behind;
    return behind != NULL;
}

/* Read an unsigned number, in whatever form. */
static inline int read_unsigned(Position *at, Position end, uint64_t *value)
{
    Position behind = msgpack_unsigned(*at, end, value);
    if (behind)
        *at = behind;
    return behind != NULL;
}

#endif
