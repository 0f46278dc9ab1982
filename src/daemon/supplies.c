#include "daemon/supplies.h"

#include "serve/serve.h"

#define STOP_MS            3000
#define ROTATION_JITTER_MS 30000

enum err_code supplies_init(struct supplies *s, const struct conf *c, const char *coord_name,
                            struct pagefile *page, struct err *e)
{
    bool pinned = c->epoch_ms != CONF_EPOCH_OF_POOL;
    const struct workers_options workers = {
        .lease = {.active = c->workers_active,
                  .spare = conf_spare(c),
                  .renew_ms = c->lease_renew_every_us / 1000,
                  .rotation_jitter_ms = ROTATION_JITTER_MS,
                  .stop_ms = STOP_MS,
                  .epoch_pinned = pinned,
                  .epoch_ms = pinned ? c->epoch_ms : LAYOUT_EPOCH_DEFAULT_MS,
                  .auto_init = c->coordinator_auto_init,
                  .page_knows_alone = conf_is_fixed(c)},
        .coord_name = coord_name,
        .pool_name = c->coordinator_pool,
        .password_file = conf_password_word(c),
        .file = page,
        .rng = rng_system(),
    };
    enum err_code r = workers_new(&workers, clock_mono_ms(clock_system()), &s->workers, e);
    if (!r)
        s->list[SUPPLY_WORKERS] = workers_supply(s->workers);
    return r;
}

void supplies_clear(struct supplies *s)
{
    workers_free(s->workers);
    *s = (struct supplies){0};
}
