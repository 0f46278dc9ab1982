/*
 * What gives out numbers, as everybody else sees it: a value of a kind.
 *
 *                                 kind
 *    key --> names --> generator ------> next, some    numbers, or the cause why not
 *                                        causes        what a cause means, and its text
 *                                        figures ...   what metrics, INFO, stats and the status
 *                                                      show of it
 *
 * Invariants
 *   - Pure: a generator is told the time, and never sleeps. One thread calls it.
 *   - Protocols know of a request the enum issue_status that it came to, and nothing of the kind.
 *     What observes goes over the list of generators and asks their kinds, and knows none.
 *   - So a new kind is its own files, and a row in the table of prefixes
 *     (daemon/generators.c).
 *
 * A kind's state begins with its struct generator, as a service's does with struct net_service.
 */
#ifndef SIDFLAKE_IDS_GENERATOR_H
#define SIDFLAKE_IDS_GENERATOR_H

#include "base/buf.h"
#include "base/dec.h"
#include "base/histogram.h"
#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a request for numbers came to. */
enum issue_status {
    ISSUE_OK,
    ISSUE_PARK, /* nothing was issued, and waiting helps */
    /* Refused, after waiting where that could help. */
    ISSUE_LOADING, /* not yet: what it takes was not granted so far */
    ISSUE_AGAIN,   /* again later: it ends by itself */
    ISSUE_NEVER,   /* not before somebody does something about it */
    ISSUE_WRONG,   /* never: what was asked for can't be, whose mistake it is who asked */
    ISSUE_MISS,    /* there is nothing of that name: answered as any key that isn't there */
};

struct generator;
struct names_entry;

/* What a request asks for. */
struct generator_ask {
    int64_t now_ms;  /* Unix ms */
    int64_t mono_ms; /* monotonic ms, where the kind goes by it */
    uint32_t n;      /* numbers, 1 .. */
    /* The request's own word, which lasts as long as it waits: 0 at first, and once there was a
     * number or a refusal for it, and for those that share it, negative for what else it wants. */
    int64_t *ticket;
    int64_t until_ms; /* out, where there is a cause: the Unix ms at which to ask again; INT64_MAX:
                         no time is known */
};

/* Numbers given out: first, first + stride ..., n of them. */
struct generator_run {
    int64_t first, stride;
    uint32_t n;
};

static inline int64_t generator_run_at(const struct generator_run *r, uint32_t i)
{
    return r->first + i * r->stride;
}

/* Why numbers are not given out. Cause 0 of each kind is that they are: ISSUE_OK. */
struct generator_cause {
    enum issue_status status; /* PARK: who waits is served in order, and waits without a limit */
    bool waits;               /* of a refusal: limits.max_wait is waited before */
    bool of_clock;            /* the clock is behind, and *until_ms when it is no longer */
    bool ends;                /* there are no more: who wants several has those that there were */
    /* Of a refusal: the check of /readyz that fails, a literal; NULL: the sidecar is ready all the
     * same. */
    const char *check;
    /* Of a refusal: appends one line, without what a protocol puts before it. */
    void (*say)(const struct generator *g, struct buf *out);
};

/* A workerId held, and the times in which numbers may be issued with it. */
struct generator_worker {
    uint32_t worker;
    bool active;     /* issued from; else a spare */
    int64_t last_ms; /* Unix ms of the latest number, at least the range's beginning less 1 */
    int64_t hi_ms;   /* Unix ms, included */
};

/* Since the start. Of workerIds and milliseconds 0 for a kind that has none. */
struct generator_counts {
    uint64_t issued;    /* IDs */
    uint64_t counted;   /* numbers that are none: of sequences */
    uint64_t exhausted; /* requests that found the millisecond used up */
    uint64_t rollbacks; /* times that the clock was seen behind where it had been */
    uint64_t rotations; /* workerIds given up because the clock stepped back */
};

enum generator_figure_type {
    GENERATOR_COUNTER,
    GENERATOR_GAUGE,
    GENERATOR_HISTOGRAM
};

#define GENERATOR_UNKNOWN INT64_MIN

/* A figure that this kind alone has, and where it is shown: NULL is not there. Literals. */
struct generator_figure {
    const char *metric; /* without _total; ends in the unit, if there is one */
    enum generator_figure_type type;
    const char *unit; /* of the metric: base unit, or "" */
    const char *help; /* without quotes and backslashes */
    /* Of the metric: a further label, as name and value; NULL: none. Figures of one metric, which
     * is the same literal, stand one behind the other. */
    const char *label, *label_value;
    unsigned decimals;  /* of the metric: value counts units of 10^-decimals */
    const char *stat;   /* row of memcached's `stats` */
    const char *info;   /* row of INFO */
    const char *member; /* of the status as JSON */
    const char *page;   /* number of the status page */
    /* GENERATOR_UNKNOWN: not known now. */
    int64_t (*value)(const struct generator *g, int64_t now_ms);
    const struct histogram *(*histogram)(const struct generator *g); /* HISTOGRAM */
};

/* A part that a number was put together from. */
struct generator_part {
    const char *name; /* a literal */
    int64_t value;
    bool is_time; /* Unix ms */
};

#define GENERATOR_PARTS 8 /* most of one number */

/* A text that a number was written as, taken apart. What it points to lasts until the generator is
 * called again. */
#define GENERATOR_READ_PARTS 40

struct generator_reading {
    struct span of;    /* the name whose number it is */
    struct span sub;   /* empty: none, or none that it tells */
    uint32_t at;       /* how far it was looked: 0 at first */
    const void *tried; /* likewise */
    unsigned n;
    struct generator_read_part {
        struct span name, text;
        bool said; /* by the caller, who chose the name */
    } part[GENERATOR_READ_PARTS];
    char number[24], period[32], worker[24], time[32];
};

/* Something to warn the operator of. */
struct generator_warning {
    const char *name; /* of the finding, a literal */
    /* Appends one line, and true; false: there is nothing to warn of. */
    bool (*say)(const struct generator *g, int64_t now_ms, struct buf *out);
};

#define GENERATOR_TEXT_MAX 256 /* bytes of a number as it is written, at most */

struct generator_kind {
    const char *name; /* of a number over HTTP: /v1/NAME/orders */
    /* Where its figures are shown: a section of INFO, `stats` of that name, a list in the JSON.
     * NULL: among what is told of IDs. */
    const char *section;
    const struct generator_cause *causes;
    bool by_mono; /* it goes by monotonic time, too */
    bool counts; /* its numbers are missed: a batch that gets no more of them is as far as it got */

    /* n numbers in a row, 1..run(). Returns the cause, 0: *out is filled. Any other leaves nothing
     * issued, and sets until_ms. */
    unsigned (*next)(struct generator *g, struct generator_ask *ask, struct generator_run *out);
    /* The same, but 1..n of them, as many as can be had at once. */
    unsigned (*some)(struct generator *g, struct generator_ask *ask, struct generator_run *out);
    /* MAY: one number of who said nothing but the name that g was found by, where nothing stands in
     * its way; mono_ms may be as old as the turn. false: next is to be asked, and nothing was
     * issued. */
    bool (*more)(struct generator *g, int64_t now_ms, int64_t mono_ms, int64_t *number);
    /* MAY: behind the request that was told to wait, and has its ticket by this call, stand n like
     * it, which are going to ask with the same ticket. true: what they want was asked for, too. */
    bool (*expect)(struct generator *g, const struct generator_ask *ask, uint32_t n);
    /* MAY: whether there is something of that name, without spending a number: 0, or the cause. */
    unsigned (*look)(struct generator *g, struct generator_ask *ask);
    /* Most numbers of next; batch: limits.batch. */
    uint32_t (*run)(const struct generator *g, uint32_t batch);
    /* The cause that a request would come to now, without spending a number; what only queues is
     * 0. What a request would have its supply do, is wanted all the same: where traffic goes by
     * readiness there may be none. */
    unsigned (*peek)(struct generator *g, int64_t now_ms);
    /* A number as long as those that are given out now, for whoever asks how long they are. */
    int64_t (*example)(const struct generator *g, int64_t now_ms);
    void (*count)(const struct generator *g, struct generator_counts *out);
    /* MAY: it gives out texts: how a number of the latest run is written, in bytes. NULL: as a
     * decimal. */
    size_t (*write)(const struct generator *g, int64_t number, int64_t now_ms,
                    char out[GENERATOR_TEXT_MAX]);

    /* MAY: each name is a generator of its own: the entry of this one, 1..200 printable bytes;
     * empty: what can't be one.
     * part: of whatever it is divided into, as said apart from the name; "": none. It is there
     * until something else is looked for, and longer only where names.h says so. */
    struct names_entry *(*entry)(struct generator *g, struct span name, struct span part);

    /* MAY: workerId number i of those held, the active ones first; false: there is none. */
    bool (*worker)(const struct generator *g, unsigned i, struct generator_worker *out);
    /* MAY: the Unix ms from which no number can be had of what is held now; 0: nothing is held, or
     * it has no end. */
    int64_t (*until)(const struct generator *g);
    /* MAY: whether this cause comes of a clock that is wrong, though it is none of_clock. */
    bool (*clock_is_wrong)(const struct generator *g, unsigned cause, int64_t now_ms);
    /* MAY: takes a number apart: how many parts; 0: it is none of this generator's; -1: that can't
     * be told yet. */
    int (*decode)(const struct generator *g, uint64_t number,
                  struct generator_part out[GENERATOR_PARTS]);

    /* MAY: takes a text apart that a number of `name`, "": of any that is known here, may have been
     * written as. It is asked until there is no other, since not everybody may know of each:
     * ERR_OK: *out is filled; ERR_CORRUPT: out->of is, whose check digit is wrong, or which was
     * named, and why is said where nothing was yet; ERR_NOT_FOUND: there is no other. */
    enum err_code (*read)(const struct generator *g, struct span text, struct span name,
                          struct generator_reading *out, struct buf *why);

    const struct generator_figure *figures;
    const struct generator_warning *warnings;
    unsigned ncauses, nfigures, nwarnings;
};

struct generator {
    const struct generator_kind *kind;
    const char *label;       /* which of its kind it is; NULL: there is no other */
    struct generator *after; /* in the list of all, or NULL */
};

/* A number as it is written, in mem; whether it is more than its digits. */
static inline struct span generator_text(const struct generator *g, int64_t number, int64_t now_ms,
                                         char mem[GENERATOR_TEXT_MAX])
{
    if (g->kind->write)
        return span_of(mem, g->kind->write(g, number, now_ms, mem));
    return span_of(mem, dec_put_i64(mem, number));
}

static inline bool generator_is_text(const struct generator *g)
{
    return g->kind->write != NULL;
}

/* Causes and peek of a kind of which nobody asks for numbers, as of a family: it refuses none. */
extern const struct generator_cause generator_no_causes[1];
unsigned generator_peek_none(struct generator *g, int64_t now_ms);

/* Why a request was, or would be, refused. */
struct refusal {
    const struct generator *by;
    unsigned cause;
};

static inline enum issue_status refusal_status(struct refusal r)
{
    return r.by ? r.by->kind->causes[r.cause].status : ISSUE_OK;
}

/* Nobody is given any of that kind, and the sidecar is not ready; else it is this name's alone. */
static inline bool refusal_is_of_all(struct refusal r)
{
    return r.by && r.by->kind->causes[r.cause].check;
}

static inline bool refusal_ends(struct refusal r)
{
    return r.by && r.by->kind->causes[r.cause].ends;
}

/* A batch that has some numbers is answered with those: an error would lose them. */
static inline bool refusal_leaves_some(struct refusal r)
{
    return r.by && (r.by->kind->counts || refusal_ends(r));
}

/* What to tell the client: one line, without the protocol's own prefix. Valid until the next call.
 */
const char *refusal_text(struct refusal r);

/* Of all in the list: the sums, and the Unix ms up to which what is granted lasts: that of the
 * active workerIds that ends last, of the generator for which that is soonest. 0: none is held. */
void generators_count(const struct generator *list, struct generator_counts *sum);
int64_t generators_ceiling(const struct generator *list);

/* The Unix ms from which the first of them has no number, of what is held now; 0: as its kind's
 * until. */
int64_t generators_until(const struct generator *list);

/* The figure of this name on the status page, of the first in the list whose kind has it, which is
 * *of; or NULL. */
const struct generator_figure *generators_figure_by_page(const struct generator *list,
                                                         struct span name,
                                                         const struct generator **of);

/* Whether g is the first in the list of its kind: once for each kind that there is. */
bool generators_first(const struct generator *list, const struct generator *g);

/* workerId number i of all in the list, as generator_kind.worker. */
bool generators_worker(const struct generator *list, unsigned i, struct generator_worker *out);

#endif
