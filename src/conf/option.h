/*
 * The table of options: the one place where an option is defined.
 *
 * It gives the file's schema, the defaults, --help-config, --dump-config, --set, the environment
 * and the checks of single values. A new option is a field in struct conf, an id here and a row in
 * option.c (and its line in conf/sidflake.yaml, which a test asks for).
 *
 * Invariants
 *   - A path is KEY or GROUP.KEY; the rows of a group stand together.
 *   - The field at `offset` has the C type that its conf_type names.
 *   - A row's default is a value that passes the row's own check.
 */
#ifndef SIDFLAKE_CONF_OPTION_H
#define SIDFLAKE_CONF_OPTION_H

#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum conf_option_id {
    CONF_LISTEN_MEMCACHED,
    CONF_LISTEN_REDIS,
    CONF_LISTEN_HTTP,
    CONF_LISTEN_SOCKET_MODE,
    CONF_LISTEN_BUSY_POLL,
    CONF_LISTEN_ALLOW_UNPROTECTED,
    CONF_LISTEN_HTTP_HOSTS,
    CONF_AUTH_MODE,
    CONF_AUTH_USERS_FILE,
    CONF_AUTH_ALLOW_UIDS,
    CONF_AUTH_ALLOW_GIDS,
    CONF_UPSTREAM_MEMCACHED,
    CONF_UPSTREAM_MEMCACHED_USER,
    CONF_UPSTREAM_MEMCACHED_PASSWORD_FILE,
    CONF_UPSTREAM_REDIS,
    CONF_UPSTREAM_REDIS_USER,
    CONF_UPSTREAM_REDIS_PASSWORD_FILE,
    CONF_UPSTREAM_TIMEOUT,
    CONF_UPSTREAM_BUFFER,
    CONF_UPSTREAM_CONNECTIONS,
    CONF_UPSTREAM_PING,
    CONF_IDS_PREFIX,
    CONF_IDS_NAMES,
    CONF_IDS_OVERFLOW,
    CONF_SEQUENCES_PREFIX,
    CONF_SEQUENCES_NUMBERS_PREFIX,
    CONF_SEQUENCES_CACHE_LASTS,
    CONF_SEQUENCES_CACHE_MAX,
    CONF_SEQUENCES_COUNTERS,
    CONF_SEQUENCES_DEFINE,
    CONF_COORDINATOR_URL,
    CONF_COORDINATOR_PASSWORD_FILE,
    CONF_COORDINATOR_POOL,
    CONF_COORDINATOR_AUTO_INIT,
    CONF_COORDINATOR_STATIC_UNSAFE,
    CONF_COORDINATOR_TIMEOUT,
    CONF_WORKERS_ACTIVE,
    CONF_WORKERS_SPARE,
    CONF_LEASE_RENEW_EVERY,
    CONF_LEASE_ON_STOP,
    CONF_CLOCK_WAIT_BELOW,
    CONF_CLOCK_ON_ROLLBACK,
    CONF_EPOCH,
    CONF_LAYOUT,
    CONF_STATE_DIR,
    CONF_LIMITS_CONNECTIONS,
    CONF_LIMITS_HTTP_CONNECTIONS,
    CONF_LIMITS_MEMORY,
    CONF_LIMITS_LOGIN_TIMEOUT,
    CONF_LIMITS_REQUEST_TIMEOUT,
    CONF_LIMITS_IDLE_TIMEOUT,
    CONF_LIMITS_MAX_WAIT,
    CONF_LIMITS_BATCH,
    CONF_LOG_LEVEL,
    CONF_LOG_FORMAT,
    CONF_OPTIONS
};

enum conf_type {        /* the C type of the field, and what min and max bound */
    CONF_TYPE_STRING,   /* char *: bytes */
    CONF_TYPE_LIST,     /* struct conf_list: items */
    CONF_TYPE_BOOL,     /* bool: unused */
    CONF_TYPE_INT,      /* unsigned: the value */
    CONF_TYPE_DURATION, /* int64_t: µs */
    CONF_TYPE_SIZE,     /* unsigned: bytes */
    CONF_TYPE_ENUM,     /* an enum, 0..: unused, see names */
    CONF_TYPE_MODE,     /* unsigned: the value */
    CONF_TYPE_TIME,     /* int64_t, Unix ms or CONF_EPOCH_OF_POOL: min; max is now */
    CONF_TYPES
};

struct conf_option {
    const char *path;  /* "limits.batch" */
    const char *group; /* "limits", or NULL at the top level */
    const char *key;   /* "batch" */
    enum conf_type type;
    size_t offset;            /* of the field in struct conf */
    const char *def;          /* the default as text; the items of a list separated by commas */
    int64_t min, max;         /* inclusive; the unit depends on the type */
    const char *const *names; /* enum: the words by number, ended by NULL */
    bool (*ok)(struct span);  /* MAY, strings and items: more than a length to check */
    const char *what;         /* strings and items: the form expected */
    const char *help;         /* the meaning, one line */
};

extern const struct conf_option conf_options[CONF_OPTIONS];

/* By path; NULL where there is none. */
const struct conf_option *conf_option_find(struct span path);

/* By the name of its environment variable ("SIDFLAKE_LIMITS_BATCH"); NULL where there is none. */
const struct conf_option *conf_option_find_env(struct span name);

static inline enum conf_option_id conf_option_id(const struct conf_option *o)
{
    return (enum conf_option_id)(o - conf_options);
}

/* The name of o's variable, with NUL. Returns out. */
#define CONF_OPTION_ENV_MAX 48
char *conf_option_env(char out[CONF_OPTION_ENV_MAX], const struct conf_option *o);

/* The same group, NULL included. */
bool conf_option_in(const struct conf_option *o, const char *group);

/* Whether o is the first row of its group. The top level is no group. */
bool conf_option_opens(const struct conf_option *o);

#endif
