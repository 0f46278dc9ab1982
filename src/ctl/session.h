/*
 * sidflakectl: a pool that is being looked after.
 */
#ifndef SIDFLAKE_CTL_SESSION_H
#define SIDFLAKE_CTL_SESSION_H

#include "ctl/ctl.h"

struct ctl_session {
    const struct ctl_args *args; /* the caller's, for the commands that warnings name */
    struct coord *coord;
    struct coord_pool pool;
    struct coord_reply reply; /* the latest */
    int64_t asked_ms;         /* our clock at the time of the answer, for the skew */

    /* By ctl_session_look; 0 before. */
    int64_t first_ms; /* as ctl_holders_first */
    uint64_t lost;    /* as COORD_FAULT_LOST counts */

    /* By ctl_session_ask_server; none before. */
    unsigned risks;       /* as coord_risks */
    struct err unwritten; /* why nothing can be written */

    struct err unread; /* why the workerIds could not be read; "" where they were */
};

/* Connects; with describe, reads the pool as well. timeout_us: of each call. CTL_OK, and the caller
 * frees s->coord; or the exit status, with the reason told. */
int ctl_session_open(const struct ctl_args *a, struct ctl_session *s, int64_t timeout_us,
                     bool describe);

/* As ctl_session_open with describe, and everything that the pool knows. */
int ctl_session_snapshot(const struct ctl_args *a, struct ctl_session *s,
                         struct coord_snapshot *snap);

/* As ctl_session_open with describe, for what closes the pool: unless it is closed, it is asked
 * first whether that is meant. */
int ctl_session_open_to_close(const struct ctl_args *a, struct ctl_session *s, const char *command);

#define CTL_SESSION_TIMEOUT_US INT64_C(5000000)

/* The name of the pool, and its coordinator's URL without the password. */
const char *ctl_session_pool(const struct ctl_args *a);
const char *ctl_session_url(const struct ctl_args *a, char out[COORD_URL_MAX]);

/* As ctl_confirm, of a loss: what is said of one holds for no other, and one may have come while
 * somebody thought. look: has the pool reopened where that is due, and described in *s, as it was
 * before; CTL_OK, or the exit status. */
int ctl_session_confirm_loss(struct ctl_session *s, const char *command, const char *question,
                             int (*look)(struct ctl_session *s));

/* Tells what an answer other than OK is, and returns the exit status for it. */
int ctl_session_fail(const struct ctl_args *a, enum coord_status s, const struct coord_reply *r);

/* The same of what changes the pool: without an answer, or without that of its replicas, it may
 * have been done. */
int ctl_session_fail_change(const struct ctl_args *a, enum coord_status s,
                            const struct coord_reply *r);
/* The text of that alone, for a view. */
void ctl_session_why(const struct ctl_args *a, enum coord_status s, const struct coord_reply *r,
                     struct err *out);

/* What the workerIds themselves tell, for the warnings, and how many are free. */
void ctl_session_look(struct ctl_session *s, const struct coord_snapshot *snap);

/* What the coordinator's server itself tells, for the warnings. */
void ctl_session_ask_server(struct ctl_session *s);

/* Appends that there is no replica to spare, where it is so. */
void ctl_spare_replicas(const struct coord_pool *p, json_t *to);

/* The texts of coord_risks, appended to an array. */
void ctl_risks(unsigned risks, json_t *to);

/* What an operator should know of the pool, as an array of sentences; NULL: no memory. */
json_t *ctl_session_warnings(const struct ctl_session *s);

/* From when on a new sidecar gets a workerId, by what is known; a guess where somebody's range has
 * to end first. Unix ms, and past where it gets one now. */
int64_t ctl_session_grants_from(const struct ctl_session *s);

/* "sidflakectl WHAT" for this pool and a shell, whole, or WHAT as it stands in the manual. */
#define CTL_COMMAND_MAX 1600
const char *ctl_session_command(const struct ctl_args *a, const char *what,
                                char out[CTL_COMMAND_MAX]);

/* By when every range of the pool has ended, if it is closed now. Unix ms. */
int64_t ctl_session_last_range(const struct ctl_session *s);

/* How far ahead of its time a pool that is lost to this one may have granted, as --horizon,
 * --max-skew and --ahead say of it; where they are not named, as far as any may. ms. */
int64_t ctl_session_lost_ahead(const struct ctl_args *a);

/* When the range of a workerId that is held ends at the latest; of a record of an earlier era only
 * the floor is known. Unix ms. */
int64_t ctl_session_ceiling(const struct coord_pool *p, const struct coord_worker *w);

#endif
