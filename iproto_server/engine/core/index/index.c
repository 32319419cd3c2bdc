#include "index.h"

#include "by_layout.h"
#include "../tree/view.h"

#include <stdlib.h>
#include <string.h>

/* -- lists of keys -- */

void key_list_free(KeyList *list)
{
    key_buffer_free(&list->bytes);
    if (list->all != list->few)
        free(list->all);
    *list = (KeyList){0};
}

void key_list_clear(KeyList *list)
{
    list->bytes.size = 0;
    list->count = 0;
}

static int reserve_slice(KeyList *list)
{
    if (!list->all) {
        list->all = list->few;
        list->room = (int)(sizeof list->few / sizeof *list->few);
    }
    if (list->count < list->room)
        return 0;
    KeySlice *wider = list->all == list->few ? malloc(2 * sizeof list->few)
                                             : realloc(list->all, 2 * (size_t)list->room * sizeof *wider);
    if (!wider)
        return -1;
    if (list->all == list->few)
        memcpy(wider, list->few, sizeof list->few);
    list->all = wider;
    list->room *= 2;
    return 0;
}

int key_list_add(KeyList *list, const uint8_t *key, size_t size)
{
    size_t start = list->bytes.size;
    if (reserve_slice(list) < 0 || key_buffer_reserve(&list->bytes, start + size) < 0)
        return -1;
    if (size)
        memcpy(list->bytes.data + start, key, size);
    list->bytes.size += size;
    list->all[list->count++] = (KeySlice){start, size, 0, NULL};
    return 0;
}

int key_list_find(const KeyList *list, const uint8_t *key, size_t size)
{
    int place = list->count;
    while (place-- && (list->all[place].size != size || memcmp(key_list_at(list, place), key, size)))
        ;
    return place;
}

/* -- indexes -- */

Index *index_new(const KeyLayout *layout, Index *rows, const IndexHook *hook, void *context)
{
    Index *index = calloc(1, sizeof *index);
    if (!index)
        return NULL;
    index->users = 1;
    index->hook = hook;
    index->context = context;
    index->tree.records = index->tree.pairs = &index->own;
    if (layout) {
        index->layout = *layout;
        index->tree.layout = &index->layout;
    }
    if (rows) {
        index->rows = index_retain(rows);
        index->tree.records = &rows->own;
        index->tree.has_references = 1;
    }
    return index;
}

Index *index_retain(Index *index)
{
    index->users++;
    return index;
}

void index_release(Index *index)
{
    if (!index || --index->users)
        return;
    index_clear(index);
    index_release(index->rows);
    if (index->hook)
        index->hook->release(index->context);
    key_buffer_free(&index->tree.scratch);
    free(index);
}

void index_clear(Index *index)
{
    tree_clear(&index->tree);
    records_clear(&index->own);
}

int index_keys(const Index *index, RowRef *row, const uint8_t *primary_key, size_t primary_size, KeyList *keys)
{
    if (index_has_layout(index)) {
        KeyBuffer made = {0};
        int done = key_of_row(index->tree.layout, row->data, row->size, &made);
        if (done > 0 && key_list_add(keys, made.data ? made.data : made.first, made.size) < 0)
            done = -1;
        key_buffer_free(&made);
        if (done)
            return done < 0 ? INDEX_NO_MEMORY : 1;
    }
    return index->hook->keys_of(index->context, row, primary_key, primary_size, keys) < 0 ? INDEX_HOOK_FAILED : 0;
}

/* -- the change of a row in indexes of all kinds -- */

typedef struct {
    const uint8_t *data;
    size_t size;
} Bytes;

/* What changes in one index besides the primary one. */
typedef struct {
    Index *index;
    KeyList old, made; /* the keys of the old row, and those of the new one */
    int is_by_layout;  /* whether the new ones are made by the layout */
    int inserted;      /* how many of the new ones have been looked at to insert pairs */
} Move;

static TreeKey key_at(Index *index, const KeyList *keys, int place)
{
    return tree_key(&index->tree, key_list_at(keys, place), keys->all[place].size);
}

static Place find(Index *index, const KeyList *keys, int place)
{
    TreeKey key = key_at(index, keys, place);
    return tree_find(&index->tree, &key);
}

/* Whether new entries of the index have pairs of their own. */
static int has_pairs(const Move *move)
{
    return !move->index->rows || !move->is_by_layout;
}

static int is_pair(const Index *index, Place place)
{
    return !index->rows || tree_handle(&index->tree, place) & TREE_PAIR;
}

/* Find out which entries stay. Returns INDEX_DONE; INDEX_REFUSED if another row has a new key. */
static int compare(Move *move)
{
    for (int number = 0; number < move->made.count; number++) {
        KeySlice *slice = move->made.all + number;
        int same = key_list_find(&move->old, key_list_at(&move->made, number), slice->size);
        Place place = find(move->index, &move->made, number);
        if (same < 0 && place.is_found)
            return INDEX_REFUSED;
        if (same >= 0 && (is_pair(move->index, place) || !has_pairs(move)))
            slice->stays = move->old.all[same].stays = 1;
    }
    return INDEX_DONE;
}

static int find_keys(Move *move, Bytes key, RowRef *old, RowRef *new_row)
{
    int done = old->data ? index_keys(move->index, old, key.data, key.size, &move->old) : 0;
    if (done >= 0 && new_row->data)
        done = move->is_by_layout = index_keys(move->index, new_row, key.data, key.size, &move->made);
    return done < 0 ? done : compare(move);
}

/* Whether the entry of a new key is there already, without a pair of its own. */
static int is_converted(const Move *move, int number)
{
    return key_list_find(&move->old, key_list_at(&move->made, number), move->made.all[number].size) >= 0;
}

/* Make the pairs of new entries, and insert those whose keys are new. Returns INDEX_NO_MEMORY or INDEX_DONE. */
static int insert_pairs(Move *move, Bytes key)
{
    Index *index = move->index;
    for (; has_pairs(move) && move->inserted < move->made.count; move->inserted++) {
        KeySlice *slice = move->made.all + move->inserted;
        if (slice->stays)
            continue;
        if (records_reserve(&index->own) < 0 || tree_reserve_key(&index->tree, slice->size) < 0
            || !(slice->pair = record_new(key_list_at(&move->made, move->inserted), slice->size, key.data, key.size)))
            return INDEX_NO_MEMORY;
        if (is_converted(move, move->inserted))
            continue;
        TreeKey made = key_at(index, &move->made, move->inserted);
        Place place = tree_find(&index->tree, &made);
        if (tree_reserve(&index->tree) < 0) {
            record_free(slice->pair);
            return INDEX_NO_MEMORY;
        }
        Handle32 handle = records_put(&index->own, slice->pair);
        tree_insert(&index->tree, place, &made, index->rows ? handle | TREE_PAIR : handle);
    }
    return INDEX_DONE;
}

static void remove_pair(Index *index, const KeyList *keys, int number)
{
    Place place = find(index, keys, number);
    Handle32 handle = tree_handle(&index->tree, place);
    tree_remove(&index->tree, place);
    records_remove(&index->own, handle & ~TREE_PAIR);
}

/* Take back what insert_pairs has done. */
static void take_back_pairs(Move *move)
{
    while (move->inserted--) {
        KeySlice *slice = move->made.all + move->inserted;
        if (!slice->pair)
            continue;
        if (is_converted(move, move->inserted))
            record_free(slice->pair);
        else
            remove_pair(move->index, &move->made, move->inserted);
    }
}

/* Make room for the entries that refer to rows. */
static int reserve_references(Move *move)
{
    for (int number = 0; !has_pairs(move) && number < move->made.count; number++)
        if (!move->made.all[number].stays
            && (tree_reserve_key(&move->index->tree, move->made.all[number].size) < 0
                || tree_reserve(&move->index->tree) < 0))
            return INDEX_NO_MEMORY;
    return INDEX_DONE;
}

/* Remove the entries that refer to the old row, or give them pairs of their own: they are found by that row. */
static void remove_references(Move *move)
{
    Index *index = move->index;
    for (int number = 0; index->rows && number < move->old.count; number++) {
        if (move->old.all[number].stays)
            continue;
        Place place = find(index, &move->old, number);
        if (is_pair(index, place))
            continue;
        const KeySlice *slice = move->old.all + number;
        int same = key_list_find(&move->made, key_list_at(&move->old, number), slice->size);
        if (same >= 0) { /* which has no pair yet, so it does not stay because it gets one */
            tree_leaf(&index->tree, place.leaf)->handles[place.entry] =
                records_put(&index->own, move->made.all[same].pair) | TREE_PAIR;
            move->old.all[number].stays = 1;
        } else {
            tree_remove(&index->tree, place);
            move->old.all[number].stays = 1; /* nothing is left to be done */
        }
    }
}

static void insert_references(Move *move, Handle32 handle)
{
    for (int number = 0; !has_pairs(move) && number < move->made.count; number++) {
        if (move->made.all[number].stays)
            continue;
        TreeKey made = key_at(move->index, &move->made, number);
        tree_insert(&move->index->tree, tree_find(&move->index->tree, &made), &made, handle);
    }
}

static void remove_old_pairs(Move *move)
{
    for (int number = 0; number < move->old.count; number++)
        if (!move->old.all[number].stays)
            remove_pair(move->index, &move->old, number);
}

/* Where the row is in the primary index, or is to be. */
typedef struct {
    Index *primary;
    TreeKey key;
    Place at;
    Handle32 handle;
} Target;

static int reserve_target(const Target *target, int adds_row)
{
    Index *primary = target->primary;
    if (tree_reserve_key(&primary->tree, target->key.size) < 0
        || (adds_row && (records_reserve(&primary->own) < 0 || tree_reserve(&primary->tree) < 0)))
        return INDEX_NO_MEMORY;
    return views_keep(&primary->tree, &target->key, target->handle) < 0 ? INDEX_NO_MEMORY : INDEX_DONE;
}

static Record *set_target(Target *target, Record *record)
{
    Index *primary = target->primary;
    if (!record) {
        tree_remove(&primary->tree, target->at);
        return records_take(&primary->own, target->handle);
    }
    if (target->handle != NO_HANDLE)
        return records_swap(&primary->own, target->handle, record);
    target->handle = records_put(&primary->own, record);
    tree_insert(&primary->tree, target->at, &target->key, target->handle);
    return NULL;
}

/* Make a change, all of whose keys are known. */
static int carry_out(Target *target, Move *moves, int count, Bytes key, Record *record, Record **replaced)
{
    int done = INDEX_DONE, number = 0;
    for (; done == INDEX_DONE && number < count; number++)
        done = insert_pairs(moves + number, key);
    for (int other = 0; done == INDEX_DONE && other < count; other++)
        done = reserve_references(moves + other);
    if (done == INDEX_DONE)
        done = reserve_target(target, record && target->handle == NO_HANDLE);
    if (done != INDEX_DONE) {
        while (number)
            take_back_pairs(moves + --number);
        return done;
    }
    for (Move *move = moves; move < moves + count; move++)
        remove_references(move);
    *replaced = set_target(target, record);
    for (Move *move = moves; move < moves + count; move++) {
        insert_references(move, target->handle);
        remove_old_pairs(move);
    }
    return INDEX_DONE;
}

static int change_any(Index *primary, Index *const *others, int count, Bytes key, RowRef *old, RowRef *new_row,
                      Record *record, Record **replaced)
{
    Target target = {primary, tree_key(&primary->tree, key.data, key.size), {0, 0, 0}, NO_HANDLE};
    target.at = tree_find(&primary->tree, &target.key);
    if (target.at.is_found)
        target.handle = tree_handle(&primary->tree, target.at);
    Move *moves = count ? calloc((size_t)count, sizeof *moves) : NULL;
    if (count && !moves)
        return INDEX_NO_MEMORY;
    int done = INDEX_DONE, number = 0;
    for (; done == INDEX_DONE && number < count; number++) {
        moves[number].index = others[number];
        done = find_keys(moves + number, key, old, new_row);
    }
    if (done == INDEX_REFUSED)
        done += number - 1;
    else if (done == INDEX_DONE)
        done = carry_out(&target, moves, count, key, record, replaced);
    while (number--) {
        key_list_free(&moves[number].old);
        key_list_free(&moves[number].made);
    }
    free(moves);
    return done;
}

/* -- the same where all keys are made by layouts -- */

static int change_plain(Index *primary, Index *const *others, int count, Bytes key, Record *record, Record **replaced)
{
    ChangedIndex changed[CHANGE_INDEXES_MAX];
    if (count > CHANGE_INDEXES_MAX || !index_holds_rows(primary) || (record && record->key_size))
        return CHANGE_UNKNOWN;
    for (int number = 0; number < count; number++) {
        if (others[number]->rows != primary)
            return CHANGE_UNKNOWN;
        changed[number] = (ChangedIndex){&others[number]->tree, others[number]->is_unique};
    }
    TreeKey wanted = tree_key(&primary->tree, key.data, key.size);
    return change_by_layout(&primary->tree, changed, count, &wanted, record, replaced);
}

int index_change(Index *primary, Index *const *others, int count, const uint8_t *key, size_t key_size, RowRef *old,
                 RowRef *new_row, Record *record, Record **replaced)
{
    Bytes bytes = {key, key_size};
    int done = change_plain(primary, others, count, bytes, record, replaced);
    if (done >= CHANGE_REFUSED)
        return INDEX_REFUSED + done - CHANGE_REFUSED;
    if (done != CHANGE_UNKNOWN)
        return done == CHANGE_DONE ? INDEX_DONE : INDEX_NO_MEMORY;
    return change_any(primary, others, count, bytes, old, new_row, record, replaced);
}
