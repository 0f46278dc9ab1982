/*
 * The deterministic simulation: random schedules of sidecars, a coordinator and everything that can
 * go wrong between them, with the invariants checked after every step.
 *
 *   sim [SEEDS]    that many schedules, from seed FROM (environment) on, as a test program (TAP)
 *   SEED=n sim     one schedule, with its trace; MINIMAL=1 shrinks it first
 *
 * SQLITE=n in the environment: one schedule of n runs against SQLite instead of Redis; 0: none.
 */
#include "sim/script.h"
#include "sim/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SEEDS_DEFAULT  10000
#define SQLITE_DEFAULT 50
#define STEPS_MAX      1024

extern const char pool_lua[];
extern const size_t pool_lua_len;

static struct server redis_server, other_server, sqlite_server;
static struct world world;
static struct stats stats;
static uint64_t sqlite_every = SQLITE_DEFAULT;

static uint64_t number_in(const char *name, uint64_t otherwise)
{
    const char *s = getenv(name);
    return s && *s ? strtoull(s, NULL, 10) : otherwise;
}

static void run(uint64_t seed, const uint8_t *skip)
{
    bool sqlite = sqlite_every > 0 && seed % sqlite_every == sqlite_every - 1;
    world.server = sqlite ? &sqlite_server : &redis_server;
    world.other = sqlite ? NULL : &other_server;
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
    (void)printf("# seed %llu: %s\n# a shorter schedule that fails, too (step, time, what):\n",
                 (unsigned long long)seed, world.why);
    shrink(seed, skip);
    show(seed, skip);
    (void)printf("# again, whole: SEED=%llu\n", (unsigned long long)seed);
}

/* ---- the report ------------------------------------------------------------------------------ */

static double seconds(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void report(double took)
{
    const struct stats *s = &stats;
    (void)printf("# %llu schedules, %llu steps, %llu calls, %llu IDs in %.1f s: %.0f schedules/s, "
                 "%.0f IDs/s\n",
                 (unsigned long long)s->schedules, (unsigned long long)s->steps,
                 (unsigned long long)s->calls, (unsigned long long)s->ids, took,
                 (double)s->schedules / took, (double)s->ids / took);
    (void)printf("# %llu grants; renewals: %llu renewed, %llu again, %llu reasserted, %llu lost; "
                 "%llu rotations, %llu pages taken over\n",
                 (unsigned long long)s->grants, (unsigned long long)s->renewals[1],
                 (unsigned long long)s->renewals[2], (unsigned long long)s->renewals[3],
                 (unsigned long long)s->renewals[0], (unsigned long long)s->rotations,
                 (unsigned long long)s->takeovers);
    (void)printf("# answers:");
    for (unsigned i = 0; i <= COORD_DOWN; i++)
        (void)printf(" %s %llu", coord_status_name((enum coord_status)i),
                     (unsigned long long)s->status[i]);
    (void)printf("\n");
    for (unsigned f = 0; f < FAULTS; f++)
        (void)printf("# %10llu  %s\n", (unsigned long long)s->fault[f], fault_names[f]);
}

static bool all_met(void)
{
    for (unsigned f = 0; f < FAULTS; f++)
        if (stats.fault[f] == 0)
            return false;
    return stats.renewals[COORD_HOW_AGAIN] > 0 && stats.renewals[COORD_HOW_REASSERTED] > 0 &&
           stats.renewals[COORD_HOW_LOST] > 0 && stats.rotations > 0 && stats.takeovers > 0;
}

static int run_many(uint64_t from, uint64_t seeds)
{
    double start = seconds();
    uint64_t seed = from;
    (void)printf("1..2\n");
    for (; seed < from + seeds; seed++) {
        run(seed, NULL);
        if (world.failed)
            break;
    }
    report(seconds() - start);
    bool good = seed == from + seeds;
    (void)printf("%sok 1 - no ID twice and both invariants, in %llu schedules\n",
                 good ? "" : "not ", (unsigned long long)(seed - from));
    if (!good)
        explain(seed);
    bool met = !good || seeds < 1000 || all_met();
    (void)printf("%sok 2 - every kind of fault was met\n", met ? "" : "not ");
    return good && met ? 0 : 1;
}

static int run_one(uint64_t seed)
{
    run(seed, NULL);
    bool failed = world.failed;
    (void)printf("1..1\n");
    if (failed && number_in("MINIMAL", 0))
        explain(seed);
    else
        show(seed, NULL);
    (void)printf("%sok 1 - seed %llu\n", failed ? "not " : "", (unsigned long long)seed);
    return failed;
}

int main(int argc, char **argv)
{
    uint64_t seeds = argc > 1 ? strtoull(argv[1], NULL, 10) : number_in("SEEDS", SEEDS_DEFAULT);
    sqlite_every = number_in("SQLITE", SQLITE_DEFAULT);
    world.stats = &stats;
    script_open(pool_lua, pool_lua_len);
    server_open(&redis_server, false);
    server_open(&other_server, false);
    server_open(&sqlite_server, true);
    int status =
        getenv("SEED") ? run_one(number_in("SEED", 0)) : run_many(number_in("FROM", 0), seeds);
    server_close(&redis_server);
    server_close(&other_server);
    server_close(&sqlite_server);
    script_close();
    return status;
}
