/*
 * Sequences over HTTP: any targets behind /v1/seq/, one after another on one connection, with a
 * supply in memory that grants, refuses or is away, as the input says.
 *
 *   | flags | target, up to a line feed | flags | target | ...
 *
 * Checked
 *   - Each request has one response, whole, of the length that it says; JSON is JSON.
 *   - The numbers of a sequence that is named plainly rise in its direction, none comes twice, and
 *     where as many as were asked for are answered they are as many.
 *   - What is asked of the supply is what a coordinator takes: names, subs and periods are.
 */
#include "feed.h"

#include "coord/period.h"
#include "coord/seq_rows.h"
#include "daemon/generators.h"
#include "serve/serve.h"
#include "support/fake_supply.h"
#include "wire/http_request.h"

#include <jansson.h>

#define NOW_MS       (LAYOUT_EPOCH_DEFAULT_MS + 100 * FAKE_DAY_MS)
#define REQUESTS_MAX 100
#define TURNS_MAX    64 /* of one request: more are for ever */
#define TARGET_MAX   600

enum {
    RAW = 1,  /* the target stands alone, not behind /v1/seq/ */
    HEAD = 2, /* not GET */
    JSON = 4,
    AWAY = 8, /* the supply refuses, by the bits above */
    LATER = 16
};

static const struct fake_sequence sequences[] = {
    {.name = "orders", .start = 1, .increment = 1, .subs = true},
    {.name = "down", .start = 10, .increment = -3},
    {.name = "few", .start = 1, .increment = 1, .top = 20},
    {.name = "strict", .start = 1, .increment = 1, .strict = true},
    {.name = "daily", .start = 1, .increment = 1, .daily = true},
};

#define SEQUENCES (sizeof sequences / sizeof *sequences)

static struct world {
    struct serve serve;
    struct net_service *http;
    struct sequence_table table;
    struct fake_supply supply;
    void *session;
    int64_t now_ms;
    bool any[SEQUENCES]; /* numbers were given out, … */
    long long latest[SEQUENCES];
} w;

enum {
    GIVEN,
    IN_A_ROW,
    MANY,
    LOOKED,
    REFUSED,
    MISSED,
    IN_A_PERIOD,
    PLACES
};

const char *fuzz_unreached(void)
{
    static const char *const names[PLACES] = {
        "expected a number, found none",
        "expected numbers in a row, found none",
        "expected many numbers, found none",
        "expected the status of a sequence, found none",
        "expected a refusal, found none",
        "expected a sequence that there is not, found none",
        "expected numbers of a period, found none",
    };
    return feed_unreached(names, PLACES);
}

/* ---- the daemon's part ----------------------------------------------------------------------- */

static int64_t told(struct clock *c)
{
    (void)c;
    return w.now_ms * 1000;
}

static struct clock clock_of_input = {told, told};

static void open_all(void)
{
    struct err e;
    memset(&w, 0, sizeof w);
    w.now_ms = NOW_MS;
    w.serve.clock = &clock_of_input;
    w.serve.rng = rng_system();
    w.serve.issuer.batch = 100;
    w.serve.issuer.max_wait_us = 100000;
    w.serve.max_connections = 100;
    w.serve.facts.granted = true;
    sequence_table_init(&w.table, &(struct sequence_options){.counters = 8,
                                                             .lasts_ms = 60000,
                                                             .max = 1000,
                                                             .prefix = "seq:",
                                                             .calendar = &generators_calendar});
    w.supply.table = &w.table;
    w.supply.sequence = sequences;
    w.supply.nsequences = SEQUENCES;
    w.supply.time_ms = NOW_MS;
    feed_must(issuer_add(&w.serve.issuer, &w.table.base, "seq:", NULL, 0, &e) == ERR_OK, "names");
    w.serve.services[SERVE_HTTP] = w.http = protocol_http.make(&w.serve);
    feed_must(w.http, "memory for a service");
    w.session = calloc(1, w.http->session_size);
    feed_must(w.session, "memory for a session");
}

static void close_session(void)
{
    if (w.http->close)
        w.http->close(w.http, w.session);
    memset(w.session, 0, w.http->session_size);
}

static void close_all(void)
{
    close_session();
    free(w.session);
    free(w.http);
    names_clear(&w.serve.issuer.names);
    sequence_table_clear(&w.table);
}

static void supply_all(void)
{
    fake_supply_hear(&w.supply);
    for (unsigned i = 0; i < FAKE_PLACES; i++) {
        const struct sequence_name *of = &w.supply.place[i].of;
        feed_must(!w.supply.place[i].open || seq_are_names(of->name, of->sub, of->period),
                  "what is asked for is what a coordinator takes");
    }
    fake_supply_serve(&w.supply, w.now_ms);
}

/* ---- one request ------------------------------------------------------------------------------
 */

/* false: the connection ends. */
static bool serve(struct span in, struct buf *out)
{
    struct net_turn turn = {.clock = &clock_of_input, .wall_ms = w.now_ms, .quota = 4096};
    size_t length = in.n;
    for (unsigned turns = 0; turns < TURNS_MAX; turns++) {
        struct net_step step = w.http->serve(w.http, w.session, in, &turn, out);
        feed_must(step.used <= in.n && !out->failed, "no more is used than has come");
        in = span_skip(in, step.used);
        if (step.verdict == NET_CLOSE)
            return false;
        if (step.verdict == NET_DONE && in.n == 0)
            return true;
        feed_must(step.verdict == NET_WAIT || step.verdict == NET_YIELD,
                  "a whole request is answered, or waits");
        feed_must(in.n == 0 || in.n == length, "a request is used whole");
        turn.waited_us += step.verdict == NET_WAIT && turns > 8 ? w.serve.issuer.max_wait_us : 0;
        turn.quota = 4096;
        if (!step.partial)
            turn.reply_start = out->n;
        supply_all();
    }
    feed_must(false, "nobody waits for ever");
    return false;
}

/* Which sequence a target names without any mark of its own, or SEQUENCES. */
static size_t named(struct span target)
{
    size_t i = 0;
    struct span name = span_cut(&target, '?');
    if (!span_starts(name, SPAN("/v1/seq/")))
        return SEQUENCES;
    name = span_skip(name, 8);
    while (i < SEQUENCES && !span_eq(name, span_str(sequences[i].name)))
        i++;
    return i;
}

static void note_number(size_t i, long long number)
{
    bool up = i < SEQUENCES && sequences[i].increment > 0;
    if (i >= SEQUENCES || sequences[i].daily)
        return;
    feed_must(!w.any[i] || (up ? number > w.latest[i] : number < w.latest[i]), "numbers rise");
    feed_must(sequences[i].top == 0 || number <= sequences[i].top + 1, "none is above max");
    w.any[i] = true;
    w.latest[i] = number;
}

/* Returns how many there are. */
static size_t read_text(size_t i, const char *body)
{
    size_t n = 0;
    for (char *end; *body; body = end + 1, n++) {
        long long v = strtoll(body, &end, 10);
        feed_must(end != body && *end == '\n', "a number a line");
        note_number(i, v);
    }
    return n;
}

static size_t read_json(size_t i, const char *body)
{
    json_error_t e;
    json_t *j = json_loads(body, 0, &e), *ids = json_object_get(j, "ids"), *id;
    size_t k, n = json_array_size(ids);
    feed_must(j, "JSON is JSON");
    if (!ids)
        feed_reached(LOOKED);
    json_array_foreach(ids, k, id)
    {
        char *end;
        const char *text = json_string_value(id);
        feed_must(text && *text, "a number is a string");
        note_number(i, strtoll(text, &end, 10));
        feed_must(*end == '\0', "a number is a number");
    }
    json_decref(j);
    return n;
}

static void judge(struct span target, unsigned flags, const char *reply)
{
    int status = 0, head = 0;
    size_t length = 0;
    feed_must(sscanf(reply, "HTTP/1.1 %d %n", &status, &head) == 1 && head > 0, "a status");
    const char *end = strstr(reply, "\r\n\r\n"), *said = strcasestr(reply, "\r\nContent-Length:");
    feed_must(end && said && said < end && sscanf(said + 17, "%zu", &length) == 1, "a head");
    const char *body = end + 4;
    bool odd = status == 400 || status == 431; /* maybe it was not understood that it is a HEAD */
    feed_must(strlen(body) == (flags & HEAD ? 0 : length) || (odd && strlen(body) == length),
              "a body of its length, and no more");
    struct span rest = target, path = span_cut(&rest, '?'), date;
    bool is_seq = span_starts(path, SPAN("/v1/seq/"));
    feed_must(!is_seq || status < 500 || status == 503, "nothing is our fault");
    if (is_seq && status == 503)
        feed_reached(REFUSED);
    if (is_seq && status == 404)
        feed_reached(MISSED);
    if (!is_seq || status != 200 || flags & HEAD)
        return;
    size_t i = named(target);
    bool json = body[0] == '{';
    size_t n = json ? read_json(i, body) : read_text(i, body);
    feed_reached(n > 1 ? MANY : GIVEN);
    if (rest.n > 0 && memmem(rest.p, rest.n, "block=1", 7) && n == 1)
        feed_reached(IN_A_ROW);
    if (http_query_get(rest, SPAN("date"), &date) && date.n > 0 && i == 4)
        feed_reached(IN_A_PERIOD);
}

static void request(struct feed *in)
{
    static char request[TARGET_MAX + 256], reply[NET_OUT_MAX + 1];
    struct buf b, out;
    unsigned flags = feed_u8(in);
    const uint8_t *line = memchr(in->p, '\n', in->n);
    size_t n = line ? (size_t)(line - in->p) : in->n, got;
    const char *target = (const char *)feed_bytes(in, n, &got);
    (void)feed_u8(in);
    buf_init(&b, request, sizeof request - 1);
    buf_put_str(&b, flags & HEAD ? "HEAD " : "GET ");
    size_t at = b.n;
    buf_put_str(&b, flags & RAW ? "" : "/v1/seq/");
    buf_put(&b, target, got < TARGET_MAX ? got : TARGET_MAX);
    const struct span asked = span_of(request + at, b.n - at);
    buf_put_str(&b, " HTTP/1.1\r\nHost: localhost\r\n");
    buf_put_str(&b, flags & JSON ? "Accept: application/json\r\n\r\n" : "\r\n");
    w.supply.how = flags & AWAY ? SEQUENCE_AWAY : flags & LATER ? SEQUENCE_LATER : 0;
    buf_init(&out, reply, sizeof reply - 1);
    bool stays = serve(buf_span(&b), &out);
    reply[out.n] = '\0';
    judge(asked, flags, reply);
    supply_all();
    if (!stays)
        close_session();
    w.now_ms += flags >> 5;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed in = {data, size};
    open_all();
    for (unsigned i = 0; i < REQUESTS_MAX && in.n > 0; i++)
        request(&in);
    close_all();
    return 0;
}
