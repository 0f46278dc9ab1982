/*
 * sidflakectl pool check: what the hints of a pool get wrong.
 */
#include "ctl/session.h"

#include <stdio.h>

static int repair(struct ctl_session *s, const struct coord_audit *audit, struct ctl_args *a)
{
    static uint16_t list[COORD_WORKERS];
    struct ctl_progress progress;
    size_t n = 0, done = 0;
    enum coord_status r = COORD_OK;
    for (uint32_t w = 0; w < COORD_WORKERS; w++)
        if (audit->faults[w])
            list[n++] = (uint16_t)w;
    ctl_progress_begin(&progress, false);
    do { /* once at least: strangers have no workerId to be named by */
        size_t batch = n - done < COORD_REPAIR_MAX ? n - done : COORD_REPAIR_MAX;
        r = coord_repair(s->coord, s->pool.identity, list + done, batch, &s->reply);
        done += batch;
        ctl_progress_show(&progress, "repaired %s of %s workerIds", ctl_number(done),
                          ctl_number(n));
    } while (done < n && r == COORD_OK);
    ctl_progress_end(&progress);
    return r == COORD_OK ? CTL_OK : ctl_session_fail_change(a, r, &s->reply);
}

static void print_audit(const struct coord_audit *audit)
{
    for (int f = 0; f < COORD_FAULTS; f++) {
        unsigned shown = 0;
        if (audit->count[f] == 0)
            continue;
        (void)printf("%-12s %llu:", coord_fault_name((enum coord_fault)f),
                     (unsigned long long)audit->count[f]);
        for (uint32_t w = 0; w < COORD_WORKERS && shown < 16; w++)
            if (audit->faults[w] & 1u << f && shown++ < 16)
                (void)printf(" %u", w);
        (void)printf("%s%s\n", audit->count[f] > shown ? " …" : "",
                     coord_fault_is_harmless((enum coord_fault)f)
                         ? " (harmless: whoever claims passes over it)"
                         : "");
    }
    if (audit->strangers > 0)
        (void)printf("%llu queue entries are no workerId of the pool\n",
                     (unsigned long long)audit->strangers);
}

static uint64_t harmless(const struct coord_audit *audit)
{
    uint64_t n = 0;
    for (int f = 0; f < COORD_FAULTS; f++)
        n += coord_fault_is_harmless((enum coord_fault)f) ? audit->count[f] : 0;
    return n;
}

static json_t *audit_json(const struct coord_audit *audit, uint64_t faults, bool repaired)
{
    json_t *j = json_pack("{s:I, s:I, s:b, s:I}", "faults", (json_int_t)faults, "harmless",
                          (json_int_t)harmless(audit), "repaired", (int)repaired, "strangers",
                          (json_int_t)audit->strangers);
    for (int f = 0; f < COORD_FAULTS; f++) {
        json_t *list = json_array();
        for (uint32_t w = 0; w < COORD_WORKERS; w++)
            if (audit->faults[w] & 1u << f)
                json_array_append_new(list, json_integer((json_int_t)w));
        json_object_set_new(j, coord_fault_name((enum coord_fault)f), list);
    }
    return j;
}

int ctl_pool_check(struct ctl_args *a)
{
    static struct coord_audit audit;
    struct ctl_session s;
    struct coord_snapshot snap = {0};
    int status = ctl_session_snapshot(a, &s, &snap);
    if (status)
        return status;
    uint64_t faults = coord_audit(&snap, &audit);
    bool mend = a->repair && faults + harmless(&audit) > 0;
    coord_snapshot_clear(&snap);
    if (!a->json)
        print_audit(&audit);
    if (mend)
        status = repair(&s, &audit, a);
    else if (faults > 0)
        status = CTL_BAD;
    coord_free(s.coord);
    if (a->json)
        return ctl_print_json(status, audit_json(&audit, faults, mend && status == CTL_OK));
    if (status == CTL_OK)
        (void)puts(mend ? "repaired" : "nothing is wrong");
    return ctl_flush(status);
}
