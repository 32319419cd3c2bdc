#include "records.h"

#include "budget.h"
#include "slab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 8 };

#ifdef IPROTO_ENGINE_DEBUG
/* FNV-1a. */
static uint32_t add_to_checksum(uint32_t sum, const void *bytes, size_t size)
{
    for (const uint8_t *at = bytes; size--; at++)
        sum = (sum ^ *at) * 16777619u;
    return sum;
}

static uint32_t checksum_of(const Record *record)
{
    uint32_t sum = add_to_checksum(2166136261u, record, 2 * sizeof record->size);
    return add_to_checksum(sum, record->data, record->size);
}

void record_verify(const Record *record)
{
    if (record->checksum == checksum_of(record))
        return;
    fprintf(stderr, "the record at %p, of %u bytes, was overwritten\n", (const void *)record, record->size);
    abort();
}
#endif

Record *record_new(const void *key, size_t key_size, const void *data, size_t size)
{
    if (key_size + size > UINT32_MAX - sizeof(Record))
        return NULL;
    Record *record = slab_alloc(sizeof *record + key_size + size);
    if (!record)
        return NULL;
    record->size = (uint32_t)(key_size + size);
    record->key_size = (uint32_t)key_size;
    if (key_size)
        memcpy(record->data, key, key_size);
    if (size)
        memcpy(record->data + key_size, data, size);
#ifdef IPROTO_ENGINE_DEBUG
    record->checksum = checksum_of(record);
#endif
    return record;
}

void record_free(Record *record)
{
    record_verify(record);
    slab_free(record, sizeof *record + record->size);
}

int records_reserve(Records *records)
{
    if (records->free != records->count || records->count < records->room)
        return 0;
    if (records->room > HANDLE_MAX / 2)
        return -1;
    uint32_t room = records->room ? 2 * records->room : FIRST_ROOM;
    uintptr_t *table = realloc(records->table, room * sizeof *table);
    if (!table)
        return -1;
    records->table = table;
    records->room = room;
    return 0;
}

Handle32 records_put(Records *records, Record *record)
{
    Handle32 handle = records->free;
    if (handle == records->count) {
        records->free = ++records->count;
        budget.tables += sizeof *records->table;
    } else {
        records->free = (uint32_t)(records->table[handle] >> 1);
    }
    records->table[handle] = (uintptr_t)record;
    return handle;
}

Record *records_swap(Records *records, Handle32 handle, Record *record)
{
    Record *old = (Record *)records->table[handle];
    records->table[handle] = (uintptr_t)record;
    return old;
}

void records_exchange(Records *records, Handle32 handle, Record *record)
{
    record_free(records_swap(records, handle, record));
}

Handle32 records_add(Records *records, const void *key, size_t key_size, const void *data, size_t size)
{
    Record *record = records_reserve(records) < 0 ? NULL : record_new(key, key_size, data, size);
    return record ? records_put(records, record) : NO_HANDLE;
}

int records_replace(Records *records, Handle32 handle, const void *key, size_t key_size, const void *data, size_t size)
{
    Record *record = record_new(key, key_size, data, size);
    if (!record)
        return -1;
    records_exchange(records, handle, record);
    return 0;
}

Record *records_take(Records *records, Handle32 handle)
{
    Record *old = records_swap(records, handle, NULL);
    records->table[handle] = (uintptr_t)records->free << 1 | 1;
    records->free = handle;
    return old;
}

void records_remove(Records *records, Handle32 handle)
{
    record_free(records_take(records, handle));
}

void records_clear(Records *records)
{
    for (uint32_t handle = 0; handle < records->count; handle++)
        if (!(records->table[handle] & 1))
            record_free((Record *)records->table[handle]);
    budget.tables -= records->count * sizeof *records->table;
    free(records->table);
    *records = (Records){0};
}
