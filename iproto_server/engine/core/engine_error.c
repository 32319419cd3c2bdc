#include "engine.h"

#include <stdarg.h>
#include <stdio.h>

enum { MESSAGE_ROOM = 512 };

static _Thread_local int last_code;
static _Thread_local char last_message[MESSAGE_ROOM];

int engine_fail(IprotoErrorCode code, const char *text, ...)
{
    va_list values;
    va_start(values, text);
    last_code = code;
    vsnprintf(last_message, sizeof last_message, text, values);
    va_end(values);
    return -1;
}

int engine_fail_memory(size_t size, const char *what)
{
    return engine_fail(IPROTO_ER_MEMORY_ISSUE, "Failed to allocate %zu bytes in engine for %s", size, what);
}

int engine_fail_null(const char *what)
{
    return engine_fail(IPROTO_ER_ILLEGAL_PARAMS, "Illegal parameters, %s is NULL", what);
}

int iproto_error_code(void)
{
    return last_code;
}

const char *iproto_error_message(void)
{
    return last_message;
}
