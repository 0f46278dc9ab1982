/* What a program leaves in memory for the next one. */
#include "base/memfile.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#define ROOM ((size_t)16 << 20)
#define MIB  ((size_t)1 << 20)

/* Bytes of the first n at p that are in memory. */
static size_t resident(const struct buf *b, size_t n)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (n + page - 1) / page, in = 0;
    unsigned char *is = malloc(pages);
    assert_non_null(is);
    assert_int_equal(mincore(b->p, n, is), 0);
    for (size_t i = 0; i < pages; i++)
        in += is[i] & 1 ? page : 0;
    free(is);
    return in;
}

static void fill(struct buf *b, size_t n)
{
    char *p = buf_room(b, n);
    assert_non_null(p);
    for (size_t i = 0; i < n; i++)
        p[i] = (char)(i / 1000);
    buf_took(b, n);
}

static void what_is_sealed_is_read_and_never_changes(void **state)
{
    (void)state;
    const size_t sizes[] = {1, 4097, MIB - 1, MIB, MIB + 1, 3 * MIB + 5};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        struct buf b;
        struct span got;
        assert_true(memfile_room(&b, ROOM));
        fill(&b, sizes[k]);
        int fd = memfile_seal(&b, "test");
        assert_true(fd >= 0 && (fcntl(fd, F_GETFD) & FD_CLOEXEC));
        assert_true(b.n == 0 && !b.failed);
        assert_int_equal(lseek(fd, 0, SEEK_END), sizes[k]);
        assert_true(memfile_map(fd, sizes[k], &got));
        for (size_t i = 0; i < sizes[k]; i++)
            assert_true(got.p[i] == (char)(i / 1000));
        assert_true(pwrite(fd, "x", 1, 0) < 0 && ftruncate(fd, 0) < 0);
        memfile_unmap(got);
        (void)close(fd);
        memfile_room_free(&b);
    }
    memfile_unmap(span_of(NULL, 0));
}

/* A process whose memory has a limit would be ended by a second copy of all that it keeps. */
static void what_was_copied_is_given_back_at_once(void **state)
{
    (void)state;
    const size_t all = 8 * MIB, half = 4 * MIB;
    struct rlimit before, low;
    struct buf b;
    assert_true(memfile_room(&b, ROOM));
    assert_int_equal(resident(&b, ROOM), 0);
    fill(&b, all);
    assert_int_equal(resident(&b, all), all);
    /* A file that takes no more than half shows what is done meanwhile. */
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    low = (struct rlimit){half, before.rlim_max};
    void (*was)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    errno = 0;
    int fd = memfile_seal(&b, "test"), why = errno;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, was);
    assert_int_equal(fd, -1);
    assert_int_equal(why, EFBIG);
    assert_true(b.n == 0);
    assert_int_equal(resident(&b, all), all - half);
    fill(&b, all); /* it can be tried again */
    fd = memfile_seal(&b, "test");
    assert_true(fd >= 0);
    assert_int_equal(resident(&b, all), 0);
    (void)close(fd);
    memfile_room_free(&b);
}

static void what_did_not_fit_is_no_file(void **state)
{
    (void)state;
    struct buf b;
    assert_true(memfile_room(&b, 4096));
    fill(&b, 4090);
    BUF_PUT_LIT(&b, "too long");
    assert_true(b.failed);
    errno = 0;
    assert_int_equal(memfile_seal(&b, "test"), -1);
    assert_int_equal(errno, ENOSPC);
    memfile_room_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_sealed_is_read_and_never_changes),
        cmocka_unit_test(what_was_copied_is_given_back_at_once),
        cmocka_unit_test(what_did_not_fit_is_no_file),
    };
    return cmocka_run_group_tests_name("base/memfile", tests, NULL, NULL);
}
