/* A view of a primary index: its rows as they were when the view was opened, in the order of their keys, while the
 * index goes on changing.
 *
 * To open one copies nothing. Whoever changes an entry of the index lets the views keep it first (`views_keep`). A view
 * keeps a copy of an entry only if it is ahead of the walk, and not above the last entry that there was: in a queue the
 * newest rows are above, and the oldest are passed soon. What was kept is dropped when the walk passes it.
 */
#ifndef IPROTO_ENGINE_VIEW_H
#define IPROTO_ENGINE_VIEW_H

#include "tree.h"

/* A key with bytes of its own. */
typedef struct {
    TreeKey key;
    uint8_t *bytes;
    size_t room;
} OwnKey;

/* All zeros is a closed one. It must not be moved while it is open. */
typedef struct View {
    Tree *tree;         /* NULL if it is closed: nothing more is read, and nothing kept */
    struct View *next;  /* of the same tree */
    OwnKey passed, end; /* the key up to which the walk has come, if `has_passed`, and the last key that there was */
    int has_passed;
    Tree kept;          /* entries as they were; of keys that there were not, the key alone */
    Records records;    /* theirs */
    /* Between `view_resume` and `view_pause`: */
    Place at;           /* the walk in the tree */
    Place stop;         /* where the first kept entry is there, or would be; the end, if nothing is kept */
    enum { VIEW_TOOK_NOTHING, VIEW_TOOK_ENTRY, VIEW_TOOK_KEPT } took; /* what `view_next` did last */
    Place taken;        /* the entry that it took */
} View;

/* Open a closed view of a tree of pairs or rows. Returns -1 without memory. */
int view_open(View *view, Tree *tree);

/* Drop what was kept, and keep nothing more; harmless for a closed view. A tree outlives its open views. */
void view_close(View *view);

/* Walk: resume, look at rows, pause. The tree may change after a pause only.
 *
 * `view_next` returns VIEW_ROW with a row, which is valid until the next call; VIEW_NOTHING where a row was added since
 * the view was opened; VIEW_END, and then the view is to be closed. All three return -1 without memory. */
enum { VIEW_END, VIEW_ROW, VIEW_NOTHING };
int view_resume(View *view);
int view_next(View *view, const uint8_t **row, size_t *size);
int view_pause(View *view);

/* Let all views of a tree keep the entry of a key as it is, before it changes; `handle` is NO_HANDLE if there is none.
 * The key must have its bytes. Returns -1 without memory: then the entry must not change. */
int views_keep_entry(Tree *tree, const TreeKey *key, Handle32 handle);

static inline int views_keep(Tree *tree, const TreeKey *key, Handle32 handle)
{
    return tree->views ? views_keep_entry(tree, key, handle) : 0;
}

#endif
