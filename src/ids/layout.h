/*
 * The bits of an ID: which of them are time, workerId and sequence.
 *
 * The usual layout, "38.15.10":
 *
 *    63   62 ........................ 25   24 ........... 10   9 ......... 0
 *   | 0 |  38 bits: ms since the epoch  |  15 bits: workerId  |  10: sequence |
 *
 * A pool has one layout, which its identity names; sidecars learn it there. Others are written as
 * their fields from the highest bit down, `time:41 worker:5+5 sequence:12`, or by the name of one
 * that is widely used (layout_presets).
 *
 * Invariants
 *   - The time is the highest field, so IDs sort by it. Behind it the sequence is the lowest, or it
 *     stands above the workerId; then the IDs of one workerId are a stride apart.
 *   - Time is counted in units of 1 ms .. 1 s. A unit is named by its first millisecond.
 *   - IDs are positive as signed 64-bit numbers: 63 bits at most, and the time never wraps.
 *   - One layout has one name, so that identities can be compared as texts.
 *
 * Source: Twitter's Snowflake (2010), with the field widths of this project; of the others
 * layout.c says where they are described.
 */
#ifndef SIDFLAKE_IDS_LAYOUT_H
#define SIDFLAKE_IDS_LAYOUT_H

#include "base/err.h"
#include "base/mark.h"
#include "base/span.h"

#include <stdbool.h>
#include <stdint.h>

/* Of the usual layout. */
#define LAYOUT_TIME_BITS     38
#define LAYOUT_WORKER_BITS   15
#define LAYOUT_SEQUENCE_BITS 10

#define LAYOUT_TIME_MAX  ((INT64_C(1) << LAYOUT_TIME_BITS) - 1) /* ms since the epoch */
#define LAYOUT_WORKERS   (1u << LAYOUT_WORKER_BITS)             /* 32,768: of every pool, too */
#define LAYOUT_SEQUENCES (1u << LAYOUT_SEQUENCE_BITS)           /* 1,024 a millisecond */

/* 2026-01-01T00:00:00Z, the epoch of a pool made without another. */
#define LAYOUT_EPOCH_DEFAULT_MS INT64_C(1767225600000)

#define LAYOUT_UNIT_MAX_MS  1000
#define LAYOUT_NAME_MAX     40                 /* NUL included */
#define LAYOUT_FIELD_MAX    22                 /* bits of workerId or sequence, at most */
#define LAYOUT_LASTS_MAX_MS (INT64_C(1) << 46) /* 2,229 years */

struct layout {
    uint8_t time_bits, worker_bits, sequence_bits;
    uint8_t time_shift, worker_shift, sequence_shift;
    uint8_t worker_high; /* bits of the first of the two parts that the workerId is shown in; 0: it
                            is one number */
    uint16_t unit_ms;    /* 1..LAYOUT_UNIT_MAX_MS */
};

extern const struct layout layout_usual;

/* A layout that others use, under their name. */
struct layout_preset {
    const char *name, *fields, *of; /* of: whose it is, for people */
};

extern const struct layout_preset layout_presets[]; /* up to one without a name */

/* text: the name of a preset, fields, or a name that layout_name has written. e says what was
 * expected, and what was found. */
enum err_code layout_parse(struct span text, struct layout *out, struct err *e) MUST_CHECK;

/* The layout's one name, as identities have it: "38.15.10" for the usual one, "t41.w5+5.s12" or
 * "t39*10.s8.w16" for others. Returns out. */
char *layout_name(char out[LAYOUT_NAME_MAX], const struct layout *l);

/* The same for people and --layout: "time:41 worker:5+5 sequence:12". Returns out. */
#define LAYOUT_FIELDS_MAX 96
char *layout_fields(char out[LAYOUT_FIELDS_MAX], const struct layout *l);

bool layout_equal(const struct layout *a, const struct layout *b);

struct layout_parts {
    int64_t time;      /* ms since the epoch: the first of its unit */
    uint32_t worker;   /* below layout_workers */
    uint32_t sequence; /* below layout_sequences */
};

/* How many workerIds the field has room for, and how many IDs of one of them a unit. */
static inline uint32_t layout_workers(const struct layout *l)
{
    return UINT32_C(1) << l->worker_bits;
}

static inline uint32_t layout_sequences(const struct layout *l)
{
    return UINT32_C(1) << l->sequence_bits;
}

/* The difference of one ID and the next of the same workerId and unit. */
static inline int64_t layout_stride(const struct layout *l)
{
    return INT64_C(1) << l->sequence_shift;
}

/* Whether the sequence stands above the workerId: of two workerIds in one unit, the IDs of one lie
 * among those of the other. */
static inline bool layout_worker_is_lowest(const struct layout *l)
{
    return l->worker_shift < l->sequence_shift;
}

/* The two parts that a workerId is shown in, where worker_high says so. */
static inline uint32_t layout_worker_high(const struct layout *l, uint32_t worker)
{
    return worker >> (l->worker_bits - l->worker_high);
}

static inline uint32_t layout_worker_low(const struct layout *l, uint32_t worker)
{
    return worker & ((UINT32_C(1) << (l->worker_bits - l->worker_high)) - 1);
}

/* The first ms of the unit that ms is in, both since the epoch and not negative. */
static inline int64_t layout_unit(const struct layout *l, int64_t ms)
{
    return l->unit_ms == 1 ? ms : ms - ms % l->unit_ms;
}

/* How long the unit that ms is in lasts, where it is one that somebody may have begun; 0: each ms
 * is one. ms: since the epoch. */
static inline int64_t layout_unit_left(const struct layout *l, int64_t ms)
{
    return l->unit_ms == 1 || ms < 0 ? 0 : layout_unit(l, ms) + l->unit_ms - ms;
}

/* ms: since the epoch. Parts out of range are the caller's mistake: they would run into each other.
 */
static inline uint64_t layout_compose(const struct layout *l, int64_t ms, uint32_t worker,
                                      uint32_t sequence)
{
    return (uint64_t)(ms / l->unit_ms) << l->time_shift | (uint64_t)worker << l->worker_shift |
           (uint64_t)sequence << l->sequence_shift;
}

/* false: a bit is set that is in no field, so this is no ID of this layout. */
static inline bool layout_decompose(const struct layout *l, uint64_t id, struct layout_parts *out)
{
    uint64_t time = id >> l->time_shift & ((UINT64_C(1) << l->time_bits) - 1);
    out->time = (int64_t)time * l->unit_ms;
    out->worker = (uint32_t)(id >> l->worker_shift) & (layout_workers(l) - 1);
    out->sequence = (uint32_t)(id >> l->sequence_shift) & (layout_sequences(l) - 1);
    return layout_compose(l, out->time, out->worker, out->sequence) == id;
}

/* How long the time field lasts. */
static inline int64_t layout_lasts_ms(const struct layout *l)
{
    return (INT64_C(1) << l->time_bits) * l->unit_ms;
}

/* Unix ms of the last millisecond that IDs can be of: that the time field can hold, and a mark. */
static inline int64_t layout_end_ms(const struct layout *l, int64_t epoch_ms)
{
    int64_t end = epoch_ms + layout_lasts_ms(l) - 1;
    return end < MARK_MAX_MS ? end : MARK_MAX_MS;
}

#endif
