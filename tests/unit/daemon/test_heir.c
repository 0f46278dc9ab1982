/* What a program reads of what the one before it left: whatever it is, it takes what is right or
 * nothing. */
#include "base/memfile.h"
#include "daemon/heir.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define ROOM  ((size_t)1 << 20)
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
#define OWNER "redis://10.0.0.1:6379/0|default"
#define EPOCH INT64_C(1767225600000)

static struct buf b; /* a parcel that is being written */
static char mem[ROOM];
static char page[PAGE_SIZE_BYTES];
static struct heir h;
static int file; /* the page's, where it is a test's */

static int begin(void **state)
{
    (void)state;
    buf_init(&b, mem, sizeof mem);
    for (size_t i = 0; i < sizeof page; i++)
        page[i] = (char)(i % 251);
    file = memfile_new("page");
    (void)unsetenv(HEIR_ENV);
    return file < 0 ? -1 : 0;
}

static int end(void **state)
{
    (void)state;
    heir_clear(&h);
    (void)close(file);
    return 0;
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

/* A memory file of n bytes with these seals, as the program before would have left it. */
static int leave(const void *p, size_t n, int seals)
{
    int fd = memfile_new("parcel");
    assert_true(fd > STDERR_FILENO);
    assert_true(write(fd, p, n) == (ssize_t)n);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

static void name(const char *text)
{
    assert_int_equal(setenv(HEIR_ENV, text, 1), 0);
}

/* Whatever it is, it is named to nobody else. */
static void read_file(int fd)
{
    char text[16];
    (void)snprintf(text, sizeof text, "%d", fd);
    name(text);
    heir_init(&h);
    assert_null(getenv(HEIR_ENV));
}

static void read_parcel(void)
{
    assert_false(b.failed);
    int fd = leave(b.p, b.n, SEALS);
    read_file(fd);
    assert_false(is_open(fd));
}

static void assert_nothing(enum err_code why, const char *text)
{
    assert_int_equal(h.state, HEIR_NONE);
    assert_int_equal(h.why.code, why);
    if (!strstr(h.why.text, text))
        fail_msg("expected \"%s\", found \"%s\"", text, h.why.text);
    assert_true(h.page.fd == -1 && !h.page.page && h.records.n == 0 && h.logins.n == 0);
}

static void assert_no_page(void)
{
    assert_int_equal(h.state, HEIR_TAKES);
    assert_true(h.page.fd == -1 && !h.page.page);
}

static void put_head(void)
{
    parcel_put_head(&b, PARCEL_TAKE, (uint64_t)getpid());
}

/* Where in the head, behind eight bytes of magic. */
enum {
    AT_VERSION = 8,
    AT_PURPOSE = 16,
    AT_PID = 24,
};

static void set(size_t at, uint64_t v)
{
    memcpy(b.p + at, &v, sizeof v);
}

static void put_page(int fd, const void *bytes, size_t n)
{
    size_t at = parcel_begin(&b, PARCEL_PAGE, fd);
    parcel_put_bytes(&b, span_of(bytes, n));
    parcel_end(&b, at);
}

/* ---- what is right ----------------------------------------------------------------------------
 */

static void without_the_variable_nothing_was_left(void **state)
{
    (void)state;
    heir_init(&h);
    assert_int_equal(h.state, HEIR_NONE);
    assert_int_equal(h.why.code, ERR_OK);
    assert_int_equal(h.page.fd, -1);
}

static void what_is_put_in_comes_out(void **state)
{
    (void)state;
    const struct pagefile_left left = {.fd = file, .page = page};
    put_head();
    heir_put(&b, &left, 4711);
    heir_put_blocks(&b, &(struct blockfile_left){.known = true, .hash = 12});
    size_t at = parcel_begin(&b, PARCEL_LOGINS, -1);
    buf_put_str(&b, "digests");
    parcel_end(&b, at);
    at = parcel_begin(&b, (enum parcel_kind)77, -1); /* of a later version */
    parcel_end(&b, at);
    read_parcel();
    assert_int_equal(h.state, HEIR_TAKES);
    assert_int_equal(h.why.code, ERR_OK);
    assert_string_equal(h.version, SIDFLAKE_VERSION);
    assert_int_equal(h.left_us, 4711);
    assert_int_equal(h.page.fd, file);
    assert_memory_equal(h.page.page, page, sizeof page);
    assert_true(h.blocks.known && h.blocks.hash == 12);
    assert_true(span_eq(h.logins, SPAN("digests")));
    assert_int_equal(h.records.n, b.n - 32);
    assert_true(is_open(file));
}

/* Of version 0.1.0, behind a connection: what was in the place of its logins would be its address.
 */
static void a_link_of_an_earlier_version_is_none_of_its_records(void **state)
{
    (void)state;
    put_head();
    size_t at = parcel_begin(&b, (enum parcel_kind)5, -1);
    parcel_put_bytes(&b, SPAN("an address of thirty-two bytes.."));
    parcel_end(&b, at);
    read_parcel();
    assert_int_equal(h.state, HEIR_TAKES);
    assert_int_equal(h.logins.n, 0);
}

static void a_page_that_is_not_proven_goes_over_without_its_bytes(void **state)
{
    (void)state;
    put_head();
    heir_put(&b, &(struct pagefile_left){.fd = file}, 1);
    read_parcel();
    assert_int_equal(h.page.fd, file);
    assert_null(h.page.page);
}

static void blocks_that_are_not_proven_do_not_go_over(void **state)
{
    (void)state;
    put_head();
    heir_put_blocks(&b, &(struct blockfile_left){.hash = 12});
    read_parcel();
    assert_int_equal(h.state, HEIR_TAKES);
    assert_false(h.blocks.known);
}

static void where_there_is_no_file_there_is_no_page(void **state)
{
    (void)state;
    put_head();
    heir_put(&b, &(struct pagefile_left){.fd = -1, .page = page}, 1);
    read_parcel();
    assert_no_page();
    assert_int_equal(h.left_us, 1);
}

/* A parcel of a program that does not say so keeps nobody from anything. */
static void a_rehearsal_is_told_where_the_page_is(void **state)
{
    (void)state;
    struct stat st;
    struct err e;
    parcel_put_head(&b, PARCEL_REHEARSE, (uint64_t)getppid());
    heir_put_place(&b, file);
    read_parcel();
    assert_int_equal(fstat(file, &st), 0);
    assert_true(h.placed && h.place.device == st.st_dev && h.place.inode == st.st_ino);
    heir_clear(&h);
    assert_true(!h.placed && heir_check_page(&h, "/nonexistent", &e) == ERR_OK);
    buf_init(&b, mem, sizeof mem);
    parcel_put_head(&b, PARCEL_REHEARSE, (uint64_t)getppid());
    heir_put_place(&b, -1);
    read_parcel();
    assert_true(h.placed && h.place.device == 0 && h.place.inode == 0);
    assert_int_equal(heir_check_page(&h, "/nonexistent", &e), ERR_OK);
}

/* The program that asks goes on, and what is its own stays so. */
static void a_rehearsal_takes_nothing(void **state)
{
    (void)state;
    parcel_put_head(&b, PARCEL_REHEARSE, (uint64_t)getppid());
    heir_put(&b, &(struct pagefile_left){.fd = file, .page = page}, 4711);
    size_t at = parcel_begin(&b, PARCEL_LOGINS, -1);
    buf_put_str(&b, "digests");
    parcel_end(&b, at);
    read_parcel();
    assert_int_equal(h.state, HEIR_REHEARSES);
    assert_int_equal(h.records.n, b.n - 32);
    assert_true(h.page.fd == -1 && h.logins.n == 0 && !h.version[0]);
    assert_true(is_open(file));
}

static void after_it_nothing_is_left(void **state)
{
    (void)state;
    put_head();
    heir_put(&b, &(struct pagefile_left){.fd = file, .page = page}, 1);
    read_parcel();
    heir_clear(&h);
    assert_true(h.page.fd == -1 && h.whole.n == 0 && h.records.n == 0 && !h.page.page);
    heir_clear(&h);
}

/* ---- what is not ------------------------------------------------------------------------------
 */

static void what_is_no_descriptor_is_nothing(void **state)
{
    (void)state;
    static const char *const no[] = {"",   "x",  "0",       "1",          "2",
                                     "-3", "3 ", "1048576", "4294967299", "99999999999999999999"};
    for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
        name(no[i]);
        heir_init(&h);
        assert_null(getenv(HEIR_ENV));
        assert_nothing(ERR_INVALID, "expected a descriptor");
    }
    assert_true(is_open(STDOUT_FILENO) && is_open(STDERR_FILENO));
    name("999");
    heir_init(&h);
    assert_nothing(ERR_INVALID, "expected a sealed memory file");
}

/* Its writer could change it while it is read. */
static void what_is_not_sealed_is_nothing(void **state)
{
    (void)state;
    static const int lacks[] = {F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_WRITE};
    put_head();
    for (size_t i = 0; i < 3; i++) {
        int fd = leave(b.p, b.n, SEALS & ~lacks[i]);
        read_file(fd);
        assert_nothing(ERR_INVALID, "expected a sealed memory file");
        (void)close(fd);
    }
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    read_file(pipes[0]);
    assert_nothing(ERR_INVALID, "expected a sealed memory file");
    (void)close(pipes[0]);
    (void)close(pipes[1]);
}

static void what_is_empty_or_too_large_is_nothing(void **state)
{
    (void)state;
    int fd = leave("", 0, SEALS);
    read_file(fd);
    assert_nothing(ERR_INVALID, "bytes");
    (void)close(fd);
    for (int more = 0; more < 2; more++) {
        put_head();
        fd = leave(b.p, b.n, 0);
        buf_truncate(&b, 0);
        assert_int_equal(ftruncate(fd, (off_t)PARCEL_MAX + more), 0);
        assert_int_equal(fcntl(fd, F_ADD_SEALS, SEALS), 0);
        read_file(fd);
        if (more)
            assert_nothing(ERR_INVALID, "bytes");
        else
            assert_int_equal(h.state, HEIR_TAKES);
        heir_clear(&h);
        (void)close(fd);
    }
}

static void what_is_no_parcel_is_nothing(void **state)
{
    (void)state;
    put_head();
    size_t head = b.n;
    for (size_t n = 1; n < head; n++) {
        b.n = n;
        read_parcel();
        assert_nothing(ERR_INVALID, "expected a parcel");
        heir_clear(&h);
    }
    b.n = head;
    b.p[0] ^= 1;
    read_parcel();
    assert_nothing(ERR_INVALID, "expected a parcel");
}

/* A child of ours must not take what is ours, nor a process that has its number by now. */
static void what_is_of_another_process_is_nothing(void **state)
{
    (void)state;
    const struct {
        enum parcel_purpose purpose;
        pid_t pid;
    } of[] = {{PARCEL_TAKE, getppid()},
              {PARCEL_TAKE, getpid() + 1},
              {PARCEL_TAKE, 0},
              {PARCEL_REHEARSE, getpid()},
              {PARCEL_REHEARSE, 0}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        buf_truncate(&b, 0);
        parcel_put_head(&b, of[i].purpose, (uint64_t)of[i].pid);
        heir_put(&b, &(struct pagefile_left){.fd = file, .page = page}, 1);
        read_parcel();
        assert_nothing(ERR_INVALID, "is of another process");
        assert_true(is_open(file));
        heir_clear(&h);
    }
    buf_truncate(&b, 0);
    put_head();
    set(AT_PID, (uint64_t)getpid() + (UINT64_C(1) << 32));
    read_parcel();
    assert_nothing(ERR_INVALID, "is of another process");
}

/* Nobody here would know what they are: with the page's goes its lock, for a start as any other. */
static void of_another_version_the_descriptors_are_closed(void **state)
{
    (void)state;
    static const uint64_t versions[] = {0, PARCEL_VERSION - 1, PARCEL_VERSION + 1, UINT64_MAX};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        int left[2] = {dup(file), dup(file)};
        buf_truncate(&b, 0);
        put_head();
        set(AT_VERSION, versions[i]);
        for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
            parcel_end(&b, parcel_begin(&b, (enum parcel_kind)99, fd));
        parcel_end(&b, parcel_begin(&b, (enum parcel_kind)99, left[0]));
        put_page(left[1], page, sizeof page);
        read_parcel();
        assert_nothing(ERR_UNSUPPORTED, "expected version 3, found");
        assert_false(is_open(left[0]) || is_open(left[1]));
        assert_true(is_open(file) && is_open(STDIN_FILENO) && is_open(STDOUT_FILENO) &&
                    is_open(STDERR_FILENO));
        heir_clear(&h);
    }
}

/* One that belongs to somebody else by now keeps its descriptors, whatever their version. */
static void of_another_process_and_version_none_is_closed(void **state)
{
    (void)state;
    parcel_put_head(&b, PARCEL_TAKE, (uint64_t)getppid());
    set(AT_VERSION, PARCEL_VERSION + 1);
    put_page(file, page, sizeof page);
    read_parcel();
    assert_nothing(ERR_INVALID, "is of another process");
    assert_true(is_open(file));
}

/* The bytes of a page are a proof: they are whole, or none. */
static void a_page_of_another_size_proves_nothing(void **state)
{
    (void)state;
    static char larger[PAGE_SIZE_BYTES + 1];
    static const size_t sizes[] = {0, 1, PAGE_SIZE_BYTES - 1, PAGE_SIZE_BYTES + 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        buf_truncate(&b, 0);
        put_head();
        put_page(file, larger, sizes[i]);
        read_parcel();
        assert_int_equal(h.page.fd, file);
        assert_null(h.page.page);
        heir_clear(&h);
    }
}

static void a_page_that_says_to_be_longer_than_its_record_proves_nothing(void **state)
{
    (void)state;
    static const uint64_t lengths[] = {PAGE_SIZE_BYTES, UINT64_MAX, UINT64_MAX - 7, 1 << 20};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        buf_truncate(&b, 0);
        put_head();
        size_t at = parcel_begin(&b, PARCEL_PAGE, file);
        parcel_put_u64(&b, lengths[i]);
        buf_put(&b, page, 100);
        parcel_end(&b, at);
        read_parcel();
        assert_int_equal(h.page.fd, file);
        assert_null(h.page.page);
        heir_clear(&h);
    }
}

static void a_page_without_a_file_is_none(void **state)
{
    (void)state;
    static const int64_t no[] = {
        -1,        STDIN_FILENO,         STDOUT_FILENO,       STDERR_FILENO,
        INT64_MIN, INT64_C(0x100000000), INT64_C(0x100000005)};
    for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
        buf_truncate(&b, 0);
        put_head();
        put_page(-1, page, sizeof page);
        set(32 + 8, (uint64_t)no[i]);
        read_parcel();
        assert_no_page();
        heir_clear(&h);
    }
}

static void of_two_pages_the_first_counts(void **state)
{
    (void)state;
    int other = dup(file);
    static const char zeros[PAGE_SIZE_BYTES];
    put_head();
    put_page(file, page, sizeof page);
    put_page(other, zeros, sizeof zeros);
    read_parcel();
    assert_int_equal(h.page.fd, file);
    assert_memory_equal(h.page.page, page, sizeof page);
    (void)close(other);
}

static void a_long_version_is_cut_and_a_story_without_its_end_is_none(void **state)
{
    (void)state;
    put_head();
    size_t at = parcel_begin(&b, PARCEL_STORY, -1);
    parcel_put_bytes(&b, SPAN("0123456789012345678901234567890123456789"));
    parcel_put_u64(&b, 9);
    parcel_end(&b, at);
    read_parcel();
    assert_string_equal(h.version, "0123456789012345678901234567890");
    assert_int_equal(h.left_us, 9);
    heir_clear(&h);
    buf_truncate(&b, 0);
    put_head();
    at = parcel_begin(&b, PARCEL_STORY, -1);
    parcel_put_bytes(&b, SPAN("1"));
    buf_put_str(&b, "1234567");
    parcel_end(&b, at);
    read_parcel();
    assert_int_equal(h.state, HEIR_TAKES);
    assert_true(!h.version[0] && h.left_us == 0);
}

/* What is there is taken, and all of it lies within what there is. The file ends where a page of
 * memory does, so that one byte more would be read from where there is nothing. */
static void a_parcel_cut_anywhere_is_read_no_further(void **state)
{
    (void)state;
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    put_head();
    heir_put(&b, &(struct pagefile_left){.fd = file, .page = page}, 1);
    parcel_end(&b, parcel_begin(&b, PARCEL_LOGINS, -1));
    size_t whole = b.n, records = 0;
    for (size_t cut = 0; cut < whole - 32; cut += cut < 200 || cut > 4000 ? 1 : 97) {
        buf_truncate(&b, 0);
        put_head();
        size_t at = parcel_begin(&b, (enum parcel_kind)50, -1); /* fills the page */
        size_t kept = whole - 32 - cut, before = b.n;
        while ((before + kept) % size)
            buf_put_char(&b, 'x'), before++;
        parcel_end(&b, at);
        size_t tail = b.n;
        heir_put(&b, &(struct pagefile_left){.fd = file, .page = page}, 1);
        parcel_end(&b, parcel_begin(&b, PARCEL_LOGINS, -1));
        b.n = tail + kept;
        assert_int_equal(b.n % size, 0);
        read_parcel();
        assert_int_equal(h.state, HEIR_TAKES);
        assert_int_equal(h.records.n, b.n - 32);
        records += h.page.page != NULL;
        if (h.page.page)
            assert_memory_equal(h.page.page, page, sizeof page);
        heir_clear(&h);
    }
    assert_in_range(records, 24, 26); /* as long as the logins' head alone is cut */
}

/* No byte of it can lead out of it, or to another page than what was put in. */
static void a_parcel_with_any_byte_changed_harms_nothing(void **state)
{
    (void)state;
    put_head();
    heir_put(&b, &(struct pagefile_left){.fd = 1000000, .page = page}, 1);
    for (size_t at = 0; at < b.n; at += at < 200 ? 1 : 61)
        for (int bit = 0; bit < 8; bit++) {
            b.p[at] ^= (char)(1 << bit);
            read_parcel();
            assert_int_equal(h.state == HEIR_NONE, h.why.code != ERR_OK);
            if (h.page.page) {
                const char *p = h.page.page, *from = h.whole.p;
                assert_true(p >= from && p + PAGE_SIZE_BYTES <= from + h.whole.n);
            }
            heir_clear(&h);
            b.p[at] ^= (char)(1 << bit);
        }
}

/* ---- beside the parcel ------------------------------------------------------------------------
 */

static volatile sig_atomic_t came;

static void on_signal(int signo)
{
    (void)signo;
    came++;
}

static void signals_wait_until_they_are_let_in(void **state)
{
    (void)state;
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR2, SIGCHLD};
    struct sigaction act = {.sa_handler = on_signal}, before[5];
    for (int i = 0; i < 5; i++)
        assert_int_equal(sigaction(signals[i], &act, &before[i]), 0);
    came = 0;
    heir_block();
    for (int i = 0; i < 5; i++)
        assert_int_equal(raise(signals[i]), 0);
    assert_int_equal(came, 0);
    heir_signals();
    assert_int_equal(came, 5);
    for (int i = 0; i < 5; i++)
        assert_int_equal(sigaction(signals[i], &before[i], NULL), 0);
}

/* What holds a workerId of a pool of that epoch, or holds none. */
static char *make_dir(const char *identity, bool held)
{
    static char dir[] = "/tmp/sidflake-heir-XXXXXX";
    struct pagefile f;
    struct err e;
    memcpy(dir + sizeof dir - 7, "XXXXXX", 6);
    assert_non_null(mkdtemp(dir));
    if (!identity)
        return dir;
    if (pagefile_inherit(&f, dir, OWNER, PAGEFILE_SAVES_WAITING, NULL, &e))
        fail_msg("%s", e.text);
    page_set_identity(f.page, identity);
    struct page_record r = {.state = held ? PAGE_HELD : PAGE_FREE,
                            .worker = 7,
                            .lo_ms = EPOCH + 1,
                            .hi_ms = EPOCH + 1000};
    mark_store(&f.page->slot[2].mark, EPOCH + 5);
    page_store(f.page, 2, &r);
    pagefile_close(&f);
    return dir;
}

static void remove_dir(const char *dir)
{
    static const char *const names[] = {"worker.page", "worker.generation"};
    char path[128];
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        (void)unlink(path);
    }
    assert_int_equal(rmdir(dir), 0);
}

#define POOL          "11111111-2222-4333-8444-555555555555|1767225600000|"
#define IDENTITY      POOL "38.15.10"
#define WORKER_LOWEST POOL "t39*10.s8.w16"

static void workerids_of_another_space_are_told_apart(void **state)
{
    (void)state;
    const struct {
        const char *identity;
        bool held;
        const char *owner;
        int64_t epoch_ms;
        const char *layout;
        enum err_code want;
        unsigned active;
    } cases[] = {
        {IDENTITY, true, OWNER, EPOCH, "", ERR_OK, .active = 8},
        {WORKER_LOWEST, true, OWNER, EPOCH, "", ERR_OK, .active = 1},
        {WORKER_LOWEST, true, OWNER, EPOCH, "", ERR_INVALID, .active = 2},
        {WORKER_LOWEST, false, OWNER, EPOCH, "", ERR_OK, .active = 2},
        {IDENTITY, true, OWNER, CONF_EPOCH_OF_POOL, "", ERR_OK},
        {IDENTITY, true, OWNER, CONF_EPOCH_OF_POOL, "sidflake", ERR_OK},
        {IDENTITY, true, OWNER, CONF_EPOCH_OF_POOL, "twitter", ERR_INVALID},
        {IDENTITY, false, OWNER, CONF_EPOCH_OF_POOL, "twitter", ERR_OK},
        {IDENTITY, true, OWNER, EPOCH + 1, "", ERR_INVALID},
        {IDENTITY, true, OWNER, EPOCH - 86400000, "", ERR_INVALID},
        {IDENTITY, false, OWNER, EPOCH + 1, "", ERR_OK}, /* none is held */
        {IDENTITY, true, "redis://another", EPOCH + 1, "", ERR_OK},
        {"no identity", true, OWNER, EPOCH + 1, "", ERR_OK}, /* nothing is known of it */
        {NULL, false, OWNER, EPOCH + 1, "", ERR_OK},         /* no page */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err e = {.text = ""};
        char *dir = make_dir(cases[i].identity, cases[i].held);
        const struct conf c = {.state_dir = dir,
                               .epoch_ms = cases[i].epoch_ms,
                               .workers_active = cases[i].active,
                               .layout = (char *)(uintptr_t)cases[i].layout};
        enum err_code r = heir_check_space(&c, cases[i].owner, &e);
        remove_dir(dir);
        if (r != cases[i].want)
            fail_msg("case %zu: expected %d, found %d: %s", i, cases[i].want, r, e.text);
        if (r)
            assert_non_null(strstr(
                e.text, cases[i].active > 1  ? "workers.active: expected 1"
                        : cases[i].layout[0] ? "layout: expected \"time:38 worker:15 sequence:10\""
                                             : "epoch: expected 2026-01-01T00:00:00"));
    }
}

#define HEIR(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        HEIR(without_the_variable_nothing_was_left),
        HEIR(what_is_put_in_comes_out),
        HEIR(a_link_of_an_earlier_version_is_none_of_its_records),
        HEIR(a_page_that_is_not_proven_goes_over_without_its_bytes),
        HEIR(blocks_that_are_not_proven_do_not_go_over),
        HEIR(where_there_is_no_file_there_is_no_page),
        HEIR(a_rehearsal_is_told_where_the_page_is),
        HEIR(a_rehearsal_takes_nothing),
        HEIR(after_it_nothing_is_left),
        HEIR(what_is_no_descriptor_is_nothing),
        HEIR(what_is_not_sealed_is_nothing),
        HEIR(what_is_empty_or_too_large_is_nothing),
        HEIR(what_is_no_parcel_is_nothing),
        HEIR(what_is_of_another_process_is_nothing),
        HEIR(of_another_version_the_descriptors_are_closed),
        HEIR(of_another_process_and_version_none_is_closed),
        HEIR(a_page_of_another_size_proves_nothing),
        HEIR(a_page_that_says_to_be_longer_than_its_record_proves_nothing),
        HEIR(a_page_without_a_file_is_none),
        HEIR(of_two_pages_the_first_counts),
        HEIR(a_long_version_is_cut_and_a_story_without_its_end_is_none),
        HEIR(a_parcel_cut_anywhere_is_read_no_further),
        HEIR(a_parcel_with_any_byte_changed_harms_nothing),
        HEIR(signals_wait_until_they_are_let_in),
        HEIR(workerids_of_another_space_are_told_apart),
    };
    return cmocka_run_group_tests_name("daemon/heir", tests, NULL, NULL);
}
