#include "engine.h"

#include "tree/build.h"

#include <stdlib.h>

/* -- names and types -- */

const char *engine_type_name(IprotoFieldType type)
{
    static const char *const names[] = {"any",     "unsigned", "string",    "number", "double",
                                        "integer", "boolean",  "varbinary", "array",  "map"};
    return names[type];
}

uint8_t engine_field_type(IprotoFieldType type)
{
    static const uint8_t types[] = {FIELD_ANY,     FIELD_UNSIGNED, FIELD_STRING,    FIELD_NUMBER, FIELD_DOUBLE,
                                    FIELD_INTEGER, FIELD_BOOLEAN,  FIELD_VARBINARY, FIELD_ARRAY,  FIELD_MAP};
    return types[type];
}

const char *engine_field_name(uint8_t type)
{
    IprotoFieldType found = IPROTO_ANY;
    while (engine_field_type(found) != type)
        found++;
    return engine_type_name(found);
}

/* Returns 0 for a type that keys do not have. */
static int key_type(IprotoFieldType type, uint8_t *key)
{
    switch (type) {
    case IPROTO_UNSIGNED: *key = KEY_UNSIGNED; return 1;
    case IPROTO_STRING: *key = KEY_STRING; return 1;
    case IPROTO_NUMBER: *key = KEY_NUMBER; return 1;
    case IPROTO_DOUBLE: *key = KEY_DOUBLE; return 1;
    case IPROTO_INTEGER: *key = KEY_INTEGER; return 1;
    case IPROTO_BOOLEAN: *key = KEY_BOOLEAN; return 1;
    case IPROTO_VARBINARY: *key = KEY_VARBINARY; return 1;
    default: return 0;
    }
}

/* The narrower of two types of a field; FIELD_OTHER if no value has both. */
static uint8_t narrower(uint8_t one, uint8_t other)
{
    if (one == other || other == FIELD_ANY)
        return one;
    if (one == FIELD_ANY)
        return other;
    if (other == FIELD_NUMBER || (other == FIELD_INTEGER && one != FIELD_NUMBER)) {
        uint8_t swapped = one;
        one = other;
        other = swapped;
    }
    if (one == FIELD_NUMBER && (other == FIELD_INTEGER || other == FIELD_UNSIGNED || other == FIELD_DOUBLE))
        return other;
    return one == FIELD_INTEGER && other == FIELD_UNSIGNED ? other : FIELD_OTHER;
}

static int is_name(const char *name)
{
    return name && *name && strlen(name) <= IPROTO_NAME_MAX;
}

static char *copy_name(const char *name)
{
    size_t size = strlen(name) + 1;
    char *copy = malloc(size);
    if (copy)
        memcpy(copy, name, size);
    else
        engine_fail_memory(size, "a name");
    return copy;
}

/* -- formats -- */

static int check_format(const char *space, const IprotoField *fields, size_t count, uint32_t exact)
{
    if (!fields && count)
        return engine_fail_null("the format");
    if (count > IPROTO_FIELDS_MAX)
        return engine_fail(IPROTO_ER_CREATE_SPACE, "Failed to create space '%s': more than %d fields", space,
                           IPROTO_FIELDS_MAX);
    if (exact && exact < count)
        return engine_fail(IPROTO_ER_CREATE_SPACE, "Failed to create space '%s': the exact field count is below that "
                           "of the format", space);
    for (size_t number = 0; number < count; number++) {
        if (!is_name(fields[number].name))
            return engine_fail(IPROTO_ER_WRONG_SPACE_FORMAT,
                               "Wrong space format (field %zu): a name has 1 to %d bytes", number + 1, IPROTO_NAME_MAX);
        if ((int)fields[number].type < IPROTO_ANY || fields[number].type > IPROTO_MAP)
            return engine_fail(IPROTO_ER_WRONG_SPACE_FORMAT, "Wrong space format (field %zu): unknown type",
                               number + 1);
    }
    return 0;
}

static int compare_names(const void *one, const void *other)
{
    return strcmp(*(const char *const *)one, *(const char *const *)other);
}

static int check_different(const IprotoField *fields, size_t count)
{
    const char **sorted = malloc((count + 1) * sizeof *sorted);
    int done = 0;
    if (!sorted)
        return engine_fail_memory((count + 1) * sizeof *sorted, "a format");
    for (size_t number = 0; number < count; number++)
        sorted[number] = fields[number].name;
    if (count)
        qsort(sorted, count, sizeof *sorted, compare_names);
    for (size_t number = 1; number < count && !done; number++)
        if (!strcmp(sorted[number - 1], sorted[number]))
            done = engine_fail(IPROTO_ER_SPACE_FIELD_IS_DUPLICATE, "Space field '%s' is duplicate", sorted[number]);
    free(sorted);
    return done;
}

/* Have a place for a field; those in front of it that nothing is known of may be anything. */
static int widen_fields(IprotoSpace *space, uint32_t count)
{
    if (count <= space->field_count)
        return 0;
    FormatField *fields = realloc(space->fields, count * sizeof *fields);
    if (!fields)
        return engine_fail_memory(count * sizeof *fields, "a format");
    space->fields = fields;
    while (space->field_count < count)
        fields[space->field_count++] = (FormatField){FIELD_ANY, 1};
    return 0;
}

/* Find the fields where update operations must not store doubles in a shorter form. */
static void find_doubles(IprotoSpace *space)
{
    space->doubles = (UpdateDoubles){0};
    for (uint32_t number = 0; number < space->field_count; number++)
        if (space->fields[number].type == FIELD_DOUBLE && number < 64)
            space->doubles.first |= (uint64_t)1 << number;
        else if (space->fields[number].type == FIELD_DOUBLE)
            space->doubles.has_more = 1;
}

static int copy_format(IprotoSpace *space, const IprotoField *fields, uint32_t count)
{
    space->names.all = calloc(count + 1, sizeof *space->names.all);
    if (!space->names.all)
        return engine_fail_memory((count + 1) * sizeof *space->names.all, "a format");
    if (widen_fields(space, count) < 0)
        return -1;
    for (uint32_t number = 0; number < count; number++) {
        space->fields[number] = (FormatField){engine_field_type(fields[number].type), fields[number].is_nullable != 0};
        EngineFieldName *name = space->names.all + number;
        if (!(name->name = copy_name(fields[number].name)))
            return -1;
        name->size = (uint32_t)strlen(name->name);
        space->names.count++;
    }
    find_doubles(space);
    return 0;
}

/* -- spaces -- */

static IprotoSpace *find_space(const IprotoEngine *engine, const char *name)
{
    IprotoSpace *space = engine->spaces;
    while (space && strcmp(space->name, name))
        space = space->next;
    return space;
}

static IprotoSpace *find_space_by_id(const IprotoEngine *engine, uint32_t space_id)
{
    IprotoSpace *space = engine->spaces;
    while (space && space->id != space_id)
        space = space->next;
    return space;
}

static int check_new_space(const IprotoEngine *engine, uint32_t space_id, const char *name)
{
    if (engine_check_schema(engine, "space creation") < 0)
        return -1;
    if (!is_name(name))
        return engine_fail(IPROTO_ER_CREATE_SPACE, "Failed to create space '%.*s': a name has 1 to %d bytes",
                           IPROTO_NAME_MAX, name ? name : "", IPROTO_NAME_MAX);
    if (find_space(engine, name))
        return engine_fail(IPROTO_ER_SPACE_EXISTS, "Space '%s' already exists", name);
    if (find_space_by_id(engine, space_id))
        return engine_fail(IPROTO_ER_SPACE_EXISTS, "Space '%u' already exists", space_id);
    return 0;
}

IprotoSpace *iproto_space_create(IprotoEngine *engine, uint32_t space_id, const char *name, const IprotoField *fields,
                                 size_t field_count, uint32_t exact_field_count)
{
    if (check_new_space(engine, space_id, name) < 0
        || check_format(name, fields, field_count, exact_field_count) < 0
        || check_different(fields, field_count) < 0)
        return NULL;
    IprotoSpace *space = calloc(1, sizeof *space);
    if (!space) {
        engine_fail_memory(sizeof *space, "a space");
        return NULL;
    }
    space->engine = engine;
    space->id = space_id;
    space->exact_field_count = exact_field_count;
    if (!(space->name = copy_name(name)) || copy_format(space, fields, (uint32_t)field_count) < 0) {
        engine_free_space(space);
        return NULL;
    }
    space->next = engine->spaces;
    engine->spaces = space;
    return space;
}

IprotoSpace *iproto_space_open(IprotoEngine *engine, const char *name)
{
    if (engine_check(engine) < 0)
        return NULL;
    IprotoSpace *space = name ? find_space(engine, name) : NULL;
    if (!name)
        engine_fail_null("the name");
    else if (!space)
        engine_fail(IPROTO_ER_NO_SUCH_SPACE, "Space '%s' does not exist", name);
    return space;
}

IprotoSpace *iproto_space_open_by_id(IprotoEngine *engine, uint32_t space_id)
{
    if (engine_check(engine) < 0)
        return NULL;
    IprotoSpace *space = find_space_by_id(engine, space_id);
    if (!space)
        engine_fail(IPROTO_ER_NO_SUCH_SPACE, "Space '%u' does not exist", space_id);
    return space;
}

static void free_index(IprotoIndex *index)
{
    tree_clear(&index->tree);
    free(index->name);
    free(index);
}

void engine_free_space(IprotoSpace *space)
{
    engine_close_cursors(space);
    while (space->index_count)
        free_index(space->indexes[--space->index_count]);
    records_clear(&space->records);
    for (uint32_t number = 0; number < space->names.count; number++)
        free(space->names.all[number].name);
    free(space->names.all);
    free(space->fields);
    free(space->name);
    free(space);
}

int iproto_space_drop(IprotoSpace *space)
{
    if (!space)
        return engine_fail_null("the space");
    if (engine_check_schema(space->engine, "space removal") < 0)
        return -1;
    IprotoSpace **place = &space->engine->spaces;
    while (*place != space)
        place = &(*place)->next;
    *place = space->next;
    engine_free_space(space);
    return 0;
}

int64_t iproto_space_len(IprotoSpace *space)
{
    if (!space)
        return engine_fail_null("the space");
    return space->index_count ? iproto_index_len(engine_primary(space)) : engine_check(space->engine);
}

int64_t iproto_space_bsize(IprotoSpace *space)
{
    if (!space)
        return engine_fail_null("the space");
    return engine_check(space->engine) < 0 ? -1 : (int64_t)space->bsize;
}

/* -- keys of indexes -- */

static int fail_index(const IprotoSpace *space, const char *name, const char *reason)
{
    return engine_fail(IPROTO_ER_MODIFY_INDEX, "Can't create or modify index '%s' in space '%s': %s", name, space->name,
                       reason);
}

static int add_part(const IprotoSpace *space, const char *name, KeyLayout *layout, const IprotoPart *part)
{
    KeyPart made = {part->field_no, 0, part->is_nullable != 0};
    if ((int)part->type < IPROTO_ANY || part->type > IPROTO_MAP || !key_type(part->type, &made.type))
        return fail_index(space, name, "a part has a type that is not supported");
    if (part->field_no >= IPROTO_FIELDS_MAX)
        return fail_index(space, name, "a field number is too large");
    if (part->is_nullable && !space->index_count)
        return engine_fail(IPROTO_ER_NULLABLE_PRIMARY, "Primary index of space '%s' can not contain nullable parts",
                           space->name);
    for (int other = 0; other < layout->count; other++)
        if (layout->parts[other].field_no == part->field_no)
            return fail_index(space, name, "a field is in the key twice");
    layout->parts[layout->count++] = made;
    layout->own = layout->count;
    return 0;
}

/* Have keys differ: those of a non-unique index, and those of a unique one with a nil, go on with the primary key. */
static int add_rest(const IprotoSpace *space, const char *name, KeyLayout *layout, int is_unique)
{
    int is_nullable = 0;
    for (int part = 0; part < layout->own; part++)
        is_nullable |= layout->parts[part].is_nullable;
    if (!space->index_count || (is_unique && !is_nullable))
        return 0;
    layout->is_rest_for_nil = (uint8_t)is_unique;
    const KeyLayout *primary = &engine_primary(space)->layout;
    for (int part = 0; part < primary->own; part++) {
        int place = 0;
        while (place < layout->own && layout->parts[place].field_no != primary->parts[part].field_no)
            place++;
        if (place < layout->own)
            continue;
        if (layout->count == KEY_PARTS_MAX)
            return fail_index(space, name, "it has too many parts, with those of the primary key");
        layout->parts[layout->count++] = primary->parts[part];
    }
    return 0;
}

static int make_layout(const IprotoSpace *space, const char *name, KeyLayout *layout, int is_unique,
                       const IprotoPart *parts, size_t count)
{
    *layout = (KeyLayout){0};
    if (!parts || !count || count > IPROTO_PARTS_MAX)
        return fail_index(space, name, "it needs 1 to 16 parts");
    for (size_t number = 0; number < count; number++)
        if (add_part(space, name, layout, parts + number) < 0)
            return -1;
    if (add_rest(space, name, layout, is_unique) < 0)
        return -1;
    layout->is_wide = (uint8_t)key_needs_wide_hints(layout);
    return 0;
}

/* -- what an index asks of fields -- */

static int merge_part(IprotoSpace *space, const IprotoPart *part)
{
    if (widen_fields(space, part->field_no + 1) < 0)
        return -1;
    FormatField *field = space->fields + part->field_no;
    uint8_t type = narrower(field->type, engine_field_type(part->type));
    if (type == FIELD_OTHER && part->field_no < space->names.count)
        return engine_fail(IPROTO_ER_FORMAT_MISMATCH_INDEX_PART,
                           "Field '%s' has type '%s' in space format, but type '%s' in index definition",
                           space->names.all[part->field_no].name, engine_field_name(field->type),
                           engine_type_name(part->type));
    if (type == FIELD_OTHER)
        return engine_fail(IPROTO_ER_INDEX_PART_TYPE_MISMATCH,
                           "Field %u has type '%s' in one index, but type '%s' in another", part->field_no + 1,
                           engine_field_name(field->type), engine_type_name(part->type));
    *field = (FormatField){type, field->is_nullable && part->is_nullable};
    return 0;
}

static int check_rows(const IprotoSpace *space)
{
    const Tree *primary = &engine_primary(space)->tree;
    for (Place place = tree_begin(); !tree_is_end(primary, place); place = tree_next(primary, place)) {
        const Record *row = records_at(primary->records, tree_handle(primary, place));
        if (engine_check_format(space, row->data, row->size) < 0)
            return -1;
    }
    return 0;
}

/* -- indexes -- */

static int check_new_index(const IprotoSpace *space, const char *name, IprotoIndexType type, int is_unique)
{
    if (!space)
        return engine_fail_null("the space");
    if (engine_check_schema(space->engine, "index creation") < 0)
        return -1;
    if (!is_name(name))
        return fail_index(space, "", "a name has 1 to 255 bytes");
    if (type != IPROTO_TREE)
        return engine_fail(IPROTO_ER_INDEX_TYPE, "Unsupported index type supplied for index '%s' in space '%s'", name,
                           space->name);
    for (uint32_t number = 0; number < space->index_count; number++)
        if (!strcmp(space->indexes[number]->name, name))
            return engine_fail(IPROTO_ER_INDEX_EXISTS_IN_SPACE, "Index '%s' already exists in space '%s'", name,
                               space->name);
    if (space->index_count == IPROTO_INDEXES_MAX)
        return fail_index(space, name, "a space has at most 17 indexes");
    return space->index_count || is_unique ? 0 : fail_index(space, name, "primary key must be unique");
}

static int build(IprotoSpace *space, IprotoIndex *index)
{
    index->tree.layout = &index->layout;
    index->tree.records = &space->records;
    index->tree.pairs = index->id ? &space->pairs : &space->records;
    index->tree.has_references = index->id != 0;
    if (!index->id)
        return 0;
    if (check_rows(space) < 0)
        return -1;
    switch (build_references(&index->tree, &engine_primary(space)->tree)) {
    case BUILD_DONE:
        return 0;
    case BUILD_REPEATED:
        return engine_fail(IPROTO_ER_TUPLE_FOUND, "Duplicate key exists in unique index '%s' in space '%s'",
                           index->name, space->name);
    default:
        return engine_fail_memory(0, "an index");
    }
}

/* Have the rows of a space fit an index that is new, and fill it. */
static int add_index(IprotoSpace *space, IprotoIndex *index, const IprotoPart *parts, size_t count)
{
    for (size_t number = 0; number < count; number++)
        if (merge_part(space, parts + number) < 0)
            return -1;
    return build(space, index);
}

/* What fields were like, should an index be refused. */
static int keep_fields(const IprotoSpace *space, FormatField **kept)
{
    size_t size = (space->field_count + 1) * sizeof **kept;
    if (!(*kept = malloc(size)))
        return engine_fail_memory(size, "a format");
    if (space->field_count)
        memcpy(*kept, space->fields, space->field_count * sizeof **kept);
    return 0;
}

static IprotoIndex *new_index(IprotoSpace *space, const char *name, const KeyLayout *layout, int is_unique)
{
    IprotoIndex *index = calloc(1, sizeof *index);
    if (!index) {
        engine_fail_memory(sizeof *index, "an index");
        return NULL;
    }
    index->space = space;
    index->id = space->index_count;
    index->is_unique = is_unique != 0;
    index->layout = *layout;
    if (!(index->name = copy_name(name))) {
        free(index);
        return NULL;
    }
    return index;
}

IprotoIndex *iproto_index_create(IprotoSpace *space, const char *name, IprotoIndexType type, int is_unique,
                                 const IprotoPart *parts, size_t part_count)
{
    KeyLayout layout;
    FormatField *kept;
    if (check_new_index(space, name, type, is_unique) < 0
        || make_layout(space, name, &layout, is_unique, parts, part_count) < 0 || keep_fields(space, &kept) < 0)
        return NULL;
    uint32_t field_count = space->field_count;
    IprotoIndex *index = new_index(space, name, &layout, is_unique);
    if (!index || add_index(space, index, parts, part_count) < 0) {
        if (index)
            free_index(index);
        space->field_count = field_count;
        if (field_count)
            memcpy(space->fields, kept, field_count * sizeof *kept);
        free(kept);
        return NULL;
    }
    free(kept);
    find_doubles(space);
    if (index->id)
        space->changed[index->id - 1] = (ChangedIndex){&index->tree, index->is_unique};
    space->indexes[space->index_count++] = index;
    return index;
}

IprotoIndex *iproto_index_open(IprotoSpace *space, const char *name)
{
    if (!space || !name) {
        engine_fail_null(space ? "the name" : "the space");
        return NULL;
    }
    if (engine_check(space->engine) < 0)
        return NULL;
    for (uint32_t number = 0; number < space->index_count; number++)
        if (!strcmp(space->indexes[number]->name, name))
            return space->indexes[number];
    engine_fail(IPROTO_ER_NO_SUCH_INDEX_NAME, "No index '%s' is defined in space '%s'", name, space->name);
    return NULL;
}

IprotoIndex *iproto_index_open_by_id(IprotoSpace *space, uint32_t index_id)
{
    if (!space) {
        engine_fail_null("the space");
        return NULL;
    }
    if (engine_check(space->engine) < 0)
        return NULL;
    if (index_id < space->index_count)
        return space->indexes[index_id];
    engine_fail(IPROTO_ER_NO_SUCH_INDEX_ID, "No index #%u is defined in space '%s'", index_id, space->name);
    return NULL;
}

int64_t iproto_index_len(IprotoIndex *index)
{
    if (!index)
        return engine_fail_null("the index");
    return engine_check(index->space->engine) < 0 ? -1 : (int64_t)index->tree.size;
}

int64_t iproto_index_bsize(IprotoIndex *index)
{
    if (!index)
        return engine_fail_null("the index");
    return engine_check(index->space->engine) < 0 ? -1 : (int64_t)tree_memory(&index->tree);
}
