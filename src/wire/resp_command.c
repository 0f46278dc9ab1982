#include "wire/resp.h"
#include "wire/resp_commands.h"

#include <string.h>

#define COMMANDS (sizeof commands / sizeof *commands)

static const char *const flag_names[RESP_FLAGS] = {
    "write",      "readonly",         "denyoom",           "admin",
    "pubsub",     "noscript",         "blocking",          "loading",
    "stale",      "skip_monitor",     "skip_slowlog",      "asking",
    "fast",       "no_auth",          "no_multi",          "movablekeys",
    "allow_busy", "no_async_loading", "no_mandatory_keys",
};

const char *resp_flag_name(unsigned i)
{
    return flag_names[i];
}

const struct resp_cmd *resp_commands(size_t *n)
{
    *n = COMMANDS;
    return commands;
}

/* Names as numbers: eight bytes at a time, the first the most significant, so that numbers compare
 * as the bytes do. */
#define NAME_WORDS (sizeof commands->name / 8)

static uint64_t load(const char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return v;
}

/* Lower case in each of eight bytes: 0x20 is added to those from 'A' to 'Z'. Bytes over 0x7f are
 * left alone; sums stay within their byte since the top bits are masked off first. */
static uint64_t lower(uint64_t v)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), high = ones * 0x80;
    uint64_t low7 = v & ~high;
    uint64_t from_a = low7 + ones * (0x80 - 'A'), past_z = low7 + ones * (0x80 - 'Z' - 1);
    return v | (((from_a & ~past_z & ~v & high) >> 7) * 0x20);
}

/* The last command whose first eight bytes are at most word, or the first of all. */
static size_t search(uint64_t word)
{
    size_t from = 0, n = COMMANDS;
    while (n > 1) {
        size_t half = n / 2;
        if (load(commands[from + half].name) <= word)
            from += half;
        n -= half;
    }
    return from;
}

/* A few commands share their first eight bytes; they stand before the one found. */
const struct resp_cmd *resp_lookup(struct span name)
{
    char padded[sizeof commands->name] = "";
    uint64_t word[NAME_WORDS];
    if (name.n == 0 || name.n >= sizeof padded)
        return NULL;
    memcpy(padded, name.p, name.n);
    for (size_t i = 0; i < NAME_WORDS; i++)
        word[i] = lower(load(padded + 8 * i));
    for (size_t at = search(word[0]) + 1; at-- > 0 && load(commands[at].name) == word[0];)
        if (commands[at].name_n == name.n && load(commands[at].name + 8) == word[1] &&
            load(commands[at].name + 16) == word[2])
            return &commands[at];
    return NULL;
}

bool resp_keys(const struct resp_cmd *cmd, uint32_t argc, uint32_t *from, uint32_t *to,
               uint32_t *step)
{
    int64_t last = cmd->last < 0 ? (int64_t)argc + cmd->last : cmd->last;
    if (cmd->first <= 0 || cmd->first >= (int64_t)argc || last < cmd->first)
        return false;
    *from = (uint32_t)cmd->first;
    *to = (uint32_t)(last < (int64_t)argc ? last : (int64_t)argc - 1);
    *step = cmd->step > 0 ? (uint32_t)cmd->step : 1;
    return true;
}
