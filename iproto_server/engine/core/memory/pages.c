#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, madvise */
#include "pages.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, size) ((void)(at), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(at, size) ((void)(at), (void)(size))
#endif

enum { MAPPED = 64, KEPT_MAX = 16 }; /* pages that are mapped at a time; that are given back and keep their memory */

static char *unused, *unused_end; /* of the latest mapping */
static void *kept[KEPT_MAX];
static void **released; /* pages without memory; there is room for all that were ever mapped */
static size_t kept_count, released_count, mapped_count;

static int map_pages(void)
{
    void **wider = realloc(released, (mapped_count + MAPPED) * sizeof *released);
    if (!wider)
        return -1;
    released = wider;
    const size_t size = (size_t)MAPPED * PAGE_SIZE;
    char *mapping = mmap(NULL, size + PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED)
        return -1;
    size_t before = -(uintptr_t)mapping & (PAGE_SIZE - 1); /* what is in front of the first aligned page */
    if (before)
        munmap(mapping, before);
    munmap(mapping + before + size, PAGE_SIZE - before);
    unused = mapping + before;
    unused_end = unused + size;
    mapped_count += MAPPED;
    return 0;
}

void *page_take(void)
{
    void *page;
    if (kept_count) {
        page = kept[--kept_count];
    } else if (released_count) {
        page = released[--released_count];
    } else {
        if (unused == unused_end && map_pages() < 0)
            return NULL;
        page = unused;
        unused += PAGE_SIZE;
    }
    ASAN_UNPOISON_MEMORY_REGION(page, PAGE_SIZE);
    return page;
}

void page_return(void *page)
{
    ASAN_POISON_MEMORY_REGION(page, PAGE_SIZE);
    if (kept_count < KEPT_MAX) {
        kept[kept_count++] = page;
        return;
    }
    madvise(page, PAGE_SIZE, MADV_DONTNEED); /* if the system refuses, the page keeps its memory until it is taken */
    released[released_count++] = page;
}
