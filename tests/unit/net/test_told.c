/* Replies that a service is told of in parts, and adds to: of many parts, few writes. */
#include "unit/net/upstream_rig.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>

#define VALUES 400

static _Atomic unsigned writes;

/* In the place of libc's, for the test and the loop. */
ssize_t send(int fd, const void *p, size_t n, int flags)
{
    writes++;
    return syscall(SYS_sendto, fd, p, n, flags, NULL, 0);
}

static struct net_step merge(struct net_service *svc, void *session, struct span in,
                             struct net_turn *turn, struct buf *out)
{
    (void)svc, (void)session, (void)out;
    const char *end = in.n ? memchr(in.p, '\n', in.n) : NULL;
    if (!end)
        return (struct net_step){.verdict = NET_MORE};
    if (upstream_ready(turn, UPSTREAM_TEXT, 0) == UPSTREAM_BUSY)
        return (struct net_step){.verdict = NET_BEHIND};
    size_t used = (size_t)(end - in.p) + 1;
    upstream_send(turn, span_of(in.p, used));
    upstream_expect(turn, FRAME_MC_MERGE, 1, 0);
    return (struct net_step){.verdict = NET_DONE, .used = used, .passed = true};
}

/* What may be as long as all that is put together before it is sent. */
static struct span addition;

static bool add(struct net_service *svc, void *session, const struct frame *f, struct buf *out)
{
    (void)svc, (void)session, (void)f;
    buf_put_span(out, addition);
    return false;
}

static size_t given; /* the loop's: bytes of the addition */

/* Once, and as much at a time as there is room for. */
static bool add_in_pieces(struct net_service *svc, void *session, const struct frame *f,
                          struct buf *out)
{
    (void)svc, (void)session;
    size_t room = out->cap - out->n, left = addition.n - given;
    if (f->part.n > 0)
        return false;
    buf_put(out, addition.p + given, left < room ? left : room);
    given += left < room ? left : room;
    return given < addition.n;
}

/* The reply, with what stands before each of its parts. */
static void expect_parts(int client)
{
    char *text = malloc(addition.n + 64);
    assert_non_null(text);
    memcpy(text, addition.p, addition.n);
    for (int i = 0; i < VALUES; i++) {
        (void)snprintf(text + addition.n, 64, "VALUE key-%03d 0 1\r\nx\r\n", i);
        expect(client, text);
    }
    (void)snprintf(text + addition.n, 64, "END\r\n");
    expect(client, text);
    free(text);
}

static void say_values(int link)
{
    static char reply[VALUES * 32 + 8];
    size_t n = 0;
    for (int i = 0; i < VALUES; i++)
        n += (size_t)snprintf(reply + n, sizeof reply - n, "VALUE key-%03d 0 1\r\nx\r\n", i);
    (void)snprintf(reply + n, sizeof reply - n, "END\r\n");
    say(link, reply);
}

/* Each takes from all others' time. */
static void many_parts_are_written_together(void **state)
{
    (void)state;
    int server = listen_at("127.0.0.2");
    b.svc.serve = merge;
    b.svc.heard = add;
    addition = SPAN("(added)");
    start("127.0.0.2");
    int c = dial(&b);
    say(c, "get\n");
    int link = accepted(server);
    expect(link, "get\n");
    unsigned before = writes;
    say_values(link);
    expect_parts(c);
    assert_in_range(writes - before, 2, VALUES / 10);
    (void)close(c);
    (void)close(link);
    (void)close(server);
}

static void what_is_more_than_is_put_together_comes_in_order(void **state)
{
    (void)state;
    static char much[3000];
    int server = listen_at("127.0.0.2");
    b.svc.serve = merge;
    b.svc.heard = add;
    memset(much, 'y', sizeof much);
    addition = span_of(much, sizeof much);
    start("127.0.0.2");
    int c = dial(&b), d = dial(&b);
    say(c, "get\n");
    int link = accepted(server);
    expect(link, "get\n");
    say(d, "get\n");
    expect(link, "get\n");
    say_values(link);
    say_values(link);
    expect_parts(c);
    expect_parts(d);
    (void)close(c);
    (void)close(d);
    (void)close(link);
    (void)close(server);
}

static void what_is_more_than_there_is_room_for_comes_whole(void **state)
{
    (void)state;
    static char much[2 * NET_OUT_MAX + 1], got[sizeof much];
    int server = listen_at("127.0.0.2");
    b.svc.serve = merge;
    b.svc.heard = add_in_pieces;
    memset(much, 'y', sizeof much - 1);
    much[sizeof much / 2] = 'z';
    addition = span_of(much, sizeof much - 1);
    given = 0;
    start("127.0.0.2");
    int c = dial(&b);
    say(c, "get\n");
    int link = accepted(server);
    expect(link, "get\n");
    say(link, "VALUE a 0 1\r\nx\r\nEND\r\n");
    expect(c, "VALUE a 0 1\r\nx\r\n");
    assert_int_equal(recv(c, got, sizeof got - 1, MSG_WAITALL), sizeof got - 1);
    assert_memory_equal(got, much, sizeof got - 1);
    expect(c, "END\r\n");
    (void)close(c);
    (void)close(link);
    (void)close(server);
}

static void do_kept(struct net_bench *bench, void *arg)
{
    *(uint64_t *)arg = net_kept(bench->net);
}

static uint64_t kept(void)
{
    uint64_t n = 0;
    net_bench_call(&b, do_kept, &n);
    return n;
}

#define HELD ((size_t)12345)

static size_t held; /* the loop's: for a reply under way */

static struct net_step hold(struct net_service *svc, void *session, struct span in,
                            struct net_turn *turn, struct buf *out)
{
    struct net_step step = merge(svc, session, in, turn, out);
    if (step.verdict == NET_DONE)
        held = HELD;
    return step;
}

static size_t holds(const struct net_service *svc, const void *session)
{
    (void)svc, (void)session;
    return held;
}

static bool let_go(struct net_service *svc, void *session, const struct frame *f, struct buf *out)
{
    (void)svc, (void)session, (void)out;
    if (f->part.n == 0)
        held = 0;
    return false;
}

/* Else who has had a reply and asks for nothing more is closed for what others keep. */
static void what_a_reply_took_does_not_count_behind_it(void **state)
{
    (void)state;
    int server = listen_at("127.0.0.2");
    held = 0;
    b.svc.serve = hold;
    b.svc.heard = let_go;
    b.svc.holds = holds;
    start("127.0.0.2");
    int c = dial(&b);
    say(c, "get\n");
    int link = accepted(server);
    expect(link, "get\n");
    assert_true(kept() >= HELD);
    say(link, "VALUE a 0 1\r\nx\r\n");
    expect(c, "VALUE a 0 1\r\nx\r\n");
    assert_true(kept() >= HELD);
    say(link, "END\r\n");
    expect(c, "END\r\n");
    NET_AWAIT(kept() < HELD);
    (void)close(c);
    (void)close(link);
    (void)close(server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BENCH(many_parts_are_written_together),
        BENCH(what_is_more_than_is_put_together_comes_in_order),
        BENCH(what_is_more_than_there_is_room_for_comes_whole),
        BENCH(what_a_reply_took_does_not_count_behind_it),
    };
    return cmocka_run_group_tests_name("net/told", tests, NULL, NULL);
}
