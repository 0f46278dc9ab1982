#include "base/log.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/dec.h"
#include "base/events.h"
#include "base/json.h"
#include "base/timefmt.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE_BYTES LOG_LINE_MAX /* at most PIPE_BUF, so that a pipe takes a line whole */
#define GRACE_MS   100 /* for a slow reader, as journald may be; once none came, lines are lost */
#define TAIL_BYTES 16  /* kept free for the longest ending: `","cut":true}` and a newline */

/* Atomic because a reload changes them while the keeper may be writing a line. */
static atomic_uint conf_level = LOG_LVL_INFO;
static atomic_uint conf_format = LOG_FMT_TEXT;
static atomic_bool conf_journal = false;

/* Of one line at a time, since two could find the same room in a pipe. */
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;
static uint64_t lost; /* since one was written */
static int lost_why;  /* errno */

static const char *const level_names[] = {"error", "warn", "info", "debug"};
static const char syslog_priority[] = {'3', '4', '6', '7'};

/* A line in the making. Once cut, nothing more is put but its ending. */
struct line {
    struct buf b;
    bool json;
    bool cut;
};

const char *log_level_name(unsigned level)
{
    return level < sizeof level_names / sizeof *level_names ? level_names[level] : NULL;
}

void log_setup(enum log_level level, enum log_format format)
{
    atomic_store(&conf_level, level);
    atomic_store(&conf_format, format);
    atomic_store(&conf_journal, getenv("JOURNAL_STREAM") != NULL);
}

/* Whether n bytes fit and leave room for the ending. */
static bool line_fits(struct line *l, size_t n)
{
    l->cut = l->cut || l->b.cap - l->b.n < n + TAIL_BYTES;
    return !l->cut;
}

/* Each character whole or not at all, so that a line is never cut within an escape. */
static void put_escaped(struct line *l, struct span s)
{
    for (size_t i = 0; i < s.n && line_fits(l, JSON_CHAR_MAX); i++)
        json_put_char(&l->b, s.p[i]);
}

static bool is_bare(struct span s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c <= ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '=')
            return false;
    }
    return s.n > 0;
}

static void put_string(struct line *l, struct span s)
{
    if (!l->json && is_bare(s)) {
        put_escaped(l, s);
        return;
    }
    buf_put_char(&l->b, '"');
    put_escaped(l, s);
    buf_put_char(&l->b, '"');
}

static void put_value(struct line *l, const struct log_kv *kv)
{
    switch (kv->kind) {
    case LOG_KV_STR:
        put_string(l, kv->s);
        break;
    case LOG_KV_I64:
        buf_put_i64(&l->b, kv->i);
        break;
    case LOG_KV_U64:
        buf_put_u64(&l->b, kv->u);
        break;
    }
}

static void put_pairs(struct line *l, const struct log_kv *kv)
{
    for (; kv->key; kv++) {
        struct span key = span_str(kv->key);
        if (!line_fits(l, sizeof ",\"\":" - 1 + key.n + 1 + DEC_U64_MAX))
            return;
        buf_put_str(&l->b, l->json ? ",\"" : " ");
        buf_put_span(&l->b, key);
        buf_put_str(&l->b, l->json ? "\":" : "=");
        put_value(l, kv);
    }
}

static void put_now(struct line *l)
{
    char now[TIMEFMT_MAX];
    buf_put_str(&l->b, timefmt_rfc3339(now, clock_wall_ms(clock_system())));
}

static void put_text_head(struct line *l, enum log_level level, const char *msg, bool timed)
{
    if (atomic_load(&conf_journal)) {
        buf_put_char(&l->b, '<');
        buf_put_char(&l->b, syslog_priority[level]);
        buf_put_char(&l->b, '>');
    } else {
        if (timed) {
            put_now(l);
            buf_put_char(&l->b, ' ');
        }
        buf_put_str(&l->b, level_names[level]);
        buf_put(&l->b, "  ", strlen(level_names[level]) == 4 ? 2 : 1);
    }
    put_escaped(l, span_str(msg));
}

static void put_json_head(struct line *l, enum log_level level, const char *msg, bool timed)
{
    BUF_PUT_LIT(&l->b, "{\"");
    if (timed) {
        BUF_PUT_LIT(&l->b, "time\":\"");
        put_now(l);
        BUF_PUT_LIT(&l->b, "\",\"");
    }
    BUF_PUT_LIT(&l->b, "level\":\"");
    buf_put_str(&l->b, level_names[level]);
    BUF_PUT_LIT(&l->b, "\",\"msg\":\"");
    put_escaped(l, span_str(msg));
    buf_put_char(&l->b, '"');
}

/* The pairs alone, without the space before the first. */
static void remember(enum log_level level, const char *msg, const struct log_kv *kv)
{
    char mem[EVENT_TEXT_MAX + TAIL_BYTES];
    struct line l = {.json = false};
    buf_init(&l.b, mem, sizeof mem);
    put_pairs(&l, kv);
    if (l.cut)
        BUF_PUT_LIT(&l.b, " ...");
    events_add(level, clock_wall_ms(clock_system()), clock_mono_ms(clock_system()), msg,
               span_of(mem + 1, l.b.n ? l.b.n - 1 : 0));
}

/* Into mem of LINE_BYTES. */
static struct span compose(char *mem, enum log_level level, const char *msg,
                           const struct log_kv *kv, bool timed)
{
    struct line l = {.json = atomic_load(&conf_format) == LOG_FMT_JSON};
    buf_init(&l.b, mem, LINE_BYTES);
    if (l.json)
        put_json_head(&l, level, msg, timed);
    else
        put_text_head(&l, level, msg, timed);
    put_pairs(&l, kv);
    if (l.cut)
        buf_put_str(&l.b, l.json ? ",\"cut\":true" : " cut=true");
    buf_put_str(&l.b, l.json ? "}\n" : "\n");
    return buf_span(&l.b);
}

/* A terminal that has room may have it for less than a line, and another process may be faster to
 * fill a pipe. So it is opened once more, as one that does not wait: O_NONBLOCK on what is there
 * would be others', too. -1: a file, a socket, or not ours to open. */
static int open_apart(void)
{
    struct stat st;
    if (fstat(STDERR_FILENO, &st) < 0 || !(S_ISCHR(st.st_mode) || S_ISFIFO(st.st_mode)))
        return -1;
    return open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/* Does not wait for who reads the log: the loop writes it. false: errno says why. */
static bool write_out(struct span line, int grace_ms)
{
    struct pollfd pfd = {.fd = STDERR_FILENO, .events = POLLOUT};
    errno = EAGAIN;
    if (poll(&pfd, 1, grace_ms) <= 0)
        return false;
    int fd = open_apart();
    errno = EAGAIN;
    bool all = write(fd < 0 ? STDERR_FILENO : fd, line.p, line.n) == (ssize_t)line.n;
    if (fd >= 0)
        (void)close(fd);
    return all;
}

/* Says first how many were lost before it. */
static bool catch_up(void)
{
    char mem[LINE_BYTES];
    if (lost > 0 && !write_out(compose(mem, LOG_LVL_WARN, "lines of the log were lost",
                                       LOG_KVS(kv_u64("number", lost)), true),
                               0))
        return false;
    lost = 0;
    return true;
}

void log_write(enum log_level level, const char *msg, const struct log_kv *kv)
{
    if (level <= LOG_LVL_INFO)
        remember(level, msg, kv);
    if (level > atomic_load(&conf_level))
        return;
    char mem[LINE_BYTES];
    struct span line = compose(mem, level, msg, kv, true);
    (void)pthread_mutex_lock(&writing);
    if (!catch_up() || !write_out(line, GRACE_MS)) {
        lost++;
        lost_why = errno;
    }
    (void)pthread_mutex_unlock(&writing);
}

uint64_t log_lost(int *why)
{
    (void)pthread_mutex_lock(&writing);
    uint64_t n = lost;
    *why = lost_why;
    (void)pthread_mutex_unlock(&writing);
    return n;
}

void log_prepare(struct log_last *last, const char *msg, const struct log_kv *kv)
{
    last->n = compose(last->line, LOG_LVL_ERROR, msg, kv, false).n;
}

void log_last_words(const struct log_last *last)
{
    (void)write_out(span_of(last->line, last->n), 0);
}

bool log_limit_pass(struct log_limit *l, int64_t mono_ms, int64_t every_ms, uint64_t *held)
{
    if (mono_ms < l->next_ms) {
        l->held++;
        return false;
    }
    if (held)
        *held = l->held;
    l->held = 0;
    l->next_ms = mono_ms + every_ms;
    return true;
}
