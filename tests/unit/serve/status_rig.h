/*
 * A service that is well, without network or keeper: what the tests of health and status page start
 * from. workerId 7 is active and 8 spare, for 45 minutes more; the pool is that of a mature tenure.
 */
#ifndef SIDFLAKE_TESTS_UNIT_SERVE_STATUS_RIG_H
#define SIDFLAKE_TESTS_UNIT_SERVE_STATUS_RIG_H

#include "serve/serve.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define START_MS   (LAYOUT_EPOCH_DEFAULT_MS + INT64_C(86400000))
#define START_US   INT64_C(5000000000) /* monotonic */
#define MINUTES(n) ((n)*INT64_C(60000))

static int64_t elapsed_ms; /* since the start */

static inline int64_t rig_wall(struct clock *c)
{
    (void)c;
    return (START_MS + elapsed_ms) * 1000;
}

static inline int64_t rig_mono(struct clock *c)
{
    (void)c;
    return START_US + elapsed_ms * 1000;
}

static struct clock rig_clock = {rig_wall, rig_mono};
static struct serve s;
static struct snowflake_generator gen;
static struct net_service services[SERVE_PROTOCOLS];

static inline void set_facts(struct serve_facts *f)
{
    f->answered = f->up = f->serves = true;
    strcpy(f->coordinator, "redis://redis.example:6379/0");
    strcpy(f->pool, "default");
    strcpy(f->identity, "0123|1767225600000|38.15.10");
    strcpy(f->host, "pod-1");
    f->era = 3;
    f->pool_free = 32700;
    f->pool_size = 32768;
    f->held = f->wanted = 2;
    f->tenure_start_ms = START_MS - MINUTES(20);
    f->horizon_ms = MINUTES(60);
    f->mature_after_ms = MINUTES(2);
    f->max_skew_ms = 2000;
}

static inline int rig_up(void **state)
{
    (void)state;
    elapsed_ms = MINUTES(10);
    memset(&s, 0, sizeof s);
    memset(services, 0, sizeof services);
    s.clock = &rig_clock;
    s.started_ms = START_MS;
    s.started_mono_us = START_US;
    s.max_connections = 4096;
    history_init(&s.history, START_US);
    set_facts(&s.facts);
    s.facts.granted = true;
    for (unsigned i = 0; i < SERVE_PROTOCOLS; i++) {
        services[i].name = serve_protocol_name((enum serve_protocol)i);
        s.services[i] = &services[i];
    }
    struct snowflake *g = &gen.ids;
    snowflake_generator_init(&gen, s.facts.why);
    snowflake_generator_start(&gen, LAYOUT_EPOCH_DEFAULT_MS, &layout_usual, 15, 1);
    if (issuer_add(&s.issuer, &gen.base, "id:", NULL, 0, NULL))
        return -1;
    int64_t hi = START_MS + elapsed_ms + MINUTES(45);
    return snowflake_grant(g, 1, 7, START_MS - 1, hi, NULL) &&
                   snowflake_grant(g, 2, 8, START_MS - 1, hi, NULL)
               ? 0
               : -1;
}

static inline int rig_down(void **state)
{
    (void)state;
    names_clear(&s.issuer.names);
    return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_up, rig_down)

#endif
