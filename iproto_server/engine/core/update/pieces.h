/* New values of an update as pieces of the new row, for the files of this folder. */
#ifndef IPROTO_ENGINE_PIECES_H
#define IPROTO_ENGINE_PIECES_H

#include "update.h"

/* A first byte, and a number of so many bytes. */
void update_put_head(UpdatePiece *piece, uint8_t first, uint64_t value, int width);

/* Store a double as float32 if that is exact. */
void update_shorten_real(UpdatePiece *piece);

/* Make one value of another: all but = ! and #. Returns 0, with nothing changed, if that is refused or not known here, as
 * of decimals. */
int update_compute(UpdatePiece *piece, const UpdateOperation *operation);

#endif
