/*
 * sidflakectl seq: what can be said of a sequence, and how it is said.
 */
#include "ctl/seq.h"

#include "base/buf.h"
#include "base/dec.h"
#include "base/int64.h"
#include "coord/seq_rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SUBS_DEFAULT 100000

/* ---- words ------------------------------------------------------------------------------------
 */

bool ctl_seq_number(const char *text, int64_t *out)
{
    int64_t v;
    if (!dec_i64(span_str(text), &v) || v < -SEQ_NUMBER_MAX || v > SEQ_NUMBER_MAX)
        return false;
    *out = v;
    return true;
}

static bool two_digits(const char *p, int *out)
{
    if (p[0] < '0' || p[0] > '9' || p[1] < '0' || p[1] > '9')
        return false;
    *out = 10 * (p[0] - '0') + (p[1] - '0');
    return true;
}

bool ctl_seq_zone(const char *text, int *offset_min)
{
    int h, m;
    if (strcmp(text, "UTC") == 0 || strcmp(text, "Z") == 0) {
        *offset_min = 0;
        return true;
    }
    if (strlen(text) != 6 || (text[0] != '+' && text[0] != '-') || text[3] != ':' ||
        !two_digits(text + 1, &h) || !two_digits(text + 4, &m) || m > 59 ||
        60 * h + m > PERIOD_OFFSET_MAX)
        return false;
    *offset_min = (text[0] == '-' ? -1 : 1) * (60 * h + m);
    return true;
}

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

enum err_code ctl_seq_check_name(const char *name, struct err *e)
{
    if (seq_is_name(span_str(name)))
        return ERR_OK;
    return err_set(e, ERR_INVALID,
                   "expected a name of 1 to 64 letters, digits, '_', '.' and '-', found \"%.80s\"",
                   name);
}

/* ---- what seq create is told --------------------------------------------------------------------
 */

static enum err_code read_order(const char *text, bool *strict, struct err *e)
{
    *strict = text && strcmp(text, "strict") == 0;
    if (!text || *strict || strcmp(text, "sidecar") == 0)
        return ERR_OK;
    return err_set(e, ERR_INVALID, "--order: expected sidecar or strict, found \"%.80s\"", text);
}

static enum err_code read_periods(const struct ctl_seq_args *in, struct seq_definition *d,
                                  struct err *e)
{
    if (in->reset && !period_reset_parse(span_str(in->reset), &d->reset))
        return err_set(e, ERR_INVALID,
                       "--reset: expected never, hour, day, month or year, found \"%.80s\"",
                       in->reset);
    if (!in->timezone)
        return ERR_OK;
    if (d->reset == PERIOD_NEVER)
        return err_set(e, ERR_INVALID,
                       "--timezone: expected with --reset hour, day, month or year, whose "
                       "beginnings it moves, found without");
    if (ctl_seq_zone(in->timezone, &d->offset_min))
        return ERR_OK;
    return err_set(e, ERR_INVALID,
                   "--timezone: expected UTC, Z or an offset from it such as +01:00, up to 14:00, "
                   "found \"%.80s\": periods keep one offset all the year, so the name of a zone, "
                   "whose offset changes with summer time and by law, cannot be kept",
                   in->timezone);
}

static enum err_code read_loss(const struct ctl_seq_args *in, struct seq_definition *d,
                               struct err *e)
{
    if (in->has_rate && in->on_loss)
        return err_set(e, ERR_INVALID, "expected one of --max-rate and --on-loss, found both");
    if (in->has_rate)
        d->loss = SEQ_LOSS_SKIP;
    else if (!in->on_loss)
        d->loss = SEQ_LOSS_UNSAID;
    else if (strcmp(in->on_loss, "refuse") == 0)
        d->loss = SEQ_LOSS_REFUSE;
    else if (strcmp(in->on_loss, "trust") == 0)
        d->loss = SEQ_LOSS_TRUST;
    else
        return err_set(e, ERR_INVALID,
                       "--on-loss: expected refuse or trust, or --max-rate R in its place, found "
                       "\"%.80s\"",
                       in->on_loss);
    d->rate = in->has_rate ? in->rate : 0;
    d->burst = in->has_rate ? seq_burst(in->rate) : 0;
    return ERR_OK;
}

/* What of an operator's words belongs together. */
static enum err_code check_words(const struct ctl_seq_args *in, struct err *e)
{
    if (in->reuse && !in->no_older)
        return err_set(e, ERR_INVALID,
                       "--reuse: expected --no-older-data as well, your word that no data from "
                       "before the name was dropped ever come back, since numbers would repeat");
    if (in->no_older && !in->reuse)
        return err_set(e, ERR_INVALID, "--no-older-data: expected with --reuse, found without");
    if (in->fresh && in->has_begins)
        return err_set(e, ERR_INVALID,
                       "expected one of --new (there was none of this name) and --begins (when "
                       "that one began), found both");
    return ERR_OK;
}

enum err_code ctl_seq_define(const struct ctl_seq_args *in, struct seq_create *out, struct err *e)
{
    struct seq_definition d = {.start = in->start, .increment = in->increment, .cycle = in->cycle};
    enum err_code code = check_words(in, e);
    if (!code)
        code = read_order(in->order, &d.strict, e);
    if (!code)
        code = read_periods(in, &d, e);
    if (!code)
        code = read_loss(in, &d, e);
    if (code)
        return code;
    d.subs = in->max_subs > 0 ? (int64_t)in->max_subs : in->subs ? SUBS_DEFAULT : 0;
    d.begins_ms = in->has_begins ? in->begins_ms : 0;
    *out = (struct seq_create){
        .name = out->name,
        .definition = d,
        .has_max = in->has_max,
        .max = in->has_max        ? in->max
               : d.increment >= 0 ? SEQ_NUMBER_MAX
                                  : -SEQ_NUMBER_MAX,
        .fresh = in->fresh,
        .reuse = in->reuse,
        .no_older = in->no_older,
    };
    if (in->has_begins && in->begins_ms <= 0)
        return err_set(e, ERR_RANGE, "--begins: expected a time after 1970, found %s",
                       ctl_time(in->begins_ms));
    return seq_check(&d, out->max, e);
}

/* ---- how it is said ----------------------------------------------------------------------------
 */

static const char *loss_word(enum seq_loss loss)
{
    return loss == SEQ_LOSS_TRUST ? "trust" : loss == SEQ_LOSS_SKIP ? "skip" : "refuse";
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
    if (d->begins_ms > 0)
        buf_printf(&b, " --begins %s", ctl_time(d->begins_ms));
    out[b.n] = '\0';
    return out;
}

json_t *ctl_seq_definition_json(const struct seq_definition *d, int64_t max)
{
    bool skips = d->loss == SEQ_LOSS_SKIP;
    return json_pack(
        "{s:I, s:I, s:I, s:s, s:b, s:s, s:s, s:I, s:s, s:o, s:s}", "start", (json_int_t)d->start,
        "increment", (json_int_t)d->increment, "max", (json_int_t)ctl_seq_at(d, max), "order",
        d->strict ? "strict" : "sidecar", "cycle", (int)d->cycle, "reset",
        period_reset_name(d->reset), "timezone", ctl_seq_zone_text(d->offset_min), "max_subs",
        (json_int_t)d->subs, "on_loss", loss_word(d->loss), "max_rate",
        skips ? json_integer((json_int_t)d->rate) : json_null(), "begins", ctl_time(d->begins_ms));
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
