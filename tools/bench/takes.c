/*
 * What a coordinator bears of sequences: takes blocks of numbers over several connections, each of
 * sequences of its own, which it makes first.
 *
 *   takes URL POOL CONNECTIONS ITEMS SECONDS
 *
 * ITEMS: counters of one call, 1..SEQ_ITEMS_MAX.
 *
 * Prints one line of JSON: {"grants": N, "seconds": S, "rate": R}.
 */
#include "base/dec.h"
#include "coord/seq_calls.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CONNECTIONS_MAX 64
#define COUNT           1000 /* numbers of each grant */
#define TIMEOUT_US      INT64_C(10000000)

struct client {
    pthread_t thread;
    struct coord *coord;
    char name[SEQ_ITEMS_MAX][SEQ_NAME_MAX];
    struct seq_want want[SEQ_ITEMS_MAX];
    uint64_t grants;
    bool failed;
};

static char identity[COORD_IDENTITY_MAX];
static struct client client[CONNECTIONS_MAX];
static size_t items;
static double until_s;

static double now_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool complain(struct client *c, const char *what, const char *found, const char *why)
{
    fprintf(stderr, "takes: cannot %s: %s: %s\n", what, found, why);
    c->failed = true;
    return false;
}

static bool make(struct client *c, unsigned number)
{
    struct seq_grant g;
    struct coord_reply r;
    for (size_t k = 0; k < items; k++) {
        (void)snprintf(c->name[k], sizeof c->name[k], "takes-%u-%zu", number, k);
        struct seq_create in = {.name = c->name[k],
                                .definition = {.start = 1, .increment = 1, .loss = SEQ_LOSS_TRUST}};
        enum coord_status s = seq_create(c->coord, identity, &in, &g, &r);
        if (s != COORD_OK)
            return complain(c, "create", coord_status_name(s), r.err.text);
        if (g.how != SEQ_DONE && g.how != SEQ_KEPT)
            return complain(c, "create", seq_how_name(g.how), c->name[k]);
        c->want[k] = (struct seq_want){
            .name = c->name[k], .sub = "", .period = "", .text = "", .count = COUNT};
    }
    return true;
}

static bool heard(struct client *c, const struct seq_grant *grants)
{
    for (size_t k = 0; k < items; k++) {
        if (grants[k].how != SEQ_GRANTED)
            return complain(c, "take", seq_how_name(grants[k].how), c->name[k]);
        c->want[k].gen = grants[k].gen;
        c->want[k].n = grants[k].n;
        c->want[k].seen = grants[k].hi + 1;
    }
    c->grants += items;
    return true;
}

static void *take_all(void *arg)
{
    struct client *c = arg;
    struct seq_caller by = {0};
    while (!c->failed && now_s() < until_s) {
        struct seq_grant grants[SEQ_ITEMS_MAX];
        struct seq_opening opening;
        struct coord_reply r;
        for (size_t k = 0; k < items; k++)
            c->want[k].token = coord_token_new(rng_system());
        by.now_ms = clock_wall_ms(clock_system());
        enum coord_status s =
            seq_take(c->coord, identity, &by, c->want, grants, items, &opening, &r);
        if (s != COORD_OK)
            (void)complain(c, "take", coord_status_name(s), r.err.text);
        else if (heard(c, grants))
            by.opening = opening;
    }
    return NULL;
}

static bool open_all(const char *url, const char *pool, unsigned clients)
{
    struct coord_options o = {.url = span_str(url),
                              .pool = span_str(pool),
                              .who = SPAN("{\"host\":\"bench\"}"),
                              .timeout_us = TIMEOUT_US,
                              .clock = clock_system()};
    struct coord_pool described;
    struct coord_reply reply;
    struct err e;
    for (unsigned i = 0; i < clients; i++) {
        struct client *c = &client[i];
        if (coord_open(&o, &c->coord, &e))
            return complain(c, "open", url, e.text);
        if (coord_describe(c->coord, &described, &reply) != COORD_OK)
            return complain(c, "describe", pool, reply.err.text);
        memcpy(identity, described.identity, sizeof identity);
        if (!make(c, i))
            return false;
    }
    return true;
}

static bool run(unsigned clients, uint64_t seconds)
{
    double begin = now_s();
    uint64_t grants = 0;
    bool ok = true;
    until_s = begin + (double)seconds;
    for (unsigned i = 0; i < clients; i++)
        if (pthread_create(&client[i].thread, NULL, take_all, &client[i]) != 0)
            abort(); /* a handful of threads: nothing is left to measure */
    for (unsigned i = 0; i < clients; i++) {
        (void)pthread_join(client[i].thread, NULL);
        grants += client[i].grants;
        ok &= !client[i].failed;
    }
    double took = now_s() - begin;
    printf("{\"grants\": %ju, \"seconds\": %.6f, \"rate\": %.1f}\n", (uintmax_t)grants, took,
           (double)grants / took);
    return ok;
}

int main(int argc, char **argv)
{
    uint64_t clients, n, seconds;
    if (argc != 6 || !dec_u64(span_str(argv[3]), &clients) || clients < 1 ||
        clients > CONNECTIONS_MAX || !dec_u64(span_str(argv[4]), &n) || n < 1 ||
        n > SEQ_ITEMS_MAX || !dec_u64(span_str(argv[5]), &seconds) || seconds > 3600) {
        fprintf(stderr, "Usage: takes URL POOL CONNECTIONS ITEMS SECONDS\n");
        return 2;
    }
    items = (size_t)n;
    bool ok = open_all(argv[1], argv[2], (unsigned)clients) && run((unsigned)clients, seconds);
    for (unsigned i = 0; i < clients; i++)
        coord_free(client[i].coord);
    return ok ? 0 : 1;
}
