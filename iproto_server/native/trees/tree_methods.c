/* Methods of trees that look for entries, and those that change single ones. */
#include "tree_entries.h"

PyObject *tree_method_get(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (count < 1 || count > 2) {
        PyErr_SetString(PyExc_TypeError, "get() takes a key and what to answer where there is none");
        return NULL;
    }
    PyObject *value = PyBytes_CheckExact(args[0]) ? tree_object_get(self, args[0]) : NULL;
    if (value || PyErr_Occurred())
        return value;
    return Py_NewRef(count > 1 ? args[1] : Py_None);
}

PyObject *tree_method_insert(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != 2 || check_bytes(args[0]) < 0 || check_bytes(args[1]) < 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "insert() takes a key and a value");
        return NULL;
    }
    TreeKey wanted;
    Place place = find(self, args[0], &wanted);
    if (!place.is_found && tree_insert_at(self, place, &wanted, args[0], args[1]) < 0)
        return NULL;
    return PyLong_FromLong(!place.is_found);
}

int tree_assign(PyObject *self, PyObject *key, PyObject *value)
{
    if (check_bytes(key) < 0 || (value && check_bytes(value) < 0))
        return -1;
    return value ? tree_object_set(self, key, value) : tree_object_remove(self, key);
}

static PyObject *entry_at(PyObject *self, Place place)
{
    Handle32 handle = tree_handle(core(self), place);
    PyObject *key = key_bytes(index_of(self), handle), *value = key ? value_bytes(index_of(self), handle) : NULL;
    PyObject *entry = value ? PyTuple_Pack(2, key, value) : NULL;
    Py_XDECREF(key);
    Py_XDECREF(value);
    return entry;
}

PyObject *tree_method_first(PyObject *self, PyObject *low)
{
    if (check_bytes(low) < 0)
        return NULL;
    Place place = bound(self, low, 0);
    if (tree_is_end(core(self), place))
        Py_RETURN_NONE;
    return entry_at(self, place);
}

PyObject *tree_method_first_value(PyObject *self, PyObject *prefix)
{
    if (check_bytes(prefix) < 0)
        return NULL;
    Place place = bound(self, prefix, 0);
    int does_start = tree_is_end(core(self), place) ? 0 : tree_starts_with(self, place, prefix);
    if (does_start < 0)
        return NULL;
    return does_start ? value_bytes(index_of(self), tree_handle(core(self), place)) : Py_NewRef(Py_None);
}

PyObject *tree_method_last(PyObject *self, PyObject *high)
{
    if (check_bound(high) < 0)
        return NULL;
    Place place = bound(self, high, 1);
    if (!place.leaf && !place.entry)
        Py_RETURN_NONE;
    return entry_at(self, tree_previous(core(self), place));
}

PyObject *tree_method_count(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != 2 || check_bound(args[0]) < 0 || check_bound(args[1]) < 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "count_between() takes two bounds");
        return NULL;
    }
    Place low = bound(self, args[0], 0);
    return PyLong_FromSize_t(tree_distance(core(self), low, bound(self, args[1], 1)));
}

static PyObject *list_from(PyObject *self, Place place, size_t count, PyObject *(*bytes)(Index *, Handle32))
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t number = 0; list && number < count; number++) {
        PyObject *item = bytes(index_of(self), tree_handle(core(self), place));
        if (item)
            PyList_SET_ITEM(list, (Py_ssize_t)number, item);
        else
            Py_CLEAR(list);
        place = tree_next(core(self), place);
    }
    return list;
}

/* How many entries are in an interval, at most `limit`: it may have millions. */
static size_t count_up_to(Tree *tree, Place low, Place high, size_t limit)
{
    size_t found = 0;
    for (Place place = low; tree_is_before(place, high) && found < limit; place.leaf++, place.entry = 0) {
        int end = place.leaf < high.leaf ? tree_leaf(tree, place.leaf)->count : high.entry;
        found += (size_t)(end - place.entry);
    }
    return found < limit ? found : limit;
}

static PyObject *list_between(PyObject *self, Place low, Place high, size_t offset, size_t limit, int is_descending)
{
    Tree *tree = core(self);
    if (!is_descending) {
        low = tree_advance(tree, low, offset);
        return list_from(self, low, count_up_to(tree, low, high, limit), value_bytes);
    }
    size_t found = tree_distance(tree, low, high);
    found = found > offset ? found - offset : 0;
    if (found > limit) {
        low = tree_advance(tree, low, found - limit);
        found = limit;
    }
    PyObject *values = list_from(self, low, found, value_bytes);
    if (values && PyList_Reverse(values) < 0)
        Py_CLEAR(values);
    return values;
}

/* range_values(low, high, offset, limit, is_descending) */
PyObject *tree_method_range_values(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    if (count != 5 || check_bound(args[0]) < 0 || check_bound(args[1]) < 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "range_values() takes two bounds, offset, limit and a direction");
        return NULL;
    }
    Py_ssize_t offset = PyLong_AsSsize_t(args[2]), limit = PyLong_AsSsize_t(args[3]);
    if (PyErr_Occurred())
        return NULL;
    if (offset < 0 || limit < 0) {
        PyErr_SetString(PyExc_ValueError, "offset and limit are not negative");
        return NULL;
    }
    Place low = bound(self, args[0], 0), high = bound(self, args[1], 1);
    return list_between(self, low, high, (size_t)offset, (size_t)limit, args[4] == Py_True);
}

/* after(key, count): the keys and the values of the first entries behind a key */
PyObject *tree_method_after(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Py_ssize_t limit = count == 2 ? PyLong_AsSsize_t(args[1]) : -1;
    if (limit < 0 || check_bytes(args[0]) < 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "after() takes a key and a number");
        return NULL;
    }
    Tree *tree = core(self);
    TreeKey wanted;
    Place place = find(self, args[0], &wanted);
    place.entry += place.is_found;
    place = tree_normal(tree, place);
    size_t found = count_up_to(tree, place, tree_end(tree), (size_t)limit);
    PyObject *keys = list_from(self, place, found, key_bytes);
    PyObject *values = keys ? list_from(self, place, found, value_bytes) : NULL;
    PyObject *both = values ? PyTuple_Pack(2, keys, values) : NULL;
    Py_XDECREF(keys);
    Py_XDECREF(values);
    return both;
}
