#include "lease/blockfile.h"

#include "base/fnv.h"
#include "base/log.h"
#include "lease/home.h"
#include "lease/mapguard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define TMPFS_MAGIC 0x01021994 /* statfs(2) */

static size_t size_of(const struct blockfile *f)
{
    return blockpage_size(f->slots);
}

static bool name_files(struct blockfile *f, const char *dir)
{
    if (asprintf(&f->path, "%s/sequences.page", dir) < 0)
        f->path = NULL;
    if (asprintf(&f->path_new, "%s/sequences.page.new", dir) < 0)
        f->path_new = NULL;
    return generation_name(&f->generation, dir, "sequences.generation") && f->path && f->path_new;
}

static void let_go(struct blockfile *f)
{
    mapguard_remove(f->page);
    if (f->page)
        (void)munmap(f->page, size_of(f));
    if (f->fd >= 0)
        (void)close(f->fd);
    f->page = NULL;
    f->fd = -1;
}

/* From here on stores to it are guarded; it is on the disk already. */
static enum err_code map(struct blockfile *f, const char *path, struct err *e)
{
    void *p = mmap(NULL, size_of(f), PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
    if (p == MAP_FAILED)
        return err_errno(e, errno, "cannot map %s", path);
    f->page = p;
    mapguard_add(p, size_of(f), f->fd, f->path,
                 "state page of sequences lost: stopped before a number could leave unrecorded");
    return ERR_OK;
}

static enum err_code lock(const struct blockfile *f, const char *path, struct err *e)
{
    if (flock(f->fd, LOCK_EX | LOCK_NB) == 0)
        return ERR_OK;
    if (errno != EWOULDBLOCK)
        return err_errno(e, errno, "cannot lock %s", path);
    return err_set(e, ERR_BUSY,
                   "%s is locked by a running process: expected a state_dir of its own for each "
                   "sidecar",
                   path);
}

/* ---- proof ----------------------------------------------------------------------------------- */

static bool read_changed(struct blockfile *f)
{
    struct stat st;
    struct statfs fs;
    bool ok = fstat(f->fd, &st) == 0 && fstatfs(f->fd, &fs) == 0;
    f->in_memory = ok && fs.f_type == TMPFS_MAGIC;
    f->changed_ns = ok ? (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec : 0;
    return ok;
}

static bool is_unchanged(const struct blockfile *f)
{
    int64_t ns;
    return f->in_memory && blockpage_changed(f->page, &ns) && ns == f->changed_ns;
}

static uint64_t hash_of(const struct blockfile *f)
{
    return fnv64_words(f->page, size_of(f));
}

/* What an older state of the file has is an earlier one. */
static bool has_witness(const struct blockfile *f)
{
    unsigned slot;
    struct coord_token token;
    bool any = blockpage_witness(f->page, &slot, &token);
    return any == f->witness.any &&
           (!any || (slot == f->witness.slot && coord_token_equal(token, f->witness.token)));
}

void blockfile_set_witness(struct blockfile *f, unsigned slot, struct coord_token token)
{
    bool same =
        f->witness.any && f->witness.slot == slot && coord_token_equal(f->witness.token, token);
    if (same || !has_witness(f))
        return;
    blockpage_set_witness(f->page, slot, token);
    f->witness.any = true;
    f->witness.slot = slot;
    f->witness.token = token;
}

struct blockfile_left blockfile_leave(const struct blockfile *f)
{
    bool known = f->page && f->fd >= 0 && f->proven && has_witness(f);
    return (struct blockfile_left){.known = known, .hash = known ? hash_of(f) : 0};
}

/* The time is the one that was found: what has come to the file since tells by another one. */
void blockfile_prove(struct blockfile *f)
{
    f->proven = true;
    if (f->page && f->in_memory)
        blockpage_set_changed(f->page, f->changed_ns);
}

/* ---- what stands there ----------------------------------------------------------------------- */

/* By a copy of its head, since a file of another length cannot be mapped. */
static enum err_code look(struct blockfile *f, struct err *e)
{
    struct stat st;
    struct blockpage head;
    memset(&head, 0, sizeof head);
    if (fstat(f->fd, &st) < 0 || !home_read_file(f->fd, NULL, &f->home))
        return err_errno(e, errno, "cannot look at %s", f->path);
    if (pread(f->fd, &head, sizeof head, 0) < 0)
        return err_errno(e, errno, "cannot read %s", f->path);
    f->found = true;
    f->verdict = blockpage_judge(&head, (size_t)st.st_size, &f->home, &f->why);
    if (f->verdict != PAGE_OWN)
        return ERR_OK;
    if (head.head.slots != f->slots)
        (void)err_set(&f->why, ERR_INVALID, "expected room for %u blocks, found %u", f->slots,
                      head.head.slots);
    else if (!page_generation_is(&head.head.generation, generation_there(&f->generation)))
        (void)err_set(&f->why, ERR_INVALID, GENERATION_NOT_AS_LEFT, f->generation.path);
    else
        return ERR_OK;
    f->verdict = PAGE_FOREIGN;
    return ERR_OK;
}

static enum err_code set_aside(struct blockfile *f, struct err *e)
{
    char *aside = NULL;
    if (asprintf(&aside, "%s.aside", f->path) < 0)
        return err_set(e, ERR_NOMEM, "no memory for a path");
    int r = rename(f->path, aside), why = errno;
    free(aside);
    let_go(f);
    return r < 0 ? err_errno(e, why, "cannot rename %s to %s.aside", f->path, f->path) : ERR_OK;
}

static enum err_code take_over(struct blockfile *f, const struct blockfile_left *left,
                               struct err *e)
{
    enum err_code r = map(f, f->path, e);
    if (r)
        return r;
    (void)read_changed(f);
    bool as_left = !f->in_memory && left && left->known && hash_of(f) == left->hash;
    f->proven = as_left || is_unchanged(f);
    f->witness.any = blockpage_witness(f->page, &f->witness.slot, &f->witness.token);
    if (blockfile_begin_generation(f, e))
        log_warn("no new generation of the state page of sequences", kv_str("why", e->text));
    return ERR_OK;
}

enum err_code blockfile_open(struct blockfile *f, const char *dir, const char *coordinator,
                             unsigned slots, const struct blockfile_left *left, struct err *e)
{
    memset(f, 0, sizeof *f);
    f->fd = -1;
    f->slots = slots;
    f->home.coordinator = fnv64_str(coordinator);
    enum err_code r = home_read_boot(&f->home, e);
    if (!r && !name_files(f, dir))
        r = err_set(e, ERR_NOMEM, "no memory for a path");
    if (r)
        return r;
    f->fd = open(f->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (f->fd < 0 && errno == ENOENT)
        return ERR_OK;
    if (f->fd < 0)
        return err_errno(e, errno, "cannot open %s", f->path);
    r = lock(f, f->path, e);
    if (!r)
        r = look(f, e);
    if (!r)
        r = f->verdict == PAGE_OWN ? take_over(f, left, e) : set_aside(f, e);
    if (r)
        let_go(f);
    return r;
}

/* ---- making one ------------------------------------------------------------------------------ */

static enum err_code make_new(struct blockfile *f, const char *identity, struct err *e)
{
    (void)unlink(f->path_new); /* of a process that was killed here */
    f->fd = open(f->path_new, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (f->fd < 0)
        return err_errno(e, errno, "cannot make %s", f->path_new);
    int why = posix_fallocate(f->fd, 0, (off_t)size_of(f));
    if (why)
        return err_errno(e, why, "cannot reserve %zu bytes for %s", size_of(f), f->path);
    enum err_code r = lock(f, f->path_new, e);
    if (r || (r = map(f, f->path_new, e)))
        return r;
    if (!home_read_file(f->fd, NULL, &f->home))
        return err_errno(e, errno, "cannot look at %s", f->path_new);
    blockpage_begin(f->page, f->slots, &f->home, identity);
    page_generation_expect(&f->page->head.generation, 0, generation_there(&f->generation));
    if ((r = blockfile_begin_generation(f, e)))
        return r;
    if (rename(f->path_new, f->path) < 0)
        return err_errno(e, errno, "cannot rename %s", f->path_new);
    return ERR_OK;
}

/* A rename changes the status, so its time is noted last. */
enum err_code blockfile_make(struct blockfile *f, const char *identity, struct err *e)
{
    if (!f->path || !f->path_new || !f->generation.path || !f->generation.path_new)
        return err_set(e, ERR_NOMEM, "no memory for a path");
    enum err_code r = make_new(f, identity, e);
    if (r) {
        let_go(f);
        (void)unlink(f->path_new);
        return r;
    }
    (void)read_changed(f);
    blockfile_prove(f);
    return ERR_OK;
}

enum err_code blockfile_memory(struct blockfile *f, unsigned slots, const char *identity,
                               struct err *e)
{
    static const struct page_home nowhere;
    f->slots = slots;
    f->fd = -1;
    void *p = mmap(NULL, size_of(f), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return err_errno(e, errno, "cannot map %zu bytes", size_of(f));
    f->page = p;
    f->proven = true;
    blockpage_begin(f->page, slots, &nowhere, identity);
    return ERR_OK;
}

/* ---- while it is open ------------------------------------------------------------------------ */

void blockfile_looked_at(struct blockfile *f)
{
    if (f->page && f->fd >= 0)
        (void)madvise(f->page, size_of(f), MADV_DONTNEED); /* shared: nothing is lost */
}

enum err_code blockfile_begin_generation(struct blockfile *f, struct err *e)
{
    if (!f->page || f->fd < 0)
        return ERR_OK;
    return generation_begin(&f->generation, &f->page->head.generation, e);
}

/* Slots, opening and witness change while others look, the rest of the head does not. */
bool blockfile_stands(const struct blockfile *f, struct err *why)
{
    int64_t bytes;
    if (!f->page || f->fd < 0)
        return true;
    if (!home_is_at(f->fd, f->path, &bytes, why) ||
        blockpage_judge(f->page, (size_t)bytes, &f->home, why) != PAGE_OWN)
        return false;
    if (page_generation_is(&f->page->head.generation, generation_there(&f->generation)))
        return true;
    (void)err_set(why, ERR_INVALID, GENERATION_NOT_AS_LEFT, f->generation.path);
    return false;
}

void blockfile_close(struct blockfile *f)
{
    if (f->page || f->path)
        let_go(f);
    free(f->path);
    free(f->path_new);
    f->path = f->path_new = NULL;
    generation_clear(&f->generation);
}
