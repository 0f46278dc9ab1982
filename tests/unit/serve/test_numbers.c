/*
 * Numbers by template over Redis: requests that are known again by their bytes are
 * answered as any others.
 */
#include "ids/number_generator.h"
#include "support/fake_supply.h"
#include "unit/serve/redis_rig.h"

static struct template templates[2];
static struct fake_sequence sequences[] = {
    {.name = "few", .start = 1, .increment = 1, .template = &templates[0]},
    {.name = "area", .start = 1, .increment = 1, .template = &templates[1]},
};

static struct sequence_table table;
static struct number_table numbers;
static struct fake_supply supply;

static int begin(void **state)
{
    static const char *const texts[] = {"F@{seq,width=3}",
                                        "@{arg,a,width=1,default=x}-@{seq,width=8}"};
    struct template_frame f = {.name = SPAN("few"), .first = 1, .last = TEMPLATE_NUMBER_MAX};
    struct rig *r = rig_new(NULL);
    struct err e;
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(template_parse(&templates[i], span_str(texts[i]), &f, &e), ERR_OK);
    fake_supply_table(&table, 16);
    number_table_init(&numbers, &table, &r->gen.base, NULL, "no:");
    supply = (struct fake_supply){.table = &table,
                                  .sequence = sequences,
                                  .nsequences = sizeof sequences / sizeof *sequences,
                                  .time_ms = 100 * FAKE_DAY_MS};
    assert_int_equal(issuer_add(&r->serve.issuer, &table.base, "seq:", NULL, 0, &e), ERR_OK);
    assert_int_equal(issuer_add(&r->serve.issuer, &numbers.base, "no:", NULL, 0, &e), ERR_OK);
    *state = r;
    return 0;
}

static int end(void **state)
{
    rig_free(*state);
    number_table_clear(&numbers);
    sequence_table_clear(&table);
    return 0;
}

static void check(struct rig *r, const char *words, const char *expected)
{
    enum net_verdict v = rig_ask(r, words);
    for (int i = 0; i < 10 && v == NET_WAIT; i++) {
        fake_supply_serve(&supply, clock_mono_ms(&r->clock));
        v = rig_pump(r);
    }
    assert_int_equal(v, NET_MORE);
    rig_expect(r, expected);
    fake_supply_serve(&supply, clock_mono_ms(&r->clock));
}

static unsigned known(const struct rig *r)
{
    const struct rds_service *svc = (const struct rds_service *)(const void *)r->svc;
    unsigned n = 0;
    for (unsigned i = 0; i < RECENT_REQUESTS; i++)
        n += svc->recent.request[i].n != SIZE_MAX;
    return n;
}

static void up_to_the_width_and_no_further(void **state)
{
    struct rig *r = *state;
    char text[32];
    for (int n = 1; n <= 999; n++) {
        (void)snprintf(text, sizeof text, "$4\r\nF%03d\r\n", n);
        check(r, n % 10 ? "GET no:few" : "LPOP no:few", text);
        assert_int_equal(known(r), 1);
    }
    for (int i = 0; i < 3; i++)
        check(r, "GET no:few",
              "-ERR used up: the template of the sequence few takes numbers up to 999\r\n");
    check(r, "GET seq:few", "$4\r\n1000\r\n");
}

static void arguments_are_the_requests_own(void **state)
{
    struct rig *r = *state;
    check(r, "GET no:area", "$10\r\nx-00000001\r\n");
    check(r, "GET no:area?a=b", "$10\r\nb-00000002\r\n");
    check(r, "GET no:area", "$10\r\nx-00000003\r\n");
    check(r, "GET no:area?a=c", "$10\r\nc-00000004\r\n");
    check(r, "GET no:area?a=b", "$10\r\nb-00000005\r\n");
    check(r, "GET no:area#1", "$10\r\nx-00000006\r\n");
    assert_int_equal(known(r), 2);
}

static void within_a_transaction_it_is_queued(void **state)
{
    struct rig *r = *state;
    check(r, "GET no:few", "$4\r\nF001\r\n");
    check(r, "MULTI", "+OK\r\n");
    check(r, "GET no:few", "+QUEUED\r\n");
    check(r, "EXEC", "*1\r\n$4\r\nF002\r\n");
    check(r, "GET no:few", "$4\r\nF003\r\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(up_to_the_width_and_no_further, begin, end),
        cmocka_unit_test_setup_teardown(arguments_are_the_requests_own, begin, end),
        cmocka_unit_test_setup_teardown(within_a_transaction_it_is_queued, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
