/*
 * Texts that numbers were written as, by the templates of the sequences that are known here.
 */
#include "ids/number_generator.h"

#include "base/timefmt.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

static void add(struct generator_reading *out, struct span name, struct span text, bool said)
{
    if (text.n > 0 && out->n < GENERATOR_READ_PARTS)
        out->part[out->n++] = (struct generator_read_part){name, text, said};
}

static struct span shown(const struct template_part *p, struct generator_reading *out)
{
    if (p->kind == TEMPLATE_MS)
        return span_str(timefmt_rfc3339(out->time, (int64_t)p->value));
    if (p->kind != TEMPLATE_WORKER)
        return p->text;
    (void)snprintf(out->worker, sizeof out->worker, "%" PRIu64, p->value);
    return span_str(out->worker);
}

static void fill(const struct sequence_generator *s, const struct template_reading *r,
                 struct generator_reading *out)
{
    out->of = span_str(s->of.name);
    out->sub = r->sub;
    out->n = 0;
    (void)snprintf(out->number, sizeof out->number, "%" PRId64, r->number);
    (void)snprintf(out->period, sizeof out->period, "%s", r->period);
    add(out, SPAN("number"), span_str(out->number), false);
    add(out, SPAN("period"), span_str(out->period), false);
    add(out, SPAN("sub"), r->sub, false);
    for (unsigned i = 0; i < r->n; i++) {
        const struct template_part *p = &r->part[i];
        if (p->kind == TEMPLATE_ARG)
            add(out, p->name, p->text, true);
        else if (p->kind >= TEMPLATE_WORKER)
            add(out, span_str(template_kind_name(p->kind)), shown(p, out), false);
    }
}
static_assert(TEMPLATE_WORKER > TEMPLATE_SUB && TEMPLATE_CHECK > TEMPLATE_WORKER,
              "behind what number, period and sub have told stands what is shown as it is");

/* One place for each counter, of which those of one sequence have the same template. */
enum err_code number_table_read(const struct generator *g, struct span text, struct span name,
                                struct generator_reading *out, struct buf *why)
{
    const struct sequence_table *q = ((const struct number_table *)g)->sequences;
    struct template_reading r;
    struct err e;
    while (out->at < q->top) {
        const struct sequence_generator *s = &q->place[out->at++];
        if (s->state != SEQUENCE_OPEN || !s->template || s->template == out->tried ||
            (name.n > 0 && !span_eq(name, span_str(s->of.name))))
            continue;
        out->tried = s->template;
        enum err_code code = template_read(s->template, text, &r, &e);
        if (code == ERR_OK) {
            fill(s, &r, out);
            return ERR_OK;
        }
        if ((code == ERR_CORRUPT || name.n > 0) && buf_span(why).n == 0) {
            out->of = span_str(s->of.name);
            out->sub = span_of("", 0);
            buf_printf(why, "no number of the sequence %s: %s", s->of.name, e.text);
            return ERR_CORRUPT;
        }
    }
    return ERR_NOT_FOUND;
}
