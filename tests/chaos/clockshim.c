/*
 * Preloaded into a process: moves its wall clock, and nothing else.
 *
 *   CHAOS_CLOCK_FILE   an array of int64, microseconds, that this process maps and others write
 *   CHAOS_CLOCK_SLOT   index of this process's own offset; slot 0 is added for everybody
 *
 *     wall clock seen = true wall clock + slot[0] + slot[own]
 *
 * One store to slot 0 thus moves all clocks in the same instant, as the passing of time does.
 *
 * Invariants
 *   - CLOCK_MONOTONIC and every other clock that is no wall clock stay true.
 *   - Nothing is allocated and no symbol is looked up, ever: an allocator that asks for the time
 *     while it starts (jemalloc in redis-server) must get an answer. Hence system calls, not the
 *     C library's own functions.
 *   - Without the file, or before it is mapped, the time is true.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const int64_t *common, *own; /* both or neither */

__attribute__((constructor)) static void clockshim_map(void)
{
    const char *path = getenv("CHAOS_CLOCK_FILE");
    const char *slot = getenv("CHAOS_CLOCK_SLOT");
    struct stat st;
    if (!path || !slot)
        return;
    size_t n = (size_t)strtoul(slot, NULL, 10);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0 || (size_t)st.st_size < (n + 1) * sizeof *own)
        _exit(126); /* a clock that stays true unnoticed would prove nothing */
    void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    (void)close(fd);
    if (map == MAP_FAILED)
        _exit(126);
    own = (const int64_t *)map + n;
    __atomic_store_n(&common, (const int64_t *)map, __ATOMIC_RELEASE);
}

static int64_t offset_us(void)
{
    const int64_t *c = __atomic_load_n(&common, __ATOMIC_ACQUIRE);
    if (!c)
        return 0;
    return __atomic_load_n(c, __ATOMIC_RELAXED) + __atomic_load_n(own, __ATOMIC_RELAXED);
}

static int read_clock(clockid_t id, struct timespec *ts)
{
    if (syscall(SYS_clock_gettime, id, ts) != 0)
        return -1;
    if (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE && id != CLOCK_REALTIME_ALARM)
        return 0;
    int64_t us = offset_us();
    int64_t ns = ts->tv_nsec + us % 1000000 * 1000;
    ts->tv_sec += us / 1000000 + (ns < 0 ? -1 : ns >= 1000000000);
    ts->tv_nsec = ns < 0 ? ns + 1000000000 : ns >= 1000000000 ? ns - 1000000000 : ns;
    return 0;
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t id, struct timespec *ts)
{
    return read_clock(id, ts);
}

__attribute__((visibility("default"))) int gettimeofday(struct timeval *restrict tv,
                                                        void *restrict zone)
{
    struct timespec ts;
    (void)zone; /* obsolete; Linux fills it with zeroes at most */
    if (read_clock(CLOCK_REALTIME, &ts) != 0)
        return -1;
    *tv = (struct timeval){.tv_sec = ts.tv_sec, .tv_usec = ts.tv_nsec / 1000};
    return 0;
}

__attribute__((visibility("default"))) time_t time(time_t *out)
{
    struct timespec ts;
    if (read_clock(CLOCK_REALTIME, &ts) != 0)
        return -1;
    if (out)
        *out = ts.tv_sec;
    return ts.tv_sec;
}
