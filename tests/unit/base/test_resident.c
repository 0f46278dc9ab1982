/* What the start leaves resident is given back, and what was written stays. */
#include "base/resident.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char written[8192];

/* Pages of files; see proc(5), statm. */
static long of_files(void)
{
    long size, resident, shared;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%ld %ld %ld", &size, &resident, &shared), 3);
    (void)fclose(f);
    return shared;
}

static void pages_of_files_go_and_data_stay(void **state)
{
    (void)state;
    char *heap = malloc(sizeof written);
    assert_non_null(heap);
    memset(written, 'a', sizeof written);
    memset(heap, 'b', sizeof written);
    long before = of_files();
    resident_trim();
    long after = of_files();
#ifdef __GLIBC__
    assert_true(after < before);
#else
    assert_true(after <= before);
#endif
    for (size_t i = 0; i < sizeof written; i++)
        assert_true(written[i] == 'a' && heap[i] == 'b');
    free(heap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pages_of_files_go_and_data_stay)};
    return cmocka_run_group_tests_name("base/resident", tests, NULL, NULL);
}
