#include "tree.h"

#include "../memory/budget.h"
#include "../values/msgpack.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 8 }; /* of the only leaf of a small tree */

TreeKey tree_key(Tree *tree, const uint8_t *key, size_t size)
{
    TreeKey made = {key, size, {0, 0}, 0};
    if (size && size == tree->recent_key.size && !memcmp(key, tree->recent, size)) {
        made = tree->recent_key;
        made.key = key;
        return made;
    }
    made.hint = key_hint(tree->layout, key, size, &made.is_exact);
    if (size <= TREE_RECENT_ROOM) {
        memcpy(tree->recent, key, size);
        tree->recent_key = made;
    }
    return made;
}

const uint8_t *tree_record_key(Tree *tree, Handle32 handle, size_t *size)
{
    return tree_record_key_beginning(tree, handle, SIZE_MAX, size);
}

const uint8_t *tree_record_key_beginning(Tree *tree, Handle32 handle, size_t enough, size_t *size)
{
    const Record *record = tree_record(tree, handle);
    if (!record)
        return NULL;
    if (record->key_size && (!tree->has_references || handle & TREE_PAIR)) {
        *size = record->key_size;
        return record->data;
    }
    RowFields row;
    if (!tree->layout || !row_fields(&row, record->data + record->key_size, record->size - record->key_size)
        || key_beginning(tree->layout, &row, enough, &tree->scratch) <= 0)
        return NULL;
    *size = tree->scratch.size;
    return tree->scratch.data;
}

static int compare_bytes(const uint8_t *one, size_t one_size, const uint8_t *other, size_t other_size)
{
    int order = memcmp(one, other, one_size < other_size ? one_size : other_size);
    return order ? order : (one_size > other_size) - (one_size < other_size);
}

/* -- hints in leaves -- */

typedef unsigned __int128 Bits;

static inline Bits bits_of(KeyHint hint)
{
    return (Bits)hint.high << 64 | hint.low;
}

static inline KeyHint hint_of(Bits bits)
{
    return (KeyHint){(uint64_t)(bits >> 64), (uint64_t)bits};
}

/* Which bits of its hints a leaf keeps: see Leaf. */
typedef struct {
    uint8_t width, shift;
} Form;

static inline Form whole_form(const Tree *tree)
{
    return tree->layout && tree->layout->is_wide ? (Form){16, 0} : (Form){8, 64};
}

static inline int is_whole(const Tree *tree, const Leaf *leaf)
{
    return leaf->width == whole_form(tree).width;
}

/* The narrowest form for hints that differ in some bits. */
static Form narrow_form(const Tree *tree, Bits differing)
{
    uint64_t high = (uint64_t)(differing >> 64), low = (uint64_t)differing;
    if (!differing)
        return (Form){1, 120};
    int first = high ? 127 - __builtin_clzll(high) : 63 - __builtin_clzll(low);
    int last = low ? __builtin_ctzll(low) : 64 + __builtin_ctzll(high), width = (first - last) / 8 + 1;
    if (width >= whole_form(tree).width || width > 8)
        return whole_form(tree);
    return (Form){(uint8_t)width, (uint8_t)(last < 128 - 8 * width ? last : 128 - 8 * width)};
}

/* The bits that are kept. */
static inline Bits mask_of(Form form)
{
    return form.width == 16 ? ~(Bits)0 : (((Bits)1 << 8 * form.width) - 1) << form.shift;
}

static inline Form form_of(const Leaf *leaf)
{
    return (Form){leaf->width, leaf->shift};
}

/* What is kept of a hint, of a leaf that keeps up to 8 bytes. */
static inline uint64_t kept_hint(const Leaf *leaf, int entry)
{
    return load_big_endian(leaf->hints + entry * leaf->width, 8) >> (64 - 8 * leaf->width);
}

static inline KeyHint leaf_hint(const Leaf *leaf, int entry)
{
    const uint8_t *at = leaf->hints + entry * leaf->width;
    if (leaf->width == 16)
        return (KeyHint){load_big_endian(at, 8), load_big_endian(at + 8, 8)};
    return hint_of(bits_of(leaf->base) | (Bits)kept_hint(leaf, entry) << leaf->shift);
}

static inline int does_fit(const Leaf *leaf, KeyHint hint)
{
    return !((bits_of(hint) ^ bits_of(leaf->base)) & ~mask_of(form_of(leaf)));
}

/* Keep a hint that fits. */
static inline void set_hint(Leaf *leaf, int entry, KeyHint hint)
{
    uint64_t kept = (uint64_t)(bits_of(hint) >> leaf->shift), low = hint.low;
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

/* Begin to keep hints of a form, of which one is given. */
static void set_form(Leaf *leaf, Form form, KeyHint some)
{
    leaf->width = form.width;
    leaf->shift = form.shift;
    leaf->base = hint_of(bits_of(some) & ~mask_of(form));
}

/* The bits in which hints differ. */
static Bits differing_bits(const KeyHint *hints, int count)
{
    Bits differing = 0;
    for (int place = 1; place < count; place++)
        differing |= bits_of(hints[place]) ^ bits_of(*hints);
    return differing;
}

static void read_hints(const Leaf *leaf, KeyHint *hints)
{
    for (int entry = 0; entry < leaf->count; entry++)
        hints[entry] = leaf_hint(leaf, entry);
}

KeyHint tree_hint(const Tree *tree, Place place)
{
    return leaf_hint(tree_leaf(tree, place.leaf), place.entry);
}

/* -- searching -- */

/* The order of a row's key and another one with the same hint. */
static int compare_keys(Tree *tree, const Leaf *leaf, int entry, const TreeKey *key)
{
    size_t size = 0;
    const uint8_t *own = tree_record_key(tree, leaf->handles[entry], &size);
    return own ? compare_bytes(own, size, key->key, key->size) : -1;
}

/* The order of an entry and a key: negative, zero or positive. */
static inline int compare(Tree *tree, const Leaf *leaf, int entry, const TreeKey *key)
{
    KeyHint hint = leaf_hint(leaf, entry);
    if (hint.high != key->hint.high)
        return hint.high < key->hint.high ? -1 : 1;
    if (hint.low != key->hint.low)
        return hint.low < key->hint.low ? -1 : 1;
    return key->is_exact ? 0 : compare_keys(tree, leaf, entry, key);
}

/* The first entry of a leaf that is not below a key. */
static int search_leaf(Tree *tree, const Leaf *leaf, const TreeKey *key, int *is_found)
{
    int first = 0, end = leaf->count, is_narrow = leaf->width <= 8, tie = 0;
    uint64_t wanted = 0;
    if (is_narrow) {
        /* The bits above those that are kept are the same in all, and so are those below. */
        Bits above = mask_of(form_of(leaf)) + (((Bits)1 << leaf->shift) - 1), below = ((Bits)1 << leaf->shift) - 1;
        Bits bits = bits_of(key->hint), base = bits_of(leaf->base);
        if ((bits & ~above) != (base & ~above))
            return bits < base ? 0 : end;
        if ((bits & below) != (base & below))
            tie = (base & below) < (bits & below) ? -1 : 1;
        wanted = (uint64_t)((bits & above) >> leaf->shift);
    }
    while (first < end) {
        int middle = (first + end) / 2, order;
        if (is_narrow) {
            uint64_t kept = kept_hint(leaf, middle);
            if (kept != wanted)
                order = kept < wanted ? -1 : 1;
            else
                order = tie || key->is_exact ? tie : compare_keys(tree, leaf, middle, key);
        } else {
            order = compare(tree, leaf, middle, key);
        }
        if (order < 0) {
            first = middle + 1;
        } else {
            end = middle;
            *is_found |= !order;
        }
    }
    return first;
}

/* Look at the ends of a tree, where most changes happen: the newest row comes last, and the oldest is removed first.
 * Returns whether the first entry that is not below a key is found so. */
static inline int find_at_ends(Tree *tree, const TreeKey *key, Place *place)
{
    int order = compare(tree, tree_leaf(tree, 0), 0, key);
    *place = (Place){0, 0, !order};
    if (order >= 0)
        return 1;
    Leaf *last = tree_leaf(tree, tree->count - 1);
    order = compare(tree, last, last->count - 1, key);
    *place = (Place){tree->count - 1, last->count - (order >= 0), !order};
    return order <= 0;
}

static Place search(Tree *tree, const TreeKey *key)
{
    Place place = {0, 0, 0};
    if (!tree->count || find_at_ends(tree, key, &place))
        return place;
    place.is_found = 0;
    size_t low = 0, high = tree->count; /* the leaf is the last one that does not begin above the key */
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (compare(tree, tree_leaf(tree, middle), 0, key) <= 0)
            low = middle;
        else
            high = middle;
    }
    place.leaf = low;
    place.entry = search_leaf(tree, tree_leaf(tree, low), key, &place.is_found);
    return place;
}

Place tree_find(Tree *tree, const TreeKey *key)
{
    Place *latest = &tree->latest;
    if (latest->leaf < tree->count && latest->entry < tree_leaf(tree, latest->leaf)->count
        && !compare(tree, tree_leaf(tree, latest->leaf), latest->entry, key))
        latest->is_found = 1;
    else
        *latest = search(tree, key);
    return *latest;
}

/* The place behind a leaf's last entry is the beginning of the next leaf. */
Place tree_normal(const Tree *tree, Place place)
{
    if (place.leaf < tree->count && place.entry >= tree_leaf(tree, place.leaf)->count) {
        place.leaf++;
        place.entry = 0;
    }
    return place;
}

Place tree_lower_bound(Tree *tree, const TreeKey *key)
{
    return tree_normal(tree, tree_find(tree, key));
}

Place tree_begin(void)
{
    return (Place){0, 0, 0};
}

Place tree_end(const Tree *tree)
{
    return (Place){tree->count, 0, 0};
}

Place tree_next(const Tree *tree, Place place)
{
    place.entry++;
    return tree_normal(tree, place);
}

Place tree_previous(const Tree *tree, Place place)
{
    if (!place.entry)
        place.entry = tree_leaf(tree, --place.leaf)->count;
    place.entry--;
    return place;
}

int tree_is_before(Place one, Place other)
{
    return one.leaf < other.leaf || (one.leaf == other.leaf && one.entry < other.entry);
}

Place tree_advance(const Tree *tree, Place place, size_t count)
{
    while (place.leaf < tree->count && count >= (size_t)(tree_leaf(tree, place.leaf)->count - place.entry)) {
        count -= (size_t)(tree_leaf(tree, place.leaf)->count - place.entry);
        place.leaf++;
        place.entry = 0;
    }
    if (place.leaf < tree->count)
        place.entry += (int)count;
    return place;
}

size_t tree_distance(const Tree *tree, Place low, Place high)
{
    if (!tree_is_before(low, high))
        return 0;
    size_t count = 0;
    for (size_t number = low.leaf; number < high.leaf; number++)
        count += (size_t)tree_leaf(tree, number)->count;
    return count + (size_t)high.entry - (size_t)low.entry;
}

/* -- leaves -- */

/* Move entries, from a place on, from one leaf to the end of another that keeps their hints. */
static void move_entries(Leaf *from, int first, Leaf *to)
{
    int moved = from->count - first;
    for (int entry = 0; entry < moved; entry++)
        set_hint(to, to->count + entry, leaf_hint(from, first + entry));
    memcpy(to->handles + to->count, from->handles + first, (size_t)moved * sizeof *to->handles);
    to->count = (uint16_t)(to->count + moved);
    from->count = (uint16_t)first;
}

static size_t leaf_size(int room, int width)
{
    return sizeof(Leaf) + (size_t)room * ((size_t)width + sizeof(Handle32));
}

/* An array has as much room again as it has leaves. */
static size_t leaf_memory(int room, int width)
{
    return leaf_size(room, width) + 2 * sizeof(Leaf *);
}

size_t tree_leaf_memory(int room, int has_wide_hints)
{
    return leaf_memory(room, has_wide_hints ? 16 : 8);
}

static Leaf *allocate_leaf(int room, Form form)
{
    Leaf *leaf = malloc(leaf_size(room, form.width));
    if (leaf) {
        budget_add_leaves(leaf_memory(room, form.width));
        *leaf = (Leaf){.room = (uint16_t)room, .width = form.width, .shift = form.shift};
        leaf->handles = (Handle32 *)(leaf->hints + room * form.width); /* rooms are multiples of eight */
    }
    return leaf;
}

static void release_leaf(Leaf *leaf)
{
    budget_remove_leaves(leaf_memory(leaf->room, leaf->width));
    free(leaf);
}

static void release_spares(Tree *tree)
{
    while (tree->spare_count)
        release_leaf(tree->spares[--tree->spare_count]);
}

/* A leaf for whole hints. Returns NULL without memory. */
static Leaf *new_leaf(Tree *tree, int room)
{
    if (tree->spare_count && tree->spares[tree->spare_count - 1]->room >= room)
        return tree->spares[--tree->spare_count];
    return allocate_leaf(room, whole_form(tree));
}

static void free_leaf(Tree *tree, Leaf *leaf)
{
    if (tree->spare_count || !is_whole(tree, leaf)) {
        release_leaf(leaf);
    } else {
        leaf->count = 0;
        tree->spares[tree->spare_count++] = leaf;
    }
}

/* Keep another form of the hints of the leaf at a number, whose whole hints are given. Returns NULL without memory. */
static Leaf *change_form(Tree *tree, size_t number, Form form, const KeyHint *hints)
{
    Leaf *leaf = tree_leaf(tree, number), *changed = leaf;
    if (form.width != leaf->width) {
        changed = allocate_leaf(leaf->room, form);
        if (!changed)
            return NULL;
        memcpy(changed->handles, leaf->handles, leaf->count * sizeof *leaf->handles);
        changed->count = leaf->count;
        tree->leaves[tree->start + number] = changed;
        free_leaf(tree, leaf);
    }
    set_form(changed, form, *hints);
    for (int entry = 0; entry < changed->count; entry++)
        set_hint(changed, entry, hints[entry]);
    return changed;
}

/* Keep no more of the hints of the leaf at a number than is needed. Without memory it stays as it is. */
static void narrow_leaf(Tree *tree, size_t number)
{
    const Leaf *leaf = tree_leaf(tree, number);
    KeyHint hints[TREE_LEAF_ROOM];
    read_hints(leaf, hints);
    Form form = narrow_form(tree, differing_bits(hints, leaf->count));
    if (form.width < leaf->width)
        change_form(tree, number, form, hints);
}

/* Let the leaf at a number keep one more hint. Returns NULL without memory, of which there is some if it was reserved. */
static Leaf *accept_hint(Tree *tree, size_t number, KeyHint hint)
{
    Leaf *leaf = tree_leaf(tree, number);
    if (does_fit(leaf, hint))
        return leaf;
    KeyHint hints[TREE_LEAF_ROOM];
    read_hints(leaf, hints);
    Bits differing = differing_bits(hints, leaf->count) | (bits_of(hint) ^ bits_of(leaf->count ? *hints : hint));
    Leaf *wider = change_form(tree, number, narrow_form(tree, differing), hints);
    if (wider || !tree->spare_count || tree->spares[tree->spare_count - 1]->room < leaf->room)
        return wider;
    wider = tree->spares[--tree->spare_count];
    move_entries(leaf, 0, wider);
    tree->leaves[tree->start + number] = wider;
    release_leaf(leaf);
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
        move_entries(leaf, 0, wider);
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
    read_hints(leaf, hints);
    read_hints(next, hints + leaf->count);
    Form form = narrow_form(tree, differing_bits(hints, leaf->count + next->count));
    if ((leaf = change_form(tree, number, form, hints))) {
        move_entries(next, 0, leaf);
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
    if (only && only->count < only->room && is_whole(tree, only))
        return 0; /* should its last entry be removed first, it becomes the spare one itself */
    int room = !tree->count ? FIRST_ROOM : only ? wider_room(only) : TREE_LEAF_ROOM;
    int needed = room < TREE_LEAF_ROOM ? 1 : TREE_SPARES;
    if (widen_array(tree) < 0)
        return -1;
    if (tree->spare_count && tree->spares[0]->room < room)
        release_spares(tree);
    while (tree->spare_count < needed) {
        Leaf *leaf = allocate_leaf(room, whole_form(tree));
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

/* Move a leaf's entries from a place on to another place. */
static void shift_entries(Leaf *leaf, int from, int to)
{
    size_t moved = (size_t)(leaf->count - from);
    memmove(leaf->hints + to * leaf->width, leaf->hints + from * leaf->width, moved * leaf->width);
    memmove(leaf->handles + to, leaf->handles + from, moved * sizeof *leaf->handles);
    leaf->count = (uint16_t)(leaf->count + to - from);
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
    move_entries(tree_leaf(tree, place->leaf), kept, next);
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
    shift_entries(leaf, place.entry, place.entry + 1);
    set_hint(leaf, place.entry, key->hint);
    leaf->handles[place.entry] = handle;
    tree->size++;
    return 0;
}

int tree_is_below(Tree *tree, const TreeKey *key)
{
    if (!tree->count)
        return 1;
    const Leaf *last = tree_leaf(tree, tree->count - 1);
    return compare(tree, last, last->count - 1, key) < 0;
}

Place tree_back(const Tree *tree)
{
    Place back = {0, 0, 0};
    if (tree->count) {
        back.leaf = tree->count - 1;
        back.entry = tree_leaf(tree, back.leaf)->count;
    }
    return back;
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
    Form form = is_only ? whole_form(tree) : narrow_form(tree, differing_bits(hints, count));
    Leaf *leaf = allocate_leaf(room, form);
    if (!leaf)
        return -1;
    set_form(leaf, form, *hints);
    for (int place = 0; place < count; place++)
        set_hint(leaf, place, hints[place]);
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
    shift_entries(leaf, place.entry + 1, place.entry);
    tree->size--;
    if (!leaf->count)
        drop_leaf(tree, place.leaf);
    else if (leaf->count < TREE_LEAF_ROOM / 4)
        join_leaves(tree, place.leaf);
}

void tree_clear(Tree *tree)
{
    while (tree->count)
        release_leaf(tree_leaf(tree, --tree->count));
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
