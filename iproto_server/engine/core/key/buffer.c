#include "buffer.h"

#include <stdlib.h>
#include <string.h>

void key_buffer_free(KeyBuffer *buffer)
{
    if (buffer->data != buffer->first)
        free(buffer->data);
    buffer->data = NULL;
    buffer->size = 0;
}

uint8_t *key_buffer_grow(KeyBuffer *buffer, size_t count)
{
    if (!buffer->data) {
        buffer->data = buffer->first;
        buffer->room = sizeof buffer->first;
    }
    if (buffer->size + count > buffer->room) {
        size_t room = 2 * (buffer->size + count);
        uint8_t *data = buffer->data == buffer->first ? malloc(room) : realloc(buffer->data, room);
        if (!data)
            return NULL;
        if (buffer->data == buffer->first)
            memcpy(data, buffer->first, buffer->size);
        buffer->data = data;
        buffer->room = room;
    }
    uint8_t *at = buffer->data + buffer->size;
    buffer->size += count;
    return at;
}

int key_buffer_reserve(KeyBuffer *buffer, size_t room)
{
    size_t size = buffer->size;
    int done = room <= size || key_buffer_grow(buffer, room - size) ? 0 : -1;
    buffer->size = size;
    return done;
}

int key_buffer_set(KeyBuffer *buffer, const uint8_t *data, size_t size)
{
    buffer->size = 0;
    uint8_t *to = key_buffer_grow(buffer, size);
    if (!to)
        return -1;
    if (size)
        memcpy(to, data, size);
    return 0;
}
