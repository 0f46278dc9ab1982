/* The corpus of the fuzz target, replayed: it aborts where a property does not hold. */
#include "fuzz/fuzz_conf.c"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
/* cmocka.h wants those before it */
#include <cmocka.h>

#define CORPUS "tests/fuzz/corpus/conf"

static void replay(const char *name)
{
    static uint8_t data[1 << 16];
    char path[400];
    (void)snprintf(path, sizeof path, CORPUS "/%s", name);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    size_t n = fread(data, 1, sizeof data, f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(LLVMFuzzerTestOneInput(data, n), 0);
    /* Cut short anywhere, as a half-written file is. */
    for (size_t i = 0; i < n; i += 1 + n / 64)
        assert_int_equal(LLVMFuzzerTestOneInput(data, i), 0);
}

static void test_replay(void **state)
{
    size_t files = 0;
    DIR *dir = opendir(CORPUS);
    (void)state;
    assert_non_null(dir);
    for (struct dirent *d; (d = readdir(dir));) {
        if (d->d_name[0] == '.')
            continue;
        replay(d->d_name);
        files++;
    }
    assert_int_equal(closedir(dir), 0);
    assert_true(files >= 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_replay)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
