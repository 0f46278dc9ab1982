#include "lease/pagefile.h"

#include "base/fnv.h"
#include "base/log.h"
#include "lease/home.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define TELLS_NOT ": remove it if no later ID than now was given out"

static bool name_files(struct pagefile *f, const char *dir)
{
    if (asprintf(&f->path, "%s/worker.page", dir) < 0)
        f->path = NULL;
    return generation_name(&f->generation, dir, "worker.generation") && f->path;
}

/* Takes over the file that was left, with its lock, if it is the one at path. */
static bool take_over(struct pagefile *f, const struct pagefile_left *left)
{
    struct stat ours, there;
    if (!left || left->fd < 0)
        return false;
    if (fcntl(left->fd, F_SETFD, FD_CLOEXEC) == 0 && fstat(left->fd, &ours) == 0 &&
        lstat(f->path, &there) == 0 && ours.st_ino == there.st_ino && ours.st_dev == there.st_dev &&
        S_ISREG(ours.st_mode) && flock(left->fd, LOCK_EX | LOCK_NB) == 0) {
        f->fd = left->fd;
        return true;
    }
    (void)close(left->fd);
    return false;
}

/* Opens path, or makes it. */
static void open_or_make(struct pagefile *f)
{
    f->fd = open(f->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    f->made = f->fd < 0 && errno == ENOENT;
    if (f->made)
        f->fd = open(f->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
}

static enum err_code busy(const struct pagefile *f, struct err *e)
{
    struct page_head h = {0};
    ssize_t n = pread(f->fd, &h, sizeof h, 0);
    return err_set(e, ERR_BUSY,
                   "%s is locked by a running process, pid %u: expected a "
                   "state_dir of its own for each sidecar",
                   f->path, n == (ssize_t)sizeof h ? h.pid : 0);
}

/* Opens and locks path. The file may be renamed by another process between the two: then again. */
static enum err_code open_locked(struct pagefile *f, struct err *e)
{
    for (;;) {
        struct stat ours, there;
        open_or_make(f);
        if (f->fd < 0)
            return err_errno(e, errno, "cannot open %s", f->path);
        if (flock(f->fd, LOCK_EX | LOCK_NB) < 0)
            return errno == EWOULDBLOCK ? busy(f, e)
                                        : err_errno(e, errno, "cannot lock %s", f->path);
        if (fstat(f->fd, &ours) == 0 && stat(f->path, &there) == 0 && ours.st_ino == there.st_ino &&
            ours.st_dev == there.st_dev)
            return ERR_OK;
        (void)close(f->fd);
    }
}

enum err_code pagefile_begin_generation(struct pagefile *f, struct err *e)
{
    if (f->fd < 0)
        return ERR_OK;
    return generation_begin(&f->generation, &f->page->head.generation, e);
}

/* ---- the page -------------------------------------------------------------------------------- */

static enum err_code map(struct pagefile *f, struct err *e)
{
    int why = posix_fallocate(f->fd, 0, PAGE_SIZE_BYTES);
    if (why)
        return err_errno(e, why, "cannot reserve %u bytes for %s", PAGE_SIZE_BYTES, f->path);
    void *p = mmap(NULL, PAGE_SIZE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
    if (p == MAP_FAILED)
        return err_errno(e, errno, "cannot map %s", f->path);
    f->page = p;
    return ERR_OK;
}

static void unmap(struct pagefile *f)
{
    if (f->page)
        (void)munmap(f->page, PAGE_SIZE_BYTES);
    if (f->fd >= 0)
        (void)close(f->fd);
    f->page = NULL;
    f->fd = -1;
}

/* What stands in the file: judged from a copy, since a file of another length cannot be mapped. */
static enum err_code look(struct pagefile *f, const struct page_home *home, struct err *e)
{
    struct stat st;
    if (fstat(f->fd, &st) < 0)
        return err_errno(e, errno, "cannot look at %s", f->path);
    /* an empty one beside a generation was cut */
    f->found = st.st_size != 0 || (!f->made && generation_there(&f->generation));
    if (!f->found)
        return ERR_OK;
    ssize_t n = pread(f->fd, &f->old, sizeof f->old, 0);
    if (n < 0)
        return err_errno(e, errno, "cannot read %s", f->path);
    if (st.st_size == PAGE_SIZE_BYTES && n == (ssize_t)PAGE_SIZE_BYTES) {
        f->verdict = page_judge(&f->old, home, &f->why);
        if (f->verdict == PAGE_OWN && !page_is_of(&f->old, generation_there(&f->generation))) {
            f->verdict = PAGE_FOREIGN;
            (void)err_set(&f->why, ERR_INVALID, GENERATION_NOT_AS_LEFT, f->generation.path);
        }
        return ERR_OK;
    }
    f->verdict = PAGE_BROKEN;
    (void)err_set(&f->why, ERR_CORRUPT, "expected %u bytes, found %lld", PAGE_SIZE_BYTES,
                  (long long)st.st_size);
    return ERR_OK;
}

static void begin_page(struct pagefile *f, const struct page_home *home)
{
    page_format(f->page, home, (uint32_t)getpid());
    page_expect(f->page, 0, generation_there(&f->generation));
    if (f->found)
        page_replace(f->page, f->verdict == PAGE_BROKEN ? NULL : &f->old);
}

/* So that it can be looked at. Nothing hangs on it: some file systems have no links. */
static void keep_old(const struct pagefile *f, const char *aside)
{
    (void)unlink(aside); /* of an earlier start */
    if (link(f->path, aside) < 0)
        log_warn("state page that is replaced is not kept", kv_str("file", aside),
                 kv_str("why", strerror(errno)));
}

/* Makes p, which is locked before it has the name that others look for. */
static enum err_code make_next(struct pagefile *p, struct page_home *home, struct err *e)
{
    (void)unlink(p->path); /* of a process that was killed here */
    p->fd = open(p->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (p->fd < 0)
        return err_errno(e, errno, "cannot make %s", p->path);
    if (flock(p->fd, LOCK_EX | LOCK_NB) < 0)
        return err_errno(e, errno, "cannot lock %s", p->path);
    enum err_code r = map(p, e);
    if (r)
        return r;
    (void)home_read_file(p->fd, NULL, home);
    begin_page(p, home);
    return ERR_OK;
}

/* The next page stands whole, with what goes over to it and its lock, before it takes the place of
 * the one that was found, which is locked until then: so whoever is killed, has no room, or comes
 * meanwhile, leaves or finds one of the two. */
static enum err_code put_in_place(struct pagefile *f, char *next, const char *aside,
                                  struct page_home *home, struct err *e)
{
    struct pagefile p = *f;
    p.path = next;
    enum err_code r = make_next(&p, home, e);
    if (r == ERR_OK) {
        keep_old(f, aside);
        if (rename(next, f->path) < 0)
            r = err_errno(e, errno, "cannot rename %s to %s", next, f->path);
    }
    if (r) {
        unmap(&p);
        (void)unlink(next);
        return r;
    }
    unmap(f);
    f->fd = p.fd;
    f->page = p.page;
    return ERR_OK;
}

static enum err_code replace(struct pagefile *f, struct page_home *home, struct err *e)
{
    char *next = NULL, *aside = NULL;
    if (asprintf(&next, "%s.new", f->path) < 0)
        next = NULL;
    if (asprintf(&aside, "%s.aside", f->path) < 0)
        aside = NULL;
    enum err_code r = next && aside ? put_in_place(f, next, aside, home, e)
                                    : err_set(e, ERR_NOMEM, "no memory for a path");
    free(next);
    free(aside);
    return r;
}

/* Where only the page knows up to when IDs were issued: whether it does. */
static enum err_code tells_all(const struct pagefile *f, struct err *e)
{
    if (!f->found)
        return ERR_OK;
    if (f->verdict == PAGE_BROKEN)
        return err_set(e, ERR_CORRUPT, "%s is damaged (%.200s)" TELLS_NOT, f->path, f->why.text);
    if (page_floor(&f->old) == PAGE_FLOOR_UNKNOWN)
        return err_set(e, ERR_CORRUPT, "%s is damaged, or one whose place it took" TELLS_NOT,
                       f->path);
    return ERR_OK;
}

static enum err_code open_in(struct pagefile *f, const char *dir, struct page_home *home,
                             enum pagefile_worth worth, const struct pagefile_left *left,
                             struct err *e)
{
    enum err_code r = ERR_OK;
    if (mkdir(dir, 0750) < 0 && errno != EEXIST)
        return err_errno(e, errno, "cannot make state_dir %s", dir);
    if (!name_files(f, dir))
        return err_set(e, ERR_NOMEM, "no memory for a path");
    bool same = take_over(f, left);
    if ((r = home_read_boot(home, e)) || (!same && (r = open_locked(f, e))))
        return r;
    (void)home_read_file(f->fd, NULL, home);
    if ((r = look(f, home, e)) || (worth == PAGEFILE_KNOWS_ALONE && (r = tells_all(f, e))))
        return r;
    bool own = f->found && f->verdict == PAGE_OWN;
    f->proven = own && same && left->page && memcmp(&f->old, left->page, sizeof f->old) == 0;
    if (f->found && !own)
        r = replace(f, home, e);
    else if ((r = map(f, e)) == ERR_OK && !own)
        begin_page(f, home);
    if (r)
        return r;
    f->page->head.pid = (uint32_t)getpid();
    if (!same && pagefile_begin_generation(f, e))
        log_warn("no new generation of the state page", kv_str("why", e->text));
    return ERR_OK;
}

enum err_code pagefile_inherit(struct pagefile *f, const char *dir, const char *coordinator,
                               enum pagefile_worth worth, const struct pagefile_left *left,
                               struct err *e)
{
    memset(f, 0, sizeof *f);
    f->fd = -1;
    struct page_home home = {.coordinator = fnv64_str(coordinator)};
    enum err_code r = open_in(f, dir, &home, worth, left, e);
    if (r)
        pagefile_close(f);
    return r;
}

bool pagefile_peek(const char *dir, const char *coordinator, struct page *out)
{
    struct pagefile f = {.fd = -1};
    struct page_home home = {.coordinator = fnv64_str(coordinator)};
    struct err e;
    bool ok = name_files(&f, dir) && !home_read_boot(&home, &e);
    if (ok)
        f.fd = open(f.path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK); /* of whatever kind */
    ok = ok && f.fd >= 0 && home_read_file(f.fd, NULL, &home) && !look(&f, &home, &e) && f.found &&
         f.verdict == PAGE_OWN;
    *out = f.old;
    pagefile_close(&f);
    return ok;
}

/* A file in dir that is gone with its descriptor. */
static int open_unnamed(const char *dir)
{
    char *path = NULL;
    int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR)) /* its file system has no such */
        return fd;
    if (asprintf(&path, "%s/worker.test.XXXXXX", dir) < 0)
        return -1;
    fd = mkostemp(path, O_CLOEXEC);
    int why = errno;
    if (fd >= 0)
        (void)unlink(path);
    free(path);
    errno = why;
    return fd;
}

/* 0, or why dir takes no file of our size. */
static int takes_file(const char *dir)
{
    int fd = open_unnamed(dir);
    if (fd < 0)
        return errno;
    int why = posix_fallocate(fd, 0, PAGE_SIZE_BYTES);
    (void)close(fd);
    return why;
}

/* Where there is no page. Of a dir that is missing the one above it counts. */
static enum err_code test_dir(const char *dir, struct err *e)
{
    struct stat st;
    if (stat(dir, &st) == 0 || errno != ENOENT) {
        int why = takes_file(dir);
        return why ? err_errno(e, why, "cannot make a file in state_dir %s", dir) : ERR_OK;
    }
    char *copy = strdup(dir);
    if (!copy)
        return err_set(e, ERR_NOMEM, "no memory for a path");
    int why = takes_file(dirname(copy));
    free(copy);
    return why ? err_errno(e, why, "cannot make state_dir %s", dir) : ERR_OK;
}

/* As look and tells_all, of a page that may be in use: a slot that is half stored at one look is
 * whole at the next. */
static enum err_code test_page(struct pagefile *f, struct page_home *home,
                               enum pagefile_worth worth, struct err *e)
{
    enum err_code r = home_read_boot(home, e);
    (void)home_read_file(f->fd, NULL, home);
    if (r || (r = look(f, home, e)) || worth != PAGEFILE_KNOWS_ALONE)
        return r;
    for (unsigned looks = 1; (r = tells_all(f, e)) && looks < 3; looks++)
        if (look(f, home, e))
            break;
    return r;
}

enum err_code pagefile_test(const char *dir, const char *coordinator, enum pagefile_worth worth,
                            struct err *e)
{
    struct pagefile f = {.fd = -1};
    struct page_home home = {.coordinator = fnv64_str(coordinator)};
    enum err_code r = ERR_OK;
    if (!name_files(&f, dir))
        r = err_set(e, ERR_NOMEM, "no memory for a path");
    else if ((f.fd = open(f.path, O_RDWR | O_CLOEXEC | O_NOFOLLOW)) >= 0)
        r = test_page(&f, &home, worth, e);
    else if (errno != ENOENT)
        r = err_errno(e, errno, "cannot open %s", f.path);
    if (!r && (f.fd < 0 || (f.found && f.verdict != PAGE_OWN)))
        r = test_dir(dir, e);
    pagefile_close(&f);
    return r;
}

enum err_code pagefile_alone(const char *dir, const struct pagefile_place *ours, struct err *e)
{
    struct pagefile f = {.fd = -1};
    struct stat st;
    enum err_code r = ERR_OK;
    if (!name_files(&f, dir))
        r = err_set(e, ERR_NOMEM, "no memory for a path");
    else if ((f.fd = open(f.path, O_RDWR | O_CLOEXEC | O_NOFOLLOW)) >= 0 && fstat(f.fd, &st) == 0 &&
             (st.st_dev != ours->device || st.st_ino != ours->inode) &&
             flock(f.fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK)
        r = busy(&f, e);
    pagefile_close(&f);
    return r;
}

enum err_code pagefile_memory(struct pagefile *f, bool hidden, struct err *e)
{
    static const struct page_home nowhere;
    memset(f, 0, sizeof *f);
    f->fd = -1;
    void *p =
        mmap(NULL, PAGE_SIZE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return err_errno(e, errno, "cannot map %u bytes", PAGE_SIZE_BYTES);
    f->page = p;
    f->found = hidden;
    f->verdict = PAGE_BROKEN;
    page_format(f->page, &nowhere, (uint32_t)getpid());
    return ERR_OK;
}

/* ---- while it is open -------------------------------------------------------------------------
 */

void pagefile_guard(const struct pagefile *f)
{
    if (f->fd >= 0)
        mapguard_add(f->page, PAGE_SIZE_BYTES, f->fd, f->path,
                     "state page lost: stopped before an ID could leave unrecorded");
}

/* The slots change while others look, the head does not. */
static bool head_stands(const struct page *p, struct err *why)
{
    struct page head = {.head = p->head};
    return page_judge(&head, &head.head.home, why) == PAGE_OWN;
}

bool pagefile_stands(const struct pagefile *f, struct err *why)
{
    int64_t bytes;
    if (f->fd < 0)
        return true;
    if (!home_is_at(f->fd, f->path, &bytes, why))
        return false;
    if (bytes != PAGE_SIZE_BYTES)
        (void)err_set(why, ERR_CORRUPT, "expected %u bytes, found %lld", PAGE_SIZE_BYTES,
                      (long long)bytes);
    else if (!head_stands(f->page, why))
        return false;
    else if (page_is_of(f->page, generation_there(&f->generation)))
        return true;
    else
        (void)err_set(why, ERR_INVALID, GENERATION_NOT_AS_LEFT, f->generation.path);
    return false;
}

void pagefile_close(struct pagefile *f)
{
    mapguard_remove(f->page);
    unmap(f);
    free(f->path);
    f->path = NULL;
    generation_clear(&f->generation);
}
