/*
 * sidflakectl seq: how a sequence is said.
 */
#include "ctl/seq.h"

#include "base/buf.h"
#include "base/int64.h"
#include "coord/seq_options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *ctl_seq_zone_text(int offset_min)
{
    return seq_zone_text(ctl_word(), offset_min);
}

static const char *loss_word(enum seq_loss loss)
{
    return loss == SEQ_LOSS_TRUST ? "trust" : loss == SEQ_LOSS_SKIP ? "skip" : "refuse";
}

/* Of what not all have there is no member where it is not. */
static json_t *with_more(json_t *j, const struct seq_definition *d)
{
    if (j && d->back_h > 0)
        json_object_set_new(j, "date_back_hours", json_integer((json_int_t)d->back_h));
    if (j && d->template[0])
        json_object_set_new(j, "template", json_string(d->template));
    return j;
}

json_t *ctl_seq_definition_json(const struct seq_definition *d, int64_t max)
{
    bool skips = d->loss == SEQ_LOSS_SKIP;
    json_t *j = json_pack(
        "{s:I, s:I, s:I, s:s, s:b, s:s, s:s, s:I, s:s, s:o, s:s}", "start", (json_int_t)d->start,
        "increment", (json_int_t)d->increment, "max", (json_int_t)ctl_seq_at(d, max), "order",
        d->strict ? "strict" : "sidecar", "cycle", (int)d->cycle, "reset",
        period_reset_name(d->reset), "timezone", ctl_seq_zone_text(d->offset_min), "max_subs",
        (json_int_t)d->subs, "on_loss", loss_word(d->loss), "max_rate",
        skips ? json_integer((json_int_t)d->rate) : json_null(), "begins", ctl_time(d->begins_ms));
    return with_more(j, d);
}

json_t *ctl_seq_number_json(const struct seq_definition *d, int64_t index, int64_t max)
{
    return index < 0 || index > max ? json_null() : json_integer((json_int_t)ctl_seq_at(d, index));
}

int64_t ctl_seq_at(const struct seq_definition *d, int64_t index)
{
    return seq_number(d, max64(min64(index, seq_last_index(d)), 0));
}

const char *ctl_seq_highest(const struct seq_definition *d, int64_t top)
{
    char *out = ctl_word();
    if (top <= 0)
        return "-";
    (void)snprintf(out, CTL_WORD_MAX, "%" PRId64, ctl_seq_at(d, top - 1));
    return out;
}
