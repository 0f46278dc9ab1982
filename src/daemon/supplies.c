#include "daemon/supplies.h"

#include "coord/seq_options.h"
#include "daemon/generators.h"
#include "serve/serve.h"

#include <stdlib.h>

#define STOP_MS            3000
#define ROTATION_JITTER_MS 30000

static enum err_code read_definitions(struct supplies *s, const struct conf_list *lines,
                                      struct err *e)
{
    enum err_code r = ERR_OK;
    if (lines->n == 0)
        return r;
    s->define = calloc(lines->n, sizeof *s->define);
    s->define_name = calloc(lines->n, sizeof *s->define_name);
    if (!s->define || !s->define_name)
        return err_set(e, ERR_NOMEM, "no memory for %zu sequences", lines->n);
    for (size_t i = 0; i < lines->n && !r; i++)
        r = seq_line_read(span_str(lines->item[i]), s->define_name[i], &s->define[i], e);
    return r;
}

/* Their page is where that of the workerIds is, and under its lock. */
static enum err_code add_sequences(struct supplies *s, const struct conf *c, const char *coord_name,
                                   const struct pagefile *page, const struct blockfile_left *left,
                                   struct err *e)
{
    enum err_code r = read_definitions(s, &c->sequences_define, e);
    if (r)
        return r;
    const struct sequences_options o = {.state_dir = page->fd < 0 ? NULL : c->state_dir,
                                        .left = left,
                                        .coord_name = coord_name,
                                        .pool_name = c->coordinator_pool,
                                        .password_file = conf_password_word(c),
                                        .workers = s->workers,
                                        .define = s->define,
                                        .ndefine = c->sequences_define.n,
                                        .counters = c->sequences_counters,
                                        .stop_ms = STOP_MS,
                                        .rng = rng_system()};
    r = sequences_new(&o, clock_mono_ms(clock_system()), &s->sequences, e);
    if (r)
        return r;
    s->list[SUPPLY_SEQUENCES] = sequences_supply(s->sequences);
    s->n++;
    return ERR_OK;
}

enum err_code supplies_init(struct supplies *s, const struct conf *c, const char *coord_name,
                            struct pagefile *page, const struct blockfile_left *left, struct err *e)
{
    bool pinned = c->epoch_ms != CONF_EPOCH_OF_POOL;
    struct layout layout = layout_usual;
    if (c->layout[0] && layout_parse(span_str(c->layout), &layout, e))
        return e->code;
    const struct workers_options workers = {
        .lease = {.active = c->workers_active,
                  .spare = conf_spare(c),
                  .renew_ms = c->lease_renew_every_us / 1000,
                  .rotation_jitter_ms = ROTATION_JITTER_MS,
                  .stop_ms = STOP_MS,
                  .epoch_pinned = pinned,
                  .epoch_ms = pinned ? c->epoch_ms : LAYOUT_EPOCH_DEFAULT_MS,
                  .layout_pinned = c->layout[0] != '\0',
                  .layout = layout,
                  .auto_init = c->coordinator_auto_init,
                  .page_knows_alone = conf_is_fixed(c),
                  .ahead = conf_is_ahead(c),
                  .rising = c->clock_on_rollback == CONF_ROLLBACK_HOLD},
        .coord_name = coord_name,
        .pool_name = c->coordinator_pool,
        .password_file = conf_password_word(c),
        .file = page,
        .rng = rng_system(),
    };
    enum err_code r = workers_new(&workers, clock_mono_ms(clock_system()), &s->workers, e);
    if (r)
        return r;
    s->list[SUPPLY_WORKERS] = workers_supply(s->workers);
    s->n = 1;
    if (generators_have_sequences(c))
        r = add_sequences(s, c, coord_name, page, left, e);
    if (r)
        supplies_clear(s);
    return r;
}

void supplies_clear(struct supplies *s)
{
    sequences_free(s->sequences);
    workers_free(s->workers);
    free(s->define);
    free(s->define_name);
    *s = (struct supplies){0};
}
