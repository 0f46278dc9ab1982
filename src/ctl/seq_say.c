/*
 * sidflakectl seq: connecting, and what goes wrong with sequences.
 */
#include "ctl/seq.h"

#include "base/buf.h"
#include "coord/seq_rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int ctl_seq_open(const struct ctl_args *a, struct ctl_session *s, const char *name)
{
    struct err e;
    if (name && seq_check_name(span_str(name), &e))
        return ctl_fail(CTL_USAGE, "%s", e.text);
    if (a->seq.sub && (!seq_is_sub(span_str(a->seq.sub)) || strchr(a->seq.sub, '#')))
        return ctl_fail(CTL_USAGE,
                        "--sub: expected 1 to 100 printable characters without a space and without "
                        "'#', which keys are read up to, found \"%.120s\"",
                        a->seq.sub);
    if (a->seq.period && !seq_is_period(span_str(a->seq.period)))
        return ctl_fail(CTL_USAGE, "--period: expected a date such as 2026-11-22, found \"%.80s\"",
                        a->seq.period);
    return ctl_session_open(a, s, CTL_SESSION_TIMEOUT_US, true);
}

/* ---- why not ------------------------------------------------------------------------------------
 */

/* "`sidflakectl seq WHAT NAME MORE ...`" */
static void put_command(struct buf *b, const struct ctl_session *s, const char *what,
                        const char *name, const char *more)
{
    char text[CTL_COMMAND_MAX], command[SEQ_OPTIONS_MAX];
    bool behind = *name == '-'; /* as buf_put_operand, behind the coordinator's options */
    (void)snprintf(command, sizeof command, "sidflakectl seq %s%s%s%s", what,
                   *name && !behind ? " " : "", behind ? "" : name, more);
    buf_printf(b, "`%s%s%s`", ctl_session_command(s->args, command, text), behind ? " -- " : "",
               behind ? name : "");
}

/* For its beginning, for that of a period that was named, or for the line. */
static void put_wait(struct buf *b, const struct ctl_session *s, const struct seq_grant *g)
{
    const struct seq_definition *d = &g->definition;
    const char *before = s->args->seq.before, *label = before ? before : g->period;
    int64_t now = s->reply.now_ms;
    struct period p;
    buf_printf(b, "not yet: expected at %s or later, in %s", ctl_time(now + g->wait_ms),
               ctl_span(g->wait_ms));
    if (now < d->begins_ms)
        buf_printf(b, "; it begins at %s", ctl_time(d->begins_ms));
    else if (period_find(d->reset, d->offset_min, span_str(label), &p) &&
             now < (before ? p.begins_ms : p.opens_ms))
        buf_printf(b, "; its %s %s begins at %s", period_reset_name(d->reset), label,
                   ctl_time(p.begins_ms));
    else if (seq_forgets(s->coord) && d->loss == SEQ_LOSS_SKIP)
        buf_printf(b, ", by its line of %" PRId64 " numbers a second", d->rate);
}

static void put_stopped(struct buf *b, const struct ctl_session *s, const char *name, bool word)
{
    char text[CTL_COMMAND_MAX];
    buf_printf(b,
               "grants have stopped: the pool was reopened, this is era %" PRIu64
               ", and what was granted before may be forgotten. ",
               s->reply.era);
    if (word)
        buf_printf(b, "If nothing was: `%s`; else say",
                   ctl_session_command(s->args, "sidflakectl pool reopen --nothing-lost", text));
    else
        buf_put_str(b, "Say");
    buf_put_str(
        b, " the highest number that anybody was given, or that a sidecar holds, running or not: ");
    put_command(b, s, "reopen", name, " --above N");
}

static void put_no_period(struct buf *b, const struct ctl_session *s, const struct seq_grant *g)
{
    const struct seq_definition *d = &g->definition;
    const char *found = s->args->seq.period   ? s->args->seq.period
                        : s->args->seq.before ? s->args->seq.before
                                              : "";
    char now[PERIOD_LABEL_MAX];
    if (d->reset == PERIOD_NEVER)
        buf_printf(b, "expected no period, since it never begins anew, found \"%s\"", found);
    else
        buf_printf(b, "expected a period such as %s, since it begins anew by %s, found \"%s\"",
                   period_label(d->reset, d->offset_min, s->reply.now_ms, now) ? now : "2026",
                   period_reset_name(d->reset), found);
}

static void put_used_up(struct buf *b, const struct seq_grant *g)
{
    const struct seq_definition *d = &g->definition;
    buf_printf(b, "used up: its max is %" PRId64 ", and ", ctl_seq_at(d, g->max));
    if (g->next > g->max)
        buf_put_str(b, "all numbers are granted");
    else
        buf_printf(b, "the next number is %" PRId64, ctl_seq_at(d, g->next));
    if (!d->cycle)
        buf_put_str(b, "; `seq alter --max` raises it");
}

/* What needs no more than a sentence. */
static const char *const plain[SEQ_HOWS] = {
    [SEQ_GRANTED] = "numbers were granted",
    [SEQ_AGAIN] = "the same numbers were granted before",
    [SEQ_LOOKED] = "numbers can be had",
    [SEQ_DONE] = "done",
    [SEQ_KEPT] = "it is as it was",
    [SEQ_CLOSED] = "that period is over: nothing is granted for it any more",
    [SEQ_DROPPED] =
        "it was dropped, and its name stays taken: `seq create --reuse` makes it again, "
        "behind its numbers",
    [SEQ_DIFFERS] = "it has been made anew meanwhile; nothing was changed: look at it again",
    [SEQ_NO_SUBS] = "expected no sub: it was made without --subs",
    [SEQ_UNREADABLE] = "its record at the coordinator is not of the form that it must have: it is "
                       "never granted from",
    [SEQ_UNSAID] = "expected a word on what happens after a loss",
    [SEQ_NO_BEGIN] = "expected a beginning",
    [SEQ_LOWER] = "that would go back",
    [SEQ_NOT_STOPPED] = "it skips to its line after a loss and never stops: there is nothing to "
                        "reopen",
};

const char *ctl_seq_why(const struct ctl_session *s, const char *name, const struct seq_grant *g,
                        char *out)
{
    struct buf b;
    bool forgets;
    buf_init(&b, out, CTL_SEQ_WHY_MAX - 1);
    switch (g->how) {
    case SEQ_WAIT:
        put_wait(&b, s, g);
        break;
    case SEQ_STOPPED:
    case SEQ_FORGOTTEN:
        put_stopped(&b, s, name, g->how == SEQ_STOPPED);
        break;
    case SEQ_UNKNOWN:
        buf_put_str(&b, "there is none of this name: ");
        forgets = seq_forgets(s->coord);
        put_command(&b, s, "create", name, forgets ? " --max-rate R" : "");
        buf_put_str(&b, forgets ? ", or --on-loss in place of --max-rate, makes it" : " makes it");
        break;
    case SEQ_NO_PERIOD:
        put_no_period(&b, s, g);
        break;
    case SEQ_USED_UP:
        put_used_up(&b, g);
        break;
    case SEQ_TOO_MANY_SUBS:
        buf_printf(&b, "expected at most %" PRId64 " subs, and there are as many",
                   g->definition.subs);
        break;
    default:
        buf_put_str(&b, (unsigned)g->how < SEQ_HOWS && plain[g->how] ? plain[g->how]
                                                                     : "not known here");
        break;
    }
    out[b.n] = '\0';
    return out;
}

int ctl_seq_close(struct ctl_session *s, enum coord_status r, const char *name,
                  const struct seq_grant *g, enum seq_how good, enum seq_how also)
{
    char why[CTL_SEQ_WHY_MAX];
    int status = CTL_OK;
    if (r != COORD_OK)
        status = ctl_session_fail(s->args, r, &s->reply);
    else if (g->how != good && g->how != also)
        status = ctl_fail(CTL_BAD, "sequence \"%s\": %s", name, ctl_seq_why(s, name, g, why));
    coord_free(s->coord);
    s->coord = NULL;
    return status;
}

enum coord_status ctl_seq_look(struct ctl_session *s, const char *name, struct seq_grant *g)
{
    const struct coord_token none = {{0}};
    const struct ctl_seq_args *q = &s->args->seq;
    return seq_reserve(s->coord, s->pool.identity, clock_wall_ms(clock_system()), name,
                       q->sub ? q->sub : "", q->period ? q->period : "", 0, none, g, &s->reply);
}
