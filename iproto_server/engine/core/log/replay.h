/* The changes that a log tells of, made to a primary index alone. */
#ifndef IPROTO_ENGINE_REPLAY_H
#define IPROTO_ENGINE_REPLAY_H

#include "block.h"
#include "../tree/tree.h"
#include "../update/update.h"

enum { REPLAY_NAMES_MAX = 64 };

typedef struct {
    const uint8_t *text;
    size_t size;
    uint32_t number; /* of the field, from 0 */
} FieldName;

/* Where the changes of a space go. */
typedef struct {
    Tree *primary;    /* a tree of rows */
    KeyLayout key;    /* of a key alone: its parts are the fields, in order */
    FieldName *names; /* of fields, as update operations have them */
    int name_count;
    UpdateDoubles doubles;
    KeyBuffer bytes;  /* of the latest key; */
    uint8_t *row;     /* and the latest row that an update has made */
    size_t room;
} Replay;

/* Begin with a tree; then names and doubles may be set. */
void replay_begin(Replay *replay, Tree *primary);
void replay_end(Replay *replay); /* which frees everything but the names */

/* Make a change. Returns 1; -1 without memory; 0, with nothing changed, if it needs a closer look, is refused, or a view
 * is open. */
int replay_row(Replay *replay, const uint8_t *block, const BlockRow *row);

#endif
