/* How procedures find spaces and indexes: the twins of box.api.space.Spaces and box.api.space_index.Indexes.
 *
 * A space that was found before is known by what it was asked for, until the schema changes.
 */
#include "../native.h"

static PyTypeObject *spaces_type, *indexes_type;
enum { SPACES_CATALOG, SPACES_FOUND, SPACES_VERSION, SPACES_SLOTS };
static Slot spaces_slots[SPACES_SLOTS] = {{"_catalog", 0}, {"_found", 0}, {"_schema_version", 0}};
static Slot indexes_space = {"_space", 0};
static PyObject *version_name, *name_name;

static int make_name(PyObject **name, const char *text)
{
    return *name || (*name = PyUnicode_InternFromString(text)) ? 0 : -1;
}

/* -- spaces -- */

static int has_changed(PyObject *spaces)
{
    PyObject *known_version = get_slot(spaces, spaces_slots + SPACES_VERSION);
    PyObject *catalog = get_slot(spaces, spaces_slots + SPACES_CATALOG);
    PyObject *version = catalog && known_version ? PyObject_GetAttr(catalog, version_name) : NULL;
    int is_same = version ? PyObject_RichCompareBool(version, known_version, Py_EQ) : 0;
    Py_XDECREF(version);
    return is_same <= 0;
}

/* NULL, maybe without an exception. */
static PyObject *find_facade(PyObject *spaces, PyObject *which)
{
    if (Py_TYPE(spaces) != spaces_type || (!PyUnicode_CheckExact(which) && !PyLong_CheckExact(which))
        || has_changed(spaces))
        return NULL;
    PyObject *found = get_slot(spaces, spaces_slots + SPACES_FOUND);
    return found && PyDict_CheckExact(found) ? Py_XNewRef(PyDict_GetItemWithError(found, which)) : NULL;
}

static int prepare_spaces(PyTypeObject *type)
{
    if (spaces_type == type)
        return 0;
    if (make_name(&version_name, "schema_version") < 0
        || find_slots((PyObject *)type, spaces_slots, SPACES_SLOTS) < 0)
        return -1;
    spaces_type = (PyTypeObject *)Py_NewRef(type);
    return 0;
}

enum { GET_ITEM, GET_ATTRIBUTE, METHODS };
static Method spaces_methods[METHODS], indexes_methods[METHODS];

/* Names that begin so are those of Python's own attributes, not of spaces. */
static int is_reserved(PyObject *name)
{
    return !PyUnicode_CheckExact(name)
        || (PyUnicode_GET_LENGTH(name) > 1 && PyUnicode_READ_CHAR(name, 0) == '_' && PyUnicode_READ_CHAR(name, 1) == '_');
}

METHOD_FUNCTION(method_spaces_item)
{
    ANSWER(count == 1 && !names ? find_facade(self, args[0]) : NULL, spaces_methods[GET_ITEM]);
}

METHOD_FUNCTION(method_spaces_attribute)
{
    int is_known = count == 1 && !names && !is_reserved(args[0]);
    ANSWER(is_known ? find_facade(self, args[0]) : NULL, spaces_methods[GET_ATTRIBUTE]);
}

static Method spaces_methods[METHODS] = {
    METHOD_ENTRY("__getitem__", method_spaces_item, "The space with a name or number."),
    METHOD_ENTRY("__getattr__", method_spaces_attribute, "The space with a name."),
};

MethodTable spaces_facade_methods = {"Spaces", prepare_spaces, spaces_methods, METHODS};

/* -- indexes -- */

/* The number of the index with a name, borrowed; NULL, maybe without an exception. */
static PyObject *number_of(PyObject *indexes, PyObject *name)
{
    PyObject *number, *index;
    Py_ssize_t position = 0;
    while (PyDict_Next(indexes, &position, &number, &index)) {
        /* An attribute of an object of Python: nothing changes the indexes meanwhile. */
        PyObject *present = PyObject_GetAttr(index, name_name);
        int is_same = present && PyUnicode_CheckExact(present) && PyUnicode_Compare(present, name) == 0;
        Py_XDECREF(present);
        if (is_same)
            return number;
        if (PyErr_Occurred())
            return NULL;
    }
    return NULL;
}

/* NULL, maybe without an exception. */
static PyObject *find_index(PyObject *self, PyObject *which)
{
    PyObject *space = Py_TYPE(self) == indexes_type ? get_slot(self, &indexes_space) : NULL;
    PyObject *indexes = space ? facade_indexes(space) : NULL, *number = NULL;
    if (!indexes)
        return NULL;
    if (PyUnicode_CheckExact(which))
        number = number_of(indexes, which);
    else if (PyLong_CheckExact(which) && PyDict_GetItemWithError(indexes, which))
        number = which;
    return number ? new_index_facade(space, number) : NULL;
}

static int prepare_indexes(PyTypeObject *type)
{
    if (indexes_type == type)
        return 0;
    if (make_name(&name_name, "name") < 0 || find_slots((PyObject *)type, &indexes_space, 1) < 0)
        return -1;
    indexes_type = (PyTypeObject *)Py_NewRef(type);
    return 0;
}

METHOD_FUNCTION(method_indexes_item)
{
    ANSWER(count == 1 && !names ? find_index(self, args[0]) : NULL, indexes_methods[GET_ITEM]);
}

METHOD_FUNCTION(method_indexes_attribute)
{
    int is_known = count == 1 && !names && !is_reserved(args[0]);
    ANSWER(is_known ? find_index(self, args[0]) : NULL, indexes_methods[GET_ATTRIBUTE]);
}

static Method indexes_methods[METHODS] = {
    METHOD_ENTRY("__getitem__", method_indexes_item, "The index with a name or number."),
    METHOD_ENTRY("__getattr__", method_indexes_attribute, "The index with a name."),
};

MethodTable indexes_facade_methods = {"Indexes", prepare_indexes, indexes_methods, METHODS};
