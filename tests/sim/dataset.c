#include "sim/dataset.h"

#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void full(const char *what)
{
    (void)fprintf(stderr, "simulated Redis: expected room for one more %s, found none\n", what);
    abort();
}

/* ---- keys and elements ---------------------------------------------------------------------- */

void dataset_reset(struct dataset *s)
{
    for (unsigned i = 0; i < DATASET_KEYS; i++)
        s->key[i].type = DATASET_NONE;
}

void dataset_copy(struct dataset *to, const struct dataset *from)
{
    for (unsigned i = 0; i < DATASET_KEYS; i++) {
        const struct dataset_key *k = &from->key[i];
        to->key[i].type = k->type;
        if (k->type == DATASET_NONE)
            continue;
        memcpy(to->key[i].name, k->name, sizeof k->name);
        to->key[i].nname = k->nname;
        to->key[i].n = k->n;
        memcpy(to->key[i].e, k->e, k->n * sizeof *k->e);
    }
}

static struct dataset_key *find(struct dataset *s, struct span name)
{
    for (unsigned i = 0; i < DATASET_KEYS; i++)
        if (s->key[i].type != DATASET_NONE && s->key[i].nname == name.n &&
            memcmp(s->key[i].name, name.p, name.n) == 0)
            return &s->key[i];
    return NULL;
}

struct dataset_key *dataset_find(struct dataset *s, const char *name)
{
    return find(s, span_str(name));
}

void dataset_delete(struct dataset *s, const char *name)
{
    struct dataset_key *k = dataset_find(s, name);
    if (k)
        k->type = DATASET_NONE;
}

static struct dataset_key *make(struct dataset *s, struct span name, enum dataset_type type)
{
    struct dataset_key *k = find(s, name);
    if (k)
        return k;
    for (unsigned i = 0; i < DATASET_KEYS; i++) {
        k = &s->key[i];
        if (k->type != DATASET_NONE)
            continue;
        if (name.n >= sizeof k->name)
            full("byte of a key's name");
        memcpy(k->name, name.p, name.n);
        k->nname = name.n;
        k->type = type;
        k->n = k->hint = 0;
        return k;
    }
    full("key");
}

static void pad(char out[DATASET_SUB_MAX], struct span s)
{
    if (s.n > DATASET_SUB_MAX)
        full("byte of an element");
    memset(out, 0, DATASET_SUB_MAX);
    memcpy(out, s.p, s.n);
}

static struct dataset_element *element(struct dataset_key *k, struct span sub)
{
    char want[DATASET_SUB_MAX];
    if (!k || sub.n > DATASET_SUB_MAX)
        return NULL;
    pad(want, sub);
    unsigned i = k->hint < k->n ? k->hint : 0;
    for (unsigned left = k->n; left > 0; left--) {
        struct dataset_element *e = &k->e[i];
        i = i + 1 < k->n ? i + 1 : 0;
        if (memcmp(e->sub, want, sizeof want) == 0 && e->nsub == sub.n) {
            k->hint = i;
            return e;
        }
    }
    return NULL;
}

static struct dataset_element *append(struct dataset_key *k, struct span sub)
{
    if (k->n == DATASET_ELEMENTS)
        full("element of a key");
    struct dataset_element *e = &k->e[k->n++];
    pad(e->sub, sub);
    e->nsub = (uint8_t)sub.n;
    e->ntext = 0;
    return e;
}

static void take_out(struct dataset_key *k, unsigned i)
{
    memmove(&k->e[i], &k->e[i + 1], (k->n - i - 1) * sizeof *k->e);
    if (--k->n == 0)
        k->type = DATASET_NONE;
}

static struct span sub_of(const struct dataset_element *e)
{
    return span_of(e->sub, e->nsub);
}

/* ---- commands -------------------------------------------------------------------------------- */

struct command {
    struct dataset *s;
    struct dataset_key *k; /* the key named first, or NULL */
    size_t argc;           /* of what follows the key */
    const struct span *argv;
    struct span name; /* of the key */
    struct dataset_reply *out;
};

static void put_number(struct dataset_reply *out, size_t n)
{
    out->kind = DATASET_INT;
    out->number = (long long)n;
}

static void put_item(struct dataset_reply *out, bool nil, struct span text)
{
    out->item[out->n++] = (struct dataset_item){nil, text};
}

static struct span digits(char *at, size_t n, int64_t v)
{
    struct buf b;
    buf_init(&b, at, n);
    buf_put_i64(&b, v);
    return buf_span(&b);
}

static void cmd_time(struct command *c)
{
    char *at = c->out->scratch;
    c->out->kind = DATASET_ARRAY;
    put_item(c->out, false, digits(at, 32, c->s->now_us / 1000000));
    put_item(c->out, false, digits(at + 32, 32, c->s->now_us % 1000000));
}

static void cmd_info(struct command *c)
{
    bool server = span_eq(c->name, SPAN("server"));
    struct buf b;
    buf_init(&b, c->out->scratch, sizeof c->out->scratch);
    buf_put_span(&b, server ? SPAN("# Server\r\nrun_id:")
                            : SPAN("# Replication\r\nrole:master\r\nmaster_replid:"));
    buf_put_span(&b, span_str(server ? c->s->run_id : c->s->replid));
    buf_put_span(&b, server ? SPAN("\r\ntcp_port:6379\r\n") : SPAN("\r\n" DATASET_LISTENERS));
    c->out->kind = DATASET_TEXT;
    c->out->text = buf_span(&b);
}

static void cmd_exists(struct command *c)
{
    put_number(c->out, c->k != NULL);
}

static void cmd_del(struct command *c)
{
    size_t n = c->k != NULL;
    if (c->k)
        c->k->type = DATASET_NONE;
    for (size_t i = 0; i < c->argc; i++) {
        struct dataset_key *k = find(c->s, c->argv[i]);
        n += k != NULL;
        if (k)
            k->type = DATASET_NONE;
    }
    put_number(c->out, n);
}

static void cmd_hset(struct command *c)
{
    size_t added = 0;
    struct dataset_key *k = make(c->s, c->name, DATASET_HASH);
    for (size_t i = 0; i + 1 < c->argc; i += 2) {
        struct dataset_element *e = element(k, c->argv[i]);
        struct span text = c->argv[i + 1];
        added += e == NULL;
        if (!e)
            e = append(k, c->argv[i]);
        if (text.n > sizeof e->text)
            full("byte of a value");
        memcpy(e->text, text.p, text.n);
        e->ntext = (uint16_t)text.n;
    }
    put_number(c->out, added);
}

static void cmd_hget(struct command *c)
{
    const struct dataset_element *e = element(c->k, c->argv[0]);
    c->out->kind = e ? DATASET_TEXT : DATASET_NIL;
    if (e)
        c->out->text = span_of(e->text, e->ntext);
}

static void cmd_hmget(struct command *c)
{
    c->out->kind = DATASET_ARRAY;
    for (size_t i = 0; i < c->argc; i++) {
        const struct dataset_element *e = element(c->k, c->argv[i]);
        put_item(c->out, !e, e ? span_of(e->text, e->ntext) : span_of(NULL, 0));
    }
}

/* key cursor MATCH PREFIX* COUNT n: all of them at once, whatever n. */
static void cmd_hscan(struct command *c)
{
    struct span prefix = c->argv[2];
    prefix.n--;
    c->out->kind = DATASET_PAGE;
    for (unsigned i = 0; c->k && i < c->k->n; i++) {
        const struct dataset_element *e = &c->k->e[i];
        if (e->nsub < prefix.n || memcmp(e->sub, prefix.p, prefix.n) != 0)
            continue;
        put_item(c->out, false, sub_of(e));
        put_item(c->out, false, span_of(e->text, e->ntext));
    }
}

/* HDEL and ZREM. */
static void cmd_remove(struct command *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->argc && c->k && c->k->type != DATASET_NONE; i++) {
        const struct dataset_element *e = element(c->k, c->argv[i]);
        n += e != NULL;
        if (e)
            take_out(c->k, (unsigned)(e - c->k->e));
    }
    put_number(c->out, n);
}

static void cmd_rpush(struct command *c)
{
    struct dataset_key *k = make(c->s, c->name, DATASET_LIST);
    for (size_t i = 0; i < c->argc; i++)
        (void)append(k, c->argv[i]);
    put_number(c->out, k->n);
}

static void cmd_lpop(struct command *c)
{
    c->out->kind = c->k ? DATASET_TEXT : DATASET_NIL;
    if (!c->k)
        return;
    memcpy(c->out->scratch, c->k->e[0].sub, DATASET_SUB_MAX);
    c->out->text = span_of(c->out->scratch, c->k->e[0].nsub);
    take_out(c->k, 0);
}

/* LLEN and ZCARD. */
static void cmd_count(struct command *c)
{
    put_number(c->out, c->k ? c->k->n : 0);
}

/* The whole list: 0 -1 is all that the script asks for. */
static void cmd_lrange(struct command *c)
{
    c->out->kind = DATASET_ARRAY;
    for (unsigned i = 0; c->k && i < c->k->n; i++)
        put_item(c->out, false, sub_of(&c->k->e[i]));
}

static double number_of(struct span s)
{
    char text[40];
    size_t n = s.n < sizeof text - 1 ? s.n : sizeof text - 1;
    memcpy(text, s.p, n);
    text[n] = '\0';
    return strtod(text, NULL);
}

static void cmd_zadd(struct command *c)
{
    size_t added = 0;
    struct dataset_key *k = make(c->s, c->name, DATASET_ZSET);
    for (size_t i = 0; i + 1 < c->argc; i += 2) {
        struct dataset_element *e = element(k, c->argv[i + 1]);
        added += e == NULL;
        if (!e)
            e = append(k, c->argv[i + 1]);
        e->score = number_of(c->argv[i]);
    }
    put_number(c->out, added);
}

static int by_score(const void *a, const void *b)
{
    const struct dataset_element *x = *(const struct dataset_element *const *)a;
    const struct dataset_element *y = *(const struct dataset_element *const *)b;
    if (x->score < y->score || x->score > y->score)
        return x->score < y->score ? -1 : 1;
    return memcmp(x->sub, y->sub, sizeof x->sub);
}

/* key -inf (MAX LIMIT 0 COUNT */
static void cmd_zrangebyscore(struct command *c)
{
    const struct dataset_element *found[DATASET_ELEMENTS];
    size_t n = 0;
    double below = number_of(span_skip(c->argv[1], 1));
    size_t most = (size_t)number_of(c->argv[4]);
    for (unsigned i = 0; c->k && i < c->k->n; i++)
        if (c->k->e[i].score < below)
            found[n++] = &c->k->e[i];
    qsort(found, n, sizeof *found, by_score);
    c->out->kind = DATASET_ARRAY;
    for (size_t i = 0; i < n && i < most; i++)
        put_item(c->out, false, sub_of(found[i]));
}

#define WORD(literal)                                                                              \
    {                                                                                              \
        literal, sizeof(literal) - 1                                                               \
    }

static const struct {
    struct span name;
    enum dataset_type type; /* that its key must have; DATASET_NONE: any, or none is named */
    size_t min, pairs;      /* arguments after the first; pairs: 2 where they come in pairs */
    void (*run)(struct command *);
} commands[] = {
    {WORD("HMGET"), DATASET_HASH, 1, 1, cmd_hmget},
    {WORD("HGET"), DATASET_HASH, 1, 1, cmd_hget},
    {WORD("HSET"), DATASET_HASH, 2, 2, cmd_hset},
    {WORD("HDEL"), DATASET_HASH, 1, 1, cmd_remove},
    {WORD("HSCAN"), DATASET_HASH, 5, 1, cmd_hscan},
    {WORD("TIME"), DATASET_NONE, 0, 1, cmd_time},
    {WORD("INFO"), DATASET_NONE, 0, 1, cmd_info},
    {WORD("EXISTS"), DATASET_NONE, 0, 1, cmd_exists},
    {WORD("DEL"), DATASET_NONE, 0, 1, cmd_del},
    {WORD("RPUSH"), DATASET_LIST, 1, 1, cmd_rpush},
    {WORD("LPOP"), DATASET_LIST, 0, 1, cmd_lpop},
    {WORD("LLEN"), DATASET_LIST, 0, 1, cmd_count},
    {WORD("LRANGE"), DATASET_LIST, 2, 1, cmd_lrange},
    {WORD("ZADD"), DATASET_ZSET, 2, 2, cmd_zadd},
    {WORD("ZREM"), DATASET_ZSET, 1, 1, cmd_remove},
    {WORD("ZCARD"), DATASET_ZSET, 0, 1, cmd_count},
    {WORD("ZRANGEBYSCORE"), DATASET_ZSET, 5, 1, cmd_zrangebyscore},
};

bool dataset_command(struct dataset *s, size_t argc, const struct span *argv,
                     struct dataset_reply *out)
{
    out->n = 0;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (!span_eq(argv[0], commands[i].name))
            continue;
        struct command c = {.s = s, .out = out};
        if (argc > 1) {
            c.name = argv[1];
            c.k = find(s, argv[1]);
            c.argc = argc - 2;
            c.argv = argv + 2;
        }
        if (c.argc < commands[i].min || c.argc % commands[i].pairs != 0)
            return false;
        if (c.k && commands[i].type != DATASET_NONE && c.k->type != commands[i].type) {
            out->kind = DATASET_ERROR;
            out->text = SPAN("WRONGTYPE Operation against a key holding the wrong kind of value");
            return true;
        }
        commands[i].run(&c);
        return true;
    }
    return false;
}
