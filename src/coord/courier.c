/*
 * Sources: the Redis commands AUTH, ROLE, SELECT, TIME, SCRIPT LOAD, EVALSHA, WAIT.
 */
#include "coord/courier.h"

#include "base/passfile.h"
#include "coord/outcome.h"
#include "coord/redis_reply.h"
#include "coord/risk.h"
#include "coord/roster.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define WAIT_LATE_MS 120
#define UNKNOWN_MAX  16384 /* bytes of an argument that a server takes before a login */

extern const char pool_lua[], sequences_lua[], snapshot_lua[]; /* made from pool.lua, ... */
extern const size_t pool_lua_len, sequences_lua_len, snapshot_lua_len;

/* ---- the connection ------------------------------------------------------------------------- */

void courier_drop(struct courier *c)
{
    c->history[0] = '\0';
    peer_drop(&c->peer);
}

bool courier_counts(struct courier *c)
{
    bool before = c->counts;
    c->counts = true;
    return before;
}

void courier_clear(struct courier *c)
{
    (void)courier_end(c, COORD_REFUSED);
    explicit_bzero(&c->to, sizeof c->to);
    free(c->password_file);
    c->password_file = NULL;
}

void courier_start(struct courier *c)
{
    peer_allow(&c->peer, c->timeout_us);
}

static enum coord_status choose_db(struct courier *c, struct coord_reply *r)
{
    char db[16];
    if (c->to.db == 0)
        return COORD_OK;
    (void)snprintf(db, sizeof db, "%" PRIu32, c->to.db);
    const char *argv[2] = {"SELECT", db};
    const size_t len[2] = {6, strlen(db)};
    return peer_greet(&c->peer, 2, argv, len, PEER_NO_SECRET, r);
}

static enum coord_status enter(struct courier *c, struct coord_reply *r)
{
    enum coord_status s = peer_join(&c->peer, r);
    if (s == COORD_OK)
        s = peer_login(&c->peer, &c->to.user, &c->to.password, r);
    if (s == COORD_OK && c->to.master[0])
        s = sentinel_confirm(&c->peer, r);
    return s == COORD_OK ? choose_db(c, r) : s;
}

/* Who sent us to a server that fails is part of the error. */
static enum coord_status blame(struct courier *c, enum coord_status s, struct coord_reply *r)
{
    if (s == COORD_OK || !c->to.master[0])
        return s;
    return sentinel_blame(&c->sentinel, &c->to, s, r);
}

/* Of who has not logged in Redis refuses a request of more than ten words by its length, before it
 * looks at the command. */
static bool wants_login(const char *text)
{
    return strstr(text, "-NOAUTH ") || strstr(text, "Protocol error: unauthenticated ");
}

/* A script's commands are refused in words of their own: up to Redis 7.0, and since then. */
static bool lacks_rights(const char *text)
{
    return strstr(text, "-NOPERM ") || strstr(text, " The user executing the script can't ") ||
           strstr(text, " ACL failure in script: ");
}

/* What helps with the answer of a Redis that refuses, NULL: nothing is known; *where: the place of
 * the password comes behind it. */
static const char *help_with(const struct courier *c, const char *text, bool *where)
{
    bool wanted = c->to.password.n == 0 && wants_login(text);
    *where = wanted || strstr(text, "AUTH: expected an answer");
    return wanted               ? "name a password in"
           : *where             ? "the password is that of"
           : lacks_rights(text) ? "sidflake.yaml(5) has the rights that are needed"
           : strstr(text, "SELECT: expected an answer") ? "the database is that of the URL"
                                                        : NULL;
}

static enum coord_status point(const struct courier *c, enum coord_status s, struct coord_reply *r)
{
    bool where;
    const char *help = help_with(c, r->err.text, &where);
    const char *file = where && c->password_file ? c->password_file : "";
    const char *of = c->password_of ? c->password_of : "the URL";
    /* The commands that are logged name no user. */
    bool unnamed = where && c->to.password.n > 0 && c->to.user.n == 0;
    if (s != COORD_REFUSED || !help)
        return s;
    struct err e = r->err;
    size_t n = strlen(e.text);
    if (e.text[n - 1] == '.') /* of Redis's own sentence, which goes on */
        n--;
    return outcome_refused(r, "%.*s; %s%s%s%s%s%s", (int)n, e.text, help, where ? " " : "",
                           where ? of : "", *file ? " " : "", file,
                           unnamed ? ", for the user default: the URL names none" : "");
}

static_assert(PASSFILE_MAX <= REDIS_URL_SECRET_MAX, "what a file holds fits");

/* A password that is rotated comes into the file, and nobody says so. Where it cannot be read, the
 * one that is known is tried. */
static void read_password(struct courier *c)
{
    char text[PASSFILE_MAX + 1];
    struct err e;
    if (!c->password_file ||
        passfile_read(c->password_file, "coordinator.password_file", false, text, &e))
        return;
    c->to.password.n = strlen(text);
    memcpy(c->to.password.b, text, c->to.password.n);
    explicit_bzero(text, sizeof text);
}

static enum coord_status join(struct courier *c, struct coord_reply *r)
{
    read_password(c);
    if (!c->to.master[0]) {
        c->peer.at = c->to.node[0];
        return enter(c, r);
    }
    enum coord_status s = sentinel_find(&c->sentinel, &c->to, &c->peer, r);
    if (s != COORD_OK)
        return s;
    return blame(c, enter(c, r), r);
}

static enum coord_status begin(struct courier *c, struct coord_reply *r)
{
    if (peer_ready(&c->peer))
        return COORD_OK;
    courier_drop(c);
    return join(c, r);
}

/* ---- whose history it is ----------------------------------------------------------------------
 */

static const char *const about[] = {"INFO", "replication"};

/* The replication id among what INFO says. */
static bool history_in(const struct redisReply *reply, char out[COURIER_SHA1_TEXT + 1])
{
    static const char name[] = "master_replid:";
    struct peer_said said = peer_said(reply);
    const char *at =
        said.kind == PEER_TEXT ? memmem(said.text.p, said.text.n, name, strlen(name)) : NULL;
    if (!at)
        return false;
    at += strlen(name);
    if (said.text.p + said.text.n - at < COURIER_SHA1_TEXT)
        return false;
    memcpy(out, at, COURIER_SHA1_TEXT);
    out[COURIER_SHA1_TEXT] = '\0';
    return true;
}

/* Before the script writes. */
static enum coord_status learn_history(struct courier *c, struct coord_reply *r)
{
    const char *argv[2] = {about[0], about[1]};
    const size_t len[2] = {strlen(about[0]), strlen(about[1])};
    struct redisReply *reply;
    if (!c->counts || c->history[0])
        return COORD_OK;
    enum coord_status s = peer_ask(&c->peer, 2, argv, len, &reply, r);
    if (s == COORD_OK && !history_in(reply, c->history)) {
        s = peer_unwanted(reply, "INFO replication", PEER_NO_SECRET, r);
        courier_drop(c);
    }
    peer_forget(&reply);
    return s;
}

/* And after replicas have said that they have it. */
static enum coord_status same_history(const struct courier *c, const struct redisReply *reply,
                                      struct coord_reply *r)
{
    char now[COURIER_SHA1_TEXT + 1];
    if (!history_in(reply, now))
        return peer_unwanted(reply, "INFO replication", PEER_NO_SECRET, r);
    if (strcmp(now, c->history) == 0)
        return COORD_OK;
    return outcome_down(
        r, ERR_BUSY,
        "WAIT: expected the replicas of one history, found %.8s... and then %.8s...: "
        "the server was another's replica in between, or nobody had asked",
        c->history[0] ? c->history : "none", now);
}

/* ---- the script ----------------------------------------------------------------------------- */

/* What is longer than a server takes of who has not logged in, it refuses by closing, and its
 * reason may be lost: a short word comes first. */
static enum coord_status knock(struct courier *c, struct coord_reply *r)
{
    const char *argv[1] = {"TIME"};
    const size_t len[1] = {4};
    struct redisReply *reply;
    enum coord_status s = peer_ask(&c->peer, 1, argv, len, &reply, r);
    if (s == COORD_OK && peer_said(reply).kind == PEER_ERROR) {
        s = peer_unwanted(reply, "TIME", PEER_NO_SECRET, r);
        courier_drop(c);
    }
    peer_forget(&reply);
    return s;
}

static enum coord_status load(struct courier *c, enum courier_text text, struct coord_reply *r)
{
    const struct span texts[COURIER_TEXTS] = {
        [COURIER_POOL] = {pool_lua, pool_lua_len},
        [COURIER_SEQUENCES] = {sequences_lua, sequences_lua_len},
        [COURIER_SNAPSHOT] = {snapshot_lua, snapshot_lua_len},
    };
    const char *argv[3] = {"SCRIPT", "LOAD", texts[text].p};
    const size_t len[3] = {6, 4, texts[text].n};
    struct redisReply *reply;
    enum coord_status s = len[2] < UNKNOWN_MAX ? COORD_OK : knock(c, r);
    if (s == COORD_OK)
        s = peer_ask(&c->peer, 3, argv, len, &reply, r);
    if (s != COORD_OK)
        return s;
    struct peer_said sha = peer_said(reply);
    if (sha.kind == PEER_TEXT && sha.text.n == COURIER_SHA1_TEXT) {
        memcpy(c->sha[text], sha.text.p, COURIER_SHA1_TEXT);
    } else {
        s = peer_unwanted(reply, "SCRIPT LOAD", PEER_NO_SECRET, r);
        courier_drop(c);
    }
    peer_forget(&reply);
    return s;
}

static enum coord_status evalsha(struct courier *c, enum courier_text text, int argc,
                                 const char **argv, size_t *len, struct coord_reply *r)
{
    enum coord_status s = COORD_OK;
    if (!c->sha[text][0])
        s = load(c, text, r);
    argv[COURIER_ARG_SCRIPT] = c->sha[text];
    len[COURIER_ARG_SCRIPT] = COURIER_SHA1_TEXT;
    return s == COORD_OK ? peer_ask(&c->peer, argc, argv, len, &c->reply, r) : s;
}

/* A server that restarted, or was told to, has forgotten the text. */
static enum coord_status run_script(struct courier *c, enum courier_text text, int argc,
                                    const char **argv, size_t *len, struct coord_reply *r)
{
    enum coord_status s = evalsha(c, text, argc, argv, len, r);
    if (s == COORD_OK && peer_is_error(c->reply, "NOSCRIPT")) {
        peer_forget(&c->reply);
        c->sha[text][0] = '\0';
        s = evalsha(c, text, argc, argv, len, r);
    }
    return s;
}

enum coord_status courier_script(struct courier *c, int argc, const char **argv, size_t *len,
                                 struct answer *a, struct coord_reply *r)
{
    peer_forget(&c->reply);
    enum coord_status s = begin(c, r);
    if (s == COORD_OK)
        s = learn_history(c, r);
    if (s != COORD_OK)
        return point(c, s, r);
    s = run_script(c, c->text, argc, argv, len, r);
    if (s == COORD_OK && !coord_redis_answer(c->reply, a))
        s = peer_unwanted(c->reply, "EVALSHA", PEER_NO_SECRET, r);
    return point(c, blame(c, s, r), r);
}

/* What WAIT came to, where that is not a count of at least n. */
static enum coord_status waited(const struct redisReply *reply, uint32_t n, struct coord_reply *r)
{
    struct peer_said count = peer_said(reply);
    if (count.kind == PEER_ERROR && span_starts(count.text, SPAN("ERR WAIT cannot be used")))
        return outcome_down(r, ERR_BUSY, "WAIT: expected a master, found a replica");
    if (count.kind != PEER_NUMBER)
        return peer_unwanted(reply, "WAIT", PEER_NO_SECRET, r);
    if (count.number >= (int64_t)n)
        return COORD_OK;
    return outcome_down(r, ERR_BUSY,
                        "WAIT: expected %" PRIu32 " replicas to acknowledge, found %" PRId64, n,
                        count.number);
}

/* WAIT ends before the deadline does, so that its count is told; Redis looks at its own deadlines
 * ten times a second. */
static int64_t wait_ms(const struct courier *c)
{
    int64_t left = peer_left_us(&c->peer) / 1000;
    int64_t spare = left / 8 > WAIT_LATE_MS ? left / 8 : WAIT_LATE_MS;
    int64_t ms = left - (spare < left / 2 ? spare : left / 2);
    return ms > 0 ? ms : 1; /* 0: for ever */
}

enum coord_status courier_wait(struct courier *c, uint32_t n, struct coord_reply *r)
{
    char count[16];
    char ms[24];
    struct redisReply *count_said = NULL, *history_said = NULL;
    if (!c->peer.context) /* a count of another connection says nothing of this one's writes */
        return outcome_down(r, ERR_IO, "WAIT: expected the script's connection, found none");
    (void)snprintf(count, sizeof count, "%" PRIu32, n);
    (void)snprintf(ms, sizeof ms, "%" PRId64, wait_ms(c));
    const char *wait[3] = {"WAIT", count, ms};
    const char *ask[2] = {about[0], about[1]};
    enum coord_status s = peer_put(&c->peer, 3, wait, r);
    if (s == COORD_OK)
        s = peer_put(&c->peer, 2, ask, r);
    if (s == COORD_OK)
        s = peer_send(&c->peer, r);
    if (s == COORD_OK)
        s = peer_take(&c->peer, &count_said, r);
    if (s == COORD_OK)
        s = peer_take(&c->peer, &history_said, r);
    if (s == COORD_OK)
        s = waited(count_said, n, r);
    if (s == COORD_OK)
        s = same_history(c, history_said, r);
    peer_forget(&count_said);
    peer_forget(&history_said);
    return blame(c, s, r);
}

/* A master whose answer did not count may be one that has been deposed. */
enum coord_status courier_end(struct courier *c, enum coord_status s)
{
    peer_forget(&c->reply);
    if (s == COORD_REFUSED || s == COORD_DOWN)
        courier_drop(c);
    if (s == COORD_DOWN && c->to.master[0])
        sentinel_doubt(&c->sentinel, &c->to);
    return s;
}

/* ---- what the server may lose ---------------------------------------------------------------- */

/* The value of a setting: "" is one. It lives as long as *reply. */
static bool ask_setting(struct courier *c, const char *name, struct redisReply **reply,
                        struct span *value)
{
    const char *argv[3] = {"CONFIG", "GET", name};
    const size_t len[3] = {6, 3, strlen(name)};
    struct coord_reply r;
    if (c->hidden || peer_ask(&c->peer, 3, argv, len, reply, &r) != COORD_OK)
        return false;
    struct peer_said said = peer_item(*reply, 1);
    c->hidden = peer_said(*reply).kind == PEER_ERROR;
    *value = said.text;
    return said.kind == PEER_TEXT;
}

bool courier_risks(struct courier *c, unsigned *out)
{
    const char *argv[1] = {"INFO"};
    const size_t len[1] = {4};
    struct coord_reply r;
    struct redisReply *info = NULL, *setting = NULL;
    struct span save = {NULL, 0};
    if (begin(c, &r) != COORD_OK || peer_ask(&c->peer, 1, argv, len, &info, &r) != COORD_OK)
        return false;
    struct peer_said said = peer_said(info);
    bool told = ask_setting(c, "save", &setting, &save);
    if (said.kind == PEER_TEXT)
        *out = risk_of(said.text, told, save);
    peer_forget(&setting);
    peer_forget(&info);
    return said.kind == PEER_TEXT;
}

/* ---- whether it can be written ----------------------------------------------------------------
 */

/* Redis looks at its memory, its disk and its replicas before it looks at the key; with XX it adds
 * no member, and there is none of this name. */
enum coord_status courier_writes(struct courier *c, struct coord_reply *r)
{
    const char *argv[5] = {"ZADD", c->key[COURIER_KEY_HELD], "XX", "0", "-"};
    const size_t len[5] = {4, strlen(argv[1]), 2, 1, 1};
    enum coord_status s = begin(c, r);
    if (s == COORD_OK)
        s = peer_ask(&c->peer, 5, argv, len, &c->reply, r);
    if (s == COORD_OK && peer_said(c->reply).kind != PEER_NUMBER &&
        !peer_is_error(c->reply, "NOPERM"))
        s = peer_unwanted(c->reply, "ZADD", PEER_NO_SECRET, r);
    return s;
}

/* ---- the snapshot --------------------------------------------------------------------------- */

/* n of them, from the first on; none where there is no pool that has any. */
struct snap_workers {
    uint16_t from;
    size_t n;
};

static enum coord_status ask_workers(struct courier *c, struct snap_workers *out,
                                     struct coord_reply *r)
{
    const char *argv[4] = {"HMGET", c->key[0], "from", "to"};
    const size_t len[4] = {5, strlen(c->key[0]), 4, 2};
    int64_t from, to;
    *out = (struct snap_workers){0};
    enum coord_status s = peer_ask(&c->peer, 4, argv, len, &c->reply, r);
    if (s == COORD_OK && answer_number(peer_item(c->reply, 0).text, &from) &&
        answer_number(peer_item(c->reply, 1).text, &to) && from <= to && to < COORD_WORKERS)
        *out = (struct snap_workers){.from = (uint16_t)from, .n = (size_t)(to - from + 1)};
    return s;
}

/* Asks for all that is wanted of the hash by name: a hostile one may have any number of fields. */
static enum coord_status ask_snapshot(struct courier *c, const struct snap_workers *w,
                                      struct coord_reply *r)
{
    enum {
        HEAD = COURIER_ARG_SCRIPT + 2 + COURIER_KEYS
    };
    struct {
        const char *argv[HEAD + ROSTER_OWN + COORD_WORKERS];
        size_t len[HEAD + ROSTER_OWN + COORD_WORKERS];
        char number[COORD_WORKERS][8];
    } *ask = malloc(sizeof *ask);
    size_t n = 0;
    if (!ask)
        return outcome_down(r, ERR_NOMEM, "no memory for a snapshot");
    ask->argv[n++] = "EVALSHA";
    ask->argv[n++] = ""; /* COURIER_ARG_SCRIPT */
    ask->argv[n++] = "4";
    for (size_t i = 0; i < COURIER_KEYS; i++)
        ask->argv[n++] = c->key[i];
    for (size_t i = 0; i < ROSTER_OWN; i++)
        ask->argv[n++] = roster_field(i);
    for (size_t i = 0; i < w->n; i++) {
        (void)snprintf(ask->number[i], sizeof ask->number[i], "%zu", (w->from + i) % COORD_WORKERS);
        ask->argv[n++] = ask->number[i];
    }
    for (size_t i = 0; i < n; i++)
        ask->len[i] = strlen(ask->argv[i]);
    peer_forget(&c->reply);
    enum coord_status s = run_script(c, COURIER_SNAPSHOT, (int)n, ask->argv, ask->len, r);
    free(ask);
    return s;
}

enum coord_status courier_snapshot(struct courier *c, const struct answer_to *to,
                                   struct coord_snapshot *out, struct coord_reply *r)
{
    struct snap_workers w;
    courier_start(c);
    c->peer.may_read = SIZE_MAX; /* for an operator, who has the memory */
    enum coord_status s = begin(c, r);
    if (s == COORD_OK)
        s = ask_workers(c, &w, r);
    if (s == COORD_OK)
        s = ask_snapshot(c, &w, r);
    if (s == COORD_OK)
        s = coord_redis_roster(c->reply, w.from, to, out, r);
    return courier_end(c, point(c, s, r));
}
