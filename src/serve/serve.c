#include "serve/serve.h"

#include "net/upstream/upstream.h"
#include "serve/watch/process.h"

const char *serve_result_name(enum serve_result r)
{
    static const char *const names[SERVE_RESULTS] = {"ok",     "miss",   "refused", "invalid",
                                                     "failed", "passed", "away"};
    return names[r];
}

void serve_look_behind(const struct serve *s)
{
    for (unsigned i = 0; i < SERVE_PROTOCOLS; i++)
        if (s->services[i] && s->services[i]->upstream)
            upstream_look(s->services[i]);
}

void serve_forget(const struct serve *s)
{
    for (unsigned i = 0; i < SERVE_PROTOCOLS; i++)
        if (s->services[i] && protocol_of((enum serve_protocol)i)->forget)
            protocol_of((enum serve_protocol)i)->forget(s->services[i]);
}

int64_t serve_difference(int64_t a, int64_t b)
{
    int64_t d;
    return __builtin_sub_overflow(a, b, &d) ? PROCESS_UNKNOWN : d;
}
