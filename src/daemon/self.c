#include "daemon/self.h"

#include "base/clock.h"
#include "base/timefmt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ASCII that stands in JSON as it is. */
static bool is_plain(char c)
{
    return c >= ' ' && c <= '~' && c != '"' && c != '\\';
}

void self_describe(struct self *s)
{
    char host[sizeof s->host] = "?", since[TIMEFMT_MAX];
    const char *pod = getenv("POD_NAME");
    (void)gethostname(host, sizeof host - 1);
    for (char *c = host; *c; c++)
        if (!is_plain(*c))
            *c = '?';
    bool plain = pod && strlen(pod) < sizeof s->host;
    for (const char *c = pod; plain && *c; c++)
        plain = is_plain(*c);
    (void)snprintf(s->host, sizeof s->host, "%s", plain && pod[0] ? pod : host);
    (void)snprintf(
        s->who, sizeof s->who,
        "{\"host\":\"%s\",\"pod\":\"%s\",\"pid\":%ld,\"version\":\"%s\",\"since\":\"%s\"}", host,
        plain ? pod : "", (long)getpid(), SIDFLAKE_VERSION,
        timefmt_rfc3339(since, clock_wall_ms(clock_system())));
}
