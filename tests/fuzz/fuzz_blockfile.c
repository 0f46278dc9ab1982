/*
 * Any bytes as the file of blocks, of any length, beside any generation: it is opened as a start
 * does it, taken over or set aside, and made anew.
 *
 *   | flags | length: 2 bytes, added to the right one | the area, as blocks_make.h says |
 *
 * The file is in memory where the system has such a place, and the same one for all inputs, so that
 * its inode is the one that the area names.
 *
 * Checked
 *   - It is taken over only where blocks_oracle.h says that it is this file's, as long as it says,
 *     and of the generation that stands beside it; else it is set aside, and explained.
 *   - It is proven only where it names the time of its latest change.
 *   - One that was made, or taken over, stands, and is taken over by the next start; what that
 *     loads is what there was.
 */
#include "blocks_make.h"

#include "base/log.h"
#include "lease/blockfile.h"
#include "lease/blocks.h"
#include "support/seeded.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define COORDINATOR "redis://10.0.0.1:6379/0|default"

enum {
    CHANGED = 32,      /* beside blocks_make.h's: it names the time of its latest change, */
    NO_GENERATION = 64 /* and none stands beside it */
};

static struct {
    char dir[64], path[96], aside[112], generation[112];
    _Alignas(8) uint8_t sound[BLOCKS_MAKE_BYTES], bytes[BLOCKS_MAKE_BYTES];
    struct page_home home;
    struct generation outside;
    int64_t changed_ns; /* of the file's status */
} at;

enum {
    TAKEN_OVER,
    PROVEN,
    SET_ASIDE,
    OTHER_LENGTH,
    OTHER_GENERATION,
    PLACES
};

const char *fuzz_unreached(void)
{
    static const char *const names[PLACES] = {
        "expected a file that is taken over, found none",
        "expected a file that is proven, found none",
        "expected a file that is set aside, found none",
        "expected a file of another length, found none",
        "expected a file of another generation, found none",
    };
    return feed_unreached(names, PLACES);
}

/* ---- the disk --------------------------------------------------------------------------------
 */

static void write_file(const char *path, const void *bytes, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    feed_must(fd >= 0 && ftruncate(fd, 0) == 0 && pwrite(fd, bytes, n, 0) == (ssize_t)n &&
                  close(fd) == 0,
              "a file can be written");
}

static size_t read_file(const char *path, void *bytes, size_t max)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    feed_must(fd >= 0, "a file can be read");
    ssize_t n = pread(fd, bytes, max, 0);
    (void)close(fd);
    return n > 0 ? (size_t)n : 0;
}

static void remove_all(void)
{
    char more[128];
    (void)unlink(at.path);
    (void)unlink(at.aside);
    (void)unlink(at.generation);
    (void)snprintf(more, sizeof more, "%s.new", at.generation);
    (void)unlink(more);
    (void)rmdir(at.dir);
}

/* One that a sidecar has made, with blocks in it. */
static void make_sound(void)
{
    static const char *const places[] = {"/dev/shm", "/tmp"};
    struct blockfile f;
    struct err e;
    const char *place = places[access(places[0], W_OK) != 0];
    (void)snprintf(at.dir, sizeof at.dir, "%s/sidflake-fuzz-XXXXXX", place);
    feed_must(mkdtemp(at.dir), "a directory");
    (void)atexit(remove_all);
    (void)snprintf(at.path, sizeof at.path, "%s/sequences.page", at.dir);
    (void)snprintf(at.aside, sizeof at.aside, "%s.aside", at.path);
    (void)snprintf(at.generation, sizeof at.generation, "%s/sequences.generation", at.dir);
    log_setup(LOG_LVL_ERROR, LOG_FMT_TEXT);
    feed_must(blockfile_open(&f, at.dir, COORDINATOR, BLOCKS_MAKE_SLOTS, NULL, &e) == ERR_OK &&
                  blockfile_make(&f, BLOCKS_MAKE_IDENTITY, &e) == ERR_OK,
              "a file of blocks");
    at.home = f.home;
    blocks_make_template(f.page, &f.home);
    memcpy(at.sound, f.page, BLOCKS_MAKE_BYTES);
    blockfile_close(&f);
    feed_must(generation_name(&at.outside, at.dir, "sequences.generation"), "memory for names");
}

/* The time of its latest change, by a store that changes none where the file is in memory. */
static void note_change(bool of_now)
{
    struct stat st;
    int fd = open(at.path, O_RDWR | O_CLOEXEC);
    struct blockpage *p =
        fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    feed_must(p != MAP_FAILED && fstat(fd, &st) == 0, "a file can be mapped");
    (void)*(volatile char *)p; /* else the store would change it */
    at.changed_ns = (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec;
    if (of_now)
        blockpage_set_changed(p, at.changed_ns);
    (void)munmap(p, sizeof *p);
    (void)close(fd);
}

/* What there is, as it can be told from without. */
struct expected {
    enum page_verdict verdict;
    bool proven;
};

static struct expected expect(void)
{
    struct expected x = {PAGE_BROKEN, false};
    const struct blockpage *p = (const void *)at.bytes;
    struct stat st;
    feed_must(stat(at.path, &st) == 0, "a file can be looked at");
    (void)read_file(at.path, at.bytes, sizeof at.bytes);
    x.verdict = oracle_blocks_verdict(p, (size_t)st.st_size, &at.home);
    if (x.verdict == PAGE_OWN && p->head.slots != BLOCKS_MAKE_SLOTS)
        x.verdict = PAGE_FOREIGN;
    const volatile uint64_t *word = p->head.generation.word;
    uint64_t there = generation_there(&at.outside);
    bool as_left = there ? word[0] == there || word[1] == there : word[0] == 0 && word[1] == 0;
    if (x.verdict == PAGE_OWN && !as_left) {
        x.verdict = PAGE_FOREIGN;
        feed_reached(OTHER_GENERATION);
    }
    const struct blockpage_changed *c = &p->head.changed;
    x.proven = c->ns == at.changed_ns && c->check == oracle_check(c, 8);
    if (st.st_size != BLOCKS_MAKE_BYTES)
        feed_reached(OTHER_LENGTH);
    return x;
}

/* ---- a start --------------------------------------------------------------------------------- */

static void take_over(struct blockfile *f)
{
    static struct blocks machine;
    const struct blocks_config conf = {.counters = BLOCKS_MAKE_COUNTERS, .stop_ms = 3000};
    struct seeded rng = seeded_of(1);
    struct blocks_action a;
    struct err e;
    feed_must(blocks_init(&machine, &conf, f->page, &rng.rng, 1000, &e) == ERR_OK, "a machine");
    blocks_prove(&machine, f->proven);
    blocks_next(&machine, 1000, &a);
    for (unsigned i = 0; i < machine.nmail; i++)
        feed_must(f->proven || machine.mail[i].kind != BLOCKS_MAIL_GRANT,
                  "no block is told that is not proven");
    blocks_clear(&machine);
    if (f->proven)
        blockfile_prove(f);
}

static void open_file(struct blockfile *f)
{
    struct err e = {.text = ""};
    feed_must(blockfile_open(f, at.dir, COORDINATOR, BLOCKS_MAKE_SLOTS, NULL, &e) == ERR_OK,
              "whatever stands there, a start goes on");
}

static void start(void)
{
    struct blockfile f;
    struct err e = {.text = ""};
    struct expected x = expect();
    open_file(&f);
    feed_must(f.found && f.verdict == x.verdict, "the verdict is the oracle's");
    if (x.verdict == PAGE_OWN) {
        feed_must(f.page && !access(at.path, F_OK), "it is taken over where it is");
        feed_must(f.proven == (f.in_memory && x.proven), "it is proven by the time of its change");
        feed_reached(TAKEN_OVER);
        if (f.proven)
            feed_reached(PROVEN);
        take_over(&f);
    } else {
        feed_must(!f.page && !access(at.aside, F_OK) && f.why.text[0], "it is set aside, and why");
        feed_reached(SET_ASIDE);
        feed_must(blockfile_make(&f, BLOCKS_MAKE_IDENTITY, &e) == ERR_OK && f.proven,
                  "another one is made");
    }
    feed_must(blockfile_stands(&f, &e), "what a start has stands");
    bool proven = f.proven, in_memory = f.in_memory;
    blockfile_close(&f);
    open_file(&f);
    feed_must(f.verdict == PAGE_OWN && f.proven == (proven && in_memory),
              "the next start takes it over, proven as it was left");
    blockfile_close(&f);
}

/* The file as it was made, whichever its inode's name is by now. */
static void restore(void)
{
    if (!access(at.aside, F_OK))
        feed_must(rename(at.aside, at.path) == 0, "a file can be put back");
    write_file(at.path, at.sound, BLOCKS_MAKE_BYTES);
    if (access(at.generation, F_OK))
        write_file(at.generation, "", 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed in = {data, size};
    struct blockpage *p = (void *)at.bytes;
    if (!at.dir[0])
        make_sound();
    restore();
    unsigned flags = feed_u8(&in);
    int64_t length = BLOCKS_MAKE_BYTES + (int16_t)feed_u16(&in);
    memcpy(at.bytes, at.sound, BLOCKS_MAKE_BYTES);
    p->head.generation.word[0] = generation_there(&at.outside);
    if (!(flags & BLOCKS_TEMPLATE))
        memset(at.bytes, 0, BLOCKS_MAKE_BYTES);
    blocks_make_patched(p, &in);
    blocks_make_whole(p, flags);
    write_file(at.path, at.bytes, BLOCKS_MAKE_BYTES);
    feed_must(truncate(at.path, length < 0 ? 0 : length) == 0, "a file can be cut");
    if (flags & NO_GENERATION)
        (void)unlink(at.generation);
    if (length >= BLOCKS_MAKE_BYTES)
        note_change(flags & CHANGED);
    start();
    return 0;
}
