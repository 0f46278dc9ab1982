#include "sim/server.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define POOL  "p"
#define HASH  "sidflake:{" POOL "}:h"
#define QUEUE "sidflake:{" POOL "}:free"
#define INDEX "sidflake:{" POOL "}:exp"

static _Noreturn void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "simulated coordinator: %s: %s\n", what, why);
    abort();
}

/* ---- files ----------------------------------------------------------------------------------- */

static void copy_file(const char *from, const char *to, int flags)
{
    static char bytes[1 << 16];
    ssize_t n;
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | flags, 0600);
    if (in < 0 || out < 0)
        die(from, strerror(errno));
    while ((n = read(in, bytes, sizeof bytes)) > 0)
        if (write(out, bytes, (size_t)n) != n)
            die(to, strerror(errno));
    (void)close(in);
    (void)close(out);
}

static void forget_file(struct server *s)
{
    char beside[128];
    coord_idle(s->coord);
    (void)unlink(s->path);
    (void)snprintf(beside, sizeof beside, "%s-wal", s->path);
    (void)unlink(beside);
    (void)snprintf(beside, sizeof beside, "%s-shm", s->path);
    (void)unlink(beside);
}

/* Beside the file first, so that it gets another inode than the one it replaces. */
static void put_file(struct server *s, const char *from)
{
    char fresh[128];
    (void)snprintf(fresh, sizeof fresh, "%s.new", s->path);
    copy_file(from, fresh, 0);
    forget_file(s);
    if (rename(fresh, s->path) < 0)
        die(fresh, strerror(errno));
}

static void query(struct server *s, const char *sql)
{
    sqlite3 *db = NULL;
    char *why = NULL;
    coord_idle(s->coord);
    if (sqlite3_open_v2(s->path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
        sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
        die(sql, why ? why : "?");
    (void)sqlite3_close(db);
}

/* ---- life ------------------------------------------------------------------------------------ */

static int64_t wall_of(struct clock *c)
{
    const struct server *s =
        (const struct server *)(const void *)((char *)c - offsetof(struct server, clock));
    return server_ms(s) * 1000;
}

static int64_t still(struct clock *c)
{
    (void)c;
    return 1;
}

void server_open(struct server *s, bool sqlite)
{
    char url[128] = "redis://simulated:6379/0";
    struct err e;
    static const int64_t never = 0;
    memset(s, 0, sizeof *s);
    s->sqlite = sqlite;
    s->true_ms = &never;
    s->at = s->group.member;
    s->clock = (struct clock){.wall_us = wall_of, .mono_us = still};
    if (sqlite) {
        const char *tmp = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
        (void)snprintf(s->dir, sizeof s->dir, "%s/sidflake-sim-XXXXXX", tmp);
        if (!mkdtemp(s->dir))
            die(s->dir, strerror(errno));
        (void)snprintf(s->path, sizeof s->path, "%s/pool.db", s->dir);
        (void)snprintf(url, sizeof url, "sqlite://%s", s->path);
        for (unsigned i = 0; i < SERVER_RECENT; i++)
            (void)snprintf(s->recent[i].file, sizeof s->recent[i].file, "%s/r%u", s->dir, i);
        for (unsigned i = 0; i < SERVER_OLD; i++)
            (void)snprintf(s->old[i].file, sizeof s->old[i].file, "%s/o%u", s->dir, i);
    }
    struct coord_options o = {.url = span_str(url),
                              .pool = SPAN(POOL),
                              .who = SPAN("{\"host\":\"simulated\"}"),
                              .timeout_us = 1000000,
                              .clock = &s->clock};
    if (coord_open(&o, &s->coord, &e))
        die(url, e.text);
    server_reset(s, 1);
}

void server_close(struct server *s)
{
    if (s->sqlite) {
        forget_file(s);
        for (unsigned i = 0; i < SERVER_RECENT; i++)
            (void)unlink(s->recent[i].file);
        for (unsigned i = 0; i < SERVER_OLD; i++)
            (void)unlink(s->old[i].file);
        (void)rmdir(s->dir);
    }
    coord_free(s->coord);
}

void server_reset(struct server *s, unsigned n)
{
    group_reset(&s->group, n);
    s->at = s->group.member;
    if (s->sqlite)
        forget_file(s);
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

static void begin(struct visit *v, struct server *s)
{
    *v = (struct visit){
        .target = {visit_data, visit_acknowledged}, .s = s, .m = s->at, .runs = s->at->runs};
    v->before = script_to(s->sqlite ? NULL : &v->target);
}

static enum coord_status end(const struct visit *v, enum coord_status status)
{
    v->s->at = v->m;
    (void)script_to(v->before);
    return status;
}

void server_run(struct server *s, struct server_call *c)
{
    struct lease_action *a = &c->action;
    struct lease_outcome *o = &c->outcome;
    struct visit v;
    begin(&v, s);
    memset(o, 0, sizeof *o);
    switch (a->kind) {
    case LEASE_DESCRIBE:
        o->status = coord_describe(s->coord, &o->pool, &o->reply);
        break;
    case LEASE_INIT:
        o->status = coord_init(s->coord, &a->init, &o->reply);
        break;
    case LEASE_CLAIM:
        o->status = coord_claim(s->coord, c->identity, c->wall_ms, a->token, &o->grant, &o->reply);
        break;
    case LEASE_RENEW:
        o->status = coord_renew(s->coord, c->identity, a->items, a->nitems, &o->reply);
        break;
    case LEASE_RELEASE:
        o->status = coord_release(s->coord, c->identity, &a->release, &o->reply);
        break;
    case LEASE_IDLE:
    case LEASE_FINISHED:
        break;
    }
    (void)end(&v, o->status);
}

enum coord_status server_init(struct server *s, const struct coord_init *in)
{
    struct coord_reply r;
    struct visit v;
    begin(&v, s);
    return end(&v, coord_init(s->coord, in, &r));
}

enum coord_status server_evict(struct server *s, const char *identity, uint16_t w)
{
    struct coord_reply r;
    struct visit v;
    begin(&v, s);
    return end(&v, coord_evict(s->coord, identity, w, &r));
}

enum coord_status server_close_pool(struct server *s, const char *identity)
{
    struct coord_reply r;
    struct visit v;
    begin(&v, s);
    return end(&v, coord_close(s->coord, identity, &r));
}

enum coord_status server_repair(struct server *s, const char *identity, const uint16_t *w, size_t n)
{
    struct coord_reply r;
    struct visit v;
    begin(&v, s);
    return end(&v, coord_repair(s->coord, identity, w, n, &r));
}

/* ---- copies ---------------------------------------------------------------------------------- */

static void make_copy(struct server *s, struct server_copy *c, int64_t at_ms)
{
    c->at_ms = at_ms;
    c->used = true;
    if (!s->sqlite) {
        dataset_copy(&c->data, &s->at->data);
        c->life = s->at->life;
        c->written = s->at->written;
        return;
    }
    coord_idle(s->coord);
    c->used = access(s->path, R_OK) == 0;
    if (c->used)
        copy_file(s->path, c->file, 0);
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
    if (!s->sqlite || access(s->path, R_OK) != 0)
        return;
    coord_idle(s->coord);
    put_file(s, s->path);
}

/* Of an SQLite file this makes another one, which is what a restart does. */
bool server_rewind_in_place(struct server *s, const struct server_copy *from)
{
    if (s->sqlite)
        put_file(s, from->file);
    else if (group_rewound(&s->group, s->at, from->life, from->written))
        dataset_copy(&s->at->data, &from->data);
    else
        return false;
    return true;
}

/* ---- damage ---------------------------------------------------------------------------------- */

void server_lose_pool(struct server *s, bool with_hints)
{
    s->at->written++;
    if (s->sqlite)
        forget_file(s);
    else if (with_hints)
        dataset_reset(&s->at->data);
    else
        dataset_delete(&s->at->data, HASH);
}

void server_lose_queue(struct server *s)
{
    s->at->written++;
    if (s->sqlite)
        query(s, "DELETE FROM queue");
    else
        dataset_delete(&s->at->data, QUEUE);
}

void server_lose_index(struct server *s)
{
    s->at->written++;
    if (s->sqlite)
        query(s, "UPDATE worker SET due = NULL");
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
        query(s, sql);
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

static bool field(struct server *s, const char *name, char out[DATASET_TEXT_MAX + 1])
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
    return field(s, name, text) ? strtoll(text, NULL, 10) : 0;
}

bool server_record(struct server *s, uint16_t w, struct server_record *out)
{
    char text[DATASET_TEXT_MAX + 1], name[8], token[40];
    long long era, hwm;
    unsigned long long n;
    (void)snprintf(name, sizeof name, "%u", w);
    if (!field(s, name, text) ||
        sscanf(text, "%lld %lld %39s %*u %llu", &era, &hwm, token, &n) != 4)
        return false;
    *out = (struct server_record){era, hwm, token[0] != '-', n};
    return true;
}
