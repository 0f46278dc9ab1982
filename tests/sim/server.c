#include "sim/server.h"

#include "lease/ask.h"
#include "sim/twin.h"

#include <stdio.h>
#include <stdlib.h>

#define POOL  "p"
#define HASH  "sidflake:{" POOL "}:h"
#define QUEUE "sidflake:{" POOL "}:free"
#define INDEX "sidflake:{" POOL "}:exp"

static _Noreturn void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "simulated coordinator: %s: %s\n", what, why);
    abort();
}

/* ---- life ------------------------------------------------------------------------------------ */

static int64_t wall_of(struct clock *c)
{
    const struct server *s =
        (const struct server *)(const void *)((char *)c - offsetof(struct server, clock));
    return (s->sqlite ? server_ms(s) : *s->true_ms + s->caller_off) * 1000;
}

static int64_t still(struct clock *c)
{
    (void)c;
    return 1;
}

/* As another process. */
static void reconnect(struct server *s)
{
    char url[128] = "redis://simulated:6379/0";
    struct err e;
    if (s->sqlite)
        (void)snprintf(url, sizeof url, "sqlite://%s", s->file.path);
    struct coord_options o = {.url = span_str(url),
                              .pool = SPAN(POOL),
                              .who = SPAN("{\"host\":\"simulated\"}"),
                              .timeout_us = 1000000,
                              .clock = &s->clock};
    coord_free(s->coord);
    if (coord_open(&o, &s->coord, &e))
        die(url, e.text);
    coord_free(s->twin);
    s->twin = s->sqlite ? NULL : twin_open(&o);
}

static struct coord *driver(const struct server *s)
{
    return s->in_c && s->twin && s->group.n == 1 ? s->twin : s->coord;
}

void server_open(struct server *s, bool sqlite)
{
    static const int64_t never = 0;
    memset(s, 0, sizeof *s);
    s->sqlite = sqlite;
    s->true_ms = &never;
    s->at = s->group.member;
    s->clock = (struct clock){.wall_us = wall_of, .mono_us = still};
    if (sqlite)
        poolfile_open(&s->file);
    reconnect(s);
    server_reset(s, 1);
}

void server_close(struct server *s)
{
    coord_free(s->coord);
    coord_free(s->twin);
    for (unsigned i = 0; i < SERVER_RECENT; i++)
        poolfile_drop(&s->recent[i].file);
    for (unsigned i = 0; i < SERVER_OLD; i++)
        poolfile_drop(&s->old[i].file);
    if (s->sqlite)
        poolfile_close(&s->file);
}

void server_reset(struct server *s, unsigned n)
{
    group_reset(&s->group, n);
    s->at = s->group.member;
    if (s->sqlite) {
        poolfile_forget(&s->file, s->coord);
        reconnect(s);
    }
    server_forget_copies(s);
}

void server_forget_copies(struct server *s)
{
    for (unsigned i = 0; i < SERVER_RECENT; i++)
        s->recent[i].used = false;
    for (unsigned i = 0; i < SERVER_OLD; i++)
        s->old[i].used = false;
    s->nrecent = 0;
}

int64_t server_ms(const struct server *s)
{
    return *s->true_ms + s->at->clock_off;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* One call of the driver, on one connection to one member. */
struct visit {
    struct script_target target;
    struct server *s;
    struct member *m;
    uint64_t runs, written;
    struct script_target *before;
    int64_t caller_off; /* of the call within which this one is, while that waits */
};

static struct visit *visit_of(struct script_target *t)
{
    return (struct visit *)(void *)t;
}

static bool connected(const struct visit *v)
{
    return v->m->master && v->m->runs == v->runs;
}

static struct dataset *visit_data(struct script_target *t)
{
    struct visit *v = visit_of(t);
    if (!connected(v))
        return NULL;
    v->s->at = v->m;
    v->m->data.now_us = server_ms(v->s) * 1000 + 999;
    v->written = ++v->m->written;
    return &v->m->data;
}

static bool visit_acknowledged(struct script_target *t, uint32_t n)
{
    struct visit *v = visit_of(t);
    bool enough = v->s->acknowledged(v->s->world, v->m, v->written, n);
    if (!enough || !connected(v))
        return false;
    v->m->counted = v->written;
    return true;
}

/* Operators have the coordinator's clock. */
static void begin(struct visit *v, struct server *s)
{
    *v = (struct visit){.target = {visit_data, visit_acknowledged},
                        .s = s,
                        .m = s->at,
                        .runs = s->at->runs,
                        .caller_off = s->caller_off};
    s->caller_off = s->at->clock_off;
    v->before = script_to(s->sqlite ? NULL : &v->target);
}

static enum coord_status end(const struct visit *v, enum coord_status status)
{
    v->s->at = v->m;
    v->s->caller_off = v->caller_off;
    (void)script_to(v->before);
    return status;
}

void server_ask(struct coord *to, struct server_call *c)
{
    lease_ask(to, c->identity, c->wall_ms, &c->action, &c->outcome);
}

void server_run(struct server *s, struct server_call *c)
{
    struct visit v;
    begin(&v, s);
    s->caller_off = c->wall_ms - *s->true_ms;
    server_ask(driver(s), c);
    (void)end(&v, c->outcome.status);
}

enum coord_status server_do(struct server *s, int64_t caller_ms,
                            enum coord_status (*call)(struct coord *c, void *with), void *with)
{
    struct visit v;
    begin(&v, s);
    s->caller_off = caller_ms - *s->true_ms;
    return end(&v, call(driver(s), with));
}

enum coord_status server_init(struct server *s, const struct coord_init *in)
{
    struct coord_reply r;
    struct visit v;
    begin(&v, s);
    return end(&v, coord_init(driver(s), in, &r));
}

enum coord_status server_claim(struct server *s, const char *identity)
{
    struct coord_reply r;
    struct coord_grant g;
    struct visit v;
    begin(&v, s);
    return end(
        &v, coord_claim(driver(s), identity, server_ms(s), (struct coord_token){.b = {1}}, &g, &r));
}

enum coord_status server_evict(struct server *s, const char *identity, uint16_t w)
{
    struct coord_reply r;
    struct visit v;
    begin(&v, s);
    return end(&v, coord_evict(driver(s), identity, w, &r));
}

enum coord_status server_close_pool(struct server *s, const char *identity)
{
    struct coord_reply r;
    struct visit v;
    begin(&v, s);
    return end(&v, coord_close(driver(s), identity, false, &r));
}

enum coord_status server_unclose_pool(struct server *s, const char *identity, int64_t lost_ahead_ms)
{
    struct coord_reply r;
    struct visit v;
    begin(&v, s);
    return end(&v, coord_unclose(driver(s), identity, lost_ahead_ms, &r));
}

enum coord_status server_repair(struct server *s, const char *identity, const uint16_t *w, size_t n)
{
    struct coord_reply r;
    struct visit v;
    begin(&v, s);
    return end(&v, coord_repair(driver(s), identity, w, n, &r));
}

enum coord_status server_settle(struct server *s, const char *identity, int64_t ms)
{
    struct coord_reply r;
    struct visit v;
    begin(&v, s);
    return end(&v, coord_settle(driver(s), identity, ms, &r));
}

enum coord_status server_nothing_lost(struct server *s, const char *identity)
{
    struct coord_reply r;
    struct visit v;
    begin(&v, s);
    return end(&v, coord_nothing_lost(driver(s), identity, &r));
}

enum coord_status server_clock_was_ahead(struct server *s, const char *identity)
{
    struct coord_reply r;
    struct visit v;
    begin(&v, s);
    return end(&v, coord_clock_was_ahead(driver(s), identity, &r));
}

bool server_pool(struct server *s, struct coord_pool *out, uint64_t *era)
{
    struct coord_reply r;
    struct visit v;
    begin(&v, s);
    enum coord_status status = end(&v, coord_describe(driver(s), out, &r));
    *era = r.era;
    return status == COORD_OK;
}

/* ---- copies ---------------------------------------------------------------------------------- */

static void make_copy(struct server *s, struct server_copy *c, int64_t at_ms)
{
    c->at_ms = at_ms;
    c->used = true;
    if (s->sqlite) {
        c->used = poolfile_copy(&s->file, &c->file);
        return;
    }
    dataset_copy(&c->data, &s->at->data);
    c->life = s->at->life;
    c->written = s->at->written;
}

void server_remember(struct server *s, int64_t at_ms)
{
    make_copy(s, &s->recent[s->nrecent++ % SERVER_RECENT], at_ms);
}

void server_backup(struct server *s, unsigned i, int64_t at_ms)
{
    make_copy(s, &s->old[i % SERVER_OLD], at_ms);
}

bool server_was(const struct server *s, const struct server_copy *from)
{
    return s->sqlite || group_descends(&s->group, s->at, from->life, from->written);
}

bool server_restart(struct server *s, const struct server_copy *from, bool keep_replid)
{
    if (!server_rewind_in_place(s, from))
        return false;
    group_restart(&s->group, s->at, keep_replid);
    return true;
}

void server_restart_empty(struct server *s, bool keep_replid)
{
    (void)group_rewound(&s->group, s->at, s->at->life, 0);
    group_restart(&s->group, s->at, keep_replid);
    server_lose_pool(s, true);
}

void server_restart_whole(struct server *s, bool keep_replid)
{
    group_restart(&s->group, s->at, keep_replid);
    struct poolfile_copy all = {NULL, 0};
    if (s->sqlite && poolfile_copy(&s->file, &all))
        poolfile_replace(&s->file, s->coord, &all);
    poolfile_drop(&all);
}

/* Of an SQLite file this makes another one, which is what a restart does. */
bool server_rewind_in_place(struct server *s, const struct server_copy *from)
{
    if (s->sqlite)
        poolfile_replace(&s->file, s->coord, &from->file);
    else if (group_rewound(&s->group, s->at, from->life, from->written))
        dataset_copy(&s->at->data, &from->data);
    else
        return false;
    return true;
}

bool server_set_back(struct server *s, const struct server_copy *from)
{
    if (!poolfile_exists(&s->file))
        return false;
    reconnect(s); /* nobody who was answered knows more: what stands beside has to tell */
    poolfile_overwrite(&s->file, &from->file);
    return true;
}

/* ---- damage ---------------------------------------------------------------------------------- */

void server_lose_pool(struct server *s, bool with_hints)
{
    s->at->written++;
    if (s->sqlite)
        poolfile_remove(&s->file, s->coord);
    else if (with_hints)
        dataset_reset(&s->at->data);
    else
        dataset_delete(&s->at->data, HASH);
}

void server_lose_queue(struct server *s)
{
    s->at->written++;
    if (s->sqlite)
        poolfile_query(&s->file, s->coord, "DELETE FROM queue");
    else
        dataset_delete(&s->at->data, QUEUE);
}

void server_lose_index(struct server *s)
{
    s->at->written++;
    if (s->sqlite)
        poolfile_query(&s->file, s->coord, "UPDATE worker SET due = NULL");
    else
        dataset_delete(&s->at->data, INDEX);
}

void server_double(struct server *s, uint16_t w, bool first)
{
    static struct dataset_reply ignored;
    char digits[8];
    char sql[160];
    int n = snprintf(digits, sizeof digits, "%u", w);
    s->at->written++;
    struct dataset_key *k = dataset_find(&s->at->data, QUEUE);
    struct span push[] = {SPAN("RPUSH"), SPAN(QUEUE), span_of(digits, (size_t)n)};
    if (s->sqlite) {
        (void)snprintf(sql, sizeof sql,
                       "INSERT INTO queue(pool, worker) SELECT id, %u FROM pool LIMIT 1", w);
        poolfile_query(&s->file, s->coord, sql);
        return;
    }
    if (k && k->n > DATASET_ELEMENTS / 2)
        return;
    (void)dataset_command(&s->at->data, 3, push, &ignored);
    k = dataset_find(&s->at->data, QUEUE);
    if (first && k && k->n > 1) {
        struct dataset_element e = k->e[0];
        k->e[0] = k->e[k->n - 1];
        k->e[k->n - 1] = e;
    }
}

/* ---- a look inside --------------------------------------------------------------------------- */

bool server_field(struct server *s, const char *name, char out[DATASET_TEXT_MAX + 1])
{
    static struct dataset_reply r;
    struct span get[] = {SPAN("HGET"), SPAN(HASH), span_str(name)};
    if (s->sqlite || !dataset_command(&s->at->data, 3, get, &r) || r.kind != DATASET_TEXT)
        return false;
    memcpy(out, r.text.p, r.text.n);
    out[r.text.n] = '\0';
    return true;
}

int64_t server_number(struct server *s, const char *name)
{
    char text[DATASET_TEXT_MAX + 1];
    return server_field(s, name, text) ? strtoll(text, NULL, 10) : 0;
}

bool server_record(struct server *s, uint16_t w, struct server_record *out)
{
    char text[DATASET_TEXT_MAX + 1], name[8], token[40];
    long long era, hwm;
    unsigned long long n;
    (void)snprintf(name, sizeof name, "%u", w);
    if (!server_field(s, name, text) ||
        sscanf(text, "%lld %lld %39s %*u %llu", &era, &hwm, token, &n) != 4)
        return false;
    *out = (struct server_record){era, hwm, token[0] != '-', n};
    return true;
}
