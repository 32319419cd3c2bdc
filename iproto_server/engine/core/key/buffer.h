/* Bytes that grow, of a key in the making. */
#ifndef IPROTO_ENGINE_BUFFER_H
#define IPROTO_ENGINE_BUFFER_H

#include <stddef.h>
#include <stdint.h>

/* All zeros is an empty one. */
typedef struct {
    uint8_t *data;
    size_t size, room;
    uint8_t first[120];
} KeyBuffer;

void key_buffer_free(KeyBuffer *buffer);

/* Add so many bytes at the end. Returns their position; NULL without memory. */
uint8_t *key_buffer_grow(KeyBuffer *buffer, size_t count);

/* Make room for so many bytes in all; put bytes in the place of those that are there. Both return -1 without memory. */
int key_buffer_reserve(KeyBuffer *buffer, size_t room);
int key_buffer_set(KeyBuffer *buffer, const uint8_t *data, size_t size);

#endif
