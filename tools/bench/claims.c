/*
 * What a coordinator bears: claims every workerId of a pool over several connections, then renews
 * and releases them all.
 *
 *   claims URL POOL CONNECTIONS WORKERS ROUNDS keep|reconnect
 *
 * ROUNDS: how often every workerId is renewed. reconnect: each renewal opens a connection of its
 * own, as a sidecar does, whose renewals are far apart.
 *
 * Prints JSON lines: {"what": "claim" | "renew" | "release", "done": N, "seconds": S, "rate": R};
 * "claim" once for each eighth of the pool, so that a slope shows.
 */
#include "base/dec.h"
#include "coord/coord.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CONNECTIONS_MAX 64
#define PARTS           8
#define TIMEOUT_US      INT64_C(10000000)

struct holder {
    struct coord_token token;
    struct coord_grant grant;
};

struct client {
    pthread_t thread;
    struct coord *coord;
    uint32_t from, to; /* its holders */
    bool failed;
};

static char identity[COORD_IDENTITY_MAX];
static struct holder holder[COORD_WORKERS];
static struct client client[CONNECTIONS_MAX];
static bool reconnect;

static void complain(struct client *c, const char *what, enum coord_status s,
                     const struct coord_reply *r)
{
    fprintf(stderr, "claims: cannot %s: %s: %s\n", what, coord_status_name(s), r->err.text);
    c->failed = true;
}

static void *claim_all(void *arg)
{
    struct client *c = arg;
    for (uint32_t i = c->from; i < c->to && !c->failed; i++) {
        struct coord_reply r;
        holder[i].token = coord_token_new(rng_system());
        enum coord_status s = coord_claim(c->coord, identity, clock_wall_ms(clock_system()),
                                          holder[i].token, &holder[i].grant, &r);
        if (s != COORD_OK)
            complain(c, "claim", s, &r);
    }
    return NULL;
}

static void *renew_all(void *arg)
{
    struct client *c = arg;
    for (uint32_t i = c->from; i < c->to && !c->failed; i++) {
        struct holder *h = &holder[i];
        struct coord_reply r;
        struct coord_terms terms;
        const struct coord_caller by = {.now_ms = clock_wall_ms(clock_system())};
        struct coord_renewal item = {.worker = h->grant.worker,
                                     .cur = h->token,
                                     .nxt = coord_token_new(rng_system()),
                                     .n = h->grant.n,
                                     .hi_ms = h->grant.hi_ms};
        enum coord_status s = coord_renew(c->coord, identity, &by, &item, 1, &terms, &r);
        if (s != COORD_OK || item.how == COORD_HOW_LOST)
            complain(c, "renew", s, &r);
        h->token = item.nxt;
        h->grant.n = item.n;
        h->grant.hi_ms = item.hi_ms;
        if (reconnect)
            coord_idle(c->coord);
    }
    return NULL;
}

static void *release_all(void *arg)
{
    struct client *c = arg;
    for (uint32_t i = c->from; i < c->to && !c->failed; i++) {
        struct holder *h = &holder[i];
        struct coord_reply r;
        struct coord_release item = {.worker = h->grant.worker,
                                     .cur = h->token,
                                     .nxt = h->token,
                                     .has_last = true,
                                     .last_ms = h->grant.lo_ms};
        enum coord_status s = coord_release(c->coord, identity, &item, &r);
        if (s != COORD_OK)
            complain(c, "release", s, &r);
    }
    return NULL;
}

static double now_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* All clients at once, each over its share of from..to-1. false: one of them failed. */
static bool run(const char *what, void *(*fn)(void *), uint32_t clients, uint32_t from, uint32_t to)
{
    bool ok = true;
    double begin = now_s();
    for (uint32_t i = 0; i < clients; i++) {
        client[i].from = from + (uint32_t)((uint64_t)(to - from) * i / clients);
        client[i].to = from + (uint32_t)((uint64_t)(to - from) * (i + 1) / clients);
        if (pthread_create(&client[i].thread, NULL, fn, &client[i]) != 0)
            abort(); /* a handful of threads: nothing is left to measure */
    }
    for (uint32_t i = 0; i < clients; i++) {
        (void)pthread_join(client[i].thread, NULL);
        ok &= !client[i].failed;
    }
    double seconds = now_s() - begin;
    printf("{\"what\": \"%s\", \"done\": %u, \"seconds\": %.6f, \"rate\": %.1f}\n", what, to - from,
           seconds, (double)(to - from) / seconds);
    fflush(stdout);
    return ok;
}

static enum err_code open_all(const char *url, const char *pool, uint32_t clients, struct err *e)
{
    struct coord_options o = {.url = span_str(url),
                              .pool = span_str(pool),
                              .who = SPAN("{\"host\":\"bench\"}"),
                              .timeout_us = TIMEOUT_US,
                              .clock = clock_system()};
    for (uint32_t i = 0; i < clients; i++) {
        enum err_code r = coord_open(&o, &client[i].coord, e);
        if (r)
            return r;
    }
    struct coord_pool described;
    struct coord_reply reply;
    if (coord_describe(client[0].coord, &described, &reply) != COORD_OK) {
        *e = reply.err;
        return ERR_IO;
    }
    memcpy(identity, described.identity, sizeof identity);
    return ERR_OK;
}

static bool run_all(uint32_t clients, uint32_t workers, uint32_t rounds)
{
    for (uint32_t i = 0; i < PARTS; i++)
        if (!run("claim", claim_all, clients, workers * i / PARTS, workers * (i + 1) / PARTS))
            return false;
    for (uint32_t i = 0; i < rounds; i++)
        if (!run("renew", renew_all, clients, 0, workers))
            return false;
    return run("release", release_all, clients, 0, workers);
}

static bool read_u32(const char *text, uint32_t max, uint32_t *out)
{
    uint64_t v;
    if (!dec_u64(span_str(text), &v) || v < 1 || v > max)
        return false;
    *out = (uint32_t)v;
    return true;
}

int main(int argc, char **argv)
{
    uint32_t clients, workers, rounds;
    struct err e;
    if (argc != 7 || !read_u32(argv[3], CONNECTIONS_MAX, &clients) ||
        !read_u32(argv[4], COORD_WORKERS, &workers) || !read_u32(argv[5], 1000, &rounds)) {
        fprintf(stderr, "Usage: claims URL POOL CONNECTIONS WORKERS ROUNDS keep|reconnect\n");
        return 2;
    }
    reconnect = strcmp(argv[6], "reconnect") == 0;
    if (open_all(argv[1], argv[2], clients, &e))
        return fprintf(stderr, "claims: %s\n", e.text), 1;
    bool ok = run_all(clients, workers, rounds);
    for (uint32_t i = 0; i < clients; i++)
        coord_free(client[i].coord);
    return ok ? 0 : 1;
}
