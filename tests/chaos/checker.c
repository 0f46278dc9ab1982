/*
 * Was any ID received twice?
 *
 *   checker [--seen FILE] [--memory MIB] RECEIPTS[:FROM[:TO]]...
 *
 * Reads receipts, from byte FROM to byte TO of each file, and compares them with each other and
 * with all that --seen remembers of earlier runs, which it then brings up to date. RECEIPTS are
 * read in full a second time when an ID occurs twice, to tell by whom, when and how it was
 * received.
 *
 * Standard output: a line and its receipts for each of the first doubled IDs, then
 * `ids N receipts N spans N doubled N`. Exit status: 0 none is doubled, 1 some are, 2 cannot tell.
 *
 * Invariants
 *   - Memory: --memory for receipts to be sorted, and buffers; however many IDs there are. What has
 *     been seen is a sorted file of disjoint spans of IDs, merged with each sorted load of
 *     receipts.
 *   - A receipt that makes no sense is an error, never skipped.
 */
#include "receipt.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXAMPLES 8u
#define EPOCH_MS INT64_C(1767225600000) /* 2026-01-01T00:00:00Z */

struct stretch { /* first .. first + n - 1 */
    uint64_t first, n;
};

struct checker {
    const char *seen; /* path, or NULL */
    struct receipt *load;
    size_t room, used; /* receipts */
    uint64_t ids, receipts, spans, doubled;
    uint64_t example[EXAMPLES];
    unsigned examples;
};

static void die(const char *doing, const char *what)
{
    (void)fprintf(stderr, "checker: %s %s: %s\n", doing, what, errno ? strerror(errno) : "failed");
    exit(2);
}

static FILE *must_open(const char *path, const char *mode)
{
    errno = 0;
    FILE *f = fopen(path, mode);
    if (!f)
        die("opening", path);
    return f;
}

/* ---- merging -------------------------------------------------------------------------------- */

static int by_first(const void *a, const void *b)
{
    uint64_t x = ((const struct receipt *)a)->first;
    uint64_t y = ((const struct receipt *)b)->first;
    return (x > y) - (x < y);
}

/* One merge of the load with what has been seen. */
struct merge {
    struct checker *c;
    FILE *in, *out; /* in: NULL where nothing was seen yet */
    struct stretch old;
    bool has_old;
    size_t next;        /* of the load */
    struct stretch top; /* n 0: none yet */
};

static void next_old(struct merge *m)
{
    m->has_old = m->in && fread(&m->old, sizeof m->old, 1, m->in) == 1;
    if (m->in && !m->has_old && (ferror(m->in) || !feof(m->in)))
        die("reading", m->c->seen);
}

static void put_top(struct merge *m)
{
    if (m->top.n == 0)
        return;
    m->c->spans++;
    if (fwrite(&m->top, sizeof m->top, 1, m->out) != 1)
        die("writing what was seen beside", m->c->seen ? m->c->seen : "nothing");
}

static void overlap(struct checker *c, uint64_t first, uint64_t n)
{
    c->doubled += n;
    if (c->examples < EXAMPLES)
        c->example[c->examples++] = first;
}

/* Stretches come with rising beginnings. */
static void add(struct merge *m, struct stretch s)
{
    uint64_t end = m->top.first + m->top.n;
    if (m->top.n == 0 || s.first > end) {
        put_top(m);
        m->top = s;
        return;
    }
    uint64_t both = s.first < end ? end - s.first : 0;
    if (both > 0)
        overlap(m->c, s.first, both < s.n ? both : s.n);
    if (s.first + s.n > end)
        m->top.n = s.first + s.n - m->top.first;
}

static void merge_all(struct merge *m)
{
    struct checker *c = m->c;
    next_old(m);
    while (m->has_old || m->next < c->used) {
        const struct receipt *r = m->next < c->used ? &c->load[m->next] : NULL;
        if (m->has_old && (!r || m->old.first <= r->first)) {
            add(m, m->old);
            next_old(m);
        } else if (r) {
            add(m, (struct stretch){r->first, r->count});
            m->next++;
        }
    }
    put_top(m);
}

/* A load is compared with itself and with all before it. */
static void settle(struct checker *c)
{
    static char temporary[4096];
    if (c->used == 0)
        return;
    qsort(c->load, c->used, sizeof *c->load, by_first);
    struct merge m = {.c = c};
    if (snprintf(temporary, sizeof temporary, "%s.new", c->seen) >= (int)sizeof temporary)
        die("path too long:", c->seen);
    m.in = access(c->seen, F_OK) == 0 ? must_open(c->seen, "rb") : NULL;
    m.out = must_open(temporary, "wb");
    c->spans = 0;
    merge_all(&m);
    if (m.in)
        (void)fclose(m.in);
    errno = 0;
    if (fclose(m.out) != 0 || rename(temporary, c->seen) != 0)
        die("writing", temporary);
    c->used = 0;
}

/* ---- receipts ------------------------------------------------------------------------------- */

/* FILE[:FROM[:TO]] */
struct source {
    char path[4096];
    uint64_t from, to;
};

static struct source source_of(const char *text)
{
    struct source s = {.to = UINT64_MAX};
    const char *colon = strchr(text, ':');
    size_t n = colon ? (size_t)(colon - text) : strlen(text);
    if (n >= sizeof s.path) {
        errno = ENAMETOOLONG;
        die("reading", text);
    }
    memcpy(s.path, text, n);
    char *end = NULL;
    if (colon)
        s.from = strtoull(colon + 1, &end, 10);
    if (end && *end == ':')
        s.to = strtoull(end + 1, &end, 10);
    if ((end && *end) || s.from % sizeof(struct receipt) || s.from > s.to) {
        errno = EINVAL;
        die("expected FILE[:FROM[:TO]] with whole receipts, found", text);
    }
    return s;
}

static bool next_receipt(FILE *f, const struct source *s, uint64_t *at, struct receipt *r)
{
    if (*at + sizeof *r > s->to || fread(r, sizeof *r, 1, f) != 1) {
        if (ferror(f))
            die("reading", s->path);
        return false;
    }
    if (!receipt_valid(r)) {
        errno = 0;
        (void)fprintf(stderr,
                      "checker: %s: expected a receipt at byte %" PRIu64 ", found first %" PRIu64
                      ", count %" PRIu32 "\n",
                      s->path, *at, r->first, r->count);
        exit(2);
    }
    *at += sizeof *r;
    return true;
}

static void take_in(struct checker *c, const char *text)
{
    struct source s = source_of(text);
    FILE *f = must_open(s.path, "rb");
    uint64_t at = s.from;
    struct receipt r;
    if (fseeko(f, (off_t)s.from, SEEK_SET) != 0)
        die("reading", s.path);
    while (next_receipt(f, &s, &at, &r)) {
        if (c->used == c->room)
            settle(c);
        c->load[c->used++] = r;
        c->ids += r.count;
        c->receipts++;
    }
    (void)fclose(f);
}

/* ---- telling who ---------------------------------------------------------------------------- */

static void print_time(int64_t unix_us)
{
    char text[32];
    struct tm tm;
    time_t s = (time_t)(unix_us / 1000000);
    (void)strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", gmtime_r(&s, &tm));
    (void)printf("%s.%06" PRId64 "Z", text, unix_us % 1000000);
}

static void print_receipts(uint64_t id, const char *text)
{
    struct source s = source_of(text);
    FILE *f = must_open(s.path, "rb");
    struct receipt r;
    s.to = UINT64_MAX;
    for (uint64_t at = 0; next_receipt(f, &s, &at, &r);) {
        if (id < r.first || id - r.first >= r.count)
            continue;
        (void)printf("  received from sidecar %u, %s, connection %u, at ", r.sidecar,
                     receipt_kind_name(r.kind), r.life);
        print_time((int64_t)r.when_us);
        (void)printf(", IDs %" PRIu64 " and %" PRIu32 " more\n", r.first, r.count - 1);
    }
    (void)fclose(f);
}

static void tell(const struct checker *c, char **files, int n)
{
    for (unsigned i = 0; i < c->examples; i++) {
        uint64_t id = c->example[i];
        (void)printf("doubled ID %" PRIu64 ": workerId %" PRIu64 ", sequence %" PRIu64 ", time ",
                     id, id >> 10 & 0x7fff, id & 0x3ff);
        print_time(((int64_t)(id >> 25) + EPOCH_MS) * 1000);
        (void)printf("\n");
        for (int k = 0; k < n; k++)
            print_receipts(id, files[k]);
    }
}

/* ---- main ----------------------------------------------------------------------------------- */

static int usage(FILE *to)
{
    (void)fputs("Usage: checker [--seen FILE] [--memory MIB] RECEIPTS[:FROM[:TO]]...\n"
                "Finds IDs that were received twice. Exit status: 0 none, 1 some, 2 cannot tell.\n",
                to);
    return to == stdout ? 0 : 2;
}

/* Where nothing is to be remembered, what was seen is kept beside the first file of receipts. */
static const char *own_seen(const char *text)
{
    static char path[4200];
    struct source s = source_of(text);
    (void)snprintf(path, sizeof path, "%s.seen.%ld", s.path, (long)getpid());
    return path;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"seen", 1, NULL, 's'},
                                            {"memory", 1, NULL, 'm'},
                                            {"help", 0, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    struct checker c = {0};
    uint64_t mib = 256;
    for (int o; (o = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        if (o == 'h' || o == '?')
            return usage(o == 'h' ? stdout : stderr);
        if (o == 's')
            c.seen = optarg;
        else
            mib = strtoull(optarg, NULL, 10);
    }
    if (optind == argc || mib == 0 || mib > 65536)
        return usage(stderr);
    bool own = c.seen == NULL;
    if (own)
        c.seen = own_seen(argv[optind]);
    c.room = (size_t)(mib << 20) / sizeof *c.load;
    c.load = malloc(c.room * sizeof *c.load);
    if (!c.load)
        die("reserving memory for", "receipts");
    for (int i = optind; i < argc; i++)
        take_in(&c, argv[i]);
    settle(&c);
    tell(&c, argv + optind, argc - optind);
    if (own)
        (void)unlink(c.seen);
    (void)printf("ids %" PRIu64 " receipts %" PRIu64 " spans %" PRIu64 " doubled %" PRIu64 "\n",
                 c.ids, c.receipts, c.spans, c.doubled);
    free(c.load);
    return fflush(stdout) == 0 && c.doubled == 0 ? 0 : c.doubled ? 1 : 2;
}
