#include "daemon/behind.h"

#include "base/log.h"
#include "net/upstream/upstream.h"
#include "serve/greeting.h"

static enum err_code add(struct net *n, struct serve *s, const struct conf *c, const char *address,
                         enum serve_protocol p, struct err *e)
{
    struct upstream_config u = {.address = span_str(address),
                                .timeout_us = c->upstream_timeout_us,
                                .buffer = c->upstream_buffer,
                                .connections = c->upstream_connections};
    if (!*address)
        return ERR_OK;
    log_info("forwarding", kv_str("protocol", serve_protocol_name(p)), kv_str("upstream", address));
    return upstream_new(n, s->services[p], &u, e);
}

enum err_code behind_open(struct net *n, struct serve *s, const struct conf *c, struct err *e)
{
    enum err_code r = add(n, s, c, c->upstream_memcached, SERVE_MEMCACHED, e);
    if (!r)
        r = add(n, s, c, c->upstream_redis, SERVE_REDIS, e);
    return r ? r : behind_greet(s, c, e);
}

/* All files are read before anything is said, so that all are right or nothing is changed. */
enum err_code behind_greet(struct serve *s, const struct conf *c, struct err *e)
{
    char redis[PASSFILE_MAX + 1], memcached[PASSFILE_MAX + 1] = "";
    enum err_code r =
        conf_secret(c->upstream_redis_password_file, "upstream.redis_password_file", redis, e);
    if (!r)
        r = conf_secret_word(c->upstream_memcached_password_file,
                             "upstream.memcached_password_file", memcached, e);
    if (!r)
        r = serve_greet(s, SERVE_MEMCACHED, c->upstream_memcached_user, memcached, e);
    if (!r)
        r = serve_greet(s, SERVE_REDIS, c->upstream_redis_user, redis, e);
    explicit_bzero(redis, sizeof redis);
    explicit_bzero(memcached, sizeof memcached);
    return r;
}

bool behind_is_login(const char *path)
{
    static const char *const logins[] = {"upstream.memcached_user",
                                         "upstream.memcached_password_file", "upstream.redis_user",
                                         "upstream.redis_password_file"};
    for (size_t i = 0; i < sizeof logins / sizeof *logins; i++)
        if (strcmp(path, logins[i]) == 0)
            return true;
    return false;
}
