/* Pages: aligned pieces of memory of one size, for the slab.
 *
 * They come from mappings of their own. In malloc's heap each would need the room of two to be aligned.
 */
#ifndef IPROTO_ENGINE_PAGES_H
#define IPROTO_ENGINE_PAGES_H

enum { PAGE_SIZE = 64 * 1024 };

/* Take a page, aligned to its size; its contents are undefined. Returns NULL without memory. */
void *page_take(void);

/* Give a page back. All but a few of these go back to the system. */
void page_return(void *page);

#endif
