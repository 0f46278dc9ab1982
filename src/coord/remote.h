/*
 * What the files of the coordinator in Redis share: a pool there, and a call of one of its scripts.
 *
 *     struct remote_call c;
 *     remote_call_begin(&c, m, "operation", identity);
 *     remote_call_num(&c, ...);
 *     s = remote_run(m, &c, &answer, r);
 *     ... answer is good until
 *     return courier_end(&m->courier, s);
 */
#ifndef SIDFLAKE_COORD_REMOTE_H
#define SIDFLAKE_COORD_REMOTE_H

#include "base/buf.h"
#include "coord/courier.h"

#define REMOTE_CALL_BYTES 8192 /* 32 items of 112 bytes, or 8 of 560, and the head */

struct remote {
    struct coord base;
    struct courier courier;
    char pool[COORD_POOL_NAME_MAX];
    char who[COORD_WHO_MAX];
    size_t who_n;
};

/* The arguments of EVALSHA, laid out one after another. */
struct remote_call {
    struct buf text;
    int n;
    size_t at[COURIER_ARGS_MAX + 1];
    int64_t caller_ms; /* of the request that was answered */
    char mem[REMOTE_CALL_BYTES];
};

static inline struct remote *remote_of(struct coord *c)
{
    return (struct remote *)(void *)c;
}

extern const struct seq_driver remote_sequences;

/* caller_ms: the caller's clock; one that is set before 1970 counts as 1970. Without: the driver's
 * own. Puts that do not fit are told by remote_run. */
void remote_call_begin_at(struct remote_call *c, const struct remote *m, const char *op,
                          const char *identity, int64_t caller_ms);
void remote_call_begin(struct remote_call *c, const struct remote *m, const char *op,
                       const char *identity);
void remote_call_put(struct remote_call *c, struct span s);
void remote_call_str(struct remote_call *c, const char *s);
void remote_call_num(struct remote_call *c, int64_t v);
void remote_call_token(struct remote_call *c, struct coord_token t);
/* Numbers parted by spaces, as one argument; at most COORD_REPAIR_MAX. */
void remote_call_list(struct remote_call *c, const uint16_t *v, size_t n);

/* COORD_OK: *a is good until courier_end. By the script that m->courier.text names. */
enum coord_status remote_run(struct remote *m, struct remote_call *c, struct answer *a,
                             struct coord_reply *r);

#endif
