#include "daemon/guard.h"

#include "base/dec.h"
#include "base/idmap.h"
#include "base/log.h"
#include "conf/protocol_options.h"

#include <sys/resource.h>

void guard_read_ids(const struct conf_list *list, bool groups, struct guard_ids *out)
{
    uint64_t v;
    out->n = 0;
    for (size_t i = 0; i < list->n && out->n < GUARD_IDS; i++) {
        if (!dec_u64(span_str(list->item[i]), &v))
            continue;
        bool known = idmap_tells_here(groups, (uint32_t)v);
        out->id[out->n++] = known ? (uint32_t)v : UINT32_MAX;
        if (!known)
            log_warn("nobody is let in by this number: in this user namespace it stands for "
                     "whoever is not mapped, or for nobody",
                     kv_str("option", groups ? "auth.allow_gids" : "auth.allow_uids"),
                     kv_u64("number", v));
    }
}

static bool has_secrets(const struct conf *c)
{
    bool any = *c->auth_users_file || *conf_password_word(c);
    for (size_t i = 0; i < CONF_PROTOCOLS; i++)
        any |= *conf_protocol_password_file(c, &conf_protocols[i]) != '\0';
    return any;
}

void guard_cores(const struct conf *c)
{
    struct rlimit rl;
    if (!has_secrets(c) || getrlimit(RLIMIT_CORE, &rl) < 0)
        return;
    rl.rlim_cur = 0;
    if (setrlimit(RLIMIT_CORE, &rl) < 0)
        log_warn("core files cannot be switched off");
}
