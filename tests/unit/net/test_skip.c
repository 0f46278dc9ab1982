/* Replies, and parts of them, that are not for the client: what stands around them comes whole. */
#include "unit/net/upstream_rig.h"

#define MESSAGE "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nx\r\n"

/* up TEXT has a reply; so has share TEXT, on a link that all share; that of skip TEXT is for
 * nobody, and messages may come before it. */
static struct net_step skipping(struct net_service *svc, void *session, struct span in,
                                struct net_turn *turn, struct buf *out)
{
    bool up = span_starts(in, SPAN("up ")), skip = span_starts(in, SPAN("skip "));
    bool share = span_starts(in, SPAN("share "));
    const char *end = in.n ? memchr(in.p, '\n', in.n) : NULL;
    if (!end || (!up && !share && !skip))
        return plain(svc, session, in, turn, out);
    if (upstream_ready(turn, share ? UPSTREAM_TEXT : UPSTREAM_OWN, 0) == UPSTREAM_BUSY)
        return (struct net_step){.verdict = NET_BEHIND};
    size_t used = (size_t)(end - in.p) + 1;
    upstream_send(turn, span_of(in.p, used));
    upstream_expect(turn, FRAME_RESP, 1, skip ? UPSTREAM_SKIP | UPSTREAM_NEWS : 0);
    return (struct net_step){.verdict = NET_DONE, .used = used, .passed = true};
}

/* Whether the client is closed behind what it gets. */
static void ask(const char *requests, const char *replies, const char *gets, bool closed)
{
    int two = listen_at("127.0.0.2");
    b.svc.serve = skipping;
    b.svc.frame = frame_resp;
    start("127.0.0.2");
    int c = dial(&b);
    say(c, requests);
    int link = accepted(two);
    expect(link, requests);
    say(link, replies);
    expect(c, gets);
    if (closed) {
        expect_end(c);
        expect_end(link);
    } else {
        say(c, "up more\n");
        expect(link, "up more\n");
        say(link, "+MORE\r\n");
        expect(c, "+MORE\r\n");
    }
    (void)close(c);
    (void)close(link);
    (void)close(two);
}

static void what_is_skipped_leaves_the_replies_around_it_whole(void **state)
{
    (void)state;
    ask("up a\nskip s\nup b\n", "+A\r\n+SKIPPED\r\n+B\r\n", "+A\r\n+B\r\n", false);
}

/* As of SELECT: what comes behind it counts on what could not be had. */
static void an_error_in_the_place_of_what_is_skipped_is_the_last_reply(void **state)
{
    (void)state;
    ask("up a\nskip s\nup b\n", "+A\r\n-ERR no\r\n+B\r\n", "+A\r\n-ERR no\r\n", true);
}

static void a_message_before_what_is_skipped_comes(void **state)
{
    (void)state;
    ask("skip s\nup b\n", MESSAGE "+SKIPPED\r\n+B\r\n", MESSAGE "+B\r\n", false);
}

/* Whose it is nobody knows: not who asked for something else. */
static void a_push_on_a_shared_link_is_nobodys(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    b.svc.serve = skipping;
    b.svc.frame = frame_resp;
    start("127.0.0.2");
    int c = dial(&b);
    say(c, "share a\n");
    int link = accepted(two);
    expect(link, "share a\n");
    say(link, ">2\r\n$10\r\ninvalidate\r\n_\r\n+A\r\n");
    expect_end(c);
    expect_end(link);
    (void)close(c);
    (void)close(link);
    (void)close(two);
}

/* ---- the end of a batch ---------------------------------------------------------------------- */

#define NONCE 0x01020304u

/* Quiet requests, of which some have replies, and a NOOP of ours behind them; then another. */
static struct net_step batch(struct net_service *svc, void *session, struct span in,
                             struct net_turn *turn, struct buf *out)
{
    (void)svc, (void)session, (void)out;
    const char *end = in.n ? memchr(in.p, '\n', in.n) : NULL;
    if (!end)
        return (struct net_step){.verdict = NET_MORE};
    if (upstream_ready(turn, UPSTREAM_OWN, 0) == UPSTREAM_BUSY)
        return (struct net_step){.verdict = NET_BEHIND};
    size_t used = (size_t)(end - in.p) + 1;
    upstream_send(turn, span_of(in.p, used));
    upstream_expect(turn, span_starts(in, SPAN("quiet")) ? FRAME_MC_NOOP : FRAME_MC_BINARY, 1, 0);
    return (struct net_step){.verdict = NET_DONE, .used = used, .passed = true};
}

static void reply_to(int link, unsigned char opcode, uint32_t opaque)
{
    unsigned char packet[24] = {0x81, opcode};
    opaque = htonl(opaque);
    memcpy(packet + 12, &opaque, sizeof opaque);
    assert_int_equal(send(link, packet, sizeof packet, MSG_NOSIGNAL), sizeof packet);
}

static void has(int client, unsigned char opcode)
{
    unsigned char packet[24];
    assert_int_equal(recv(client, packet, sizeof packet, MSG_WAITALL), sizeof packet);
    assert_int_equal(packet[1], opcode);
}

/* All of it in one read. */
static void our_own_end_of_a_batch_is_not_the_clients(void **state)
{
    (void)state;
    int on = 1, off = 0, two = listen_at("127.0.0.2");
    b.svc.serve = batch;
    b.svc.nonce = NONCE;
    start("127.0.0.2");
    int c = dial(&b);
    say(c, "quiet\nlast\n");
    int link = accepted(two);
    expect(link, "quiet\nlast\n");
    assert_int_equal(setsockopt(link, IPPROTO_TCP, TCP_CORK, &on, sizeof on), 0);
    reply_to(link, 0x00, 0);
    reply_to(link, 0x0a, NONCE + 1); /* a client's */
    reply_to(link, 0x0a, NONCE);
    reply_to(link, 0x07, 0);
    assert_int_equal(setsockopt(link, IPPROTO_TCP, TCP_CORK, &off, sizeof off), 0);
    has(c, 0x00);
    has(c, 0x0a);
    has(c, 0x07);
    (void)close(c);
    (void)close(link);
    (void)close(two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BENCH(what_is_skipped_leaves_the_replies_around_it_whole),
        BENCH(an_error_in_the_place_of_what_is_skipped_is_the_last_reply),
        BENCH(a_message_before_what_is_skipped_comes),
        BENCH(a_push_on_a_shared_link_is_nobodys),
        BENCH(our_own_end_of_a_batch_is_not_the_clients),
    };
    return cmocka_run_group_tests_name("net/skip", tests, NULL, NULL);
}
