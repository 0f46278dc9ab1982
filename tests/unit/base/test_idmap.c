#include "base/idmap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

static void the_first_namespace_has_all(void **state)
{
    const struct span map = SPAN("         0          0 4294967295\n");
    (void)state;
    assert_true(idmap_tells(map, 65534, 0) && idmap_tells(map, 65534, 65534));
    assert_true(idmap_tells(map, 65534, 4294967294u));
    assert_true(idmap_tells(SPAN("0 0 1000\n1000 5 4294966295\n"), 65534, 65534));
}

/* As systemd's PrivateUsers=yes and rootless containers have it. */
static void others_know_those_that_are_mapped(void **state)
{
    const struct span own =
        SPAN("         0          0          1\n       998        998          1\n");
    const struct span pod = SPAN("0 100000 65536\n");
    (void)state;
    assert_true(idmap_tells(own, 65534, 0) && idmap_tells(own, 65534, 998));
    assert_false(idmap_tells(own, 65534, 1) || idmap_tells(own, 65534, 999));
    assert_false(idmap_tells(own, 65534, 65534));
    assert_true(idmap_tells(pod, 65534, 1000) && idmap_tells(pod, 65534, 65535));
    assert_false(idmap_tells(pod, 65534, 65534)); /* mapped, and all others, too */
    assert_false(idmap_tells(pod, 65534, 65536));
    assert_false(idmap_tells(SPAN(""), 65534, 0) || idmap_tells(SPAN("what\n\n1 2\n"), 65534, 1));
}

static void this_process_knows_itself(void **state)
{
    (void)state;
    assert_true(idmap_tells_here(false, getuid()));
    assert_true(idmap_tells_here(true, getgid()));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_namespace_has_all),
        cmocka_unit_test(others_know_those_that_are_mapped),
        cmocka_unit_test(this_process_knows_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
