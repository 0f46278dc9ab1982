/*
 * What requests mean: the services that the listeners are given, and what they share.
 *
 *   bytes -> net (connection) -> service.serve: wire codec -> command table -> handler -> issuer
 *
 * Invariants
 *   - Handlers are ranked: a key that is an ID is answered by the issuer, whatever else could.
 *   - Only the loop's thread comes here. What the keeper knows arrives as struct serve_facts.
 *   - A command that no table names is answered as memcached or Redis would.
 */
#ifndef SIDFLAKE_SERVE_SERVE_H
#define SIDFLAKE_SERVE_SERVE_H

#include "base/log.h"
#include "base/rng.h"
#include "serve/issuer.h"
#include "serve/print.h"
#include "serve/protocol.h"
#include "serve/watch/history.h"

#define SERVE_COMMANDS                                                                             \
    64 /* counted apart per protocol; those beyond count as the last one, "other" */

/* How a request ended, as a label of requests_total. */
enum serve_result {
    SERVE_OK,
    SERVE_MISS,    /* a read of a key that is no ID */
    SERVE_REFUSED, /* understood, but not offered: a write, TRACKING */
    SERVE_INVALID, /* not understood: syntax, unknown command, arguments */
    SERVE_FAILED,  /* an ID or a number was asked for, and could not be had */
    SERVE_PASSED,  /* forwarded to the upstream */
    SERVE_AWAY,    /* it would have been forwarded, but the upstream cannot be reached */
    SERVE_RESULTS
};

const char *serve_result_name(enum serve_result r);

/* What other rooms know and metrics, stats and INFO tell. Set by the composition root. */
#define SERVE_RISKS 2
struct serve_facts {
    bool answered, up;      /* the coordinator: ever, and at the latest call */
    bool serves;            /* likewise, and with the pool that is ours: it refused nothing */
    char coordinator[1025]; /* its URL without secrets */
    char pool[65];
    char identity[96];       /* "": not known yet */
    uint64_t era, pool_free; /* era 0: neither is known yet */
    char why[ERR_TEXT_MAX];  /* why there is no workerId; one line, "" when unknown */
    bool granted;            /* a workerId was held at least once */
    bool alone;              /* static:N: nobody gives another workerId */
    unsigned held;           /* workerIds */
    int64_t tenure_start_ms; /* Unix ms, of the active workerId held longest; 0: none */
    int64_t skew_ms;         /* coordinator's clock less ours */
    uint64_t renewals_renewed, renewals_again, renewals_reasserted, renewals_lost, renewals_failed;
    uint64_t data_loss;
    uint64_t clock_jumps;    /* forward, of the wall clock against the monotonic one */
    int64_t forgot_us;       /* monotonic: data loss was told last; 0: never */
    int64_t lost_us;         /* monotonic: a workerId lost was told last; 0: never */
    int64_t renewed_us;      /* monotonic: a renewal was answered last; 0: never */
    unsigned wanted;         /* workerIds, active and spare */
    char page[ERR_TEXT_MAX]; /* why the next start will find no state page, or "" */
    char host[128];          /* the pod's name, or the host's */
    /* What the coordinator's server is set up to lose, a sentence each; NULL: not that. */
    const char *risk[SERVE_RISKS];
    /* The pool's parameters; 0: not known yet. */
    int64_t horizon_ms, first_horizon_ms, mature_after_ms, max_skew_ms;
    uint32_t pool_size; /* workerIds, free or not */
    struct histogram coordinator_requests;
};

/* Whether the coordinator has told of the pool: era, parameters, and how many are free. */
static inline bool serve_pool_known(const struct serve_facts *f)
{
    return f->identity[0] != '\0' && f->era > 0;
}

/* A row of CONFIG GET and `stats settings`: what was configured, as text. */
struct serve_setting {
    const char *name;
    const char *value;
};

struct auth;

struct serve {
    struct issuer issuer;
    struct serve_facts facts;
    struct clock *clock;
    struct rng *rng;    /* for the status page's nonces */
    int64_t started_ms; /* Unix ms */
    int64_t started_mono_us;
    uint32_t max_connections;
    bool ping_there; /* PING goes to the upstream of Redis, where there is one */
    const struct serve_setting *settings; /* owned by the composition root */
    size_t nsettings;
    struct net *net; /* for counts of connections */
    struct net_service *services[SERVE_PROTOCOLS];
    struct auth *auth; /* NULL: no listener requires users */
    struct log_limit refused_logins;
    uint64_t requests[SERVE_PROTOCOLS][SERVE_COMMANDS][SERVE_RESULTS];
    struct history history; /* what the status page draws */
    struct print prints[PRINTS];
    char nonce[33];          /* of the status page written last */
    char *const *http_hosts; /* names beside the usual ones, owned by the composition root */
    size_t nhttp_hosts;
};

/* What a request came to that got no number: whose mistake it is who asked fails nothing here, nor
 * does what nobody has made. */
static inline enum serve_result serve_not_issued(enum issue_status s)
{
    return s == ISSUE_WRONG ? SERVE_INVALID : s == ISSUE_MISS ? SERVE_MISS : SERVE_FAILED;
}

static inline void serve_count(struct serve *s, enum serve_protocol p, unsigned command,
                               enum serve_result r)
{
    s->requests[p][command < SERVE_COMMANDS ? command : SERVE_COMMANDS - 1][r]++;
}

/* Requests of a protocol that ended so, over all commands. */
uint64_t serve_requests(const struct serve *s, enum serve_protocol p, enum serve_result r);

/* Whatever the services have kept of names that were found means nothing now: see names.h. */
void serve_forget(const struct serve *s);

/* To be called at any moment that is not hot: takes a sample of the history if it is time for one,
 * and frees what is kept of pages. */
void serve_sample(struct serve *s);

/* What happened since the latest sample. */
void serve_sample_now(const struct serve *s, struct history_sample *out);

/* Before something is written of the servers behind: see upstream_look. */
void serve_look_behind(const struct serve *s);

/* a - b, or PROCESS_UNKNOWN: the times of a coordinator may be anything. */
int64_t serve_difference(int64_t a, int64_t b);

/* The metrics page: text exposition 0.0.4, or OpenMetrics 1.0.0. A failed buffer means that it did
 * not fit. */
void serve_put_metrics(struct serve *s, struct buf *out, bool openmetrics);

/* The same as JSON; sidflake-protocols(7) has its members. Likewise. */
void serve_put_status_json(struct serve *s, struct buf *out);

/* The status page, HTML. nonce: of its style and script, printable without quotes. A failed buffer
 * means that it did not fit. */
void serve_put_status(struct serve *s, const char *nonce, struct buf *out);

#endif
