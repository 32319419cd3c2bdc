/* The types that a space's format gives to fields, checked in packed rows. */
#ifndef IPROTO_ENGINE_FORMAT_H
#define IPROTO_ENGINE_FORMAT_H

#include "msgpack.h"

enum { FORMAT_FIELDS_MAX = 16 };

/* FIELD_OTHER is a type that is not checked here: no row is known to fit it. */
typedef enum {
    FIELD_OTHER, FIELD_ANY, FIELD_UNSIGNED, FIELD_STRING, FIELD_NUMBER, FIELD_DOUBLE, FIELD_INTEGER, FIELD_BOOLEAN,
    FIELD_VARBINARY, FIELD_ARRAY, FIELD_MAP,
} FieldType;

typedef struct {
    uint8_t type; /* a FieldType */
    uint8_t is_nullable;
} FormatField;

typedef struct {
    uint32_t count, exact; /* `exact`: the number of fields that a row must have; 0 for any */
    FormatField fields[FORMAT_FIELDS_MAX];
} RowFormat;

/* Whether a row is known to fit: each field has its type. A row of which that is not known needs a closer look; and so
 * does one with other fields than nils, booleans, numbers, texts and bytes, unless `is_whole`: then all that is in the
 * row is known to be well-formed. */
int format_fits(const RowFormat *format, const uint8_t *row, size_t size, int is_whole);

#endif
