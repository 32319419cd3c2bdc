#include "leaf.h"

#include "../memory/budget.h"

#include <stdlib.h>
#include <string.h>

/* -- hints -- */

LeafForm leaf_narrow_form(const Tree *tree, HintBits differing)
{
    uint64_t high = (uint64_t)(differing >> 64), low = (uint64_t)differing;
    if (!differing)
        return (LeafForm){1, 120};
    int first = high ? 127 - __builtin_clzll(high) : 63 - __builtin_clzll(low);
    int last = low ? __builtin_ctzll(low) : 64 + __builtin_ctzll(high), width = (first - last) / 8 + 1;
    if (width >= leaf_whole_form(tree).width || width > 8)
        return leaf_whole_form(tree);
    return (LeafForm){(uint8_t)width, (uint8_t)(last < 128 - 8 * width ? last : 128 - 8 * width)};
}

void leaf_set_form(Leaf *leaf, LeafForm form, KeyHint some)
{
    leaf->width = form.width;
    leaf->shift = form.shift;
    leaf->base = hint_of_bits(hint_bits(some) & ~leaf_mask(form));
}

HintBits leaf_differing_bits(const KeyHint *hints, int count)
{
    HintBits differing = 0;
    for (int place = 1; place < count; place++)
        differing |= hint_bits(hints[place]) ^ hint_bits(*hints);
    return differing;
}

void leaf_read_hints(const Leaf *leaf, KeyHint *hints)
{
    for (int entry = 0; entry < leaf->count; entry++)
        hints[entry] = leaf_hint(leaf, entry);
}

/* -- entries and memory -- */

void leaf_move(Leaf *from, int first, Leaf *to)
{
    int moved = from->count - first;
    for (int entry = 0; entry < moved; entry++)
        leaf_set_hint(to, to->count + entry, leaf_hint(from, first + entry));
    memcpy(to->handles + to->count, from->handles + first, (size_t)moved * sizeof *to->handles);
    to->count = (uint16_t)(to->count + moved);
    from->count = (uint16_t)first;
}

size_t leaf_size(int room, int width)
{
    return sizeof(Leaf) + (size_t)room * ((size_t)width + sizeof(Handle32));
}

/* An array has as much room again as it has leaves. */
static size_t leaf_memory(int room, int width)
{
    return leaf_size(room, width) + 2 * sizeof(Leaf *);
}

Leaf *leaf_new(int room, LeafForm form)
{
    Leaf *leaf = malloc(leaf_size(room, form.width));
    if (leaf) {
        budget_add_leaves(leaf_memory(room, form.width));
        *leaf = (Leaf){.room = (uint16_t)room, .width = form.width, .shift = form.shift};
        leaf->handles = (Handle32 *)(leaf->hints + room * form.width); /* rooms are multiples of eight */
    }
    return leaf;
}

void leaf_free(Leaf *leaf)
{
    budget_remove_leaves(leaf_memory(leaf->room, leaf->width));
    free(leaf);
}

void leaf_shift(Leaf *leaf, int from, int to)
{
    size_t moved = (size_t)(leaf->count - from);
    memmove(leaf->hints + to * leaf->width, leaf->hints + from * leaf->width, moved * leaf->width);
    memmove(leaf->handles + to, leaf->handles + from, moved * sizeof *leaf->handles);
    leaf->count = (uint16_t)(leaf->count + to - from);
}

_Static_assert(BUDGET_ENTRY == TREE_SPARES * (sizeof(Leaf) + TREE_LEAF_ROOM * (16 + sizeof(Handle32)) + 2 * sizeof(Leaf *)),
               "the leaves that an entry may need");

size_t tree_leaf_memory(int room, int has_wide_hints)
{
    return leaf_memory(room, has_wide_hints ? 16 : 8);
}
