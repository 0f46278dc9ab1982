/*
 * What a program finds that takes over: parcels, and sessions in them, that nobody would have
 * written. Nothing outside of them is read, whatever they say, and what is served then is served
 * within bounds.
 *
 *   | protocol | bytes of session: 2 | session | bytes of output kept: 2 | output | input
 *
 * The whole of the input is read as a parcel's records, too.
 */
#include "feed.h"

#include "base/parcel.h"
#include "serve/serve.h"

#define NOW_MS    (LAYOUT_EPOCH_DEFAULT_MS + 1000)
#define TURNS_MAX 100000 /* of one input: more are for ever */

static int64_t told(struct clock *c)
{
    (void)c;
    return NOW_MS * 1000;
}

static struct clock stopped = {told, told};

static void read_records(const uint8_t *data, size_t size)
{
    struct span in = span_of((const char *)data, size), bytes;
    struct parcel_head head;
    struct parcel_record r;
    uint64_t v;
    if (parcel_head(&in, &head))
        feed_reached(SERVE_PROTOCOLS);
    while (parcel_next(&in, &r)) {
        feed_must(r.fd >= -1 && r.body.n <= size, "a record is within its parcel");
        while (parcel_get_bytes(&r.body, &bytes) || parcel_get_u64(&r.body, &v))
            continue;
    }
}

static void open_serve(struct serve *s)
{
    static struct snowflake_generator gen;
    struct err e;
    memset(s, 0, sizeof *s);
    s->clock = &stopped;
    s->rng = rng_system();
    s->issuer.batch = 100;
    s->facts.granted = true;
    snowflake_generator_init(&gen, s->facts.why);
    feed_must(issuer_add(&s->issuer, &gen.base, "id:", NULL, 0, &e) == ERR_OK, "names");
    snowflake_generator_start(&gen, LAYOUT_EPOCH_DEFAULT_MS, &layout_usual, 15, 1);
    feed_must(snowflake_grant(&gen.ids, 1, 7, NOW_MS - 1, NOW_MS + 1000, NULL), "a workerId");
}

static void serve_all(struct net_service *svc, void *session, struct span in, struct buf *out)
{
    struct net_turn turn = {.clock = &stopped, .wall_ms = NOW_MS, .quota = 4096};
    struct net_step step;
    size_t turns = 0;
    do {
        feed_must(++turns < TURNS_MAX, "nobody serves for ever");
        step = svc->serve(svc, session, in, &turn, out);
        feed_must(step.used <= in.n, "no more is used than has come");
        in = span_skip(in, step.used);
        if (step.verdict == NET_DONE)
            turn.reply_start = out->n = 0;
        out->failed = false;
    } while (step.verdict == NET_DONE);
}

const char *fuzz_unreached(void)
{
    static const char *const names[SERVE_PROTOCOLS + 1] = {
        "expected a memcached session, found none", "expected a Redis session, found none",
        "expected an HTTP session, found none", "expected a parcel, found none"};
    return feed_unreached(names, SERVE_PROTOCOLS + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct serve s;
    static char mem[NET_OUT_MAX];
    struct feed f = {data, size};
    struct buf out;
    size_t n, kept;
    read_records(data, size);
    unsigned p = feed_u8(&f) % SERVE_PROTOCOLS;
    const uint8_t *packed = feed_bytes(&f, feed_u16(&f), &n);
    const uint8_t *output = feed_bytes(&f, feed_u16(&f), &kept);
    open_serve(&s);
    struct net_service *svc = s.services[p] = protocol_table[p]->make(&s);
    void *session = svc ? calloc(1, svc->session_size) : NULL;
    feed_must(session, "memory for a session");
    buf_init(&out, mem, sizeof mem);
    buf_put(&out, output, kept);
    if (svc->unpack(svc, session, span_of((const char *)packed, n))) {
        feed_reached(p);
        serve_all(svc, session, span_of((const char *)f.p, f.n), &out);
    }
    if (svc->close)
        svc->close(svc, session);
    free(session);
    free(svc);
    names_clear(&s.issuer.names);
    return 0;
}
