#include "support/coord_pair.h"

#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static _Noreturn void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "%s: %s\n", what, why);
    abort();
}

/* ---- the script ----------------------------------------------------------------------------- */

static void replace(char *text, size_t cap, size_t *n, const char *from, const char *to)
{
    char *at = strstr(text, from);
    size_t old = strlen(from);
    size_t new = strlen(to);
    if (!at || strstr(at + 1, from))
        die("pool.lua: expected exactly once", from);
    if (*n - old + new >= cap)
        die("pool.lua", "too long");
    memmove(at + new, at + old, *n - (size_t)(at - text) - old + 1);
    memcpy(at, to, new);
    *n = *n - old + new;
}

/* What a command writes. */
static void load_script(const char *command, char *text, size_t cap, size_t *n)
{
    FILE *f = popen(command, "r"); /* lint: allow popen, of fixed commands */
    if (!f)
        die(command, "cannot run");
    *n = fread(text, 1, cap - 1, f);
    text[*n] = '\0';
    if (pclose(f) != 0)
        die(command, "run from the top of the source tree");
    replace(text, cap, n,
            "    local t = call('TIME')\n"
            "    return t[1] * 1000 + math.floor(t[2] / 1000)\n",
            "    return tonumber(redis.call('HGET', 'sidflake:{" PAIR_POOL "}:test', 'T'))\n");
    replace(text, cap, n,
            "    local run, repl = id_in(call('INFO', 'server'), 'run_id:'), "
            "id_in(replication, 'master_replid:')\n"
            "    return run and repl and run .. repl\n",
            "    return redis.call('HGET', 'sidflake:{" PAIR_POOL "}:test', 'fp')\n");
}

/* ---- behind the backs ----------------------------------------------------------------------- */

static long long ask(struct pair *p, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    redisReply *r = redisvCommand(p->side, fmt, ap);
    va_end(ap);
    if (!r || r->type == REDIS_REPLY_ERROR)
        die(fmt, r ? r->str : p->side->errstr);
    long long v = r->integer;
    freeReplyObject(r);
    return v;
}

static void query(struct pair *p, const char *sql)
{
    sqlite3 *db = NULL;
    char *why = NULL;
    if (sqlite3_open_v2(p->db, &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK ||
        sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
        die(sql, why ? why : "cannot open");
    (void)sqlite3_close(db);
}

static void copy_file(const char *from, const char *to, int flags)
{
    static char bytes[1 << 16];
    ssize_t n;
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = open(to, O_WRONLY | O_CLOEXEC | flags, 0600);
    if (in < 0 || out < 0)
        die(from, "cannot copy");
    while ((n = read(in, bytes, sizeof bytes)) > 0) {
        if (write(out, bytes, (size_t)n) != n)
            die(to, "cannot write");
    }
    (void)close(in);
    (void)close(out);
}

static void backup_path(const struct pair *p, size_t slot, char out[128])
{
    (void)snprintf(out, 128, "%s/backup%zu", p->dir, slot);
}

/* A file set back is seen by what stands beside it, and by whoever was answered. Redis has neither.
 */
static void forget_answers(struct pair *p)
{
    char url[128];
    setup_forget_tally(p->dir);
    coord_free(p->sqlite);
    (void)snprintf(url, sizeof url, "sqlite://%s", p->db);
    p->sqlite = setup_open(url, PAIR_POOL, &p->clock.clock);
}

void pair_sequences(char *script, size_t cap, size_t *n)
{
    load_script("tools/join-lua src/coord/pool.lua src/coord/sequences.lua", script, cap, n);
}

/* ---- what tests do -------------------------------------------------------------------------- */

void pair_open(struct pair *p, char *script, size_t cap, size_t *n)
{
    char url[128];
    const struct timeval limit = {10, 0};
    memset(p, 0, sizeof *p);
    load_script("cat src/coord/pool.lua", script, cap, n);
    server_start(&p->server, false, NULL);
    p->side = redisConnectUnixWithTimeout(p->server.socket, limit);
    if (!p->side || p->side->err)
        die("redis", "cannot connect");
    (void)snprintf(p->dir, sizeof p->dir, "%s/sidflake-pair-XXXXXX",
                   access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (!mkdtemp(p->dir))
        die(p->dir, "cannot make");
    (void)snprintf(p->db, sizeof p->db, "%s/pool.db", p->dir);
    setup_clock_init(&p->clock, SETUP_T0_MS);
    p->redis = setup_open(server_url(&p->server, url), PAIR_POOL, &p->clock.clock);
    (void)snprintf(url, sizeof url, "sqlite://%s", p->db);
    p->sqlite = setup_open(url, PAIR_POOL, &p->clock.clock);
    p->toy = toy_open(PAIR_POOL, &p->clock);
    toy_of(p->toy)->conflicts_of_8 = 3;
    p->kept = calloc(PAIR_BACKUPS, sizeof *p->kept);
    if (!p->kept)
        die("toy", "no memory");
}

void pair_wipe(struct pair *p, bool backups)
{
    char path[128];
    coord_idle(p->sqlite);
    (void)unlink(p->db);
    (void)ask(p, "DEL sidflake:{p}:h sidflake:{p}:free sidflake:{p}:exp sidflake:{p}:who");
    toy_of(p->toy)->state.made = false;
    for (size_t i = 0; backups && i < PAIR_BACKUPS; i++) {
        backup_path(p, i, path);
        (void)unlink(path);
        p->backup[i] = false;
    }
}

void pair_close(struct pair *p)
{
    coord_free(p->redis);
    pair_wipe(p, true);
    coord_free(p->sqlite);
    coord_free(p->toy);
    free(p->kept);
    redisFree(p->side);
    server_free(&p->server);
    setup_forget_tally(p->dir);
    (void)rmdir(p->dir);
}

void pair_sync(struct pair *p)
{
    char fp[96] = "none";
    struct statx st;
    if (statx(AT_FDCWD, p->db, 0, STATX_BASIC_STATS | STATX_BTIME, &st) == 0)
        (void)snprintf(fp, sizeof fp, "%" PRIu64 ".%" PRId64 ".%" PRIu32, (uint64_t)st.stx_ino,
                       (int64_t)st.stx_btime.tv_sec, st.stx_btime.tv_nsec);
    if (p->clock.ms == p->synced_ms && strcmp(fp, p->synced_fp) == 0)
        return;
    (void)ask(p, "HSET sidflake:{p}:test T %lld fp %s", (long long)p->clock.ms, fp);
    memcpy(toy_of(p->toy)->fingerprint, fp, sizeof fp);
    memcpy(p->synced_fp, fp, sizeof fp);
    p->synced_ms = p->clock.ms;
}

struct coord *pair_side(struct pair *p, size_t side)
{
    if (side == PAIR_SQLITE)
        return p->sqlite;
    pair_sync(p);
    return side == PAIR_REDIS ? p->redis : p->toy;
}

void pair_restart(struct pair *p)
{
    char path[128];
    coord_idle(p->sqlite);
    (void)snprintf(path, sizeof path, "%s/new", p->dir);
    copy_file(p->db, path, O_CREAT | O_EXCL);
    if (rename(path, p->db) != 0)
        die(path, "cannot rename");
}

void pair_backup(struct pair *p, size_t slot)
{
    static const char *const keys[] = {"h", "free", "exp", "who"};
    char path[128];
    coord_idle(p->sqlite);
    backup_path(p, slot, path);
    copy_file(p->db, path, O_CREAT | O_TRUNC);
    for (size_t i = 0; i < 4; i++) {
        (void)ask(p, "DEL {p}backup%u:%s", (unsigned)slot, keys[i]);
        (void)ask(p, "COPY sidflake:{p}:%s {p}backup%u:%s", keys[i], (unsigned)slot, keys[i]);
    }
    p->kept[slot] = toy_of(p->toy)->state;
    p->backup[slot] = true;
}

void pair_restore(struct pair *p, size_t slot, bool in_place)
{
    static const char *const keys[] = {"h", "free", "exp", "who"};
    char path[128];
    coord_idle(p->sqlite);
    backup_path(p, slot, path);
    copy_file(path, p->db, O_CREAT | O_TRUNC);
    forget_answers(p);
    if (!in_place)
        pair_restart(p);
    for (size_t i = 0; i < 4; i++) {
        (void)ask(p, "DEL sidflake:{p}:%s", keys[i]);
        (void)ask(p, "COPY {p}backup%u:%s sidflake:{p}:%s", (unsigned)slot, keys[i], keys[i]);
    }
    toy_of(p->toy)->state = p->kept[slot];
}

void pair_double(struct pair *p, uint16_t worker)
{
    char sql[128];
    (void)snprintf(sql, sizeof sql, "INSERT INTO queue(pool, worker) SELECT id, %u FROM pool",
                   worker);
    query(p, sql);
    (void)ask(p, "RPUSH sidflake:{p}:free %u", (unsigned)worker);
    toy_double(p->toy, worker);
}

void pair_unindex(struct pair *p)
{
    query(p, "UPDATE worker SET due = NULL");
    (void)ask(p, "DEL sidflake:{p}:exp");
    toy_unindex(p->toy);
}
