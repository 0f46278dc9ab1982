/*
 * How the numbers of a sequence are written: the longest text, and when they become too large for
 * it.
 */
#include "ctl/seq.h"

#include "base/int64.h"
#include "coord/seq_template.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Since when the numbers below `next` were granted: the period's beginning, or the sequence's. */
static int64_t since_ms(const struct seq_definition *d, const char *label, struct period *p)
{
    if (d->reset != PERIOD_NEVER && period_find(d->reset, d->offset_min, span_str(label), p))
        return p->begins_ms;
    *p = (struct period){.ends_ms = INT64_MAX};
    return d->begins_ms;
}

/* At the rate of all numbers of the counter so far. */
static void find_end(const struct seq_definition *d, const struct seq_grant *now, int64_t now_ms,
                     struct ctl_seq_form *out)
{
    struct period p;
    int64_t since = since_ms(d, now->period, &p), past = now_ms - since;
    int64_t end = seq_max_index(d, out->last) + 1;
    out->left = max64(end - now->next, 0);
    if (out->left == 0 || past <= 0 || now->next <= 0)
        return;
    double ahead = (double)out->left / (double)now->next * (double)past;
    out->ends_in_ms = ahead < CTL_SEQ_FAR_MS ? (int64_t)ahead : CTL_SEQ_FAR_MS;
    out->outlasts = out->ends_in_ms >= p.ends_ms - now_ms;
}

bool ctl_seq_form(const char *name, const struct seq_definition *d, int64_t max,
                  const struct seq_grant *now, int64_t now_ms, struct ctl_seq_form *out)
{
    struct template t;
    int64_t last = seq_number(d, max);
    *out = (struct ctl_seq_form){.left = -1};
    if (!d->template[0])
        return false;
    if (seq_template_parse(name, d, last, &t, &out->why)) {
        out->unreadable = true;
        return true;
    }
    out->last = d->increment > 0 ? min64(last, template_last_number(&t)) : last;
    out->longest = template_longest(&t, max64(out->last, d->start));
    if (now)
        find_end(d, now, now_ms, out);
    return true;
}

static json_t *left_json(const struct ctl_seq_form *f)
{
    return f->left < 0 ? json_null() : json_integer(f->left);
}

json_t *ctl_seq_form_json(const struct ctl_seq_form *f)
{
    bool soon = f->ends_in_ms > 0 && !f->outlasts;
    if (f->unreadable)
        return json_pack("{s:s}", "unreadable", f->why.text);
    return json_pack("{s:I, s:I, s:o, s:o}", "longest", (json_int_t)f->longest, "last",
                     (json_int_t)f->last, "left", left_json(f), "used_up_in_ms",
                     soon ? json_integer(f->ends_in_ms) : json_null());
}

void ctl_seq_form_print(const struct ctl_seq_form *f)
{
    if (f->unreadable) {
        (void)printf("longest      not known: %s\n", f->why.text);
        return;
    }
    (void)printf("longest      %zu characters, of numbers up to %" PRId64 "\n", f->longest,
                 f->last);
    if (f->left < 0)
        return;
    if (f->left == 0)
        (void)puts("used up      now");
    else if (f->outlasts)
        (void)printf("used up      not before this period ends, at its rate so far: %" PRId64
                     " are left\n",
                     f->left);
    else if (f->ends_in_ms == 0)
        (void)printf("used up      after %" PRId64 " more\n", f->left);
    else
        (void)printf("used up      after %" PRId64 " more, at the rate so far in %s\n", f->left,
                     f->ends_in_ms == CTL_SEQ_FAR_MS ? "more than 1,000 years"
                                                     : ctl_span(f->ends_in_ms));
}
