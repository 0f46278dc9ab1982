#include "page_check.h"

#include "conf/conf.h"
#include "serve/serve.h"

#define NOW_MS (LAYOUT_EPOCH_DEFAULT_MS + 86400000)

static int64_t fake_us(struct clock *c)
{
    (void)c;
    return NOW_MS * 1000 + 250;
}

static struct clock fake = {fake_us, fake_us};
static struct serve s;
static struct snowflake_generator gen;
static struct net_service services[SERVE_PROTOCOLS];
static char text[NET_OUT_MAX + 1];

static const char *page(bool openmetrics)
{
    struct buf b;
    buf_init(&b, text, NET_OUT_MAX);
    serve_put_metrics(&s, &b, openmetrics);
    assert_false(b.failed);
    text[b.n] = '\0';
    return text;
}

/* ---- states -----------------------------------------------------------------------------------
 */

static bool has(const char *p, const char *line)
{
    size_t n = strlen(line);
    for (; p && *p; p = strchr(p, '\n') + 1)
        if (strncmp(p, line, n) == 0 && (p[n] == '\n' || line[n - 1] == ' ' || line[n - 1] == '{'))
            return true;
    return false;
}

static void present(const char *p, const char *line)
{
    if (!has(p, line))
        fail_msg("expected a line \"%s\" in:\n%s", line, p);
}

static int empty(void **state)
{
    (void)state;
    memset(&s, 0, sizeof s);
    memset(services, 0, sizeof services);
    s.clock = &fake;
    s.started_ms = NOW_MS - 1500;
    snowflake_generator_init(&gen, s.facts.why);
    return issuer_add(&s.issuer, &gen.base, "id:", NULL, 0, NULL) == ERR_OK ? 0 : -1;
}

static void fill_facts(struct serve_facts *f)
{
    f->answered = f->up = f->serves = true;
    strcpy(f->identity, "0123");
    f->era = 3;
    f->pool_free = 32760;
    f->pool_size = 32768;
    f->horizon_ms = 360000;
    f->first_horizon_ms = 30001;
    f->held = 2;
    f->tenure_start_ms = NOW_MS - 12345;
    f->skew_ms = -70;
    f->renewals_renewed = 11;
    f->renewals_again = 12;
    f->renewals_reasserted = 13;
    f->renewals_lost = 14;
    f->renewals_failed = 15;
    f->data_loss = 1;
    histogram_add(&f->coordinator_requests, 700, 3);
    histogram_add(&f->coordinator_requests, 3000001, 1);
}

static void fill_services(void)
{
    for (unsigned i = 0; i < SERVE_PROTOCOLS; i++) {
        services[i].name = serve_protocol_name((enum serve_protocol)i);
        services[i].connections = 1 + i;
        services[i].accepted = 10 + i;
        services[i].refused = 20 + i;
        histogram_add(&services[i].duration, 10 * (i + 1), 2);
        s.services[i] = &services[i];
    }
}

static int full(void **state)
{
    static char one[] = "orders", two[] = "a\"b\\c";
    char *const list[] = {one, two};
    if (empty(state) < 0)
        return -1;
    names_clear(&s.issuer.names);
    snowflake_generator_start(&gen, LAYOUT_EPOCH_DEFAULT_MS, &layout_usual, 15, 1);
    s.issuer.waited_us = 1000001;
    struct snowflake_stats *stats = &gen.ids.stats;
    stats->rotations = 4;
    stats->exhausted = 5;
    stats->rollbacks = 6;
    stats->peak = 1024;
    histogram_add(&stats->rollback, 20000, 1);
    fill_facts(&s.facts);
    fill_services();
    bool held = snowflake_grant(&gen.ids, 1, 300, NOW_MS - 1, NOW_MS + 3599500, NULL) &&
                snowflake_grant(&gen.ids, 2, 32767, NOW_MS - 1, NOW_MS + 9999999, NULL);
    uint64_t id;
    int64_t until;
    if (!held || snowflake_next(&gen.ids, NOW_MS, 1, &id, &until) != SNOWFLAKE_OK ||
        issuer_add(&s.issuer, &gen.base, "id:", list, 2, NULL) != ERR_OK)
        return -1;
    s.issuer.names.prefix[0].entry[0].issued = 18000000000000000000u / 2;
    serve_count(&s, SERVE_HTTP, 3, SERVE_OK);
    serve_count(&s, SERVE_HTTP, 3, SERVE_OK);
    serve_count(&s, SERVE_HTTP, 7, SERVE_MISS);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    names_clear(&s.issuer.names);
    return 0;
}

/* ---- tests ------------------------------------------------------------------------------------
 */

static void values(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "sidflake_build_info{version=\"" SIDFLAKE_VERSION "\"} 1",
        "sidflake_ids_issued_total{name=\"orders\"} 9000000000000000000",
        "sidflake_ids_issued_total{name=\"a\\\"b\\\\c\"} 0",
        "sidflake_requests_total{protocol=\"http\",command=\"id\",result=\"ok\"} 2",
        "sidflake_requests_total{protocol=\"http\",command=\"other\",result=\"miss\"} 1",
        "sidflake_request_duration_seconds_bucket{protocol=\"redis\",le=\"1e-05\"} 0",
        "sidflake_request_duration_seconds_bucket{protocol=\"redis\",le=\"2e-05\"} 2",
        "sidflake_request_duration_seconds_sum{protocol=\"redis\"} 0.00004",
        "sidflake_request_duration_seconds_count{protocol=\"http\"} 2",
        "sidflake_connections{protocol=\"memcached\"} 1",
        "sidflake_connections_accepted_total{protocol=\"redis\"} 11",
        "sidflake_connections_refused_total{protocol=\"http\"} 22",
        "sidflake_worker_id{slot=\"0\"} 300",
        "sidflake_worker_id{slot=\"1\"} 32767",
        "sidflake_worker_range_seconds{slot=\"0\",state=\"active\"} 3599.5",
        "sidflake_worker_range_seconds{slot=\"1\",state=\"spare\"} ",
        "sidflake_workers_held 2",
        "sidflake_reservation_seconds 3599.5",
        "sidflake_tenure_age_seconds 12.345",
        "sidflake_pool_era 3",
        "sidflake_renewals_total{result=\"renewed\"} 11",
        "sidflake_renewals_total{result=\"again\"} 12",
        "sidflake_renewals_total{result=\"reasserted\"} 13",
        "sidflake_renewals_total{result=\"lost\"} 14",
        "sidflake_renewals_total{result=\"failed\"} 15",
        "sidflake_rotations_total 4",
        "sidflake_clock_rollbacks_total 6",
        "sidflake_clock_rollback_seconds_bucket{le=\"0.01\"} 0",
        "sidflake_clock_rollback_seconds_bucket{le=\"0.02\"} 1",
        "sidflake_clock_rollback_seconds_sum 0.02",
        "sidflake_clock_wait_seconds_total 1.000001",
        "sidflake_clock_skew_seconds -0.07",
        "sidflake_sequence_exhausted_total 5",
        "sidflake_sequence_peak 1024",
        "sidflake_coordinator_up 1",
        "sidflake_coordinator_answers 1",
        "sidflake_coordinator_request_seconds_bucket{le=\"2.0\"} 3",
        "sidflake_coordinator_request_seconds_bucket{le=\"+Inf\"} 4",
        "sidflake_coordinator_request_seconds_sum 3.002101",
        "sidflake_coordinator_request_seconds_count 4",
        "sidflake_coordinator_data_loss_total 1",
        "sidflake_pool_free 32760",
        "sidflake_pool_horizon_seconds 360",
        "sidflake_pool_first_horizon_seconds 30.001",
        "sidflake_lifetime_seconds 274791506.943",
        "process_start_time_seconds 1767311998.5",
        "process_cpu_seconds_total ",
        "process_open_fds ",
        "process_max_fds ",
        "process_virtual_memory_bytes ",
        "process_resident_memory_bytes ",
        "process_threads ",
    };
    for (int om = 0; om < 2; om++) {
        const char *p = page(om);
        page_check(p, om);
        for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
            present(p, lines[i]);
        assert_null(strstr(p, "\"refused\""));
        assert_null(strstr(p, "name=\"other\"")); /* any other name is a miss */
    }
}

static void dialects(void **state)
{
    (void)state;
    const char *p = page(false);
    present(p, "# TYPE sidflake_rotations_total counter");
    present(p, "# HELP sidflake_rotations_total ");
    present(p, "# TYPE sidflake_build_info gauge");
    assert_null(strstr(p, "# UNIT"));
    p = page(true);
    present(p, "# TYPE sidflake_rotations counter");
    present(p, "# HELP sidflake_rotations ");
    present(p, "# TYPE sidflake_build info");
    present(p, "# UNIT sidflake_clock_wait_seconds seconds");
    present(p, "# UNIT process_resident_memory_bytes bytes");
    assert_string_equal(p + strlen(p) - 7, "\n# EOF\n");
}

/* A coordinator that answers and refuses, for long, is one that an alert has to go off for. */
static void a_coordinator_that_refuses_is_not_up(void **state)
{
    (void)state;
    s.facts.serves = false;
    present(page(false), "sidflake_coordinator_up 0");
    present(page(false), "sidflake_coordinator_answers 1");
    s.facts.up = false;
    present(page(false), "sidflake_coordinator_answers 0");
    s.facts.pool_free = 0; /* static:N: none is ever free, and nothing is wrong */
    s.facts.pool_size = 1;
    assert_null(strstr(page(false), "\nsidflake_pool_free"));
    s.facts.pool_size = 32768; /* a restart while the coordinator is away */
    s.facts.era = 0;
    assert_null(strstr(page(false), "\nsidflake_pool_"));
}

/* A pool that a state page tells of; the coordinator has not said a word yet. */
static void of_a_state_page_alone_nothing_is_free_or_not(void **state)
{
    (void)state;
    s.facts.era = s.facts.pool_free = 0;
    assert_null(strstr(page(false), "\nsidflake_pool_free"));
    assert_null(strstr(page(false), "\nsidflake_pool_era"));
    assert_null(strstr(page(false), "\nsidflake_pool_horizon"));
}

/* What is not known is absent; what has not happened is 0. */
static void nothing_known(void **state)
{
    (void)state;
    static const char *const absent[] = {
        "sidflake_worker_id",
        "sidflake_worker_range_seconds",
        "sidflake_reservation_seconds",
        "sidflake_tenure_age_seconds",
        "sidflake_pool_era",
        "sidflake_clock_skew_seconds",
        "sidflake_pool_",
        "sidflake_requests_total",
        "sidflake_lifetime_seconds",
        "sidflake_request_duration_seconds",
        "sidflake_connections",
    };
    static const char *const zero[] = {
        "sidflake_ids_issued_total{name=\"other\"} 0",
        "sidflake_workers_held 0",
        "sidflake_coordinator_up 0",
        "sidflake_rotations_total 0",
        "sidflake_clock_wait_seconds_total 0",
        "sidflake_renewals_total{result=\"failed\"} 0",
        "sidflake_coordinator_request_seconds_sum 0",
        "sidflake_coordinator_request_seconds_bucket{le=\"+Inf\"} 0",
    };
    for (int om = 0; om < 2; om++) {
        const char *p = page(om);
        page_check(p, om);
        for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
            assert_null(strstr(p, absent[i]));
        for (size_t i = 0; i < sizeof zero / sizeof *zero; i++)
            present(p, zero[i]);
    }
}

/* Each bound is written so that it reads back as what it is, and in the canonical form. */
static void bounds(void **state)
{
    (void)state;
    static const char *const le[HISTOGRAM_BUCKETS] = {
        "1e-06", "2e-06", "5e-06", "1e-05", "2e-05", "5e-05", "0.0001", "0.0002", "0.0005", "0.001",
        "0.002", "0.005", "0.01",  "0.02",  "0.05",  "0.1",   "0.2",    "0.5",    "1.0",    "2.0",
    };
    const char *p = page(true);
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        char line[128];
        double us = strtod(le[i], NULL) * 1e6;
        assert_int_equal((uint32_t)(us + 0.5), histogram_bounds_us[i]);
        (void)snprintf(line, sizeof line, "sidflake_clock_rollback_seconds_bucket{le=\"%s\"} ",
                       le[i]);
        present(p, line);
    }
}

/* Every command of every protocol has a label of its own. */
static void all_commands(void **state)
{
    (void)state;
    for (unsigned p = 0; p < SERVE_PROTOCOLS; p++)
        for (unsigned i = 0; i < SERVE_COMMANDS; i++)
            for (unsigned r = 0; r < SERVE_RESULTS; r++)
                s.requests[p][i][r] = 1;
    const char *p = page(false);
    page_check(p, false);
    present(p, "sidflake_requests_total{protocol=\"http\",command=\"metrics\",result=\"ok\"} 1");
    present(p, "sidflake_requests_total{protocol=\"memcached\",command=\"get\",result=\"miss\"} 1");
    present(p, "sidflake_requests_total{protocol=\"redis\",command=\"get\",result=\"failed\"} 1");
}

static void hostile_times(void **state)
{
    (void)state;
    s.facts.tenure_start_ms = INT64_MIN + 1;
    s.facts.skew_ms = INT64_MIN;
    const char *p = page(true);
    page_check(p, true);
    assert_null(strstr(p, "sidflake_tenure_age_seconds"));
    assert_null(strstr(p, "sidflake_clock_skew_seconds"));
    s.facts.skew_ms = INT64_MIN + 1;
    present(page(true), "sidflake_clock_skew_seconds -9223372036854775.807");
}

/* Past the ceiling, the reservation is negative: how long ago it ended. */
static void past_the_ceiling(void **state)
{
    (void)state;
    gen.ids.member[0].hi = NOW_MS - 1;
    present(page(false), "sidflake_reservation_seconds -0.001");
}

static void many_names(void **state)
{
    (void)state;
    static char name[1024][201];
    char *list[1024];
    for (int i = 0; i < 1024; i++) {
        (void)snprintf(name[i], sizeof name[i], "%0200d", i);
        list[i] = name[i];
    }
    names_clear(&s.issuer.names);
    assert_int_equal(issuer_add(&s.issuer, &gen.base, "", list, 1024, NULL), ERR_OK);
    page_check(page(true), true);
}

/* All that there can be: names that conf takes, all of what is counted, the longest numbers. */
static void the_longest_page(void **state)
{
    enum {
        NAMES = 1024,
        LENGTH = (CONF_NAMES_BYTES_MAX / NAMES + 4) / 2 /* of four digits and '"' */
    };
    static char name[NAMES][LENGTH + 1];
    char *list[NAMES];
    (void)state;
    for (int i = 0; i < NAMES; i++) {
        memset(name[i], '"', LENGTH);
        (void)snprintf(name[i], 5, "%04u", (unsigned)i % 10000);
        name[i][4] = '"';
        list[i] = name[i];
    }
    names_clear(&s.issuer.names);
    assert_int_equal(issuer_add(&s.issuer, &gen.base, "", list, NAMES, NULL), ERR_OK);
    for (size_t i = 0; i < NAMES; i++)
        s.issuer.names.prefix[0].entry[i].issued = INT64_MAX;
    memset(s.requests, 0x7f, sizeof s.requests);
    for (int om = 0; om < 2; om++) {
        const char *p = page(om);
        page_check(p, om);
        assert_true(strlen(p) < NET_OUT_MAX - 4096);
    }
}

/* A page that does not fit fails, at whatever byte. */
static void no_room(void **state)
{
    (void)state;
    size_t n = strlen(page(true));
    for (size_t cap = 0; cap + 40 < n; cap += 97) {
        char *tight = malloc(cap ? cap : 1);
        struct buf b;
        assert_non_null(tight);
        buf_init(&b, tight, cap);
        serve_put_metrics(&s, &b, true);
        assert_true(b.failed);
        free(tight);
    }
}

#define FULL(f)  cmocka_unit_test_setup_teardown(f, full, tear_down)
#define EMPTY(f) cmocka_unit_test_setup_teardown(f, empty, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FULL(values),
        FULL(dialects),
        FULL(of_a_state_page_alone_nothing_is_free_or_not),
        EMPTY(nothing_known),
        FULL(a_coordinator_that_refuses_is_not_up),
        EMPTY(bounds),
        FULL(all_commands),
        FULL(hostile_times),
        FULL(past_the_ceiling),
        FULL(many_names),
        FULL(the_longest_page),
        FULL(no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
