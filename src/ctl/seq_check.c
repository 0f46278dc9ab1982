/*
 * sidflakectl seq check: whether each sequence has numbers, and what is wrong with those that have
 * none.
 */
#include "ctl/seq.h"

#include "base/buf.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct checked {
    json_t *list; /* of {name, answer, why}: those with something wrong, or that wait */
    size_t faults, sequences;
    bool failed; /* no memory */
};

static void put(struct checked *c, const char *name, const char *answer, bool fault,
                const char *why)
{
    json_t *one = json_pack("{s:s, s:s, s:b, s:s}", "name", name, "answer", answer, "fault",
                            (int)fault, "why", why);
    c->failed |= json_array_append_new(c->list, one) != 0;
    c->faults += fault;
}

/* What its record and its counters tell, however it answers. */
static void check_rows(struct checked *c, const struct seq_counters *v)
{
    const struct seq_info *q = &v->sequence;
    char why[256];
    size_t bad = 0;
    for (size_t i = 0; i < v->n; i++)
        bad += v->v[i].unreadable;
    if (q->seen > q->top) {
        (void)snprintf(why, sizeof why,
                       "a sidecar was granted numbers up to %s, and the coordinator knows of none"
                       "%s%s: it has forgotten some",
                       ctl_seq_highest(&q->definition, q->seen), q->top > 0 ? " behind " : "",
                       q->top > 0 ? ctl_seq_highest(&q->definition, q->top) : "");
        put(c, q->name, "forgetful", true, why);
    }
    if (bad > 0) {
        (void)snprintf(why, sizeof why,
                       "%zu of its %zu counters are not of the form that they must have: they are "
                       "never granted from",
                       bad, v->n);
        put(c, q->name, "unreadable", true, why);
    }
}

/* Whether what would be next can be written; a number by seq: is had all the same. */
static void check_template(struct checked *c, const struct seq_info *q, const struct seq_grant *g)
{
    struct ctl_seq_form f;
    char why[256];
    if (!ctl_seq_form(q->name, &q->definition, q->max, g, 0, &f))
        return;
    if (f.unreadable) {
        put(c, q->name, "unreadable", true, f.why.text);
    } else if (f.left == 0) {
        struct buf b;
        buf_init(&b, why, sizeof why - 1);
        buf_printf(&b, "its template takes numbers up to %" PRId64 ": sidflakectl seq alter",
                   f.last);
        buf_put_operand(&b, q->name, " --template TEXT");
        why[b.n] = '\0';
        put(c, q->name, seq_how_name(SEQ_USED_UP), true, why);
    }
}

/* CTL_OK, or the exit status. */
static int check_one(struct ctl_session *s, struct checked *c, const char *name)
{
    struct seq_counters v;
    struct seq_grant g;
    char why[CTL_SEQ_WHY_MAX];
    enum coord_status r = seq_show(s->coord, s->pool.identity, name, &v, &s->reply);
    if (r == COORD_OK) {
        check_rows(c, &v);
        free(v.v);
        r = ctl_seq_look(s, name, &g);
    }
    if (r != COORD_OK)
        return ctl_session_fail(s->args, r, &s->reply);
    if (g.how == SEQ_LOOKED)
        check_template(c, &v.sequence, &g);
    else if (g.how != SEQ_DROPPED)
        put(c, name, seq_how_name(g.how), g.how != SEQ_WAIT, ctl_seq_why(s, name, &g, why));
    c->sequences++;
    return CTL_OK;
}

/* All, or those that are named. */
static int check_all(struct ctl_session *s, struct checked *c)
{
    const struct ctl_args *a = s->args;
    struct seq_list list = {.n = 0};
    struct ctl_progress progress;
    int status = CTL_OK;
    enum coord_status r = COORD_OK;
    if (a->nrest == 0)
        r = seq_list(s->coord, s->pool.identity, &list, &s->reply);
    if (r != COORD_OK)
        return ctl_session_fail(a, r, &s->reply);
    ctl_progress_begin(&progress, false);
    size_t n = a->nrest > 0 ? (size_t)a->nrest : list.n;
    for (size_t i = 0; i < n && !status; i++) {
        status = check_one(s, c, a->nrest > 0 ? a->rest[i] : list.v[i].name);
        ctl_progress_show(&progress, "checked %s of %s sequences", ctl_number(i + 1),
                          ctl_number(n));
    }
    ctl_progress_end(&progress);
    free(list.v);
    return status;
}

static int tell(const struct ctl_args *a, struct checked *c)
{
    int status = c->faults > 0 ? CTL_BAD : CTL_OK;
    json_t *one;
    size_t i;
    if (a->json)
        return ctl_print_json(status,
                              json_pack("{s:I, s:I, s:O}", "sequences", (json_int_t)c->sequences,
                                        "faults", (json_int_t)c->faults, "found", c->list));
    json_array_foreach(c->list, i, one)
    {
        (void)printf("%-24s %s\n", json_string_value(json_object_get(one, "name")),
                     json_string_value(json_object_get(one, "why")));
    }
    if (c->faults == 0)
        (void)printf("nothing is wrong with %zu sequence%s\n", c->sequences,
                     c->sequences == 1 ? "" : "s");
    return ctl_flush(status);
}

int ctl_seq_check(struct ctl_args *a)
{
    struct ctl_session s;
    struct checked c = {.failed = false};
    struct err e;
    int status = CTL_OK;
    for (int i = 0; i < a->nrest; i++)
        if (seq_check_name(span_str(a->rest[i]), &e))
            return ctl_fail(CTL_USAGE, "%s", e.text);
    status = ctl_seq_open(a, &s, NULL);
    if (status)
        return status;
    c.list = json_array();
    status = check_all(&s, &c);
    coord_free(s.coord);
    if (!status && (c.failed || !c.list))
        status = ctl_fail(CTL_BAD, "no memory for an answer");
    else if (!status)
        status = tell(a, &c);
    json_decref(c.list);
    return status;
}
