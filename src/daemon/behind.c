#include "daemon/behind.h"

#include "base/log.h"
#include "conf/protocol_options.h"
#include "net/upstream/upstream.h"
#include "serve/greeting.h"

#include <assert.h>

static_assert(SERVE_PROTOCOLS == CONF_PROTOCOLS, "each protocol has its options");

static const struct conf_protocol *options_of(enum serve_protocol p)
{
    return conf_protocol_find(serve_protocol_name(p));
}

static enum err_code add(struct net *n, struct serve *s, const struct conf *c,
                         enum serve_protocol p, struct err *e)
{
    const char *address = conf_protocol_upstream(c, options_of(p));
    struct upstream_config u = {.address = span_str(address),
                                .timeout_us = c->upstream_timeout_us,
                                .buffer = c->upstream_buffer,
                                .connections = c->upstream_connections};
    if (!*address)
        return ERR_OK;
    log_info("forwarding", kv_str("protocol", serve_protocol_name(p)), kv_str("upstream", address));
    return upstream_new(n, s->services[p], &u, e);
}

enum err_code behind_open(struct net *n, struct serve *s, const struct conf *c,
                          const struct heir *h, struct err *e)
{
    enum err_code r = ERR_OK;
    for (unsigned p = 0; p < SERVE_PROTOCOLS && !r; p++)
        r = add(n, s, c, (enum serve_protocol)p, e);
    if (r)
        return r;
    r = behind_greet(s, c, e);
    for (unsigned tries = 0; r && r != ERR_NOMEM && heir_waits(h, &tries);)
        r = behind_greet(s, c, e);
    return r;
}

/* All files are read before anything is said, so that all are right or nothing is changed. */
enum err_code behind_greet(struct serve *s, const struct conf *c, struct err *e)
{
    char password[SERVE_PROTOCOLS][PASSFILE_MAX + 1];
    enum err_code r = ERR_OK;
    for (unsigned p = 0; p < SERVE_PROTOCOLS && !r; p++)
        r = conf_protocol_password(c, options_of((enum serve_protocol)p), password[p], e);
    for (unsigned p = 0; p < SERVE_PROTOCOLS && !r; p++)
        r = serve_greet(s, (enum serve_protocol)p,
                        conf_protocol_user(c, options_of((enum serve_protocol)p)), password[p], e);
    explicit_bzero(password, sizeof password);
    return r;
}

bool behind_is_login(const char *path)
{
    for (size_t i = 0; i < CONF_PROTOCOLS; i++) {
        const struct conf_protocol *p = &conf_protocols[i];
        if (p->upstream &&
            (strcmp(path, p->user->path) == 0 || strcmp(path, p->password_file->path) == 0))
            return true;
    }
    return false;
}
