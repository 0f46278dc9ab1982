/*
 * How often the loop looks for input.
 *
 * It is woken for whatever comes first. Where clients and a server have to take turns on one
 * processor while the loop has another, it takes each request and each reply away as soon as it is
 * there, and all three are woken again and again for little. A pause between two looks lets more
 * come together, as interrupt coalescing does in a network card:
 *
 *     look.look.look.look.look.look.look.look    each finds a few requests
 *     look......look......look......look         each finds more, and all are done sooner
 *
 * Elsewhere the pause is only waited for. Which it is shows in what gets done, since clients that
 * wait for replies send more if they come sooner. So while there is much to do both ways are tried
 * in turn, as the kernel's net_dim tries moderation in network cards:
 *
 *     tally    0   1   2   3   4   5   6   7   8   9 ... 100   1   2 ...
 *     pause    -   -   x   x   -   -   x   x   -   if that was better by 1 in 16
 *
 * In that order neither way is favoured by a load that grows. Tally 0 is the one in which the load
 * began. A trial whose first half shows a loss is over; after one without a gain the next one comes
 * later, in the end after a second, so that hardly one request in 100 ever waits for a trial. What
 * comes after half a second without any is a new load, of which nothing is known.
 */
#include "net/private.h"

#define TALLY_US INT64_C(5000)
#define QUIET_US INT64_C(500000)
#define MANY     20000u /* requests per second */
#define TRIAL    8u     /* tallies: 1 to 8 */
#define PAUSED   0x0ccu /* bits 2, 3, 6 and 7: those with a pause */
#define REST     92u    /* tallies between two trials … */
#define REST_MAX 200u   /* … that show no gain */

static bool gains(const struct pace *p)
{
    return p->sum[1] * 16 >= p->sum[0] * 17;
}

/* Whether the next tally is one with a pause. */
static bool next(struct pace *p)
{
    if (p->tally == TRIAL / 2 && p->sum[1] < p->sum[0])
        p->tally = TRIAL;
    p->tally++;
    if (p->tally == TRIAL + 1)
        p->rest = gains(p) || p->rest == 0 ? REST : 2 * p->rest;
    if (p->rest > REST_MAX)
        p->rest = REST_MAX;
    if (p->tally > TRIAL + p->rest)
        p->tally = 1;
    if (p->tally == 1)
        p->sum[0] = p->sum[1] = 0;
    return p->tally <= TRIAL ? PAUSED >> p->tally & 1u : gains(p);
}

bool pace_gathers(struct pace *p, int64_t now_us, uint64_t requests)
{
    int64_t took_us = now_us - p->since_us;
    if (took_us < TALLY_US)
        return p->gathers;
    if (took_us >= QUIET_US) {
        *p = (struct pace){.since_us = now_us, .requests = requests};
        return false;
    }
    uint64_t rate = (requests - p->requests) * 1000000 / (uint64_t)took_us;
    bool trial = p->tally <= TRIAL;
    p->since_us = now_us;
    p->requests = requests;
    if (rate >= MANY && trial) {
        p->sum[p->gathers] += rate;
    } else if (trial && p->gathers) { /* it is the pause that makes it so few */
        p->sum[1] = 0;
        p->tally = TRIAL;
    } else if (rate < MANY) { /* the load has ended, or has not begun */
        if (trial || p->gathers)
            p->tally = 0;
        return p->gathers = false;
    }
    return p->gathers = next(p);
}
