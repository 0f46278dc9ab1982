/*
 * A hostile Redis at the other end of a real connection: the driver's calls, over hiredis, against
 * a server that answers each flush with the next bytes of the input.
 *
 *   | how the URL is | calls | call ... | length, bytes | length, bytes | ... |
 *
 * A length has one byte, or is 254 and two more. 0 hangs up; 255 answers as a server does that does
 * not know the command: it quotes the request, password and all.
 *
 * Checked, beside coord_bounds.h
 *   - What is sent is whole requests, and a question is asked at most six times: before replicas
 *     are known of, then, and confirmed, each before and after the script was loaded again. A list
 *     comes in parts, each of which is a question.
 *   - What a take grants is at most what was wanted, and of a definition that can be.
 *   - OK is answered only after an OK of the script, and, where that names K replicas, after WAIT K
 *     on the same connection came to K or more, and the server's history was the same before the
 *     script and after that.
 *   - The password is in no error's text.
 */
#include "coord_bounds.h"

#include "coord/redis_reply.h"
#include "coord/seq_calls.h"
#include "support/fake_clock.h"

#include <dlfcn.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#define PASSWORD   "s3cr3tw0rd"
#define IDENTITY   "11111111-2222-4333-8444-555555555555|0|38.15.10"
#define TIMEOUT_US 2000 /* waited for in earnest, where the server keeps a client waiting */
#define TALK_MAX   ((size_t)256 << 10)
#define ASKED_MAX  6

/* One direction of the latest connection, as it came. */
struct stream {
    size_t n;
    char bytes[TALK_MAX];
};

static struct {
    struct feed in;
    int fd;                   /* the server's end, or -1 */
    struct stream sent, told; /* by the driver, and by the server */
    unsigned asked;           /* times that the script was called, over all connections */
    bool leaked;              /* the input itself holds the password */
    bool confirmed;           /* by replicas */
} server;

/* ---- the server ------------------------------------------------------------------------------
 */

static void put(struct stream *s, const void *p, size_t n)
{
    n = n < TALK_MAX - s->n ? n : TALK_MAX - s->n;
    if (n > 0)
        memcpy(s->bytes + s->n, p, n);
    s->n += n;
}

static void hang_up(void)
{
    if (server.fd >= 0)
        (void)close(server.fd);
    server.fd = -1;
}

static void tell(const void *p, size_t n)
{
    if (server.fd < 0 || n == 0)
        return;
    ssize_t wrote = send(server.fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
    put(&server.told, p, wrote > 0 ? (size_t)wrote : 0);
}

/* What the driver has sent since the last time; the start is where it begins in sent. */
static size_t hear(void)
{
    static char block[TALK_MAX];
    size_t start = server.sent.n;
    ssize_t n;
    while (server.fd >= 0 && (n = recv(server.fd, block, sizeof block, MSG_DONTWAIT)) > 0)
        put(&server.sent, block, (size_t)n);
    return start;
}

static void quote(size_t start)
{
    static char text[TALK_MAX];
    size_t n = 0;
    for (size_t i = start; i < server.sent.n && n < 1024; i++)
        if (server.sent.bytes[i] != '\r' && server.sent.bytes[i] != '\n')
            text[n++] = server.sent.bytes[i];
    tell("-ERR unknown command '", 22);
    tell(text, n);
    tell("'\r\n", 3);
}

static void answer(void)
{
    size_t start = hear(), got, length = feed_u8(&server.in);
    if (length == 255) {
        quote(start);
        return;
    }
    if (length == 254)
        length = feed_u16(&server.in);
    const uint8_t *bytes = feed_bytes(&server.in, length, &got);
    tell(bytes, got);
    if (length == 0 || got < length)
        hang_up();
}

/* In place of hiredis' own: the socket is one end of a pair. */
redisContext *redisConnectUnixWithTimeout(const char *path, const struct timeval tv)
{
    int pair[2];
    (void)path;
    (void)tv;
    hang_up();
    server.sent.n = server.told.n = 0;
    feed_must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0, "a pair of sockets");
    server.fd = pair[1];
    redisContext *c = redisConnectFd(pair[0]);
    feed_must(c, "memory for a connection");
    return c;
}

/* Around hiredis' own: a request that is out is answered. */
int redisBufferWrite(redisContext *c, int *done)
{
    static int (*real)(redisContext *, int *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "redisBufferWrite");
    int all = 0, r = real(c, &all);
    if (r == REDIS_OK && all)
        answer();
    if (done)
        *done = all;
    return r;
}

/* ---- what was said ---------------------------------------------------------------------------
 */

/* Requests look like replies: arrays of strings. */
static size_t parse(const struct stream *s, redisReply **out, size_t max, bool *whole)
{
    redisReader *reader = redisReaderCreate();
    feed_must(reader, "memory for a reader");
    coord_redis_bound(reader);
    size_t n = 0;
    void *one = NULL;
    (void)redisReaderFeed(reader, s->bytes, s->n);
    while (n < max && redisReaderGetReply(reader, &one) == REDIS_OK && one)
        out[n++] = one;
    *whole = reader->err == 0 && reader->pos == reader->len;
    redisReaderFree(reader);
    return n;
}

static bool says(const redisReply *r, size_t i, const char *word)
{
    return r->type == REDIS_REPLY_ARRAY && i < r->elements &&
           (r->element[i]->type == REDIS_REPLY_STRING ||
            r->element[i]->type == REDIS_REPLY_STATUS) &&
           strcmp(r->element[i]->str, word) == 0;
}

static long long number(const redisReply *r, size_t i)
{
    return i < r->elements && r->element[i]->str ? strtoll(r->element[i]->str, NULL, 10) : -1;
}

/* The text from there on, of 54 bytes and more, or "". */
static const char *history(const redisReply *r)
{
    bool text = r->type == REDIS_REPLY_STRING || r->type == REDIS_REPLY_STATUS;
    const char *at = text ? memmem(r->str, r->len, "master_replid:", 14) : NULL;
    return at && r->str + r->len - at >= 54 ? at : "";
}

/* What was asked for before the script, on this connection. */
static const char *history_before(redisReply **asked, redisReply **told, size_t script)
{
    while (script > 0 && !says(asked[script - 1], 0, "INFO"))
        script--;
    return script > 0 ? history(told[script - 1]) : "";
}

static void confirmed(redisReply **asked, size_t nasked, redisReply **told, size_t ntold)
{
    size_t i = nasked;
    while (i > 0 && !says(asked[i - 1], 0, "EVALSHA"))
        i--;
    feed_must(i > 0 && i <= ntold, "OK is said after an answer of the script");
    const redisReply *reply = told[i - 1];
    feed_must(says(reply, 0, "OK") && reply->elements >= 5, "OK is said after the script's");
    if (number(reply, 4) == 0)
        return;
    feed_must(i < nasked && i < ntold && says(asked[i], 0, "WAIT") &&
                  number(asked[i], 1) == number(reply, 4),
              "a grant that names replicas is waited for");
    feed_must(told[i]->type == REDIS_REPLY_INTEGER && told[i]->integer >= number(reply, 4),
              "a grant counts once as many replicas have it");
    const char *before = history_before(asked, told, i - 1);
    feed_must(i + 1 < nasked && i + 1 < ntold && says(asked[i + 1], 0, "INFO") && *before &&
                  *history(told[i + 1]) && memcmp(before, history(told[i + 1]), 54) == 0,
              "what they have is the history that the script wrote to");
    server.confirmed = true;
}

/* scripted: the call is one of the script's, and came to OK. */
static void look_back(bool scripted, unsigned questions)
{
    enum {
        MAX = 64
    };
    redisReply *asked[MAX], *told[MAX];
    bool whole, whatever;
    (void)hear();
    size_t nasked = parse(&server.sent, asked, MAX, &whole);
    size_t ntold = parse(&server.told, told, MAX, &whatever);
    feed_must(whole || nasked == MAX, "only whole requests are sent");
    for (size_t i = 0; i < nasked; i++) {
        feed_must(asked[i]->type == REDIS_REPLY_ARRAY && asked[i]->elements > 0,
                  "a request is an array");
        server.asked += says(asked[i], 0, "EVALSHA");
    }
    feed_must(questions == 0 || server.asked <= questions * ASKED_MAX,
              "a question is not asked over and over");
    if (scripted)
        confirmed(asked, nasked, told, ntold);
    for (size_t i = 0; i < nasked; i++)
        freeReplyObject(asked[i]);
    for (size_t i = 0; i < ntold; i++)
        freeReplyObject(told[i]);
}

/* ---- the calls -------------------------------------------------------------------------------
 */

static enum coord_status do_describe(struct coord *c, struct coord_reply *r)
{
    struct coord_pool pool;
    enum coord_status s = coord_describe(c, &pool, r);
    if (s == COORD_OK)
        bounds_pool(&pool);
    return s;
}

static enum coord_status do_init(struct coord *c, struct coord_reply *r)
{
    struct coord_init in = {
        .identity = IDENTITY, .params = coord_params_default, .mode = COORD_INIT_FRESH};
    return coord_init(c, &in, r);
}

static enum coord_status do_claim(struct coord *c, struct coord_reply *r)
{
    struct coord_grant g;
    struct coord_token t = {{1}};
    enum coord_status s = coord_claim(c, IDENTITY, BOUNDS_CALLER_MS, t, &g, r);
    if (s == COORD_OK)
        bounds_grant(&g, r);
    return s;
}

static enum coord_status do_renew(struct coord *c, struct coord_reply *r)
{
    const struct coord_caller by = {.now_ms = BOUNDS_CALLER_MS};
    struct coord_terms terms;
    struct coord_renewal items[2];
    for (uint16_t i = 0; i < 2; i++)
        items[i] = (struct coord_renewal){
            .worker = i, .cur = {{1}}, .nxt = {{2}}, .n = 1, .hi_ms = BOUNDS_CALLER_MS};
    enum coord_status s = coord_renew(c, IDENTITY, &by, items, 2, &terms, r);
    for (size_t i = 0; i < 2 && s == COORD_OK; i++)
        bounds_renewal(&items[i], r);
    return s;
}

static enum coord_status do_release(struct coord *c, struct coord_reply *r)
{
    struct coord_release item = {.worker = 3, .cur = {{1}}, .nxt = {{2}}, .has_last = true};
    return coord_release(c, IDENTITY, &item, r);
}

static enum coord_status do_evict(struct coord *c, struct coord_reply *r)
{
    return coord_evict(c, IDENTITY, 3, r);
}

static enum coord_status do_repair(struct coord *c, struct coord_reply *r)
{
    static const uint16_t workers[] = {1, 2, 3};
    return coord_repair(c, IDENTITY, workers, 3, r);
}

static enum coord_status do_snapshot(struct coord *c, struct coord_reply *r)
{
    static struct coord_audit audit;
    struct coord_snapshot s = {.nworkers = 0};
    enum coord_status status = coord_snapshot(c, &s, r);
    if (status == COORD_OK)
        (void)coord_audit(&s, &audit);
    coord_snapshot_clear(&s);
    return status;
}

static enum coord_status do_take(struct coord *c, struct coord_reply *r)
{
    const struct seq_caller by = {.now_ms = BOUNDS_CALLER_MS};
    const struct seq_want want = {
        .name = "a", .sub = "", .period = "", .text = "", .count = 10, .token = {{1}}};
    struct seq_grant g;
    struct seq_opening o;
    enum coord_status s = seq_take(c, IDENTITY, &by, &want, &g, 1, &o, r);
    if (s == COORD_OK && g.how == SEQ_GRANTED)
        feed_must(g.lo <= g.hi && g.hi - g.lo < 10 &&
                      seq_has_index(g.definition.start, g.definition.increment, g.hi),
                  "a block is of numbers that there are, and no longer than was wanted");
    return s;
}

static enum coord_status do_give_back(struct coord *c, struct coord_reply *r)
{
    const struct seq_return item = {.name = "a", .sub = "", .period = "", .lo = 1, .hi = 2};
    enum seq_how how;
    return seq_give_back(c, IDENTITY, &item, &how, 1, r);
}

static enum coord_status do_create(struct coord *c, struct coord_reply *r)
{
    const struct seq_create in = {
        .name = "a",
        .definition = {.start = 1, .increment = 1, .begins_ms = 1, .loss = SEQ_LOSS_REFUSE}};
    struct seq_grant g;
    return seq_create(c, IDENTITY, &in, &g, r);
}

static enum coord_status do_show(struct coord *c, struct coord_reply *r)
{
    struct seq_counters all;
    enum coord_status s = seq_show(c, IDENTITY, "a", &all, r);
    feed_must(s == COORD_OK || !all.v, "what is not OK leaves nothing to free");
    free(all.v);
    return s;
}

static enum coord_status do_list(struct coord *c, struct coord_reply *r)
{
    struct seq_list all;
    enum coord_status s = seq_list(c, IDENTITY, &all, r);
    feed_must(s == COORD_OK || !all.v, "what is not OK leaves nothing to free");
    free(all.v);
    return s;
}

/* Those behind the first eight are chosen by 0x80 and more. */
static const struct {
    enum coord_status (*call)(struct coord *c, struct coord_reply *r);
    bool scripted;
    unsigned questions; /* 0: as many as there are parts */
} calls[] = {{do_claim, true, 1},     {do_renew, true, 1},     {do_describe, true, 1},
             {do_init, true, 1},      {do_release, true, 1},   {do_evict, true, 1},
             {do_repair, true, 1},    {do_snapshot, false, 1}, {do_take, true, 1},
             {do_give_back, true, 1}, {do_create, true, 2},    {do_show, true, 0},
             {do_list, true, 0}};

enum {
    CALLS = sizeof calls / sizeof *calls,
    OF_WORKERS = 8 /* the first of them */
};

const char *fuzz_unreached(void)
{
    static const char *const names[] = {
        "expected a claim that is OK, found none",
        "expected a renewal that is OK, found none",
        "expected a description, found none",
        "expected an init that is OK, found none",
        "expected a release that is OK, found none",
        "expected an eviction that is OK, found none",
        "expected a repair that is OK, found none",
        "expected a snapshot, found none",
        "expected a take that is OK, found none",
        "expected a give-back that is OK, found none",
        "expected a creation that is OK, found none",
        "expected a sequence that is shown, found none",
        "expected a list of sequences, found none",
        "expected an answer that replicas have acknowledged, found none",
        "expected a script that had to be loaded again, found none",
    };
    return feed_unreached(names, sizeof names / sizeof *names);
}

static void ask(struct coord *c, uint8_t which)
{
    struct coord_reply r = {0};
    unsigned i = which < 128 ? which % OF_WORKERS : OF_WORKERS + which % (CALLS - OF_WORKERS);
    server.asked = 0;
    server.confirmed = false;
    enum coord_status s = calls[i].call(c, &r);
    bounds_explained(s, &r);
    feed_must(server.leaked || !strstr(r.err.text, PASSWORD), "no error tells the password");
    look_back(calls[i].scripted && s == COORD_OK, calls[i].questions);
    if (s == COORD_OK)
        feed_reached(i);
    if (server.confirmed)
        feed_reached(CALLS);
    if (s == COORD_OK && server.asked > 1 && !server.confirmed && calls[i].questions == 1)
        feed_reached(CALLS + 1);
}

static struct coord *open_redis(unsigned how, struct fake_clock *clock)
{
    static const char *const urls[] = {"redis+unix:///s", "redis+unix:///s?db=3",
                                       "redis+unix://:" PASSWORD "@/s",
                                       "redis+unix://user:" PASSWORD "@/s?db=3"};
    struct coord *c;
    struct err e;
    struct coord_options o = {.url = span_str(urls[how % 4]),
                              .pool = SPAN("p"),
                              .who = SPAN("{}"),
                              .timeout_us = TIMEOUT_US,
                              .clock = &clock->clock};
    feed_must(coord_open(&o, &c, &e) == ERR_OK, "a coordinator");
    return c;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t which[4];
    struct fake_clock clock;
    (void)signal(SIGPIPE, SIG_IGN); /* as the programs do */
    fake_clock_init(&clock, BOUNDS_CALLER_MS);
    server.in = (struct feed){data, size};
    server.fd = -1;
    server.sent.n = server.told.n = 0;
    server.leaked = memmem(data, size, "s3cr3t", 6) != NULL;
    struct coord *c = open_redis(feed_u8(&server.in), &clock);
    size_t n = 1 + feed_u8(&server.in) % sizeof which;
    for (size_t i = 0; i < n; i++)
        which[i] = feed_u8(&server.in);
    for (size_t i = 0; i < n; i++)
        ask(c, which[i]);
    coord_free(c);
    hang_up();
    return 0;
}
