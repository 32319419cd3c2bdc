/* Stray writes into records: each of them ends the process when the record is read, or freed.
 *
 *     test_checksums COUNT SEED
 *
 * Each write is made in a child process.
 */
#define _POSIX_C_SOURCE 200809L

#include "random_rows.h"
#include "memory/records.h"

#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 20 };

static Records records;

/* Change a byte of a record behind its sizes, and use it. */
static void write_astray(void)
{
    Handle32 handle = (Handle32)below(COUNT);
    Record *record = (Record *)(uintptr_t)records.table[handle];
    size_t end = offsetof(Record, data) + record->size, first = sizeof record->size;
    ((uint8_t *)record)[first + below(end - first)] ^= (uint8_t)(1 + below(255));
    if (below(2))
        records_at(&records, handle);
    else
        records_clear(&records);
}

int main(int argument_count, char **arguments)
{
    CHECK(argument_count == 3);
    unsigned long count = strtoul(arguments[1], NULL, 10);
    random_state = strtoul(arguments[2], NULL, 10) * 2654435761u + 1;
    uint8_t bytes[300] = {0};
    for (int number = 0; number < COUNT; number++)
        CHECK(records_add(&records, bytes, below(20), bytes, 1 + below(sizeof bytes - 1)) == (Handle32)number);
    for (Handle32 handle = 0; handle < COUNT; handle++)
        CHECK(records_at(&records, handle)); /* as they were made */
    for (unsigned long number = 0; number < count; number++) {
        next_random();
        pid_t child = fork();
        CHECK(child >= 0);
        if (!child) {
            CHECK(freopen("/dev/null", "w", stderr));
            write_astray();
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    }
    records_clear(&records);
    printf("%lu stray writes were found\n", count);
    return 0;
}
