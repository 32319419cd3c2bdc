#include "build.h"

#include <stdlib.h>
#include <string.h>

/* -- the entries of an index that is being built -- */

typedef struct {
    KeyHint *hints;
    Handle32 *handles;
    size_t count;
} Entries;

static int allocate(Entries *entries, size_t count)
{
    entries->hints = malloc(count * sizeof *entries->hints);
    entries->handles = malloc(count * sizeof *entries->handles);
    entries->count = count;
    return entries->hints && entries->handles ? 0 : -1;
}

static void release(Entries *entries)
{
    free(entries->hints);
    free(entries->handles);
}

static int read_row(const Tree *tree, Handle32 handle, RowFields *row)
{
    const Record *record = records_at(tree->records, handle);
    return record && row_fields(row, record->data + record->key_size, record->size - record->key_size);
}

static int make_key(const Tree *tree, Handle32 handle, KeyBuffer *key)
{
    RowFields row;
    return read_row(tree, handle, &row) ? key_of_fields(tree->layout, &row, key) : 0;
}

/* Make the hint of a row's key, by the key only if the hint is not exact. Returns as `key_of_fields`. */
static int make_hint(Tree *tree, Handle32 handle, KeyHint *hint, KeyBuffer *key)
{
    RowFields row;
    if (!read_row(tree, handle, &row))
        return 0;
    if (key_exact_hint(tree->layout, &row, hint))
        return 1;
    int done = key_of_fields(tree->layout, &row, key);
    if (done > 0)
        *hint = tree_key(tree, key->data, key->size).hint;
    return done;
}

/* Make the entries of all rows, in the order of the primary index. Returns as `build_references` does. */
static int make_entries(Tree *tree, const Tree *primary, Entries *entries, KeyBuffer *key)
{
    size_t count = 0;
    for (size_t number = 0; number < primary->count; number++) {
        const Leaf *leaf = tree_leaf(primary, number);
        for (int entry = 0; entry < leaf->count; entry++, count++) {
            int done = make_hint(tree, leaf->handles[entry], entries->hints + count, key);
            if (done <= 0)
                return done;
            entries->handles[count] = leaf->handles[entry];
        }
    }
    return BUILD_DONE;
}

/* -- sorting by hints -- */

static int compare_hints(KeyHint one, KeyHint other)
{
    if (one.high != other.high)
        return one.high < other.high ? -1 : 1;
    return (one.low > other.low) - (one.low < other.low);
}

/* A byte of a hint, of which 0 is the last one. */
static inline unsigned hint_byte(KeyHint hint, int number)
{
    return (number < 8 ? hint.low >> 8 * number : hint.high >> 8 * (number - 8)) & 0xff;
}

static int is_ascending(const Entries *entries)
{
    for (size_t place = 1; place < entries->count; place++)
        if (compare_hints(entries->hints[place], entries->hints[place - 1]) < 0)
            return 0;
    return 1;
}

/* Move entries to where they belong by one byte of their hints; `places` is where each value of the byte begins. */
static void distribute(const Entries *from, Entries *to, int byte, size_t *places)
{
    for (size_t place = 0; place < from->count; place++) {
        size_t target = places[hint_byte(from->hints[place], byte)]++;
        to->hints[target] = from->hints[place];
        to->handles[target] = from->handles[place];
    }
}

/* Sort by the hints, byte by byte from the lowest; entries with the same hint keep their order. */
static int sort_by_hints(Entries *entries)
{
    enum { BYTES = 16, VALUES = 256 };
    size_t(*counts)[VALUES] = calloc(BYTES, sizeof *counts);
    Entries other = {0};
    if (!counts || allocate(&other, entries->count) < 0) {
        release(&other);
        free(counts);
        return -1;
    }
    for (size_t place = 0; place < entries->count; place++)
        for (int byte = 0; byte < BYTES; byte++)
            counts[byte][hint_byte(entries->hints[place], byte)]++;
    for (int byte = 0; byte < BYTES; byte++) {
        if (counts[byte][hint_byte(entries->hints[0], byte)] == entries->count)
            continue; /* all have the same one */
        size_t begin = 0;
        for (int value = 0; value < VALUES; value++) {
            size_t count = counts[byte][value];
            counts[byte][value] = begin;
            begin += count;
        }
        distribute(entries, &other, byte, counts[byte]);
        Entries sorted = other;
        other = *entries;
        *entries = sorted;
    }
    release(&other);
    free(counts);
    return 0;
}

/* -- sorting entries with the same hint by their keys -- */

typedef struct {
    const uint8_t *key;
    size_t start, size; /* of the key among those of all */
    Handle32 handle;
} Tied;

static int compare_ties(const void *one, const void *other)
{
    const Tied *left = one, *right = other;
    int order = memcmp(left->key, right->key, left->size < right->size ? left->size : right->size);
    return order ? order : (left->size > right->size) - (left->size < right->size);
}

/* Make the keys of entries, one behind the other. Returns them; NULL without memory. */
static uint8_t *make_keys(const Tree *tree, Tied *ties, size_t count, KeyBuffer *key)
{
    uint8_t *keys = NULL;
    size_t size = 0, room = 0;
    for (Tied *tied = ties; tied < ties + count; tied++) {
        if (make_key(tree, tied->handle, key) <= 0) {
            free(keys);
            return NULL; /* they were made before: only memory can be missing */
        }
        if (size + key->size > room) {
            room = 2 * (size + key->size);
            uint8_t *wider = realloc(keys, room);
            if (!wider) {
                free(keys);
                return NULL;
            }
            keys = wider;
        }
        memcpy(keys + size, key->data, key->size);
        tied->start = size;
        tied->size = key->size;
        size += key->size;
    }
    for (size_t place = 0; place < count; place++)
        ties[place].key = keys + ties[place].start;
    return keys;
}

/* Sort keys that nearly always are in order. Returns BUILD_DONE or BUILD_REPEATED. */
static int sort_keys(Tied *ties, size_t count)
{
    int is_sorted = 1;
    for (size_t place = 1; place < count && is_sorted; place++)
        is_sorted = compare_ties(ties + place - 1, ties + place) < 0;
    if (is_sorted)
        return BUILD_DONE;
    qsort(ties, count, sizeof *ties, compare_ties);
    for (size_t place = 1; place < count; place++)
        if (!compare_ties(ties + place - 1, ties + place))
            return BUILD_REPEATED;
    return BUILD_DONE;
}

static int sort_ties(const Tree *tree, Handle32 *handles, size_t count, KeyBuffer *key)
{
    Tied *ties = malloc(count * sizeof *ties);
    if (!ties)
        return BUILD_NO_MEMORY;
    for (size_t place = 0; place < count; place++)
        ties[place].handle = handles[place];
    uint8_t *keys = make_keys(tree, ties, count, key);
    int done = keys ? sort_keys(ties, count) : BUILD_NO_MEMORY;
    for (size_t place = 0; done == BUILD_DONE && place < count; place++)
        handles[place] = ties[place].handle;
    free(keys);
    free(ties);
    return done;
}

/* Sort the entries that hints do not order. */
static int sort_all_ties(const Tree *tree, Entries *entries, KeyBuffer *key)
{
    int done = BUILD_DONE;
    for (size_t first = 0, end; done == BUILD_DONE && first < entries->count; first = end) {
        for (end = first + 1; end < entries->count && !compare_hints(entries->hints[end], entries->hints[first]); end++)
            ;
        if (end - first > 1)
            done = sort_ties(tree, entries->handles + first, end - first, key);
    }
    return done;
}

/* -- trees -- */

enum { BUILD_UNORDERED = 3 }; /* the rows are in another order, as far as hints tell */

static int fill_leaf(Tree *tree, const KeyHint *hints, const Handle32 *handles, int count)
{
    return count && tree_fill_leaf(tree, hints, handles, count) < 0 ? BUILD_NO_MEMORY : BUILD_DONE;
}

/* Fill a tree in the order of the primary index, leaf by leaf, which takes no memory beside its own. */
static int fill_in_order(Tree *tree, const Tree *primary, KeyBuffer *key)
{
    KeyHint hints[TREE_LEAF_ROOM], last;
    Handle32 handles[TREE_LEAF_ROOM];
    int count = 0, is_first = 1, done = BUILD_DONE;
    for (Place place = tree_begin(); !tree_is_end(primary, place); place = tree_next(primary, place)) {
        handles[count] = tree_handle(primary, place);
        done = make_hint(tree, handles[count], hints + count, key);
        if (done <= 0)
            return done;
        if (!is_first && compare_hints(last, hints[count]) >= 0)
            return BUILD_UNORDERED;
        last = hints[count];
        is_first = 0;
        if (++count < TREE_LEAF_ROOM)
            continue;
        if (fill_leaf(tree, hints, handles, count) < 0)
            return BUILD_NO_MEMORY;
        count = 0;
    }
    return fill_leaf(tree, hints, handles, count);
}

static int fill_sorted(Tree *tree, const Tree *primary, KeyBuffer *key)
{
    Entries entries;
    int done = allocate(&entries, primary->size) < 0 ? BUILD_NO_MEMORY : make_entries(tree, primary, &entries, key);
    if (done == BUILD_DONE && !is_ascending(&entries) && sort_by_hints(&entries) < 0)
        done = BUILD_NO_MEMORY;
    if (done == BUILD_DONE)
        done = sort_all_ties(tree, &entries, key);
    if (done == BUILD_DONE && tree_fill(tree, entries.hints, entries.handles, entries.count) < 0)
        done = BUILD_NO_MEMORY;
    release(&entries);
    return done;
}

int build_references(Tree *tree, const Tree *primary)
{
    if (!primary->size)
        return BUILD_DONE;
    KeyBuffer key = {0};
    int done = tree_fill_begin(tree, primary->size) < 0 ? BUILD_NO_MEMORY : fill_in_order(tree, primary, &key);
    if (done != BUILD_DONE)
        tree_clear(tree);
    if (done == BUILD_UNORDERED)
        done = fill_sorted(tree, primary, &key);
    if (done == BUILD_DONE && tree_reserve_key(tree, key.data ? key.room : 0) < 0) {
        tree_clear(tree);
        done = BUILD_NO_MEMORY;
    }
    key_buffer_free(&key);
    return done;
}

int build_append(Tree *primary, const uint8_t *row, size_t size, KeyBuffer *key)
{
    if (primary->views)
        return BUILD_UNKNOWN;
    int done = key_of_row(primary->layout, row, size, key);
    if (done <= 0)
        return done;
    TreeKey wanted = tree_key(primary, key->data, key->size);
    if (!tree_is_below(primary, &wanted))
        return BUILD_UNKNOWN;
    if (tree_reserve_key(primary, key->size) < 0)
        return BUILD_NO_MEMORY;
    Handle32 handle = records_add(primary->records, NULL, 0, row, size);
    if (handle == NO_HANDLE)
        return BUILD_NO_MEMORY;
    if (tree_insert(primary, tree_back(primary), &wanted, handle) == 0)
        return BUILD_DONE;
    records_remove(primary->records, handle);
    return BUILD_NO_MEMORY;
}
