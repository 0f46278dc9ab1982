/*
 * static:N in random lives: the driver, the lease machine, the generator and the page's file as
 * they are, on a clock that is set to and fro. No ID is repeated, or the start is refused.
 */
#include "ids/snowflake.h"
#include "lease/lease.h"
#include "support/coord_setup.h"
#include "support/fake_clock.h"
#include "support/idcheck.h"
#include "support/seeded.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define T0    INT64_C(1780000000000)
#define LIVES 25
#define SEEDS 60

struct world {
    char dir[64], page[96];
    struct fake_clock clock;
    struct seeded rng;
    struct idcheck ids;
    unsigned refused, stalled;

    /* The process. */
    struct coord *coord;
    struct pagefile file;
    struct lease lease;
    struct snowflake gen;
    bool gen_started;
};

static struct world w;

static int64_t draw(int64_t below)
{
    return seeded_in(&w.rng, 0, below - 1);
}

/* ---- the process: what keeper.c and bridge.c do ------------------------------------------------
 */

static void take_mail(const struct lease_mail *m)
{
    int64_t last;
    if (m->kind == LEASE_MAIL_POOL && !w.gen_started) {
        snowflake_init(&w.gen, w.lease.pool.epoch_ms, &w.lease.pool.layout, 15, 1);
        w.gen_started = true;
    } else if (m->kind == LEASE_MAIL_GRANT) {
        (void)snowflake_grant(&w.gen, m->handle, m->worker, m->last_ms, m->hi_ms, m->mark);
    } else if (m->kind == LEASE_MAIL_EXTEND) {
        snowflake_extend(&w.gen, m->handle, m->hi_ms);
    } else if (m->kind == LEASE_MAIL_REVOKE) {
        (void)snowflake_revoke(&w.gen, m->handle, &last);
    } else if (m->kind == LEASE_MAIL_RETIRE && snowflake_revoke(&w.gen, m->handle, &last)) {
        lease_retire(&w.lease, m->handle, clock_mono_ms(&w.clock.clock));
    }
}

static void take_mails(void)
{
    for (unsigned i = 0; i < w.lease.nmail; i++)
        take_mail(&w.lease.mail[i]);
    w.lease.nmail = 0;
}

static void call(struct lease_action *a, struct lease_outcome *o)
{
    const char *id = w.lease.identity;
    struct err e;
    memset(o, 0, sizeof *o);
    a->by.now_ms = clock_wall_ms(&w.clock.clock);
    if (a->kind == LEASE_DESCRIBE)
        o->status = coord_describe(w.coord, &o->pool, &o->reply);
    else if (a->kind == LEASE_CLAIM)
        o->status =
            coord_claim(w.coord, id, clock_wall_ms(&w.clock.clock), a->token, &o->grant, &o->reply);
    else if (a->kind == LEASE_RENEW)
        o->status = coord_renew(w.coord, id, &a->by, a->items, a->nitems, &o->terms, &o->reply);
    else if (a->kind == LEASE_RELEASE && !pagefile_begin_generation(&w.file, &e))
        o->status = coord_release(w.coord, id, &a->release, &o->reply);
}

static void keep(void)
{
    struct lease_action a;
    struct lease_outcome o;
    int64_t mono = clock_mono_ms(&w.clock.clock);
    for (lease_next(&w.lease, mono, &a); a.kind != LEASE_IDLE && a.kind != LEASE_FINISHED;
         lease_next(&w.lease, mono, &a)) {
        call(&a, &o);
        lease_done(&w.lease, &a, &o, mono, clock_wall_ms(&w.clock.clock));
        take_mails();
    }
}

static void serve(void)
{
    uint64_t first;
    uint32_t got;
    int64_t until, mono = clock_mono_ms(&w.clock.clock);
    if (!w.gen_started)
        return;
    enum snowflake_status s = snowflake_some(&w.gen, clock_wall_ms(&w.clock.clock),
                                             (uint32_t)(1 + draw(1024)), &first, &got, &until);
    if (s == SNOWFLAKE_OK)
        idcheck_add(&w.ids, first, got);
    w.stalled += s != SNOWFLAKE_OK;
    for (unsigned i = 0; i < w.gen.nretired; i++)
        lease_retire(&w.lease, w.gen.retired[i].handle, mono);
    w.gen.nretired = 0;
    if (w.gen.wants_worker)
        lease_urge_claim(&w.lease, mono);
    w.gen.wants_worker = w.gen.wants_renewal = false;
}

static enum err_code start(void)
{
    static const struct lease_config conf = {
        .active = 1, .renew_ms = 20000, .stop_ms = 3000, .page_knows_alone = true};
    char url[32];
    struct err e;
    (void)snprintf(url, sizeof url, "static:%d", (int)draw(3));
    enum err_code r = pagefile_inherit(&w.file, w.dir, url, PAGEFILE_KNOWS_ALONE, NULL, &e);
    if (r)
        return r;
    w.coord = setup_open(url, "p", &w.clock.clock);
    w.gen_started = false;
    memset(&w.gen, 0, sizeof w.gen);
    lease_init(&w.lease, &conf, &w.file, &w.rng.rng, clock_mono_ms(&w.clock.clock));
    take_mails();
    return ERR_OK;
}

/* SIGKILL, or a stop that gives back, or one that keeps. */
static void end(void)
{
    int64_t how = draw(3);
    if (how > 0) {
        lease_stop(&w.lease, how == 1, clock_mono_ms(&w.clock.clock));
        keep();
    }
    pagefile_close(&w.file);
    coord_free(w.coord);
}

/* ---- what happens ----------------------------------------------------------------------------
 */

static void time_goes_by(void)
{
    fake_clock_pass(&w.clock, draw(3) ? draw(3000) : draw(5000000));
    if (draw(4) == 0)
        fake_clock_step(&w.clock, seeded_in(&w.rng, -1, 1) * draw(draw(2) ? 30 : 20000));
}

static void one_life(void)
{
    for (int64_t i = draw(20); i >= 0; i--) {
        keep();
        serve();
        time_goes_by();
    }
}

/* Between two lives: a page that is cut is refused until it is taken away, at a time above all. */
static void a_page_is_cut(void)
{
    assert_int_equal(truncate(w.page, draw(PAGE_SIZE_BYTES)), 0);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(start(), ERR_CORRUPT);
        pagefile_close(&w.file);
    }
    w.refused++;
    assert_int_equal(unlink(w.page), 0);
    fake_clock_step(&w.clock, 60 * 60000);
}

static void a_seed(uint64_t seed)
{
    char command[80];
    uint64_t example = 0;
    w.rng = seeded_of(seed);
    fake_clock_init(&w.clock, T0);
    (void)snprintf(w.dir, sizeof w.dir, "/tmp/sidflake-static-XXXXXX");
    assert_non_null(mkdtemp(w.dir));
    (void)snprintf(w.page, sizeof w.page, "%s/worker.page", w.dir);
    for (int i = 0; i < LIVES; i++) {
        assert_int_equal(start(), ERR_OK);
        one_life();
        end();
        time_goes_by();
        if (draw(12) == 0)
            a_page_is_cut();
    }
    (void)snprintf(command, sizeof command, "rm -r %s", w.dir);
    assert_int_equal(system(command), 0);
    if (idcheck_duplicates(&w.ids, &example) > 0)
        fail_msg("seed %llu: %llu is issued twice", (unsigned long long)seed,
                 (unsigned long long)example);
    assert_true(w.ids.ids > 0);
    idcheck_clear(&w.ids);
    memset(&w.ids, 0, sizeof w.ids);
}

static void no_id_is_repeated_over_lives_and_clocks(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        a_seed(seed);
    assert_true(w.refused > 0 && w.stalled > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_id_is_repeated_over_lives_and_clocks),
    };
    return cmocka_run_group_tests_name("lease/static_lives", tests, NULL, NULL);
}
