#include "serve/watch/health.h"

#include "base/human.h"
#include "base/log.h"
#include "base/timefmt.h"
#include "net/upstream/upstream.h"

#include <errno.h>
#include <string.h>

#define HOUR_US           HISTORY_SPAN_US
#define MINUTES_US(n)     (INT64_C(60000000) * (n))
#define ROTATIONS_MANY    3  /* an hour */
#define EXHAUSTED_MANY    50 /* a second */
#define MISSED_MANY       100
#define SKEW_SHARE        2 /* warn at the pool's bound divided by this */
#define POOL_SHARE        10
#define CONNECTIONS_SHARE 10

static int64_t skew_of(const struct serve_facts *f)
{
    return f->skew_ms < 0 ? -f->skew_ms : f->skew_ms;
}

/* Whether a refusal that is not called the clock's comes of it: a claim is refused for it, or the
 * kind says so. */
static bool clock_is_why(const struct serve *s, struct refusal r)
{
    const struct serve_facts *f = &s->facts;
    const struct generator_kind *kind = r.by->kind;
    bool claim_refused = refusal_status(r) == ISSUE_LOADING && f->answered && f->max_skew_ms > 0 &&
                         skew_of(f) > f->max_skew_ms;
    return claim_refused ||
           (kind->clock_is_wrong && kind->clock_is_wrong(r.by, r.cause, clock_wall_ms(s->clock)));
}

bool health_check(const struct serve *s, size_t i, struct refusal ready, struct health_check *out)
{
    *out = (struct health_check){.name = "loop"};
    for (const struct generator *g = s->issuer.generators; i > 0 && g; g = g->after) {
        const struct generator_cause *c = g->kind->causes;
        for (unsigned n = 0; n < g->kind->ncauses; n++) {
            if (!c[n].check || --i > 0)
                continue;
            out->name = c[n].check;
            out->fails =
                ready.by == g && (ready.cause == n || (c[n].of_clock && clock_is_why(s, ready)));
            return true;
        }
    }
    return i == 0;
}

#define UPSTREAM_OPTION(id, name) "upstream." #name,

const char *health_upstream(enum serve_protocol p)
{
    static const char *const names[SERVE_PROTOCOLS] = {PROTOCOLS(UPSTREAM_OPTION)};
    return names[p];
}

/* What the findings are drawn from. */
struct judge {
    const struct serve *s;
    const struct serve_facts *f;
    int64_t now_ms, now_us;
    int64_t left_ms; /* until the ceiling */
    const struct history_sample *live;
    struct health *h;
    struct buf text; /* of the finding being written */
};

/* ---- findings ---------------------------------------------------------------------------------
 */

/* The text is put behind it; end() closes it. */
static struct buf *begin(struct judge *j, enum health_state state, const char *name)
{
    struct health_finding *f = &j->h->finding[j->h->n];
    f->state = state;
    f->name = name;
    buf_init(&j->text, f->text, sizeof f->text - 1);
    return &j->text;
}

static void end(struct judge *j)
{
    j->text.p[j->text.n] = '\0';
    j->h->n++;
}

static void not_ready(struct judge *j)
{
    if (!j->h->ready.by)
        return;
    buf_put_str(begin(j, HEALTH_FAIL, "ids"), refusal_text(j->h->ready));
    end(j);
}

static void until(struct judge *j, struct buf *b)
{
    char at[TIMEFMT_MAX];
    int64_t until_ms = generators_until(j->s->issuer.generators);
    if (until_ms <= j->now_ms)
        return;
    BUF_PUT_LIT(b, "; IDs can be had until ");
    buf_put_str(b, timefmt_rfc3339(at, until_ms));
    BUF_PUT_LIT(b, ", for ");
    human_put_duration(b, until_ms - j->now_ms);
}

/* What only a grant could end. */
static bool lacks_grant(struct refusal r)
{
    const struct generator_cause *c = r.by ? &r.by->kind->causes[r.cause] : NULL;
    return c && c->waits && !c->of_clock;
}

/* One line on the coordinator: away, or there and refusing, or a spare has to wait. Where nothing
 * is held, or nothing that is still good, not_ready has said the same. */
static void coordinator(struct judge *j)
{
    const char *why = j->f->why;
    if (lacks_grant(j->h->ready) || (!why[0] && (j->f->up || !j->f->answered)))
        return;
    struct buf *b = begin(j, HEALTH_WARN, "coordinator");
    buf_put_str(b, !j->f->up      ? "the coordinator is away"
                   : j->f->serves ? "a workerId is waited for"
                                  : "the coordinator refuses");
    buf_put_str(b, why[0] ? ": " : "");
    buf_put_str(b, why);
    if (!j->f->serves)
        until(j, b);
    end(j);
}

static void reservation(struct judge *j)
{
    int64_t age = j->f->tenure_start_ms ? j->now_ms - j->f->tenure_start_ms : 0;
    /* A young tenure has short ranges; for one renewal longer it may still have its last one. */
    bool mature = age > 2 * j->f->mature_after_ms && j->f->mature_after_ms > 0;
    if (!j->f->up || !mature || j->left_ms <= 0 || j->left_ms >= j->f->horizon_ms / 2)
        return;
    struct buf *b = begin(j, HEALTH_WARN, "reservation");
    BUF_PUT_LIT(b, "less than half of the reservation is left: ");
    human_put_duration(b, j->left_ms);
    end(j);
}

static void spares(struct judge *j)
{
    if (j->f->held == 0 || j->f->held >= j->f->wanted)
        return;
    struct buf *b = begin(j, HEALTH_WARN, "workers");
    buf_put_u64(b, j->f->held);
    BUF_PUT_LIT(b, " of ");
    buf_put_u64(b, j->f->wanted);
    BUF_PUT_LIT(b, " workerIds are held");
    end(j);
}

static void ago(struct judge *j, struct buf *b, int64_t us)
{
    BUF_PUT_LIT(b, ", ");
    human_put_duration(b, (j->now_us - us) / 1000);
    BUF_PUT_LIT(b, " ago");
}

static void happened(struct judge *j, int64_t at_us, const char *what)
{
    if (at_us == 0 || j->now_us - at_us >= HOUR_US)
        return;
    struct buf *b = begin(j, HEALTH_WARN, "lease");
    buf_put_str(b, what);
    ago(j, b, at_us);
    end(j);
}

static void trouble(struct judge *j)
{
    happened(j, j->f->forgot_us, "the coordinator forgot what it had granted");
    happened(j, j->f->lost_us,
             "a workerId was lost: its range was over, somebody else has it, or it was released by "
             "hand");
}

static void skew(struct judge *j)
{
    int64_t off = skew_of(j->f);
    if (!j->f->answered || j->f->max_skew_ms == 0 || off <= j->f->max_skew_ms / SKEW_SHARE)
        return;
    struct buf *b = begin(j, HEALTH_WARN, "skew");
    BUF_PUT_LIT(b, "this clock and the coordinator's are ");
    human_put_duration(b, off);
    BUF_PUT_LIT(b, " apart; claims are refused from ");
    human_put_duration(b, j->f->max_skew_ms);
    end(j);
}

static void pool(struct judge *j)
{
    if (!serve_pool_known(j->f) || j->f->pool_size <= 1 ||
        j->f->pool_free >= j->f->pool_size / POOL_SHARE)
        return;
    struct buf *b = begin(j, HEALTH_WARN, "pool");
    human_put_count(b, (int64_t)j->f->pool_free);
    BUF_PUT_LIT(b, " of ");
    human_put_count(b, j->f->pool_size);
    BUF_PUT_LIT(b, " workerIds are left in the pool");
    end(j);
}

/* Those that the limit counts: a service with slots of its own takes none of these places. */
static uint64_t shared_connections(const struct serve *s)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < SERVE_PROTOCOLS; i++)
        if (s->services[i] && s->services[i]->slots == 0)
            n += s->services[i]->connections;
    return n;
}

static void connections(struct judge *j)
{
    uint64_t open = shared_connections(j->s), most = j->s->max_connections;
    if (most == 0 || open < most - most / CONNECTIONS_SHARE)
        return;
    struct buf *b = begin(j, HEALTH_WARN, "connections");
    human_put_count(b, (int64_t)open);
    BUF_PUT_LIT(b, " of at most ");
    human_put_count(b, (int64_t)most);
    BUF_PUT_LIT(b, " connections are open");
    end(j);
}

/* Of no matter before it happens. */
static void risks(struct judge *j)
{
    for (unsigned i = 0; i < SERVE_RISKS; i++) {
        if (!j->f->risk[i])
            continue;
        buf_put_str(begin(j, HEALTH_WARN, "coordinator"), j->f->risk[i]);
        end(j);
    }
}

/* Of no matter to this process. */
static void state_page(struct judge *j)
{
    if (!j->f->page[0])
        return;
    struct buf *b = begin(j, HEALTH_WARN, "state_page");
    buf_put_str(b, j->f->alone
                       ? "no state page: IDs are repeated if the clock steps back over a restart: "
                       : "no state page: a restart costs workerIds, and gives no IDs while the "
                         "coordinator is away: ");
    buf_put_str(b, j->f->page);
    end(j);
}

static void put_why(const struct judge *j, unsigned i, struct buf *b, const char *why)
{
    BUF_PUT_LIT(b, ": ");
    buf_put_str(b, why);
    buf_printf(b, " (%s)", upstream_address(j->s->services[i]));
}

static void away(struct judge *j, unsigned i, const struct upstream_stats *st)
{
    struct buf *b = begin(j, HEALTH_WARN, health_upstream((enum serve_protocol)i));
    BUF_PUT_LIT(b, "the ");
    buf_put_str(b, protocol_table[i]->title);
    BUF_PUT_LIT(b, " behind cannot be reached");
    if (st->since_us > 0) {
        BUF_PUT_LIT(b, " for ");
        human_put_duration(b, (j->now_us - st->since_us) / 1000);
    }
    put_why(j, i, b, upstream_why(j->s->services[i]));
    end(j);
}

/* Some clients are refused, and the others served. */
static void refused(struct judge *j, unsigned i, const char *whom, const char *how, const char *why,
                    int64_t latest_us)
{
    struct buf *b = begin(j, HEALTH_WARN, health_upstream((enum serve_protocol)i));
    buf_put_str(b, whom);
    buf_put_str(b, protocol_table[i]->title);
    buf_put_str(b, how);
    put_why(j, i, b, why);
    ago(j, b, latest_us);
    end(j);
}

static void unshared(struct judge *j, unsigned i, const struct upstream_stats *st)
{
    refused(j, i, "clients without a connection of their own are told that the ",
            " behind cannot be reached", upstream_why(j->s->services[i]), st->unshared_us);
}

static void unowned(struct judge *j, unsigned i, const struct upstream_stats *st)
{
    refused(j, i, "clients that need a connection of their own get none to the ", " behind",
            upstream_denial(j->s->services[i]), st->unowned_us);
}

static void faulty(struct judge *j, unsigned i, const struct upstream_stats *st)
{
    refused(j, i, "requests fail at the ", " behind", upstream_fault(j->s->services[i]),
            st->faulty_us);
}

/* It serves, and for as long as it is not closed: then nobody is served. */
static void outdated(struct judge *j, unsigned i, enum upstream_outdated how)
{
    static const char *const what[] = {
        [UPSTREAM_CROWDED] = "has an earlier login: one with the present login takes its place "
                             "once upstream.connections leaves room for it",
        [UPSTREAM_OUTDATED] = "has an earlier login: with the present one no other was let in; "
                              "SIGHUP tries again, SIGUSR2 ends it",
        [UPSTREAM_ASTRAY] = "is where its name leads no more: where it leads now no other was let "
                            "in: "};
    const struct net_service *svc = j->s->services[i];
    struct buf *b = begin(j, HEALTH_WARN, health_upstream((enum serve_protocol)i));
    buf_printf(b, "the connection to the %s behind that clients share %s%s (%s)",
               protocol_table[i]->title, what[how], how == UPSTREAM_ASTRAY ? upstream_why(svc) : "",
               upstream_address(svc));
    end(j);
}

static void full(struct judge *j, unsigned i, const struct upstream_stats *st)
{
    struct buf *b = begin(j, HEALTH_WARN, health_upstream((enum serve_protocol)i));
    BUF_PUT_LIT(b, "upstream.connections is reached: a client was refused one more than ");
    human_put_count(b, (int64_t)st->most);
    BUF_PUT_LIT(b, " to the ");
    buf_put_str(b, protocol_table[i]->title);
    BUF_PUT_LIT(b, " behind");
    ago(j, b, st->full_us);
    end(j);
}

static bool of_late(const struct judge *j, int64_t us)
{
    return us > 0 && j->now_us - us < MINUTES_US(5);
}

/* Of no matter to IDs, and so no reason not to be ready. */
static void upstreams(struct judge *j)
{
    for (unsigned i = 0; i < SERVE_PROTOCOLS; i++) {
        const struct upstream_stats *st = upstream_stats(j->s->services[i]);
        if (st && !st->up && st->errors > 0)
            away(j, i, st);
        else if (st && of_late(j, st->unshared_us))
            unshared(j, i, st);
        else if (st && of_late(j, st->unowned_us))
            unowned(j, i, st);
        if (st && st->up && upstream_outdated(j->s->services[i]) != UPSTREAM_PRESENT)
            outdated(j, i, upstream_outdated(j->s->services[i]));
        if (st && of_late(j, st->faulty_us))
            faulty(j, i, st);
        if (st && of_late(j, st->full_us))
            full(j, i, st);
    }
}

static void socket_file(struct judge *j)
{
    const char *path = j->s->net ? net_lost_file(j->s->net) : NULL;
    if (!path)
        return;
    struct buf *b = begin(j, HEALTH_WARN, "listen");
    BUF_PUT_LIT(b, "the socket file ");
    buf_put_str(b, path);
    BUF_PUT_LIT(b, " is gone, or another's: nobody can connect there until SIGUSR2 or a restart");
    end(j);
}

/* The one place that is left to say that the log is gone. */
static void lost_lines(struct judge *j)
{
    int why;
    char text[96];
    uint64_t n = log_lost(&why);
    if (n == 0)
        return;
    struct buf *b = begin(j, HEALTH_WARN, "log");
    BUF_PUT_LIT(b, "lines of the log are lost, ");
    human_put_count(b, (int64_t)n);
    BUF_PUT_LIT(b, " by now: ");
    buf_put_str(b, why == EAGAIN ? "nobody reads it" : strerror_r(why, text, sizeof text));
    end(j);
}

/* ---- the last minutes --------------------------------------------------------------------------
 */

struct sums {
    uint64_t given, failed, missed; /* in 5 minutes; IDs and numbers were given */
    double exhausted;               /* a second, in 5 minutes */
    uint64_t rotations;             /* in an hour */
};

static void add_up(const struct judge *j, struct sums *sum)
{
    const struct history_sample *p = j->live;
    int64_t length = 0;
    *sum = (struct sums){0};
    for (size_t i = 0; p; i++) {
        sum->rotations += p->rotations;
        if (j->live->end_us - p->end_us < MINUTES_US(5)) {
            sum->given += p->issued + p->counted;
            sum->failed += p->failed;
            sum->missed += p->missed;
            sum->exhausted += p->exhausted;
            length += p->length_us;
        }
        p = history_get(&j->s->history, i, j->live->end_us, HISTORY_SPAN_US);
    }
    sum->exhausted = length > 0 ? sum->exhausted * 1e6 / (double)length : 0;
}

static void put_prefixes(struct buf *b, const struct names *names)
{
    for (unsigned i = 0; i < names->n; i++) {
        buf_put_str(b, i > 0 ? ", \"" : "\"");
        buf_put_span(b, span_of(names->prefix[i].text, names->prefix[i].length));
        buf_put_char(b, '"');
    }
}

static void recent(struct judge *j)
{
    struct sums sum;
    add_up(j, &sum);
    if (sum.failed > 0) {
        human_put_count(begin(j, HEALTH_WARN, "requests"), (int64_t)sum.failed);
        buf_put_str(&j->text, sum.failed == 1 ? " request" : " requests");
        BUF_PUT_LIT(&j->text, " for IDs or numbers failed in the last 5 minutes");
        end(j);
    }
    /* A prefix that is mistyped, here or in the application. */
    if (sum.missed >= MISSED_MANY && sum.missed > sum.given) {
        human_put_count(begin(j, HEALTH_WARN, "misses"), (int64_t)sum.missed);
        BUF_PUT_LIT(&j->text, " reads in the last 5 minutes were of keys that are no IDs: those "
                              "begin with ");
        put_prefixes(&j->text, &j->s->issuer.names);
        end(j);
    }
    if (sum.rotations > ROTATIONS_MANY) {
        BUF_PUT_LIT(begin(j, HEALTH_WARN, "rotations"), "the clock keeps stepping back: ");
        human_put_count(&j->text, (int64_t)sum.rotations);
        BUF_PUT_LIT(&j->text, " workerIds were given up within an hour");
        end(j);
    }
    if (sum.exhausted > EXHAUSTED_MANY) {
        BUF_PUT_LIT(begin(j, HEALTH_WARN, "saturation"),
                    "requests queue for the next millisecond, ");
        human_put_rate(&j->text, sum.exhausted);
        BUF_PUT_LIT(&j->text, " times a second: more active workerIds would help");
        end(j);
    }
}

/* What only the kinds know. */
static void generators(struct judge *j)
{
    for (const struct generator *g = j->s->issuer.generators; g; g = g->after)
        for (unsigned i = 0; i < g->kind->nwarnings && j->h->n < HEALTH_FINDINGS_MAX; i++) {
            const struct generator_warning *w = &g->kind->warnings[i];
            if (w->say(g, j->now_ms, begin(j, HEALTH_WARN, w->name)))
                end(j);
        }
}

void health_judge(const struct serve *s, int64_t now_ms, const struct history_sample *live,
                  struct health *h)
{
    static void (*const judges[])(struct judge *) = {
        not_ready, coordinator, reservation, spares,    trouble,    skew,   pool,       connections,
        risks,     state_page,  socket_file, upstreams, lost_lines, recent, generators,
    };
    struct judge j = {
        .s = s, .f = &s->facts, .now_ms = now_ms, .now_us = live->end_us, .live = live, .h = h};
    int64_t ceiling = generators_ceiling(s->issuer.generators);
    j.left_ms = ceiling > 0 ? ceiling - now_ms : 0;
    h->n = 0;
    h->ready = issuer_ready(&s->issuer, now_ms);
    for (size_t i = 0; i < sizeof judges / sizeof *judges; i++)
        judges[i](&j);
    h->state = h->n > 0 ? h->finding[0].state : HEALTH_OK;
}
