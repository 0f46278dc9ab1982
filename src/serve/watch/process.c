#include "serve/watch/process.h"

#include "base/dec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define STAT_BYTES                                                                                 \
    1024 /* 52 numbers and a name of at most 64 bytes; what follows the 24th may be cut */

/* Numbers of /proc/PID/stat, counted from the state behind the name, which is 0: proc(5) counts it
 * as 3. */
enum stat_field {
    STAT_THREADS = 17,
    STAT_VIRTUAL = 20,  /* bytes */
    STAT_RESIDENT = 21, /* pages */
    STAT_FIELDS
};

bool process_parse_stat(struct span text, int64_t page_bytes, struct process *p)
{
    int64_t number[STAT_FIELDS] = {0};
    /* The name may hold anything, spaces and parentheses included. */
    const char *name_end = text.n ? memrchr(text.p, ')', text.n) : NULL;
    if (!name_end)
        return false;
    struct span rest = span_skip(text, (size_t)(name_end - text.p) + 1);
    (void)span_cut(&rest, ' ');
    (void)span_cut(&rest, ' '); /* the state is a letter */
    for (int i = 1; i < STAT_FIELDS; i++)
        if (!rest.p || !dec_i64(span_cut(&rest, ' '), &number[i]))
            return false;
    int64_t resident;
    if (__builtin_mul_overflow(number[STAT_RESIDENT], page_bytes, &resident))
        return false;
    p->threads = number[STAT_THREADS];
    p->virtual_bytes = number[STAT_VIRTUAL];
    p->resident_bytes = resident;
    return true;
}

static void read_stat(struct process *p)
{
    char text[STAT_BYTES];
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t n = read(fd, text, sizeof text);
    (void)close(fd);
    if (n > 0)
        (void)process_parse_stat(span_of(text, (size_t)n), sysconf(_SC_PAGESIZE), p);
}

static int64_t count_fds(void)
{
    int64_t n = 0;
    const struct dirent *entry;
    DIR *dir = opendir("/proc/self/fd");
    if (!dir)
        return PROCESS_UNKNOWN;
    while ((entry = readdir(dir)))
        n += entry->d_name[0] != '.';
    (void)closedir(dir);
    return n - 1; /* the directory's own */
}

/* Since Linux 6.2 the directory's size is the number of its entries, at the cost of one call. */
static int64_t open_fds(void)
{
    struct stat st;
    bool counted = stat("/proc/self/fd", &st) == 0 && st.st_size > 0;
    return counted ? (int64_t)st.st_size : count_fds();
}

void process_read(struct process *p)
{
    struct rusage used;
    struct rlimit limit;
    *p = (struct process){PROCESS_UNKNOWN, open_fds(),      PROCESS_UNKNOWN,
                          PROCESS_UNKNOWN, PROCESS_UNKNOWN, PROCESS_UNKNOWN};
    if (getrusage(RUSAGE_SELF, &used) == 0)
        p->cpu_us = (int64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 +
                    used.ru_utime.tv_usec + used.ru_stime.tv_usec;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur <= INT64_MAX)
        p->max_fds = (int64_t)limit.rlim_cur;
    read_stat(p);
}
