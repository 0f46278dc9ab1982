#include "coord/risk.h"

#include "base/dec.h"
#include "coord/coord.h"

/* The value of "name:value\r\n"; NULL where there is no such line. */
static struct span value_of(struct span info, struct span name)
{
    struct span rest = info;
    while (rest.p) {
        struct span value = span_cut(&rest, '\n');
        struct span key = span_cut(&value, ':');
        if (!value.p || !span_eq(key, name))
            continue;
        if (value.n > 0 && value.p[value.n - 1] == '\r')
            value.n--;
        return value;
    }
    return (struct span){NULL, 0};
}

static int64_t number_of(struct span info, struct span name)
{
    int64_t n;
    return dec_canonical_i64(value_of(info, name), &n) ? n : 0;
}

static bool is_full(struct span info, bool evicts)
{
    int64_t most = number_of(info, SPAN("maxmemory"));
    int64_t used = number_of(info, SPAN("used_memory"));
    int64_t apart = number_of(info, SPAN("mem_not_counted_for_evict"));
    return (most > 0 && !evicts && used > most && used - most > apart) ||
           span_eq(value_of(info, SPAN("aof_last_write_status")), SPAN("err"));
}

unsigned risk_of(struct span info, bool save_told, struct span save)
{
    struct span most = value_of(info, SPAN("maxmemory"));
    struct span policy = value_of(info, SPAN("maxmemory_policy"));
    bool bounded = most.n > 0 && !span_eq(most, SPAN("0"));
    bool evicts = span_starts(policy, SPAN("allkeys-"));
    unsigned risks = is_full(info, evicts) ? COORD_RISK_FULL : 0;
    if (bounded && evicts)
        risks |= COORD_RISK_EVICTION;
    if (save_told && save.n == 0 && span_eq(value_of(info, SPAN("aof_enabled")), SPAN("0")))
        risks |= COORD_RISK_RESTART;
    return risks;
}
