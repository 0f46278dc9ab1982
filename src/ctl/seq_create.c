/*
 * sidflakectl seq create: what happens after a loss has to be said, and what was said is told.
 */
#include "ctl/seq.h"

#include "base/int64.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DAY_MS INT64_C(86400000)

static const char three[] =
    "A coordinator such as Redis may forget what it granted last: when it restarts, comes back\n"
    "from older data, or fails over. What shall happen then?\n"
    "  --max-rate R       numbers skip, to where R numbers a second since the beginning would\n"
    "                     have led. Take at least twice the peak: more is never granted. Right\n"
    "                     for IDs; wrong for numbers that people read.\n"
    "  --on-loss refuse   nothing skips: numbers in hand go on, and grants stop at each restart\n"
    "                     until an operator says that nothing was lost, by `sidflakectl pool\n"
    "                     reopen --nothing-lost`, or how far numbers were, by `sidflakectl seq\n"
    "                     reopen NAME --above N`.\n"
    "  --on-loss trust    your word that this server loses nothing, and that no replica takes its\n"
    "                     place that lags: numbers just go on. If something is lost all the same,\n"
    "                     they repeat. Where that shows, and in a pool that is made again, as\n"
    "                     refuse.\n";

/* ---- what it means --------------------------------------------------------------------------- */

static int64_t highest_at(const struct seq_definition *d, int64_t max, int64_t from_ms, int64_t ms)
{
    struct line l = {from_ms, d->rate, d->burst};
    return seq_number(d, max64(min64(line_at(&l, ms), max), 0));
}

static void note_skip(json_t *notes, const struct ctl_session *s, const struct seq_grant *g)
{
    const struct seq_definition *d = &g->definition;
    const char *pause = ctl_span(2 * s->pool.params.max_skew_ms);
    int64_t begins = max64(d->begins_ms, s->reply.now_ms);
    if (d->reset == PERIOD_NEVER)
        json_array_append_new(
            notes,
            json_sprintf("after each restart of the coordinator grants pause for %s, and "
                         "numbers skip to the line of %lld a second: a day from now to "
                         "%lld, a year from now to %lld",
                         pause, (long long)d->rate,
                         (long long)highest_at(d, g->max, d->begins_ms, begins + DAY_MS),
                         (long long)highest_at(d, g->max, d->begins_ms, begins + 365 * DAY_MS)));
    else
        json_array_append_new(
            notes,
            json_sprintf("after each restart of the coordinator grants pause for %s, and numbers "
                         "skip to the line of %lld a second since the beginning of their %s",
                         pause, (long long)d->rate, period_reset_name(d->reset)));
    if (d->subs > 0)
        json_array_append_new(
            notes, json_sprintf("after such a restart each new sub begins at the line, too"));
    json_array_append_new(
        notes, json_sprintf("no more than %lld a second are granted in the long run, and %lld at "
                            "once: let that be twice the peak, and sidecars hold numbers for well "
                            "above %s",
                            (long long)d->rate, (long long)d->burst, pause));
}

/* A max that the line outruns is refused; a template may get another one. */
static void note_width(json_t *notes, const char *name, const struct seq_grant *g)
{
    const struct seq_definition *d = &g->definition;
    const struct line l = {0, d->rate, d->burst};
    struct ctl_seq_form f;
    if (!ctl_seq_form(name, d, g->max, NULL, 0, &f) || f.unreadable)
        return;
    int64_t ms = line_when(&l, seq_max_index(d, f.last) + 1);
    if (ms < seq_lasting_ms(d))
        json_array_append_new(
            notes, json_sprintf("its template takes numbers up to %lld: the line is behind them "
                                "%s after it begins, and so is each number after a restart from "
                                "then on",
                                (long long)f.last, ctl_span(ms)));
}

static void note_loss(json_t *notes, const char *name, const struct ctl_session *s,
                      const struct seq_grant *g)
{
    bool forgets = seq_forgets(s->coord);
    if (!forgets)
        json_array_append_new(
            notes, json_string("there is no line, and numbers never skip: this coordinator does "
                               "not forget. Where an older copy of its file is put in place, "
                               "grants stop until `sidflakectl seq reopen`"));
    else if (g->definition.loss == SEQ_LOSS_SKIP) {
        note_skip(notes, s, g);
        note_width(notes, name, g);
    } else if (g->definition.loss == SEQ_LOSS_REFUSE)
        json_array_append_new(
            notes, json_string("grants stop at each restart of the coordinator, until `sidflakectl "
                               "pool reopen --nothing-lost` or `sidflakectl seq reopen`"));
    else
        json_array_append_new(
            notes, json_string("by your word the coordinator loses nothing: if it does, numbers "
                               "repeat; where that shows, grants stop until `sidflakectl seq "
                               "reopen`"));
}

/* One that was made again after a loss, or behind one that was dropped, may have none yet. */
static void note_first(json_t *notes, struct ctl_session *s, const char *name)
{
    struct seq_grant now;
    char why[CTL_SEQ_WHY_MAX];
    if (ctl_seq_look(s, name, &now) == COORD_OK && now.how != SEQ_LOOKED)
        json_array_append_new(notes,
                              json_sprintf("no number now: %s", ctl_seq_why(s, name, &now, why)));
}

static json_t *notes_of(struct ctl_session *s, const char *name, const struct seq_grant *g)
{
    const struct seq_definition *d = &g->definition;
    json_t *notes = json_array();
    note_loss(notes, name, s, g);
    note_first(notes, s, name);
    if (d->reset != PERIOD_NEVER && d->offset_min != 0)
        json_array_append_new(notes, json_sprintf("each %s begins by %s, in summer as in winter",
                                                  period_reset_name(d->reset),
                                                  ctl_seq_zone_text(d->offset_min)));
    if (d->subs > 0)
        json_array_append_new(
            notes, json_sprintf("it has up to %lld subs%s, each made by its first use",
                                (long long)d->subs, d->reset == PERIOD_NEVER ? "" : " a period"));
    return notes;
}

/* ---- the command ------------------------------------------------------------------------------
 */

static int unsaid(const char *name)
{
    (void)ctl_fail(CTL_USAGE,
                   "seq create %s: expected one of --max-rate R, --on-loss refuse and --on-loss "
                   "trust, found none",
                   name);
    (void)fputs(three, stderr);
    return CTL_USAGE;
}

static int no_begin(const char *name)
{
    return ctl_fail(
        CTL_BAD,
        "sequence \"%s\": expected --begins TIME, or --new: the pool was reopened, or made again "
        "after a loss, so there may have been one of this name. Where there was, all options as "
        "the "
        "line definition of its `seq show` had them; --new is your word that there never was",
        name);
}

static int differs(const char *name, const struct seq_create *in, const struct seq_grant *g)
{
    char expected[SEQ_OPTIONS_MAX], found[SEQ_OPTIONS_MAX];
    struct seq_definition d = in->definition;
    return ctl_fail(CTL_BAD,
                    "sequence \"%s\": expected %s, found one of another definition: %s. A "
                    "definition never changes: take another name",
                    name, seq_options_text(expected, &d, seq_max_index(&d, in->max)),
                    seq_options_text(found, &g->definition, g->max));
}

static int other_max(const char *name, const struct seq_create *in, const struct seq_grant *g)
{
    const struct seq_definition *d = &g->definition;
    bool lower = g->max < seq_max_index(d, in->max);
    return ctl_fail(
        CTL_BAD,
        "sequence \"%s\": it is there already, the same but for its max: expected %" PRId64
        ", found %" PRId64 "; %s",
        name, in->max, ctl_seq_at(d, g->max),
        lower ? "`seq alter --max` raises it" : "a max is never lowered");
}

static int confirm(const struct ctl_args *a)
{
    const char *name = a->rest[0];
    char question[512];
    if (a->seq.words.fresh)
        (void)snprintf(question, sizeof question,
                       "Was there never a sequence \"%s\" in this pool, nor in one that was lost? "
                       "If there was, its numbers repeat.",
                       name);
    else
        (void)snprintf(question, sizeof question,
                       "Make \"%s\" again, behind the numbers of the one that was dropped? If data "
                       "of the coordinator from before that come back, numbers repeat.",
                       name);
    return a->seq.words.fresh || a->seq.words.reuse ? ctl_confirm(a, "seq create", question)
                                                    : CTL_OK;
}

/* A pool that was made as fresh knows of none that was lost: it neither waits nor skips, whatever
 * is said of a loss. */
static int confirm_earlier(const struct ctl_session *s, const struct seq_create *in)
{
    char question[512];
    const struct seq_definition *d = &in->definition;
    if (s->reply.era != 1 || d->begins_ms == 0 || d->begins_ms >= s->pool.born_ms)
        return CTL_OK;
    (void)snprintf(
        question, sizeof question,
        "Make \"%s\" at %" PRId64 ", as one of which no number was given out? It begins "
        "before this pool was made, on %s: if there was one in a pool that was lost, its "
        "numbers repeat, unless `seq set` has it ahead of them before a sidecar asks.",
        in->name, d->start, ctl_time(s->pool.born_ms));
    return ctl_confirm(s->args, "seq create: it begins before the pool was made", question);
}

static int tell(struct ctl_session *s, const char *name, const struct seq_grant *g)
{
    bool made = g->how == SEQ_DONE;
    char options[SEQ_OPTIONS_MAX];
    json_t *notes = notes_of(s, name, g), *one;
    size_t i;
    if (s->args->json)
        return ctl_print_json(
            CTL_OK, json_pack("{s:s, s:b, s:I, s:o, s:o}", "name", name, "made", (int)made,
                              "generation", (json_int_t)g->gen, "definition",
                              ctl_seq_definition_json(&g->definition, g->max), "notes", notes));
    (void)printf("%s sequence \"%s\": %s\n", made ? "made" : "there is already, the same,", name,
                 seq_options_text(options, &g->definition, g->max));
    json_array_foreach(notes, i, one)(void) printf("%s\n", json_string_value(one));
    json_decref(notes);
    return ctl_flush(CTL_OK);
}

static int finish(struct ctl_session *s, const struct seq_create *in, const struct seq_grant *g)
{
    char why[CTL_SEQ_WHY_MAX];
    switch (g->how) {
    case SEQ_DONE:
        return tell(s, in->name, g);
    case SEQ_KEPT:
        return g->max == seq_max_index(&g->definition, in->max) ? tell(s, in->name, g)
                                                                : other_max(in->name, in, g);
    case SEQ_UNSAID:
        return unsaid(in->name);
    case SEQ_NO_BEGIN:
        return no_begin(in->name);
    case SEQ_DIFFERS:
        return differs(in->name, in, g);
    default:
        return ctl_fail(CTL_BAD, "sequence \"%s\": %s", in->name, ctl_seq_why(s, in->name, g, why));
    }
}

int ctl_seq_create(struct ctl_args *a)
{
    struct ctl_session s;
    struct seq_create in = {.name = a->rest[0]};
    struct seq_grant g;
    struct err e;
    if (seq_check_name(span_str(in.name), &e) || seq_words_read(&a->seq.words, &in, &e))
        return ctl_fail(CTL_USAGE, "seq create: %s", e.text);
    int status = confirm(a);
    if (status || (status = ctl_seq_open(a, &s, in.name)))
        return status;
    status = confirm_earlier(&s, &in);
    if (!status) {
        enum coord_status r = seq_create(s.coord, s.pool.identity, &in, &g, &s.reply);
        status = r == COORD_OK ? finish(&s, &in, &g) : ctl_session_fail(a, r, &s.reply);
    }
    coord_free(s.coord);
    return status;
}
