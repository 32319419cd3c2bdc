/* What the tests in C share: reproducible random numbers, rows in MessagePack, and memory that runs out. */
#ifndef RANDOM_ROWS_H
#define RANDOM_ROWS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t random_state = 1;

static inline uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static inline uint64_t below(uint64_t limit)
{
    return next_random() % limit;
}

#define CHECK(condition)                                                                                   \
    do {                                                                                                   \
        if (!(condition)) {                                                                                \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                        \
            abort();                                                                                       \
        }                                                                                                  \
    } while (0)

/* The linker puts these in the place of malloc, calloc and realloc (--wrap). */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);

static unsigned long allocations_left = -1ul; /* before there is no memory */

void *__wrap_malloc(size_t size)
{
    return allocations_left && allocations_left-- ? __real_malloc(size) : NULL;
}

void *__wrap_calloc(size_t count, size_t size)
{
    return allocations_left && allocations_left-- ? __real_calloc(count, size) : NULL;
}

void *__wrap_realloc(void *block, size_t size)
{
    return allocations_left && allocations_left-- ? __real_realloc(block, size) : NULL;
}

typedef struct {
    uint8_t data[512];
    size_t size;
} Packed;

static inline void put_byte(Packed *packed, uint8_t byte)
{
    CHECK(packed->size < sizeof packed->data);
    packed->data[packed->size++] = byte;
}

static inline void put_bytes(Packed *packed, const void *from, size_t size)
{
    CHECK(packed->size + size <= sizeof packed->data);
    memcpy(packed->data + packed->size, from, size);
    packed->size += size;
}

static inline void put_big_endian(Packed *packed, uint64_t value, int width)
{
    while (width--)
        put_byte(packed, (uint8_t)(value >> 8 * width));
}

static inline void put_unsigned(Packed *packed, uint64_t value)
{
    if (value < 0x80)
        put_byte(packed, (uint8_t)value);
    else
        put_byte(packed, 0xcf), put_big_endian(packed, value, 8);
}

static inline void put_integer(Packed *packed, int64_t value)
{
    put_byte(packed, 0xd3);
    put_big_endian(packed, (uint64_t)value, 8);
}

static inline void put_double(Packed *packed, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_byte(packed, 0xcb);
    put_big_endian(packed, bits, 8);
}

static inline void put_string(Packed *packed, const void *text, uint8_t size)
{
    put_byte(packed, 0xd9);
    put_byte(packed, size);
    put_bytes(packed, text, size);
}

#endif
