/* Filling indexes at once: with rows that come in the order of their keys, or from the rows of another index. */
#ifndef IPROTO_ENGINE_BUILD_H
#define IPROTO_ENGINE_BUILD_H

#include "tree.h"

enum {
    BUILD_NO_MEMORY = -1,
    BUILD_UNKNOWN = 0, /* some key cannot be made from its row */
    BUILD_DONE = 1,
    BUILD_REPEATED = 2, /* two rows have the same key */
};

/* Fill an empty tree of references with an entry for each row of its primary index.
 *
 * Unless it returns BUILD_DONE, the tree is as empty as before. Rows are read only, and memory comes from malloc, so
 * other threads may run meanwhile, as long as they do not use these trees.
 */
int build_references(Tree *tree, const Tree *primary);

/* Add a row to a primary index whose keys are all below its own. `key` is overwritten.
 *
 * Returns BUILD_DONE; BUILD_UNKNOWN, with nothing changed, also if its key is not above all others, or a view is open.
 */
int build_append(Tree *primary, const uint8_t *row, size_t size, KeyBuffer *key);

#endif
