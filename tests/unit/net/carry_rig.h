/*
 * Two loops, the program before and the next, and what goes from one to the other.
 */
#ifndef SIDFLAKE_UNIT_NET_CARRY_RIG_H
#define SIDFLAKE_UNIT_NET_CARRY_RIG_H

#include "net/private.h"
#include "net/upstream/upstream.h"
#include "support/net_bench.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define ROOM ((size_t)4 << 20)

static struct net_bench a, b; /* the program before, and the next */
static char dir[64], path[96], address[112];
static char *mem;
static struct buf parcel;
static uint64_t lost;
static bool carries; /* whether the toy's sessions can be packed */

static inline bool pack(const struct net_service *svc, const void *session, struct buf *to)
{
    (void)svc;
    parcel_put_bytes(to, span_of(session, svc->session_size));
    return carries;
}

static inline bool unpack(struct net_service *svc, void *session, struct span packed)
{
    struct span bytes;
    if (!parcel_get_bytes(&packed, &bytes) || bytes.n != svc->session_size || packed.n > 0)
        return false;
    memcpy(session, bytes.p, bytes.n);
    return true;
}

static inline void init(struct net_bench *n)
{
    net_bench_init(n);
    n->svc.pack = pack;
    n->svc.unpack = unpack;
}

static inline int begin(void **state)
{
    (void)state;
    init(&a);
    init(&b);
    carries = true;
    lost = 0;
    mem = malloc(ROOM);
    buf_init(&parcel, mem, ROOM);
    (void)snprintf(dir, sizeof dir, "/tmp/sidflake-carry-XXXXXX");
    if (!mem || !mkdtemp(dir))
        return -1;
    (void)snprintf(path, sizeof path, "%s/s", dir);
    (void)snprintf(address, sizeof address, "unix://%s", path);
    return 0;
}

static inline int end(void **state)
{
    (void)state;
    net_bench_stop(&a);
    net_bench_stop(&b);
    free(mem);
    (void)unlink(path);
    return rmdir(dir);
}

static inline void do_pack(struct net_bench *n, void *purpose)
{
    lost = net_pack(n->net, *(enum parcel_purpose *)purpose, &parcel);
}

/* Every descriptor of the records becomes another that stays open over execve, as if this were the
 * next program already. They are the loop's, which may close them. */
static inline void do_leave(struct net_bench *n, void *count)
{
    enum parcel_purpose purpose = PARCEL_TAKE;
    struct parcel_record r;
    do_pack(n, &purpose);
    for (struct span in = buf_span(&parcel); parcel_next(&in, &r); (*(unsigned *)count)++) {
        int64_t fd = dup(r.fd);
        assert_true(fd >= 0);
        memcpy(mem + (r.body.p - mem) - 16, &fd, sizeof fd);
    }
}

/* Returns how many records there are. */
static inline unsigned leave(void)
{
    unsigned n = 0;
    net_bench_halt(&a, do_leave, &n);
    a.net->fds_come = false; /* execve takes no pains with what is unread on those it closes */
    assert_false(parcel.failed);
    return n;
}

/* The same, and the program goes on: the next one has not started. */
static inline unsigned leave_in_vain(void)
{
    unsigned n = 0;
    net_bench_call(&a, do_leave, &n);
    assert_false(parcel.failed);
    return n;
}

static uint64_t taken, not_taken;

static inline void do_adopt(struct net_bench *n, void *arg)
{
    (void)arg;
    struct net_service *svc = &n->svc;
    taken = net_adopt(n->net, &svc, 1, &not_taken);
}

/* The next program starts, and the one before is gone. */
static inline void take_over(const char *where)
{
    net_bench_inherit(&b, buf_span(&parcel), where);
    net_bench_call(&b, do_adopt, NULL);
    net_bench_stop(&a);
}

#endif
