/* The leaves of a tree, and the changes of its entries. */
#include "leaf.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 8 }; /* of the only leaf of a small tree */

/* -- leaves -- */

static void release_spares(Tree *tree)
{
    while (tree->spare_count)
        leaf_free(tree->spares[--tree->spare_count]);
}

/* A leaf for whole hints. Returns NULL without memory. */
static Leaf *new_leaf(Tree *tree, int room)
{
    if (tree->spare_count && tree->spares[tree->spare_count - 1]->room >= room)
        return tree->spares[--tree->spare_count];
    return leaf_new(room, leaf_whole_form(tree));
}

static void free_leaf(Tree *tree, Leaf *leaf)
{
    if (tree->spare_count || !leaf_is_whole(tree, leaf)) {
        leaf_free(leaf);
    } else {
        leaf->count = 0;
        tree->spares[tree->spare_count++] = leaf;
    }
}

/* Keep another form of the hints of the leaf at a number, whose whole hints are given. Returns NULL without memory. */
static Leaf *change_form(Tree *tree, size_t number, LeafForm form, const KeyHint *hints)
{
    Leaf *leaf = tree_leaf(tree, number), *changed = leaf;
    if (form.width != leaf->width) {
        changed = leaf_new(leaf->room, form);
        if (!changed)
            return NULL;
        memcpy(changed->handles, leaf->handles, leaf->count * sizeof *leaf->handles);
        changed->count = leaf->count;
        tree->leaves[tree->start + number] = changed;
        free_leaf(tree, leaf);
    }
    leaf_set_form(changed, form, *hints);
    for (int entry = 0; entry < changed->count; entry++)
        leaf_set_hint(changed, entry, hints[entry]);
    return changed;
}

/* Keep no more of the hints of the leaf at a number than is needed. Without memory it stays as it is. */
static void narrow_leaf(Tree *tree, size_t number)
{
    const Leaf *leaf = tree_leaf(tree, number);
    KeyHint hints[TREE_LEAF_ROOM];
    leaf_read_hints(leaf, hints);
    LeafForm form = leaf_narrow_form(tree, leaf_differing_bits(hints, leaf->count));
    if (form.width < leaf->width)
        change_form(tree, number, form, hints);
}

/* Let the leaf at a number keep one more hint. Returns NULL without memory, of which there is some if it was reserved. */
static Leaf *accept_hint(Tree *tree, size_t number, KeyHint hint)
{
    Leaf *leaf = tree_leaf(tree, number);
    if (leaf_fits(leaf, hint))
        return leaf;
    KeyHint hints[TREE_LEAF_ROOM];
    leaf_read_hints(leaf, hints);
    HintBits differing = leaf_differing_bits(hints, leaf->count) | (hint_bits(hint) ^ hint_bits(leaf->count ? *hints : hint));
    Leaf *wider = change_form(tree, number, leaf_narrow_form(tree, differing), hints);
    if (wider || !tree->spare_count || tree->spares[tree->spare_count - 1]->room < leaf->room)
        return wider;
    wider = tree->spares[--tree->spare_count];
    leaf_move(leaf, 0, wider);
    tree->leaves[tree->start + number] = wider;
    leaf_free(leaf);
    return wider;
}

/* The room of the leaf that takes the place of a full one. */
static int wider_room(const Leaf *leaf)
{
    return leaf->room * 4 < TREE_LEAF_ROOM ? leaf->room * 4 : TREE_LEAF_ROOM;
}

/* Make room for one more leaf in the array. Returns -1 without memory. */
static int widen_array(Tree *tree)
{
    if (tree->start + tree->count < tree->room)
        return 0;
    size_t room = 2 * tree->count + 4;
    Leaf **leaves = malloc(room * sizeof *leaves);
    if (!leaves)
        return -1;
    if (tree->count)
        memcpy(leaves, tree->leaves + tree->start, tree->count * sizeof *leaves);
    free(tree->leaves);
    tree->leaves = leaves;
    tree->start = 0;
    tree->room = room;
    return 0;
}

/* Make a leaf at a number. Returns NULL without memory. */
static Leaf *add_leaf(Tree *tree, size_t number)
{
    Leaf *leaf = widen_array(tree) < 0 ? NULL : new_leaf(tree, tree->count ? TREE_LEAF_ROOM : FIRST_ROOM);
    if (!leaf)
        return NULL;
    Leaf **at = tree->leaves + tree->start + number;
    memmove(at + 1, at, (tree->count - number) * sizeof *at);
    *at = leaf;
    tree->count++;
    return leaf;
}

static void drop_leaf(Tree *tree, size_t number)
{
    Leaf **at = tree->leaves + tree->start + number;
    free_leaf(tree, *at);
    tree->count--;
    if (!number)
        tree->start++;
    else
        memmove(at, at + 1, (tree->count - number) * sizeof *at);
    if (!tree->count)
        tree->start = 0;
}

/* Give the leaf at a number more room. Returns NULL without memory. */
static Leaf *widen(Tree *tree, size_t number)
{
    Leaf *leaf = tree_leaf(tree, number);
    Leaf *wider = new_leaf(tree, wider_room(leaf));
    if (wider) {
        leaf_move(leaf, 0, wider);
        free_leaf(tree, leaf);
        tree->leaves[tree->start + number] = wider;
    }
    return wider;
}

/* Let a leaf take the entries of the next one. Without memory they stay. */
static void join_next(Tree *tree, size_t number)
{
    Leaf *leaf = tree_leaf(tree, number), *next = tree_leaf(tree, number + 1);
    KeyHint hints[TREE_LEAF_ROOM];
    leaf_read_hints(leaf, hints);
    leaf_read_hints(next, hints + leaf->count);
    LeafForm form = leaf_narrow_form(tree, leaf_differing_bits(hints, leaf->count + next->count));
    if ((leaf = change_form(tree, number, form, hints))) {
        leaf_move(next, 0, leaf);
        drop_leaf(tree, number + 1);
    }
}

/* Join neighbours that have become small. */
static void join_leaves(Tree *tree, size_t number)
{
    for (size_t left = number ? number - 1 : 0; left <= number && left + 1 < tree->count; left++) {
        const Leaf *one = tree_leaf(tree, left), *other = tree_leaf(tree, left + 1);
        if (one->count + other->count <= TREE_LEAF_ROOM / 2 && one->room == TREE_LEAF_ROOM) {
            join_next(tree, left);
            return;
        }
    }
}

/* -- changes -- */

int tree_reserve(Tree *tree)
{
    const Leaf *only = tree->count == 1 ? tree_leaf(tree, 0) : NULL;
    if (only && only->count < only->room && leaf_is_whole(tree, only))
        return 0; /* should its last entry be removed first, it becomes the spare one itself */
    int room = !tree->count ? FIRST_ROOM : only ? wider_room(only) : TREE_LEAF_ROOM;
    int needed = room < TREE_LEAF_ROOM ? 1 : TREE_SPARES;
    if (widen_array(tree) < 0)
        return -1;
    if (tree->spare_count && tree->spares[0]->room < room)
        release_spares(tree);
    while (tree->spare_count < needed) {
        Leaf *leaf = leaf_new(room, leaf_whole_form(tree));
        if (!leaf)
            return -1;
        tree->spares[tree->spare_count++] = leaf;
    }
    return 0;
}

int tree_reserve_key(Tree *tree, size_t size)
{
    enum { EXACT_PART_MAX = 12 }; /* bytes of a number's key, and one for nil */
    size_t exact = tree->layout ? (size_t)tree->layout->count * EXACT_PART_MAX : 0;
    return key_buffer_reserve(&tree->scratch, size > exact ? size : exact);
}

/* Make room for an entry in a full leaf, by a new one behind it, to which the place may move. Returns -1 without
 * memory. */
static int split(Tree *tree, Place *place)
{
    /* Behind the last entry a new leaf begins: a tree that grows there has full leaves. */
    int kept = place->entry == TREE_LEAF_ROOM ? TREE_LEAF_ROOM : TREE_LEAF_ROOM / 2;
    Leaf *next = add_leaf(tree, place->leaf + 1);
    if (!next)
        return -1;
    leaf_move(tree_leaf(tree, place->leaf), kept, next);
    narrow_leaf(tree, place->leaf);
    if (next->count)
        narrow_leaf(tree, place->leaf + 1);
    if (place->entry > kept || !tree_leaf(tree, place->leaf + 1)->count) {
        place->leaf++;
        place->entry -= kept;
    }
    return 0;
}

int tree_insert(Tree *tree, Place place, const TreeKey *key, Handle32 handle)
{
    if (!tree->count && !add_leaf(tree, 0))
        return -1;
    Leaf *leaf = tree_leaf(tree, place.leaf);
    int is_full = leaf->count == leaf->room;
    if (is_full && leaf->room < TREE_LEAF_ROOM ? !widen(tree, place.leaf) : is_full && split(tree, &place) < 0)
        return -1;
    if (!(leaf = accept_hint(tree, place.leaf, key->hint)))
        return -1;
    leaf_shift(leaf, place.entry, place.entry + 1);
    leaf_set_hint(leaf, place.entry, key->hint);
    leaf->handles[place.entry] = handle;
    tree->size++;
    return 0;
}

int tree_fill_begin(Tree *tree, size_t count)
{
    size_t leaves = (count + TREE_LEAF_ROOM - 1) / TREE_LEAF_ROOM;
    Leaf **array = malloc((leaves + 1) * sizeof *array);
    if (!array)
        return -1;
    free(tree->leaves);
    tree->leaves = array;
    tree->start = 0;
    tree->room = leaves + 1;
    return 0;
}

int tree_fill_leaf(Tree *tree, const KeyHint *hints, const Handle32 *handles, int count)
{
    int is_only = tree->room == 2, room = TREE_LEAF_ROOM;
    while (is_only && room / 4 >= FIRST_ROOM && room / 4 >= count)
        room /= 4; /* as if they had been added one by one */
    LeafForm form = is_only ? leaf_whole_form(tree) : leaf_narrow_form(tree, leaf_differing_bits(hints, count));
    Leaf *leaf = leaf_new(room, form);
    if (!leaf)
        return -1;
    leaf_set_form(leaf, form, *hints);
    for (int place = 0; place < count; place++)
        leaf_set_hint(leaf, place, hints[place]);
    memcpy(leaf->handles, handles, (size_t)count * sizeof *handles);
    leaf->count = (uint16_t)count;
    tree->leaves[tree->count++] = leaf;
    tree->size += (size_t)count;
    return 0;
}

int tree_fill(Tree *tree, const KeyHint *hints, const Handle32 *handles, size_t count)
{
    if (tree_fill_begin(tree, count) < 0)
        return -1;
    for (size_t first = 0; first < count; first += TREE_LEAF_ROOM) {
        size_t part = count - first < TREE_LEAF_ROOM ? count - first : TREE_LEAF_ROOM;
        if (tree_fill_leaf(tree, hints + first, handles + first, (int)part) < 0) {
            tree_clear(tree);
            return -1;
        }
    }
    return 0;
}

void tree_remove(Tree *tree, Place place)
{
    Leaf *leaf = tree_leaf(tree, place.leaf);
    leaf_shift(leaf, place.entry + 1, place.entry);
    tree->size--;
    if (!leaf->count)
        drop_leaf(tree, place.leaf);
    else if (leaf->count < TREE_LEAF_ROOM / 4)
        join_leaves(tree, place.leaf);
}

void tree_clear(Tree *tree)
{
    while (tree->count)
        leaf_free(tree_leaf(tree, --tree->count));
    free(tree->leaves);
    release_spares(tree);
    key_buffer_free(&tree->scratch);
    tree->scratch = (KeyBuffer){0};
    tree->leaves = NULL;
    tree->start = tree->room = tree->size = 0;
    tree->latest = (Place){0, 0, 0};
}

size_t tree_memory(const Tree *tree)
{
    size_t size = tree->room * sizeof *tree->leaves;
    for (size_t number = 0; number < tree->count; number++)
        size += leaf_size(tree_leaf(tree, number)->room, tree_leaf(tree, number)->width);
    return size;
}
