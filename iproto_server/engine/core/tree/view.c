#include "view.h"

#include <stdlib.h>
#include <string.h>

/* -- keys -- */

static int own_key(OwnKey *own, Tree *tree, const uint8_t *key, size_t size)
{
    if (size > own->room) {
        uint8_t *bytes = realloc(own->bytes, size);
        if (!bytes)
            return -1;
        own->bytes = bytes;
        own->room = size;
    }
    memcpy(own->bytes, key, size);
    own->key = tree_key(tree, own->bytes, size);
    return 0;
}

/* Make the key of an entry one's own. */
static int own_key_of(OwnKey *own, Tree *tree, Handle32 handle)
{
    size_t size = 0;
    const uint8_t *key = tree_record_key(tree, handle, &size);
    return key ? own_key(own, tree, key, size) : -1;
}

static int compare(const TreeKey *one, const TreeKey *other)
{
    if (one->hint.high != other->hint.high)
        return one->hint.high < other->hint.high ? -1 : 1;
    if (one->hint.low != other->hint.low)
        return one->hint.low < other->hint.low ? -1 : 1;
    int order = memcmp(one->key, other->key, one->size < other->size ? one->size : other->size);
    return order ? order : (one->size > other->size) - (one->size < other->size);
}

/* -- opening and closing -- */

int view_open(View *view, Tree *tree)
{
    *view = (View){0};
    if (!tree->size)
        return 0;
    if (own_key_of(&view->end, tree, tree_handle(tree, tree_previous(tree, tree_end(tree)))) < 0)
        return -1;
    view->kept.layout = tree->layout;
    view->kept.records = view->kept.pairs = &view->records;
    view->tree = tree;
    view->next = tree->views;
    tree->views = view;
    return 0;
}

void view_close(View *view)
{
    if (!view->tree)
        return;
    View **place = &view->tree->views;
    while (*place != view)
        place = &(*place)->next;
    *place = view->next;
    view->tree = NULL;
    tree_clear(&view->kept);
    records_clear(&view->records);
    free(view->passed.bytes);
    free(view->end.bytes);
}

/* -- keeping -- */

/* The bit of the handle of a kept entry that there was not when the view was opened: of a key alone. */
#define WAS_MISSING TREE_PAIR

static int is_ahead(const View *view, const TreeKey *key)
{
    return compare(key, &view->end.key) <= 0 && (!view->has_passed || compare(key, &view->passed.key) > 0);
}

static int keep(View *view, const TreeKey *key, const Record *record)
{
    if (!is_ahead(view, key))
        return 0;
    if (tree_reserve_key(&view->kept, key->size) < 0)
        return -1;
    Place place = tree_find(&view->kept, key);
    if (place.is_found)
        return 0;
    Handle32 handle;
    if (record)
        handle = records_add(&view->records, record->data, record->key_size, record->data + record->key_size,
                             record->size - record->key_size);
    else
        handle = records_add(&view->records, key->key, key->size, NULL, 0);
    if (handle == NO_HANDLE)
        return -1;
    if (tree_insert(&view->kept, place, key, record ? handle : handle | WAS_MISSING) == 0)
        return 0;
    records_remove(&view->records, handle);
    return -1;
}

int views_keep_entry(Tree *tree, const TreeKey *key, Handle32 handle)
{
    const Record *record = handle == NO_HANDLE ? NULL : records_at(tree->records, handle);
    for (View *view = tree->views; view; view = view->next)
        if (keep(view, key, record) < 0)
            return -1;
    return 0;
}

/* -- the walk -- */

static Place behind(Tree *tree, const TreeKey *key)
{
    Place place = tree_find(tree, key);
    place.entry += place.is_found;
    return tree_normal(tree, place);
}

/* Find out how far the entries of the tree are those of the view. */
static int find_stop(View *view)
{
    if (!view->kept.size) {
        view->stop = behind(view->tree, &view->end.key);
        view->stop.is_found = 0;
        return 0;
    }
    size_t size = 0;
    const uint8_t *bytes = tree_record_key(&view->kept, tree_handle(&view->kept, tree_begin()), &size);
    if (!bytes || tree_reserve_key(view->tree, size) < 0)
        return -1;
    TreeKey key = tree_key(view->tree, bytes, size);
    Place place = tree_find(view->tree, &key);
    view->stop = tree_normal(view->tree, place);
    view->stop.is_found = place.is_found;
    return 0;
}

int view_resume(View *view)
{
    view->took = VIEW_TOOK_NOTHING;
    if (!view->tree)
        return 0;
    if (tree_reserve_key(view->tree, view->passed.key.size) < 0 || tree_reserve_key(view->tree, view->end.key.size) < 0)
        return -1;
    view->at = view->has_passed ? behind(view->tree, &view->passed.key) : tree_begin();
    return find_stop(view);
}

static Handle32 first_kept(const View *view)
{
    return tree_handle(&view->kept, tree_begin());
}

/* Drop the kept entry that was taken. */
static void drop_taken(View *view)
{
    Handle32 handle = first_kept(view);
    tree_remove(&view->kept, tree_begin());
    records_remove(&view->records, handle & ~WAS_MISSING);
    view->took = VIEW_TOOK_NOTHING;
}

/* Begin to load rows that come soon: they may be anywhere in memory. */
static inline void load_ahead(const View *view)
{
    enum { NEAR = 4, FAR = 8 };
    const Leaf *leaf = tree_leaf(view->tree, view->at.leaf);
    const uintptr_t *table = view->tree->records->table;
    if (view->at.entry + FAR < leaf->count) {
        __builtin_prefetch(table + leaf->handles[view->at.entry + FAR]);
        uintptr_t near = table[leaf->handles[view->at.entry + NEAR]];
        __builtin_prefetch((const void *)near);
        __builtin_prefetch((const char *)near + 64);
    }
}

static Handle32 take_entry(View *view)
{
    load_ahead(view);
    view->took = VIEW_TOOK_ENTRY;
    view->taken = view->at;
    view->at = tree_next(view->tree, view->at);
    return tree_handle(view->tree, view->taken);
}

/* Take the first kept entry, in the place of the tree's with the same key. */
static Handle32 take_kept(View *view)
{
    view->took = VIEW_TOOK_KEPT;
    if (view->stop.is_found)
        view->at = tree_next(view->tree, view->at);
    return first_kept(view);
}

int view_next(View *view, const uint8_t **row, size_t *size)
{
    if (!view->tree)
        return VIEW_END;
    if (view->took == VIEW_TOOK_KEPT) {
        drop_taken(view);
        if (find_stop(view) < 0)
            return -1;
    }
    const Record *record;
    if (tree_is_before(view->at, view->stop))
        record = tree_record(view->tree, take_entry(view));
    else if (!view->kept.size)
        return VIEW_END;
    else if ((record = tree_record(&view->kept, take_kept(view))) && first_kept(view) & WAS_MISSING)
        return VIEW_NOTHING;
    if (!record)
        return -1;
    *row = record->data + record->key_size;
    *size = record->size - record->key_size;
    return VIEW_ROW;
}

int view_pause(View *view)
{
    if (view->took == VIEW_TOOK_NOTHING)
        return 0;
    int is_kept = view->took == VIEW_TOOK_KEPT;
    if (own_key_of(&view->passed, is_kept ? &view->kept : view->tree,
                   is_kept ? first_kept(view) : tree_handle(view->tree, view->taken)) < 0)
        return -1;
    view->has_passed = 1;
    if (is_kept)
        drop_taken(view);
    view->took = VIEW_TOOK_NOTHING;
    return 0;
}
