/* Rows that a request asks for, put into a response from where the engine has them. */
#include "../native.h"

enum { TOTAL_MAX = 64 * 1024 }; /* of what is larger, the connection has to say whether there is room */

int select_response(RowRequest *request, Response *response)
{
    PackedRow rows[TREE_SELECT_MAX];
    TreeObject *quick = space_index((SpaceObject *)request->space, request->index_id);
    if (!quick || request->iterator >= TREE_ITERATORS || !request->limit)
        return 0;
    int count = request->found = space_find_rows(quick, &request->key, request->iterator, request->offset,
                                                 request->limit, rows);
    size_t total = 0;
    for (int place = 0; place < count; place++)
        total += rows[place].size;
    return count < 0 || total > TOTAL_MAX ? 0 : answer_rows(request, response, rows, count);
}
