/*
 * A directory of its own for each test, with the names of what may stand in it, and a page that
 * holds one workerId.
 */
#ifndef SIDFLAKE_UNIT_LEASE_PAGEFILE_RIG_H
#define SIDFLAKE_UNIT_LEASE_PAGEFILE_RIG_H

#include "lease/pagefile.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define COORDINATOR "redis://10.0.0.1:6379/0|default"
#define LO          INT64_C(1780000000000)

/* A directory of its own for each test, empty at first. */
static char dir[64], page_path[96], aside_path[96], spare_path[96], generation_path[96],
    made_path[96];

static inline int make_dir(void **state)
{
    (void)state;
    (void)snprintf(dir, sizeof dir, "/tmp/sidflake-page-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    (void)snprintf(page_path, sizeof page_path, "%s/worker.page", dir);
    (void)snprintf(aside_path, sizeof aside_path, "%s/worker.page.aside", dir);
    (void)snprintf(spare_path, sizeof spare_path, "%s/copy", dir);
    (void)snprintf(generation_path, sizeof generation_path, "%s/worker.generation", dir);
    (void)snprintf(made_path, sizeof made_path, "%s/worker.generation.new", dir);
    return 0;
}

static inline int remove_dir(void **state)
{
    (void)state;
    (void)unlink(page_path);
    (void)unlink(aside_path);
    (void)unlink(spare_path);
    (void)unlink(generation_path);
    (void)unlink(made_path);
    return rmdir(dir);
}

static inline void open_ok(struct pagefile *f)
{
    struct err e;
    enum err_code r = pagefile_inherit(f, dir, COORDINATOR, PAGEFILE_SAVES_WAITING, NULL, &e);
    if (r)
        fail_msg("%s", e.text);
    assert_non_null(f->page);
    assert_true(f->fd >= 0);
}

/* Holds workerId 7 in slot 2, used up to LO + 5. */
static inline void hold_one(struct pagefile *f)
{
    struct page_record r = {.state = PAGE_HELD, .worker = 7, .lo_ms = LO, .hi_ms = LO + 1000};
    page_set_identity(f->page, "some-pool");
    mark_store(&f->page->slot[2].mark, LO + 5);
    page_store(f->page, 2, &r);
}

static inline void assert_holds_one(const struct page *p)
{
    struct page_record r;
    int64_t last;
    assert_string_equal(p->head.identity, "some-pool");
    assert_true(page_load(p, 2, &r));
    assert_int_equal(r.state, PAGE_HELD);
    assert_int_equal(r.worker, 7);
    assert_true(mark_load(&p->slot[2].mark, &last) && last == LO + 5);
}

static inline void assert_no_slots(const struct page *p)
{
    struct page_record r;
    for (unsigned i = 0; i < PAGE_SLOTS; i++)
        assert_true(page_load(p, i, &r) && r.state == PAGE_FREE);
}

static inline void assert_empty(const struct page *p)
{
    assert_string_equal(p->head.identity, "");
    assert_no_slots(p);
}

static inline bool exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

static inline void copy_file(const char *from, const char *to, size_t bytes)
{
    char data[2 * PAGE_SIZE_BYTES];
    memset(data, 0, sizeof data);
    int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(in >= 0 && out >= 0);
    assert_true(read(in, data, sizeof data) >= 0);
    assert_int_equal(write(out, data, bytes), bytes);
    (void)close(in);
    (void)close(out);
}

static inline void assert_set_aside(enum page_verdict verdict, const char *why)
{
    struct pagefile f;
    open_ok(&f);
    assert_true(f.found);
    assert_int_equal(f.verdict, verdict);
    if (!strstr(f.why.text, why))
        fail_msg("expected \"%s\", found \"%s\"", why, f.why.text);
    assert_no_slots(f.page);
    bool same = f.old.head.home.coordinator == f.page->head.home.coordinator;
    assert_string_equal(f.page->head.identity, verdict == PAGE_FOREIGN && same ? "some-pool" : "");
    assert_true(exists(aside_path));
    if (verdict == PAGE_FOREIGN)
        assert_holds_one(&f.old);
    pagefile_close(&f);
    open_ok(&f); /* what stands there now is ours */
    assert_int_equal(f.verdict, PAGE_OWN);
    pagefile_close(&f);
}

static inline void leave_a_page(void)
{
    struct pagefile f;
    open_ok(&f);
    hold_one(&f);
    pagefile_close(&f);
}

#endif
