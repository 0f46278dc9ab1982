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
    char *out = ctl_word();
    unsigned far = (unsigned)(offset_min < 0 ? -offset_min : offset_min);
    if (far == 0)
        return "UTC";
    (void)snprintf(out, CTL_WORD_MAX, "%c%02u:%02u", offset_min < 0 ? '-' : '+', far / 60,
                   far % 60);
    return out;
}

static const char *loss_word(enum seq_loss loss)
{
    return loss == SEQ_LOSS_TRUST ? "trust" : loss == SEQ_LOSS_SKIP ? "skip" : "refuse";
}

/* As a shell takes it. */
static void put_template(struct buf *b, const char *template)
{
    buf_put_str(b, " --template '");
    for (const char *c = template; *c; c++)
        if (*c == '\'')
            buf_put_str(b, "'\\''");
        else
            buf_put_char(b, *c);
    buf_put_char(b, '\'');
}

char *ctl_seq_options(char *out, const struct seq_definition *d, int64_t max)
{
    struct buf b;
    buf_init(&b, out, CTL_SEQ_OPTIONS_MAX - 1);
    buf_printf(&b, "--start %" PRId64 " --increment %" PRId64, d->start, d->increment);
    if (max < seq_last_index(d))
        buf_printf(&b, " --max %" PRId64, ctl_seq_at(d, max));
    if (d->strict)
        buf_put_str(&b, " --order strict");
    if (d->cycle)
        buf_put_str(&b, " --cycle");
    if (d->reset != PERIOD_NEVER)
        buf_printf(&b, " --reset %s", period_reset_name(d->reset));
    if (d->offset_min != 0)
        buf_printf(&b, " --timezone %s", ctl_seq_zone_text(d->offset_min));
    if (d->subs > 0)
        buf_printf(&b, " --max-subs %" PRId64, d->subs);
    if (d->loss == SEQ_LOSS_SKIP)
        buf_printf(&b, " --max-rate %" PRId64, d->rate);
    else if (d->loss != SEQ_LOSS_UNSAID)
        buf_printf(&b, " --on-loss %s", loss_word(d->loss));
    if (d->back_h != (d->template[0] && d->reset != PERIOD_NEVER ? SEQ_BACK_DEFAULT_H : 0))
        buf_printf(&b, " --date-back %" PRId64 "%s", d->back_h / (d->back_h % 24 ? 1 : 24),
                   d->back_h % 24 ? "h" : "d");
    if (d->begins_ms > 0)
        buf_printf(&b, " --begins %s", ctl_time(d->begins_ms));
    if (d->template[0])
        put_template(&b, d->template);
    out[b.n] = '\0';
    return out;
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
