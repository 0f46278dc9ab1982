#include "base/events.h"

#include <pthread.h>

static struct {
    pthread_mutex_t lock;
    uint64_t latest;
    struct event ring[EVENTS_MAX]; /* by serial */
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool repeats(const struct event *e, enum log_level level, const char *msg, struct span text)
{
    return e->times > 0 && e->level == level && strcmp(e->msg, msg) == 0 &&
           span_eq(span_str(e->text), text);
}

void events_add(enum log_level level, int64_t wall_ms, int64_t mono_ms, const char *msg,
                struct span text)
{
    if (text.n >= EVENT_TEXT_MAX)
        text.n = EVENT_TEXT_MAX - 1;
    (void)pthread_mutex_lock(&kept.lock);
    struct event *e = &kept.ring[kept.latest % EVENTS_MAX];
    if (!repeats(e, level, msg, text)) {
        e = &kept.ring[++kept.latest % EVENTS_MAX];
        *e = (struct event){.first_ms = wall_ms, .msg = msg, .level = level};
        if (text.n > 0)
            memcpy(e->text, text.p, text.n);
    }
    e->last_ms = wall_ms;
    e->last_mono_ms = mono_ms;
    e->times++;
    (void)pthread_mutex_unlock(&kept.lock);
}

uint64_t events_latest(void)
{
    (void)pthread_mutex_lock(&kept.lock);
    uint64_t latest = kept.latest;
    (void)pthread_mutex_unlock(&kept.lock);
    return latest;
}

bool events_get(uint64_t serial, struct event *out)
{
    (void)pthread_mutex_lock(&kept.lock);
    bool there = serial > 0 && serial <= kept.latest && kept.latest - serial < EVENTS_MAX;
    if (there)
        *out = kept.ring[serial % EVENTS_MAX];
    (void)pthread_mutex_unlock(&kept.lock);
    return there;
}
