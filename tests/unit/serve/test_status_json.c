/* The status as JSON: whole whatever the state, hostile texts included; members and their units. */
#include "net/upstream/links.h"
#include "status_rig.h"

#include <jansson.h>

static char text[NET_OUT_MAX + 1];

/* The caller gives it back. */
static json_t *status(void)
{
    struct buf b;
    json_error_t e;
    buf_init(&b, text, NET_OUT_MAX);
    serve_put_status_json(&s, &b);
    assert_false(b.failed);
    assert_int_equal(text[b.n - 1], '\n');
    json_t *j = json_loadb(text, b.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &e);
    if (!j)
        fail_msg("byte %d: %s in:\n%.*s", e.position, e.text, (int)b.n, text);
    return j;
}

static json_t *member(json_t *j, const char *object, const char *name)
{
    json_t *in = object ? json_object_get(j, object) : j, *v = json_object_get(in, name);
    if (!v)
        fail_msg("expected a member %s.%s", object ? object : "", name);
    return v;
}

static void number(json_t *j, const char *object, const char *name, double expected)
{
    json_t *v = member(j, object, name);
    if (!json_is_number(v) || json_number_value(v) != expected)
        fail_msg("%s: expected %g, found %s", name, expected, json_dumps(v, JSON_ENCODE_ANY));
}

static void string(json_t *j, const char *object, const char *name, const char *expected)
{
    json_t *v = member(j, object, name);
    if (expected)
        assert_string_equal(json_string_value(v), expected);
    else
        assert_true(json_is_null(v));
}

static void what_is_well(void **state)
{
    (void)state;
    s.issuer.waited_us = 1500;
    s.facts.renewals_renewed = 41;
    s.facts.skew_ms = -3;
    s.facts.first_horizon_ms = 30000;
    s.requests[SERVE_REDIS][0][SERVE_OK] = 9;
    services[SERVE_REDIS].duration.count[HISTOGRAM_BUCKETS] = 2;
    json_t *j = status();
    string(j, NULL, "version", SIDFLAKE_VERSION);
    string(j, NULL, "state", "ok");
    string(j, NULL, "why", NULL);
    assert_true(json_is_true(member(j, NULL, "ready")));
    number(j, NULL, "started_unix_ms", (double)START_MS);
    number(j, NULL, "uptime_ms", (double)MINUTES(10));
    string(j, "coordinator", "state", "up");
    number(j, "pool", "free", 32700);
    number(j, "pool", "horizon_ms", (double)MINUTES(60));
    number(j, "pool", "first_horizon_ms", 30000);
    number(j, "workers", "left_ms", (double)MINUTES(45));
    number(j, "clock", "waited_us_total", 1500);
    number(j, "clock", "skew_ms", -3);
    number(j, "renewals", "renewed_total", 41);
    number(j, "ids", "ids_per_unit", 1024);
    number(j, "ids", "unit_ms", 1);
    assert_int_equal(json_array_size(member(j, NULL, "findings")), 0);
    assert_int_equal(json_array_size(member(j, NULL, "upstreams")), 0);
    json_t *spare = json_array_get(member(j, NULL, "worker_ids"), 1);
    number(spare, NULL, "worker", 8);
    string(spare, NULL, "use", "spare");
    json_t *asked = json_array_get(member(j, NULL, "requests"), 0);
    string(asked, NULL, "protocol", "redis");
    string(asked, NULL, "result", "ok");
    number(asked, NULL, "answered_total", 9);
    json_t *redis = json_array_get(member(j, NULL, "protocols"), SERVE_REDIS);
    json_t *took = member(redis, "request_duration", "counts");
    assert_int_equal(json_array_size(took), HISTOGRAM_BUCKETS + 1);
    assert_int_equal(json_array_size(member(redis, "request_duration", "bounds_us")),
                     HISTOGRAM_BUCKETS);
    number(redis, NULL, "connections", 0);
    assert_int_equal(json_integer_value(json_array_get(took, HISTOGRAM_BUCKETS)), 2);
    json_decref(j);
}

/* Null is what is not known, and every member is there all the same. */
static void what_is_not_known(void **state)
{
    static const char *const unknown[][2] = {
        {"pool", "free"},
        {"pool", "horizon_ms"},
        {"pool", "era"},
        {"workers", "left_ms"},
        {"clock", "skew_ms"},
        {"ids", "lifetime_ms"},
        {"renewals", "latest_ago_ms"},
        {"now", "p50_us"},
    };
    (void)state;
    memset(&s.facts, 0, sizeof s.facts);
    snowflake_generator_init(&gen, s.facts.why);
    json_t *j = status();
    assert_true(json_is_false(member(j, NULL, "ready")));
    string(j, NULL, "state", "fail");
    string(j, NULL, "why", "no workerId is held yet");
    string(json_array_get(member(j, NULL, "findings"), 0), NULL, "state", "fail");
    string(j, "coordinator", "state", "down");
    string(j, "pool", "identity", NULL);
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        assert_true(json_is_null(member(j, unknown[i][0], unknown[i][1])));
    json_decref(j);
}

/* None has the name of another's. */
static void each_number_is_its_own(void **state)
{
    static const struct {
        const char *object, *name;
        int n;
    } all[] = {
        {"renewals", "renewed_total", 11},
        {"renewals", "again_total", 12},
        {"renewals", "reasserted_total", 13},
        {"renewals", "lost_total", 14},
        {"renewals", "failed_total", 15},
        {"coordinator", "data_loss_total", 16},
        {"clock", "jumps_total", 17},
        {"pool", "era", 18},
        {"pool", "free", 19},
        {"pool", "size", 20},
        {"pool", "max_skew_ms", 21},
        {"workers", "held", 22},
        {"workers", "wanted", 23},
        {"hour", "requests_failed", 24},
        {"hour", "reads_missed", 25},
        {"workers", "active", 1},
    };
    struct serve_facts *f = &s.facts;
    (void)state;
    f->renewals_renewed = 11;
    f->renewals_again = 12;
    f->renewals_reasserted = 13;
    f->renewals_lost = 14;
    f->renewals_failed = 15;
    f->data_loss = 16;
    f->clock_jumps = 17;
    f->era = 18;
    f->pool_free = 19;
    f->pool_size = 20;
    f->max_skew_ms = 21;
    f->held = 22;
    f->wanted = 23;
    s.requests[SERVE_REDIS][0][SERVE_FAILED] = 24;
    s.requests[SERVE_REDIS][0][SERVE_MISS] = 25;
    services[SERVE_REDIS].connections = 26;
    services[SERVE_REDIS].accepted = 27;
    services[SERVE_REDIS].refused = 28;
    json_t *j = status();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        number(j, all[i].object, all[i].name, all[i].n);
    json_t *redis = json_array_get(member(j, NULL, "protocols"), SERVE_REDIS);
    number(redis, NULL, "connections", 26);
    number(redis, NULL, "accepted_total", 27);
    number(redis, NULL, "refused_total", 28);
    number(json_array_get(member(j, NULL, "worker_ids"), 0), NULL, "left_ms", (double)MINUTES(45));
    json_decref(j);
}

static void a_coordinator_that_refuses(void **state)
{
    (void)state;
    s.facts.serves = false;
    (void)snprintf(s.facts.why, sizeof s.facts.why, "no pool");
    json_t *j = status();
    string(j, "coordinator", "state", "refuses");
    string(j, "coordinator", "why", "no pool");
    assert_true(json_is_true(member(j, NULL, "ready"))); /* IDs go on */
    json_decref(j);
}

static json_t *server(json_t *j, unsigned i)
{
    return json_array_get(member(j, NULL, "upstreams"), i);
}

/* One that is up, and was away before; one that is away; one that nobody has asked for anything. */
static void servers_behind(void **state)
{
    static struct upstream there[SERVE_PROTOCOLS];
    int64_t now_us = clock_mono_us(&rig_clock);
    (void)state;
    memset(there, 0, sizeof there);
    for (unsigned i = 0; i < SERVE_PROTOCOLS; i++)
        services[i].upstream = &there[i];
    (void)snprintf(there[0].why, sizeof there[0].why, "refused");
    (void)snprintf(there[1].why, sizeof there[1].why, "timed out");
    there[0].stats = (struct upstream_stats){
        .up = true, .since_us = now_us - 5000, .connections = 2, .requests = 70, .errors = 3};
    there[1].stats = (struct upstream_stats){.since_us = now_us - 7000000, .errors = 4};
    s.requests[1][0][SERVE_AWAY] = 6;
    s.requests[1][0][SERVE_MISS] = 8;
    json_t *j = status(), *up = server(j, 0), *away = server(j, 1), *unasked = server(j, 2);
    string(up, NULL, "state", "up");
    string(up, NULL, "why", NULL);
    number(up, NULL, "state_ms", 5);
    number(up, NULL, "connections", 2);
    number(up, NULL, "requests_total", 70);
    number(up, NULL, "errors_total", 3);
    string(away, NULL, "state", "away");
    string(away, NULL, "why", "timed out");
    number(away, NULL, "state_ms", 7000);
    number(away, NULL, "away_total", 6);
    string(unasked, NULL, "state", "unasked");
    assert_true(json_is_null(member(unasked, NULL, "state_ms")));
    json_decref(j);
}

#define EVERY 255

/* Each byte but NUL in each text from outside, and none of them is more than a text. */
static void hostile_texts(void **state)
{
    char every[EVERY + 1], as_utf8[2 * EVERY + 1];
    size_t n = 0;
    static char quoted[] = "\",\"ready\":true,\"x\":\"\\";
    char *const list[] = {quoted};
    (void)state;
    for (unsigned c = 1; c <= EVERY; c++) {
        every[c - 1] = (char)c;
        if (c >= 0x80)
            as_utf8[n++] = (char)(0xc0 | c >> 6);
        as_utf8[n++] = (char)(c < 0x80 ? c : 0x80 | (c & 0x3f));
    }
    every[EVERY] = as_utf8[n] = '\0';
    memset(&gen.ids, 0, sizeof gen.ids);
    (void)snprintf(s.facts.coordinator, sizeof s.facts.coordinator, "%s", every);
    (void)snprintf(s.facts.pool, sizeof s.facts.pool, "%s", quoted);
    (void)snprintf(s.facts.host, sizeof s.facts.host, "%s", every + 128);
    (void)snprintf(s.facts.identity, sizeof s.facts.identity, "%s", quoted);
    (void)snprintf(s.facts.page, sizeof s.facts.page, "%s", every);
    (void)snprintf(s.facts.why, sizeof s.facts.why, "%s", every);
    names_clear(&s.issuer.names);
    assert_int_equal(issuer_add(&s.issuer, &gen.base, "id:", list, 1, NULL), ERR_OK);
    s.facts.up = s.facts.serves = false;
    s.facts.era = UINT64_MAX;
    s.facts.skew_ms = -INT64_MAX;
    json_t *j = status();
    assert_true(json_is_false(member(j, NULL, "ready")));
    string(j, "coordinator", "url", as_utf8);
    string(j, "coordinator", "why", as_utf8);
    string(j, "pool", "name", quoted);
    string(json_array_get(member(j, NULL, "names"), 0), NULL, "name", quoted);
    json_decref(j);
}

/* Names that conf takes, and all of what is counted. */
static void the_longest_status(void **state)
{
    static char name[1024][101];
    char *list[1024];
    (void)state;
    for (int i = 0; i < 1024; i++) {
        memset(name[i], i % 2 ? '"' : '\\', 100);
        (void)snprintf(name[i], 5, "%04u", (unsigned)i % 10000);
        name[i][4] = '"';
        list[i] = name[i];
    }
    names_clear(&s.issuer.names);
    assert_int_equal(issuer_add(&s.issuer, &gen.base, "id:", list, 1024, NULL), ERR_OK);
    for (size_t i = 0; i < 1024; i++)
        s.issuer.names.prefix[0].entry[i].issued = UINT64_MAX;
    memset(s.requests, 0xff, sizeof s.requests);
    json_t *j = status();
    assert_int_equal(json_array_size(member(j, NULL, "names")), 1024);
    assert_true(strlen(text) < NET_OUT_MAX - 4096);
    json_decref(j);
}

static void what_does_not_fit_fails_the_buffer(void **state)
{
    (void)state;
    memset(text, 0, sizeof text);
    json_decref(status());
    size_t whole = strlen(text) - 64; /* figures of the process grow */
    for (size_t cap = 0; cap < whole; cap += 7) {
        struct buf b;
        buf_init(&b, text, cap);
        serve_put_status_json(&s, &b);
        assert_true(b.failed && b.n <= cap);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_well),           TEST(what_is_not_known),
        TEST(each_number_is_its_own), TEST(a_coordinator_that_refuses),
        TEST(servers_behind),         TEST(hostile_texts),
        TEST(the_longest_status),     TEST(what_does_not_fit_fails_the_buffer),
    };
    return cmocka_run_group_tests_name("serve/status_json", tests, NULL, NULL);
}
