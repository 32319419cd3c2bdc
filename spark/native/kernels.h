/* Declarations shared by the kernels. A kernel is the compiled twin of a Python function or class, which specifies it.
 * It handles the common case and returns None or False if Python has to do the work.
 */
#ifndef SPARK_KERNELS_H
#define SPARK_KERNELS_H

#include "../../iproto_server/native/values/reader.h"

#define KERNEL(name) PyObject *name(PyObject *module, PyObject *const *args, Py_ssize_t count)

/* row_scanner.c */
KERNEL(quick_rows);
KERNEL(quick_tuples);

/* log_folder.c */
KERNEL(quick_operations);

/* arrow_columns.c */
KERNEL(quick_raws);
KERNEL(quick_integers);
KERNEL(quick_strings);
KERNEL(quick_search);

/* json_texts.c */
KERNEL(quick_json);

/* key_states.c */
extern PyTypeObject KeyStates_Type;

#endif
