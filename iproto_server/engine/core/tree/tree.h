/* The ordered index: entries of a hint and a handle, in the order of their keys.
 *
 * A tree is one of three kinds, by what the record behind a handle is:
 *  - pairs: a key and a value;
 *  - rows: a row, whose key is made from it when it is needed: a primary index;
 *  - references: the same rows, of which another tree is the owner: a secondary index.
 *
 * Some keys cannot be made from a row in C (a decimal's): such a row's record in a primary index has its key in front,
 * and in a secondary index the entry has a pair of its own, whose value is the primary key.
 *
 * The entries are in leaves of up to TREE_LEAF_ROOM, and the leaves in one array, in order. That is a tree of two
 * levels, of which the upper one has a hundred and more entries below each of its own: to insert or remove one moves a
 * part of a leaf and, once in a hundred times, a part of the array. In front of the array there may be room, so that
 * to remove always from the front moves nothing there.
 *
 * A leaf that is full or was split keeps only the bits in which its hints differ: an entry of ascending numbers takes
 * seven bytes in place of twenty.
 */
#ifndef IPROTO_ENGINE_TREE_H
#define IPROTO_ENGINE_TREE_H

#include "../key/key.h"
#include "../memory/records.h"

enum { TREE_LEAF_ROOM = 128, TREE_RECENT_ROOM = 32, TREE_SPARES = 2 };

/* The bit of a handle of a tree of references that says that it has a pair. */
#define TREE_PAIR ((Handle32)1 << 31)

/* The hints of a leaf mostly differ in a few bits. A leaf keeps these, in as few bytes as they need; the other bits are
 * in `base`. With room for 128 entries and hints of which 3 bytes differ:
 *
 *     0       2      4       5       8      24         32                   416                      928
 *     +-------+------+-------+-------+------+----------+--------------------+------------------------+
 *     | count | room | width | shift | base | &handles | hints              | handles                |
 *     |    97 |  128 |     3 |    64 |      |          | 3 bytes each, 97   | 4 bytes each, 97       |
 *     |       |      |       |       |      |          | of them used       | of them used           |
 *     +-------+------+-------+-------+------+----------+--------------------+------------------------+
 *
 * The hint of an entry, from its highest bit:
 *
 *     127                     88 87                     64 63                      0
 *     +-------------------------+-------------------------+------------------------+
 *     | of `base`               | kept: width * 8 bits    | of `base`: shift bits  |
 *     +-------------------------+-------------------------+------------------------+
 */
typedef struct {
    uint16_t count, room;
    uint8_t width, shift; /* bytes of a hint that are kept, 1 to 8 or 16; how many bits of the hint are below them */
    KeyHint base;         /* the bits that all hints share; zeros for those that are kept */
    Handle32 *handles;
    uint8_t hints[]; /* as many as there is room for, with the highest byte first; then so many handles */
} Leaf;

/* Where an entry is, or where it would be. */
typedef struct {
    size_t leaf;
    int entry, is_found;
} Place;

/* A key that is looked for. Its bytes may be missing if the hint is exact. */
typedef struct {
    const uint8_t *key;
    size_t size;
    KeyHint hint;
    int is_exact;
} TreeKey;

typedef struct {
    Leaf **leaves;
    size_t start, count, room; /* of the array: where it begins, how many there are, how many there may be */
    size_t size;               /* entries */
    Leaf *spares[TREE_SPARES]; /* leaves with whole hints for an entry that is added: a new one, and a wider one */
    int spare_count;
    Place latest;              /* where a key was found last: a row that changes was found before */
    const KeyLayout *layout;   /* NULL for pairs */
    Records *records, *pairs;  /* of handles without and with TREE_PAIR; the same ones in a tree of pairs or rows */
    int has_references;
    struct View *views;        /* those that are open; see view.h */
    KeyBuffer scratch;
    uint8_t recent[TREE_RECENT_ROOM]; /* the bytes of `recent_key`: the same key is looked for several times */
    TreeKey recent_key;
} Tree;

TreeKey tree_key(Tree *tree, const uint8_t *key, size_t size);

static inline Leaf *tree_leaf(const Tree *tree, size_t number)
{
    return tree->leaves[tree->start + number];
}

static inline Handle32 tree_handle(const Tree *tree, Place place)
{
    return tree_leaf(tree, place.leaf)->handles[place.entry];
}

KeyHint tree_hint(const Tree *tree, Place place);

static inline int tree_is_end(const Tree *tree, Place place)
{
    return place.leaf >= tree->count;
}

/* The first entry that is not below a key. It may be behind the last one of its leaf: `tree_insert` takes it so. */
Place tree_find(Tree *tree, const TreeKey *key);

/* The same, as a place where an entry is, or the end. */
Place tree_lower_bound(Tree *tree, const TreeKey *key);
Place tree_normal(const Tree *tree, Place place); /* of what `tree_find` has found */

Place tree_begin(void);
Place tree_end(const Tree *tree);
Place tree_next(const Tree *tree, Place place);
Place tree_previous(const Tree *tree, Place place); /* `place` must not be the beginning */
int tree_is_before(Place one, Place other);

/* The place so many entries further on, or the end. */
Place tree_advance(const Tree *tree, Place place, size_t count);

/* How many entries are from one place to another. */
size_t tree_distance(const Tree *tree, Place low, Place high);

static inline const Record *tree_record(const Tree *tree, Handle32 handle)
{
    return handle & TREE_PAIR ? records_at(tree->pairs, handle & ~TREE_PAIR) : records_at(tree->records, handle);
}

/* The key of a record; it is valid until the next call. Returns NULL without memory, or if the handle has no record. */
const uint8_t *tree_record_key(Tree *tree, Handle32 handle, size_t *size);

/* The same of its first parts, up to the one with which there are `enough` bytes, if there are so many. */
const uint8_t *tree_record_key_beginning(Tree *tree, Handle32 handle, size_t enough, size_t *size);

/* Make sure that an entry can be added without memory. Returns -1 if it cannot. */
int tree_reserve(Tree *tree);

/* Make sure that a key of so many bytes, or any with an exact hint, can be made to be compared. Returns -1 without memory.
 * Without it a search for another key could fail later, and would lead to a wrong place. */
int tree_reserve_key(Tree *tree, size_t size);

/* Add an entry at the place where its key would be. Returns -1, with nothing changed, without memory. */
int tree_insert(Tree *tree, Place place, const TreeKey *key, Handle32 handle);

/* Whether all keys of a tree are below a key, and the place where an entry above all others is added. */
int tree_is_below(Tree *tree, const TreeKey *key);
Place tree_back(const Tree *tree);

/* Fill an empty tree with entries in the order of their keys. Returns -1, with nothing changed, without memory. */
int tree_fill(Tree *tree, const KeyHint *hints, const Handle32 *handles, size_t count);

/* The same step by step: first with the number of entries, then leaf by leaf, each full but the last one. Return -1
 * without memory; the caller clears the tree if it does not come to the end. */
int tree_fill_begin(Tree *tree, size_t count);
int tree_fill_leaf(Tree *tree, const KeyHint *hints, const Handle32 *handles, int count);

/* Remove an entry. Its record stays. */
void tree_remove(Tree *tree, Place place);

/* Remove all entries. Their records stay. */
void tree_clear(Tree *tree);

/* Bytes of a leaf with room for so many entries, and of its place in the array. */
size_t tree_leaf_memory(int room, int has_wide_hints);

/* Bytes of the leaves and their array. */
size_t tree_memory(const Tree *tree);

#endif
