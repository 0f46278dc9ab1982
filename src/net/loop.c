#include "base/log.h"
#include "net/private.h"
#include "net/upstream/links.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* ---- watchers ---------------------------------------------------------------------------------
 */

static void timer_fired(struct ev_loop *loop, struct ev_io *w, int revents)
{
    (void)loop;
    (void)revents;
    park_fired(CONTAINER(w, struct net, timer));
}

/* Before the loop sleeps: nobody's callback is running, so what was closed can be freed. */
static void free_dead(struct ev_loop *loop, struct ev_prepare *w, int revents)
{
    (void)loop;
    (void)revents;
    struct net *n = CONTAINER(w, struct net, prepare);
    if (park_has_woken(n))
        park_run_woken(n);
    if (n->nturns > 0)
        turns_run(n);
    if (!link_empty(&n->upstreams))
        upstreams_flush(n);
    n->now_us = 0;
    if (n->nturns > 0 || park_has_woken(n) || net_may_go_on(n))
        ev_idle_start(n->loop, &n->awake);
    else
        ev_idle_stop(n->loop, &n->awake);
    while (!link_empty(&n->dead)) {
        struct conn *c = CONTAINER(n->dead.next, struct conn, all);
        link_remove(&c->all);
        free(c);
    }
    net_check_drained(n);
}

/* Called whenever a poll found nothing. */
static void spun(struct ev_loop *loop, struct ev_idle *w, int revents)
{
    (void)revents;
    struct net *n = CONTAINER(w, struct net, spin);
    if (clock_mono_us(n->conf.clock) >= n->spin_us)
        ev_idle_stop(loop, w);
}

void net_spin(struct net *n, int64_t now_us)
{
    n->spin_us = now_us + n->conf.busy_poll_us;
    ev_idle_start(n->loop, &n->spin);
}

static void notified(struct ev_loop *loop, struct ev_async *w, int revents)
{
    (void)loop;
    (void)revents;
    struct net *n = CONTAINER(w, struct net, notify);
    if (n->on_notify)
        n->on_notify(n->notify_arg);
}

static void signalled(struct ev_loop *loop, struct ev_signal *w, int revents)
{
    (void)loop;
    (void)revents;
    struct net_signal *s = CONTAINER(w, struct net_signal, watcher);
    s->fn(s->arg, w->signum);
}

static void after_fired(struct ev_loop *loop, struct ev_timer *w, int revents)
{
    (void)loop;
    (void)revents;
    struct net *n = CONTAINER(w, struct net, after);
    n->on_after(n->after_arg);
}

static void every_fired(struct ev_loop *loop, struct ev_timer *w, int revents)
{
    (void)loop;
    (void)revents;
    struct net *n = CONTAINER(w, struct net, every);
    n->on_every(n->every_arg);
}

/* ---- life -------------------------------------------------------------------------------------
 */

/* libev has no way to report what it cannot go on without; its own is abort(3). */
static _Noreturn void give_up(const char *what, const char *why)
{
    log_error("the event loop cannot go on", kv_str("what", what), kv_str("why", why));
    _exit(EXIT_FAILURE);
}

static void system_failed(const char *what)
{
    give_up(what, strerror(errno));
}

static void *allocate(void *p, long n)
{
    if (n == 0) {
        free(p);
        return NULL;
    }
    void *larger = realloc(p, (size_t)n);
    if (!larger)
        give_up("memory for its watchers", strerror(errno));
    return larger;
}

static void *map_block(size_t n)
{
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p; /* only the pages that are used become resident */
}

/* libev grows its list of timers as they are started. Those of a drain and of a pause in accepting
 * are wanted when there may be no memory left: it is had at the start. */
static void reserve_timers(struct ev_loop *loop)
{
    struct ev_timer t[5]; /* idle, after, every, resume, sweep */
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        ev_timer_init(&t[i], after_fired, 1., 0.); /* never called */
        ev_timer_start(loop, &t[i]);
    }
    for (size_t i = 0; i < sizeof t / sizeof *t; i++)
        ev_timer_stop(loop, &t[i]);
}

static void start_watchers(struct net *n)
{
    ev_io_init(&n->timer, timer_fired, n->timer_fd, EV_READ);
    ev_io_start(n->loop, &n->timer);
    ev_prepare_init(&n->prepare, free_dead);
    ev_prepare_start(n->loop, &n->prepare);
    ev_idle_init(&n->spin, spun);
    turns_init(n);
    ev_async_init(&n->notify, notified);
    ev_async_start(n->loop, &n->notify);
    idle_init(n);
    ev_init(&n->after, after_fired);
    ev_init(&n->every, every_fired);
    ev_init(&n->resume, NULL);
    sweep_init(n);
    reserve_timers(n->loop);
}

enum err_code net_new(const struct net_config *c, struct net **out, struct err *e)
{
    struct net *n = calloc(1, sizeof *n);
    if (!n)
        return err_set(e, ERR_NOMEM, "no memory for the loop");
    ev_set_allocator(allocate);
    ev_set_syserr_cb(system_failed);
    n->conf = *c;
    link_init(&n->all);
    link_init(&n->dead);
    for (int i = 0; i < QUEUE_LINES; i++)
        link_init(&n->queue[i]);
    for (int i = 0; i < WAITING_LINES; i++)
        link_init(&n->waiting[i]);
    link_init(&n->woken);
    link_init(&n->due);
    link_init(&n->ready);
    link_init(&n->roomy);
    link_init(&n->uncrowded);
    link_init(&n->resting);
    link_init(&n->slotted);
    link_init(&n->quiet);
    room_init(n);
    link_init(&n->upstreams);
    link_init(&n->dirty);
    link_init(&n->broken);
    n->in = map_block(NET_IN_MAX);
    n->out = map_block(NET_OUT_MAX);
    n->fires_us = INT64_MAX;
    n->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    n->loop = n->timer_fd >= 0 ? ev_loop_new(EVFLAG_AUTO | EVFLAG_NOENV) : NULL;
    if (!n->in || !n->out || !n->loop) {
        int why = errno;
        net_free(n);
        return err_errno(e, why, "cannot make an event loop");
    }
    start_watchers(n);
    *out = n;
    return ERR_OK;
}

static void stop_watchers(struct net *n)
{
    for (unsigned i = 0; i < n->nsignals; i++)
        ev_signal_stop(n->loop, &n->signal[i].watcher);
    ev_timer_stop(n->loop, &n->after);
    ev_timer_stop(n->loop, &n->every);
    ev_timer_stop(n->loop, &n->idle);
    ev_timer_stop(n->loop, &n->sweep);
    ev_async_stop(n->loop, &n->notify);
    ev_prepare_stop(n->loop, &n->prepare);
    ev_idle_stop(n->loop, &n->spin);
    ev_idle_stop(n->loop, &n->awake);
    ev_io_stop(n->loop, &n->timer);
}

void net_free(struct net *n)
{
    if (!n)
        return;
    n->on_drained = NULL; /* whoever frees in the middle of a drain is not told of its end */
    if (n->loop) {
        listeners_close(n);
        while (!link_empty(&n->all))
            conn_close(CONTAINER(n->all.next, struct conn, all));
        upstreams_free(n);
        free_dead(n->loop, &n->prepare, 0);
        stop_watchers(n);
        ev_loop_destroy(n->loop);
    }
    blocks_free(n);
    if (n->timer_fd >= 0)
        (void)close(n->timer_fd);
    if (n->in)
        (void)munmap(n->in, NET_IN_MAX);
    if (n->out)
        (void)munmap(n->out, NET_OUT_MAX);
    if (n->up)
        (void)munmap(n->up, NET_IN_MAX);
    free(n);
}

/* What had no limit may have one now. */
static void has_a_time(struct conn *c)
{
    if (c->begun_us > 0 || c->stranger)
        sweep_watch(c);
}

void net_reconfigure(struct net *n, const struct net_config *c)
{
    int64_t timeout_us = c->idle_timeout_us;
    idle_reconfigure(n, timeout_us);
    n->conf = *c;
    conns_each(n, has_a_time);
}

void net_run(struct net *n)
{
    ev_run(n->loop, 0);
}

void net_break(struct net *n)
{
    ev_break(n->loop, EVBREAK_ALL);
}

enum err_code net_on_signal(struct net *n, int signo, void (*fn)(void *arg, int signo), void *arg,
                            struct err *e)
{
    if (n->nsignals == NET_SIGNALS)
        return err_set(e, ERR_RANGE, "expected at most %d signals", NET_SIGNALS);
    struct net_signal *s = &n->signal[n->nsignals++];
    s->fn = fn;
    s->arg = arg;
    ev_signal_init(&s->watcher, signalled, signo);
    ev_signal_start(n->loop, &s->watcher);
    return ERR_OK;
}

void net_on_notify(struct net *n, void (*fn)(void *arg), void *arg)
{
    n->on_notify = fn;
    n->notify_arg = arg;
}

void net_notify(struct net *n)
{
    ev_async_send(n->loop, &n->notify);
}

void net_after(struct net *n, int64_t us, void (*fn)(void *arg), void *arg)
{
    n->on_after = fn;
    n->after_arg = arg;
    ev_timer_stop(n->loop, &n->after);
    ev_timer_set(&n->after, us > 0 ? (double)us / 1e6 : 0., 0.);
    ev_now_update(n->loop);
    ev_timer_start(n->loop, &n->after);
}

void net_every(struct net *n, int64_t us, void (*fn)(void *arg), void *arg)
{
    n->on_every = fn;
    n->every_arg = arg;
    ev_timer_set(&n->every, (double)us / 1e6, (double)us / 1e6);
    ev_timer_start(n->loop, &n->every);
}

void net_wake(struct net *n)
{
    park_wake(n);
}

bool net_is_waking(const struct net *n)
{
    return !link_empty(&n->woken);
}

const char *net_end_name(enum net_end e)
{
    static const char *const names[NET_ENDS] = {
        [NET_END_IDLE] = "idle", [NET_END_LOGIN] = "login", [NET_END_REQUEST] = "request",
        [NET_END_SLOT] = "slot", [NET_END_GONE] = "gone",   [NET_END_MEMORY] = "memory",
    };
    return names[e];
}

uint64_t net_kept(const struct net *n)
{
    return n->bytes;
}

/* One that closes may take others along, on its link or for the memory that they keep: so the list
 * is gone through by its head. It stays whole, that memory_evict sees them all: whoever was dealt
 * with is marked, and stands behind those who were not. */
void conns_each(struct net *n, void (*fn)(struct conn *c))
{
    n->walk++;
    while (!link_empty(&n->all)) {
        struct conn *c = CONTAINER(n->all.next, struct conn, all);
        if (c->walk == n->walk)
            return;
        c->walk = n->walk;
        link_remove(&c->all);
        link_append(&n->all, &c->all);
        fn(c);
    }
}

static void review(struct conn *c)
{
    if (c->svc->stands && !c->svc->stands(c->svc, c->session))
        conn_close(c);
}

uint64_t net_review(struct net *n)
{
    uint64_t before = n->connections;
    n->revokes = true;
    conns_each(n, review);
    n->revokes = false;
    return before - n->connections;
}

uint64_t net_connections(const struct net *n)
{
    return n->connections;
}

/* ---- draining ---------------------------------------------------------------------------------
 */

void net_check_drained(struct net *n)
{
    if (!n->draining || !link_empty(&n->all) || n->leaving > 0 || !n->on_drained)
        return;
    void (*fn)(void *) = n->on_drained;
    n->on_drained = NULL;
    ev_timer_stop(n->loop, &n->after);
    fn(n->drained_arg);
}

static void grace_over(void *arg)
{
    struct net *n = arg;
    while (!link_empty(&n->all))
        conn_close(CONTAINER(n->all.next, struct conn, all));
    leave_at_once(n);
}

void net_drain(struct net *n, int64_t grace_us, void (*fn)(void *arg), void *arg)
{
    n->draining = true;
    n->on_drained = fn;
    n->drained_arg = arg;
    listeners_close(n);
    conns_each(n, conn_drain);
    net_after(n, grace_us, grace_over, n);
}
