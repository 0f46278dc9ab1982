/*
 * The simulated Redis against a real redis-server, reply by reply: random commands, and the script
 * with random operations. Before that, its conversions of numbers against those of the interpreter.
 *
 * COMMANDS and OPERATIONS in the environment: how many. Both sides get the same at the same time;
 * for the script, the real server's TIME and INFO are read from a hash that is set before each
 * call.
 */
#include "sim/script.h"
#include "support/redis_server.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>

#define BATCH    200
#define ARGS_MAX 24

extern const char pool_lua[];
extern const size_t pool_lua_len;

static uint64_t state = 0x243F6A8885A308D3;
static struct dataset data;
static redisContext *redis;

static uint64_t draw(uint64_t bound)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    uint64_t z = (state ^ state >> 33) * UINT64_C(0xFF51AFD7ED558CCD);
    return (z ^ z >> 33) % bound;
}

struct words {
    int n;
    char text[ARGS_MAX][224];
    const char *argv[ARGS_MAX];
    size_t len[ARGS_MAX];
    struct span span[ARGS_MAX];
};

static void put(struct words *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(struct words *w, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(w->text[w->n], sizeof w->text[0], fmt, ap);
    va_end(ap);
    w->argv[w->n] = w->text[w->n];
    w->len[w->n] = (size_t)n;
    w->span[w->n] = span_of(w->text[w->n], (size_t)n);
    w->n++;
}

static void send_words(const struct words *w)
{
    const char *argv[ARGS_MAX];
    for (int i = 0; i < w->n; i++)
        argv[i] = w->text[i];
    if (redisAppendCommandArgv(redis, w->n, argv, w->len) != REDIS_OK)
        abort();
}

static redisReply *receive(void)
{
    void *r = NULL;
    if (redisGetReply(redis, &r) != REDIS_OK) {
        (void)printf("Bail out! redis-server: %s\n", redis->errstr);
        abort();
    }
    return r;
}

static void show(const char *what, const struct words *w)
{
    (void)printf("# %s:", what);
    for (int i = 0; i < w->n; i++)
        (void)printf(" %s", w->text[i]);
    (void)printf("\n");
}

/* ---- commands -------------------------------------------------------------------------------- */

static const char *key(void)
{
    static const char *const keys[] = {"h", "l", "z", "x"};
    return keys[draw(4)];
}

static void put_sub(struct words *w)
{
    static const char *const subs[] = {"a", "b", "ab",       "10",
                                       "9", "",  "identity", "0123456789abcdef"};
    put(w, "%s", subs[draw(8)]);
}

static void put_value(struct words *w)
{
    if (draw(2))
        put(w, "%llu", (unsigned long long)draw(UINT64_C(2000000000000)));
    else
        put_sub(w);
}

/* What stands at the key is of the type that the command wants, most of the time. */
static const struct shape {
    const char *name, *key;
    unsigned most;    /* groups of what follows */
    const char *each; /* s: element, v: value or score, each group; 0: a fixed 0 */
} shapes[] = {
    {"HSET", "h", 3, "sv"},  {"HGET", "h", 1, "s"},  {"HMGET", "h", 4, "s"},
    {"HDEL", "h", 3, "s"},   {"RPUSH", "l", 3, "s"}, {"LPOP", "l", 0, ""},
    {"LPOP", "l", 0, ""},    {"LLEN", "l", 0, ""},   {"LRANGE", "l", 0, ""},
    {"ZADD", "z", 3, "ns"},  {"ZREM", "z", 3, "s"},  {"ZCARD", "z", 0, ""},
    {"EXISTS", NULL, 0, ""}, {"DEL", NULL, 0, ""},   {"ZRANGEBYSCORE", "z", 0, ""},
    {"HSCAN", "h", 0, ""},
};

static void make_command(struct words *w)
{
    w->n = 0;
    const struct shape *s = &shapes[draw(sizeof shapes / sizeof *shapes)];
    if (strcmp(s->name, "DEL") == 0 && draw(4))
        s = &shapes[0];
    put(w, "%s", s->name);
    put(w, "%s", s->key && draw(50) ? s->key : key());
    if (strcmp(s->name, "ZRANGEBYSCORE") == 0) {
        put(w, "-inf");
        put(w, "(%llu", (unsigned long long)draw(40));
        put(w, "LIMIT");
        put(w, "0");
        put(w, "%llu", (unsigned long long)(1 + draw(5)));
    }
    if (strcmp(s->name, "HSCAN") == 0) {
        put(w, "0");
        put(w, "MATCH");
        put(w, "%s*", (const char *[]){"", "a", "1"}[draw(3)]);
        put(w, "COUNT");
        put(w, "500");
    }
    if (strcmp(s->name, "LRANGE") == 0) {
        put(w, "0");
        put(w, "-1");
    }
    for (uint64_t groups = s->most ? 1 + draw(s->most) : 0; groups > 0; groups--)
        for (const char *e = s->each; *e; e++) {
            if (*e == '0')
                put(w, "0");
            else if (*e == 'n')
                put(w, "%llu", (unsigned long long)draw(40));
            else if (*e == 'v')
                put_value(w);
            else
                put_sub(w);
        }
}

static bool same_text(struct span a, const redisReply *b)
{
    return span_eq(a, span_of(b->str, b->len));
}

static bool same(const struct dataset_reply *a, const redisReply *b)
{
    if (a->kind == DATASET_NIL)
        return b->type == REDIS_REPLY_NIL;
    if (a->kind == DATASET_INT)
        return b->type == REDIS_REPLY_INTEGER && b->integer == a->number;
    if (a->kind == DATASET_TEXT)
        return b->type == REDIS_REPLY_STRING && same_text(a->text, b);
    if (a->kind == DATASET_ERROR)
        return b->type == REDIS_REPLY_ERROR && same_text(a->text, b);
    if (a->kind == DATASET_PAGE) { /* small ones come all at once, in the order of their making */
        if (b->type != REDIS_REPLY_ARRAY || b->elements != 2 ||
            !same_text(SPAN("0"), b->element[0]))
            return false;
        b = b->element[1];
    }
    if (b->type != REDIS_REPLY_ARRAY || b->elements != a->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (a->item[i].nil ? b->element[i]->type != REDIS_REPLY_NIL
                           : !same_text(a->item[i].text, b->element[i]))
            return false;
    return true;
}

static void forget_long_list(void)
{
    static const struct span del[] = {{"DEL", 3}, {"l", 1}};
    static struct dataset_reply ignored;
    const struct dataset_key *l = dataset_find(&data, "l");
    if (!l || l->n < 100)
        return;
    freeReplyObject(redisCommand(redis, "DEL l"));
    (void)dataset_command(&data, 2, del, &ignored);
}

static bool check_commands(unsigned long total)
{
    static struct words batch[BATCH];
    static struct dataset_reply reply;
    bool good = true;
    dataset_reset(&data);
    for (unsigned long done = 0; done < total && good; done += BATCH) {
        for (unsigned i = 0; i < BATCH; i++) {
            make_command(&batch[i]);
            send_words(&batch[i]);
        }
        for (unsigned i = 0; i < BATCH; i++) {
            redisReply *r = receive();
            bool known = dataset_command(&data, (size_t)batch[i].n, batch[i].span, &reply);
            if (good && (!known || !same(&reply, r))) {
                show("answered otherwise by a real Redis", &batch[i]);
                good = false;
            }
            freeReplyObject(r);
        }
        forget_long_list();
    }
    return good;
}

/* ---- the script ------------------------------------------------------------------------------ */

/* text with every `from` replaced; to be freed. */
static char *replaced(const char *text, const char *from, const char *to)
{
    size_t count = 0;
    for (const char *p = text; (p = strstr(p, from)); p++)
        count++;
    char *out = malloc(strlen(text) + count * strlen(to) + 1), *at = out;
    if (!out || count == 0)
        abort();
    for (const char *p; (p = strstr(text, from)); text = p + strlen(from)) {
        memcpy(at, text, (size_t)(p - text));
        at += p - text;
        at = stpcpy(at, to);
    }
    (void)stpcpy(at, text);
    return out;
}

static void load_script(char sha[41])
{
    char *a = replaced(pool_lua, "call('TIME')", "redis.call('HMGET', 't', 'sec', 'us')");
    char *b = replaced(a, "call('INFO', ", "redis.call('HGET', 't', ");
    redisReply *r = redisCommand(redis, "SCRIPT LOAD %s", b);
    if (!r || r->type != REDIS_REPLY_STRING)
        abort();
    memcpy(sha, r->str, 41);
    freeReplyObject(r);
    free(a);
    free(b);
}

static void put_worker(struct words *w)
{
    put(w, "%s",
        draw(60) ? (const char *[]){"0", "1", "2", "3"}[draw(4)]
                 : (const char *[]){"4", "01", "x", ""}[draw(4)]);
}

static void put_token(struct words *w)
{
    put(w, "%032llx", (unsigned long long)draw(4));
}

static void put_time(struct words *w, int64_t around)
{
    put(w, "%lld", (long long)around + (long long)draw(80000) - 20000);
}

/* ARGV[3]: mostly none; else what a CONFIRM tells, of this server or another, of now or before. */
static void put_nonce(struct words *w, int64_t now)
{
    if (draw(3))
        put(w, "%s", "");
    else
        put(w, "%s%s@%lld", data.run_id, draw(8) ? data.replid : data.run_id,
            (long long)(draw(2) ? now : now - (int64_t)draw(30000)));
}

static void put_operation(struct words *w, int64_t now)
{
    static const char *const ids[] = {"u1|5|38.15.10", "u2|5|38.15.10", "u1|6|38.15.10"};
    static const char *const ops[] = {"init",  "describe", "claim",           "claim",
                                      "renew", "renew",    "release",         "release",
                                      "evict", "settle",   "nothing-lost",    "repair",
                                      "close", "unclose",  "clock-was-ahead", "nonsense"};
    const char *op = ops[draw(draw(20) ? 11 : 16)];
    put(w, "%s", op);
    put(w, "%s", ids[draw(40) ? 0 : draw(3)]);
    put_nonce(w, now);
    put(w, "%lld", (long long)now + (long long)draw(1100) - 550); /* the caller's clock */
    if (strcmp(op, "init") == 0) {
        put(w, "%s", coord_init_mode_name((enum coord_init_mode)draw(3)));
        static const char *const params[] = {"60000", "15001", "20001", "500", "0"};
        for (unsigned i = 0; i < sizeof params / sizeof *params; i++)
            put(w, "%s", params[i]);
        put(w, "%s", draw(2) ? "0" : "2"); /* replicas */
        put(w, "%s", "0");
        put(w, "%s", "3");
        put(w, "%s", draw(2) ? "0" : "90000");     /* granted ahead by what was lost */
        put(w, "%s", "1");                         /* replicas were said */
        put(w, "%s", draw(2) ? "60000" : "15001"); /* settle */
        put(w, "%s", draw(2) ? "0" : "20000");     /* the shortest before */
    } else if (strcmp(op, "claim") == 0) {
        put_token(w);
        put(w, "{}");
    } else if (strcmp(op, "renew") == 0) {
        put(w, "%s", draw(9) ? "61000" : "90000");       /* its pool's A + 2S, … */
        put(w, "%llu", (unsigned long long)draw(30000)); /* … and its interval */
        put(w, "{}");
        for (uint64_t i = 1 + draw(2); i > 0; i--) {
            put_worker(w);
            put_token(w);
            put_token(w);
            put_time(w, now);
            put(w, "%llu", (unsigned long long)draw(draw(50) ? 4 : 400));
        }
    } else if (strcmp(op, "settle") == 0) {
        put(w, "%llu", 15001 + (unsigned long long)draw(45000));
    } else if (strcmp(op, "describe") != 0 && strcmp(op, "nothing-lost") != 0 &&
               strcmp(op, "clock-was-ahead") != 0) {
        put_worker(w);
        put_token(w);
        put_token(w);
        if (draw(3))
            put_time(w, now - 15000);
        else
            put(w, "%s", "");
        put(w, "%llu", (unsigned long long)draw(4));
    }
}

#define SCRIPT_KEYS 4
static const char *const keys[SCRIPT_KEYS] = {"sidflake:{p}:h", "sidflake:{p}:free",
                                              "sidflake:{p}:exp", "sidflake:{p}:who"};

/* What both sides are told of the time and the server. */
static void tell_server(int64_t now)
{
    struct words w = {.n = 0};
    data.now_us = now * 1000 + 321;
    put(&w, "HSET");
    put(&w, "t");
    put(&w, "sec");
    put(&w, "%lld", (long long)(now / 1000));
    put(&w, "us");
    put(&w, "%lld", (long long)(now % 1000 * 1000 + 321));
    put(&w, "server");
    put(&w, "# Server\r\nrun_id:%s\r\n", data.run_id);
    put(&w, "replication");
    put(&w, "# Replication\r\nrole:master\r\nmaster_replid:%s\r\n" DATASET_LISTENERS, data.replid);
    send_words(&w);
}

static bool same_answer(const struct answer *a, const redisReply *r)
{
    if (r->type != REDIS_REPLY_ARRAY || r->elements != a->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (r->element[i]->type != REDIS_REPLY_STRING || !same_text(a->f[i], r->element[i]))
            return false;
    return true;
}

static bool check_operation(const char *sha, int64_t now)
{
    struct words w = {.n = 0};
    struct span key_spans[SCRIPT_KEYS];
    struct answer a;
    put(&w, "EVALSHA");
    put(&w, "%s", sha);
    put(&w, "%d", SCRIPT_KEYS);
    for (unsigned i = 0; i < SCRIPT_KEYS; i++) {
        put(&w, "%s", keys[i]);
        key_spans[i] = span_str(keys[i]);
    }
    int first = w.n;
    put_operation(&w, now);
    tell_server(now);
    send_words(&w);
    script_run(COURIER_POOL, SCRIPT_KEYS, key_spans, (size_t)(w.n - first), w.span + first, &a);
    freeReplyObject(receive());
    redisReply *r = receive();
    bool good = same_answer(&a, r);
    if (!good) {
        show("answered otherwise by a real Redis", &w);
        (void)printf("# real: %s, simulated: %.*s\n",
                     r->type == REDIS_REPLY_ERROR ? r->str
                     : r->elements > 0            ? r->element[0]->str
                                                  : "?",
                     (int)a.f[0].n, a.f[0].p);
    }
    freeReplyObject(r);
    return good;
}

static void lose_a_key(void)
{
    const char *k = keys[draw(SCRIPT_KEYS)];
    freeReplyObject(redisCommand(redis, "DEL %s", k));
    dataset_delete(&data, k);
}

static bool check_script(unsigned long total)
{
    char sha[41];
    int64_t now = INT64_C(1780000000000);
    load_script(sha);
    dataset_reset(&data);
    freeReplyObject(redisCommand(redis, "FLUSHALL"));
    script_on(&data);
    for (unsigned long i = 0; i < total; i++) {
        now += draw(100) ? (int64_t)draw(700) : (int64_t)draw(90000) - 2000;
        if (i == 0 || draw(300) == 0)
            (void)snprintf(data.run_id, sizeof data.run_id, "%040lx", i + 1);
        if (i == 0 || draw(900) == 0)
            (void)snprintf(data.replid, sizeof data.replid, "%040lx", i + 1);
        if (draw(500) == 0)
            lose_a_key();
        if (!check_operation(sha, now))
            return false;
    }
    return true;
}

/* ---- numbers and text ------------------------------------------------------------------------ */

static size_t number_text(char *out, size_t n)
{
    static const char *const before[] = {"", "", "", "-", "0.", "0x", "000"};
    static const char *const after[] = {"", "", "", ".5", "e3", " ", "x"};
    unsigned long long v = draw(UINT64_MAX) >> draw(64);
    return (size_t)snprintf(out, n, "%s%llu%s", before[draw(7)], v, after[draw(7)]);
}

/* The stand-in's own way against the library's, which it takes for any other form. */
static bool check_numbers(unsigned long total)
{
    static const char text[] =
        "local x, s = tonumber(' ' .. ARGV[1]) or 0, ARGV[2]\n"
        "local function same(a, b) return a == b or (a ~= a and b ~= b) end\n"
        "if string.format('%.0f', x) .. ' ' ~= string.format('%.0f ', x) then\n"
        "    return {'format', string.format('%.0f', x)}\n"
        "end\n"
        "if not same(tonumber(s), tonumber(s, 10)) or not same(tonumber(s), tonumber(s .. ' ')) "
        "then\n"
        "    return {'tonumber', tostring(tonumber(s))}\n"
        "end\n"
        "return {}";
    bool good = true;
    script_open(span_str(text), span_of("", 0));
    for (unsigned long i = 0; i < total && good; i++) {
        char a[48], b[48];
        size_t n = number_text(a, sizeof a), m = draw(20) ? number_text(b, sizeof b) : 0;
        struct span args[2] = {span_of(a, n), span_of(b, m)};
        struct answer out;
        script_run(COURIER_POOL, 0, NULL, 2, args, &out);
        good = out.n == 0;
        if (!good)
            (void)printf("# %.*s, %.*s: %.*s gives %.*s\n", (int)n, a, (int)m, b, (int)out.f[0].n,
                         out.f[0].p, (int)out.f[1].n, out.f[1].p);
    }
    script_close();
    return good;
}

/* ---- running --------------------------------------------------------------------------------- */

static unsigned long number_in(const char *name, unsigned long otherwise)
{
    const char *s = getenv(name);
    return s && *s ? strtoul(s, NULL, 10) : otherwise;
}

int main(void)
{
    struct server server;
    unsigned long commands = number_in("COMMANDS", 1000000);
    unsigned long operations = number_in("OPERATIONS", 60000);
    if (!server_available()) {
        (void)printf("1..0 # SKIP there is no redis-server\n");
        return 0;
    }
    (void)printf("1..3\n");
    bool c = check_numbers(commands / 5);
    (void)printf("%sok 1 - numbers and text, %lu of them\n", c ? "" : "not ", commands / 5);
    script_open(span_of(pool_lua, pool_lua_len), span_of("", 0));
    server_start(&server, false, NULL);
    redis = redisConnectUnix(server.socket);
    if (!redis || redis->err)
        abort();
    bool a = check_commands(commands);
    (void)printf("%sok 2 - %lu random commands\n", a ? "" : "not ", commands);
    bool b = check_script(operations);
    (void)printf("%sok 3 - the script, %lu random operations\n", b ? "" : "not ", operations);
    redisFree(redis);
    server_free(&server);
    script_close();
    return a && b && c ? 0 : 1;
}
