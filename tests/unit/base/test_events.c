#include "base/events.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static void add(int64_t ms, const char *msg, const char *text)
{
    events_add(LOG_LVL_WARN, ms, ms + 1000, msg, span_str(text));
}

static struct event get(uint64_t back)
{
    struct event e;
    assert_true(events_get(events_latest() - back, &e));
    return e;
}

static void nothing_yet(void **state)
{
    (void)state;
    struct event e;
    assert_int_equal(events_latest(), 0);
    assert_false(events_get(0, &e));
    assert_false(events_get(1, &e));
}

static void latest_first(void **state)
{
    (void)state;
    add(1, "one", "a=1");
    add(2, "two", "");
    struct event e = get(0);
    assert_string_equal(e.msg, "two");
    assert_string_equal(e.text, "");
    e = get(1);
    assert_string_equal(e.msg, "one");
    assert_string_equal(e.text, "a=1");
    assert_int_equal(e.level, LOG_LVL_WARN);
    assert_int_equal(e.first_ms, 1);
    assert_int_equal(e.last_mono_ms, 1001);
    assert_int_equal(e.times, 1);
}

static void repeats_are_counted(void **state)
{
    (void)state;
    add(10, "down", "held=2");
    uint64_t serial = events_latest();
    add(20, "down", "held=2");
    add(30, "down", "held=2");
    assert_int_equal(events_latest(), serial);
    struct event e = get(0);
    assert_int_equal(e.times, 3);
    assert_int_equal(e.first_ms, 10);
    assert_int_equal(e.last_ms, 30);
    assert_int_equal(e.last_mono_ms, 1030);
    add(40, "down", "held=1");
    add(50, "up", "held=1");
    events_add(LOG_LVL_INFO, 60, 60, "up", SPAN("held=1"));
    add(70, "down", "held=2");
    assert_int_equal(events_latest(), serial + 4);
}

static void the_oldest_goes(void **state)
{
    (void)state;
    char text[32];
    struct event e;
    for (int i = 0; i < 3 * EVENTS_MAX; i++) {
        (void)snprintf(text, sizeof text, "i=%d", i);
        add(i, "line", text);
    }
    assert_string_equal(get(EVENTS_MAX - 1).text, "i=100");
    assert_string_equal(get(0).text, "i=149");
    assert_false(events_get(events_latest() - EVENTS_MAX, &e));
    assert_false(events_get(events_latest() + 1, &e));
}

static void long_texts_are_cut(void **state)
{
    (void)state;
    char text[2 * EVENT_TEXT_MAX];
    memset(text, 'x', sizeof text);
    events_add(LOG_LVL_INFO, 0, 0, "long", span_of(text, sizeof text));
    assert_int_equal(strlen(get(0).text), EVENT_TEXT_MAX - 1);
    events_add(LOG_LVL_INFO, 0, 0, "long", span_of(text, sizeof text));
    assert_int_equal(get(0).times, 2);
}

/* What the log writes, and what it only would have written. */
static void the_log_fills_it(void **state)
{
    (void)state;
    char why[1000] = "";
    uint64_t serial = events_latest();
    log_setup(LOG_LVL_ERROR, LOG_FMT_JSON);
    log_info("workerId held", kv_u64("worker", 7), kv_str("by", "a \"b\"\n"));
    struct event e = get(0);
    assert_string_equal(e.msg, "workerId held");
    assert_string_equal(e.text, "worker=7 by=\"a \\\"b\\\"\\u000a\"");
    assert_true(e.last_ms > INT64_C(1600000000000) && e.last_ms == e.first_ms);
    log_info("plain");
    assert_string_equal(get(0).text, "");
    log_write(LOG_LVL_DEBUG, "not kept", LOG_KVS());
    assert_int_equal(events_latest(), serial + 2);
    memset(why, 'y', sizeof why - 1);
    log_info("much", kv_str("why", why), kv_u64("held", 1));
    e = get(0);
    size_t n = strlen(e.text);
    assert_in_range(n, EVENT_TEXT_MAX - 20, EVENT_TEXT_MAX - 1);
    assert_string_equal(e.text + n - 4, " ...");
}

static void *hammer(void *arg)
{
    for (int64_t i = 0; i < 5000; i++)
        events_add(LOG_LVL_INFO, i, i, arg, SPAN("same=1"));
    return NULL;
}

static void threads(void **state)
{
    (void)state;
    static char a[] = "a", b[] = "b";
    pthread_t one, two;
    assert_int_equal(pthread_create(&one, NULL, hammer, a), 0);
    assert_int_equal(pthread_create(&two, NULL, hammer, b), 0);
    for (int i = 0; i < 5000; i++) {
        struct event e;
        if (events_get(events_latest(), &e))
            assert_true(e.times > 0 && e.msg);
    }
    assert_int_equal(pthread_join(one, NULL), 0);
    assert_int_equal(pthread_join(two, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_yet),
        cmocka_unit_test(latest_first),
        cmocka_unit_test(repeats_are_counted),
        cmocka_unit_test(the_oldest_goes),
        cmocka_unit_test(long_texts_are_cut),
        cmocka_unit_test(the_log_fills_it),
        cmocka_unit_test(threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
