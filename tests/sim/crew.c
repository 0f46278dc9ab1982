#include "sim/crew.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define AT_ONCE       32u
#define PROGRESS_S    10
#define NONE          UINT64_MAX
#define POLL_FIRST_NS 1000000L   /* a few seeds are done at once */
#define POLL_MOST_NS  100000000L /* … and many take their time */

struct worker {
    struct stats stats;
    _Atomic uint64_t seed; /* that it runs */
};

/* Seen by all processes. */
struct crew {
    _Atomic uint64_t next;   /* seed that nobody has taken yet */
    _Atomic uint64_t failed; /* lowest that did, or NONE */
    struct worker worker[CREW_MAX];
};

static pid_t pids[CREW_MAX]; /* 0: ended */

static double seconds(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void failed_at(struct crew *c, uint64_t seed)
{
    uint64_t lowest = atomic_load(&c->failed);
    while (seed < lowest && !atomic_compare_exchange_weak(&c->failed, &lowest, seed))
        ;
}

static void work(struct crew *c, struct worker *me, const struct crew_job *job)
{
    uint64_t end = job->from + job->seeds;
    job->open(&me->stats);
    for (uint64_t at; (at = atomic_fetch_add(&c->next, AT_ONCE)) < end;)
        for (uint64_t i = at; i < at + AT_ONCE && i < end; i++) {
            if (!job->to_the_end && atomic_load(&c->failed) < i)
                break;
            atomic_store(&me->seed, i);
            if (job->run(i))
                failed_at(c, i);
        }
    job->close();
}

static void start(struct crew *c, unsigned i, const struct crew_job *job)
{
    pid_t parent = getpid();
    (void)fflush(stdout);
    pids[i] = fork();
    if (pids[i] < 0) {
        perror("crew: fork");
        exit(1);
    }
    if (pids[i] > 0)
        return;
    /* Nobody is left to run for when the parent is gone. */
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || getppid() != parent)
        _exit(1);
    work(c, &c->worker[i], job);
    _exit(0);
}

static void add(struct stats *to, const struct stats *from)
{
    _Static_assert(sizeof *to % sizeof(uint64_t) == 0, "counters alone");
    uint64_t *t = (uint64_t *)(void *)to;
    const uint64_t *f = (const uint64_t *)(const void *)from;
    for (size_t i = 0; i < sizeof *to / sizeof *t; i++)
        t[i] += f[i];
}

static void sum(const struct crew *c, unsigned workers, struct stats *out)
{
    memset(out, 0, sizeof *out);
    for (unsigned i = 0; i < workers; i++)
        add(out, &c->worker[i].stats);
}

static void show_progress(const struct crew *c, const struct crew_job *job, double took)
{
    struct stats s;
    sum(c, job->workers, &s);
    (void)printf("# %6.0f s: %llu of %llu schedules, %.0f/s, %llu IDs, %llu failed\n", took,
                 (unsigned long long)s.schedules, (unsigned long long)job->seeds,
                 (double)s.schedules / took, (unsigned long long)s.ids,
                 (unsigned long long)s.failures);
    (void)fflush(stdout);
}

/* Waits for those that have ended; how many have not. */
static unsigned reap(struct crew *c, unsigned workers)
{
    unsigned left = 0;
    for (unsigned i = 0; i < workers; i++) {
        int status;
        left += pids[i] > 0;
        if (pids[i] <= 0 || waitpid(pids[i], &status, WNOHANG) != pids[i])
            continue;
        pids[i] = 0;
        left--;
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            (void)printf("Bail out! a worker died at seed %llu (status %d): replay with SEED=\n",
                         (unsigned long long)atomic_load(&c->worker[i].seed), status);
            exit(1);
        }
    }
    return left;
}

static void wait_for_all(struct crew *c, const struct crew_job *job)
{
    double begun = seconds(), told = begun;
    long poll = POLL_FIRST_NS;
    while (reap(c, job->workers) > 0) {
        (void)nanosleep(&(struct timespec){.tv_nsec = poll}, NULL);
        poll = poll < POLL_MOST_NS ? poll * 2 : poll;
        if (seconds() - told < PROGRESS_S)
            continue;
        told = seconds();
        show_progress(c, job, told - begun);
    }
}

void crew_run(const struct crew_job *job, struct crew_result *out)
{
    double begun = seconds();
    struct crew *c =
        mmap(NULL, sizeof *c, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (c == MAP_FAILED) {
        perror("crew: memory");
        exit(1);
    }
    atomic_store(&c->next, job->from);
    atomic_store(&c->failed, NONE);
    for (unsigned i = 0; i < job->workers; i++)
        start(c, i, job);
    wait_for_all(c, job);
    sum(c, job->workers, &out->stats);
    out->seed = atomic_load(&c->failed);
    out->failed = out->seed != NONE;
    out->seconds = seconds() - begun;
    (void)munmap(c, sizeof *c);
}
