#include "serve/serve.h"

const char *serve_protocol_name(enum serve_protocol p)
{
    static const char *const names[SERVE_PROTOCOLS] = {"memcached", "redis", "http"};
    return names[p];
}

const char *serve_result_name(enum serve_result r)
{
    static const char *const names[SERVE_RESULTS] = {"ok",      "miss",   "refused",
                                                     "invalid", "failed", "passed"};
    return names[r];
}
