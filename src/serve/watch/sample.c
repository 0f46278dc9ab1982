/*
 * Samples of the history: the totals that they are differences of.
 */
#include "serve/serve.h"

uint64_t serve_requests(const struct serve *s, enum serve_protocol p, enum serve_result r)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < SERVE_COMMANDS; i++)
        n += s->requests[p][i][r];
    return n;
}

/* Others than those for IDs are left out: scrapes and probes take longer, and their 503 are no lost
 * IDs. */
static void total(const struct serve *s, struct history_totals *t)
{
    struct generator_counts sum;
    generators_count(s->issuer.generators, &sum);
    *t = (struct history_totals){.issued = sum.issued,
                                 .counted = sum.counted,
                                 .exhausted = sum.exhausted,
                                 .rollbacks = sum.rollbacks,
                                 .rotations = sum.rotations};
    for (unsigned i = 0; i < SERVE_PROTOCOLS; i++) {
        const struct net_service *svc = s->services[i];
        if (!protocol_table[i]->for_ids)
            continue;
        t->failed += serve_requests(s, (enum serve_protocol)i, SERVE_FAILED);
        t->missed += serve_requests(s, (enum serve_protocol)i, SERVE_MISS);
        for (size_t b = 0; svc && b <= HISTOGRAM_BUCKETS; b++)
            t->duration.count[b] += svc->duration.count[b];
    }
}

void serve_sample(struct serve *s)
{
    print_tidy(s->prints, clock_mono_us(s->clock));
    struct history_totals t;
    int64_t now = clock_mono_us(s->clock);
    if (!history_due(&s->history, now))
        return;
    total(s, &t);
    history_take(&s->history, now, &t);
}

void serve_sample_now(const struct serve *s, struct history_sample *out)
{
    struct history_totals t;
    total(s, &t);
    history_since(&s->history, clock_mono_us(s->clock), &t, out);
}
