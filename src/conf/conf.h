/*
 * The configuration: what the operator has decided, checked and in plain C.
 *
 *   defaults < FILE (YAML) < environment SIDFLAKE_… < --set PATH=VALUE
 *
 * Invariants
 *   - A struct conf that was loaded has passed every check: its users look at values, not at forms.
 *   - No globals: a reload fills a second struct conf and compares.
 *   - Strings and lists belong to the struct conf; none of them is NULL, an empty list apart.
 *   - A failed call leaves no memory behind and names the place of the mistake:
 *     FILE:LINE:COLUMN, "environment SIDFLAKE_…" or "--set …".
 *   - Passwords in URLs are never written, neither by conf_dump nor into errors and warnings.
 *
 * conf/sidflake.yaml says what the options mean; the table in option.c is where they are defined.
 */
#ifndef SIDFLAKE_CONF_CONF_H
#define SIDFLAKE_CONF_CONF_H

#include "base/err.h"
#include "base/log.h"
#include "base/passfile.h"
#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CONF_FILE_MAX    (1u << 20) /* bytes of a configuration file */
#define CONF_ERRORS_MAX  64u        /* that are told at once */
#define CONF_OPTIONS_MAX 64u        /* more than there are options */

/* Bytes of all ids.names as pages escape them, each '"' and '\' two: /metrics and /v1/status, which
 * have to fit the room for a reply, name them all. Without such bytes there are never more. */
#define CONF_NAMES_BYTES_MAX (1024u * 200u)

/* epoch_ms of a configuration that leaves the epoch to the pool. */
#define CONF_EPOCH_OF_POOL INT64_MIN

struct conf_list {
    char **item; /* n strings; NULL if n is 0 */
    size_t n;
};

enum conf_on_stop {
    CONF_ON_STOP_RETURN, /* give the workerId back */
    CONF_ON_STOP_KEEP    /* keep it for the next start */
};

/* What becomes of a request when all IDs of the unit of time are used up. */
enum conf_overflow {
    CONF_OVERFLOW_WAIT,  /* it waits for the next one */
    CONF_OVERFLOW_BORROW /* its ID is of the next one */
};

/* What becomes of a clock that steps back. */
enum conf_rollback {
    CONF_ROLLBACK_ROTATE, /* another workerId begins at it */
    CONF_ROLLBACK_HOLD    /* IDs go on in the latest time */
};

/* Whom a listener serves. */
enum conf_auth {
    CONF_AUTH_OFF,        /* whoever connects */
    CONF_AUTH_ACCEPT_ANY, /* the same, and any password is right */
    CONF_AUTH_REQUIRED    /* users of auth.users_file */
};

/* Who answers PING where Redis has an upstream. */
enum conf_ping {
    CONF_PING_HERE,
    CONF_PING_THERE /* the upstream */
};

/* Each field is named after its option's path, with the unit at the end. */
struct conf {
    struct conf_list listen_memcached; /* addresses as address.h reads them, 0..64 */
    struct conf_list listen_redis;     /* the same */
    struct conf_list listen_http;      /* the same; empty: no HTTP */
    unsigned listen_socket_mode;       /* permission bits of UNIX sockets, 0..0777 */
    int64_t listen_busy_poll_us;       /* 0..1 ms; 0: never */
    bool listen_allow_unprotected;     /* listen where others can reach us without required users */
    struct conf_list listen_http_hosts; /* 0..64 names, NAME or *.NAME */

    enum conf_auth auth_mode;         /* of listeners whose address says nothing of its own */
    char *auth_users_file;            /* path, or "" */
    struct conf_list auth_allow_uids; /* 0..64 numbers: clients of UNIX sockets; both empty: any */
    struct conf_list auth_allow_gids; /* the same */

    char *upstream_memcached;               /* an address as address.h reads it; "": none */
    char *upstream_memcached_user;          /* 0..128 bytes of printable ASCII without spaces */
    char *upstream_memcached_password_file; /* path, or "" */
    char *upstream_redis;                   /* the same as for memcached */
    char *upstream_redis_user;
    char *upstream_redis_password_file;
    int64_t upstream_timeout_us;   /* 10 ms..1 h */
    unsigned upstream_buffer;      /* bytes, 64 KiB..64 MiB */
    unsigned upstream_connections; /* of clients' own, 1..1000000 */
    enum conf_ping upstream_ping;

    char *ids_prefix;                /* 0..50 bytes of printable ASCII without spaces */
    struct conf_list ids_names;      /* 0..1024 of 1..200 such bytes; empty: any name */
    enum conf_overflow ids_overflow; /* with static:N the first one, as is … */

    char *sequences_prefix;            /* as ids_prefix, and another; "": there are none */
    char *sequences_numbers_prefix;    /* likewise, of what their templates write */
    int64_t sequences_cache_lasts_us;  /* 1 s..1 day */
    unsigned sequences_cache_max;      /* numbers, 1..1000000 */
    unsigned sequences_counters;       /* 1..65536 */
    struct conf_list sequences_define; /* 0..1024 lines that conf_judges.sequence takes */

    char *coordinator_url;           /* scheme known, the rest is for the driver to read */
    char *coordinator_password_file; /* path, or "" */
    char *coordinator_pool;          /* 1..64 of [A-Za-z0-9_.-] */
    bool coordinator_auto_init;      /* only with SQLite */
    bool coordinator_static_unsafe;  /* static:N may run without a usable state_dir */
    int64_t coordinator_timeout_us;  /* 10 ms..60 s */

    unsigned workers_active; /* 1..16 */
    unsigned workers_spare;  /* 0..4 */

    int64_t lease_renew_every_us; /* 1 s..1 h */
    enum conf_on_stop lease_on_stop;

    int64_t clock_wait_below_us;          /* 0..1 s */
    enum conf_rollback clock_on_rollback; /* … this */

    int64_t epoch_ms; /* Unix ms, 2000-01-01..now, or CONF_EPOCH_OF_POOL */
    char *layout;     /* as layout_parse reads it, or "": the pool's */
    char *state_dir;  /* path, not "" */

    unsigned limits_connections;       /* 1..1000000 */
    unsigned limits_http_connections;  /* 1..65536 */
    unsigned limits_memory;            /* bytes, 4..2048 MiB */
    int64_t limits_login_timeout_us;   /* 0..1 h; 0: never */
    int64_t limits_request_timeout_us; /* 0..30 days; 0: never */
    int64_t limits_idle_timeout_us;    /* 0..30 days; 0: never */
    int64_t limits_max_wait_us;        /* 0..60 s */
    unsigned limits_batch;             /* 1..8192 */

    enum log_level log_level;
    enum log_format log_format;

    struct conf_list warnings; /* harmless oddities, one line each, for the caller to report */
};

/*
 * Fills *c from the defaults, the file, the environment and the sets. What it held before is
 * overwritten, not freed.
 *
 *   file   path of a YAML file of at most CONF_FILE_MAX bytes, or NULL for none
 *   sets   nsets strings "PATH=VALUE"; the later wins
 *   envp   "NAME=VALUE" strings ended by NULL, as environ; may be NULL
 *
 * ERR_IO: the file cannot be read. ERR_INVALID, ERR_RANGE: it, a variable or a set is wrong. In
 * both cases *c is empty, as after conf_clear. *e is the first that is wrong; errors, which the
 * caller clears, gets all, a line each: those of the file in its order, be it in a value or between
 * values that are right, up to one of syntax; then those of the environment and the sets. After one
 * of syntax nothing is said of what is at odds: what it hides may put that right. Of more than
 * CONF_ERRORS_MAX the rest is one line, which says that there are more. NULL: nobody asks.
 * ERR_NOMEM: errors may have some, and *e says what there was no memory for. On success the caller
 * owns *c.
 *
 * Looks at the system's clock (epoch) and reads the files of passwords and users to see that they
 * can be read.
 */
enum err_code conf_load(struct conf *c, const char *file, char *const *sets, size_t nsets,
                        char *const *envp, struct conf_list *errors, struct err *e) MUST_CHECK;

/* The same by who can't wait, as a loop that serves, or reads again what was read before, of which
 * a pipe has nothing left. ERR_INVALID, too: the file is none, or empty. */
enum err_code conf_reload(struct conf *c, const char *file, char *const *sets, size_t nsets,
                          char *const *envp, struct conf_list *errors, struct err *e) MUST_CHECK;

struct conf_address;

/* What this room does not know of, and cannot judge. Each MAY. Set before the first load. */
struct conf_judges {
    /* A coordinator.url that has a scheme: which there are, and all that follows, the drivers say.
     */
    enum err_code (*url)(struct span url, struct err *e);
    /* An item of sequences.define. */
    enum err_code (*sequence)(struct span item, struct err *e);
    /* The coordinator as all its options have it, each of which is right. */
    enum err_code (*coordinator)(const struct conf *c, struct err *e);
    /* The file at path, of auth.users_file. */
    enum err_code (*users)(const char *path, struct err *e);
    /* Whoever connects there finds the coordinator's store; false: not known. */
    bool (*is_coordinator)(const struct conf *c, const struct conf_address *there);
    /* Whoever looks for the coordinator's store finds what listens here; false: not known. */
    bool (*is_own_coordinator)(const struct conf *c, const struct conf_address *here);
};
extern struct conf_judges conf_judges;

/* The same with the file's content in memory; name stands for the file in errors. */
enum err_code conf_load_text(struct conf *c, const char *name, struct span yaml, char *const *sets,
                             size_t nsets, char *const *envp, struct conf_list *errors,
                             struct err *e) MUST_CHECK;

/* Frees what c holds and leaves it empty. Allowed on a zeroed struct, and twice. */
void conf_clear(struct conf *c);

/* Writes c as YAML that loads to the same values, but for a password in coordinator.url, which is
 * written as ***. Errors are those of out (ferror). */
void conf_dump(const struct conf *c, FILE *out);

/* Writes a heading that begins with '#' and then one line for each option, in the order of the
 * file: path, type, default, range and meaning, with two or more spaces between them and never two
 * within. Errors are those of out. */
void conf_help(FILE *out);

/* Stores in paths the options in which a and b differ ("log.level", static strings), in the order
 * of the file. Returns how many there are. */
size_t conf_diff(const struct conf *a, const struct conf *b, const char *paths[CONF_OPTIONS_MAX]);

/* Reads coordinator.password_file as base/passfile.h says; out is "" where no file is configured.
 * The caller should wipe it after use. */
enum err_code conf_password(const struct conf *c, char out[PASSFILE_MAX + 1],
                            struct err *e) MUST_CHECK;

/* How a command that operators are told names that file: "FILE" where the password stands in the
 * URL, "" where there is none. */
const char *conf_password_word(const struct conf *c);

/* static:N, so that there is no coordinator that knows anything. */
bool conf_is_fixed(const struct conf *c);

/* IDs may be of times above the clock. */
bool conf_is_ahead(const struct conf *c);

/* Spare workerIds to hold: of static:N there is none. */
unsigned conf_spare(const struct conf *c);

/* s in double quotes for a message: escaped, cut to fit, a password in a URL masked. Returns out.
 */
#define CONF_QUOTE_MAX 112
char *conf_quote(char out[CONF_QUOTE_MAX], struct span s);

#endif
