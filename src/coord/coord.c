#include "coord/coord.h"

#include "base/buf.h"
#include "base/int64.h"
#include "coord/outcome.h"

#include <ctype.h>
#include <inttypes.h>

const struct coord_driver *const coord_drivers[] = {
    &coord_redis,
    &coord_sqlite,
    &coord_static,
    NULL,
};

static const char *const status_names[] = {
    [COORD_OK] = "ok",
    [COORD_WAIT] = "wait",
    [COORD_EXHAUSTED] = "exhausted",
    [COORD_LOST] = "lost",
    [COORD_NOPOOL] = "nopool",
    [COORD_EXISTS] = "exists",
    [COORD_WRONGPOOL] = "wrongpool",
    [COORD_BADCLOCK] = "badclock",
    [COORD_SKEW] = "skew",
    [COORD_CLOSED] = "closed",
    [COORD_REFUSED] = "refused",
    [COORD_DOWN] = "down",
};

const char *coord_status_name(enum coord_status s)
{
    return (size_t)s < sizeof status_names / sizeof *status_names ? status_names[s] : "unknown";
}

const char *coord_init_mode_name(enum coord_init_mode m)
{
    static const char *const names[] = {"fresh", "range", "after-loss"};
    return names[m];
}

const struct coord_params coord_params_default = {
    .horizon_ms = 60 * 60 * 1000,
    .first_horizon_ms = 30 * 1000,
    .mature_after_ms = 120 * 1000,
    .max_skew_ms = 2 * 1000,
    .grace_ms = 60 * 1000,
    .replicas = 0,
    .worker_from = 0,
    .worker_to = COORD_WORKERS - 1,
};

/* What liveness assumes of a sidecar: its renewal intervals, young and mature. */
#define RENEW_YOUNG_MS  (5 * 1000)
#define RENEW_MATURE_MS (20 * 1000)
#define MINUTE_MS       (60 * 1000)
#define DAY_MS          (24 * 60 * MINUTE_MS)

static enum err_code outside(struct err *e, const char *name, int64_t min, int64_t max,
                             int64_t found)
{
    return err_set(e, ERR_RANGE,
                   "%s: expected %" PRId64 " ms to %" PRId64 " ms, found %" PRId64 " ms", name, min,
                   max, found);
}

static enum err_code not_above(struct err *e, const char *name, const char *what, int64_t bound,
                               int64_t found)
{
    return err_set(e, ERR_RANGE,
                   "%s: expected more than %s, which is %" PRId64 " ms, found %" PRId64 " ms", name,
                   what, bound, found);
}

enum err_code coord_params_check(const struct coord_params *p, struct err *e)
{
    const struct {
        const char *name;
        int64_t min, max, found;
    } ranges[] = {
        {"horizon", MINUTE_MS, COORD_HORIZON_MAX_MS, p->horizon_ms},
        {"first-horizon", 1, DAY_MS, p->first_horizon_ms},
        {"mature-after", 1, DAY_MS, p->mature_after_ms},
        {"max-skew", 1, COORD_MAX_SKEW_MS, p->max_skew_ms},
        {"grace", 0, DAY_MS, p->grace_ms},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        if (ranges[i].found < ranges[i].min || ranges[i].found > ranges[i].max)
            return outside(e, ranges[i].name, ranges[i].min, ranges[i].max, ranges[i].found);
    }
    const struct {
        const char *name, *what;
        int64_t bound, found;
    } orders[] = {
        {"first-horizon", "3 times max-skew", 3 * p->max_skew_ms, p->first_horizon_ms},
        {"first-horizon", "3 renewals of a young tenure", 3 * RENEW_YOUNG_MS, p->first_horizon_ms},
        {"mature-after", "4 times max-skew", 4 * p->max_skew_ms, p->mature_after_ms},
        {"mature-after", "the renewal interval", RENEW_MATURE_MS, p->mature_after_ms},
    };
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        if (orders[i].found <= orders[i].bound)
            return not_above(e, orders[i].name, orders[i].what, orders[i].bound, orders[i].found);
    }
    if (p->first_horizon_ms > p->horizon_ms)
        return outside(e, "first-horizon", 1, p->horizon_ms, p->first_horizon_ms);
    if (p->worker_from > p->worker_to || p->worker_to >= COORD_WORKERS)
        return err_set(e, ERR_RANGE, "workers: expected FROM-TO within 0-%u, found %u-%u",
                       COORD_WORKERS - 1, p->worker_from, p->worker_to);
    if (p->replicas > COORD_REPLICAS_MAX)
        return err_set(e, ERR_RANGE, "replicas: expected 0 to %u, found %u", COORD_REPLICAS_MAX,
                       p->replicas);
    return ERR_OK;
}

enum err_code coord_params_fit(const struct coord_params *p, const struct layout *l, struct err *e)
{
    if (p->worker_to < layout_workers(l))
        return ERR_OK;
    return err_set(e, ERR_RANGE,
                   "workers: expected FROM-TO within 0-%u, for which the layout has room, found "
                   "%u-%u",
                   layout_workers(l) - 1, p->worker_from, p->worker_to);
}

static enum err_code check_options(const struct coord_options *o, struct err *e)
{
    if (o->pool.n == 0 || o->pool.n >= COORD_POOL_NAME_MAX)
        return err_set(e, ERR_INVALID, "pool: expected a name of 1 to %d characters, found %zu",
                       COORD_POOL_NAME_MAX - 1, o->pool.n);
    for (size_t i = 0; i < o->pool.n; i++) {
        unsigned char c = (unsigned char)o->pool.p[i];
        if (c > 0x7e || (!isalnum(c) && c != '_' && c != '.' && c != '-'))
            return err_set(e, ERR_INVALID,
                           "pool: expected a name of letters, digits, '_', '.' and '-', found byte "
                           "0x%02x at %zu",
                           c, i);
    }
    if (o->who.n >= COORD_WHO_MAX)
        return err_set(e, ERR_RANGE, "holder: expected at most %d bytes, found %zu",
                       COORD_WHO_MAX - 1, o->who.n);
    if (o->timeout_us < 1000)
        return err_set(e, ERR_RANGE, "timeout: expected 1 ms or more, found %" PRId64 " us",
                       o->timeout_us);
    for (size_t i = 0; i < o->url.n; i++) {
        unsigned char c = (unsigned char)o->url.p[i];
        if (c < ' ' || c == 0x7f)
            return err_set(e, ERR_INVALID,
                           "coordinator url: expected printable characters, found byte 0x%02x at "
                           "%zu",
                           c, i);
    }
    return ERR_OK;
}

static const struct coord_driver *driver_of(struct span scheme)
{
    for (size_t i = 0; coord_drivers[i]; i++) {
        for (const char *const *s = coord_drivers[i]->schemes; *s; s++) {
            if (span_eq(scheme, span_str(*s)))
                return coord_drivers[i];
        }
    }
    return NULL;
}

/* Only what has the form of a scheme is shown: a URL without one may begin with a password. */
static bool shows_well(struct span scheme)
{
    for (size_t i = 0; i < scheme.n; i++) {
        unsigned char c = (unsigned char)scheme.p[i];
        if (!isalnum(c) && c != '+' && c != '-' && c != '.')
            return false;
    }
    return scheme.n > 0 && scheme.n <= 16;
}

/* scheme: empty where the URL has none. */
static enum err_code no_driver(struct span scheme, struct err *e)
{
    char forms[512];
    struct buf b;
    bool shown = shows_well(scheme);
    buf_init(&b, forms, sizeof forms - 1);
    for (size_t i = 0; coord_drivers[i]; i++) {
        if (i > 0)
            buf_put_str(&b, coord_drivers[i + 1] ? ", " : " or ");
        buf_put_str(&b, coord_drivers[i]->forms);
    }
    forms[b.n] = '\0';
    return err_set(e, ERR_INVALID, "coordinator url: expected %s, found %s%.*s%s", forms,
                   shown ? "\"" : "no such scheme", shown ? (int)scheme.n : 0,
                   shown ? scheme.p : "", shown ? ":\"" : "");
}

enum err_code coord_open(const struct coord_options *o, struct coord **out, struct err *e)
{
    *out = NULL;
    enum err_code code = check_options(o, e);
    if (code)
        return code;
    struct span rest = o->url;
    struct span scheme = span_cut(&rest, ':');
    const struct coord_driver *driver = rest.p ? driver_of(scheme) : NULL;
    if (driver)
        return driver->open(o, out, e);
    return no_driver(rest.p ? scheme : (struct span){.n = 0}, e);
}

void coord_free(struct coord *c)
{
    if (c)
        c->driver->free(c);
}

void coord_idle(struct coord *c)
{
    if (c->driver->idle)
        c->driver->idle(c);
}

int64_t coord_keep_ms(const struct coord *c)
{
    return c->driver->keep_ms;
}

bool coord_risks(struct coord *c, unsigned *out)
{
    if (c->driver->risks)
        return c->driver->risks(c, out);
    *out = 0;
    return true;
}

enum coord_status coord_writes(struct coord *c, struct coord_reply *r)
{
    memset(r, 0, sizeof *r);
    return c->driver->writes ? c->driver->writes(c, r) : COORD_OK;
}

const char *coord_risk_text(unsigned risks, unsigned i)
{
    static const char *const texts[COORD_RISKS] = {
        "the coordinator's Redis may evict the pool's keys when its memory is full, which would be "
        "a loss of data: set maxmemory-policy noeviction",
        "the coordinator's Redis keeps nothing over a restart, which would be a loss of data: set "
        "appendonly yes",
    };
    return i < COORD_RISKS && risks >> i & 1u ? texts[i] : NULL;
}

/* Of nodes of which the half may acknowledge without the other, each has a master that grants. */
uint64_t coord_acknowledge_short_of(const struct coord_pool *p)
{
    uint64_t half = (p->replicas + 1) / 2; /* of them and their master */
    return p->params.replicas < half ? half : 0;
}

/* ---- what a pool's numbers say --------------------------------------------------------------- */

int64_t coord_pool_settle(const struct coord_pool *p, int64_t now_ms)
{
    const struct coord_later *later = &p->later;
    int64_t settle = later->settle_ms > 0 ? later->settle_ms : p->params.horizon_ms;
    bool before = now_ms < later->settle_from_ms && later->settle_before_ms > settle;
    return before ? later->settle_before_ms : settle;
}

int64_t coord_pool_least_settle(const struct coord_pool *p)
{
    int64_t least = p->params.horizon_ms;
    if (p->later.settle_ms > 0)
        least = min64(least, p->later.settle_ms);
    if (p->later.least_ms > 0)
        least = min64(least, p->later.least_ms);
    return max64(least, p->params.first_horizon_ms); /* of a damaged row, too */
}

bool coord_pool_is_young(const struct coord_pool *p, int64_t now_ms)
{
    const struct coord_params *k = &p->params;
    return now_ms - p->tmax_ms < k->mature_after_ms - 4 * k->max_skew_ms;
}

int64_t coord_pool_behind_until(const struct coord_pool *p, int64_t now_ms)
{
    int64_t until = p->tmax_ms - 2 * p->params.max_skew_ms;
    return now_ms < until ? until : 0;
}

int64_t coord_pool_ahead(const struct coord_pool *p, int64_t now_ms)
{
    int64_t was = max64(coord_pool_behind_until(p, now_ms) ? p->tmax_ms : 0, p->later.fence_ms);
    return max64(max64(was - now_ms, 0) + coord_reach(&p->params), p->later.ahead_ms);
}

const char *coord_pool_cause(const struct coord_pool *p)
{
    static const char stranger[] =
        "a sidecar renewed that holds workerIds of a pool which was here "
        "before: this one should have been made with --after-loss";
    static const char *const causes[] = {
        [COORD_CAUSE_NONE] = "",
        [COORD_CAUSE_MOVED] = "its server restarted or failed over, or its file is another one",
        [COORD_CAUSE_SET_BACK] = "its file was set back to an older state",
        [COORD_CAUSE_HOLDER] = "a sidecar knew more than its data",
        [COORD_CAUSE_STRANGER] = stranger,
        [COORD_CAUSE_BACK] = "it was opened after another had been in its place",
    };
    int64_t cause = p->later.cause;
    return cause < (int64_t)(sizeof causes / sizeof *causes) ? causes[cause] : "";
}

int64_t coord_pool_renewals(const struct coord_pool *p, unsigned n)
{
    return (int64_t)n * max64(p->later.every_ms, COORD_EVERY_MS);
}

int64_t coord_pool_word_from(const struct coord_pool *p, uint64_t era)
{
    const struct coord_later *later = &p->later;
    if (later->more_era == (int64_t)era || later->era_before != (int64_t)era)
        return 0;
    return p->topen_ms + coord_pool_renewals(p, 4) + 2 * p->params.max_skew_ms;
}

/* ---- the operations ------------------------------------------------------------------------- */

static enum coord_status absent(struct coord_reply *r, const char *operation)
{
    return outcome_refused(
        r, "%s: expected a coordinator with a pool to operate, found one without", operation);
}

static bool is_time(int64_t ms)
{
    return ms >= 0 && ms <= COORD_NUMBER_MAX;
}

static bool is_clock(int64_t ms, struct coord_reply *r)
{
    if (is_time(ms))
        return true;
    (void)outcome_refused(r, "caller's clock: expected 0 to %" PRId64 " ms, found %" PRId64,
                          COORD_NUMBER_MAX, ms);
    return false;
}

static bool is_identity(const char *s, struct coord_reply *r)
{
    size_t n = strnlen(s, COORD_IDENTITY_MAX);
    size_t i = 0;
    while (i < n && s[i] > ' ' && s[i] <= '~')
        i++;
    if (n > 0 && n < COORD_IDENTITY_MAX && i == n)
        return true;
    (void)outcome_refused(
        r,
        "identity: expected 1 to %d printable characters, found %zu, the first unprintable at "
        "%zu",
        COORD_IDENTITY_MAX - 1, n, i);
    return false;
}

static bool is_worker(uint16_t w, struct coord_reply *r)
{
    if (w < COORD_WORKERS)
        return true;
    (void)outcome_refused(r, "workerId: expected 0 to %u, found %u", COORD_WORKERS - 1, w);
    return false;
}

enum coord_status coord_describe(struct coord *c, struct coord_pool *pool, struct coord_reply *r)
{
    memset(r, 0, sizeof *r);
    memset(pool, 0, sizeof *pool);
    return c->driver->describe(c, pool, r);
}

enum coord_status coord_init(struct coord *c, const struct coord_init *in, struct coord_reply *r)
{
    struct err e;
    struct layout layout;
    int64_t epoch_ms;
    memset(r, 0, sizeof *r);
    if (!is_identity(in->identity, r))
        return COORD_REFUSED;
    if (coord_identity_read(in->identity, &epoch_ms, &layout, &e) ||
        coord_params_check(&in->params, &e) || coord_params_fit(&in->params, &layout, &e))
        return outcome_refused(r, "%s", e.text);
    bool good = coord_params_settle(&in->params, in->settle_ms);
    if (!good || !coord_params_settle(&in->params, in->least_ms))
        return outcome_refused(r,
                               "%s: expected first-horizon to horizon, %" PRId64 " to %" PRId64
                               " ms, found %" PRId64,
                               good ? "least-settle" : "settle", in->params.first_horizon_ms,
                               in->params.horizon_ms, good ? in->least_ms : in->settle_ms);
    if (in->lost_ahead_ms < 0 || in->lost_ahead_ms > COORD_AHEAD_MAX_MS)
        return outcome_refused(
            r, "what was granted ahead: expected 0 to %" PRId64 " ms, found %" PRId64,
            COORD_AHEAD_MAX_MS, in->lost_ahead_ms);
    return c->driver->init(c, in, r);
}

enum coord_status coord_claim(struct coord *c, const char *identity, int64_t caller_ms,
                              struct coord_token nxt, struct coord_grant *out,
                              struct coord_reply *r)
{
    memset(r, 0, sizeof *r);
    memset(out, 0, sizeof *out);
    if (!is_identity(identity, r) || !is_clock(caller_ms, r))
        return COORD_REFUSED;
    return c->driver->claim(c, identity, caller_ms, nxt, out, r);
}

/* One workerId once only: the second of two would be judged by the record as it was before the
 * first. */
static bool renewals_ok(const struct coord_renewal *items, size_t n, struct coord_reply *r)
{
    if (n == 0 || n > COORD_RENEW_MAX) {
        (void)outcome_refused(r, "renewal: expected 1 to %d workerIds, found %zu", COORD_RENEW_MAX,
                              n);
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (!is_worker(items[i].worker, r))
            return false;
        if (!is_time(items[i].hi_ms) || items[i].n > (uint64_t)COORD_NUMBER_MAX) {
            (void)outcome_refused(r,
                                  "renewal of workerId %u: expected hi and n of 0 to %" PRId64
                                  ", found %" PRId64 " and %" PRIu64,
                                  items[i].worker, COORD_NUMBER_MAX, items[i].hi_ms, items[i].n);
            return false;
        }
        for (size_t j = 0; j < i; j++) {
            if (items[i].worker == items[j].worker) {
                (void)outcome_refused(r, "renewal: expected each workerId once, found %u twice",
                                      items[i].worker);
                return false;
            }
        }
    }
    return true;
}

static bool caller_ok(const struct coord_caller *by, struct coord_reply *r)
{
    if (!is_clock(by->now_ms, r))
        return false;
    if (by->ahead_ms >= 0 && by->ahead_ms <= COORD_AHEAD_MAX_MS && by->every_ms >= 0 &&
        by->every_ms <= COORD_HORIZON_MAX_MS)
        return true;
    (void)outcome_refused(r,
                          "renewal: expected times ahead and between renewals of at most a day, "
                          "found %" PRId64 " and %" PRId64 " ms",
                          by->ahead_ms, by->every_ms);
    return false;
}

enum coord_status coord_renew(struct coord *c, const char *identity, const struct coord_caller *by,
                              struct coord_renewal *items, size_t n, struct coord_terms *terms,
                              struct coord_reply *r)
{
    struct coord_renewal asked[COORD_RENEW_MAX];
    memset(r, 0, sizeof *r);
    memset(terms, 0, sizeof *terms);
    if (!is_identity(identity, r) || !caller_ok(by, r) || !renewals_ok(items, n, r))
        return COORD_REFUSED;
    for (size_t i = 0; i < n; i++)
        items[i].released = false;
    memcpy(asked, items, n * sizeof *items);
    enum coord_status s = c->driver->renew(c, identity, by, items, n, terms, r);
    for (size_t i = 0; i < n && s == COORD_OK; i++) {
        if (items[i].how != COORD_HOW_LOST && items[i].hi_ms < asked[i].hi_ms)
            s = outcome_refused(r,
                                "renewal of workerId %u: expected a ceiling of at least %" PRId64
                                " ms, found %" PRId64,
                                items[i].worker, asked[i].hi_ms, items[i].hi_ms);
    }
    if (s != COORD_OK) {
        memcpy(items, asked, n * sizeof *items);
        memset(terms, 0, sizeof *terms);
    }
    return s;
}

enum coord_status coord_release(struct coord *c, const char *identity,
                                const struct coord_release *item, struct coord_reply *r)
{
    memset(r, 0, sizeof *r);
    if (!is_identity(identity, r) || !is_worker(item->worker, r))
        return COORD_REFUSED;
    if (item->has_last && !is_time(item->last_ms))
        return outcome_refused(r, "last time used: expected 0 to %" PRId64 " ms, found %" PRId64,
                               COORD_NUMBER_MAX, item->last_ms);
    return c->driver->release(c, identity, item, r);
}

enum coord_status coord_evict(struct coord *c, const char *identity, uint16_t worker,
                              struct coord_reply *r)
{
    memset(r, 0, sizeof *r);
    if (!c->driver->evict)
        return absent(r, "evict");
    if (!is_identity(identity, r) || !is_worker(worker, r))
        return COORD_REFUSED;
    return c->driver->evict(c, identity, worker, r);
}

enum coord_status coord_close(struct coord *c, const char *identity, bool moved,
                              struct coord_reply *r)
{
    memset(r, 0, sizeof *r);
    if (!c->driver->close)
        return absent(r, "close");
    return is_identity(identity, r) ? c->driver->close(c, identity, moved, r) : COORD_REFUSED;
}

enum coord_status coord_unclose(struct coord *c, const char *identity, int64_t lost_ahead_ms,
                                struct coord_reply *r)
{
    memset(r, 0, sizeof *r);
    if (!c->driver->unclose)
        return absent(r, "open");
    if (!is_identity(identity, r))
        return COORD_REFUSED;
    if (lost_ahead_ms < 0 || lost_ahead_ms > COORD_AHEAD_MAX_MS)
        return outcome_refused(
            r, "expected that ranges were granted 0 to %" PRId64 " ms ahead, found %" PRId64,
            COORD_AHEAD_MAX_MS, lost_ahead_ms);
    return c->driver->unclose(c, identity, lost_ahead_ms, r);
}

enum coord_status coord_repair(struct coord *c, const char *identity, const uint16_t *workers,
                               size_t n, struct coord_reply *r)
{
    memset(r, 0, sizeof *r);
    if (!c->driver->repair)
        return absent(r, "repair");
    if (!is_identity(identity, r))
        return COORD_REFUSED;
    for (size_t i = 0; i < n; i++) {
        if (!is_worker(workers[i], r))
            return COORD_REFUSED;
    }
    return c->driver->repair(c, identity, workers, n, r);
}

enum coord_status coord_settle(struct coord *c, const char *identity, int64_t settle_ms,
                               struct coord_reply *r)
{
    memset(r, 0, sizeof *r);
    if (!c->driver->settle)
        return absent(r, "settle");
    if (!is_identity(identity, r))
        return COORD_REFUSED;
    if (settle_ms <= 0 || settle_ms > COORD_HORIZON_MAX_MS)
        return outcome_refused(r, "settle: expected 1 to %" PRId64 " ms, found %" PRId64,
                               COORD_HORIZON_MAX_MS, settle_ms);
    return c->driver->settle(c, identity, settle_ms, r);
}

enum coord_status coord_nothing_lost(struct coord *c, const char *identity, struct coord_reply *r)
{
    memset(r, 0, sizeof *r);
    if (!c->driver->nothing_lost)
        return absent(r, "reopen");
    return is_identity(identity, r) ? c->driver->nothing_lost(c, identity, r) : COORD_REFUSED;
}

enum coord_status coord_clock_was_ahead(struct coord *c, const char *identity,
                                        struct coord_reply *r)
{
    memset(r, 0, sizeof *r);
    if (!c->driver->clock_was_ahead)
        return absent(r, "reopen");
    return is_identity(identity, r) ? c->driver->clock_was_ahead(c, identity, r) : COORD_REFUSED;
}

enum coord_status coord_snapshot(struct coord *c, struct coord_snapshot *out, struct coord_reply *r)
{
    memset(r, 0, sizeof *r);
    memset(out, 0, sizeof *out);
    if (!c->driver->snapshot)
        return absent(r, "snapshot");
    enum coord_status s = c->driver->snapshot(c, out, r);
    out->reply = *r;
    if (s != COORD_OK)
        coord_snapshot_clear(out);
    return s;
}
