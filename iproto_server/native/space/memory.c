/* The binding of the engine's memory budget (engine/core/memory/budget.h): box.memtx.memory_budget. */
#include "../native.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

/* set_memory_limit(limit, reserve): limit is None for none */
FUNCTION(native_set_memory_limit)
{
    size_t limit = BUDGET_UNLIMITED, reserve = 0;
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "set_memory_limit() takes a limit and a reserve");
        return NULL;
    }
    if (args[0] != Py_None) {
        limit = PyLong_AsSize_t(args[0]);
        reserve = PyErr_Occurred() ? 0 : PyLong_AsSize_t(args[1]);
        if (PyErr_Occurred())
            return NULL;
        if (reserve > limit) {
            PyErr_SetString(PyExc_ValueError, "the reserve is a part of the limit");
            return NULL;
        }
    }
    budget.limit = limit;
    budget.reserve = reserve;
    Py_RETURN_NONE;
}

/* memory_allows(old_size, size, entries, more, may_use_reserve) */
FUNCTION(native_memory_allows)
{
    size_t sizes[4];
    if (count != 5) {
        PyErr_SetString(PyExc_TypeError, "memory_allows() takes four numbers and whether the reserve may be used");
        return NULL;
    }
    for (int place = 0; place < 4; place++) {
        sizes[place] = PyLong_AsSize_t(args[place]);
        if (PyErr_Occurred())
            return NULL;
    }
    return PyBool_FromLong(budget_allows(sizes[0], sizes[1], sizes[2], sizes[3], args[4] == Py_True));
}

/* memory_usage(): bytes held for rows, used by rows, held for indexes, kept outside of the engine */
FUNCTION(native_memory_usage)
{
    if (count) {
        PyErr_SetString(PyExc_TypeError, "memory_usage() takes no arguments");
        return NULL;
    }
    return Py_BuildValue("nnnn", (Py_ssize_t)slab_held(), (Py_ssize_t)slab_used(), (Py_ssize_t)budget_indexes(),
                         (Py_ssize_t)budget.outside);
}

/* memory_outside(change): bytes that were allocated or, if negative, freed */
FUNCTION(native_memory_outside)
{
    if (count != 1) {
        PyErr_SetString(PyExc_TypeError, "memory_outside() takes a number");
        return NULL;
    }
    Py_ssize_t change = PyLong_AsSsize_t(args[0]);
    if (change == -1 && PyErr_Occurred())
        return NULL;
    if (change < 0 && (size_t)-change > budget.outside) {
        PyErr_SetString(PyExc_ValueError, "more memory is freed than was allocated");
        return NULL;
    }
    budget.outside += (size_t)change;
    Py_RETURN_NONE;
}

/* release_free_memory(): give free memory of malloc's heap back to the system */
FUNCTION(native_release_free_memory)
{
    if (count) {
        PyErr_SetString(PyExc_TypeError, "release_free_memory() takes no arguments");
        return NULL;
    }
#ifdef __GLIBC__
    malloc_trim(0);
#endif
    Py_RETURN_NONE;
}
