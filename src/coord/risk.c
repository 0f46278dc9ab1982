#include "coord/risk.h"

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

unsigned risk_of(struct span info, bool save_told, struct span save)
{
    struct span most = value_of(info, SPAN("maxmemory"));
    struct span policy = value_of(info, SPAN("maxmemory_policy"));
    bool bounded = most.n > 0 && !span_eq(most, SPAN("0"));
    unsigned risks = 0;
    if (bounded && span_starts(policy, SPAN("allkeys-")))
        risks |= COORD_RISK_EVICTION;
    if (save_told && save.n == 0 && span_eq(value_of(info, SPAN("aof_enabled")), SPAN("0")))
        risks |= COORD_RISK_RESTART;
    return risks;
}
