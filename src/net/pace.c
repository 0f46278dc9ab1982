/*
 * How often the loop looks for input.
 *
 * It is woken for whatever comes first. Where clients and a server have to take turns on one
 * processor while the loop has another, it takes each request and each reply away as soon as it is
 * there, and all three are woken again and again for little. A pause between two looks lets more
 * come together, as interrupt coalescing does in a network card:
 *
 *     look.look.look.look.look.look.look.look    each finds a few dozen requests
 *     look......look......look......look         each finds a few more, and they need half as long
 *
 * A pause is made where many requests are forwarded and hardly any client is in a hurry: sends
 * again so soon that waiting for replies must be all that it does, and a pause would be a large
 * part of that. So it is with few clients, however much each of them has under way.
 */
#include "net/private.h"

#define TALLY_US    INT64_C(1000)
#define MANY_PER_MS 300u
#define HURRY_US    INT64_C(400)
#define HARDLY      4u /* one in so many turns */

void pace_turn(struct pace *p, int64_t rest_us)
{
    p->turns++;
    p->hurried += rest_us < HURRY_US;
}

bool pace_gathers(struct pace *p, int64_t now_us, uint64_t forwarded)
{
    int64_t took_us = now_us - p->since_us;
    if (took_us < TALLY_US)
        return p->gathers;
    bool many = (forwarded - p->forwarded) * 1000 >= (uint64_t)took_us * MANY_PER_MS;
    bool calm = p->hurried * HARDLY <= p->turns;
    *p = (struct pace){.since_us = now_us, .forwarded = forwarded, .gathers = many && calm};
    return p->gathers;
}
