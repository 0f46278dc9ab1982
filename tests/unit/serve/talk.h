/*
 * Talks of a client with the server behind, as tables: who says what, and hears what of it.
 */
#ifndef SIDFLAKE_UNIT_SERVE_TALK_H
#define SIDFLAKE_UNIT_SERVE_TALK_H

#include "unit/serve/there_rig.h"

enum talk_who {
    TALK_OVER, /* no more words */
    TALK_ASKS,
    TALK_FILLS,
    TALK_HEARS,
    TALK_ENDS,
    TALK_LINK,
    TALK_TOLD,
    TALK_SKIPS,
    TALK_TELLS,
    TALK_QUIET,
    TALK_GRANTS
};

struct talk_word {
    enum talk_who who;
    struct span s;
    const char *last;
};

/* The client says it; so many bytes of a request, all 'x'; it hears it, and no less; it hears what
 * begins and ends so; that was the last. */
#define ASKS(text)                                                                                 \
    {                                                                                              \
        TALK_ASKS, SPAN(text), NULL                                                                \
    }
#define FILLS(n)                                                                                   \
    {                                                                                              \
        TALK_FILLS, {NULL, n}, NULL                                                                \
    }
#define HEARS(text)                                                                                \
    {                                                                                              \
        TALK_HEARS, SPAN(text), NULL                                                               \
    }
#define HEARS_TO(start, last)                                                                      \
    {                                                                                              \
        TALK_HEARS, SPAN(start), last                                                              \
    }
#define ENDS                                                                                       \
    {                                                                                              \
        TALK_ENDS, {NULL, 0}, NULL                                                                 \
    }

/* The server has one more link, which is the one from now on; it is told this there; it tells it;
 * it is told so many bytes, whatever they are; nothing comes to anybody for so many ms, nor another
 * link; from now on there are IDs. */
#define LINK                                                                                       \
    {                                                                                              \
        TALK_LINK, {NULL, 0}, NULL                                                                 \
    }
#define TOLD(text)                                                                                 \
    {                                                                                              \
        TALK_TOLD, SPAN(text), NULL                                                                \
    }
#define SKIPS(n)                                                                                   \
    {                                                                                              \
        TALK_SKIPS, {NULL, n}, NULL                                                                \
    }
#define TELLS(text)                                                                                \
    {                                                                                              \
        TALK_TELLS, SPAN(text), NULL                                                               \
    }
#define QUIET LATER(20)
#define LATER(ms)                                                                                  \
    {                                                                                              \
        TALK_QUIET, {NULL, ms}, NULL                                                               \
    }
#define GRANTS                                                                                     \
    {                                                                                              \
        TALK_GRANTS, {NULL, 0}, NULL                                                               \
    }

/* Bytes, which may be binary. */
static inline void talk_comes(int fd, struct span s)
{
    char got[1024];
    assert_true(s.n < sizeof got);
    memset(got, 0, sizeof got);
    ssize_t n = recv(fd, got, s.n, MSG_WAITALL);
    if (n != (ssize_t)s.n || memcmp(got, s.p, s.n) != 0)
        fail_msg("expected \"%.*s\", found \"%s\"", (int)s.n, s.p, got);
}

/* Up to where it is closed, if that comes first: the words behind it tell. */
static inline void talk_fill(int fd, size_t n)
{
    static const char x[] = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
    for (ssize_t r; n > 0; n -= (size_t)r) {
        r = send(fd, x, n < sizeof x - 1 ? n : sizeof x - 1, MSG_NOSIGNAL);
        if (r <= 0)
            return;
    }
}

static inline void talk_skip(int fd, size_t n)
{
    char got[1024];
    while (n > 0) {
        ssize_t r = recv(fd, got, n < sizeof got ? n : sizeof got, 0);
        assert_true(r > 0);
        n -= (size_t)r;
    }
}

static inline void do_grant(struct net_bench *n, void *arg)
{
    (void)n, (void)arg;
    snowflake_extend(&rig->gen.ids, 1, clock_wall_ms(clock_system()) + 3600000);
}

/* The service runs. */
static inline void talk(const struct talk_word *w)
{
    const struct timeval most = {.tv_sec = 10};
    int links[4], n = 0, client = dial(&b);
    bool over = false;
    assert_int_equal(setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most), 0);
    for (; w->who; w++) {
        int link = n > 0 ? links[n - 1] : -1;
        struct pollfd any[] = {
            {over ? -1 : client, POLLIN, 0}, {link, POLLIN, 0}, {server, POLLIN, 0}};
        if (w->who == TALK_ASKS)
            say_span(client, w->s);
        else if (w->who == TALK_FILLS)
            talk_fill(client, w->s.n);
        else if (w->who == TALK_HEARS && w->last)
            expect_to(client, w->s.p, w->last);
        else if (w->who == TALK_HEARS)
            talk_comes(client, w->s);
        else if (w->who == TALK_ENDS)
            expect_end(client), over = true;
        else if (w->who == TALK_LINK)
            links[n++] = accepted();
        else if (w->who == TALK_TOLD)
            talk_comes(link, w->s);
        else if (w->who == TALK_SKIPS)
            talk_skip(link, w->s.n);
        else if (w->who == TALK_TELLS)
            say_span(link, w->s);
        else if (w->who == TALK_GRANTS)
            net_bench_call(&b, do_grant, NULL);
        else
            assert_int_equal(poll(any, 3, (int)w->s.n), 0);
    }
    (void)close(client);
    while (n > 0)
        (void)close(links[--n]);
}

#endif
