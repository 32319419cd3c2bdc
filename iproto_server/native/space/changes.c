/* Changes of a row's entries in all indexes: the twin of box.index.change_entries.
 *
 * An index that compiled code may change has a `quick`: its tree, its key and whether it is unique. Where one has none,
 * Python does the work.
 */
#include "../native.h"

typedef struct {
    Quick *quick;
    PyObject *old_key, *new_key; /* NULL for none */
    int is_same;                 /* whether the keys are, though the entry does not stay */
} Move;

#define INDEXES_MAX 16

static PyTypeObject *tree_index_type, *hash_index_type;
static Slot quick_slot = {"quick", 0};

Quick *quick_of(PyObject *index)
{
    if (Py_TYPE(index) != tree_index_type && Py_TYPE(index) != hash_index_type)
        return NULL;
    PyObject *quick = get_slot(index, &quick_slot);
    return quick && Py_TYPE(quick) == &QuickIndex_Type ? (Quick *)quick : NULL;
}

/* Find out what moves in an index. Returns -1 with an exception; otherwise whether anything does. `row` is the new row,
 * or None. */
static int find_move(Move *move, PyObject *key, PyObject *old, PyObject *new, PyObject *row)
{
    if (old != Py_None && !(move->old_key = row_key(move->quick->key_of, old, key)))
        return -1;
    if (new != Py_None && !(move->new_key = row_key(move->quick->key_of, new, key)))
        return -1;
    if (!move->old_key || !move->new_key)
        return move->old_key || move->new_key;
    Py_ssize_t size = PyBytes_GET_SIZE(move->old_key);
    move->is_same = size == PyBytes_GET_SIZE(move->new_key)
        && !memcmp(PyBytes_AS_STRING(move->old_key), PyBytes_AS_STRING(move->new_key), (size_t)size);
    return !move->is_same || (PyBytes_CheckExact(row) && !tree_object_keeps(move->quick->tree, move->new_key, row));
}

/* Whether another row has the new key. None has, where its end is the primary key. */
static int is_taken(const Move *move)
{
    return move->new_key && !move->is_same && move->quick->is_unique && !row_key_has_tail(move->quick->key_of)
        && tree_object_has(move->quick->tree, move->new_key);
}

static void drop_move(Move *move)
{
    Py_CLEAR(move->quick);
    Py_CLEAR(move->old_key);
    Py_CLEAR(move->new_key);
}

/* Old entries go first: an index that refers to rows finds an entry by the row that is there. */
static int carry_out(Quick *primary, PyObject *key, PyObject *row, const Move *moves, int count)
{
    for (const Move *move = moves; move < moves + count; move++)
        if (move->old_key && tree_object_remove(move->quick->tree, move->old_key) < 0)
            return -1;
    if (row == Py_None ? tree_object_remove(primary->tree, key) < 0 : tree_object_set(primary->tree, key, row) < 0)
        return -1;
    for (const Move *move = moves; move < moves + count; move++)
        if (move->new_key && tree_object_set(move->quick->tree, move->new_key, key) < 0)
            return -1;
    return 0;
}

PyObject *change_entries(Quick *primary, PyObject *secondaries, PyObject *key, PyObject *old, PyObject *new,
                         PyObject *row)
{
    if (PyTuple_GET_SIZE(secondaries) > INDEXES_MAX)
        return NULL;
    Move moves[INDEXES_MAX];
    int count = 0;
    PyObject *refusing = NULL;
    for (Py_ssize_t place = 0; place < PyTuple_GET_SIZE(secondaries); place++) {
        PyObject *index = PyTuple_GET_ITEM(secondaries, place);
        Move *move = moves + count++;
        *move = (Move){(Quick *)Py_XNewRef(quick_of(index)), NULL, NULL, 0};
        if (!move->quick)
            goto end;
        int moved = find_move(move, key, old, new, row);
        if (moved < 0)
            goto end;
        if (!moved) {
            drop_move(move);
            count--;
        } else if (is_taken(move)) {
            refusing = Py_NewRef(index);
            goto end;
        }
    }
    if (carry_out(primary, key, row, moves, count) == 0)
        refusing = Py_NewRef(Py_None);
end:
    while (count)
        drop_move(moves + --count);
    return refusing;
}

/* The trees of secondary indexes. Returns how many; -1 where Python has to do the work. */
static int trees_of(PyObject *secondaries, PyObject **trees, int *is_unique)
{
    int count = (int)PyTuple_GET_SIZE(secondaries);
    if (PyTuple_GET_SIZE(secondaries) > INDEXES_MAX)
        return -1;
    for (int place = 0; place < count; place++) {
        Quick *quick = quick_of(PyTuple_GET_ITEM(secondaries, place));
        if (!quick)
            return -1;
        trees[place] = quick->tree;
        is_unique[place] = quick->is_unique;
    }
    return count;
}

int changed_indexes(Quick *primary, PyObject *secondaries, ChangedIndex *indexes)
{
    PyObject *trees[INDEXES_MAX];
    int is_unique[INDEXES_MAX], count = trees_of(secondaries, trees, is_unique);
    return count >= 0 && tree_objects_changed(primary->tree, trees, is_unique, count, indexes);
}

PyObject *change_packed(Quick *primary, PyObject *secondaries, PyObject *key, PyObject *row)
{
    PyObject *trees[INDEXES_MAX];
    int is_unique[INDEXES_MAX], count = trees_of(secondaries, trees, is_unique);
    int done = count < 0 ? 0 : tree_object_change(primary->tree, trees, is_unique, count, key, row);
    if (done <= 0)
        return NULL;
    return Py_NewRef(done == 1 ? Py_None : PyTuple_GET_ITEM(secondaries, done - 2));
}

static int is_list_or_none(PyObject *fields)
{
    return fields == Py_None || PyList_CheckExact(fields);
}

/* change_entries(primary, secondaries, key, old, new, new_row, more) */
FUNCTION(native_change_entries)
{
    if (count == 7 && args[6] == Py_None && PyTuple_CheckExact(args[1]) && PyBytes_CheckExact(args[2])
        && is_list_or_none(args[3]) && is_list_or_none(args[4])
        && (args[5] == Py_None || PyBytes_CheckExact(args[5]))) {
        Quick *primary = (Quick *)Py_XNewRef(quick_of(args[0]));
        PyObject *refusing = primary ? change_entries(primary, args[1], args[2], args[3], args[4], args[5]) : NULL;
        Py_XDECREF(primary);
        if (refusing || PyErr_Occurred())
            return refusing;
    }
    return PyObject_Vectorcall(python_functions[PYTHON_CHANGE_ENTRIES], args, (size_t)count, NULL);
}

int prepare_changes(void)
{
    tree_index_type = find_class("iproto_server.box.index.tree_index", "TreeIndex", &quick_slot, 1);
    hash_index_type = find_class("iproto_server.box.index.hash_index", "HashIndex", &quick_slot, 1);
    return tree_index_type && hash_index_type ? 0 : -1;
}

/* quick_index(tree, key_of, encode_key, is_unique, is_exact, is_ordered) */
FUNCTION(native_quick_index)
{
    if (count != 6) {
        PyErr_SetString(PyExc_TypeError, "quick_index() takes a tree, two functions and what the index is");
        return NULL;
    }
    if (Py_TYPE(args[0]) != &Tree_Type || Py_TYPE(args[1]) != &RowKey_Type || Py_TYPE(args[2]) != &ClientKey_Type)
        Py_RETURN_NONE;
    Quick *quick = PyObject_New(Quick, &QuickIndex_Type);
    if (quick) {
        quick->tree = Py_NewRef(args[0]);
        quick->key_of = Py_NewRef(args[1]);
        quick->encode_key = Py_NewRef(args[2]);
        quick->is_unique = args[3] == Py_True;
        quick->is_exact = args[4] == Py_True;
        quick->is_ordered = args[5] == Py_True;
    }
    return (PyObject *)quick;
}

static void quick_dealloc(PyObject *self)
{
    Py_DECREF(((Quick *)self)->tree);
    Py_DECREF(((Quick *)self)->key_of);
    Py_DECREF(((Quick *)self)->encode_key);
    PyObject_Free(self);
}

PyTypeObject QuickIndex_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "iproto_server.native.QuickIndex",
    .tp_doc = "What compiled code needs of an index.",
    .tp_basicsize = sizeof(Quick),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_dealloc = quick_dealloc,
};
