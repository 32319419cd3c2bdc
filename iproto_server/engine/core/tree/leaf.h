/* The inside of a leaf, for the files of this folder: see Leaf in tree.h. */
#ifndef IPROTO_ENGINE_LEAF_H
#define IPROTO_ENGINE_LEAF_H

#include "tree.h"

/* -- hints -- */

typedef unsigned __int128 HintBits;

static inline HintBits hint_bits(KeyHint hint)
{
    return (HintBits)hint.high << 64 | hint.low;
}

static inline KeyHint hint_of_bits(HintBits bits)
{
    return (KeyHint){(uint64_t)(bits >> 64), (uint64_t)bits};
}

/* Which bits of its hints a leaf keeps: see Leaf. */
typedef struct {
    uint8_t width, shift;
} LeafForm;

static inline LeafForm leaf_whole_form(const Tree *tree)
{
    return tree->layout && tree->layout->is_wide ? (LeafForm){16, 0} : (LeafForm){8, 64};
}

static inline int leaf_is_whole(const Tree *tree, const Leaf *leaf)
{
    return leaf->width == leaf_whole_form(tree).width;
}

/* The bits that are kept. */
static inline HintBits leaf_mask(LeafForm form)
{
    return form.width == 16 ? ~(HintBits)0 : (((HintBits)1 << 8 * form.width) - 1) << form.shift;
}

static inline LeafForm leaf_form(const Leaf *leaf)
{
    return (LeafForm){leaf->width, leaf->shift};
}

/* What is kept of a hint, of a leaf that keeps up to 8 bytes. */
static inline uint64_t leaf_kept_hint(const Leaf *leaf, int entry)
{
    return load_big_endian(leaf->hints + entry * leaf->width, 8) >> (64 - 8 * leaf->width);
}

static inline KeyHint leaf_hint(const Leaf *leaf, int entry)
{
    const uint8_t *at = leaf->hints + entry * leaf->width;
    if (leaf->width == 16)
        return (KeyHint){load_big_endian(at, 8), load_big_endian(at + 8, 8)};
    return hint_of_bits(hint_bits(leaf->base) | (HintBits)leaf_kept_hint(leaf, entry) << leaf->shift);
}

static inline int leaf_fits(const Leaf *leaf, KeyHint hint)
{
    return !((hint_bits(hint) ^ hint_bits(leaf->base)) & ~leaf_mask(leaf_form(leaf)));
}

/* Keep a hint that fits. */
static inline void leaf_set_hint(Leaf *leaf, int entry, KeyHint hint)
{
    uint64_t kept = (uint64_t)(hint_bits(hint) >> leaf->shift), low = hint.low;
    uint8_t *at = leaf->hints + entry * leaf->width;
    if (leaf->width == 16) {
        kept = big_endian_64(hint.high);
        low = big_endian_64(low);
        memcpy(at, &kept, 8);
        memcpy(at + 8, &low, 8);
        return;
    }
    for (int place = leaf->width; place--; kept >>= 8)
        at[place] = (uint8_t)kept;
}

/* The narrowest form for hints that differ in some bits. */
LeafForm leaf_narrow_form(const Tree *tree, HintBits differing);

/* Begin to keep hints of a form, of which one is given. */
void leaf_set_form(Leaf *leaf, LeafForm form, KeyHint some);

/* The bits in which hints differ. */
HintBits leaf_differing_bits(const KeyHint *hints, int count);

void leaf_read_hints(const Leaf *leaf, KeyHint *hints);

/* -- entries -- */

/* Move entries, from a place on, from one leaf to the end of another that keeps their hints. */
void leaf_move(Leaf *from, int first, Leaf *to);

/* Move a leaf's entries from a place on to another place. */
void leaf_shift(Leaf *leaf, int from, int to);

/* -- memory -- */

size_t leaf_size(int room, int width); /* bytes of a leaf */

Leaf *leaf_new(int room, LeafForm form); /* NULL without memory */
void leaf_free(Leaf *leaf);

#endif
