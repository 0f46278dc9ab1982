#include "daemon/descriptors.h"

#include "base/log.h"
#include "conf/protocol_options.h"
#include "net/passed_fd.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#define SPARE                                                                                      \
    64 /* beside the clients': listeners, state page, coordinator, shared links, libraries */

#define TABLE_MAX ((rlim_t)1 << 16) /* 8 bytes each of the kernel's memory */

static rlim_t least_one(rlim_t n)
{
    return n > 0 ? n : 1;
}

/* How many there are, after an attempt to have as many as wanted. */
static rlim_t raise_limit(rlim_t want)
{
    struct rlimit rl, more;
    if (getrlimit(RLIMIT_NOFILE, &rl) < 0 || rl.rlim_cur >= want)
        return want;
    more = rl;
    more.rlim_cur = want < rl.rlim_max ? want : rl.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &more) < 0 ? rl.rlim_cur : more.rlim_cur;
}

/* The kernel doubles its table of them when it is full, and a process with threads waits meanwhile,
 * for 15 ms perhaps: nobody would be served while connections come. It never makes it smaller. */
static void make_table(rlim_t n)
{
    int last = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, (int)(n < TABLE_MAX ? n : TABLE_MAX) - 1);
    if (last >= 0)
        (void)close(last);
}

static unsigned slots_wanted(const struct conf *c)
{
    unsigned n = 0;
    for (size_t i = 0; i < CONF_PROTOCOLS; i++)
        n += conf_protocol_slots(c, &conf_protocols[i]);
    return n;
}

/* Soft limits are low by default; a daemon may raise its own to the hard one (systemd's advice).
 * With an upstream each client may have a link of its own there. And what clients send along has to
 * find room: see passed_fd.h. */
struct descriptors descriptors_fit(const struct conf *c)
{
    struct descriptors d = {c->limits_connections, slots_wanted(c)};
    rlim_t each = conf_protocol_upstreams(c) > 0 ? 2 : 1;
    rlim_t spare = SPARE + passed_fd_most() + (rlim_t)d.slots;
    rlim_t want = each * c->limits_connections + spare, have = raise_limit(want);
    make_table(have < want ? have : want);
    if (have >= want)
        return d;
    if (spare > have / 2) {
        spare = have / 2;
        d.slots = (unsigned)least_one(have / 8 < d.slots ? have / 8 : d.slots);
    }
    if ((have - spare) / each < d.connections)
        d.connections = (unsigned)least_one((have - spare) / each);
    log_warn("fewer file descriptors than limits.connections needs", kv_u64("have", have),
             kv_u64("want", want), kv_u64("connections", d.connections),
             kv_u64("http_connections", d.slots));
    return d;
}
