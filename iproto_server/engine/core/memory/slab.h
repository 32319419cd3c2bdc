/* Memory for records: blocks of one size together in pages, so that a block costs no more than its size.
 *
 * There is one allocator for the process. It is not safe for threads: its callers hold the interpreter's lock.
 */
#ifndef IPROTO_ENGINE_SLAB_H
#define IPROTO_ENGINE_SLAB_H

#include <stddef.h>

/* Allocate a block, aligned to 4 bytes. Returns NULL without memory. */
void *slab_alloc(size_t size);

/* Free a block. `size` is the size it was allocated with. */
void slab_free(void *block, size_t size);

/* How many bytes more are held once a block has taken the place of one of `old_size`, which is freed afterwards; 0 for
 * none. */
size_t slab_growth(size_t old_size, size_t size);

/* Bytes in pages and large blocks, and bytes of the blocks in use. */
size_t slab_held(void);
size_t slab_used(void);

#endif
