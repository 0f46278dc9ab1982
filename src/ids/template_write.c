/*
 * What a number looks like by a template.
 */
#include "ids/template_steps.h"

#include <assert.h>
#include <inttypes.h>

#define SHOWN(s) (int)((s).n < 80 ? (s).n : 80), (s).p

/* ---- the caller's arguments -------------------------------------------------------------------
 */

static const struct template_step *arg_of(const struct template *t, struct span name)
{
    for (unsigned i = 0; i < t->n; i++)
        if (t->step[i].kind == TEMPLATE_ARG && span_eq(template_step_text(t, &t->step[i]), name))
            return &t->step[i];
    return NULL;
}

/* The first of this name. */
static bool find_arg(struct span args, struct span name, struct span *out)
{
    while (args.p) {
        *out = span_cut(&args, '&');
        if (span_eq(span_cut(out, '='), name))
            return true;
    }
    return false;
}

/* Each is said once, and is one that the template has, or the date. */
static enum err_code check_names(const struct template *t, struct span args, struct err *e)
{
    struct span rest = args, again;
    while (rest.n) {
        struct span value = span_cut(&rest, '&'), name = span_cut(&value, '=');
        if (!arg_of(t, name) && !span_eq(name, SPAN("date")))
            return err_set(e, ERR_INVALID,
                           "expected arguments of the sequence's template, or date=, found "
                           "\"%.*s\"",
                           SHOWN(name));
        if (find_arg(rest, name, &again))
            return err_set(e, ERR_INVALID, "%.*s: expected once, found twice", SHOWN(name));
    }
    return ERR_OK;
}

/* What the caller said, or the default. */
static enum err_code arg_value(const struct template *t, const struct template_step *s,
                               struct span args, struct span *out, struct err *e)
{
    struct span name = template_step_text(t, s);
    if (!find_arg(args, name, out)) {
        *out = span_of(name.p + name.n, s->default_n);
        if (s->default_n)
            return ERR_OK;
        return err_set(e, ERR_INVALID,
                       "expected ?%.*s=, which the sequence's template wants, "
                       "found none",
                       SHOWN(name));
    }
    if (template_fits(s, *out))
        return ERR_OK;
    return err_set(e, ERR_INVALID,
                   "%.*s: expected %u to %u characters of those that the sequence's template "
                   "takes, found \"%.*s\"",
                   SHOWN(name), s->least, s->most, SHOWN(*out));
}

/* ---- one step ---------------------------------------------------------------------------------
 */

/* A text that is being written. */
struct writing {
    const struct template *t;
    const struct template_values *v;
    char *out;
    size_t at[TEMPLATE_STEPS + 1]; /* where each step begins */
    struct err *e;
};

typedef enum err_code writer(struct writing *w, const struct template_step *s, size_t *n);

static enum err_code put_span(struct writing *w, struct span text, size_t *n)
{
    memcpy(w->out, text.p, text.n);
    *n = text.n;
    return ERR_OK;
}

static enum err_code write_literal(struct writing *w, const struct template_step *s, size_t *n)
{
    return put_span(w, template_step_text(w->t, s), n);
}

static enum err_code write_date(struct writing *w, const struct template_step *s, size_t *n)
{
    template_put_date(w->out, (enum template_kind)s->kind, w->v->period);
    *n = s->most;
    return ERR_OK;
}

static enum err_code write_seq(struct writing *w, const struct template_step *s, size_t *n)
{
    uint64_t v = (uint64_t)w->v->number; /* within last_number */
    *n = s->least == s->most ? s->most : template_digits(v, s->base);
    (void)template_put_number(w->out, *n, v, s->base);
    return ERR_OK;
}

static enum err_code write_arg(struct writing *w, const struct template_step *s, size_t *n)
{
    struct span value;
    enum err_code code = arg_value(w->t, s, w->v->args, &value, w->e);
    return code ? code : put_span(w, value, n);
}

static enum err_code write_sub(struct writing *w, const struct template_step *s, size_t *n)
{
    if (template_fits(s, w->v->sub))
        return put_span(w, w->v->sub, n);
    return err_set(w->e, ERR_INVALID,
                   "sub: expected %u to %u characters of those that the sequence's template takes, "
                   "found \"%.*s\"",
                   s->least, s->most, SHOWN(w->v->sub));
}

static enum err_code write_worker(struct writing *w, const struct template_step *s, size_t *n)
{
    *n = s->most;
    if (w->v->worker < 0)
        return err_set(w->e, ERR_NOT_FOUND,
                       "expected a workerId, which the sequence's template "
                       "writes, found none held at the moment");
    if (template_put_number(w->out, *n, (uint64_t)w->v->worker, s->base))
        return ERR_OK;
    return err_set(w->e, ERR_RANGE,
                   "expected a workerId of at most %u digits in base %u, which the sequence's "
                   "template has for it, found %" PRId32,
                   s->most, s->base, w->v->worker);
}

static enum err_code write_ms(struct writing *w, const struct template_step *s, size_t *n)
{
    *n = s->most;
    if (w->v->now_ms >= 0 && template_put_number(w->out, *n, (uint64_t)w->v->now_ms, 10))
        return ERR_OK;
    return err_set(w->e, ERR_RANGE, "expected a time of at most %u digits of ms, found %" PRId64,
                   s->most, w->v->now_ms);
}

/* Each character as likely as the others: a byte above the last whole multiple is drawn again. */
static enum err_code write_rand(struct writing *w, const struct template_step *s, size_t *n)
{
    char members[128];
    unsigned char bytes[32];
    unsigned some = 0, used = sizeof bytes;
    for (int c = 0; c < 128; c++)
        if (template_chars_has(&s->chars, (char)c))
            members[some++] = (char)c;
    assert(some > 0);
    for (*n = 0; *n < s->most;) {
        if (used == sizeof bytes) {
            w->v->rng->fill(w->v->rng, bytes, sizeof bytes);
            used = 0;
        }
        unsigned byte = bytes[used++];
        if (byte < 256 - 256 % some)
            w->out[(*n)++] = members[byte % some];
    }
    return ERR_OK;
}

static enum err_code write_check(struct writing *w, const struct template_step *s, size_t *n)
{
    size_t to = w->at[s - w->t->step], from = 0;
    const char *begin = w->out - to;
    if (s->of < TEMPLATE_STEPS) {
        from = w->at[s->of];
        to = w->at[s->of + 1];
    }
    check_digit_write(&s->check, span_of(begin + from, to - from), w->out);
    *n = s->most;
    return ERR_OK;
}

static writer *const writers[TEMPLATE_KINDS] = {
    [TEMPLATE_LITERAL] = write_literal, [TEMPLATE_YEARS] = write_date,
    [TEMPLATE_MONTHS] = write_date,     [TEMPLATE_DAYS] = write_date,
    [TEMPLATE_YEARDAYS] = write_date,   [TEMPLATE_HOURS] = write_date,
    [TEMPLATE_SEQ] = write_seq,         [TEMPLATE_ARG] = write_arg,
    [TEMPLATE_SUB] = write_sub,         [TEMPLATE_WORKER] = write_worker,
    [TEMPLATE_MS] = write_ms,           [TEMPLATE_RAND] = write_rand,
    [TEMPLATE_CHECK] = write_check,
};

/* ---- all of them ------------------------------------------------------------------------------
 */

enum err_code template_check(const struct template *t, const struct template_values *v,
                             struct err *e)
{
    enum err_code code = v->args.n ? check_names(t, v->args, e) : ERR_OK;
    if (!t->takes_args && !t->has_sub && !t->has_worker)
        return code;
    char out[TEMPLATE_OUT_MAX];
    struct writing w; /* without at, which none of these looks at */
    w.t = t, w.v = v, w.out = out, w.e = e;
    for (unsigned i = 0; i < t->n && !code; i++) {
        const struct template_step *s = &t->step[i];
        bool said =
            s->kind == TEMPLATE_ARG || s->kind == TEMPLATE_SUB || s->kind == TEMPLATE_WORKER;
        size_t n;
        if (said)
            code = writers[s->kind](&w, s, &n);
    }
    return code;
}

/* What no step looks at for itself. */
static enum err_code check_values(const struct template *t, const struct template_values *v,
                                  size_t room, struct err *e)
{
    size_t label = template_label_length((enum template_reset)t->reset);
    if (v->number < 0 || v->number > t->last_number)
        return err_set(e, ERR_RANGE,
                       "expected a number from 0 to %" PRId64 ", for which the sequence's template "
                       "is wide enough, found %" PRId64,
                       t->last_number, v->number);
    if (strnlen(v->period, TEMPLATE_PERIOD_MAX) != label)
        return err_set(e, ERR_INVALID, "expected a period of %zu characters, found \"%.*s\"", label,
                       TEMPLATE_PERIOD_MAX, v->period);
    if (room < t->longest)
        return err_set(e, ERR_RANGE, "expected room for %u characters, found room for %zu",
                       t->longest, room);
    return v->args.n ? check_names(t, v->args, e) : ERR_OK;
}

size_t template_write(const struct template *t, const struct template_values *v, char *out,
                      size_t room, struct err *e)
{
    struct writing w; /* of which at is filled in on the way */
    w.t = t, w.v = v, w.e = e;
    if (check_values(t, v, room, e))
        return 0;
    size_t at = 0;
    for (unsigned i = 0; i < t->n; i++) {
        const struct template_step *s = &t->step[i];
        size_t n = 0;
        w.at[i] = at;
        w.out = out + at;
        if (writers[s->kind](&w, s, &n))
            return 0;
        at += n;
        w.at[i + 1] = at;
    }
    return at;
}
