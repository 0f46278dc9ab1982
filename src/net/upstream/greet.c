/*
 * What each link begins with: a login, where the server wants to know who comes, and on shared
 * links a probe of the service's.
 *
 *     connected --> login, its one reply --> probe, its one reply --> open: requests of clients
 *                                  |                          |
 *                                  `--------------------------`--> refused: its words are told
 *
 * The probe tells a server that serves from one that only answers: that has no room for one more
 * connection, wants a login that it was not given, or is of another kind. Where a shared link is to
 * be replaced, the one that there is stays until another is let in. And a request that logs in its
 * connection, as memcached's set does, never meets a shared one where that would mean anything.
 *
 * Nothing of a client is sent before the replies have let us in. The greeting goes straight from
 * the upstream's own memory to the socket: no buffer of a link ever holds a password.
 */
#include "base/passfile.h"
#include "net/upstream/links.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#define REPLY_MAX 2048 /* bytes: -DENIED of a Redis in protected mode has more than 1024 */

/* ---- the greetings ----------------------------------------------------------------------------
 */

static void forget(struct greeting *g)
{
    if (g->bytes)
        explicit_bzero(g->bytes, g->g.bytes.n);
    free(g->bytes);
    *g = (struct greeting){.bytes = NULL};
}

void greetings_free(struct upstream *up)
{
    for (unsigned i = 0; i < UPSTREAM_SHARED; i++)
        forget(&up->greeting[i]);
}

/* A part of the greeting that was said, as it stands in its copy. */
static struct span moved(struct span part, const struct upstream_greeting *said, const char *copy)
{
    return part.n > 0 ? span_of(copy + (part.p - said->bytes.p), part.n) : (struct span){copy, 0};
}

/* A password that the server does not take, or not yet, takes away nothing from those who share,
 * also while the server is asked whether it still serves them. */
static void make_way(struct upstream *up, unsigned lane, bool same_user)
{
    if (up->next[lane])
        link_drop(up->next[lane]);
    struct upstream_link *l = up->shared[lane];
    bool serves = l && (l->state == LINK_OPEN || (l->state == LINK_PROBING && l->used));
    if (serves && same_user) {
        l->outdated = true;
        link_replace(l);
    } else if (l) {
        link_retire(l);
    }
}

bool upstream_greet(struct net_service *svc, enum upstream_lane lane,
                    const struct upstream_greeting *said)
{
    struct upstream *up = svc->upstream;
    struct greeting *g = &up->greeting[lane];
    const struct upstream_link *l = up->shared[lane];
    bool again = l && l->outdated && !up->next[lane]; /* what it should make way for was refused */
    if (span_eq(g->g.bytes, said->bytes) && !again)
        return true;
    char *bytes = said->bytes.n > 0 ? malloc(said->bytes.n) : NULL;
    if (said->bytes.n > 0 && !bytes)
        return false;
    if (bytes)
        memcpy(bytes, said->bytes.p, said->bytes.n);
    bool same_user = span_eq(g->g.user, said->user);
    forget(g);
    *g = (struct greeting){.bytes = bytes, .g = *said};
    g->g.bytes.p = bytes;
    g->g.user = moved(said->user, said, bytes);
    g->g.secret = moved(said->secret, said, bytes);
    up->refused[lane] = up->unready[lane] = up->unspared[lane] = (struct backoff){0, 0};
    up->said_why[0] = '\0'; /* what comes of this one is told, and at once */
    up->limit[TROUBLE_LOGIN] = (struct log_limit){.next_ms = 0};
    make_way(up, lane, same_user);
    return true;
}

/* ---- one link ---------------------------------------------------------------------------------
 */

static const struct upstream_greeting *words_of(const struct upstream_link *l,
                                                enum link_state state)
{
    const struct upstream *up = l->up;
    return state == LINK_PROBING ? &up->svc->probe[l->speaks] : &up->greeting[l->speaks].g;
}

static bool has_words(const struct upstream_link *l, enum link_state state)
{
    if (state == LINK_PROBING && ((l->owner && !l->optional) || !l->up->svc->probe))
        return false;
    return words_of(l, state)->bytes.n > 0;
}

static bool begin(struct upstream_link *l, enum link_state state)
{
    if (!has_words(l, state))
        return false;
    const struct upstream_greeting *g = words_of(l, state);
    l->state = state;
    ev_io_stop(l->up->net->loop, &l->wr);
    ev_io_start(l->up->net->loop, &l->rd);
    ssize_t r = send(l->wr.fd, g->bytes.p, g->bytes.n, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (r != (ssize_t)g->bytes.n) /* a socket on which nothing waits takes more than that */
        link_fail(l, r < 0 ? strerror(errno) : "it did not take the login");
    return true;
}

bool greet(struct upstream_link *l)
{
    return begin(l, LINK_GREETING) || begin(l, LINK_PROBING);
}

void greet_again(struct upstream_link *l)
{
    bool idle = l->state == LINK_OPEN && l->fifo_n == 0 && !l->out.p;
    if (!idle)
        return;
    l->since_us = upstream_now_us(l->up);
    upstream_tick(l->up);
    (void)begin(l, LINK_PROBING);
}

/* With the password in them, only the first, which tells what kind of refusal it is. */
static struct span without(struct span secret, struct span words)
{
    const char *end = words.n ? memchr(words.p, ' ', words.n) : NULL;
    if (!passfile_is_told(words, secret))
        return words;
    words.n = end ? (size_t)(end - words.p) : 0;
    return passfile_is_told(words, secret) ? span_of("", 0) : words;
}

/* The server's words, one line without what a log or a client could stumble over, and never with
 * the password in them. */
static void quote(char why[160], const char *what, const struct upstream_greeting *g,
                  struct span reply)
{
    struct span words = span_skip(reply, g->words < reply.n ? g->words : reply.n);
    const char *end = words.n ? memchr(words.p, '\n', words.n) : NULL;
    if (end)
        words.n = (size_t)(end - words.p);
    while (words.n > 0 && words.p[words.n - 1] == '\r')
        words.n--;
    struct span told = without(g->secret, words);
    (void)snprintf(why, 160, "%s: %.*s%s", what, (int)(told.n < 120 ? told.n : 120),
                   told.n ? told.p : "",
                   told.n == words.n ? ""
                   : told.n          ? " (the rest may be the password)"
                                     : "its words may be the password");
    for (char *c = why; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
}

static void fail_by(struct upstream_link *l, const char *reply)
{
    upstream_says(l->up, reply);
    link_fail(l, reply);
}

static void refused(struct upstream_link *l, const struct upstream_greeting *g, struct span reply)
{
    char why[160];
    const char *what = l->state == LINK_GREETING ? "the login was refused"
                       : l->optional || l->up->next[l->lane] == l
                           ? "one more connection was refused"
                           : "it answers, but refuses";
    quote(why, what, g, reply);
    fail_by(l, why);
}

/* Of a list that ends with an empty one; NULL: of none. */
static bool is_one_of(const struct span *list, struct span reply)
{
    while (list && list->n > 0 && !span_starts(reply, *list))
        list++;
    return list && list->n > 0;
}

static bool lets_in(const struct upstream_greeting *g, struct span reply, bool error)
{
    return g->no ? !is_one_of(g->no, reply) : !error && span_starts(reply, g->ok);
}

/* The greeting may be another by now, or none: kind and form of its reply are the same. */
static void judge(struct upstream_link *l, struct span in)
{
    struct upstream *up = l->up;
    const struct upstream_greeting *g = words_of(l, l->state);
    size_t used = 0;
    frame_start(&l->frame, g->kind, false);
    l->frame.own = true; /* whatever it says is about this link */
    enum frame_verdict v = up->svc->frame(&l->frame, in, &used);
    if (v == FRAME_MORE && in.n < REPLY_MAX) {
        if (!kept_set(up->net, &l->in, in))
            link_spoil(l);
        return;
    }
    struct span reply = span_of(in.p, used);
    if (v != FRAME_DONE || l->frame.push)
        fail_by(l, GREET_ALIEN);
    else if (!lets_in(g, reply, l->frame.error))
        refused(l, g, reply);
    else if (used < in.n)
        fail_by(l, "it sent something unasked");
    else if (l->state == LINK_PROBING || !begin(l, LINK_PROBING))
        link_opened(l);
}

void greet_hear(struct upstream_link *l)
{
    struct net *n = l->up->net;
    size_t kept = l->in.n;
    ssize_t got = recv(l->rd.fd, n->up + kept, REPLY_MAX - kept, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        link_fail(l, got < 0                    ? strerror(errno)
                     : l->state == LINK_PROBING ? "it answers nothing, and closes the connection"
                                                : "it closed the connection at the login");
        return;
    }
    (void)kept_take(n, &l->in, n->up);
    judge(l, span_of(n->up, kept + (size_t)got));
}

/* ---- others -----------------------------------------------------------------------------------
 */

static void say_error(char why[160], const char *what, struct span reply)
{
    const struct upstream_greeting plain = {.words = reply.p[0] == '-'};
    quote(why, what, &plain, reply);
}

bool greet_is_refusal(struct upstream_link *l, struct span reply)
{
    const struct net_service *svc = l->up->svc;
    char why[160];
    if (svc->alien.n > 0 && span_starts(reply, svc->alien)) {
        upstream_unserved(l, GREET_ALIEN, true);
        return true;
    }
    if (!is_one_of(svc->refusals, reply))
        return false;
    say_error(why, "it answers, but refuses", reply);
    upstream_unserved(l, why, false);
    return true;
}

void greet_note_fault(struct upstream_link *l, struct span reply)
{
    char why[160];
    if (!is_one_of(l->up->svc->faults, reply))
        return;
    say_error(why, "it answers", reply);
    upstream_faulty(l->up, why);
}
