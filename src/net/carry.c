/*
 * Listeners and connections that outlive the program.
 *
 * Descriptors in a parcel come open and without FD_CLOEXEC, which no other descriptor of this
 * process lacks (but the standard ones): so the flag tells what was not taken over yet, and nothing
 * is taken twice.
 */
#include "net/passed_fd.h"
#include "net/private.h"
#include "net/upstream/links.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#define LITTLE ((size_t)4 << 10) /* bytes kept for a connection */
#define MUCH   ((size_t)64 << 10)

/* Bits of a connection's state. */
#define FLAG_EOF     1u
#define FLAG_CLOSING 2u
#define FLAG_LINK    4u /* the record of its link follows */
#define FLAGS        (FLAG_EOF | FLAG_CLOSING | FLAG_LINK)

/* Bits of a link's. */
#define LINK_TUNNEL 1u
#define LINK_EXTRA  2u
#define LINK_LATE   4u
#define LINK_FLAGS  (LINK_TUNNEL | LINK_EXTRA | LINK_LATE)

/* ---- to a parcel ------------------------------------------------------------------------------
 */

static void pack_listener(const struct net_listener *l, enum parcel_purpose purpose, struct buf *b)
{
    size_t begun = parcel_begin(b, PARCEL_LISTENER, purpose == PARCEL_REHEARSE ? -1 : l->accept.fd);
    parcel_put_bytes(b, span_str(l->svc->name));
    parcel_put_bytes(b, span_str(l->address));
    parcel_put_bytes(b, span_str(l->path ? l->path : ""));
    parcel_put_u64(b, l->file.st_dev);
    parcel_put_u64(b, l->file.st_ino);
    parcel_end(b, begun);
}

/* A link that was asked for nothing yet need not be carried. */
static bool has_link(const struct conn *c)
{
    return c->relay && c->relay->own && c->relay->l && c->relay->l->used;
}

/* Another process cannot go on with a merge, of which the session has a part, nor know the end of a
 * batch that this one has marked with a nonce. */
static bool is_simple(uint64_t kind)
{
    return kind != FRAME_RESP_MERGE && kind != FRAME_MC_MERGE && kind != FRAME_MC_NOOP;
}

/* Nothing of it is half sent, nor half read: what has not been read stays in the kernel. */
static bool link_is_whole(const struct upstream_link *l)
{
    bool within = l->framing && l->frame.kind != FRAME_RESP_TUNNEL;
    bool simple = true;
    for (uint32_t i = 0; i < l->fifo_n; i++)
        simple &= is_simple(l->fifo[(l->fifo_at + i) % l->fifo_cap].kind);
    return l->state == LINK_OPEN && !l->out.p && !l->in.p && !within && simple;
}

/* Its buffers, its session and its link's record are all that has to be carried. */
static bool is_whole(const struct conn *c)
{
    const struct relay *r = c->relay;
    if (!r)
        return true;
    return has_link(c) ? link_is_whole(r->l) : r->pending == 0;
}

static bool pack_session(const struct conn *c, struct buf *b)
{
    return is_whole(c) && c->svc->pack && c->svc->pack(c->svc, c->session, b);
}

static void pack_link(const struct conn *c, struct buf *b)
{
    const struct relay *r = c->relay;
    const struct upstream_link *l = r->l;
    size_t begun = parcel_begin(b, PARCEL_LINK, l->rd.fd);
    parcel_put_bytes(b, span_str(l->up->text));
    parcel_put_u64(b, (r->tunnel ? LINK_TUNNEL : 0) | (l->extra ? LINK_EXTRA : 0) |
                          (r->late ? LINK_LATE : 0));
    for (unsigned i = 0; i < FRAME_CHANNELS; i++)
        parcel_put_u64(b, r->subs.n[i]);
    for (uint32_t i = 0; i < l->fifo_n; i++) {
        const struct expect *x = &l->fifo[(l->fifo_at + i) % l->fifo_cap];
        parcel_put_u64(b, x->n);
        parcel_put_u64(b, x->kind);
        parcel_put_u64(b, x->flags);
        parcel_put_u64(b, x->acks);
    }
    parcel_end(b, begun);
}

/* The session comes last, so that it needs no length of its own. */
static bool pack_conn(const struct conn *c, struct buf *b)
{
    bool flushing = c->state == CONN_FLUSHING;
    uint64_t held = flushing ? c->out_held : c->out.n;
    size_t before = b->n;
    size_t begun = parcel_begin(b, PARCEL_CONNECTION, c->rd.fd);
    parcel_put_bytes(b, span_str(c->svc->name));
    parcel_put_u64(b, (c->eof ? FLAG_EOF : 0) | (c->closing ? FLAG_CLOSING : 0) |
                          (has_link(c) ? FLAG_LINK : 0));
    parcel_put_u64(b, held);
    parcel_put_u64(b, c->tag);
    parcel_put_bytes(b, kept_span(&c->in));
    parcel_put_bytes(b, kept_span(&c->out));
    bool ok = pack_session(c, b);
    parcel_end(b, begun);
    if (ok && has_link(c))
        pack_link(c, b);
    if (ok && !b->failed)
        return true;
    buf_truncate(b, before);
    return false;
}

/* Its descriptor alone, for the next program to close: with execve the kernel would, and all that
 * is unread on it (see passed_fd.h). */
static void pack_lost(const struct conn *c, struct buf *b)
{
    size_t before = b->n;
    parcel_end(b, parcel_begin(b, PARCEL_LOST, c->rd.fd));
    if (b->failed)
        buf_truncate(b, before);
}

/* Before the connections, which may have no room. */
static void pack_reached(const struct upstream *up, struct buf *b)
{
    if (up->naddr < 2 || !up->stats.up)
        return;
    size_t begun = parcel_begin(b, PARCEL_REACHED, -1);
    parcel_put_bytes(b, span_str(up->text));
    parcel_put_bytes(b, span_of((const char *)&up->addr[up->at], up->addr_n[up->at]));
    parcel_end(b, begun);
}

/* About; without what the kernel keeps. */
static size_t kept_for(const struct conn *c)
{
    return kept_span(&c->in).n + kept_span(&c->out).n + c->held;
}

/* Those for whom from .. to - 1 bytes are kept. Returns how many they are. */
static uint64_t pack_those(const struct net *n, size_t from, size_t to, struct buf *parcel,
                           uint64_t *lost)
{
    uint64_t those = 0;
    for (struct link *l = n->all.next; l != &n->all; l = l->next) {
        const struct conn *c = CONTAINER(l, struct conn, all);
        size_t kept = kept_for(c);
        if (kept < from || kept >= to)
            continue;
        those++;
        if (pack_conn(c, parcel))
            continue;
        ++*lost;
        if (n->fds_come)
            pack_lost(c, parcel);
    }
    return those;
}

/* Those for whom little is kept come first: others may have more than there is room for. */
uint64_t net_pack(struct net *n, enum parcel_purpose purpose, struct buf *parcel)
{
    uint64_t lost = 0, left = n->connections;
    for (const struct net_listener *l = n->listeners; l; l = l->next)
        pack_listener(l, purpose, parcel);
    if (purpose == PARCEL_REHEARSE)
        return 0;
    for (const struct link *u = n->upstreams.next; u != &n->upstreams; u = u->next)
        pack_reached(CONTAINER(u, struct upstream, all), parcel);
    lost = leave_unsent(n);
    for (size_t from = 0, to = LITTLE; left > 0 && from < to;
         from = to, to = to < MUCH ? MUCH : SIZE_MAX)
        left -= pack_those(n, from, to, parcel, &lost);
    return lost;
}

uint64_t net_stuck(const struct net *n)
{
    uint64_t stuck = leave_unsent(n);
    struct buf none;
    buf_init(&none, NULL, 0);
    for (const struct link *l = n->all.next; l != &n->all; l = l->next)
        stuck += !pack_session(CONTAINER(l, struct conn, all), &none);
    return stuck;
}

uint64_t net_expecting(const struct net *n)
{
    uint64_t expecting = 0;
    for (const struct link *l = n->all.next; l != &n->all; l = l->next) {
        const struct relay *r = CONTAINER(l, struct conn, all)->relay;
        expecting += r && !has_link(r->c) && r->pending > 0;
    }
    return expecting;
}

/* ---- from a parcel ----------------------------------------------------------------------------
 */

/* true: it was left to this process, is a stream socket as expected, and is ours from now on. */
static bool claim_socket(int fd, int listening)
{
    int is_listening, type;
    socklen_t n = sizeof is_listening, m = sizeof type;
    int flags = fcntl(fd, F_GETFD);
    return flags >= 0 && !(flags & FD_CLOEXEC) &&
           getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &n) == 0 &&
           getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &m) == 0 && type == SOCK_STREAM &&
           is_listening == listening && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}

struct left_listener {
    struct span service, address, path;
    uint64_t dev, ino; /* of the socket file at path */
};

static bool read_listener(const struct parcel_record *r, struct left_listener *l)
{
    struct span in = r->body;
    return r->kind == PARCEL_LISTENER && parcel_get_bytes(&in, &l->service) &&
           parcel_get_bytes(&in, &l->address) && parcel_get_bytes(&in, &l->path) &&
           parcel_get_u64(&in, &l->dev) && parcel_get_u64(&in, &l->ino);
}

/* The path of a socket file that still is the listener's own, or NULL; cap bytes at path. */
static const char *own_path(const struct left_listener *l, char *path, size_t cap, struct stat *st)
{
    if (l->path.n == 0 || l->path.n >= cap)
        return NULL;
    memcpy(path, l->path.p, l->path.n);
    path[l->path.n] = '\0';
    return lstat(path, st) == 0 && st->st_dev == l->dev && st->st_ino == l->ino ? path : NULL;
}

/* Looks the address up among what was left. true: *fd listens on it, or is -1 in a rehearsal. */
bool carry_listener(struct net *n, struct span address, const struct net_service *svc,
                    const struct addr *a, uint32_t mode, int *fd)
{
    struct span records = n->left;
    struct parcel_record r;
    struct left_listener l;
    while (parcel_next(&records, &r)) {
        char path[sizeof a->host];
        struct stat st = {0};
        if (!read_listener(&r, &l) || !span_eq(l.address, address) ||
            !span_eq(l.service, span_str(svc->name)))
            continue;
        if (a->is_unix && !own_path(&l, path, sizeof path, &st))
            continue;
        if (r.fd >= 0 && !claim_socket(r.fd, 1))
            continue;
        if (a->is_unix && r.fd >= 0 && (st.st_mode & 0777) != mode)
            (void)chmod(path, mode);
        *fd = r.fd;
        return true;
    }
    return false;
}

static struct net_service *find_service(struct net_service *const *services, size_t nservices,
                                        struct span name)
{
    for (size_t i = 0; i < nservices; i++)
        if (span_eq(span_str(services[i]->name), name))
            return services[i];
    return NULL;
}

/* false: it is not taken, or without what is expected on it. */
static bool adopt_link(struct conn *c, const struct parcel_record *r)
{
    const struct upstream *up = c->svc->upstream;
    struct span body = r->body, addr;
    uint64_t flags, n, kind, how, acks;
    if (r->kind != PARCEL_LINK || !up || !parcel_get_bytes(&body, &addr) ||
        !parcel_get_upto(&body, LINK_FLAGS, &flags))
        return false;
    /* The same server by what it is called: where its name leads by now is for new links. */
    if (!span_eq(addr, span_str(up->text)) || !claim_socket(r->fd, 0) || !relay_adopt(c, r->fd))
        return false;
    c->relay->tunnel = flags & LINK_TUNNEL;
    link_set_extra(c->relay->l, flags & LINK_EXTRA);
    for (unsigned i = 0; i < FRAME_CHANNELS; i++)
        if (!parcel_get_u64(&body, &c->relay->subs.n[i]))
            return false;
    while (body.n > 0)
        if (!parcel_get_upto(&body, UINT32_MAX, &n) || n == 0 ||
            !parcel_get_upto(&body, FRAME_KINDS - 1, &kind) || !is_simple(kind) ||
            !parcel_get_upto(&body, UPSTREAM_FLAGS, &how) ||
            !parcel_get_upto(&body, n == 1 ? UINT32_MAX : 0, &acks) ||
            !relay_expect(c->relay, (uint8_t)kind, (uint32_t)n, (uint8_t)how, (uint32_t)acks))
            return false;
    c->relay->late = flags & LINK_LATE; /* of what follows those */
    c->relay->l->mute = true;           /* behind those, perhaps */
    return true;
}

/* NULL: it is none, or not taken. *links: its link is to be taken, too. */
static struct conn *adopt(struct net *n, const struct parcel_record *r,
                          struct net_service *const *services, size_t nservices, bool *links)
{
    struct span body = r->body, name, in, out;
    uint64_t flags, held, tag;
    if (r->kind != PARCEL_CONNECTION || !parcel_get_bytes(&body, &name) ||
        !parcel_get_upto(&body, FLAGS, &flags) || !parcel_get_u64(&body, &held) ||
        !parcel_get_upto(&body, UINT8_MAX, &tag) || !parcel_get_bytes(&body, &in) ||
        !parcel_get_bytes(&body, &out) || in.n > NET_HEARD_MAX || held > out.n ||
        held > NET_OUT_MAX) /* of out a turn takes no more than that; the rest is sent as it is */
        return NULL;
    struct net_service *svc = find_service(services, nservices, name);
    if (!svc || !svc->unpack || !listeners_let_in(n, svc, r->fd, (uint8_t)tag) ||
        !claim_socket(r->fd, 0))
        return NULL;
    struct conn *c = conn_new(n, svc, r->fd, (uint8_t)tag);
    if (!c) {
        passed_fd_close(r->fd);
        return NULL;
    }
    (void)passed_fd_refuse(r->fd); /* the program before may not have */
    c->eof = flags & FLAG_EOF;
    c->closing = flags & FLAG_CLOSING;
    *links = flags & FLAG_LINK;
    if (svc->unpack(svc, c->session, body))
        conn_restore(c, in, out, (size_t)held, *links);
    else
        conn_close(c);
    return c->state != CONN_DEAD ? c : NULL;
}

/* Nobody took it: its socket file must not stay behind. */
static void give_up(const struct parcel_record *r)
{
    struct left_listener l;
    char path[sizeof((struct addr *)0)->host];
    struct stat st;
    int flags = fcntl(r->fd, F_GETFD);
    if (r->fd <= STDERR_FILENO || flags < 0 || flags & FD_CLOEXEC)
        return;
    if (read_listener(r, &l) && own_path(&l, path, sizeof path, &st))
        (void)unlink(path);
    passed_fd_close(r->fd);
}

void net_inherit(struct net *n, struct span records)
{
    n->left = records;
}

socklen_t carry_reached(const struct net *n, const char *text, struct sockaddr_storage *out)
{
    struct parcel_record r;
    struct span body, name, at;
    for (struct span records = n->left; parcel_next(&records, &r);) {
        body = r.body;
        if (r.kind != PARCEL_REACHED || !parcel_get_bytes(&body, &name) ||
            !span_eq(name, span_str(text)) || !parcel_get_bytes(&body, &at) || at.n > sizeof *out)
            continue;
        memcpy(out, at.p, at.n);
        return (socklen_t)at.n;
    }
    return 0;
}

uint64_t net_adopt(struct net *n, struct net_service *const *services, size_t nservices,
                   uint64_t *lost)
{
    struct parcel_record r;
    uint64_t before = n->connections, all = 0;
    for (struct span records = n->left; parcel_next(&records, &r);) {
        bool links = false;
        all += r.kind == PARCEL_CONNECTION;
        struct conn *c = adopt(n, &r, services, nservices, &links);
        if (c && links && !(parcel_next(&records, &r) && adopt_link(c, &r)))
            conn_close(c);
    }
    for (struct span records = n->left; parcel_next(&records, &r);)
        give_up(&r);
    n->left = span_of(NULL, 0);
    uint64_t taken = n->connections - before; /* some made room for others */
    *lost = all - taken;
    return taken;
}
