#include "base/clock.h"

#include <time.h>

static int64_t read_us(clockid_t id)
{
    struct timespec ts;
    (void)clock_gettime(id, &ts); /* cannot fail for these two clocks */
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static int64_t wall_us(struct clock *c)
{
    (void)c;
    return read_us(CLOCK_REALTIME);
}

static int64_t mono_us(struct clock *c)
{
    (void)c;
    return read_us(CLOCK_MONOTONIC);
}

struct clock *clock_system(void)
{
    static struct clock system = {wall_us, mono_us};
    return &system;
}
