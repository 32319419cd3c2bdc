#include "budget.h"

#include "records.h"
#include "slab.h"

Budget budget = {.limit = BUDGET_UNLIMITED};

size_t budget_indexes(void)
{
    return __atomic_load_n(&budget.leaves, __ATOMIC_RELAXED) + budget.tables;
}

size_t budget_held(void)
{
    return slab_held() + budget_indexes() + budget.outside;
}

int budget_allows(size_t old_size, size_t size, size_t entries, size_t more, int may_use_reserve)
{
    if (budget.limit == BUDGET_UNLIMITED)
        return 1;
    size_t growth = slab_growth(old_size ? sizeof(Record) + old_size : 0, sizeof(Record) + size);
    if (old_size && !growth && !more)
        return 1;
    size_t left = old_size || !growth || may_use_reserve ? budget.limit : budget.limit - budget.reserve;
    size_t needed = budget_held() + growth + entries * BUDGET_ENTRY + sizeof(uintptr_t) + more; /* with a handle of the row */
    return needed <= left;
}
