/*
 * The deterministic simulation: random schedules of sidecars, a coordinator and everything that can
 * go wrong between them, with the invariants checked after every step.
 *
 *   sim [SEEDS]    that many schedules, from seed FROM (environment) on, as a test program (TAP);
 *                  without a number in either place some with sequences, too, which seeds from
 *                  1000000000 on have, and some with other layouts: from 2000000000 on,
 *                  and ahead of their clocks: from 3000000000 on
 *   SEED=n sim     one schedule, with its trace; MINIMAL=1 shrinks it first
 *
 * In the environment: JOBS=n, so many processes; ALL=1, tell and count failures instead of ending
 * at the first; SQLITE=n, one schedule of n runs against SQLite instead of Redis, 0: none; TWIN=n,
 * of n seeds one has its calls to Redis run by the rules in C, where there are no replicas, 0:
 * none; LOCKS=1, files are opened in SQLite's own way, with locks and journal.
 */
#include "sim/cases.h"
#include "sim/crew.h"
#include "sim/script.h"
#include "sim/seqs.h"

#include <stdio.h>
#include <stdlib.h>

#define SEEDS_DEFAULT   10000
#define SQLITE_DEFAULT  5
#define TWIN_DEFAULT    0
#define BOTH_SEEDS      300 /* that are run in two ways */
#define SEQS_DEFAULT    1000
#define LAYOUTS_DEFAULT 1000
#define AHEAD_DEFAULT   900 /* too few to meet every kind of fault, which longer runs have to */
#define STEPS_MAX       1024

extern const char pool_lua[], sequences_lua[];
extern const size_t pool_lua_len, sequences_lua_len;

static struct server redis_server, other_server, sqlite_server;
static struct world world;
static struct seqs seqs;
static uint64_t sqlite_every = SQLITE_DEFAULT, twin_every = TWIN_DEFAULT;

static uint64_t number_in(const char *name, uint64_t otherwise)
{
    const char *s = getenv(name);
    return s && *s ? strtoull(s, NULL, 10) : otherwise;
}

static bool has_sequences(uint64_t seed)
{
    return seed >= SEQS_FROM && seed < LAYOUTS_FROM;
}

static void run(uint64_t seed, const uint8_t *skip)
{
    bool sqlite = sqlite_every > 0 && seed % sqlite_every == sqlite_every - 1;
    world.server = sqlite ? &sqlite_server : &redis_server;
    world.other = sqlite ? NULL : &other_server;
    world.seqs = has_sequences(seed) ? &seqs : NULL;
    world.layouts = seed >= LAYOUTS_FROM;
    world.ahead = seed >= AHEAD_FROM;
    redis_server.in_c = other_server.in_c = twin_every > 0 && seed % twin_every == 0;
    world.unheard = number_in("UNHEARD", 0) > 0;
    schedule_run(&world, seed, skip);
}

/* ---- a minimal trace ------------------------------------------------------------------------- */

static bool still_fails(uint64_t seed, const uint8_t *skip)
{
    run(seed, skip);
    return world.failed;
}

/* Leaves out runs of steps, of half the length each time, as long as it still fails. */
static void shrink(uint64_t seed, uint8_t skip[STEPS_MAX])
{
    unsigned last = world.step;
    for (unsigned i = last + 1; i < STEPS_MAX; i++)
        skip[i] = 1;
    for (unsigned pass = 0; pass < 3; pass++)
        for (unsigned len = last / 2 ? last / 2 : 1; len > 0; len /= 2)
            for (unsigned at = 1; at <= last; at += len) {
                uint8_t before[STEPS_MAX];
                memcpy(before, skip, sizeof before);
                for (unsigned i = at; i < at + len && i <= last; i++)
                    skip[i] = 1;
                if (memcmp(before, skip, sizeof before) != 0 && !still_fails(seed, skip))
                    memcpy(skip, before, sizeof before);
            }
}

static void show(uint64_t seed, const uint8_t *skip)
{
    const struct coord_params *p = &world.set.params;
    world.trace = true;
    run(seed, skip);
    world.trace = false;
    (void)printf("# A %lld A0 %lld D0 %lld S %lld G %lld, workerIds 0-%u, %u nodes, %s\n",
                 (long long)p->horizon_ms, (long long)p->first_horizon_ms,
                 (long long)p->mature_after_ms, (long long)p->max_skew_ms, (long long)p->grace_ms,
                 p->worker_to, world.set.nodes, world.server->sqlite ? "SQLite" : "Redis");
}

static void explain(uint64_t seed)
{
    static uint8_t skip[STEPS_MAX];
    memset(skip, 0, sizeof skip);
    run(seed, NULL);
    (void)printf("# seed %llu: %s\n# a shorter schedule that fails, too (step, time, what):\n",
                 (unsigned long long)seed, world.why);
    shrink(seed, skip);
    show(seed, skip);
    (void)printf("# again, whole: SEED=%llu\n", (unsigned long long)seed);
}

/* ---- the report ------------------------------------------------------------------------------ */

static bool with_seqs(const struct stats *s)
{
    return s->seq_how[SEQ_GRANTED] > 0;
}

static void report(const struct stats *s, double took)
{
    (void)printf("# %llu schedules, %llu steps, %llu calls, %llu IDs in %.1f s: %.0f schedules/s, "
                 "%.0f IDs/s\n",
                 (unsigned long long)s->schedules, (unsigned long long)s->steps,
                 (unsigned long long)s->calls, (unsigned long long)s->ids, took,
                 (double)s->schedules / took, (double)s->ids / took);
    (void)printf("# %llu grants; renewals: %llu renewed, %llu again, %llu reasserted, %llu lost; "
                 "%llu rotations, %llu pages taken over, %llu in upgrades; %llu IDs ahead\n",
                 (unsigned long long)s->grants, (unsigned long long)s->renewals[1],
                 (unsigned long long)s->renewals[2], (unsigned long long)s->renewals[3],
                 (unsigned long long)s->renewals[0], (unsigned long long)s->rotations,
                 (unsigned long long)(s->takeovers - s->proven), (unsigned long long)s->proven,
                 (unsigned long long)s->ahead);
    (void)printf("# answers:");
    for (unsigned i = 0; i <= COORD_DOWN; i++)
        (void)printf(" %s %llu", coord_status_name((enum coord_status)i),
                     (unsigned long long)s->status[i]);
    (void)printf("\n");
    for (unsigned f = 0; f < FAULTS; f++)
        (void)printf("# %10llu  %s\n", (unsigned long long)s->fault[f], fault_names[f]);
    for (unsigned i = 0; i < SEQS_COUNTS && with_seqs(s); i++)
        (void)printf("# %10llu  %s\n", (unsigned long long)s->seqs[i], seqs_names[i]);
    for (unsigned i = 0; i < SEQ_HOWS && with_seqs(s); i++)
        (void)printf("# %10llu  sequences that answer: %s\n", (unsigned long long)s->seq_how[i],
                     seq_how_name((enum seq_how)i));
    (void)printf("# digest of all that was answered and issued: %016llx\n",
                 (unsigned long long)s->digest);
}

/* Who is ahead of the clock is so with a coordinator alone, and takes over no page but in upgrades.
 */
static bool all_met(const struct stats *s)
{
    bool ahead = s->ahead > 0;
    for (unsigned f = 0; f < (ahead ? FAULT_LIFE_FIXED : FAULTS); f++)
        if (s->fault[f] == 0)
            return false;
    return (s->takeovers > s->proven) == !ahead && s->renewals[COORD_HOW_AGAIN] > 0 &&
           s->renewals[COORD_HOW_REASSERTED] > 0 && s->renewals[COORD_HOW_LOST] > 0 &&
           s->rotations > 0 && s->proven > 0;
}

/* The others are an operator's mistakes, or come of what no schedule has. */
static bool all_met_of_sequences(const struct stats *s)
{
    for (unsigned i = 0; i < SEQS_COUNTS; i++)
        if (s->seqs[i] == 0)
            return false;
    for (enum seq_how i = SEQ_GRANTED; i < SEQ_UNREADABLE; i++)
        if (s->seq_how[i] == 0)
            return false;
    return true;
}

static void open_world(struct stats *stats)
{
    world.stats = stats;
    server_open(&redis_server, false);
    server_open(&other_server, false);
    server_open(&sqlite_server, true);
}

static void close_world(void)
{
    server_close(&redis_server);
    server_close(&other_server);
    server_close(&sqlite_server);
}

static bool fails(uint64_t seed)
{
    run(seed, NULL);
    world.stats->failures += world.failed;
    if (world.failed && number_in("ALL", 0) > 0) {
        (void)printf("# seed %llu: %s\n", (unsigned long long)seed, world.why);
        (void)fflush(stdout);
    }
    return world.failed;
}

/* Test number i; again with a trace where it fails. */
static bool run_case(unsigned i, unsigned test)
{
    world.server = &redis_server;
    world.other = NULL;
    world.seqs = NULL;
    bool good = case_run(&world, i);
    if (!good) {
        (void)printf("# %s\n", world.why);
        world.trace = true;
        (void)case_run(&world, i);
        world.trace = false;
    }
    (void)printf("%sok %u - %s\n", good ? "" : "not ", test, case_names[i]);
    return good;
}

/* Two ways to run a schedule, which must come to the same. */
struct ways {
    const char *them;
    uint64_t sqlite_every;
    void (*go)(bool second);
};

static void by_rules_in_c(bool second)
{
    twin_every = second;
}

static const struct ways scripts = {"scripts and rules in C", 0, by_rules_in_c},
                         files = {"files with locks and mapped ones", 1, poolfile_mapped};

static bool run_both(const struct ways *w, uint64_t from, uint64_t seeds, unsigned test)
{
    uint64_t every = sqlite_every, twins = twin_every, differ = 0;
    sqlite_every = w->sqlite_every;
    for (uint64_t seed = from; seed < from + seeds; seed++) {
        uint64_t digest[2];
        for (unsigned i = 0; i < 2; i++) {
            w->go(i);
            run(seed, NULL);
            digest[i] = world.digest;
        }
        if (digest[0] != digest[1] && differ++ == 0)
            (void)printf("# seed %llu: another end in the second way\n", (unsigned long long)seed);
    }
    sqlite_every = every;
    twin_every = twins;
    (void)printf("%sok %u - %s come to the same in %llu schedules, not in %llu\n",
                 differ ? "not " : "", test, w->them, (unsigned long long)(seeds - differ),
                 (unsigned long long)differ);
    return differ == 0;
}

static bool run_some(uint64_t from, uint64_t seeds, unsigned test)
{
    static struct crew_result r;
    uint64_t jobs = number_in("JOBS", 1);
    struct crew_job job = {.from = from,
                           .seeds = seeds,
                           .workers = (unsigned)(jobs < 1          ? 1
                                                 : jobs > CREW_MAX ? CREW_MAX
                                                                   : jobs),
                           .to_the_end = number_in("ALL", 0) > 0,
                           .open = open_world,
                           .run = fails,
                           .close = close_world};
    crew_run(&job, &r);
    report(&r.stats, r.seconds);
    bool good = !r.failed && r.stats.schedules == seeds;
    (void)printf(
        "%sok %u - no %s twice and all invariants, in %llu schedules of %llu, %llu failed\n",
        good ? "" : "not ", test, has_sequences(from) ? "number" : "ID",
        (unsigned long long)r.stats.schedules, (unsigned long long)seeds,
        (unsigned long long)r.stats.failures);
    if (r.failed)
        explain(r.seed);
    bool met = r.failed || seeds < 1000 ||
               (has_sequences(from) ? all_met_of_sequences(&r.stats) : all_met(&r.stats));
    (void)printf("%sok %u - every kind of fault was met\n", met ? "" : "not ", test + 1);
    return good && met;
}

/* more: so many with sequences, and with other layouts, and ahead of the clock, behind those
 * without. */
static int run_many(uint64_t from, uint64_t seeds, uint64_t more)
{
    unsigned both = from < SEQS_FROM && more > 0 ? 9 : 0;
    (void)printf("1..%u\n", 2 + both + CASES);
    bool good = run_some(from, seeds, 1);
    if (both) {
        good &= run_some(SEQS_FROM + from, more, 3);
        good &= run_both(&scripts, from, BOTH_SEEDS, 5);
        good &= run_both(&scripts, SEQS_FROM + from, BOTH_SEEDS, 6);
        good &= run_both(&files, from, BOTH_SEEDS / 4, 7);
        good &= run_some(LAYOUTS_FROM + from, LAYOUTS_DEFAULT, 8);
        good &= run_some(AHEAD_FROM + from, AHEAD_DEFAULT, 10);
    }
    for (unsigned i = 0; i < CASES; i++)
        good &= run_case(i, 3 + both + i);
    return good ? 0 : 1;
}

static int run_one(uint64_t seed)
{
    (void)printf("1..1\n");
    bool failed = fails(seed);
    if (failed && number_in("MINIMAL", 0))
        explain(seed);
    else
        show(seed, NULL);
    (void)printf("%sok 1 - seed %llu\n", failed ? "not " : "", (unsigned long long)seed);
    return failed;
}

int main(int argc, char **argv)
{
    static struct stats ours;
    uint64_t more = argc > 1 || getenv("SEEDS") ? 0 : SEQS_DEFAULT;
    uint64_t seeds = argc > 1 ? strtoull(argv[1], NULL, 10) : number_in("SEEDS", SEEDS_DEFAULT);
    sqlite_every = number_in("SQLITE", SQLITE_DEFAULT);
    twin_every = number_in("TWIN", TWIN_DEFAULT);
    script_open(span_of(pool_lua, pool_lua_len), span_of(sequences_lua, sequences_lua_len));
    poolfile_mapped(number_in("LOCKS", 0) == 0);
    open_world(&ours);
    int status = getenv("SEED") ? run_one(number_in("SEED", 0))
                                : run_many(number_in("FROM", 0), seeds, more);
    close_world();
    script_close();
    return status;
}
