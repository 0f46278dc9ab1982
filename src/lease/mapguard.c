#include "lease/mapguard.h"

#include "base/log.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a handler uses has to be there beforehand. */
static struct guard {
    const char *from; /* NULL: nothing is guarded; stored last */
    size_t n;
    int fd;
    struct log_last cut, failed;
} guards[MAPGUARD_MAX];

static const char *guarded(const struct guard *g)
{
    return __atomic_load_n(&g->from, __ATOMIC_ACQUIRE);
}

static const struct guard *find(const char *at)
{
    for (unsigned i = 0; i < MAPGUARD_MAX; i++) {
        const char *from = guarded(&guards[i]);
        if (from && at >= from && at < from + guards[i].n)
            return &guards[i];
    }
    return NULL;
}

/* The kernel had no page of the file for a store, or a load. */
static void cannot_store(int signo, siginfo_t *info, void *context)
{
    (void)context;
    struct stat st;
    const struct guard *g = info->si_code > 0 ? find(info->si_addr) : NULL;
    if (!g) { /* it comes again, and ends the process as it would have */
        (void)signal(signo, SIG_DFL);
        if (info->si_code <= 0)
            (void)raise(signo);
        return;
    }
    bool cut = fstat(g->fd, &st) == 0 && st.st_size < (off_t)g->n;
    log_last_words(cut ? &g->cut : &g->failed);
    _exit(MAPGUARD_LOST);
}

void mapguard_add(const void *p, size_t n, int fd, const char *path, const char *msg)
{
    struct sigaction sa = {.sa_sigaction = cannot_store, .sa_flags = SA_SIGINFO};
    struct guard *g = guards;
    while (g < guards + MAPGUARD_MAX - 1 && guarded(g))
        g++;
    if (guarded(g))
        return;
    log_prepare(&g->cut, msg,
                LOG_KVS(kv_str("file", path), kv_str("why", "somebody has cut it short")));
    log_prepare(&g->failed, msg,
                LOG_KVS(kv_str("file", path),
                        kv_str("why", "its file system is full, read-only or failing")));
    g->fd = fd;
    g->n = n;
    __atomic_store_n(&g->from, (const char *)p, __ATOMIC_RELEASE);
    (void)sigemptyset(&sa.sa_mask);
    (void)sigaction(SIGBUS, &sa, NULL);
}

void mapguard_remove(const void *p)
{
    for (unsigned i = 0; p && i < MAPGUARD_MAX; i++)
        if (guarded(&guards[i]) == p)
            __atomic_store_n(&guards[i].from, NULL, __ATOMIC_RELEASE);
}
