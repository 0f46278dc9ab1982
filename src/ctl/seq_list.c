/*
 * sidflakectl seq list, show, gaps, check: what is there, and whether it has numbers.
 */
#include "ctl/seq.h"

#include "base/int64.h"
#include "coord/line.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One counter for all. */
static bool is_plain(const struct seq_definition *d)
{
    return d->reset == PERIOD_NEVER && d->subs == 0;
}

/* As the record alone tells. That grants have stopped it does not: for that somebody has to ask. */
static const char *state_of(const struct seq_info *v)
{
    if (v->unreadable)
        return "unreadable";
    if (v->dropped)
        return "dropped";
    if (v->seen > v->top)
        return "forgetful";
    return is_plain(&v->definition) && !v->definition.cycle && v->top > v->max ? "used-up" : "open";
}

/* What all documents tell of one; NULL: no memory. */
static json_t *info_json(const struct seq_info *v)
{
    const struct seq_definition *d = &v->definition;
    if (v->unreadable)
        return json_pack("{s:s, s:s}", "name", v->name, "state", state_of(v));
    return json_pack("{s:s, s:s, s:I, s:o, s:o, s:o, s:I}", "name", v->name, "state", state_of(v),
                     "generation", (json_int_t)v->gen, "definition",
                     ctl_seq_definition_json(d, v->max), "highest",
                     ctl_seq_number_json(d, v->top - 1, v->max), "highest_told",
                     v->seen > v->top ? ctl_seq_number_json(d, v->seen - 1, v->max) : json_null(),
                     "subs", (json_int_t)v->subs);
}

/* ---- list
 * ---------------------------------------------------------------------------------------- */

static json_t *list_json(const struct seq_list *list)
{
    json_t *j = json_array();
    for (size_t i = 0; i < list->n; i++)
        if (json_array_append_new(j, info_json(&list->v[i]))) {
            json_decref(j);
            return NULL;
        }
    return j;
}

static void print_list(const struct seq_list *list)
{
    char options[SEQ_OPTIONS_MAX];
    (void)printf("%-24s %-10s %-20s %s\n", "NAME", "STATE", "HIGHEST", "DEFINITION");
    for (size_t i = 0; i < list->n; i++) {
        const struct seq_info *v = &list->v[i];
        (void)printf("%-24s %-10s %-20s %s\n", v->name, state_of(v),
                     v->unreadable ? "-" : ctl_seq_highest(&v->definition, v->top),
                     v->unreadable ? "-" : seq_options_text(options, &v->definition, v->max));
    }
}

int ctl_seq_list(struct ctl_args *a)
{
    struct ctl_session s;
    struct seq_list list;
    int status = ctl_seq_open(a, &s, NULL);
    if (status)
        return status;
    enum coord_status r = seq_list(s.coord, s.pool.identity, &list, &s.reply);
    coord_free(s.coord);
    if (r != COORD_OK)
        return ctl_session_fail(a, r, &s.reply);
    if (a->json)
        status = ctl_print_json(CTL_OK, list_json(&list));
    else
        print_list(&list);
    free(list.v);
    return a->json ? status : ctl_flush(CTL_OK);
}

/* ---- show
 * ---------------------------------------------------------------------------------------- */

/* What a sequence is, and how it answers. */
struct view {
    struct ctl_session *s;
    struct seq_counters c;
    struct seq_grant now; /* of the counter that is asked about */
    bool closed;          /* the pool is */
    char why[CTL_SEQ_WHY_MAX];
};

static bool has_numbers(const struct view *v)
{
    return !v->closed && v->now.how == SEQ_LOOKED;
}

static const char *how_now(const struct view *v)
{
    return v->closed                  ? "pool-closed"
           : v->now.how == SEQ_LOOKED ? "granted"
                                      : seq_how_name(v->now.how);
}

static json_t *counter_json(const struct seq_info *q, const struct seq_counter_info *c)
{
    if (c->unreadable)
        return json_pack("{s:s?, s:s?, s:b}", "period", *c->period ? c->period : NULL, "sub",
                         *c->sub ? c->sub : NULL, "unreadable", 1);
    return json_pack("{s:s?, s:s?, s:b, s:I, s:o, s:I, s:I, s:b}", "period",
                     *c->period ? c->period : NULL, "sub", *c->sub ? c->sub : NULL, "unreadable", 0,
                     "generation", (json_int_t)c->gen, "next",
                     ctl_seq_number_json(&q->definition, c->next, q->max), "skipped",
                     (json_int_t)c->gaps, "changes", (json_int_t)c->n, "stale", (int)c->stale);
}

static json_t *counters_json(const struct seq_counters *c)
{
    json_t *list = json_array();
    for (size_t i = 0; i < c->n; i++)
        if (json_array_append_new(list, counter_json(&c->sequence, &c->v[i]))) {
            json_decref(list);
            return NULL;
        }
    return list;
}

/* So many numbers of the counter its line allows now; -1: it has none, or is refused otherwise. */
static int64_t line_ahead(const struct view *v)
{
    const struct seq_definition *d = &v->c.sequence.definition;
    struct line l = {d->begins_ms, d->rate, d->burst};
    struct period p;
    bool counts = has_numbers(v) || (!v->closed && v->now.how == SEQ_WAIT);
    if (!counts || d->loss != SEQ_LOSS_SKIP || !seq_forgets(v->s->coord))
        return -1;
    if (period_find(d->reset, d->offset_min, span_str(v->now.period), &p))
        l.begins_ms = p.opens_ms;
    return max64(line_at(&l, v->s->reply.now_ms) - v->now.next + 1, 0);
}

static json_t *line_json(const struct view *v)
{
    int64_t ahead = line_ahead(v);
    if (ahead < 0)
        return json_null();
    return json_pack("{s:I, s:I}", "rate", (json_int_t)v->c.sequence.definition.rate, "ahead",
                     (json_int_t)ahead);
}

static bool find_form(const struct view *v, struct ctl_seq_form *out)
{
    const struct seq_info *q = &v->c.sequence;
    return ctl_seq_form(q->name, &q->definition, q->max, has_numbers(v) ? &v->now : NULL,
                        v->s->reply.now_ms, out);
}

static json_t *revoked_json(const struct seq_info *q)
{
    const struct seq_revoked *v = &q->revoked;
    if (v->turn == 0)
        return json_null();
    return json_pack("{s:I, s:I, s:o}", "before_turn", (json_int_t)v->turn, "before_era",
                     (json_int_t)v->era, "from",
                     ctl_seq_number_json(&q->definition, v->from, q->max));
}

static int show_json(const struct view *v)
{
    const struct seq_info *q = &v->c.sequence;
    struct ctl_seq_form form;
    json_t *j = info_json(q);
    if (q->unreadable)
        return ctl_print_json(CTL_OK, j);
    bool formed = find_form(v, &form);
    json_t *more = json_pack(
        "{s:s, s:s?, s:o, s:o, s:o, s:I, s:I, s:s?, s:o, s:o}", "answer", how_now(v), "why",
        has_numbers(v) ? NULL : v->why, "next",
        has_numbers(v) ? ctl_seq_number_json(&q->definition, v->now.next, q->max) : json_null(),
        "line", line_json(v), "form", formed ? ctl_seq_form_json(&form) : json_null(), "era",
        (json_int_t)v->s->reply.era, "accounted_era", (json_int_t)q->ok_era, "closed_before",
        *q->closed ? q->closed : NULL, "revoked", revoked_json(q), "counters",
        counters_json(&v->c));
    if (json_object_update(j, more)) {
        json_decref(j);
        j = NULL;
    }
    json_decref(more);
    return ctl_print_json(CTL_OK, j);
}

static void print_counters(const struct seq_counters *c)
{
    if (c->n > 0)
        (void)printf("\n%-14s %-24s %-20s %s\n", "PERIOD", "SUB", "NEXT", "SKIPPED");
    for (size_t i = 0; i < c->n; i++) {
        const struct seq_counter_info *v = &c->v[i];
        char next[24];
        (void)snprintf(next, sizeof next, "%" PRId64, ctl_seq_at(&c->sequence.definition, v->next));
        (void)printf("%-14s %-24s %-20s %" PRId64 "%s\n", *v->period ? v->period : "-",
                     *v->sub ? v->sub : "-",
                     v->unreadable                ? "unreadable"
                     : v->next <= c->sequence.max ? next
                                                  : "used up",
                     v->gaps,
                     v->gen < c->sequence.gen ? "  (of the one before)"
                     : v->stale               ? "  (as of an earlier era)"
                                              : "");
    }
}

static int show_text(const struct view *v)
{
    const struct seq_info *q = &v->c.sequence;
    struct ctl_seq_form form;
    char options[SEQ_OPTIONS_MAX];
    (void)printf("name         %s\nstate        %s\n", q->name, state_of(q));
    if (q->unreadable)
        return ctl_flush(CTL_OK);
    (void)printf("definition   %s\n", seq_options_text(options, &q->definition, q->max));
    (void)printf("highest      %s of %" PRId64 "\n", ctl_seq_highest(&q->definition, q->top),
                 ctl_seq_at(&q->definition, q->max));
    if (q->seen > q->top)
        (void)printf(
            "told         a sidecar was granted numbers up to %s, which is forgotten here\n",
            ctl_seq_highest(&q->definition, q->seen));
    if (has_numbers(v))
        (void)printf("next         %" PRId64 "%s%s\n", ctl_seq_at(&q->definition, v->now.next),
                     *v->now.period ? " of " : "", v->now.period);
    else
        (void)printf("next         none: %s\n", v->why);
    if (line_ahead(v) >= 0)
        (void)printf("line         %" PRId64 " more now, and %" PRId64 " a second\n", line_ahead(v),
                     q->definition.rate);
    if (find_form(v, &form))
        ctl_seq_form_print(&form);
    if (q->gen > 1)
        (void)printf("generation   %" PRId64 "\n", q->gen);
    if (*q->closed)
        (void)printf("closed       periods before %s\n", q->closed);
    print_counters(&v->c);
    return ctl_flush(CTL_OK);
}

/* Reads it, and asks it; the caller frees what is in *v. CTL_OK, or the exit status. */
static int look(struct view *v, const char *name)
{
    struct ctl_session *s = v->s;
    enum coord_status r = seq_show(s->coord, s->pool.identity, name, &v->c, &s->reply);
    if (r != COORD_OK)
        return ctl_session_fail(s->args, r, &s->reply);
    r = ctl_seq_look(s, name, &v->now);
    v->closed = r == COORD_CLOSED;
    if (r != COORD_OK && !v->closed) {
        free(v->c.v);
        v->c.v = NULL;
        return ctl_session_fail(s->args, r, &s->reply);
    }
    if (v->closed)
        (void)snprintf(v->why, sizeof v->why, "the pool is closed: it grants nothing");
    else
        (void)ctl_seq_why(s, name, &v->now, v->why);
    return CTL_OK;
}

/* Of what is there not at all. */
static int none(struct view *v)
{
    return ctl_fail(CTL_BAD, "sequence \"%s\": %s", v->c.sequence.name, v->why);
}

int ctl_seq_show(struct ctl_args *a)
{
    struct ctl_session s;
    struct view v = {.s = &s};
    int status = ctl_seq_open(a, &s, a->rest[0]);
    if (status)
        return status;
    status = look(&v, a->rest[0]);
    if (!status && !v.c.found)
        status = none(&v);
    else if (!status)
        status = a->json ? show_json(&v) : show_text(&v);
    free(v.c.v);
    coord_free(s.coord);
    return status;
}

/* ---- gaps
 * ---------------------------------------------------------------------------------------- */

static int64_t skipped(const struct seq_counters *c)
{
    int64_t n = 0;
    for (size_t i = 0; i < c->n; i++)
        n += c->v[i].gaps;
    return n;
}

static int gaps_json(const struct seq_counters *c)
{
    const struct seq_info *q = &c->sequence;
    json_t *list = json_array();
    for (size_t i = 0; i < c->n; i++)
        if (json_array_append_new(list, counter_json(q, &c->v[i]))) {
            json_decref(list);
            return ctl_print_json(CTL_OK, NULL);
        }
    return ctl_print_json(CTL_OK, json_pack("{s:s, s:I, s:o, s:o}", "name", q->name, "skipped",
                                            (json_int_t)skipped(c), "revoked", revoked_json(q),
                                            "counters", list));
}

static int gaps_text(const struct seq_counters *c)
{
    const struct seq_info *q = &c->sequence;
    (void)printf("sequence \"%s\": %" PRId64 " numbers were skipped, by its line, set and reopen\n",
                 q->name, skipped(c));
    if (q->revoked.turn > 0)
        (void)printf(
            "sidecars lost what they had been granted before the latest set or reopen, from "
            "%" PRId64 " on: what they had not given out of it is a gap\n",
            ctl_seq_at(&q->definition, q->revoked.from));
    (void)puts("not known here: what sidecars hold of what they were granted, and what they lost "
               "with their state_dir");
    print_counters(c);
    return ctl_flush(CTL_OK);
}

int ctl_seq_gaps(struct ctl_args *a)
{
    struct ctl_session s;
    struct seq_counters c;
    const struct seq_grant unknown = {.how = SEQ_UNKNOWN};
    const char *name = a->rest[0];
    int status = ctl_seq_open(a, &s, name);
    if (status)
        return status;
    enum coord_status r = seq_show(s.coord, s.pool.identity, name, &c, &s.reply);
    struct seq_grant g = unknown;
    if (r == COORD_OK && c.found)
        g.how = c.sequence.unreadable ? SEQ_UNREADABLE : SEQ_LOOKED;
    status = ctl_seq_close(&s, r, name, &g, SEQ_LOOKED, SEQ_LOOKED);
    if (!status)
        status = a->json ? gaps_json(&c) : gaps_text(&c);
    free(c.v);
    return status;
}
