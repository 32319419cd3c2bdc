/* Records behind handles of four bytes, which indexes hold in place of pointers.
 *
 * Handles are given out last in, first out: undoing changes in reverse order gives every record its old handle back.
 *
 * With IPROTO_ENGINE_DEBUG a record carries a checksum, which is verified when the record is read and when it is freed,
 * so that a stray write is found.
 */
#ifndef IPROTO_ENGINE_RECORDS_H
#define IPROTO_ENGINE_RECORDS_H

#include <stddef.h>
#include <stdint.h>

typedef uint32_t Handle32;
#define NO_HANDLE UINT32_MAX
#define HANDLE_MAX ((Handle32)INT32_MAX) /* the highest bit is for those who hold handles */

/* A row, or a key and a row or value: then the key comes first, and `key_size` says how long it is. */
typedef struct {
    uint32_t size, key_size;
#ifdef IPROTO_ENGINE_DEBUG
    uint32_t checksum; /* of all the rest */
#endif
    uint8_t data[];
} Record;

typedef struct {
    uintptr_t *table; /* a Record, or the next free handle in the upper bits and a one in the lowest */
    uint32_t count, room, free; /* `free`: the handle that is given out next; `count` if none was freed */
} Records;

/* A record that is not stored yet. Returns NULL without memory. */
Record *record_new(const void *key, size_t key_size, const void *data, size_t size);
void record_free(Record *record);

/* Make sure that a handle can be given out. Returns -1 without memory. */
int records_reserve(Records *records);

/* Store a record under a handle that was reserved; put one in the place of another. Both take it over. */
Handle32 records_put(Records *records, Record *record);
void records_exchange(Records *records, Handle32 handle, Record *record);

/* The same as `records_exchange`, and as `records_remove`, but the old record is not freed: the caller has it. */
Record *records_swap(Records *records, Handle32 handle, Record *record);
Record *records_take(Records *records, Handle32 handle);

/* Store a record made of two pieces of bytes. Returns NO_HANDLE without memory. */
Handle32 records_add(Records *records, const void *key, size_t key_size, const void *data, size_t size);

/* Put other bytes in the place of a record's. Returns -1, with nothing changed, without memory. */
int records_replace(Records *records, Handle32 handle, const void *key, size_t key_size, const void *data, size_t size);

/* Remove a record. */
void records_remove(Records *records, Handle32 handle);

/* Remove all records, and free the memory. */
void records_clear(Records *records);

#ifdef IPROTO_ENGINE_DEBUG
/* End the process if a record has changed since it was made: a record never does. */
void record_verify(const Record *record);
#else
#define record_verify(record) ((void)(record))
#endif

/* The record of a handle; NULL if it has none. */
static inline const Record *records_at(const Records *records, Handle32 handle)
{
    uintptr_t entry = handle < records->count ? records->table[handle] : 1;
    if (entry & 1)
        return NULL;
    record_verify((const Record *)entry);
    return (const Record *)entry;
}

#endif
