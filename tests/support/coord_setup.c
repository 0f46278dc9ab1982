#include "support/coord_setup.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int64_t wall(struct clock *c)
{
    return ((struct setup_clock *)(void *)c)->ms * 1000;
}

static int64_t mono(struct clock *c)
{
    (void)c;
    return clock_mono_us(clock_system());
}

void setup_clock_init(struct setup_clock *c, int64_t ms)
{
    c->clock = (struct clock){.wall_us = wall, .mono_us = mono};
    c->ms = ms;
}

struct coord *setup_open(const char *url, const char *pool, struct clock *clock)
{
    return setup_open_within(url, pool, clock, 2000);
}

struct coord *setup_open_within(const char *url, const char *pool, struct clock *clock,
                                int64_t timeout_ms)
{
    struct coord *c;
    struct err e;
    const struct coord_options o = {
        .url = span_str(url),
        .pool = span_str(pool),
        .who = SPAN(SETUP_WHO),
        .timeout_us = timeout_ms * 1000,
        .clock = clock,
    };
    if (coord_open(&o, &c, &e) == ERR_OK)
        return c;
    (void)fprintf(stderr, "%s: %s\n", url, e.text);
    abort();
}

struct coord_init setup_init(const char *identity, enum coord_init_mode mode, uint16_t to)
{
    struct coord_init in = {.params = coord_params_default, .mode = mode};
    (void)snprintf(in.identity, sizeof in.identity, "%s", identity);
    in.params.worker_to = to;
    return in;
}

const struct coord_caller *setup_caller(int64_t ms)
{
    static struct coord_caller by;
    by = (struct coord_caller){.now_ms = ms};
    return &by;
}

const struct coord_caller *setup_now(void)
{
    return setup_caller(clock_wall_ms(clock_system()));
}

struct coord_terms *setup_terms(void)
{
    static struct coord_terms terms;
    return &terms;
}

struct coord_token setup_token(uint8_t fill)
{
    struct coord_token t;
    memset(t.b, fill, sizeof t.b);
    return t;
}

struct coord_renewal setup_renewal(const struct coord_grant *g, uint8_t cur, uint8_t nxt)
{
    return (struct coord_renewal){.worker = g->worker,
                                  .cur = setup_token(cur),
                                  .nxt = setup_token(nxt),
                                  .n = g->n,
                                  .hi_ms = g->hi_ms};
}

void setup_forget_tally(const char *dir)
{
    DIR *d = opendir(dir);
    const struct dirent *e;
    while (d && (e = readdir(d)) != NULL)
        if (e->d_name[0] == '.' && strstr(e->d_name, "-tally."))
            (void)unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        (void)closedir(d);
}

uint64_t setup_wanted(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}
