/* Acknowledgements of SUBSCRIBE and its kin: each request is acknowledged by its own. */
#include "unit/net/upstream_rig.h"

#define ACK_A     "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"
#define ACK_B     "*3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n"
#define NO_MORE_A "*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:1\r\n"
#define NO_MORE_B "*3\r\n$11\r\nunsubscribe\r\n$1\r\nb\r\n:0\r\n"
#define ACK_S     "*3\r\n$10\r\nssubscribe\r\n$1\r\ns\r\n:1\r\n"
#define LIST      "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nx\r\n" /* or a message */
#define REFUSED   "-ERR refused\r\n"
#define TAKEN     "*3\r\n$12\r\nsunsubscribe\r\n$1\r\ns\r\n:0\r\n" /* by the server, of itself */

/* subs TEXT is acknowledged once, none TEXT until none of its kind is left; up TEXT has a reply
 * that is none, and may have news before it, plain TEXT may not; reset TEXT is up with which all
 * ends; pipe TEXT has whatever comes. To told TEXT the answer is here whether something is
 * subscribed to.
 */
static struct net_step subscribe(struct net_service *svc, void *session, struct span in,
                                 struct net_turn *turn, struct buf *out)
{
    const struct net_step behind = {.verdict = NET_BEHIND};
    bool subs = span_starts(in, SPAN("subs ")), none = span_starts(in, SPAN("none "));
    bool up = span_starts(in, SPAN("up ")), reset = span_starts(in, SPAN("reset "));
    bool bare = span_starts(in, SPAN("plain ")), pipe = span_starts(in, SPAN("pipe "));
    const char *end = in.n ? memchr(in.p, '\n', in.n) : NULL;
    size_t used = end ? (size_t)(end - in.p) + 1 : 0;
    if (end && span_starts(in, SPAN("told ")) && upstream_pending(turn) == 0) {
        buf_put_span(out, upstream_subscribed(turn) ? SPAN("yes\n") : SPAN("no\n"));
        return (struct net_step){.verdict = NET_DONE, .used = used};
    }
    if (!end || (!subs && !none && !up && !reset && !bare && !pipe))
        return end && upstream_pending(turn) > 0 ? behind : plain(svc, session, in, turn, out);
    if (upstream_ready(turn, UPSTREAM_OWN, 0) == UPSTREAM_BUSY)
        return behind;
    upstream_send(turn, span_of(in.p, used));
    if (subs || none)
        upstream_expect_acks(turn, subs ? 1 : UPSTREAM_ACKS_ALL);
    else if (pipe)
        upstream_tunnel(turn);
    else
        upstream_expect(turn, FRAME_RESP, 1,
                        bare    ? 0
                        : reset ? UPSTREAM_NEWS | UPSTREAM_CLEARS
                                : UPSTREAM_NEWS);
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

static void one_for_each_is_due_where_all_end(void **state)
{
    (void)state;
    ask("subs a\nsubs b\nnone x\n", ACK_A ACK_B NO_MORE_A, NO_MORE_B);
}

/* As of LRANGE, where nothing was subscribed to. */
static void what_looks_like_a_message_is_a_reply_where_none_may_come(void **state)
{
    (void)state;
    ask("plain list\n", "", LIST);
}

/* Asks on a link of its own, which is left open, and has the answers. */
static int has_asked(int server, int client, const char *request, const char *reply)
{
    say(client, request);
    int link = accepted(server);
    expect(link, request);
    say(link, reply);
    expect(client, reply);
    return link;
}

static void a_reset_ends_what_is_subscribed_to(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    b.svc.serve = subscribe;
    b.svc.frame = frame_resp;
    start("127.0.0.2");
    int c = dial(&b), link = has_asked(two, c, "subs a\n", ACK_A);
    say(c, "told x\n");
    expect(c, "yes\n");
    say(c, "reset x\n");
    expect(link, "reset x\n");
    say(link, "+RESET\r\n");
    expect(c, "+RESET\r\n");
    say(c, "told x\n");
    expect(c, "no\n");
    (void)close(c);
    (void)close(link);
    (void)close(two);
}

static void what_the_server_takes_away_unasked_is_gone(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    b.svc.serve = subscribe;
    b.svc.frame = frame_resp;
    start("127.0.0.2");
    int c = dial(&b), link = has_asked(two, c, "subs s\n", ACK_S);
    say(c, "told x\n");
    expect(c, "yes\n");
    say(link, TAKEN);
    expect(c, TAKEN);
    say(c, "told x\n");
    expect(c, "no\n");
    (void)close(c);
    (void)close(link);
    (void)close(two);
}

/* As MONITOR behind a request: a reply is due before, and none behind. */
static void what_was_asked_before_all_goes_through_has_its_reply(void **state)
{
    (void)state;
    timeout_us = 200000;
    int two = listen_at("127.0.0.2");
    b.svc.serve = subscribe;
    b.svc.frame = frame_resp;
    start("127.0.0.2");
    int c = dial(&b), link = has_asked(two, c, "up x\npipe y\n", "+OK\r\n");
    pass(500);
    say(link, "whatever\n");
    expect(c, "whatever\n");
    (void)close(c);
    (void)close(link);
    (void)close(two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BENCH(two_that_are_alike_have_one_each),
        BENCH(one_behind_a_plain_request_has_its_own),
        BENCH(one_that_was_refused_waits_for_none),
        BENCH(one_for_each_is_due_where_all_end),
        BENCH(what_looks_like_a_message_is_a_reply_where_none_may_come),
        BENCH(a_reset_ends_what_is_subscribed_to),
        BENCH(what_the_server_takes_away_unasked_is_gone),
        BENCH(what_was_asked_before_all_goes_through_has_its_reply),
    };
    return cmocka_run_group_tests_name("net/acks", tests, NULL, NULL);
}
