/*
 * sidflakectl decode, range: arithmetic on IDs.
 *
 * What may be wrong is said on stderr: stdout is for scripts.
 */
#include "ctl/session.h"

#include "base/dec.h"
#include "base/timefmt.h"
#include "ids/layout.h"

#include <stdio.h>
#include <unistd.h>

/* What is known of the pool that IDs are of. */
struct space {
    int64_t epoch_ms;
    struct layout layout;
    int64_t now_ms;  /* the coordinator's time where it was asked */
    int64_t skew_ms; /* so far ahead of it a sound ID may be */
    unsigned from, to;
    bool assumed; /* nobody said the epoch */
};

static int ask_pool(const struct ctl_args *a, struct space *out)
{
    struct ctl_session s;
    int status = ctl_session_open(a, &s, CTL_SESSION_TIMEOUT_US, true);
    if (status)
        return status;
    coord_free(s.coord);
    out->epoch_ms = s.pool.epoch_ms;
    out->layout = s.pool.layout;
    out->now_ms = s.reply.now_ms;
    out->skew_ms = s.pool.params.max_skew_ms;
    out->from = s.pool.params.worker_from;
    out->to = s.pool.params.worker_to;
    return CTL_OK;
}

static int ask_sidecar(const struct ctl_args *a, struct space *out)
{
    int status = ctl_sidecar_space(a, &out->epoch_ms, &out->layout);
    out->to = layout_workers(&out->layout) - 1;
    return status;
}

static int find_space(const struct ctl_args *a, const char *command, struct space *out)
{
    struct err e;
    int said = (a->has_epoch || a->layout) + (a->coordinator != NULL) + (a->connect != NULL);
    *out = (struct space){.epoch_ms = a->has_epoch ? a->epoch_ms : LAYOUT_EPOCH_DEFAULT_MS,
                          .layout = layout_usual,
                          .now_ms = clock_wall_ms(clock_system()),
                          .skew_ms = coord_params_default.max_skew_ms,
                          .assumed = !a->has_epoch && !a->coordinator && !a->connect};
    if (said > 1)
        return ctl_fail(
            CTL_USAGE,
            "%s: expected --epoch and --layout, --coordinator or --connect, found %d of "
            "these",
            command, said);
    if (a->layout && layout_parse(span_str(a->layout), &out->layout, &e))
        return ctl_fail(CTL_USAGE, "%s", e.text);
    out->to = layout_workers(&out->layout) - 1;
    if (a->coordinator)
        return ask_pool(a, out);
    if (a->connect)
        return ask_sidecar(a, out);
    if (!a->has_epoch && isatty(STDOUT_FILENO)) /* somebody reads it */
        (void)ctl_fail(CTL_OK,
                       "the epoch is taken to be %s; --coordinator, --connect or --epoch says",
                       ctl_time(out->epoch_ms));
    return CTL_OK;
}

/* Appended to warnings, and told. */
static void warn(json_t *warnings, const char *subject, const char *text)
{
    (void)ctl_fail(CTL_OK, "%s: %s", subject, text);
    json_array_append_new(warnings, json_string(text));
}

static json_t *judge(const struct space *of, const char *id, const struct layout_parts *p)
{
    json_t *warnings = json_array();
    int64_t ahead = of->epoch_ms + p->time - of->now_ms;
    char text[160];
    if (ahead > of->skew_ms) {
        (void)snprintf(text, sizeof text, "its time is %s in the future%s", ctl_span(ahead),
                       of->assumed ? ": the epoch, which nobody said, may be another" : "");
        warn(warnings, id, text);
    }
    if (p->worker < of->from || p->worker > of->to) {
        (void)snprintf(
            text, sizeof text,
            "workerId %u is none of the pool's, which has %u to %u: it is of another pool",
            p->worker, of->from, of->to);
        warn(warnings, id, text);
    }
    return warnings;
}

static json_t *tell(const struct ctl_args *a, const struct space *of, const char *id,
                    const struct layout_parts *p)
{
    int64_t ms = of->epoch_ms + p->time;
    json_t *warnings = judge(of, id, p);
    bool parts = of->layout.worker_high > 0;
    uint32_t high = layout_worker_high(&of->layout, p->worker);
    uint32_t low = layout_worker_low(&of->layout, p->worker);
    if (a->json) {
        json_t *one = json_pack("{s:s, s:s, s:I, s:i, s:i, s:o}", "id", id, "time", ctl_time(ms),
                                "unix_ms", (json_int_t)ms, "worker", (int)p->worker, "sequence",
                                (int)p->sequence, "warnings", warnings);
        if (parts) {
            json_object_set_new(one, "worker_high", json_integer(high));
            json_object_set_new(one, "worker_low", json_integer(low));
        }
        return one;
    }
    json_decref(warnings);
    (void)printf("%s time=%s unix_ms=%lld worker=%u", id, ctl_time(ms), (long long)ms, p->worker);
    if (parts)
        (void)printf(" (%u+%u)", high, low);
    (void)printf(" sequence=%u\n", p->sequence);
    return NULL;
}

static uint64_t largest(const struct layout *l)
{
    return layout_compose(l, layout_lasts_ms(l) - 1, layout_workers(l) - 1,
                          layout_sequences(l) - 1);
}

int ctl_decode(struct ctl_args *a)
{
    struct space of;
    if (a->seq.name || a->seq.words.template)
        return ctl_decode_text(a);
    int status = find_space(a, "decode", &of);
    if (status)
        return status;
    json_t *list = json_array();
    for (int i = 0; i < a->nrest; i++) {
        struct layout_parts p;
        uint64_t id;
        char fields[LAYOUT_FIELDS_MAX];
        if (!dec_u64(span_str(a->rest[i]), &id) || !layout_decompose(&of.layout, id, &p)) {
            json_decref(list);
            return ctl_fail(CTL_USAGE,
                            "decode: expected an ID of the layout \"%s\", from 0 to %llu, found "
                            "\"%s\"",
                            layout_fields(fields, &of.layout),
                            (unsigned long long)largest(&of.layout), a->rest[i]);
        }
        json_t *one = tell(a, &of, a->rest[i], &p);
        if (a->json)
            json_array_append_new(list, one);
    }
    if (a->json)
        return ctl_print_json(CTL_OK, list);
    json_decref(list);
    return ctl_flush(CTL_OK);
}

int ctl_range(struct ctl_args *a)
{
    struct space of;
    int64_t from, to;
    char lo[24], hi[24];
    if (!a->from || !timefmt_parse_rfc3339(span_str(a->from), &from))
        return ctl_fail(CTL_USAGE, "range: expected --from RFC3339, found \"%s\"",
                        a->from ? a->from : "");
    if (!a->to || !timefmt_parse_rfc3339(span_str(a->to), &to))
        return ctl_fail(CTL_USAGE, "range: expected --to RFC3339, found \"%s\"",
                        a->to ? a->to : "");
    int status = find_space(a, "range", &of);
    if (status)
        return status;
    int64_t epoch = of.epoch_ms;
    const struct layout *l = &of.layout;
    int64_t end = layout_end_ms(l, epoch);
    if (from > to || from < epoch || to > end)
        return ctl_fail(CTL_USAGE, "range: expected %s <= --from <= --to <= %s, found %s and %s",
                        ctl_time(epoch), ctl_time(end), ctl_time(from), ctl_time(to));
    if (to > of.now_ms)
        (void)ctl_fail(CTL_OK, "--to is %s in the future: more IDs of that time are to come",
                       ctl_span(to - of.now_ms));
    (void)snprintf(lo, sizeof lo, "%llu",
                   (unsigned long long)layout_compose(l, from - epoch, 0, 0));
    (void)snprintf(hi, sizeof hi, "%llu",
                   (unsigned long long)layout_compose(l, to - epoch, layout_workers(l) - 1,
                                                      layout_sequences(l) - 1));
    if (a->json)
        return ctl_print_json(CTL_OK, json_pack("{s:s, s:s}", "smallest", lo, "largest", hi));
    (void)printf("%s %s\n", lo, hi);
    return ctl_flush(CTL_OK);
}
