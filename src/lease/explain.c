#include "lease/explain.h"

#include "base/timefmt.h"
#include "coord/advice.h"
#include "lease/recovery.h"
#include "lease/terms.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct recovery_place place_of(const struct workers_options *k)
{
    return (struct recovery_place){
        .url = k->coord_name, .pool = k->pool_name, .password_file = k->password_file};
}

/* Where auto_init was to make it: --fresh is not the next thing to try. */
static void put_why_not_made(const struct workers_options *k, const struct lease *l, struct buf *b)
{
    const struct pagefile *f = k->file;
    if (!l->conf.auto_init)
        return;
    if (f->found && f->verdict == PAGE_BROKEN)
        buf_printf(b,
                   ", and auto_init makes none, as no state page tells whether IDs were issued "
                   "before (%.160s)",
                   f->why.text);
    else
        BUF_PUT_LIT(b, ", and auto_init makes none, as it is not known what the pool was");
}

/* With the command that makes the pool, which is told whole or not at all. */
static bool put_no_pool(const struct workers_options *k, const struct lease *l, bool with_url,
                        struct buf *b)
{
    struct recovery_place at = place_of(k);
    buf_printf(b, "no pool \"%s\"", k->pool_name);
    if (with_url)
        buf_printf(b, " at %s", k->coord_name);
    put_why_not_made(k, l, b);
    BUF_PUT_LIT(b, ": make it with `");
    recovery_put_command(b, l, &at);
    if (!l->last_identity[0])
        advice_put_fresh(b, at.url);
    buf_put_char(b, '`');
    if (!l->last_identity[0])
        BUF_PUT_LIT(b, " " ADVICE_WHEN_FRESH);
    else if (!l->last_known)
        buf_put_str(b, " and the --workers and --horizon that it had");
    return !b->failed;
}

/* The command has the URL, too. */
static void explain_no_pool(const struct workers_options *k, const struct lease *l, char *why,
                            size_t cap)
{
    struct buf b;
    bool told = false;
    if (lease_may_init(l)) { /* by its next call */
        (void)snprintf(why, cap, "no pool \"%s\" yet: auto_init makes it", k->pool_name);
        return;
    }
    for (int with_url = 1; !told && with_url >= 0; with_url--) {
        buf_init(&b, why, cap - 1);
        told = put_no_pool(k, l, with_url, &b);
    }
    if (!told) {
        buf_init(&b, why, cap - 1);
        buf_printf(&b, "no pool \"%s\": see EXAMPLES in sidflakectl(1)", k->pool_name);
    }
    why[b.n] = '\0';
}

/* What an operator may say, whole or not at all, and from when on where that is not yet. */
static void put_word(const struct workers_options *k, const struct coord_pool *p,
                     const struct coord_reply *r, struct buf *b)
{
    struct recovery_place at = place_of(k);
    int64_t from = coord_pool_word_from(p, r->era);
    char text[TIMEFMT_MAX];
    struct buf whole = *b;
    BUF_PUT_LIT(&whole, "; if it came back with all that it knew, see `");
    recovery_put_word(&whole, &at);
    buf_put_char(&whole, '`');
    if (from > r->now_ms)
        buf_printf(&whole, ", which is taken from %s", timefmt_rfc3339(text, from));
    if (!whole.failed)
        *b = whole;
    else
        BUF_PUT_LIT(b,
                    "; if it came back with all that it knew, see pool reopen in sidflakectl(1)");
}

/* "1 h 0 min 4 s", not less than it is. */
static void put_wait(struct buf *b, int64_t ms)
{
    int64_t s = ms / 1000 + (ms % 1000 > 0);
    if (s >= 3600)
        buf_printf(b, "%" PRId64 " h ", s / 3600);
    if (s >= 60)
        buf_printf(b, "%" PRId64 " min ", s / 60 % 60);
    buf_printf(b, "%" PRId64 " s", s % 60);
}

/* A rest of minutes is some holder's range; one of an hour wants a reason. */
static void explain_wait(const struct workers_options *k, const struct lease *l,
                         const struct coord_reply *r, char *why, size_t cap)
{
    const struct coord_pool *p = &l->pool;
    char until[TIMEFMT_MAX], made[TIMEFMT_MAX];
    struct buf b;
    buf_init(&b, why, cap - 1);
    BUF_PUT_LIT(&b, "every free workerId rests for ");
    put_wait(&b, r->wait_ms);
    buf_printf(&b, " more, until %s, so that no earlier holder can have a later ID",
               timefmt_rfc3339(until, r->now_ms + r->wait_ms));
    if (p->born_ms == p->topen_ms && p->floor_ms > r->now_ms) {
        buf_printf(&b, ": the pool was lost, and made again at %s; %s",
                   timefmt_rfc3339(made, p->born_ms),
                   strncmp(k->coord_name, "sqlite:", 7) == 0
                       ? "see coordinator.auto_init in sidflake.yaml(5) for what need not wait"
                       : "who cannot wait needs a pool of another name, of workerIds that this "
                         "one can never give out: see SidflakeDataLoss in RUNBOOK.md");
    } else if (!l->described || terms_rest_of_reopening(p, r)) { /* by this very answer */
        BUF_PUT_LIT(&b, ": the pool was reopened, its server having restarted or failed over, or "
                        "its data being older than what it granted");
        if (terms_word_helps(p, r))
            put_word(k, p, r, &b);
    }
    why[b.n] = '\0';
}

/* `sidflakectl WHAT ...`, or where that does not fit the command alone. */
static void put_tool(const struct workers_options *k, const char *what, struct buf *b)
{
    struct recovery_place at = place_of(k);
    struct buf whole = *b;
    buf_put_char(&whole, '`');
    recovery_put_tool(&whole, what, &at);
    buf_put_char(&whole, '`');
    if (!whole.failed)
        *b = whole;
    else
        buf_put_str(b, what);
}

static void explain_exhausted(const struct workers_options *k, const struct coord_reply *r,
                              char *why, size_t cap)
{
    char from[TIMEFMT_MAX];
    struct buf b;
    buf_init(&b, why, cap - 1);
    BUF_PUT_LIT(&b, "the pool has no free workerId: ");
    if (r->wait_ms > 0) {
        buf_printf(&b,
                   "all are held, and the first to be free, if its holder is gone, is so from %s "
                   "on: ",
                   timefmt_rfc3339(from, r->now_ms + r->wait_ms));
        put_tool(k, "pool list", &b);
        BUF_PUT_LIT(&b, " tells who holds them, and pool release --worker N takes back that of one "
                        "who is gone (or its queue has been lost, which pool check tells)");
    } else {
        BUF_PUT_LIT(&b, "none is listed as held either: its queue has been lost: ");
        put_tool(k, "pool check --repair", &b);
        BUF_PUT_LIT(&b, " puts it together again");
    }
    why[b.n] = '\0';
}

/* What was found, and the command that may help, with the words around it. */
static void explain_with(const struct workers_options *k, const struct err *found,
                         const char *before, const char *command, const char *behind, char *why,
                         size_t cap)
{
    struct buf b;
    buf_init(&b, why, cap - 1);
    buf_put_str(&b, found->text);
    buf_put_str(&b, before);
    put_tool(k, command, &b);
    buf_put_str(&b, behind);
    why[b.n] = '\0';
}

void explain(const struct workers_options *k, const struct lease *l, const struct lease_outcome *o,
             char *why, size_t cap)
{
    const struct err *trouble = &l->trouble;
    switch (o->status) {
    case COORD_OK:
    case COORD_LOST:
        (void)snprintf(why, cap, "%s",
                       trouble->code   ? trouble->text
                       : l->range.code ? l->range.text
                                       : "");
        break;
    case COORD_NOPOOL:
        explain_no_pool(k, l, why, cap);
        break;
    case COORD_WAIT:
        explain_wait(k, l, &o->reply, why, cap);
        break;
    case COORD_EXHAUSTED:
        explain_exhausted(k, &o->reply, why, cap);
        break;
    case COORD_CLOSED:
        explain_with(k, &o->reply.err, "; ", "pool open",
                     " takes that back, unless it was made again elsewhere", why, cap);
        break;
    case COORD_BADCLOCK:
        /* Which clock was wrong is an operator's to know. */
        explain_with(k, &o->reply.err,
                     ": one that is behind is to be set right; if it was ahead then, see ",
                     "pool reopen --clock-was-ahead", "", why, cap);
        break;
    default:
        (void)snprintf(why, cap, "%s", o->reply.err.text);
    }
}
