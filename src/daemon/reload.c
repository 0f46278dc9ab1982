#include "daemon/reload.h"

#include "base/log.h"
#include "daemon/behind.h"

#include <string.h>

/* Options that take effect without a restart. */
static bool reloadable(const char *path)
{
    return strncmp(path, "limits.", 7) == 0 || strncmp(path, "log.", 4) == 0 ||
           strcmp(path, "auth.users_file") == 0 || strcmp(path, "lease.on_stop") == 0 ||
           strcmp(path, "listen.busy_poll") == 0 || behind_is_login(path);
}

bool reload_refuses(const struct conf *now, const struct conf *next)
{
    const char *paths[CONF_OPTIONS_MAX];
    size_t n = conf_diff(now, next, paths);
    bool refused = false;
    for (size_t i = 0; i < n; i++) {
        if (!reloadable(paths[i])) {
            log_error("reload refused, nothing changed: this option needs SIGUSR2 or a restart",
                      kv_str("option", paths[i]));
            refused = true;
        }
    }
    return refused;
}
