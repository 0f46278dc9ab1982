/*
 * A kind of generator that no protocol and nothing that observes has heard of: what all of them
 * make of it. There are two of it beside the IDs, "left" and "right", which count in steps of 10.
 */
#include "serve/memcached/memcached.h"
#include "serve/watch/health.h"
#include "unit/serve/login.h"
#include "unit/serve/redis_rig.h"

struct steps {
    struct generator base;
    int64_t latest;
    unsigned cause; /* that every request comes to */
};

static struct steps left, right;
static struct net_service *memcached, *http;

static const struct steps *of(const struct generator *g)
{
    return (const struct steps *)g;
}

static void say(const struct generator *g, struct buf *b)
{
    buf_put_str(b, "no step of ");
    buf_put_str(b, g->label);
}

static const struct generator_cause causes[] = {
    {ISSUE_OK},
    {ISSUE_PARK},
    {ISSUE_LOADING, .say = say, .check = "steps"},
    {ISSUE_AGAIN, .say = say},
    {ISSUE_NEVER, .say = say},
    {ISSUE_AGAIN, .say = say, .waits = true},
};

static unsigned next(struct generator *g, struct generator_ask *ask, struct generator_run *out)
{
    struct steps *s = (struct steps *)g;
    if (s->cause) {
        ask->until_ms = ask->now_ms + 5;
        return s->cause;
    }
    *out = (struct generator_run){s->latest + 10, 10, ask->n};
    s->latest += 10 * (int64_t)ask->n;
    return 0;
}

static unsigned refuse(struct generator *g, struct generator_ask *ask, struct generator_run *out)
{
    (void)g;
    (void)out;
    ask->until_ms = ask->now_ms;
    return 2;
}

static uint32_t run(const struct generator *g, uint32_t batch)
{
    (void)g;
    return batch + 1;
}

static unsigned peek(struct generator *g, int64_t now_ms)
{
    (void)now_ms;
    return of(g)->cause;
}

static int64_t example(const struct generator *g, int64_t now_ms)
{
    (void)now_ms;
    return of(g)->latest + 10;
}

static void count(const struct generator *g, struct generator_counts *out)
{
    *out = (struct generator_counts){.issued = (uint64_t)of(g)->latest / 10, .exhausted = 1};
}

static int64_t latest(const struct generator *g, int64_t now_ms)
{
    (void)now_ms;
    return of(g)->latest;
}

static int64_t unknown(const struct generator *g, int64_t now_ms)
{
    (void)g;
    (void)now_ms;
    return GENERATOR_UNKNOWN;
}

static const struct generator_figure figures[] = {
    {.metric = "sidflake_steps_latest",
     .type = GENERATOR_GAUGE,
     .unit = "",
     .help = "Latest step.",
     .decimals = 1,
     .stat = "latest",
     .info = "latest",
     .member = "latest",
     .page = "latest",
     .value = latest},
    {.info = "end", .stat = "end", .member = "end", .page = "end", .value = unknown},
    {.info = "again", .value = latest},
};

static bool far(const struct generator *g, int64_t now_ms, struct buf *b)
{
    (void)now_ms;
    buf_put_str(b, g->label);
    buf_put_str(b, " is far");
    return of(g)->latest > 1000;
}

static const struct generator_warning warnings[] = {{"far", far}};

static const struct generator_kind steps_kind = {
    .name = "step",
    .section = "Steps",
    .causes = causes,
    .next = next,
    .some = next,
    .run = run,
    .peek = peek,
    .example = example,
    .count = count,
    .figures = figures,
    .warnings = warnings,
    .ncauses = sizeof causes / sizeof *causes,
    .nfigures = sizeof figures / sizeof *figures,
    .nwarnings = 1,
};

static int begin(void **state)
{
    struct rig *r = rig_new(NULL);
    struct err e;
    left = (struct steps){.base = {.kind = &steps_kind, .label = "left"}};
    right = (struct steps){.base = {.kind = &steps_kind, .label = "right"}};
    assert_int_equal(issuer_add(&r->serve.issuer, &left.base, "left:", NULL, 0, &e), ERR_OK);
    assert_int_equal(issuer_add(&r->serve.issuer, &right.base, "right:", NULL, 0, &e), ERR_OK);
    r->serve.services[SERVE_REDIS] = r->svc;
    r->serve.services[SERVE_MEMCACHED] = memcached = protocol_memcached.make(&r->serve);
    r->serve.services[SERVE_HTTP] = http = protocol_http.make(&r->serve);
    assert_true(memcached && http);
    *state = r;
    return 0;
}

static int end(void **state)
{
    free(memcached);
    free(http);
    rig_free(*state);
    return 0;
}

/* What memcached, to eve, or a service answers to the only request of a connection. */
static const char *answer_to(struct rig *r, struct net_service *svc, const struct access *eve,
                             const char *request)
{
    static char text[NET_OUT_MAX];
    struct buf out;
    void *session = calloc(1, svc->session_size);
    assert_non_null(session);
    if (eve)
        ((struct mcd_session *)session)->access = *eve;
    buf_init(&out, text, sizeof text - 1);
    struct net_turn turn = {.clock = &r->clock, .wall_ms = RIG_MS, .quota = UINT32_MAX};
    struct net_step step = svc->serve(svc, session, span_str(request), &turn, &out);
    assert_true(step.verdict == NET_DONE || step.verdict == NET_CLOSE);
    text[out.n] = '\0';
    if (svc->close)
        svc->close(svc, session);
    free(session);
    return text;
}

static const char *answer(struct rig *r, struct net_service *svc, const char *request)
{
    return answer_to(r, svc, NULL, request);
}

static void has(const char *text, const char *what)
{
    if (!strstr(text, what))
        fail_msg("expected \"%s\" in:\n%s", what, text);
}

/* ---- requests ---------------------------------------------------------------------------------
 */

static void numbers_go_in_strides_and_are_counted(void **state)
{
    struct rig *r = *state;
    rig_check(r, "GET left:x", "$2\r\n10\r\n");
    rig_check(r, "GET right:x", "$2\r\n10\r\n");
    rig_check(r, "INCRBY left:x 3", ":40\r\n");
    rig_check(r, "LPOP left:x 2", "*2\r\n$2\r\n50\r\n$2\r\n60\r\n");
    rig_check(r, "INCRBY left:x 102",
              "-ERR value is not an integer or out of range: expected 1 to 101, found 102\r\n");
    rig_check(r, "INCRBY left:x 101", ":1070\r\n");
    rig_check(r, "MGET right:x other id:x", rig_ids("*3\r\n$2\r\n20\r\n$-1\r\n", 0, 1));
    assert_string_equal(answer(r, memcached, "incr left:x 2\r\n"), "1090\r\n");
    assert_string_equal(answer(r, memcached, "get right:x left:y\r\n"),
                        "VALUE right:x 0 2\r\n30\r\nVALUE left:y 0 4\r\n1100\r\nEND\r\n");
    assert_string_equal(answer(r, memcached, "mg left:x s\r\n"), "HD s4\r\n");
    has(answer(r, http, "GET /v1/step/x?n=2 HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        "\r\n\r\n1110\n1120\n");
    struct names_prefix *p = r->serve.issuer.names.prefix;
    assert_int_equal(p[0].other.issued, 1);
    assert_int_equal(p[1].other.issued, 112);
    assert_int_equal(p[2].other.issued, 3);
    struct generator_counts sum;
    generators_count(r->serve.issuer.generators, &sum);
    assert_int_equal(sum.issued, 116);
}

static void a_refusal_is_told_by_its_class(void **state)
{
    static const struct {
        unsigned cause;
        const char *redis, *memcached;
    } rows[] = {{2, "-LOADING no step of left\r\n", "SERVER_ERROR no step of left\r\n"},
                {3, "-TRYAGAIN no step of left\r\n", "CLIENT_ERROR no step of left\r\n"},
                {4, "-ERR no step of left\r\n", "CLIENT_ERROR no step of left\r\n"}};
    struct rig *r = *state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        left.cause = rows[i].cause;
        rig_check(r, "GET left:x", rows[i].redis);
        rig_check(r, "INCRBY left:x 2", rows[i].redis);
        rig_begins(r, "GET right:x", "$2\r\n"); /* the other one goes on */
        assert_string_equal(answer(r, memcached, "get left:x\r\n"), rows[i].memcached);
        const char *page = answer(r, http, "GET /v1/step/x HTTP/1.1\r\nHost: localhost\r\n\r\n");
        has(page, "HTTP/1.1 503 ");
        has(page, "\r\n\r\nno step of left\n");
    }
    assert_int_equal(r->serve.issuer.names.prefix[1].other.issued, 0);
}

/* However much it looks like one. */
static void another_kind_is_never_taken_for_ids(void **state)
{
    static struct snowflake_generator lookalike;
    struct rig *r = *state;
    struct err e;
    static struct generator_kind none;
    none = steps_kind;
    none.next = refuse;
    lookalike = r->gen;
    lookalike.base = (struct generator){.kind = &none, .label = "any"};
    assert_int_equal(issuer_add(&r->serve.issuer, &lookalike.base, "any:", NULL, 0, &e), ERR_OK);
    rig_begins(r, "GET id:x", "$"); /* by now it is known that this millisecond has more */
    lookalike.ids = r->gen.ids;
    rig_check(r, "GET any:x", "-LOADING no step of any\r\n");
}

/* What only queues waits for its time without a limit, what waits does so up to max_wait. */
static void who_waits(void **state)
{
    struct rig *r = *state;
    left.cause = 1;
    r->turn.waited_us = 10 * r->serve.issuer.max_wait_us;
    assert_int_equal(rig_ask(r, "GET left:x"), NET_QUEUE);
    assert_true(r->step.until_ms == r->turn.wall_ms + 5);
    left.cause = 5;
    r->turn.waited_us = 0;
    assert_int_equal(rig_pump(r), NET_WAIT);
    assert_true(r->step.until_ms == r->turn.wall_ms + 5);
    r->turn.waited_us = r->serve.issuer.max_wait_us;
    assert_int_equal(rig_pump(r), NET_MORE);
    rig_expect(r, "-TRYAGAIN no step of left\r\n");
    assert_int_equal(r->serve.issuer.waited_us, 0); /* no clock was waited for */
}

/* ---- what is shown ----------------------------------------------------------------------------
 */

static void its_figures_are_shown(void **state)
{
    static char page[1 << 20];
    struct rig *r = *state;
    struct buf out;
    left.latest = 120;
    rig_check(r, "INFO steps",
              "$60\r\n# Steps\r\nleft:latest=120,again=120\r\nright:latest=0,again=0\r\n\r\n");
    assert_string_equal(answer(r, memcached, "stats steps\r\n"),
                        "STAT left:latest 120\r\nSTAT right:latest 0\r\nEND\r\n");
    assert_null(strstr(answer(r, memcached, "stats\r\n"), "latest"));

    buf_init(&out, page, sizeof page - 1);
    serve_put_metrics(&r->serve, &out, false);
    page[out.n] = '\0';
    has(page, "# HELP sidflake_steps_latest Latest step.\n# TYPE sidflake_steps_latest gauge\n"
              "sidflake_steps_latest{name=\"left\"} 12\nsidflake_steps_latest{name=\"right\"} 0\n");
    assert_null(strstr(strstr(page, "# HELP sidflake_steps") + 1, "# HELP sidflake_steps"));
    has(page, "sidflake_ids_issued_total{name=\"other\"} 0\n"
              "sidflake_ids_issued_total{name=\"other\",prefix=\"left:\"} 0\n");
    has(page, "sidflake_sequence_exhausted_total 2\n");

    buf_init(&out, page, sizeof page - 1);
    serve_put_status_json(&r->serve, &out);
    page[out.n] = '\0';
    has(page, ",\"Steps\":[{\"name\":\"left\",\"latest\":120,\"end\":null},"
              "{\"name\":\"right\",\"latest\":0,\"end\":null}]}\n");
    has(page, "{\"name\":\"other\",\"prefix\":\"left:\",\"issued_total\":0}");

    buf_init(&out, page, sizeof page - 1);
    serve_put_status(&r->serve, "0", &out);
    page[out.n] = '\0';
    has(page, "<dt>left</dt><dd>latest 120</dd>\n<dt>left</dt><dd>end \xe2\x80\x93</dd>\n"
              "<dt>right</dt><dd>latest 0</dd>\n");
}

/* How many checks fail, all of them of this name. */
static unsigned failing(const struct serve *s, struct refusal ready, const char *name)
{
    struct health_check c;
    unsigned n = 0;
    for (size_t i = 0; health_check(s, i, ready, &c); i++) {
        if (c.fails)
            assert_string_equal(c.name, name);
        n += c.fails;
    }
    return n;
}

static void its_health_is_told(void **state)
{
    struct rig *r = *state;
    const struct serve *s = &r->serve;
    struct history_sample live;
    struct health h;
    serve_sample_now(s, &live);
    right.cause = 3; /* no check of its own: the sidecar is ready */
    right.latest = 1010;
    health_judge(s, RIG_MS, &live, &h);
    assert_null(h.ready.by);
    assert_string_equal(h.finding[h.n - 1].text, "right is far");
    assert_int_equal(failing(s, h.ready, ""), 0);
    left.cause = 2;
    health_judge(s, RIG_MS, &live, &h);
    assert_ptr_equal(h.ready.by, &left.base);
    assert_string_equal(h.finding[0].text, "no step of left");
    assert_int_equal(failing(s, h.ready, "steps"), 1); /* the other one has it, too */
}

/* However many there are, what is found fits. */
static void more_warnings_than_findings(void **state)
{
    static struct steps many[2 * HEALTH_FINDINGS_MAX];
    struct rig *r = *state;
    struct history_sample live;
    struct health h;
    for (size_t i = 0; i < sizeof many / sizeof *many; i++) {
        many[i] = left;
        many[i].latest = 1010;
        many[i].base.after = i > 0 ? &many[i - 1].base : NULL;
    }
    right.base.after = &many[sizeof many / sizeof *many - 1].base;
    serve_sample_now(&r->serve, &live);
    health_judge(&r->serve, RIG_MS, &live, &h);
    assert_int_equal(h.n, HEALTH_FINDINGS_MAX);
}

/* ---- of IDs -----------------------------------------------------------------------------------
 */

/* Of each generator the workerId that lasts longest, of all of them the one that ends first. */
static void how_long_numbers_can_be_had(void **state)
{
    static struct snowflake_generator other;
    struct rig *r = *state;
    struct err e;
    const struct generator *list = r->serve.issuer.generators; /* left and right have no workerId */
    assert_int_equal(generators_ceiling(list), RIG_MS + 3600000);
    assert_int_equal(generators_until(list), RIG_MS + 3600000);
    assert_true(
        snowflake_grant(&r->gen.ids, 2, 2, RIG_MS - 1, RIG_MS + 4000000, NULL)); /* a spare */
    assert_int_equal(generators_ceiling(list), RIG_MS + 3600000);
    assert_int_equal(generators_until(list), RIG_MS + 4000000);

    snowflake_generator_init(&other, r->serve.facts.why);
    snowflake_generator_start(&other, LAYOUT_EPOCH_DEFAULT_MS, &layout_usual, 15, 2);
    assert_int_equal(issuer_add(&r->serve.issuer, &other.base, "other:", NULL, 0, &e), ERR_OK);
    assert_int_equal(generators_ceiling(list), RIG_MS + 3600000); /* it has none, and so no end */
    assert_int_equal(generators_until(list), RIG_MS + 4000000);
    assert_true(snowflake_grant(&other.ids, 1, 3, RIG_MS - 1, RIG_MS + 9, NULL));
    assert_true(snowflake_grant(&other.ids, 2, 4, RIG_MS - 1, RIG_MS + 8, NULL));
    assert_int_equal(generators_ceiling(list), RIG_MS + 9);
    assert_int_equal(generators_until(list), RIG_MS + 9);
    int64_t last;
    assert_true(snowflake_revoke(&r->gen.ids, 1, &last) && snowflake_revoke(&r->gen.ids, 2, &last));
    assert_true(snowflake_revoke(&other.ids, 1, &last) && snowflake_revoke(&other.ids, 2, &last));
    assert_int_equal(generators_ceiling(list), 0);
    assert_int_equal(generators_until(list), 0);
}

/* As he is refused their numbers. */
static void a_user_is_told_of_those_that_he_may_have(void **state)
{
    struct rig *r = *state;
    login_begin(&r->serve);
    login_replace(&r->serve, "eve:" LOGIN_HASH ":names=x,le*\nann:" LOGIN_HASH "\n");
    struct access eve = {.mode = ACCESS_REQUIRED,
                         .user = auth_user_named(r->serve.auth, SPAN("eve"))->id},
                  ann = {.mode = ACCESS_REQUIRED,
                         .user = auth_user_named(r->serve.auth, SPAN("ann"))->id};
    struct access *redis = &((struct rds_session *)r->session)->access;
    *redis = eve;
    rig_check(r, "INFO steps", "$32\r\n# Steps\r\nleft:latest=0,again=0\r\n\r\n");
    assert_string_equal(answer_to(r, memcached, &eve, "stats steps\r\n"),
                        "STAT left:latest 0\r\nEND\r\n");
    *redis = ann;
    rig_check(r, "INFO steps",
              "$56\r\n# Steps\r\nleft:latest=0,again=0\r\nright:latest=0,again=0\r\n\r\n");
    has(answer_to(r, memcached, &ann, "stats steps\r\n"), "right:latest");
    *redis = (struct access){.mode = ACCESS_OFF};
    login_end(&r->serve);
}

/* Every refusal has a text, and each that a client can wait out a time or a grant to wait for. */
static void causes_of_ids(void **state)
{
    struct rig *r = *state;
    const struct generator_kind *k = r->gen.base.kind;
    assert_int_equal(k->causes[0].status, ISSUE_OK);
    for (unsigned i = 1; i < k->ncauses; i++) {
        bool refusal = k->causes[i].status > ISSUE_PARK;
        assert_true((k->causes[i].say != NULL) == refusal);
        assert_true((k->causes[i].check != NULL) ==
                    (refusal && k->causes[i].status != ISSUE_WRONG)); /* a mistake of who asked */
        assert_true((refusal_text((struct refusal){&r->gen.base, i})[0] != '\0') == refusal);
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(numbers_go_in_strides_and_are_counted),
        TEST(a_refusal_is_told_by_its_class),
        TEST(another_kind_is_never_taken_for_ids),
        TEST(who_waits),
        TEST(its_figures_are_shown),
        TEST(a_user_is_told_of_those_that_he_may_have),
        TEST(its_health_is_told),
        TEST(more_warnings_than_findings),
        TEST(how_long_numbers_can_be_had),
        TEST(causes_of_ids),
    };
    return cmocka_run_group_tests_name("serve/kinds", tests, NULL, NULL);
}
