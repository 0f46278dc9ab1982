/* Acknowledgements of SUBSCRIBE and its kin: each request is acknowledged by its own. */
#include "unit/net/upstream_rig.h"

#define ACK_A   "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"
#define ACK_B   "*3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n"
#define REFUSED "-ERR refused\r\n"
#define TAKEN   "*3\r\n$12\r\nsunsubscribe\r\n$1\r\ns\r\n:0\r\n" /* by the server, of itself */

/* subs TEXT is acknowledged once; up TEXT has a reply that is none, and may have news before it. */
static struct net_step subscribe(struct net_service *svc, void *session, struct span in,
                                 struct net_turn *turn, struct buf *out)
{
    const struct net_step behind = {.verdict = NET_BEHIND};
    bool subs = span_starts(in, SPAN("subs ")), up = span_starts(in, SPAN("up "));
    const char *end = in.n ? memchr(in.p, '\n', in.n) : NULL;
    if (!end || (!subs && !up))
        return end && upstream_pending(turn) > 0 ? behind : plain(svc, session, in, turn, out);
    size_t used = (size_t)(end - in.p) + 1;
    if (upstream_ready(turn, UPSTREAM_OWN, 0) == UPSTREAM_BUSY)
        return behind;
    upstream_send(turn, span_of(in.p, used));
    if (subs)
        upstream_expect_acks(turn, 1);
    else
        upstream_expect(turn, FRAME_RESP, 1, UPSTREAM_NEWS);
    return (struct net_step){.verdict = NET_DONE, .used = used, .passed = true};
}

/* What is said to the server, and what it replies, the last of it later: only behind that is
 * something answered here. */
static void ask(const char *requests, const char *replies, const char *last)
{
    char text[64];
    int two = listen_at("127.0.0.2");
    b.svc.serve = subscribe;
    b.svc.frame = frame_resp;
    start("127.0.0.2");
    int c = dial(&b);
    (void)snprintf(text, sizeof text, "%shere\n", requests);
    say(c, text);
    int link = accepted(two);
    expect(link, requests);
    say(link, replies);
    expect(c, replies);
    say(link, last);
    expect(c, last);
    expect(c, "here\n");
    (void)close(c);
    (void)close(link);
    (void)close(two);
}

static void two_that_are_alike_have_one_each(void **state)
{
    (void)state;
    ask("subs a\nsubs b\n", ACK_A, ACK_B);
}

static void one_behind_a_plain_request_has_its_own(void **state)
{
    (void)state;
    ask("up ping\nsubs a\n", "+PONG\r\n", ACK_A);
}

/* Else what the server takes away would be the reply to what comes behind it. */
static void one_that_was_refused_waits_for_none(void **state)
{
    (void)state;
    ask("subs a\nup ping\n", REFUSED TAKEN, "+PONG\r\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BENCH(two_that_are_alike_have_one_each),
        BENCH(one_behind_a_plain_request_has_its_own),
        BENCH(one_that_was_refused_waits_for_none),
    };
    return cmocka_run_group_tests_name("net/acks", tests, NULL, NULL);
}
