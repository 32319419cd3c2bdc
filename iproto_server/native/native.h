/* The rooms of the compiled module, from the lowest up.
 *
 * What comes from clients is read through `at` and `end` only: nothing is looked at before it is known to be there.
 */
#ifndef IPROTO_SERVER_NATIVE_H
#define IPROTO_SERVER_NATIVE_H

#include "values/values.h"
#include "keys/keys.h"
#include "module/module.h"
#include "sessions/sessions.h"
#include "log/log.h"
#include "transaction/transaction.h"
#include "dicts/dicts.h"
#include "trees/trees.h"
#include "space/space.h"
#include "facade/facade.h"
#include "wire/wire.h"
#include "requests/requests.h"
#include "lua/lua.h"
#include "lua_box/lua_box.h"

#endif
