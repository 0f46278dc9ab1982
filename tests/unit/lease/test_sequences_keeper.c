/* The supply of sequences in the keeper's thread, beside workerIds, on a real SQLite pool: marks
 * are stored and events told meanwhile, processes are killed, and no number comes twice. To be
 * clean under ThreadSanitizer, too. */
#include "base/log.h"
#include "lease/keeper.h"
#include "lease/sequences.h"
#include "support/coord_setup.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define COUNTERS    4
#define TOP         20000 /* numbers that are watched, of each counter */
#define PATIENCE_MS 30000
#define SIZE        50

static struct {
    char dir[64], url[96];
    struct coord *coord;
    struct pagefile page;
    struct workers *workers;
    struct sequences *sequences;
    struct supply *list[2];
    struct keeper *keeper;
    struct keeper_report report;
    struct workers_report workers_report;
    struct sequences_report sequences_report;

    struct {
        struct blocks_mail block[2]; /* as the loop has them: what is in hand, and what follows */
        int64_t next;
        unsigned n;
        bool open, asked, closing;
    } c[COUNTERS];
    unsigned char given[COUNTERS][TOP];
    int64_t last[COUNTERS];
    unsigned long total;
} b;

static const char *const names[COUNTERS] = {"one", "two", "three", "one"}; /* the last: a sub */

static int64_t now_ms(void)
{
    return clock_mono_ms(clock_system());
}

static void nap(void)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void notify(void *arg)
{
    (void)arg;
}

static void make_pool(void)
{
    struct coord_reply r;
    struct seq_grant g;
    const struct coord_init in = setup_init(SETUP_IDENTITY, COORD_INIT_FRESH, 7);
    assert_int_equal(coord_init(b.coord, &in, &r), COORD_OK);
    for (unsigned i = 0; i < 3; i++) {
        const struct seq_create create = {
            .name = names[i],
            .definition = {.start = 1, .increment = 1, .loss = SEQ_LOSS_REFUSE, .subs = 10}};
        assert_int_equal(seq_create(b.coord, SETUP_IDENTITY, &create, &g, &r), COORD_OK);
    }
}

static int begin(void **state)
{
    (void)state;
    memset(&b, 0, sizeof b);
    log_setup(LOG_LVL_ERROR, LOG_FMT_TEXT);
    (void)snprintf(b.dir, sizeof b.dir, "/dev/shm/sidflake-seqk-XXXXXX");
    if (!mkdtemp(b.dir))
        return -1;
    (void)snprintf(b.url, sizeof b.url, "sqlite://%s/pool.db", b.dir);
    b.coord = setup_open(b.url, "default", clock_system());
    make_pool();
    for (unsigned i = 0; i < COUNTERS; i++)
        b.last[i] = -1;
    return 0;
}

static int end(void **state)
{
    (void)state;
    char path[400];
    coord_free(b.coord);
    setup_forget_tally(b.dir);
    DIR *d = opendir(b.dir);
    for (struct dirent *x; d && (x = readdir(d));) {
        (void)snprintf(path, sizeof path, "%s/%s", b.dir, x->d_name);
        (void)unlink(path);
    }
    (void)closedir(d);
    return rmdir(b.dir);
}

/* ---- the loop's side ------------------------------------------------------------------------- */

static void tell(enum sequences_event_kind kind, uint32_t i)
{
    struct sequences_event e = {.kind = kind, .counter = i, .want = {.count = SIZE}};
    (void)snprintf(e.of.name, sizeof e.of.name, "%s", names[i]);
    (void)snprintf(e.of.sub, sizeof e.of.sub, "%s", i == 3 ? "acme" : "");
    keeper_tell(b.keeper, 1, &e);
}

static void granted(const struct blocks_mail *m)
{
    uint32_t i = m->counter;
    b.c[i].asked = false;
    if (b.c[i].closing)
        return;
    assert_true(b.c[i].n < 2);
    if (b.c[i].n == 0)
        b.c[i].next = m->lo + m->given;
    b.c[i].block[b.c[i].n++] = *m;
}

static void take_one(const struct supply_mail *mail)
{
    if (mail->supply != 1)
        return;
    const struct blocks_mail m = sequences_mail(mail);
    if (m.kind == BLOCKS_MAIL_GRANT)
        granted(&m);
    else if (m.kind == BLOCKS_MAIL_REFUSED && !m.keeps_on)
        b.c[m.counter].asked = false;
    else if (m.kind == BLOCKS_MAIL_CLOSED)
        memset(&b.c[m.counter], 0, sizeof b.c[m.counter]);
}

static void take(void)
{
    struct supply_mail mails[32];
    void *const reports[] = {&b.workers_report, &b.sequences_report};
    size_t n;
    do {
        n = keeper_take(b.keeper, mails, 32, &b.report, reports);
        for (size_t i = 0; i < n; i++)
            take_one(&mails[i]);
    } while (n == 32);
}

static void give_one(uint32_t i)
{
    struct blocks_mail *m = &b.c[i].block[0];
    int64_t index = b.c[i].next++;
    assert_true(index < TOP && index > b.last[i]);
    mark_store(m->mark, b.c[i].next - m->lo);
    assert_int_equal(b.given[i][index], 0);
    b.given[i][index] = 1;
    b.last[i] = index;
    b.total++;
    if (b.c[i].next <= m->hi)
        return;
    b.c[i].n--;
    b.c[i].block[0] = b.c[i].block[1];
    b.c[i].next = b.c[i].block[0].lo + b.c[i].block[0].given;
}

static void serve(uint32_t i)
{
    if (b.c[i].closing)
        return;
    if (!b.c[i].open)
        tell(SEQUENCES_OPEN, i);
    b.c[i].open = true;
    if (b.c[i].n < 2 && !b.c[i].asked) {
        tell(SEQUENCES_WANT, i);
        b.c[i].asked = true;
    }
    for (int k = 0; k < 7 && b.c[i].n > 0; k++)
        give_one(i);
}

static void serve_all(unsigned long numbers)
{
    int64_t until = now_ms() + PATIENCE_MS;
    for (unsigned long goal = b.total + numbers; b.total < goal; nap()) {
        take();
        for (uint32_t i = 0; i < COUNTERS; i++)
            serve(i);
        assert_true(now_ms() < until);
    }
}

/* ---- lives ----------------------------------------------------------------------------------- */

static void start(void)
{
    struct err e;
    if (pagefile_inherit(&b.page, b.dir, "sqlite|default", PAGEFILE_SAVES_WAITING, NULL, &e))
        fail_msg("%s", e.text);
    const struct workers_options w = {
        .lease = {.active = 1, .renew_ms = 5, .stop_ms = 3000, .epoch_ms = 1767225600000},
        .coord_name = "sqlite",
        .pool_name = "default",
        .file = &b.page,
        .rng = rng_system()};
    if (workers_new(&w, now_ms(), &b.workers, &e))
        fail_msg("%s", e.text);
    const struct sequences_options o = {.state_dir = b.dir,
                                        .coord_name = "sqlite",
                                        .pool_name = "default",
                                        .workers = b.workers,
                                        .counters = COUNTERS,
                                        .stop_ms = 3000,
                                        .rng = rng_system()};
    if (sequences_new(&o, now_ms(), &b.sequences, &e))
        fail_msg("%s", e.text);
    memset(b.c, 0, sizeof b.c);
    for (uint32_t i = 0; i < COUNTERS; i++)
        b.c[i].open = sequences_found(b.sequences, i) != NULL;
    b.list[0] = workers_supply(b.workers);
    b.list[1] = sequences_supply(b.sequences);
    const struct keeper_options k = {.supplies = b.list,
                                     .nsupplies = 2,
                                     .coord = b.coord,
                                     .clock = clock_system(),
                                     .notify = notify};
    if (keeper_start(&k, &b.keeper, &e))
        fail_msg("%s", e.text);
}

static void end_life(void)
{
    keeper_stop(b.keeper, false);
    keeper_free(b.keeper);
    sequences_free(b.sequences);
    workers_free(b.workers);
    pagefile_close(&b.page);
}

static void killed(void)
{
    keeper_stop(b.keeper, false);
    end_life();
}

static bool has_numbers(void)
{
    for (uint32_t i = 0; i < COUNTERS; i++)
        if (b.c[i].n > 0)
            return true;
    return false;
}

/* With something to give back: where the keeper is slower than the loop all may have been used. */
static void stopped(void)
{
    int64_t until = now_ms() + PATIENCE_MS;
    for (take(); !has_numbers(); take()) {
        assert_true(now_ms() < until);
        nap();
    }
    keeper_stop(b.keeper, true);
    for (take(); !b.report.finished; take()) {
        assert_true(now_ms() < until);
        nap();
    }
    assert_true(b.sequences_report.given_back > 0);
    end_life();
}

static void numbers_go_on_over_kills_and_stops(void **state)
{
    (void)state;
    for (int life = 0; life < 6; life++) {
        start();
        serve_all(2000);
        if (life % 2)
            stopped();
        else
            killed();
    }
    for (unsigned i = 0; i < COUNTERS; i++)
        for (int64_t k = 0; k < b.last[i]; k++)
            assert_int_equal(b.given[i][k], 1); /* on tmpfs nothing is lost */
}

static void places_are_closed_while_numbers_are_given_out(void **state)
{
    (void)state;
    start();
    for (int round = 0; round < 30; round++) {
        uint32_t i = (uint32_t)round % COUNTERS;
        serve_all(300);
        if (!b.c[i].closing)
            tell(SEQUENCES_CLOSE, i);
        b.c[i].closing = true;
        b.c[i].n = 0;
    }
    serve_all(300);
    assert_true(b.sequences_report.dropped > 0);
    killed();
}

#define KEEPER(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        KEEPER(numbers_go_on_over_kills_and_stops),
        KEEPER(places_are_closed_while_numbers_are_given_out),
    };
    return cmocka_run_group_tests_name("lease/sequences_keeper", tests, NULL, NULL);
}
