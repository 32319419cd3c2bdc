/* What all rooms of the module share: slots of Python objects, methods of Python classes. */
#ifndef IPROTO_SERVER_MODULE_H
#define IPROTO_SERVER_MODULE_H

#include "../values/values.h"
#include "fields.h"

/* arguments.c */
/* Take the arguments of a method, `count_min` of which are required, from their places or by their names; those that are
 * not given stay as they are. Returns -1 with an exception. */
int take_arguments(const char *method, const char *const *known_names, int count_min, int count_max,
                   PyObject *const *args, Py_ssize_t count, PyObject *names, PyObject **taken);

/* hooks.c: what Python modules have given to compiled code, once; borrowed, NULL with an exception */
enum { HOOK_FRAMING_ERROR, HOOK_REQUEST_ERROR, HOOK_DECODE_EXTENSION, HOOK_ENCODE_EXTENSION, HOOKS };
PyObject *hook(int place);
FUNCTION(native_set_hook);

#endif
