#include "daemon/heir.h"

#include "base/dec.h"
#include "base/memfile.h"
#include "base/timefmt.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

#define TRIES    20u /* times that a file is read again, … */
#define PAUSE_MS 5   /* … so far apart */

static const struct heir nothing = {.page = {.fd = -1}};

/* ---- signals ----------------------------------------------------------------------------------
 */

static void mask(int how)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR2, SIGCHLD};
    sigset_t set;
    (void)sigemptyset(&set);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        (void)sigaddset(&set, signals[i]);
    (void)sigprocmask(how, &set, NULL);
}

void heir_block(void)
{
    mask(SIG_BLOCK);
}

void heir_signals(void)
{
    mask(SIG_UNBLOCK);
}

/* ---- writing ----------------------------------------------------------------------------------
 */

void heir_put(struct buf *parcel, const struct pagefile_left *page, int64_t left_us)
{
    size_t begun = parcel_begin(parcel, PARCEL_STORY, -1);
    parcel_put_bytes(parcel, SPAN(SIDFLAKE_VERSION));
    parcel_put_u64(parcel, (uint64_t)left_us);
    parcel_end(parcel, begun);
    if (page->fd < 0)
        return;
    begun = parcel_begin(parcel, PARCEL_PAGE, page->fd);
    parcel_put_bytes(parcel, span_of(page->page, page->page ? PAGE_SIZE_BYTES : 0));
    parcel_end(parcel, begun);
}

void heir_put_blocks(struct buf *parcel, const struct blockfile_left *left)
{
    if (!left->known)
        return;
    size_t begun = parcel_begin(parcel, PARCEL_BLOCKS, -1);
    parcel_put_u64(parcel, left->hash);
    parcel_end(parcel, begun);
}

void heir_put_place(struct buf *parcel, int fd)
{
    struct stat st;
    bool there = fd >= 0 && fstat(fd, &st) == 0;
    size_t begun = parcel_begin(parcel, PARCEL_PLACE, -1);
    parcel_put_u64(parcel, there ? st.st_dev : 0);
    parcel_put_u64(parcel, there ? st.st_ino : 0);
    parcel_end(parcel, begun);
}

/* ---- reading ----------------------------------------------------------------------------------
 */

static enum err_code map(int fd, struct span *out, struct err *e)
{
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & SEALS) != SEALS)
        return err_set(e, ERR_INVALID, HEIR_ENV ": expected a sealed memory file");
    if (fstat(fd, &st) < 0 || st.st_size <= 0 || (uint64_t)st.st_size > PARCEL_MAX)
        return err_set(e, ERR_INVALID, HEIR_ENV ": expected 1 to %zu bytes", PARCEL_MAX);
    if (!memfile_map(fd, (size_t)st.st_size, out))
        return err_errno(e, errno, "cannot map " HEIR_ENV);
    return ERR_OK;
}

/* Of another version nothing is known but the descriptors. */
static void close_all(struct span records)
{
    struct parcel_record r;
    while (parcel_next(&records, &r))
        if (r.fd > STDERR_FILENO)
            (void)close(r.fd);
}

static void read_story(struct heir *h, struct span body)
{
    struct span version;
    uint64_t left_us;
    if (!parcel_get_bytes(&body, &version) || !parcel_get_u64(&body, &left_us))
        return;
    size_t n = version.n < sizeof h->version ? version.n : sizeof h->version - 1;
    memcpy(h->version, version.p, n);
    h->left_us = (int64_t)left_us;
}

static void read_page(struct heir *h, const struct parcel_record *r)
{
    struct span body = r->body, page;
    if (h->page.fd >= 0 || r->fd <= STDERR_FILENO)
        return;
    h->page.fd = r->fd;
    if (parcel_get_bytes(&body, &page) && page.n == PAGE_SIZE_BYTES)
        h->page.page = page.p;
}

static void read_blocks(struct heir *h, struct span body)
{
    h->blocks.known = parcel_get_u64(&body, &h->blocks.hash);
}

static void read_place(struct heir *h, struct span body)
{
    struct pagefile_place *p = &h->place;
    h->placed = parcel_get_u64(&body, &p->device) && parcel_get_u64(&body, &p->inode);
}

static void read_record(struct heir *h, const struct parcel_record *r)
{
    bool rehearsal = h->state == HEIR_REHEARSES;
    if (rehearsal && r->kind == PARCEL_PLACE)
        read_place(h, r->body);
    else if (rehearsal)
        return;
    else if (r->kind == PARCEL_STORY)
        read_story(h, r->body);
    else if (r->kind == PARCEL_PAGE)
        read_page(h, r);
    else if (r->kind == PARCEL_BLOCKS)
        read_blocks(h, r->body);
    else if (r->kind == PARCEL_LOGINS)
        h->logins = r->body;
}

static enum err_code read_parcel(struct heir *h)
{
    struct parcel_head head;
    struct parcel_record r;
    struct span in = h->whole;
    if (!parcel_head(&in, &head))
        return err_set(&h->why, ERR_INVALID, HEIR_ENV ": expected a parcel");
    bool rehearsal = head.purpose == PARCEL_REHEARSE;
    if (head.pid != (uint64_t)(rehearsal ? getppid() : getpid()))
        return err_set(&h->why, ERR_INVALID, HEIR_ENV " is of another process");
    if (head.version != PARCEL_VERSION) {
        close_all(in);
        return err_set(&h->why, ERR_UNSUPPORTED, HEIR_ENV ": expected version %u, found %llu",
                       PARCEL_VERSION, (unsigned long long)head.version);
    }
    h->state = rehearsal ? HEIR_REHEARSES : HEIR_TAKES;
    h->records = in;
    while (parcel_next(&in, &r))
        read_record(h, &r);
    return ERR_OK;
}

void heir_init(struct heir *h)
{
    const char *text = getenv(HEIR_ENV);
    uint64_t fd;
    *h = nothing;
    if (!text)
        return;
    bool number = dec_u64(span_str(text), &fd) && fd > STDERR_FILENO && fd < 1u << 20;
    (void)unsetenv(HEIR_ENV);
    if (!number) {
        (void)err_set(&h->why, ERR_INVALID, HEIR_ENV ": expected a descriptor");
        return;
    }
    enum err_code r = map((int)fd, &h->whole, &h->why);
    if (!r)
        (void)close((int)fd);
    if (!r && read_parcel(h))
        h->state = HEIR_NONE;
}

enum err_code heir_check_space(const struct conf *c, const char *owner, struct err *e)
{
    char want[TIMEFMT_MAX], found[TIMEFMT_MAX], bits[LAYOUT_FIELDS_MAX];
    struct page p;
    struct layout held, layout;
    int64_t held_ms;
    if (!pagefile_peek(c->state_dir, owner, &p) || !page_holds(&p) ||
        coord_identity_read(p.head.identity, &held_ms, &held, e))
        return ERR_OK;
    if (c->epoch_ms != CONF_EPOCH_OF_POOL && c->epoch_ms != held_ms)
        return err_set(e, ERR_INVALID,
                       "epoch: expected %s, of the workerIds that are held, found %s",
                       timefmt_rfc3339(want, held_ms), timefmt_rfc3339(found, c->epoch_ms));
    if (c->workers_active > 1 && layout_worker_is_lowest(&held))
        return err_set(
            e, ERR_INVALID,
            "workers.active: expected 1, for the layout \"%s\" of the workerIds that are "
            "held, whose sequence stands above the workerId; found %u",
            layout_fields(bits, &held), c->workers_active);
    if (!c->layout[0] || layout_parse(span_str(c->layout), &layout, e) ||
        layout_equal(&layout, &held))
        return ERR_OK;
    return err_set(e, ERR_INVALID,
                   "layout: expected \"%s\", of the workerIds that are held, found \"%s\"",
                   layout_fields(bits, &held), c->layout);
}

enum err_code heir_check_page(const struct heir *h, const char *state_dir, struct err *e)
{
    return h->placed ? pagefile_alone(state_dir, &h->place, e) : ERR_OK;
}

void heir_clear(struct heir *h)
{
    memfile_unmap(h->whole);
    *h = nothing;
}

bool heir_waits(const struct heir *h, unsigned *tries)
{
    if (h->state != HEIR_TAKES || *tries == TRIES)
        return false;
    ++*tries;
    (void)poll(NULL, 0, PAUSE_MS);
    return true;
}

enum err_code heir_users(const struct heir *h, const char *path, struct users *u, struct err *e)
{
    enum err_code r = users_load(u, path, e);
    for (unsigned tries = 0; r != ERR_NOMEM && u->n == 0 && heir_waits(h, &tries);) {
        users_clear(u);
        r = users_load(u, path, e);
    }
    return r;
}
