/* Rows that a request asks for, put into a response from where the engine has them. */
#include "../native.h"

enum { TOTAL_MAX = 64 * 1024 }; /* of what is larger, the connection has to say whether there is room */

/* The row of a whole key that finds one at the most. Returns how many; TREE_ROWS_UNKNOWN where Python has to look. */
static int find_one(Tree *tree, const KeyBuffer *key, PackedRow *row)
{
    TreeKey wanted = tree_key(tree, key->data, key->size);
    Place place = tree_find(tree, &wanted);
    if (!place.is_found)
        return 0;
    Handle32 handle = tree_handle(tree, place);
    const Record *record = handle & TREE_PAIR ? NULL : tree_record(tree, handle);
    if (!record)
        return TREE_ROWS_UNKNOWN;
    *row = (PackedRow){record->data + record->key_size, record->size - record->key_size};
    return 1;
}

static int find_rows(const RowRequest *request, TreeObject *quick, PackedRow *rows)
{
    KeyBuffer key;
    key.data = NULL;
    key.size = 0;
    int values, found = TREE_ROWS_UNKNOWN;
    if (request_key(quick, &request->key, &key, &values) > 0) {
        Tree *tree = &quick->index->tree;
        int is_one = request->iterator == TREE_EQ && !request->offset && quick->is_exact
            && values == client_key_parts(quick->encode_key);
        if (is_one)
            found = find_one(tree, &key, rows);
        else if (quick->is_ordered)
            found = tree_find_rows(tree, (int)request->iterator, key.data ? key.data : key.first, key.size,
                                   request->offset, request->limit, rows);
    }
    key_buffer_free(&key);
    return found;
}

int select_response(RowRequest *request, Response *response)
{
    PackedRow rows[TREE_SELECT_MAX];
    TreeObject *quick = space_index((SpaceObject *)request->space, request->index_id);
    if (!quick || request->iterator >= TREE_ITERATORS || !request->limit)
        return 0;
    int count = request->found = find_rows(request, quick, rows);
    size_t total = 0;
    for (int place = 0; place < count; place++)
        total += rows[place].size;
    return count < 0 || total > TOTAL_MAX ? 0 : answer_rows(request, response, rows, count);
}
