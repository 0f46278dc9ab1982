#include "coord/roster.h"

#include "base/buf.h"
#include "base/dec.h"
#include "coord/outcome.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

/* The pool's own fields in the order in which the script's description of a pool has them; "", of
 * which there is none, stands for the length of the queue. */
static const char *const fields[] = {
    "era", "",   "K",  "identity", "topen", "fl", "fs",   "tmax", "closed",
    "A",   "A0", "D0", "S",        "G",     "K",  "from", "to",   "born",
};
#define FIELDS (sizeof fields / sizeof *fields)

/* Those that a pool made by version 0.1.0 lacks. */
static const char *const later[COORD_LATERS] = {
    "settle", "settle0", "settle_t", "fl0",   "fs0",   "era0",  "more", "trust",
    "lent",   "ahead",   "every",    "cause", "fence", "least", "leap", "leapt",
};

static_assert(FIELDS + COORD_LATERS == ROSTER_OWN, "as many as the header says");

const char *roster_field(size_t i)
{
    return i < FIELDS ? fields[i] : later[i - FIELDS];
}

static struct span field(const struct roster *in, size_t i)
{
    return i < in->hash.n ? in->hash.v[i] : (struct span){NULL, 0};
}

static bool is_empty(const struct roster *in)
{
    for (size_t i = 0; i < in->hash.n; i++)
        if (in->hash.v[i].p)
            return false;
    return true;
}

static enum coord_status read_pool(const struct roster *in, const struct answer_to *to,
                                   struct coord_snapshot *out, struct coord_reply *r)
{
    char digits[3][DEC_U64_MAX];
    const uint64_t counted[3] = {(uint64_t)in->now_ms, in->queue.n, in->index.n};
    struct span number[3];
    struct answer a = {.f[0] = SPAN("OK"), .n = 2};
    for (size_t i = 0; i < 3; i++)
        number[i] = span_of(digits[i], dec_put_u64(digits[i], counted[i]));
    a.f[1] = number[0];
    for (size_t i = 0; i < FIELDS; i++) {
        struct span value = *fields[i] ? field(in, i) : number[1];
        if (!value.p)
            return outcome_refused(r, "hash of the pool: expected a field %s, found none",
                                   fields[i]);
        a.f[a.n++] = value;
    }
    for (size_t i = 0; i < COORD_LATERS; i++) {
        struct span value = field(in, FIELDS + i);
        a.f[a.n++] = value.p ? value : SPAN("0");
    }
    a.f[a.n++] = number[2];
    a.f[a.n++] = SPAN("0"); /* replicas, and whether it is new: the server's, not the pool's */
    a.f[a.n++] = SPAN("0");
    return answer_describe(&a, to, &out->pool, r);
}

static bool worker_of(struct span s, uint16_t *out)
{
    int64_t v;
    if (!answer_number(s, &v) || v >= COORD_WORKERS)
        return false;
    *out = (uint16_t)v;
    return true;
}

/* "era hwm token t0 n", token "-" where the workerId is free. */
static bool read_record(struct span s, struct coord_worker *w)
{
    int64_t v[4];
    struct span rest = s;
    struct span part[5];
    for (size_t i = 0; i < 5; i++) {
        part[i] = span_cut(&rest, ' ');
        if ((rest.p == NULL) != (i == 4))
            return false;
    }
    if (!answer_number(part[0], &v[0]) || !answer_number(part[1], &v[1]) || part[2].n == 0 ||
        !answer_number(part[3], &v[2]) || !answer_number(part[4], &v[3]))
        return false;
    w->held = !span_eq(part[2], SPAN("-"));
    w->era = (uint64_t)v[0];
    w->hwm_ms = v[1];
    w->t0_ms = v[2];
    w->n = (uint64_t)v[3];
    return true;
}

static bool read_workers(const struct roster *in, struct coord_snapshot *out)
{
    size_t n = 0;
    for (size_t i = ROSTER_OWN; i < in->hash.n; i++)
        n += in->hash.v[i].p != NULL;
    out->workers = calloc(n ? n : 1, sizeof *out->workers);
    for (size_t i = ROSTER_OWN; out->workers && i < in->hash.n; i++) {
        struct span record = in->hash.v[i];
        if (!record.p)
            continue;
        struct coord_worker *x = &out->workers[out->nworkers++];
        x->worker = (uint16_t)(in->from + i - ROSTER_OWN);
        x->unreadable = !read_record(record, x);
        x->stale = !x->unreadable && x->era != out->reply.era;
    }
    return out->workers != NULL;
}

static int by_worker(const void *key, const void *element)
{
    const uint16_t *w = key;
    const struct coord_worker *x = element;
    return (*w > x->worker) - (*w < x->worker);
}

static bool read_who(const struct roster *in, struct coord_snapshot *out)
{
    for (size_t i = 0; i + 1 < in->who.n; i += 2) {
        uint16_t w;
        struct span json = in->who.v[i + 1];
        if (!worker_of(in->who.v[i], &w) || json.n == 0 || json.n >= COORD_WHO_MAX)
            continue;
        struct coord_worker *x =
            bsearch(&w, out->workers, out->nworkers, sizeof *out->workers, by_worker);
        if (!x || x->who)
            continue;
        x->who = strndup(json.p, json.n);
        if (!x->who)
            return false;
    }
    return true;
}

static int ascending(const void *a, const void *b)
{
    const uint16_t *x = a;
    const uint16_t *y = b;
    return (*x > *y) - (*x < *y);
}

static bool read_hints(const struct roster *in, struct coord_snapshot *out)
{
    out->queue = calloc(in->queue.n + 1, sizeof *out->queue);
    out->index = calloc(in->index.n + 1, sizeof *out->index);
    if (!out->queue || !out->index)
        return false;
    for (size_t i = 0; i < in->queue.n; i++) {
        uint16_t w;
        out->queue[out->nqueue++] = worker_of(in->queue.v[i], &w) ? w : UINT32_MAX;
    }
    for (size_t i = 0; i < in->index.n; i++)
        out->nindex += worker_of(in->index.v[i], &out->index[out->nindex]);
    qsort(out->index, out->nindex, sizeof *out->index, ascending);
    return true;
}

enum coord_status roster_read(const struct roster *in, const struct answer_to *to,
                              struct coord_snapshot *out, struct coord_reply *r)
{
    r->now_ms = in->now_ms;
    if (is_empty(in))
        return outcome_nopool(r, to->pool);
    enum coord_status s = read_pool(in, to, out, r);
    if (s != COORD_OK)
        return s;
    const struct coord_params *p = &out->pool.params;
    if (in->from != p->worker_from || in->hash.n != ROSTER_OWN + 1u + p->worker_to - in->from)
        return outcome_down(r, ERR_BUSY,
                            "expected the workerIds that were asked for, found %u to %u: the pool "
                            "was made again meanwhile",
                            p->worker_from, p->worker_to);
    out->reply = *r;
    if (!read_workers(in, out) || !read_who(in, out) || !read_hints(in, out))
        return outcome_down(r, ERR_NOMEM, "no memory for a snapshot");
    return COORD_OK;
}
