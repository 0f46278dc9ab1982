/*
 * sidflakectl decode, range: arithmetic on IDs.
 */
#include "ctl/ctl.h"

#include "base/dec.h"
#include "base/timefmt.h"
#include "ids/layout.h"

#include <stdio.h>

static int64_t epoch_of(const struct ctl_args *a)
{
    return a->has_epoch ? a->epoch_ms : LAYOUT_EPOCH_DEFAULT_MS;
}

int ctl_decode(struct ctl_args *a)
{
    json_t *list = json_array();
    for (int i = 0; i < a->nrest; i++) {
        struct layout_parts p;
        uint64_t id;
        if (!dec_u64(span_str(a->rest[i]), &id) || !layout_decompose(id, &p)) {
            json_decref(list);
            return ctl_fail(CTL_USAGE,
                            "decode: expected an ID from 0 to 9223372036854775807, found "
                            "\"%s\"",
                            a->rest[i]);
        }
        int64_t ms = epoch_of(a) + p.time;
        if (a->json)
            json_array_append_new(list,
                                  json_pack("{s:s, s:s, s:I, s:i, s:i}", "id", a->rest[i], "time",
                                            ctl_time(ms), "unix_ms", (json_int_t)ms, "worker",
                                            (int)p.worker, "sequence", (int)p.sequence));
        else
            (void)printf("%s time=%s unix_ms=%lld worker=%u sequence=%u\n", a->rest[i],
                         ctl_time(ms), (long long)ms, p.worker, p.sequence);
    }
    if (a->json)
        return ctl_print_json(CTL_OK, list);
    json_decref(list);
    return ctl_flush(CTL_OK);
}

int ctl_range(struct ctl_args *a)
{
    int64_t from, to, epoch = epoch_of(a);
    char lo[24], hi[24];
    if (!a->from || !timefmt_parse_rfc3339(span_str(a->from), &from))
        return ctl_fail(CTL_USAGE, "range: expected --from RFC3339, found \"%s\"",
                        a->from ? a->from : "");
    if (!a->to || !timefmt_parse_rfc3339(span_str(a->to), &to))
        return ctl_fail(CTL_USAGE, "range: expected --to RFC3339, found \"%s\"",
                        a->to ? a->to : "");
    if (from > to || from < epoch || to > layout_end_ms(epoch))
        return ctl_fail(CTL_USAGE, "range: expected %s <= --from <= --to <= %s, found %s and %s",
                        ctl_time(epoch), ctl_time(layout_end_ms(epoch)), ctl_time(from),
                        ctl_time(to));
    (void)snprintf(lo, sizeof lo, "%llu", (unsigned long long)layout_compose(from - epoch, 0, 0));
    (void)snprintf(
        hi, sizeof hi, "%llu",
        (unsigned long long)layout_compose(to - epoch, LAYOUT_WORKERS - 1, LAYOUT_SEQUENCES - 1));
    if (a->json)
        return ctl_print_json(CTL_OK, json_pack("{s:s, s:s}", "smallest", lo, "largest", hi));
    (void)printf("%s %s\n", lo, hi);
    return ctl_flush(CTL_OK);
}
