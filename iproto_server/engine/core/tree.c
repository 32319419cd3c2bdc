#include "tree.h"

#include "budget.h"
#include "msgpack.h"

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

static inline int is_wide(const Tree *tree)
{
    return tree->layout && tree->layout->is_wide;
}

/* The lower halves of a leaf's wide hints. */
static inline uint64_t *low_hints(const Leaf *leaf)
{
    return (uint64_t *)leaf->hints + leaf->room;
}

static inline void set_hint(const Tree *tree, Leaf *leaf, int entry, KeyHint hint)
{
    leaf->hints[entry] = hint.high;
    if (is_wide(tree))
        low_hints(leaf)[entry] = hint.low;
}

KeyHint tree_hint(const Tree *tree, Place place)
{
    const Leaf *leaf = tree_leaf(tree, place.leaf);
    return (KeyHint){leaf->hints[place.entry], is_wide(tree) ? low_hints(leaf)[place.entry] : 0};
}

/* The order of an entry and a key: negative, zero or positive. */
static inline int compare(Tree *tree, const Leaf *leaf, int entry, const TreeKey *key)
{
    uint64_t hint = leaf->hints[entry];
    if (hint != key->hint.high)
        return hint < key->hint.high ? -1 : 1;
    if (is_wide(tree) && (hint = low_hints(leaf)[entry]) != key->hint.low)
        return hint < key->hint.low ? -1 : 1;
    if (key->is_exact)
        return 0;
    size_t size = 0;
    const uint8_t *own = tree_record_key(tree, leaf->handles[entry], &size);
    return own ? compare_bytes(own, size, key->key, key->size) : -1;
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
    Leaf *leaf = tree_leaf(tree, low);
    int first = 0, end = leaf->count;
    while (first < end) {
        int middle = (first + end) / 2, order = compare(tree, leaf, middle, key);
        if (order < 0) {
            first = middle + 1;
        } else {
            end = middle;
            place.is_found |= !order;
        }
    }
    place.leaf = low;
    place.entry = first;
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

static size_t leaf_size(int room, int has_wide_hints)
{
    return sizeof(Leaf) + (size_t)room * ((has_wide_hints ? 2 : 1) * sizeof(uint64_t) + sizeof(Handle32));
}

size_t tree_leaf_memory(int room, int has_wide_hints)
{
    return leaf_size(room, has_wide_hints) + 2 * sizeof(Leaf *); /* an array has as much room again as it has leaves */
}

static Leaf *allocate_leaf(const Tree *tree, int room)
{
    Leaf *leaf = malloc(leaf_size(room, is_wide(tree)));
    if (leaf) {
        budget_add_leaves(tree_leaf_memory(room, is_wide(tree)));
        leaf->count = 0;
        leaf->room = room;
        leaf->handles = (Handle32 *)(leaf->hints + (is_wide(tree) ? 2 * room : room));
    }
    return leaf;
}

static void release_leaf(const Tree *tree, Leaf *leaf)
{
    if (leaf)
        budget_remove_leaves(tree_leaf_memory(leaf->room, is_wide(tree)));
    free(leaf);
}

static Leaf *new_leaf(Tree *tree, int room)
{
    Leaf *leaf = tree->spare;
    if (!leaf || leaf->room < room)
        return allocate_leaf(tree, room);
    tree->spare = NULL;
    return leaf;
}

static void free_leaf(Tree *tree, Leaf *leaf)
{
    if (tree->spare) {
        release_leaf(tree, leaf);
    } else {
        leaf->count = 0;
        tree->spare = leaf;
    }
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

/* Move entries from one leaf to the end of another. */
static void move_entries(const Tree *tree, Leaf *from, int first, Leaf *to)
{
    size_t moved = (size_t)(from->count - first);
    memcpy(to->hints + to->count, from->hints + first, moved * sizeof *to->hints);
    if (is_wide(tree))
        memcpy(low_hints(to) + to->count, low_hints(from) + first, moved * sizeof *to->hints);
    memcpy(to->handles + to->count, from->handles + first, moved * sizeof *to->handles);
    to->count += (int)moved;
    from->count = first;
}

/* Give the leaf at a number more room. Returns NULL without memory. */
static Leaf *widen(Tree *tree, size_t number)
{
    Leaf *leaf = tree_leaf(tree, number);
    Leaf *wider = new_leaf(tree, wider_room(leaf));
    if (wider) {
        move_entries(tree, leaf, 0, wider);
        free_leaf(tree, leaf);
        tree->leaves[tree->start + number] = wider;
    }
    return wider;
}

/* Join neighbours that have become small. */
static void join_leaves(Tree *tree, size_t number)
{
    for (size_t left = number ? number - 1 : 0; left <= number && left + 1 < tree->count; left++) {
        Leaf *one = tree_leaf(tree, left), *other = tree_leaf(tree, left + 1);
        if (one->count + other->count <= TREE_LEAF_ROOM / 2 && one->room == TREE_LEAF_ROOM) {
            move_entries(tree, other, 0, one);
            drop_leaf(tree, left + 1);
            return;
        }
    }
}

/* -- changes -- */

int tree_reserve(Tree *tree)
{
    const Leaf *only = tree->count == 1 ? tree_leaf(tree, 0) : NULL;
    if (only && only->count < only->room)
        return 0; /* should its last entry be removed first, it becomes the spare one itself */
    int room = !tree->count ? FIRST_ROOM : only ? wider_room(only) : TREE_LEAF_ROOM;
    if (widen_array(tree) < 0)
        return -1;
    if (tree->spare && tree->spare->room >= room)
        return 0;
    Leaf *leaf = allocate_leaf(tree, room);
    if (!leaf)
        return -1;
    release_leaf(tree, tree->spare);
    tree->spare = leaf;
    return 0;
}

int tree_reserve_key(Tree *tree, size_t size)
{
    enum { EXACT_PART_MAX = 12 }; /* bytes of a number's key, and one for nil */
    size_t exact = tree->layout ? (size_t)tree->layout->count * EXACT_PART_MAX : 0;
    return key_buffer_reserve(&tree->scratch, size > exact ? size : exact);
}

/* Move a leaf's entries from a place on to another place. */
static void shift_entries(const Tree *tree, Leaf *leaf, int from, int to)
{
    size_t moved = (size_t)(leaf->count - from);
    memmove(leaf->hints + to, leaf->hints + from, moved * sizeof *leaf->hints);
    if (is_wide(tree))
        memmove(low_hints(leaf) + to, low_hints(leaf) + from, moved * sizeof *leaf->hints);
    memmove(leaf->handles + to, leaf->handles + from, moved * sizeof *leaf->handles);
    leaf->count += to - from;
}

int tree_insert(Tree *tree, Place place, const TreeKey *key, Handle32 handle)
{
    if (!tree->count && !add_leaf(tree, 0))
        return -1;
    Leaf *leaf = tree_leaf(tree, place.leaf);
    if (leaf->count == leaf->room && leaf->room < TREE_LEAF_ROOM) {
        if (!(leaf = widen(tree, place.leaf)))
            return -1;
    } else if (leaf->count == TREE_LEAF_ROOM) {
        /* Behind the last entry of all a new leaf begins: a tree that grows at its end has full leaves. */
        int is_end = place.entry == TREE_LEAF_ROOM && place.leaf + 1 == tree->count;
        int kept = is_end ? TREE_LEAF_ROOM : TREE_LEAF_ROOM / 2;
        Leaf *next = add_leaf(tree, place.leaf + 1);
        if (!next)
            return -1;
        move_entries(tree, leaf, kept, next);
        if (place.entry > kept || is_end) {
            leaf = next;
            place.entry -= kept;
        }
    }
    shift_entries(tree, leaf, place.entry, place.entry + 1);
    set_hint(tree, leaf, place.entry, key->hint);
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

int tree_fill(Tree *tree, const KeyHint *hints, const Handle32 *handles, size_t count)
{
    size_t leaves = (count + TREE_LEAF_ROOM - 1) / TREE_LEAF_ROOM;
    int room = TREE_LEAF_ROOM;
    while (leaves == 1 && room / 4 >= FIRST_ROOM && (size_t)(room / 4) >= count)
        room /= 4; /* as if they had been added one by one */
    Leaf **array = malloc((leaves + 1) * sizeof *array);
    if (!array)
        return -1;
    free(tree->leaves);
    tree->leaves = array;
    tree->start = 0;
    tree->room = leaves + 1;
    for (size_t first = 0; first < count; first += TREE_LEAF_ROOM) {
        size_t part = count - first < TREE_LEAF_ROOM ? count - first : TREE_LEAF_ROOM;
        Leaf *leaf = allocate_leaf(tree, room);
        if (!leaf) {
            tree_clear(tree);
            return -1;
        }
        for (size_t place = 0; place < part; place++)
            set_hint(tree, leaf, (int)place, hints[first + place]);
        memcpy(leaf->handles, handles + first, part * sizeof *handles);
        leaf->count = (int)part;
        array[tree->count++] = leaf;
    }
    tree->size = count;
    return 0;
}

void tree_remove(Tree *tree, Place place)
{
    Leaf *leaf = tree_leaf(tree, place.leaf);
    shift_entries(tree, leaf, place.entry + 1, place.entry);
    tree->size--;
    if (!leaf->count)
        drop_leaf(tree, place.leaf);
    else if (leaf->count < TREE_LEAF_ROOM / 4)
        join_leaves(tree, place.leaf);
}

void tree_clear(Tree *tree)
{
    while (tree->count)
        release_leaf(tree, tree_leaf(tree, --tree->count));
    free(tree->leaves);
    release_leaf(tree, tree->spare);
    tree->spare = NULL;
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
        size += leaf_size(tree_leaf(tree, number)->room, is_wide(tree));
    return size;
}
