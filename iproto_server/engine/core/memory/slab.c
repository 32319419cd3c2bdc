#include "slab.h"

#include "pages.h"

#include <stdint.h>
#include <stdlib.h>

enum {
    GRAIN = 4,
    SMALL_MAX = 512,               /* up to this size there is a class for each grain, */
    SMALL_CLASSES = SMALL_MAX / GRAIN,
    SMALLEST = sizeof(void *) / GRAIN - 1, /* the class of the smallest blocks */
    STEPS = 8,                     /* and above it so many for each doubling, */
    DOUBLINGS = 5,
    LARGE_MIN = SMALL_MAX << DOUBLINGS, /* up to here; larger blocks come from malloc */
    CLASSES = SMALL_CLASSES + STEPS * DOUBLINGS,
};

/* It is aligned as blocks are, to less than pointers usually are. */
typedef struct __attribute__((packed, aligned(4))) Block {
    struct Block *next;
} Block;

typedef struct Page {
    struct Page *previous, *next; /* of the class's pages with room */
    Block *free;                  /* blocks that were freed */
    uint32_t unused;              /* where the blocks begin that were never used */
    uint32_t used;                /* blocks in use */
    uint32_t size;                /* of a block */
    uint32_t class;
} Page;

static Page *with_room[CLASSES];
static size_t held, used;

static int class_of(size_t size)
{
    if (size <= SMALL_MAX)
        return size > sizeof(Block) ? (int)((size - 1) / GRAIN) : SMALLEST;
    int doubling = 63 - __builtin_clzll(size - 1) - 9; /* 513…1024 is doubling 0 */
    size_t step = (size_t)(SMALL_MAX / STEPS) << doubling;
    return SMALL_CLASSES + STEPS * doubling + (int)((size - 1 - ((size_t)SMALL_MAX << doubling)) / step);
}

static size_t class_size(int class)
{
    if (class < SMALL_CLASSES)
        return (size_t)(class + 1) * GRAIN;
    int doubling = (class - SMALL_CLASSES) / STEPS, step = (class - SMALL_CLASSES) % STEPS;
    return ((size_t)SMALL_MAX << doubling) + (size_t)(step + 1) * ((size_t)(SMALL_MAX / STEPS) << doubling);
}

static int is_full(const Page *page)
{
    return !page->free && page->unused + page->size > PAGE_SIZE;
}

static void link_page(Page *page)
{
    page->previous = NULL;
    page->next = with_room[page->class];
    if (page->next)
        page->next->previous = page;
    with_room[page->class] = page;
}

static void unlink_page(Page *page)
{
    if (page->previous)
        page->previous->next = page->next;
    else
        with_room[page->class] = page->next;
    if (page->next)
        page->next->previous = page->previous;
}

static Page *new_page(int class)
{
    Page *page = page_take();
    if (!page)
        return NULL;
    *page = (Page){.unused = sizeof *page, .size = (uint32_t)class_size(class), .class = (uint32_t)class};
    held += PAGE_SIZE;
    link_page(page);
    return page;
}

void *slab_alloc(size_t size)
{
    if (size > LARGE_MIN) {
        void *block = malloc(size);
        if (block) {
            held += size;
            used += size;
        }
        return block;
    }
    int class = class_of(size);
    Page *page = with_room[class];
    if (!page && !(page = new_page(class)))
        return NULL;
    Block *block = page->free;
    if (block) {
        page->free = block->next;
    } else {
        block = (Block *)((char *)page + page->unused);
        page->unused += page->size;
    }
    page->used++;
    used += page->size;
    if (is_full(page))
        unlink_page(page);
    return block;
}

void slab_free(void *block, size_t size)
{
    if (size > LARGE_MIN) {
        held -= size;
        used -= size;
        free(block);
        return;
    }
    Page *page = (Page *)((uintptr_t)block & ~(uintptr_t)(PAGE_SIZE - 1));
    int was_full = is_full(page);
    ((Block *)block)->next = page->free;
    page->free = block;
    page->used--;
    used -= page->size;
    if (was_full)
        link_page(page);
    /* One empty page of a class stays, for the next row that comes where the last one went. */
    if (!page->used && (page->previous || page->next)) {
        unlink_page(page);
        held -= PAGE_SIZE;
        page_return(page);
    }
}

size_t slab_growth(size_t old_size, size_t size)
{
    size_t freed = old_size > LARGE_MIN ? old_size : 0;
    if (size > LARGE_MIN)
        return size > freed ? size - freed : 0;
    int class = class_of(size);
    if (with_room[class] || (old_size && !freed && class_of(old_size) == class))
        return 0;
    return PAGE_SIZE > freed ? PAGE_SIZE - freed : 0;
}

size_t slab_held(void)
{
    return held;
}

size_t slab_used(void)
{
    return used;
}
