#include "daemon/generators.h"

#include "coord/advice.h"
#include "coord/seq_calls.h"
#include "coord/seq_rows.h"

#include <assert.h>

static_assert(SEQUENCE_NAME_MAX == SEQ_NAME_MAX && SEQUENCE_SUB_MAX == SEQ_SUB_MAX &&
                  SEQUENCE_LABEL_MAX == PERIOD_LABEL_MAX && SEQUENCE_ROW_MAX <= SEQ_BLOCK_MAX &&
                  SEQUENCE_TOP == SEQ_INDEX_MAX,
              "a name there is one here");

/* ---- periods, as the coordinator has them -----------------------------------------------------
 */

static bool label(int reset, int offset_min, int64_t ms, char out[SEQUENCE_LABEL_MAX])
{
    return period_label((enum period_reset)reset, offset_min, ms, out);
}

static bool find(int reset, int offset_min, struct span text, struct sequence_period *out)
{
    struct period p;
    if (!period_find((enum period_reset)reset, offset_min, text, &p))
        return false;
    *out = (struct sequence_period){p.opens_ms, p.begins_ms, p.ends_ms};
    return true;
}

const struct sequence_calendar generators_calendar = {label, find, seq_is_period};

/* ---- the table --------------------------------------------------------------------------------
 */

static void init_sequences(struct sequence_table *t, const struct conf *c)
{
    sequence_table_init(t,
                        &(struct sequence_options){.counters = c->sequences_counters,
                                                   .lasts_ms = c->sequences_cache_lasts_us / 1000,
                                                   .max = c->sequences_cache_max,
                                                   .prefix = c->sequences_prefix,
                                                   .calendar = &generators_calendar,
                                                   .forgets = advice_forgets(c->coordinator_url)});
}

enum err_code generators_open(struct generators *g, const struct conf *c, struct serve *s,
                              struct err *e)
{
    static const struct conf_list any;
    /* A row for each prefix, that of IDs first. */
    const struct {
        struct generator *generator;
        const char *prefix;
        const struct conf_list *names; /* without an item: any */
        bool there;
    } rows[] = {
        {&g->ids.base, c->ids_prefix, &c->ids_names, true},
        {&g->sequences.base, c->sequences_prefix, &any, generators_have_sequences(c)},
        {&g->numbers.base, c->sequences_numbers_prefix, &any,
         generators_have_sequences(c) && c->sequences_numbers_prefix[0]},
    };
    enum err_code r = ERR_OK;
    snowflake_generator_init(&g->ids, s->facts.why);
    snowflake_generator_ahead(&g->ids, c->ids_overflow == CONF_OVERFLOW_BORROW,
                              c->clock_on_rollback == CONF_ROLLBACK_HOLD, s->clock);
    init_sequences(&g->sequences, c);
    number_table_init(&g->numbers, &g->sequences, &g->ids.base, rng_system(),
                      c->sequences_numbers_prefix);
    g->ids.alone = s->facts.alone = conf_is_fixed(c);
    for (size_t i = 0; !r && i < sizeof rows / sizeof *rows; i++)
        if (rows[i].there)
            r = issuer_add(&s->issuer, rows[i].generator, rows[i].prefix, rows[i].names->item,
                           rows[i].names->n, e);
    return r;
}

void generators_clear(struct generators *g)
{
    number_table_clear(&g->numbers);
    sequence_table_clear(&g->sequences);
}

/* static:N keeps nothing, and so no counters. */
bool generators_have_sequences(const struct conf *c)
{
    return c->sequences_prefix[0] && !conf_is_fixed(c);
}

uint64_t generators_issued(const struct serve *s)
{
    struct generator_counts sum;
    generators_count(s->issuer.generators, &sum);
    return sum.issued;
}
