/* The engine: all that its users call. The server's binding does, and whatever else runs in its process may, too.
 *
 *     to                                   call                                           in
 *     make spaces and their indexes        a Space with its hooks, index_new              space/, index/index.h
 *     change a row                         change_init, change_store and others           change/change.h
 *     begin, commit, roll back             engine_begin, engine_commit, engine_rollback   transaction/transaction.h
 *     go back to a savepoint               engine_mark, engine_rollback_to                transaction/transaction.h
 *     suspend a transaction                transaction_take_out, transaction_put_in       transaction/transaction.h
 *     write a transaction to a log         the hook `log`, with the statements            transaction/transaction.h
 *     read rows in the order of an index   tree_lower_bound, tree_next, tree_record       tree/tree.h
 *     read all rows as they were           view_open, view_next                           tree/view.h
 *     build an index of rows               build_references                               tree/build.h
 *     read a log or a snapshot             block_read, replay_row, build_append           log/, tree/build.h
 *     make keys of rows and of requests    key_of_row, key_of_values                      key/key.h
 *     update a packed row                  update_read, update_row, update_write          update/update.h
 *     check a packed row's types           format_fits                                    values/format.h
 *     limit memory                         `budget`                                       memory/budget.h
 *
 * Rows, keys and update operations are MessagePack; fields count from 0. Hooks are the user's functions, with a context:
 * they make the keys that the core cannot make, decide, take effect, and say why something is refused. All engines of a
 * process share one allocator and one memory budget. One thread at a time may call: in the server's process the one that
 * holds the interpreter's lock.
 *
 * tests/engine/test_spaces.c is a whole user: its hooks are in tests/engine/model_engine.h.
 */
#ifndef IPROTO_ENGINE_H
#define IPROTO_ENGINE_H

#include "change/change.h"
#include "log/replay.h"
#include "memory/budget.h"
#include "memory/slab.h"
#include "tree/build.h"
#include "tree/view.h"

#endif
