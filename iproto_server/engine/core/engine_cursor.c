#include "engine.h"

#include <stdlib.h>

/* The rows that are left are those between two places. After a change of the space these are looked for again: by the
 * key of the row that was returned last, if there is one, and by the cursor's own key. */
struct IprotoCursor {
    IprotoIndex *index;
    IprotoCursor *previous, *next; /* of the space */
    IprotoIterator iterator;
    KeyBuffer key;                      /* the cursor's own */
    KeyBuffer last;                     /* of the row that was returned last, if it was kept; */
    Place last_place;                   /* and where it is otherwise */
    Place low, high;                    /* what is left */
    int has_last, is_placed, is_at_end; /* `is_placed`: whether the places are true */
    int is_lost;                        /* there was no memory for `last` */
};

static int is_backward(IprotoIterator iterator)
{
    return iterator == IPROTO_REQ || iterator == IPROTO_LT || iterator == IPROTO_LE;
}

/* -- where keys are -- */

static Place place_of(Tree *tree, const KeyBuffer *key)
{
    TreeKey wanted = tree_key(tree, key->data, key->size);
    return tree_lower_bound(tree, &wanted);
}

/* The first place above all keys that start with a key; its bytes are changed meanwhile. */
static Place place_above(Tree *tree, KeyBuffer *key)
{
    KeyBuffer *end = key;
    size_t size = key->size;
    while (end->size && end->data[end->size - 1] == 0xff)
        end->size--;
    Place place = tree_end(tree);
    if (end->size) {
        end->data[end->size - 1]++;
        place = place_of(tree, end);
        end->data[end->size - 1]--;
    }
    end->size = size;
    return place;
}

/* The rows of an iterator. */
static void find_interval(Tree *tree, IprotoIterator iterator, KeyBuffer *key, Place *low, Place *high)
{
    *low = tree_begin();
    *high = tree_end(tree);
    if (!key->size)
        return;
    if (iterator == IPROTO_GT)
        *low = place_above(tree, key);
    else if (iterator != IPROTO_LT && iterator != IPROTO_LE)
        *low = place_of(tree, key);
    if (iterator == IPROTO_LT)
        *high = place_of(tree, key);
    else if (iterator == IPROTO_EQ || iterator == IPROTO_REQ || iterator == IPROTO_LE)
        *high = place_above(tree, key);
}

/* -- going on -- */

static void find_places(IprotoCursor *cursor)
{
    Tree *tree = &cursor->index->tree;
    find_interval(tree, cursor->iterator, &cursor->key, &cursor->low, &cursor->high);
    cursor->is_placed = 1;
    if (!cursor->has_last)
        return;
    TreeKey last = tree_key(tree, cursor->last.data, cursor->last.size);
    Place place = tree_find(tree, &last);
    int is_there = place.is_found;
    place = tree_normal(tree, place);
    if (is_backward(cursor->iterator))
        cursor->high = place;
    else
        cursor->low = is_there ? tree_next(tree, place) : place;
}

void engine_keep_cursors(IprotoSpace *space)
{
    for (IprotoCursor *cursor = space->cursors; cursor; cursor = cursor->next) {
        Tree *tree = &cursor->index->tree;
        if (!cursor->is_placed)
            continue;
        cursor->is_placed = 0;
        if (!cursor->has_last || cursor->is_at_end)
            continue;
        size_t size = 0;
        const uint8_t *key = tree_record_key(tree, tree_handle(tree, cursor->last_place), &size);
        cursor->is_lost |= !key || key_buffer_set(&cursor->last, key, size) < 0;
    }
}

int iproto_cursor_next(IprotoCursor *cursor, IprotoTuple *row)
{
    if (!cursor || !row)
        return engine_fail_null(cursor ? "the row" : "the cursor");
    if (engine_check(cursor->index->space->engine) < 0)
        return -1;
    if (cursor->is_lost)
        return engine_fail_memory(cursor->last.size, "a cursor");
    if (!cursor->is_placed && !cursor->is_at_end)
        find_places(cursor);
    if (cursor->is_at_end || !tree_is_before(cursor->low, cursor->high)) {
        cursor->is_at_end = 1;
        return 0;
    }
    Tree *tree = &cursor->index->tree;
    if (is_backward(cursor->iterator)) {
        cursor->high = cursor->last_place = tree_previous(tree, cursor->high);
    } else {
        cursor->last_place = cursor->low;
        cursor->low = tree_next(tree, cursor->low);
    }
    cursor->has_last = 1;
    *row = engine_tuple(tree_record(tree, tree_handle(tree, cursor->last_place)));
    return 1;
}

/* -- opening and closing -- */

/* Check the arguments, and encode the key. */
static int begin(IprotoIndex *index, IprotoIterator iterator, const void *key, size_t size, KeyBuffer *made)
{
    if (!index)
        return engine_fail_null("the index");
    if (engine_check(index->space->engine) < 0)
        return -1;
    if ((int)iterator < IPROTO_EQ || iterator > IPROTO_GT)
        return engine_fail(IPROTO_ER_ITERATOR_TYPE, "Unknown iterator type '%d'", (int)iterator);
    return engine_encode_key(index, key, size, made) < 0 ? -1 : 0;
}

IprotoCursor *iproto_cursor_open(IprotoIndex *index, IprotoIterator iterator, const void *key, size_t size)
{
    IprotoCursor *cursor = calloc(1, sizeof *cursor);
    if (!cursor) {
        engine_fail_memory(sizeof *cursor, "a cursor");
        return NULL;
    }
    if (begin(index, iterator, key, size, &cursor->key) < 0) {
        key_buffer_free(&cursor->key);
        free(cursor);
        return NULL;
    }
    IprotoSpace *space = index->space;
    cursor->index = index;
    cursor->iterator = iterator;
    cursor->next = space->cursors;
    if (cursor->next)
        cursor->next->previous = cursor;
    space->cursors = cursor;
    return cursor;
}

void iproto_cursor_close(IprotoCursor *cursor)
{
    if (!cursor)
        return;
    if (cursor->previous)
        cursor->previous->next = cursor->next;
    else
        cursor->index->space->cursors = cursor->next;
    if (cursor->next)
        cursor->next->previous = cursor->previous;
    key_buffer_free(&cursor->key);
    key_buffer_free(&cursor->last);
    free(cursor);
}

void engine_close_cursors(IprotoSpace *space)
{
    while (space->cursors)
        iproto_cursor_close(space->cursors);
}

int64_t iproto_index_count(IprotoIndex *index, IprotoIterator iterator, const void *key, size_t size)
{
    KeyBuffer made = {0};
    Place low, high;
    int64_t count = -1;
    if (begin(index, iterator, key, size, &made) == 0) {
        find_interval(&index->tree, iterator, &made, &low, &high);
        count = (int64_t)tree_distance(&index->tree, low, high);
    }
    key_buffer_free(&made);
    return count;
}
