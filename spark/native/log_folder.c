/* Folds the rows of a log into the states of keys in one pass: `LogFolder.apply_buffer` in
 * spark/source/state/log_folder.py. Rows that are not plain are detected before any state changes, and left to Python.
 */
#include "key_states.h"
#include "row_scanner.h"

#define MEMBERS 32
#define SHARED 8
#define SPREAD 0x9e3779b97f4a7c15

enum { NUMBERS = 1, STRINGS };

/* The parameters of `LogFolder`. */
typedef struct {
    Position begin, end;     /* the rows */
    int64_t space;           /* the space to fold */
    int64_t kind;            /* the kind of its primary key */
    int64_t task, tasks;     /* this task, and the number of tasks */
    int has_snapshot;        /* whether a snapshot may have further rows */
    const int64_t *low, *high; /* by member: rows with low < LSN <= high count */
    const int64_t *clock;      /* by member, the last LSN seen so far; NULL disables the check for gaps */
    const int64_t *most;       /* by member, the highest LSN to check */
} Rule;

/* The effect of a row: the key and the new tuple, whose offset is negative if the key is deleted. */
typedef struct {
    int64_t key, key_end, tuple, tuple_end;
} Change;

typedef struct {
    Change *all;
    size_t count, room;
    int64_t member, first, last; /* the only writer, and its LSNs, which have no gap */
    int64_t reached;             /* the member's clock after the rows, if gaps are checked */
} Changes;

/* Whether a key has its shortest encoding: otherwise, other bytes may encode the same key. */
static int is_shortest(const Rule *rule, const LogRow *row)
{
    if (row->item < 0)
        return 0;
    Position at = rule->begin + row->item;
    int first = at[0], width = first & 3; /* of the number or length, as a power of 2 */
    if (rule->kind == NUMBERS) {
        if (first < 0x80)
            return 1;
        if (first < 0xcc || first > 0xcf)
            return 0;
        uint64_t least = width == 0 ? 0x80 : (uint64_t)1 << (4 << width);
        return big_endian(at + 1, 1 << width) >= least;
    }
    if (first >= 0xa0 && first < 0xc0)
        return 1;
    if (first < 0xd9 || first > 0xdb)
        return 0;
    width = first - 0xd9;
    return big_endian(at + 1, 1 << width) >= (width == 0 ? 32 : (uint64_t)1 << (4 << width));
}

/* `share_of` in spark/source/decode/packed_keys.py. */
static int is_own(const Rule *rule, const Key *key)
{
    if (rule->tasks == 1)
        return 1;
    size_t size = key->size < SHARED ? key->size : SHARED;
    uint64_t share = big_endian(key->at + key->size - size, (int)size) * SPREAD >> 32;
    return share % (uint64_t)rule->tasks == (uint64_t)rule->task;
}

/* Append a change. Returns 0 with an exception. */
static int keep_change(Changes *changes, const LogRow *row)
{
    if (changes->count == changes->room) {
        size_t room = 2 * changes->room + 1024;
        Change *all = PyMem_Realloc(changes->all, room * sizeof *all);
        if (!all) {
            PyErr_NoMemory();
            return 0;
        }
        changes->all = all;
        changes->room = room;
    }
    changes->all[changes->count++] = (Change){row->item, row->item_end, row->tuple, row->tuple_end};
    return 1;
}

/* Collect the changes that count. Returns 0 if a row is not plain, or with an exception. */
static int find_changes(const Rule *rule, Changes *changes)
{
    LogRow row = {.is_last = 0};
    for (Position at = rule->begin; at < rule->end;) {
        int is_first = at == rule->begin;
        if (!next_log_row(rule->begin, &at, rule->end, &row) || row.member >= MEMBERS)
            return 0;
        if (is_first) {
            changes->member = row.member;
            changes->first = row.lsn;
        } else if (row.member != changes->member || row.lsn - 1 != changes->last) {
            return 0;
        }
        changes->last = row.lsn;
        if (row.space != rule->space || row.lsn <= rule->low[row.member] || row.lsn > rule->high[row.member])
            continue;
        if (row.type == ROW_UPDATE || !is_shortest(rule, &row) || !keep_change(changes, &row))
            return 0;
    }
    if (!row.is_last)
        return 0;
    if (!rule->clock)
        return 1;
    int64_t clock = rule->clock[changes->member], most = rule->most[changes->member];
    int has_new = changes->last > clock && most > clock && most >= changes->first;
    changes->reached = !has_new ? clock : changes->last < most ? changes->last : most;
    return !has_new || changes->first - 1 <= clock;
}

/* Returns 0 with an exception. */
static int fold_change(KeyStates *states, const Rule *rule, const Change *change, const Key *key)
{
    PyObject *state;
    if (change->tuple >= 0 && is_own(rule, key))
        state = PyBytes_FromStringAndSize((const char *)rule->begin + change->tuple, change->tuple_end - change->tuple);
    else if (rule->has_snapshot)
        state = Py_NewRef(change->tuple >= 0 ? Py_True : Py_None);
    else {
        if (change->tuple < 0)
            remove_state(states, key);
        return 1;
    }
    return set_state(states, key, state);
}

static int fold_changes(KeyStates *states, const Rule *rule, const Changes *changes)
{
    Key keys[PREFETCHED];
    size_t count = changes->count;
    for (size_t begin = 0, end; begin < count; begin = end) {
        end = count - begin < PREFETCHED ? count : begin + PREFETCHED;
        for (size_t number = begin; number < end; number++) {
            const Change *change = &changes->all[number];
            keys[number - begin] = key_of(rule->begin + change->key, (size_t)(change->key_end - change->key));
        }
        prefetch_keys(states, keys, end - begin);
        for (size_t number = begin; number < end; number++)
            if (!fold_change(states, rule, &changes->all[number], &keys[number - begin]))
                return 0;
    }
    return 1;
}

/* Get an array of one number per member. Returns 0 with an exception. */
static int numbers_init(Py_buffer *view, PyObject *object, const int64_t **numbers)
{
    if (PyObject_GetBuffer(object, view, PyBUF_SIMPLE) < 0)
        return 0;
    *numbers = view->buf;
    if (view->len == MEMBERS * (Py_ssize_t)sizeof **numbers)
        return 1;
    PyErr_SetString(PyExc_ValueError, "expected one number per member");
    return 0;
}

/* fold(data, size, space, kind, task, tasks, has_snapshot, low, high, clock, most): the member that wrote the rows,
 * and its clock if gaps are checked; None, with no state changed, if a row is not plain */
PyObject *key_states_fold(PyObject *self, PyObject *args)
{
    PyObject *data, *numbers[4];
    Py_ssize_t size;
    long long space, kind, task, tasks;
    int has_snapshot;
    if (!PyArg_ParseTuple(args, "SnLLLLpOOOO:fold", &data, &size, &space, &kind, &task, &tasks, &has_snapshot,
                          &numbers[0], &numbers[1], &numbers[2], &numbers[3]))
        return NULL;
    if (size < 0 || size > PyBytes_GET_SIZE(data) || tasks < 1 || (kind != NUMBERS && kind != STRINGS)) {
        PyErr_SetString(PyExc_ValueError, "fold() takes a size within the data, a kind of keys, and tasks");
        return NULL;
    }
    Position begin = (Position)PyBytes_AS_STRING(data);
    Rule rule = {begin, begin + size, space, kind, task, tasks, has_snapshot, NULL, NULL, NULL, NULL};
    const int64_t **const places[] = {&rule.low, &rule.high, &rule.clock, &rule.most};
    Py_buffer views[4] = {{NULL}};
    int is_known = 1;
    for (int place = 0; is_known && place < (numbers[2] == Py_None ? 2 : 4); place++)
        is_known = numbers_init(&views[place], numbers[place], places[place]);
    Changes changes = {NULL};
    PyObject *result = NULL;
    if (is_known) {
        int is_usual = size && find_changes(&rule, &changes);
        if (is_usual && fold_changes((KeyStates *)self, &rule, &changes))
            result = Py_BuildValue("LL", (long long)changes.member, (long long)changes.reached);
        else if (!PyErr_Occurred())
            result = Py_NewRef(Py_None);
        PyMem_Free(changes.all);
    }
    for (int place = 0; place < 4; place++)
        PyBuffer_Release(&views[place]);
    return result;
}
