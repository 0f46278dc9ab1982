/*
 * sidflakectl seq: what its files share.
 */
#ifndef SIDFLAKE_CTL_SEQ_H
#define SIDFLAKE_CTL_SEQ_H

#include "coord/seq_calls.h"
#include "ctl/session.h"

/* ---- definitions as options: pure -------------------------------------------------------------
 */

/* "UTC", or as "+01:00", in a ctl_word. */
const char *ctl_seq_zone_text(int offset_min);

/* As an object; NULL: no memory. */
json_t *ctl_seq_definition_json(const struct seq_definition *d, int64_t max);

/* ---- a pool whose sequences are looked after ---------------------------------------------------
 */

/* As ctl_session_open with describe, of a name that can be; name NULL: of all. */
int ctl_seq_open(const struct ctl_args *a, struct ctl_session *s, const char *name);

/* Frees the session, and tells what came of a call: CTL_OK where it was answered, and with one of
 * the two that are as they should be; else the exit status, with the reason told. */
int ctl_seq_close(struct ctl_session *s, enum coord_status r, const char *name,
                  const struct seq_grant *g, enum seq_how good, enum seq_how also);

/* Why there is no number, or what else is wrong, to follow "sequence NAME: ". out has
 * CTL_SEQ_WHY_MAX bytes. Returns out. */
#define CTL_SEQ_WHY_MAX 2048
const char *ctl_seq_why(const struct ctl_session *s, const char *name, const struct seq_grant *g,
                        char *out);

/* The counter that --sub and --period name, as a take of no number finds it; nothing is taken. */
enum coord_status ctl_seq_look(struct ctl_session *s, const char *name, struct seq_grant *g);

/* How its numbers are written, by seq_form.c; times are ms. */
#define CTL_SEQ_FAR_MS (INT64_C(1000) * 365 * 86400 * 1000)
struct ctl_seq_form {
    bool unreadable; /* its template is none that is known here: why */
    struct err why;
    size_t longest;     /* characters, of numbers up to last */
    int64_t last;       /* the last number that it can have */
    int64_t left;       /* numbers of the counter, up to there; -1: not known */
    int64_t ends_in_ms; /* when they will be used up, at the counter's rate so far, at most
                           CTL_SEQ_FAR_MS; 0: now, or not known */
    bool outlasts;      /* the counter's period, which ends before */
};

/* max: highest index; now: of a counter that has numbers, or NULL. false: it has no template. */
bool ctl_seq_form(const char *name, const struct seq_definition *d, int64_t max,
                  const struct seq_grant *now, int64_t now_ms, struct ctl_seq_form *out);
json_t *ctl_seq_form_json(const struct ctl_seq_form *f);
void ctl_seq_form_print(const struct ctl_seq_form *f);

/* The number of an index, or of the nearest that it can have: what a coordinator says may be
 * anything. */
int64_t ctl_seq_at(const struct seq_definition *d, int64_t index);

/* The number of an index, or null where it is above max; highest + 1 of nothing is null, too. */
json_t *ctl_seq_number_json(const struct seq_definition *d, int64_t index, int64_t max);

/* The highest number below `top`, of which none at or above it was granted, as text in a
 * ctl_word; "-": none. */
const char *ctl_seq_highest(const struct seq_definition *d, int64_t top);

#endif
