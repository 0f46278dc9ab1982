#include "wire/resp_keys.h"

#include "base/dec.h"

enum rule {
    RULE_COUNT,   /* arg `at` counts the keys that follow it */
    RULE_FIXED,   /* arg `at`, behind a subcommand */
    RULE_STREAMS, /* options from arg `at` on; the first half of what follows STREAMS */
    RULE_STORE,   /* likewise; the arg after STORE or STOREDIST */
    RULE_MIGRATE, /* likewise; all that follows KEYS */
};

/* Beside the keys that the table of commands knows of. */
static const struct {
    const char *name;
    uint8_t rule, at;
} rules[] = {
    {"blmpop", RULE_COUNT, 2},      {"bzmpop", RULE_COUNT, 2},
    {"eval", RULE_COUNT, 2},        {"eval_ro", RULE_COUNT, 2},
    {"evalsha", RULE_COUNT, 2},     {"evalsha_ro", RULE_COUNT, 2},
    {"fcall", RULE_COUNT, 2},       {"fcall_ro", RULE_COUNT, 2},
    {"georadius", RULE_STORE, 6},   {"georadiusbymember", RULE_STORE, 5},
    {"lmpop", RULE_COUNT, 1},       {"memory", RULE_FIXED, 2},
    {"migrate", RULE_MIGRATE, 6},   {"object", RULE_FIXED, 2},
    {"sintercard", RULE_COUNT, 1},  {"sort", RULE_STORE, 2},
    {"xgroup", RULE_FIXED, 2},      {"xinfo", RULE_FIXED, 2},
    {"xread", RULE_STREAMS, 1},     {"xreadgroup", RULE_STREAMS, 1},
    {"zdiff", RULE_COUNT, 1},       {"zdiffstore", RULE_COUNT, 2},
    {"zinter", RULE_COUNT, 1},      {"zintercard", RULE_COUNT, 1},
    {"zinterstore", RULE_COUNT, 2}, {"zmpop", RULE_COUNT, 1},
    {"zunion", RULE_COUNT, 1},      {"zunionstore", RULE_COUNT, 2},
};

#define ALL UINT8_MAX

/* The words that may stand from arg `at` on, how many args each takes, and whether those are keys.
 * They are walked one by one as Redis does it: an arg may be called like an option. */
struct option {
    const char *name;
    uint8_t args;
    bool keys;
};

static const struct option streams[] = {
    {"block", 1, false}, {"count", 1, false},    {"group", 2, false},
    {"noack", 0, false}, {"streams", ALL, true}, {NULL, 0, false},
};

/* Of SORT, and of GEORADIUS and its like. */
static const struct option store[] = {
    {"alpha", 0, false},    {"any", 0, false},      {"asc", 0, false},       {"by", 1, false},
    {"count", 1, false},    {"desc", 0, false},     {"get", 1, false},       {"limit", 2, false},
    {"store", 1, true},     {"storedist", 1, true}, {"withcoord", 0, false}, {"withdist", 0, false},
    {"withhash", 0, false}, {NULL, 0, false},
};

static const struct option migrate[] = {
    {"auth", 1, false},  {"auth2", 2, false},   {"copy", 0, false},
    {"keys", ALL, true}, {"replace", 0, false}, {NULL, 0, false},
};

/* The number of the option of that name, or for NULL of the one whose args are keys; the last of
 * them if there are several: Redis does the same. 0: there is none, or a word that is no option. */
static uint32_t find_option(struct resp_req *req, const struct option *options, uint32_t at,
                            const char *name)
{
    struct resp_walk w = resp_walk_from(req, at);
    struct span arg;
    uint32_t found = 0, skip = 0;
    for (uint32_t i = at; i < req->whole && resp_next_arg(&w, &arg); i++) {
        const struct option *o = options;
        if (skip > 0) {
            skip--;
            continue;
        }
        while (o->name && !resp_is_word(arg, o->name))
            o++;
        if (!o->name)
            return 0;
        if (name ? strcmp(o->name, name) == 0 : o->keys)
            found = i;
        skip = o->args;
        if (o->args == ALL)
            break;
    }
    return found;
}

/* false: there is no such key. */
static bool seek(struct resp_req *req, enum rule rule, uint32_t at, struct resp_range *out)
{
    uint32_t last = req->argc - 1, found = 0;
    uint64_t n = 0;
    out->step = 1;
    if (at > last || at >= RESP_ARGV)
        return false;
    if (rule == RULE_COUNT && req->whole > at && dec_u64(req->argv[at], &n) && n > 0 &&
        n <= last - at) {
        *out = (struct resp_range){at + 1, at + (uint32_t)n, 1};
        return true;
    }
    if (rule == RULE_STREAMS)
        found = find_option(req, streams, at, NULL);
    else if (rule == RULE_STORE)
        found = find_option(req, store, at, NULL);
    else if (rule == RULE_MIGRATE)
        found = find_option(req, migrate, at, NULL);
    else if (rule == RULE_FIXED)
        found = at - 1;
    if (found == 0 || found >= last)
        return false;
    out->from = found + 1;
    out->to = rule == RULE_STREAMS   ? found + (last - found) / 2
              : rule == RULE_MIGRATE ? last
                                     : found + 1;
    return out->to >= out->from;
}

unsigned resp_key_ranges(const struct resp_cmd *cmd, struct resp_req *req,
                         struct resp_range out[RESP_RANGES])
{
    unsigned n = resp_keys(cmd, req->argc, &out->from, &out->to, &out->step);
    if (cmd->first > 0 && !(cmd->flags & RESP_F_MOVABLEKEYS))
        return n;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strcmp(rules[i].name, cmd->name) == 0)
            n += seek(req, (enum rule)rules[i].rule, rules[i].at, &out[n]);
    return n;
}

/* The number of keys stands where it was seen. */
static bool is_counted(const struct resp_cmd *cmd, const struct resp_req *req)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strcmp(rules[i].name, cmd->name) == 0)
            return rules[i].rule == RULE_COUNT && req->whole > rules[i].at;
    return false;
}

unsigned resp_rest_ranges(const struct resp_cmd *cmd, struct resp_req *req,
                          struct resp_range out[RESP_RANGES])
{
    if (cmd && (!(cmd->flags & RESP_F_MOVABLEKEYS) || is_counted(cmd, req)))
        return resp_key_ranges(cmd, req, out);
    *out = (struct resp_range){cmd ? req->whole : 1, cmd ? req->argc - 1 : 1, 1};
    return 1;
}

bool resp_blocks(const struct resp_cmd *cmd, struct resp_req *req)
{
    bool reads = strcmp(cmd->name, "xread") == 0 || strcmp(cmd->name, "xreadgroup") == 0;
    if (!(cmd->flags & RESP_F_BLOCKING) || !reads || req->truncated)
        return cmd->flags & RESP_F_BLOCKING;
    return find_option(req, streams, 1, NULL) == 0 || find_option(req, streams, 1, "block") > 0;
}

bool resp_is_key(const struct resp_range *ranges, unsigned n, uint32_t i)
{
    for (unsigned r = 0; r < n; r++)
        if (i >= ranges[r].from && i <= ranges[r].to && (i - ranges[r].from) % ranges[r].step == 0)
            return true;
    return false;
}
