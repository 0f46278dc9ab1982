/*
 * The log: one line per change of state, to stderr, in one write(2) each.
 *
 *   text   2026-01-02T03:04:05.678Z info  worker claimed worker=7 low=1 high=2
 *   json   {"time":"2026-…Z","level":"info","msg":"worker claimed","worker":7,"low":1,"high":2}
 *
 * Under journald (JOURNAL_STREAM is set) a line begins with <N> instead of a time.
 *
 * Invariants
 *   - Values from outside are escaped: a line is one line, whatever a client sent.
 *   - A line has at most 2,048 bytes; a longer one is cut between two characters, ends in
 *     cut=true, and is still well-formed JSON where it was to be.
 *   - Any thread may log; lines do not mix.
 *   - Nobody waits for who reads the log, be it a pipe or a terminal that is stopped: what it does
 *     not take is lost, and counted; how much is the next line that it takes.
 *   - A msg is a literal, the same each time, so that it can be searched for; what varies is a key.
 *   - The latest lines at info and above are kept, too, for the status page (base/events.h).
 */
#ifndef SIDFLAKE_BASE_LOG_H
#define SIDFLAKE_BASE_LOG_H

#include "base/span.h"

#include <stdbool.h>
#include <stdint.h>

enum log_level {
    LOG_LVL_ERROR,
    LOG_LVL_WARN,
    LOG_LVL_INFO,
    LOG_LVL_DEBUG /* may be asked for; nothing is logged at it at present */
};
enum log_format {
    LOG_FMT_TEXT,
    LOG_FMT_JSON
};

struct log_kv {
    const char *key; /* NULL ends the list */
    enum {
        LOG_KV_STR,
        LOG_KV_I64,
        LOG_KV_U64
    } kind;
    struct span s;
    int64_t i;
    uint64_t u;
};

static inline struct log_kv kv_span(const char *key, struct span v)
{
    return (struct log_kv){.key = key, .kind = LOG_KV_STR, .s = v};
}

static inline struct log_kv kv_str(const char *key, const char *v)
{
    return kv_span(key, span_str(v));
}

static inline struct log_kv kv_i64(const char *key, int64_t v)
{
    return (struct log_kv){.key = key, .kind = LOG_KV_I64, .i = v};
}

static inline struct log_kv kv_u64(const char *key, uint64_t v)
{
    return (struct log_kv){.key = key, .kind = LOG_KV_U64, .u = v};
}

/* At start and on reload. Other threads may be logging meanwhile. */
void log_setup(enum log_level level, enum log_format format);

/* kv ends with a NULL key. Never fails: a line that cannot be written is lost. */
void log_write(enum log_level level, const char *msg, const struct log_kv *kv);

/* How many lines were lost since one was written; *why is the errno of the last, EAGAIN where
 * nobody reads. */
uint64_t log_lost(int *why);

#define LOG_KVS(...)        ((const struct log_kv[]){__VA_ARGS__ __VA_OPT__(, ){.key = NULL}})
#define log_error(msg, ...) log_write(LOG_LVL_ERROR, msg, LOG_KVS(__VA_ARGS__))
#define log_warn(msg, ...)  log_write(LOG_LVL_WARN, msg, LOG_KVS(__VA_ARGS__))
#define log_info(msg, ...)  log_write(LOG_LVL_INFO, msg, LOG_KVS(__VA_ARGS__))

#define LOG_LINE_MAX 2048 /* bytes */

/* A line at error made beforehand, without the time, in the format of the moment: for a signal's
 * handler, which may write it but not make it. */
struct log_last {
    char line[LOG_LINE_MAX];
    size_t n;
};

void log_prepare(struct log_last *last, const char *msg, const struct log_kv *kv);

/* Writes it; safe in a signal's handler. */
void log_last_words(const struct log_last *last);

/* Lets a line through at most once in every_ms; counts what it held back. Zero-initialised. */
struct log_limit {
    int64_t next_ms; /* monotonic ms from which a line may pass */
    uint64_t held;   /* lines held back since the last that passed */
};

/* true: write it now; *held (may be NULL) is how many were held back before it. */
bool log_limit_pass(struct log_limit *l, int64_t mono_ms, int64_t every_ms, uint64_t *held);

/* "error", "warn", "info", "debug" by number; NULL past the last. */
const char *log_level_name(unsigned level);

#endif
