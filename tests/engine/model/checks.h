/* The spaces and their views, compared with the model. */
#ifndef MODEL_CHECKS_H
#define MODEL_CHECKS_H

#include "engine.h"

static unsigned long viewed;

/* -- indexes -- */

/* An entry of an index: a row, or one of its tags. */
typedef struct {
    const Row *row;
    int tag;
} Entry;

static int sorted_space, sorted_index;

static int compare_entries(const void *one, const void *other)
{
    const Entry *left = one, *right = other;
    const TestIndex *index = &test_indexes[sorted_space][sorted_index];
    int order = index->has_tags ? left->tag - right->tag : 0;
    for (int field = 0; !index->has_tags && !order && field < index->count; field++)
        order = compare_field(index->fields[field], left->row, right->row);
    return order ? order : compare_field(test_indexes[sorted_space][0].fields[0], left->row, right->row);
}

static int entries_of(const Row *row, Entry *entries)
{
    int count = 0;
    if (!test_indexes[sorted_space][sorted_index].has_tags) {
        *entries = (Entry){row, 0};
        return 1;
    }
    for (int tag = 0; tag < row->tag_count; tag++)
        if (!tag || !memchr(row->tags, row->tags[tag], (size_t)tag))
            entries[count++] = (Entry){row, row->tags[tag]};
    return count;
}

/* The row of an entry: of a pair in a secondary index the one with its primary key. */
static Row row_at(int space, Index *index, Handle32 handle)
{
    Index *primary = spaces[space].primary;
    const Record *record = tree_record(&index->tree, handle);
    CHECK(record);
    if (index == primary || (index->rows && !(handle & TREE_PAIR)))
        return row_of(record);
    TreeKey key = tree_key(&primary->tree, record->data + record->key_size, record->size - record->key_size);
    Place place = tree_find(&primary->tree, &key);
    CHECK(place.is_found);
    return row_of(tree_record(&primary->tree, tree_handle(&primary->tree, place)));
}

static void check_index(int space, int number)
{
    static Entry entries[ROWS * TAGS_MAX];
    Index *index = number ? others[space][number - 1].index : spaces[space].primary;
    int count = 0, place = 0;
    sorted_space = space;
    sorted_index = number;
    for (int row = 0; row < model.count[space]; row++)
        count += entries_of(model.rows[space] + row, entries + count);
    qsort(entries, (size_t)count, sizeof *entries, compare_entries);
    CHECK(index->tree.size == (size_t)count);
    for (Place at = tree_begin(); !tree_is_end(&index->tree, at); at = tree_next(&index->tree, at), place++) {
        Row row = row_at(space, index, tree_handle(&index->tree, at));
        const Row *expected = entries[place].row;
        CHECK(row.size == expected->size && !memcmp(row.data, expected->data, row.size));
    }
    CHECK(place == count);
}

static void check_all(void)
{
    for (int space = 0; space < SPACES; space++) {
        size_t size = 0;
        for (int number = 0; number < index_count(space); number++)
            check_index(space, number);
        for (int row = 0; row < model.count[space]; row++)
            size += model.rows[space][row].size;
        CHECK(spaces[space].bsize == size);
        if (engine.running || is_suspended)
            continue;
        CHECK(logged.count[space] == model.count[space]);
        for (int row = 0; row < model.count[space]; row++)
            CHECK(is_same_row(model.rows[space] + row,
                              logged.rows[space] + find_row(&logged, space, model.rows[space] + row)));
    }
}

/* -- views -- */

static struct {
    View view;
    Row rows[ROWS];
    int count, next;
} views[SPACES];

static int compare_rows(const void *one, const void *other)
{
    return compare_field(test_indexes[sorted_space][0].fields[0], one, other);
}

static void open_view(int space)
{
    memcpy(views[space].rows, model.rows[space], sizeof views[space].rows);
    views[space].count = model.count[space];
    views[space].next = 0;
    sorted_space = space;
    qsort(views[space].rows, (size_t)views[space].count, sizeof(Row), compare_rows);
    CHECK(view_open(&views[space].view, &spaces[space].primary->tree) == 0);
    CHECK(views[space].view.tree || !views[space].count);
}

static void walk(int space, unsigned long steps)
{
    const uint8_t *data;
    size_t size;
    int found = VIEW_NOTHING;
    CHECK(view_resume(&views[space].view) == 0);
    while (steps-- && found != VIEW_END) {
        found = view_next(&views[space].view, &data, &size);
        CHECK(found >= 0 && (found != VIEW_END || views[space].next == views[space].count));
        if (found != VIEW_ROW)
            continue;
        const Row *expected = views[space].rows + views[space].next++;
        CHECK(views[space].next <= views[space].count && size == expected->size && !memcmp(data, expected->data, size));
        viewed++;
    }
    if (found == VIEW_END)
        view_close(&views[space].view);
    else
        CHECK(view_pause(&views[space].view) == 0);
}

static void look(int space)
{
    if (views[space].view.tree)
        walk(space, below(8));
    else
        open_view(space);
}

#endif
