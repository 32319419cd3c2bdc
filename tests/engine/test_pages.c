/* Pages that are taken and given back in random order keep what is written to them, and are given out once.
 *
 *     test_pages OPERATIONS SEED
 */
#include "memory/pages.h"
#include "random_rows.h"

enum { PAGES = 300 };

static uint64_t *pages[PAGES];
static uint64_t marks[PAGES];

static void check(int place)
{
    for (size_t word = 0; word < PAGE_SIZE / sizeof *pages[0]; word += 509)
        CHECK(pages[place][word] == marks[place] + word);
}

static void give_back(int place)
{
    check(place);
    page_return(pages[place]);
    pages[place] = NULL;
}

int main(int argument_count, char **arguments)
{
    CHECK(argument_count == 3);
    unsigned long operations = strtoul(arguments[1], NULL, 10), taken = 0;
    random_state = strtoul(arguments[2], NULL, 10) * 2654435761u + 1;
    for (unsigned long number = 0; number < operations; number++) {
        int place = (int)below(number / 1000 % 2 ? PAGES : 40);
        if (pages[place]) {
            give_back(place);
            continue;
        }
        pages[place] = page_take();
        CHECK(pages[place] && (uintptr_t)pages[place] % PAGE_SIZE == 0);
        marks[place] = next_random();
        for (size_t word = 0; word < PAGE_SIZE / sizeof *pages[0]; word++)
            pages[place][word] = marks[place] + word;
        taken++;
    }
    for (int place = 0; place < PAGES; place++)
        if (pages[place])
            give_back(place);
    printf("%lu operations, %lu pages taken\n", operations, taken);
    return 0;
}
