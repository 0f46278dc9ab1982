#include "daemon/generators.h"

enum err_code generators_open(struct generators *g, const struct conf *c, struct serve *s,
                              struct err *e)
{
    /* A row for each prefix, that of IDs first. */
    const struct {
        struct generator *generator;
        const char *prefix;
        const struct conf_list *names; /* without an item: any */
    } rows[] = {
        {&g->ids.base, c->ids_prefix, &c->ids_names},
    };
    enum err_code r = ERR_OK;
    snowflake_generator_init(&g->ids, s->facts.why);
    g->ids.alone = s->facts.alone = conf_is_fixed(c);
    for (size_t i = 0; !r && i < sizeof rows / sizeof *rows; i++)
        r = issuer_add(&s->issuer, rows[i].generator, rows[i].prefix, rows[i].names->item,
                       rows[i].names->n, e);
    return r;
}

uint64_t generators_issued(const struct serve *s)
{
    struct generator_counts sum;
    generators_count(s->issuer.generators, &sum);
    return sum.issued;
}
