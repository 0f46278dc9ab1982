#include "support/fake_clock.h"

static int64_t wall(struct clock *c)
{
    struct fake_clock *f = (struct fake_clock *)c;
    f->reads++;
    return f->us_wall;
}

static int64_t mono(struct clock *c)
{
    return ((struct fake_clock *)c)->us_mono;
}

void fake_clock_init(struct fake_clock *c, int64_t wall_ms)
{
    *c = (struct fake_clock){{wall, mono}, wall_ms * 1000, INT64_C(1000000000), 0};
}

void fake_clock_pass(struct fake_clock *c, int64_t us)
{
    c->us_wall += us;
    c->us_mono += us;
}

void fake_clock_step(struct fake_clock *c, int64_t ms)
{
    c->us_wall += ms * 1000;
}
