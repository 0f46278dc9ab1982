#include "status_rig.h"

#include "base/events.h"
#include "net/upstream/links.h"

#define HOSTILE "<script>\"'&"
#define ESCAPED "&lt;script&gt;&quot;&#39;&amp;"

static char text[NET_OUT_MAX + 1];

static const char *page(void)
{
    struct buf b;
    buf_init(&b, text, NET_OUT_MAX);
    serve_put_status(&s, "n0nce", &b);
    assert_false(b.failed);
    text[b.n] = '\0';
    return text;
}

static void has(const char *part)
{
    if (!strstr(page(), part))
        fail_msg("expected \"%s\" in:\n%s", part, strstr(text, "<body>"));
}

static void has_not(const char *part)
{
    if (strstr(page(), part))
        fail_msg("expected no \"%s\" in:\n%s", part, strstr(text, "<body>"));
}

/* ---- form -------------------------------------------------------------------------------------
 */

static bool is(const char *name, size_t n, const char *const names[], size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (n == strlen(names[i]) && memcmp(name, names[i], n) == 0)
            return true;
    return false;
}

static bool is_void(const char *name, size_t n)
{
    return is(name, n, (const char *const[]){"meta", "link", "!doctype"}, 3);
}

static bool is_raw(const char *name, size_t n)
{
    return is(name, n, (const char *const[]){"style", "script"}, 2);
}

/* The end of a tag: '>' outside quotes. *empty: it ends in "/>". */
static const char *tag_end(const char *p, bool *empty)
{
    bool quoted = false;
    for (; *p && (quoted || *p != '>'); p++)
        quoted ^= *p == '"';
    assert_int_equal(*p, '>');
    assert_false(quoted);
    *empty = p[-1] == '/';
    return p;
}

/* Every element is closed, in order. Texts of style and script are skipped. */
static void well_formed(const char *p)
{
    struct {
        const char *p;
        size_t n;
    } open[32];
    size_t depth = 0;
    while ((p = strchr(p, '<'))) {
        bool closing = *++p == '/', empty;
        const char *name = p + closing;
        size_t n = strcspn(name, " />\n");
        p = tag_end(name, &empty);
        if (closing) {
            assert_true(depth > 0 && open[depth - 1].n == n);
            assert_memory_equal(open[--depth].p, name, n);
        } else if (!empty && !is_void(name, n)) {
            assert_in_range(depth, 0, 31);
            open[depth].p = name;
            open[depth++].n = n;
        }
        if (!closing && is_raw(name, n))
            p = strstr(p, "</");
    }
    assert_int_equal(depth, 0);
}

static void forms(void **state)
{
    (void)state;
    well_formed(page());
    has("<style nonce=\"n0nce\">");
    has("<script nonce=\"n0nce\">");
    has("<noscript><meta http-equiv=\"refresh\" content=\"10\"></noscript>");
    has_not("{{");
    has_not(" style=");
    has_not("=\"http"); /* nothing from elsewhere */
    has_not("url(");
}

/* ---- contents ---------------------------------------------------------------------------------
 */

static void healthy(void **state)
{
    (void)state;
    has("<title>Healthy &middot; pod-1 &middot; sidflake</title>");
    has("<section class=\"state ok\"");
    has("<p>IDs can be had, and nothing is wrong.</p>");
    has("<dt>Reservation</dt><dd>45 min</dd><dd class=\"soft\">of 1 h</dd>");
    has("<dt>workerIds</dt><dd>2 of 2</dd><dd class=\"soft\">1 active</dd>");
    has("<tr><th scope=\"row\">7</th><td>active</td><td class=\"number\">45 min</td>");
    has("<tr><th scope=\"row\">8</th><td>spare</td>");
    has("aria-label=\"75 % left, until 2026-01-02 00:55:00 UTC\"><rect width=\"750\"");
    has("<dd>redis://redis.example:6379/0: up");
    has("<time datetime=\"2026-01-02T00:10:00.000Z\">2026-01-02 00:10:00 UTC</time>");
    has("up 10 min");
    has("until 2034-09-17 10:58:26 UTC");
    has("<dt>sequence</dt><dd>at most 0 of 1,024 IDs in 1 ms;");
    has_not("A new tenure");
    elapsed_ms += MINUTES(20);
    has("aria-label=\"41 % left"); /* who is renewed has more soon */
    has("class=\"bar ok\"");
    has_not("class=\"bar warn\"");
}

static void failing(void **state)
{
    (void)state;
    elapsed_ms += MINUTES(46);
    has("<section class=\"state fail\"");
    has("<h2>No IDs can be had</h2>");
    has("<li>each range of time held has ended: the clock jumped ahead, or the coordinator is "
        "away");
    has("<span class=\"mark fail\">\xe2\x9c\x97</span> lease failed");
    has("<span class=\"mark ok\">\xe2\x9c\x93</span> clock ok");
    has("class=\"bar fail\"");
    has("<dt>Reservation</dt><dd>0 s</dd>");
    well_formed(page());
}

static void warning(void **state)
{
    (void)state;
    s.facts.up = s.facts.serves = false;
    s.facts.tenure_start_ms = START_MS + elapsed_ms - 1000;
    elapsed_ms += MINUTES(20);
    has("<section class=\"state warn\"");
    has("<li>the coordinator is away; IDs can be had until 2026-01-02T00:55:00.000Z, for 25 "
        "min</li>");
    has("class=\"bar warn\"");
    s.facts.tenure_start_ms = START_MS + elapsed_ms - 1000;
    has("A new tenure: its reservations are short for the first 2 min.");
    well_formed(page());
}

/* Before the coordinator has said anything, all of it is unknown. */
static void unknown(void **state)
{
    (void)state;
    char host[sizeof s.facts.host];
    memcpy(host, s.facts.host, sizeof host);
    memset(&s.facts, 0, sizeof s.facts);
    memcpy(s.facts.host, host, sizeof host);
    gen.started = false;
    memset(&gen.ids, 0, sizeof gen.ids);
    has("<li>no workerId is held yet</li>");
    has("<dd>not known yet</dd>");
    has("<dt>sequence</dt><dd>at most 0 of \xe2\x80\x93 IDs in \xe2\x80\x93;");
    has("no answer yet");
    (void)snprintf(s.facts.why, sizeof s.facts.why, "connection refused");
    has("<dd>down</dd>");
    has("not renewed yet");
    has("<dt>Free in the pool</dt><dd>\xe2\x80\x93</dd>");
    has("<td colspan=\"4\">none is held</td>");
    well_formed(page());
}

static void another_layout(void **state)
{
    (void)state;
    struct layout l;
    assert_int_equal(layout_parse(SPAN("sonyflake"), &l, NULL), ERR_OK);
    snowflake_generator_start(&gen, LAYOUT_EPOCH_DEFAULT_MS, &l, 15, 1);
    has("until 2200-03-19 03:28:58 UTC");
    has("<dt>sequence</dt><dd>at most 0 of 256 IDs in 10 ms;");
}

static void from_outside(void **state)
{
    (void)state;
    strcpy(s.facts.host, HOSTILE);
    strcpy(s.facts.pool, "pool" HOSTILE);
    strcpy(s.facts.coordinator, "url" HOSTILE);
    strcpy(s.facts.identity, "id" HOSTILE);
    strcpy(s.facts.why, "why" HOSTILE);
    events_add(LOG_LVL_WARN, START_MS, START_US / 1000, "message", SPAN("text" HOSTILE));
    has_not(HOSTILE);
    has("<title>Needs attention &middot; " ESCAPED);
    has("<h1>sidflake <span class=\"soft\">on</span> " ESCAPED "</h1>");
    has("url" ESCAPED);
    has("pool" ESCAPED);
    has("id" ESCAPED);
    has("why" ESCAPED);
    has("text" ESCAPED);
    well_formed(page());
}

static void an_hour(void **state)
{
    (void)state;
    serve_sample(&s);
    for (int i = 0; i < 300; i++) {
        elapsed_ms += 7500;
        serve_sample(&s); /* too early: an hour would not fit */
        elapsed_ms += 7500;
        gen.ids.stats.issued += 150;
        gen.ids.stats.rollbacks += i % 10 == 0;
        histogram_add(&services[SERVE_REDIS].duration, 15, 150);
        histogram_add(&services[SERVE_HTTP].duration, 900000, 150);
        serve_sample(&s);
    }
    snowflake_extend(&gen.ids, 1, START_MS + elapsed_ms + MINUTES(50));
    has("<dt>IDs a second</dt><dd>10</dd><dd class=\"soft\">45,000 since the start</dd>");
    has("in the hour 36,000</span>");
    has("rollbacks 24</span>");
    has("p50 15 \xc2\xb5s</span>"); /* those of HTTP do not count */
    has("<line class=\"rule\" x2=\"100%\" y1=\"50%\"");
    has_not("<line class=\"rule\" x2=\"100%\" y1=\"100%\""); /* there is the base */
    const char *path = strstr(page(), "<path class=\"one\" d=\"M3600 0");
    size_t steps = 0;
    for (; path && *path != '>'; path++)
        steps += *path == 'H';
    assert_int_equal(steps, HISTORY_MAX);
    has_not("before the start");
    assert_in_range(strlen(text), 20000, 60000);
    well_formed(text);
}

/* What is under way tells it once it is long enough. */
static void now(void **state)
{
    (void)state;
    serve_sample(&s);
    elapsed_ms += 15000;
    gen.ids.stats.issued += 150;
    serve_sample(&s);
    elapsed_ms += 4999;
    gen.ids.stats.issued += 500;
    has("<dt>IDs a second</dt><dd>10</dd>");
    elapsed_ms += 1;
    has("<dt>IDs a second</dt><dd>100</dd>");
}

static void servers_behind(void **state)
{
    (void)state;
    static struct upstream there[2];
    services[SERVE_MEMCACHED].upstream = &there[0];
    services[SERVE_REDIS].upstream = &there[1];
    there[1].stats.errors = 1;
    has("<span class=\"mark info\">\xe2\x80\x93</span> not asked for yet");
    has("<span class=\"mark warn\">\xe2\x9c\x97</span> unreachable");
    there[1].stats.up = true;
    has("<span class=\"mark ok\">\xe2\x9c\x93</span> reached");
    has_not("unreachable");
    serve_sample(&s);
    serve_count(&s, SERVE_REDIS, 0, SERVE_PASSED); /* how long that took is not known here */
    elapsed_ms += 15000;
    serve_sample(&s);
    has("<dd class=\"soft\">none answered here now</dd>");
    has(">none answered here</text>");
    has("No requests were answered here.");
}

/* How long ago is told by the clock that does not step. */
static void an_event_of_a_clock_that_stepped(void **state)
{
    (void)state;
    events_add(LOG_LVL_WARN, START_MS + MINUTES(60), START_US / 1000, "stepped", SPAN(""));
    has("<td class=\"nowrap soft\">10 min</td><td class=\"mark warn\">warn</td><td>stepped");
}

static void fifty_events(void **state)
{
    (void)state;
    char line[16];
    for (int i = 0; i < EVENTS_MAX + 5; i++) {
        (void)snprintf(line, sizeof line, "n=%d", i);
        events_add(LOG_LVL_ERROR, START_MS + i, START_US / 1000, "trouble", span_str(line));
    }
    events_add(LOG_LVL_ERROR, START_MS + 60000, START_US / 1000 + 60000, "trouble", span_str(line));
    has("<td class=\"nowrap soft\">9 min</td><td class=\"mark error\">error</td><td>trouble "
        "<span class=\"soft\">n=54 (2 times since 2026-01-02 00:00:00)</span>");
    has("<span class=\"soft\">n=5</span>");
    has_not("n=4<");
}

/* Cut anywhere, it fails, and is never taken for a page. */
static void no_room(void **state)
{
    (void)state;
    static char memory[NET_OUT_MAX];
    size_t whole = strlen(page());
    for (size_t cap = 0; cap < whole; cap += 97) {
        struct buf b;
        buf_init(&b, memory, cap);
        serve_put_status(&s, "n0nce", &b);
        assert_true(b.failed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(forms),
        TEST(healthy),
        TEST(failing),
        TEST(warning),
        TEST(unknown),
        TEST(from_outside),
        TEST(another_layout),
        TEST(an_hour),
        TEST(now),
        TEST(servers_behind),
        TEST(an_event_of_a_clock_that_stepped),
        TEST(fifty_events),
        TEST(no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
