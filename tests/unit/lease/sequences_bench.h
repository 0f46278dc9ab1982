/*
 * What the tests of the supply of sequences begin with: a store in memory, and lives of a sidecar
 * with both of its supplies on one state_dir, run by hand as the keeper does. The clock stands
 * unless it is moved.
 */
#ifndef SIDFLAKE_UNIT_LEASE_SEQUENCES_BENCH_H
#define SIDFLAKE_UNIT_LEASE_SEQUENCES_BENCH_H

#include "base/log.h"
#include "lease/sequences.h"
#include "support/capture.h"
#include "support/coord_setup.h"
#include "support/seeded.h"
#include "support/toy_store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define COUNTERS 128 /* more than mails that may be posted at once */
#define POOL     "default"

static struct bench {
    struct setup_clock clock;
    struct coord *coord;
    char dir[64];
    const char *where; /* begins it */
    int64_t mono;
    struct seeded rng;

    struct pagefile page;
    struct workers *workers;
    struct sequences *sequences;
    struct supply *supply[2];
    const struct seq_create *define;
    size_t ndefine;
    bool no_dir;
    size_t forget; /* place + 1 of what the loop cannot have */
    struct blockfile_left left;

    struct blocks_mail mail[2048]; /* all that came in this life */
    unsigned nmail;
    unsigned calls;
    bool finished;
} b;

static inline int begin(void **state)
{
    (void)state;
    const char *where = b.where ? b.where : "/tmp";
    memset(&b, 0, sizeof b);
    log_setup(LOG_LVL_INFO, LOG_FMT_TEXT);
    setup_clock_init(&b.clock, SETUP_T0_MS);
    b.coord = toy_open(POOL, &b.clock);
    toy_of(b.coord)->conflicts_of_8 = 0;
    b.mono = 1000000;
    b.rng = seeded_of(7);
    b.page.fd = -1;
    (void)snprintf(b.dir, sizeof b.dir, "%s/sidflake-seq-XXXXXX", where);
    return mkdtemp(b.dir) ? 0 : -1;
}

static inline int begin_tmpfs(void **state)
{
    b.where = "/dev/shm";
    return begin(state);
}

static inline int begin_disk(void **state)
{
    b.where = NULL;
    return begin(state);
}

static inline const char *path_of(const char *name)
{
    static char path[4][128];
    static unsigned at;
    char *p = path[at++ % 4];
    (void)snprintf(p, 128, "%s/%s", b.dir, name);
    return p;
}

static inline void end_life(void)
{
    sequences_free(b.sequences);
    workers_free(b.workers);
    if (b.workers)
        pagefile_close(&b.page);
    b.sequences = NULL;
    b.workers = NULL;
}

static inline int end(void **state)
{
    (void)state;
    static const char *const names[] = {"worker.page",
                                        "worker.page.aside",
                                        "worker.generation",
                                        "sequences.page",
                                        "sequences.generation",
                                        "sequences.page.aside",
                                        "copy",
                                        "copy2"};
    end_life();
    coord_free(b.coord);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        (void)unlink(path_of(names[i]));
    return rmdir(b.dir);
}

static inline void make_pool(void)
{
    struct coord_reply r;
    const struct coord_init in = setup_init(SETUP_IDENTITY, COORD_INIT_FRESH, 7);
    assert_int_equal(coord_init(b.coord, &in, &r), COORD_OK);
}

static inline struct seq_definition skipping(void)
{
    return (struct seq_definition){
        .start = 1, .increment = 1, .loss = SEQ_LOSS_SKIP, .rate = 100000};
}

static inline struct seq_grant make_in(const char *identity, const char *name,
                                       const struct seq_definition *d)
{
    struct coord_reply r;
    struct seq_grant g;
    const struct seq_create in = {.name = name, .definition = *d};
    if (seq_create(b.coord, identity, &in, &g, &r) != COORD_OK)
        fail_msg("%s", r.err.text);
    assert_int_equal(g.how, SEQ_DONE);
    return g;
}

static inline struct seq_grant make(const char *name, const struct seq_definition *d)
{
    return make_in(SETUP_IDENTITY, name, d);
}

/* ---- a life ---------------------------------------------------------------------------------- */

static inline void take_mails(void)
{
    struct supply *s = b.supply[1];
    assert_true(s->nmail <= SUPPLY_MAILS);
    for (unsigned i = 0; i < s->nmail && b.nmail < sizeof b.mail / sizeof *b.mail; i++)
        b.mail[b.nmail++] = sequences_mail(&s->mail[i]);
    b.supply[0]->nmail = s->nmail = 0;
}

static inline void start(void)
{
    struct err e;
    static char coord_name[] = "toy:";
    struct lease_config conf = {
        .active = 1, .spare = 0, .renew_ms = 20000, .stop_ms = 3000, .epoch_ms = 1767225600000};
    if (pagefile_inherit(&b.page, b.dir, "toy:|default", PAGEFILE_SAVES_WAITING, NULL, &e))
        fail_msg("%s", e.text);
    const struct workers_options w = {.lease = conf,
                                      .coord_name = coord_name,
                                      .pool_name = POOL,
                                      .file = &b.page,
                                      .rng = &b.rng.rng};
    if (workers_new(&w, b.mono, &b.workers, &e))
        fail_msg("%s", e.text);
    const struct sequences_options o = {.state_dir = b.no_dir ? NULL : b.dir,
                                        .coord_name = coord_name,
                                        .pool_name = POOL,
                                        .workers = b.workers,
                                        .define = b.define,
                                        .ndefine = b.ndefine,
                                        .counters = COUNTERS,
                                        .stop_ms = 3000,
                                        .rng = &b.rng.rng,
                                        .left = &b.left};
    if (sequences_new(&o, b.mono, &b.sequences, &e))
        fail_msg("%s", e.text);
    b.supply[0] = workers_supply(b.workers);
    b.supply[1] = sequences_supply(b.sequences);
    b.nmail = 0;
    b.finished = false;
    if (b.forget > 0)
        sequences_forget(b.sequences, (uint32_t)b.forget - 1);
    take_mails();
}

/* Of the supply that is due; false: neither is, nor was a mail posted. */
static inline bool step(void)
{
    int64_t until;
    bool finished = true, posted = false;
    for (int i = 0; i < 2; i++)
        b.supply[i]->kind->hear(b.supply[i], b.mono);
    for (int i = 0; i < 2; i++) {
        enum supply_next n = b.supply[i]->kind->next(b.supply[i], b.mono, &until);
        posted |= b.supply[0]->nmail + b.supply[1]->nmail > 0;
        take_mails();
        finished &= n == SUPPLY_FINISHED;
        if (n != SUPPLY_CALL)
            continue;
        b.supply[i]->kind->call(b.supply[i], b.coord, b.clock.ms);
        b.supply[i]->kind->done(b.supply[i], b.mono, b.clock.ms);
        take_mails();
        b.calls++;
        return true;
    }
    b.finished = finished;
    return posted && !finished;
}

static inline void run(void)
{
    for (int i = 0; i < 1000 && step(); i++)
        assert_true(i < 999);
}

static inline void pass(int64_t ms)
{
    b.mono += ms;
    b.clock.ms += ms;
    run();
}

static inline void killed(void)
{
    end_life();
    start();
}

static inline void tell(const struct sequences_event *e)
{
    b.supply[1]->kind->tell(b.supply[1], e);
}

static inline struct blocks_name name_of(const char *name)
{
    struct blocks_name n = {.name = ""};
    (void)snprintf(n.name, sizeof n.name, "%s", name);
    return n;
}

static inline void tell_open(uint32_t counter, const char *name)
{
    tell(
        &(struct sequences_event){.kind = SEQUENCES_OPEN, .counter = counter, .of = name_of(name)});
}

static inline void tell_want(uint32_t counter, int64_t count)
{
    tell(&(struct sequences_event){
        .kind = SEQUENCES_WANT, .counter = counter, .want = {.count = count}});
}

static inline void tell_close(uint32_t counter)
{
    tell(&(struct sequences_event){.kind = SEQUENCES_CLOSE, .counter = counter});
}

static inline void stop(bool give_back)
{
    for (int i = 0; i < 2; i++)
        b.supply[i]->kind->stop(b.supply[i], give_back, b.mono);
    run();
}

/* The latest mail of that kind about the counter, or NULL. */
static inline const struct blocks_mail *latest(enum blocks_mail_kind kind, uint32_t counter)
{
    for (unsigned i = b.nmail; i-- > 0;)
        if (b.mail[i].kind == kind && b.mail[i].counter == counter)
            return &b.mail[i];
    return NULL;
}

static inline unsigned count(enum blocks_mail_kind kind)
{
    unsigned n = 0;
    for (unsigned i = 0; i < b.nmail; i++)
        n += b.mail[i].kind == kind;
    return n;
}

static inline const struct sequences_report *report(void)
{
    return b.supply[1]->kind->report(b.supply[1]);
}

/* In the place of the one that was there. */
static inline void make_another_pool(void)
{
    coord_free(b.coord);
    b.coord = toy_open(POOL, &b.clock);
    toy_of(b.coord)->conflicts_of_8 = 0;
    struct coord_reply r;
    struct coord_init in = setup_init(SETUP_IDENTITY_OTHER, COORD_INIT_FRESH, 7);
    in.identity_said = true;
    assert_int_equal(coord_init(b.coord, &in, &r), COORD_OK);
}

/* Opens and wants, and has it. */
static inline const struct blocks_mail *must_have(uint32_t counter, const char *name, int64_t n)
{
    tell_open(counter, name);
    tell_want(counter, n);
    run();
    const struct blocks_mail *m = latest(BLOCKS_MAIL_GRANT, counter);
    if (!m)
        fail_msg("no block of %s came", name);
    return m;
}

static inline bool has_file(const char *name)
{
    return access(path_of(name), F_OK) == 0;
}

/* Into the file that is there. */
static inline void copy(const char *from, const char *to)
{
    static char data[1 << 18];
    FILE *in = fopen(path_of(from), "r");
    FILE *out = fopen(path_of(to), has_file(to) ? "r+" : "w");
    assert_true(in && out);
    size_t n = fread(data, 1, sizeof data, in);
    assert_true(n > 0 && fwrite(data, 1, n, out) == n);
    (void)fclose(in);
    (void)fclose(out);
}

#endif
