/* Requests known again by their bytes. */
#include "serve/recent.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct recent recent;
static struct names_entry name;

static struct span line(char key)
{
    static char text[8][16];
    static unsigned next;
    char *p = text[next++ % 8];
    memcpy(p, "get id:?\r\n", 10);
    p[7] = key;
    return span_of(p, 10);
}

static void note(char key)
{
    struct span s = line(key);
    recent_note(&recent, s, span_of(s.p + 4, 4), &name);
}

static void four_are_known_however_often_one_is_noted(void **state)
{
    (void)state;
    recent_init(&recent);
    assert_null(recent_find(&recent, line('a')));
    for (char key = 'a'; key <= 'd'; key++)
        note(key);
    for (int i = 0; i < 9; i++)
        note('a');
    for (char key = 'a'; key <= 'd'; key++) {
        const struct recent_request *q = recent_find(&recent, line(key));
        assert_non_null(q);
        assert_int_equal(q->n, 10);
        assert_int_equal(q->key.n, 4);
        assert_int_equal(q->key.p[3], key);
    }
    note('e');
    assert_non_null(recent_find(&recent, line('e')));
    assert_null(recent_find(&recent, line('a')));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(four_are_known_however_often_one_is_noted),
    };
    return cmocka_run_group_tests_name("serve/recent", tests, NULL, NULL);
}
