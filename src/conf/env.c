#include "conf/list.h"
#include "conf/load.h"
#include "conf/near.h"
#include "conf/value.h"

#include <stdio.h>

#define PREFIX "SIDFLAKE_"

static bool ends_with(struct span s, struct span tail)
{
    return s.n >= tail.n && span_eq(span_skip(s, s.n - tail.n), tail);
}

static bool holds(struct span s, struct span part)
{
    return s.n && memmem(s.p, s.n, part.p, part.n);
}

/* A Service named sidflake or sidflake-… puts these into every pod of its namespace (Kubernetes,
 * "Environment variables" of Services): …_SERVICE_HOST, …_SERVICE_PORT[_NAME], …_PORT,
 * …_PORT_N_TCP[_ADDR|_PORT|_PROTO]. */
static bool is_service_link(struct span name)
{
    return ends_with(name, SPAN("_SERVICE_HOST")) || ends_with(name, SPAN("_PORT")) ||
           holds(name, SPAN("_SERVICE_PORT_")) ||
           (holds(name, SPAN("_PORT_")) &&
            (holds(name, SPAN("_TCP")) || holds(name, SPAN("_UDP")) || holds(name, SPAN("_SCTP"))));
}

static enum err_code warn_unknown(struct conf_load *l, struct span name)
{
    char quoted[CONF_QUOTE_MAX], near[CONF_NEAR_MAX], text[CONF_QUOTE_MAX + CONF_NEAR_MAX + 80];
    (void)snprintf(text, sizeof text, "environment: %s names no option and is ignored%s",
                   conf_quote(quoted, name), conf_near_env(near, name));
    return conf_list_add(&l->conf->warnings, span_str(text), l->e);
}

static enum err_code apply(struct conf_load *l, struct span name, struct span value, bool *seen)
{
    const struct conf_option *o = conf_option_find_env(name);
    if (!o)
        return is_service_link(name) ? ERR_OK : warn_unknown(l, name);
    enum conf_option_id id = conf_option_id(o);
    if (seen[id]) /* as getenv: of two, the first */
        return ERR_OK;
    seen[id] = true;
    l->source[id] = CONF_SOURCE_ENV;
    enum err_code rc = conf_value_set(o, l->conf, value, l->e);
    l->wrong[id] |= rc != ERR_OK;
    return rc ? conf_load_blame(l, id, CONF_WHOLE_VALUE, rc) : ERR_OK;
}

enum err_code conf_env_apply(struct conf_load *l, char *const *envp)
{
    bool seen[CONF_OPTIONS] = {false};
    enum err_code rc = ERR_OK;
    for (; *envp && !rc; envp++) {
        struct span value = span_str(*envp);
        struct span name = span_cut(&value, '=');
        if (span_starts(name, SPAN(PREFIX)) && value.p)
            rc = conf_load_note(l, apply(l, name, value, seen));
    }
    return rc;
}
