/*
 * sidflakectl: the workerIds that are held, in some order.
 */
#ifndef SIDFLAKE_CTL_HOLDERS_H
#define SIDFLAKE_CTL_HOLDERS_H

#include "coord/coord.h"

enum ctl_sort {
    CTL_SORT_WORKER,
    CTL_SORT_AGE,
    CTL_SORT_LEFT,
    CTL_SORT_HOLDER, /* host, then pod, then process */
    CTL_SORT_CEILING,
    CTL_SORTS
};

/* "worker", …; by which they are named in --sort. */
extern const char *const ctl_sort_names[CTL_SORTS];

/* false: no such name. */
bool ctl_sort_parse(const char *name, enum ctl_sort *out);

#define CTL_HOLDER_TEXT 64

struct ctl_holder {
    const struct coord_worker *w;
    int64_t ceiling_ms; /* as ctl_session_ceiling */
    int64_t pid;        /* 0: not known; this and the rest are for ctl_holder_read to fill in */
    char host[CTL_HOLDER_TEXT], pod[CTL_HOLDER_TEXT]; /* printable; "-" where not known */
};

struct ctl_holders {
    struct ctl_holder *v; /* by workerId at first; points into the snapshot */
    size_t n;
};

/* false: no memory. Freed by ctl_holders_clear. */
bool ctl_holders_of(const struct coord_snapshot *snap, struct ctl_holders *out);
void ctl_holders_clear(struct ctl_holders *h);

/* The time by which ranges are judged: the coordinator's, or this host's where that one is ahead of
 * it by more than two skews, as the rules judge renewals (coord/rules.h). A clock that is ahead
 * would have the ranges of holders that live be over. Unix ms. */
int64_t ctl_holders_now(const struct coord_snapshot *snap, int64_t host_ms);

/* Until when anybody may issue IDs of the pool, if it is closed; 0: nobody may at after_ms or
 * later. Counted are those who hold, those whose workerId is free and whose range has not ended,
 * and those whom the table may have lost. *held: how many hold one whose range ends then or later.
 * Unix ms. */
int64_t ctl_holders_end(const struct coord_snapshot *snap, int64_t after_ms, uint64_t *held);

/* From when on a workerId can be had: one that is queued, as soon as its rest is over, or the one
 * whose range ends first, if its holder is gone. 0: there is none of either. Unix ms, and past
 * where one can be had now. */
int64_t ctl_holders_first(const struct coord_snapshot *snap);

/* When it was claimed or renewed last, as its ceiling tells: what either grants is known. Where it
 * was re-asserted after a loss that may be too late, by mature_after as a rule. At most now_ms;
 * Unix ms. */
int64_t ctl_holder_renewed(const struct coord_snapshot *snap, const struct coord_worker *w,
                           int64_t now_ms);

/* Reads the holder's JSON, which is as hostile as anything from a coordinator. */
void ctl_holder_read(struct ctl_holder *h);

/* Smallest first, or largest; equal ones by workerId. CTL_SORT_HOLDER wants all to be read. */
void ctl_holders_sort(struct ctl_holders *h, enum ctl_sort by, bool reverse);

#endif
