#include "conf/protocol_options.h"

#define OPTION(id) (&conf_options[CONF_##id])

const struct conf_protocol conf_protocols[CONF_PROTOCOLS] = {
    {.name = "memcached",
     .listen = OPTION(LISTEN_MEMCACHED),
     .upstream = OPTION(UPSTREAM_MEMCACHED),
     .user = OPTION(UPSTREAM_MEMCACHED_USER),
     .password_file = OPTION(UPSTREAM_MEMCACHED_PASSWORD_FILE),
     .words = true},
    {.name = "redis",
     .listen = OPTION(LISTEN_REDIS),
     .upstream = OPTION(UPSTREAM_REDIS),
     .user = OPTION(UPSTREAM_REDIS_USER),
     .password_file = OPTION(UPSTREAM_REDIS_PASSWORD_FILE)},
    {.name = "http",
     .listen = OPTION(LISTEN_HTTP),
     .slots = OPTION(LIMITS_HTTP_CONNECTIONS),
     .guards_itself = true},
};

const struct conf_protocol *conf_protocol_find(const char *name)
{
    for (size_t i = 0; i < CONF_PROTOCOLS; i++)
        if (strcmp(conf_protocols[i].name, name) == 0)
            return &conf_protocols[i];
    return NULL;
}

static const void *field(const struct conf *c, const struct conf_option *o)
{
    return (const char *)c + o->offset;
}

static const char *text(const struct conf *c, const struct conf_option *o)
{
    return o ? *(char *const *)field(c, o) : "";
}

const struct conf_list *conf_protocol_listen(const struct conf *c, const struct conf_protocol *p)
{
    return field(c, p->listen);
}

unsigned conf_protocol_slots(const struct conf *c, const struct conf_protocol *p)
{
    return p->slots ? *(const unsigned *)field(c, p->slots) : 0;
}

const char *conf_protocol_upstream(const struct conf *c, const struct conf_protocol *p)
{
    return text(c, p->upstream);
}

const char *conf_protocol_user(const struct conf *c, const struct conf_protocol *p)
{
    return text(c, p->user);
}

const char *conf_protocol_password_file(const struct conf *c, const struct conf_protocol *p)
{
    return text(c, p->password_file);
}

enum err_code conf_protocol_password(const struct conf *c, const struct conf_protocol *p,
                                     char out[PASSFILE_MAX + 1], struct err *e)
{
    const char *path = text(c, p->password_file);
    out[0] = '\0';
    if (!*path)
        return ERR_OK;
    enum err_code r = passfile_read(path, p->password_file->path, false, out, e);
    size_t n = strlen(out);
    for (size_t i = 0; i < n && !r && p->words; i++)
        if ((unsigned char)out[i] <= ' ')
            r = err_set(e, ERR_INVALID, "expected a password without spaces for %s, found one with",
                        p->password_file->path);
    if (r)
        explicit_bzero(out, n);
    return r;
}

unsigned conf_protocol_upstreams(const struct conf *c)
{
    unsigned n = 0;
    for (size_t i = 0; i < CONF_PROTOCOLS; i++)
        n += *conf_protocol_upstream(c, &conf_protocols[i]) != '\0';
    return n;
}
