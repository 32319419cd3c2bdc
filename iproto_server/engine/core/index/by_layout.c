#include "by_layout.h"

#include "../tree/view.h"

#include <string.h>

/* What moves in an index. */
typedef struct {
    Tree *tree;
    int has_old, has_new;
    Place old_place, new_place;
    TreeKey new_key;
    KeyBuffer old_bytes, new_bytes;
} Move;

static void begin_move(Move *move, Tree *tree)
{
    move->tree = tree;
    move->has_old = move->has_new = 0;
    move->old_bytes.data = move->new_bytes.data = NULL;
}

static void end_move(Move *move)
{
    key_buffer_free(&move->old_bytes);
    key_buffer_free(&move->new_bytes);
}

static int is_same(const TreeKey *one, const TreeKey *other)
{
    if (one->is_exact && other->is_exact)
        return one->hint.high == other->hint.high && one->hint.low == other->hint.low;
    return !one->is_exact && !other->is_exact && one->size == other->size && !memcmp(one->key, other->key, one->size);
}

/* The key of a row in an index, in bytes only if its hint is not exact. Returns as `key_of_fields`. */
static int make_key(Tree *tree, RowFields *row, TreeKey *key, KeyBuffer *bytes)
{
    *key = (TreeKey){NULL, 0, {0, 0}, 1};
    if (key_exact_hint(tree->layout, row, &key->hint))
        return tree_reserve_key(tree, 0) < 0 ? -1 : 1;
    int done = key_of_fields(tree->layout, row, bytes);
    if (done > 0 && tree_reserve_key(tree, bytes->size) < 0)
        return -1;
    if (done > 0)
        *key = tree_key(tree, bytes->data, bytes->size);
    return done;
}

/* Find out what moves. Returns as `change_by_layout` does; CHANGE_DONE with neither `has_old` nor `has_new` if nothing does. */
static int find_move(Move *move, int is_unique, Handle32 handle, RowFields *old, RowFields *row)
{
    Tree *tree = move->tree;
    TreeKey old_key;
    int done = old ? make_key(tree, old, &old_key, &move->old_bytes) : 1;
    if (done > 0 && row)
        done = make_key(tree, row, &move->new_key, &move->new_bytes);
    if (done <= 0)
        return done;
    if (old && row && is_same(&old_key, &move->new_key))
        return CHANGE_DONE;
    if (old) {
        move->old_place = tree_find(tree, &old_key);
        if (!move->old_place.is_found || tree_handle(tree, move->old_place) != handle)
            return CHANGE_UNKNOWN;
        move->has_old = 1;
    }
    if (row) {
        move->new_place = tree_find(tree, &move->new_key);
        if (move->new_place.is_found)
            return is_unique ? CHANGE_REFUSED : CHANGE_UNKNOWN;
        move->has_new = 1;
    }
    return CHANGE_DONE;
}

/* Make room for everything that will be added: from then on nothing fails. */
static int reserve(Tree *primary, const Move *moves, int count, int adds_row)
{
    if (adds_row && (records_reserve(primary->records) < 0 || tree_reserve(primary) < 0))
        return -1;
    for (int place = 0; place < count; place++)
        if (moves[place].has_new && tree_reserve(moves[place].tree) < 0)
            return -1;
    return 0;
}

/* Old entries go first: an entry is found by the row that is there. Returns the old record. */
static Record *carry_out(Tree *primary, Place at, Handle32 handle, Move *moves, int count, const TreeKey *key,
                         Record *record)
{
    Record *old = NULL;
    for (Move *move = moves; move < moves + count; move++)
        if (move->has_old)
            tree_remove(move->tree, move->old_place);
    if (!record) {
        tree_remove(primary, at);
        old = records_take(primary->records, handle);
    } else if (handle != NO_HANDLE) {
        old = records_swap(primary->records, handle, record);
    } else {
        handle = records_put(primary->records, record);
        tree_insert(primary, at, key, handle);
    }
    for (Move *move = moves; move < moves + count; move++) {
        if (!move->has_new)
            continue;
        if (move->has_old)
            move->new_place = tree_find(move->tree, &move->new_key);
        tree_insert(move->tree, move->new_place, &move->new_key, handle);
    }
    return old;
}

/* Whether a row has a primary key that is made from it. */
static int has_key(Tree *primary, const TreeKey *key, RowFields *row)
{
    TreeKey own;
    int done = make_key(primary, row, &own, &primary->scratch);
    return done > 0 ? is_same(&own, key) : done;
}

/* Change the row with a key. `made` has the fields of the record, or is NULL to remove the row. */
static int change(Tree *primary, const ChangedIndex *indexes, int count, const TreeKey *key, RowFields *made,
                  Record *record, Record **old)
{
    Place at = tree_find(primary, key);
    Handle32 handle = at.is_found ? tree_handle(primary, at) : NO_HANDLE;
    const Record *present = at.is_found ? records_at(primary->records, handle) : NULL;
    RowFields fields;
    if (count > CHANGE_INDEXES_MAX || (!present && (at.is_found || !made)) || (present && present->key_size)
        || (present && !row_fields(&fields, present->data, present->size)))
        return CHANGE_UNKNOWN;
    int done = made ? has_key(primary, key, made) : CHANGE_DONE;
    if (done <= 0)
        return done;
    Move moves[CHANGE_INDEXES_MAX];
    int found = 0;
    for (done = CHANGE_DONE; done == CHANGE_DONE && found < count; found++) {
        begin_move(moves + found, indexes[found].tree);
        done = find_move(moves + found, indexes[found].is_unique, handle, present ? &fields : NULL, made);
    }
    if (done == CHANGE_REFUSED)
        done += found - 1;
    else if (done == CHANGE_DONE
             && (views_keep(primary, key, handle) < 0 || reserve(primary, moves, count, made && !present) < 0))
        done = CHANGE_NO_MEMORY;
    else if (done == CHANGE_DONE)
        *old = carry_out(primary, at, handle, moves, count, key, record);
    while (found)
        end_move(moves + --found);
    return done;
}

int change_by_layout(Tree *primary, const ChangedIndex *indexes, int count, const TreeKey *key, Record *record, Record **old)
{
    RowFields fields;
    if (record && !row_fields(&fields, record->data, record->size))
        return CHANGE_UNKNOWN;
    return change(primary, indexes, count, key, record ? &fields : NULL, record, old);
}
