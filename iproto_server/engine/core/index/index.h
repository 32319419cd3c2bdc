/* An index: a tree of keys with the records behind them, and where its keys come from.
 *
 * Most keys are made from rows by their layout (key.h). All others come from a hook, as those of collations, of paths
 * into fields and of decimals do:
 *
 *     the index                       keys by         records behind its handles
 *     primary, with a layout          layout          rows; a row whose key needs the hook has it in front
 *     primary, without a layout       hook            pairs of a key and a row
 *     secondary, with a layout        layout          the primary index's rows; for a key of the hook, a pair of its own
 *     secondary, without a layout     hook            pairs of a key and a primary key
 *
 * Indexes are counted: whoever holds one retains it, and a secondary index holds the primary one.
 */
#ifndef IPROTO_ENGINE_INDEX_H
#define IPROTO_ENGINE_INDEX_H

#include "../tree/tree.h"

/* -- keys -- */

typedef struct {
    size_t start, size;
    int stays;    /* for index_change: whether its entry stays as it is */
    Record *pair; /* for index_change: the record of a new entry with a pair of its own */
} KeySlice;

/* Several keys in one piece of memory. All zeros is an empty list. */
typedef struct {
    KeyBuffer bytes;
    KeySlice *all, few[4];
    int count, room;
} KeyList;

void key_list_free(KeyList *list);
void key_list_clear(KeyList *list);                                  /* the memory stays */
int key_list_add(KeyList *list, const uint8_t *key, size_t size);    /* -1 without memory */
int key_list_find(const KeyList *list, const uint8_t *key, size_t size); /* its place, or -1 */

static inline const uint8_t *key_list_at(const KeyList *list, int place)
{
    return list->bytes.data + list->all[place].start;
}

/* A packed row, and what a hook has made of it for the next call. */
typedef struct {
    const uint8_t *data; /* NULL for no row */
    size_t size;
    void *decoded;
} RowRef;

/* Functions of the engine's user. Those that return an int return -1 if they fail. */
typedef struct {
    /* Append all keys of a row to a list, each once. The primary key is NULL for a primary index. */
    int (*keys_of)(void *context, RowRef *row, const uint8_t *primary_key, size_t primary_size, KeyList *keys);
    void (*release)(void *context);
} IndexHook;

/* -- indexes -- */

typedef struct Index {
    Tree tree;
    KeyLayout layout;
    Records own;        /* rows or pairs; of an index that refers to another one's rows, the pairs */
    struct Index *rows; /* the primary index whose rows it refers to; NULL for none */
    uint8_t is_unique, is_multikey;
    const IndexHook *hook;
    void *context;
    unsigned users;
} Index;

/* Make an empty index, which has one user. `layout` is NULL for keys of the hook; `rows` is NULL unless it is a secondary
 * index with a layout. The context is the index's from then on. Returns NULL without memory. */
Index *index_new(const KeyLayout *layout, Index *rows, const IndexHook *hook, void *context);
Index *index_retain(Index *index);
void index_release(Index *index); /* NULL is nothing to release */

/* Remove all entries and records. No view may be open. */
void index_clear(Index *index);

static inline int index_has_layout(const Index *index)
{
    return index->tree.layout != NULL;
}

static inline int index_holds_rows(const Index *index)
{
    return index->tree.layout && !index->rows;
}

/* A record of a row for a primary index; `is_by_layout` says whether its layout makes the key. NULL without memory. */
static inline Record *index_record(int is_by_layout, const uint8_t *key, size_t key_size, const uint8_t *row, size_t size)
{
    return record_new(is_by_layout ? NULL : key, is_by_layout ? 0 : key_size, row, size);
}

/* The keys of a row, by the layout if it can make them, otherwise by the hook. Returns -1 if that failed; otherwise
 * whether they are the layout's. */
int index_keys(const Index *index, RowRef *row, const uint8_t *primary_key, size_t primary_size, KeyList *keys);

/* -- changes -- */

enum {
    INDEX_NO_MEMORY = -1,
    INDEX_HOOK_FAILED = -2,
    INDEX_DONE = 0,
    INDEX_REFUSED = 1, /* plus the place of the unique index that has a new key */
};

/* Put a row in the place of the one with a primary key, add it if there is none, or remove that one if `record` is NULL,
 * in the primary index and in those of the others whose keys may change.
 *
 * `key` is the encoded primary key, which the row has. `old` is the row that is there; both refs are the caller's, who
 * frees what the hook has decoded. The record is stored itself, and `*replaced` becomes the record that was
 * there, which the caller has then, or NULL.
 *
 * Unless it returns INDEX_DONE nothing has changed.
 */
int index_change(Index *primary, Index *const *others, int count, const uint8_t *key, size_t key_size, RowRef *old,
                 RowRef *new_row, Record *record, Record **replaced);

#endif
