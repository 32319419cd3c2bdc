/* Keys in a tree, and the places where they are. */
#include "leaf.h"

#include <string.h>

/* -- keys -- */

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
        HintBits above = leaf_mask(leaf_form(leaf)) + (((HintBits)1 << leaf->shift) - 1), below = ((HintBits)1 << leaf->shift) - 1;
        HintBits bits = hint_bits(key->hint), base = hint_bits(leaf->base);
        if ((bits & ~above) != (base & ~above))
            return bits < base ? 0 : end;
        if ((bits & below) != (base & below))
            tie = (base & below) < (bits & below) ? -1 : 1;
        wanted = (uint64_t)((bits & above) >> leaf->shift);
    }
    while (first < end) {
        int middle = (first + end) / 2, order;
        if (is_narrow) {
            uint64_t kept = leaf_kept_hint(leaf, middle);
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
