#include "conf/option.h"

#include "base/dec.h"
#include "conf/address.h"
#include "conf/conf.h"
#include "conf/text.h"

#include <assert.h>
#include <limits.h>

#define MS       INT64_C(1000)
#define SECOND   (1000 * MS)
#define DAY      (86400 * SECOND)
#define YEAR2000 INT64_C(946684800000) /* Unix ms */

#define TOP(name)        .path = name, .group = NULL, .key = name
#define IN(group_, key_) .path = group_ "." key_, .group = group_, .key = key_
#define FIELD(name)      .offset = offsetof(struct conf, name)

#define URL_FORMS                                                                                  \
    "redis://HOST:PORT/DB, redis+unix:///PATH, redis+sentinel://HOST:PORT,.../MASTER, "            \
    "sqlite:///PATH or static:0..32767"
#define GRAPHIC "printable ASCII without spaces"
#define ID_ROW                                                                                     \
    .type = CONF_TYPE_LIST, .def = "", .max = 64, .ok = id_ok, .what = "a number, 0..4294967294"
#define ADDRESS_ROW                                                                                \
    .type = CONF_TYPE_LIST, .max = 64, .ok = conf_address_valid, .what = CONF_ADDRESS_LISTEN_FORMS
#define UPSTREAM_ROW                                                                               \
    .type = CONF_TYPE_STRING, .def = "", .max = 512, .ok = upstream_ok,                            \
    .what = CONF_ADDRESS_FORMS ", or \"\""

static const char *const ping_names[] = {"here", "there", NULL};
#define USER_ROW                                                                                   \
    .type = CONF_TYPE_STRING, .def = "", .max = 128, .ok = conf_text_graphic,                      \
    .what = "at most 128 bytes of " GRAPHIC
#define PASSWORD_ROW .type = CONF_TYPE_STRING, .def = "", .max = PATH_MAX - 1, .what = "a path"

static const char *const overflow_names[] = {"wait", "borrow", NULL};
static const char *const rollback_names[] = {"rotate", "hold", NULL};
static const char *const on_stop_names[] = {"return", "keep", NULL};
static const char *const level_names[] = {"error", "warn", "info", "debug", NULL};
static const char *const format_names[] = {"text", "json", NULL};

static bool id_ok(struct span s)
{
    int64_t v;
    return dec_canonical_i64(s, &v) && v >= 0 && v < UINT32_MAX;
}

static bool is_pool_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
}

/* NAME or *.NAME, without a port. A dot parts two labels: the final one is taken off the names that
 * requests come for, so that one here would never match. */
static bool host_ok(struct span s)
{
    char before = '.';
    if (span_starts(s, SPAN("*.")))
        s = span_skip(s, 2);
    for (size_t i = 0; i < s.n; i++) {
        if (!is_pool_char(s.p[i]) || (s.p[i] == '.' && before == '.'))
            return false;
        before = s.p[i];
    }
    return before != '.' && s.n <= 253;
}

static bool pool_ok(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!is_pool_char(s.p[i]))
            return false;
    return true;
}

/* The rest is for conf_judges to say. */
static bool sequence_ok(struct span s)
{
    return s.n >= 1 && s.n <= 400 && s.p[0] != '-';
}

static bool name_ok(struct span s)
{
    return s.n >= 1 && s.n <= 200 && conf_text_graphic(s);
}

/* Whether it has a scheme: which there are, and all that follows, is for conf_judges to say. */
static bool url_ok(struct span s)
{
    struct span rest = s, scheme = span_cut(&rest, ':');
    return scheme.n > 0 && rest.p;
}

/* Whom to serve, and to take any free port, is asked of listeners: here it would mean nothing. */
static bool upstream_ok(struct span s)
{
    struct conf_address a;
    return s.n == 0 || (conf_address_parse(s, &a) && !a.own_auth && (a.is_unix || a.port != 0));
}

const struct conf_option conf_options[CONF_OPTIONS] = {
    [CONF_LISTEN_MEMCACHED] = {IN("listen", "memcached"), FIELD(listen_memcached), ADDRESS_ROW,
                               .def = "tcp://127.0.0.1:11212",
                               .help = "addresses for the memcached protocols"},
    [CONF_LISTEN_REDIS] = {IN("listen", "redis"), FIELD(listen_redis), ADDRESS_ROW,
                           .def = "tcp://127.0.0.1:6380",
                           .help = "addresses for the Redis protocol"},
    [CONF_LISTEN_HTTP] = {IN("listen", "http"), FIELD(listen_http), ADDRESS_ROW,
                          .def = "tcp://127.0.0.1:9464",
                          .help = "addresses for the status page, /metrics, /livez, /readyz and "
                                  "/v1; [] switches HTTP off"},
    [CONF_LISTEN_SOCKET_MODE] = {IN("listen", "socket_mode"), FIELD(listen_socket_mode),
                                 .type = CONF_TYPE_MODE, .def = "0660", .max = 0777,
                                 .help = "permissions of UNIX sockets"},
    [CONF_LISTEN_BUSY_POLL] = {IN("listen", "busy_poll"), FIELD(listen_busy_poll_us),
                               .type = CONF_TYPE_DURATION, .def = "0s", .max = SECOND / 1000,
                               .help = "after a reply, look for the next request for so long "
                                       "before sleeping: latency for processor time; 0s never"},

    [CONF_LISTEN_ALLOW_UNPROTECTED] =
        {IN("listen", "allow_unprotected"), FIELD(listen_allow_unprotected), .type = CONF_TYPE_BOOL,
         .def = "false", .help = "let others than this host in without auth.mode required"},
    [CONF_LISTEN_HTTP_HOSTS] = {IN("listen", "http_hosts"), FIELD(listen_http_hosts),
                                .type = CONF_TYPE_LIST, .def = "", .max = 64, .ok = host_ok,
                                .what = "a host name, or *. and the end of one",
                                .help = "names that HTTP requests may come for, beside addresses, "
                                        "localhost, names without a dot, this host's and *.svc"},

    [CONF_AUTH_MODE] = {IN("auth", "mode"), FIELD(auth_mode), .type = CONF_TYPE_ENUM, .def = "off",
                        .names = conf_auth_names,
                        .help = "whom listeners serve: everybody, everybody with any password, or "
                                "users; an address may end in ?auth=MODE"},
    [CONF_AUTH_USERS_FILE] = {IN("auth", "users_file"), FIELD(auth_users_file),
                              .type = CONF_TYPE_STRING, .def = "", .max = PATH_MAX - 1,
                              .what = "a path",
                              .help = "file of users, lines of NAME:HASH and what that user may, "
                                      "see the man page; read again by SIGHUP"},
    [CONF_AUTH_ALLOW_UIDS] = {IN("auth", "allow_uids"), FIELD(auth_allow_uids), ID_ROW,
                              .help =
                                  "who may connect to UNIX sockets, by user number; [] anybody"},
    [CONF_AUTH_ALLOW_GIDS] = {IN("auth", "allow_gids"), FIELD(auth_allow_gids), ID_ROW,
                              .help = "the same by group number: one of the two must fit"},

    [CONF_UPSTREAM_MEMCACHED] = {IN("upstream", "memcached"), FIELD(upstream_memcached),
                                 UPSTREAM_ROW,
                                 .help = "memcached that other keys go to; \"\" for none"},
    [CONF_UPSTREAM_MEMCACHED_USER] = {IN("upstream", "memcached_user"),
                                      FIELD(upstream_memcached_user), USER_ROW,
                                      .help = "user to log in as there"},
    [CONF_UPSTREAM_MEMCACHED_PASSWORD_FILE] =
        {IN("upstream", "memcached_password_file"), FIELD(upstream_memcached_password_file),
         PASSWORD_ROW, .help = "file with its password; read again by SIGHUP; \"\": no login"},
    [CONF_UPSTREAM_REDIS] = {IN("upstream", "redis"), FIELD(upstream_redis), UPSTREAM_ROW,
                             .help = "Redis that other keys go to; \"\" for none"},
    [CONF_UPSTREAM_REDIS_USER] = {IN("upstream", "redis_user"), FIELD(upstream_redis_user),
                                  USER_ROW,
                                  .help = "user to log in as there; \"\" for the default one"},
    [CONF_UPSTREAM_REDIS_PASSWORD_FILE] =
        {IN("upstream", "redis_password_file"), FIELD(upstream_redis_password_file), PASSWORD_ROW,
         .help = "file with its password; read again by SIGHUP; \"\": no login"},
    [CONF_UPSTREAM_TIMEOUT] = {IN("upstream", "timeout"), FIELD(upstream_timeout_us),
                               .type = CONF_TYPE_DURATION, .def = "5s", .min = 10 * MS,
                               .max = 3600 * SECOND,
                               .help = "longest wait for a connection, and for each reply but "
                                       "those of blocking commands"},
    [CONF_UPSTREAM_BUFFER] = {IN("upstream", "buffer"), FIELD(upstream_buffer),
                              .type = CONF_TYPE_SIZE, .def = "256KiB", .min = 64 << 10,
                              .max = 64 << 20,
                              .help = "most that is kept of what one side sends and the other "
                                      "does not take, per connection"},
    [CONF_UPSTREAM_CONNECTIONS] = {IN("upstream", "connections"), FIELD(upstream_connections),
                                   .type = CONF_TYPE_INT, .def = "1000", .min = 1, .max = 1000000,
                                   .help = "most connections to each server that clients have of "
                                           "their own; less than the server allows"},
    [CONF_UPSTREAM_PING] = {IN("upstream", "ping"), FIELD(upstream_ping), .type = CONF_TYPE_ENUM,
                            .def = "here", .names = ping_names,
                            .help =
                                "who answers PING of Redis clients: sidflake, so that IDs go on "
                                "while the upstream is away, or the upstream"},

    [CONF_IDS_PREFIX] = {IN("ids", "prefix"), FIELD(ids_prefix), .type = CONF_TYPE_STRING,
                         .def = "id:", .max = 50, .ok = conf_text_graphic,
                         .what = "at most 50 bytes of " GRAPHIC,
                         .help = "keys that begin so are IDs; \"\" makes every key one"},
    [CONF_IDS_NAMES] = {IN("ids", "names"), FIELD(ids_names), .type = CONF_TYPE_LIST, .def = "",
                        .max = 1024, .ok = name_ok, .what = "1..200 bytes of " GRAPHIC,
                        .help = "the names that are IDs, others are a miss; [] accepts any"},
    [CONF_IDS_OVERFLOW] = {IN("ids", "overflow"), FIELD(ids_overflow), .type = CONF_TYPE_ENUM,
                           .def = "wait", .names = overflow_names,
                           .help = "once all IDs of a millisecond are given out: wait for the next "
                                   "one, or borrow its IDs"},

    [CONF_SEQUENCES_PREFIX] = {IN("sequences", "prefix"), FIELD(sequences_prefix),
                               .type = CONF_TYPE_STRING, .def = "seq:", .max = 50,
                               .ok = conf_text_graphic, .what = "at most 50 bytes of " GRAPHIC,
                               .help = "keys that begin so are numbers of sequences; \"\": there "
                                       "are none"},
    [CONF_SEQUENCES_NUMBERS_PREFIX] = {IN("sequences", "numbers_prefix"),
                                       FIELD(sequences_numbers_prefix), .type = CONF_TYPE_STRING,
                                       .def = "no:", .max = 50, .ok = conf_text_graphic,
                                       .what = "at most 50 bytes of " GRAPHIC,
                                       .help = "keys that begin so are numbers of sequences as "
                                               "their templates write them; \"\": there are none"},
    [CONF_SEQUENCES_CACHE_LASTS] = {IN("sequences", "cache_lasts"), FIELD(sequences_cache_lasts_us),
                                    .type = CONF_TYPE_DURATION, .def = "1m", .min = SECOND,
                                    .max = DAY,
                                    .help = "for so long numbers are held at the present rate, "
                                            "and so the coordinator may be away"},
    [CONF_SEQUENCES_CACHE_MAX] = {IN("sequences", "cache_max"), FIELD(sequences_cache_max),
                                  .type = CONF_TYPE_INT, .def = "1000000", .min = 1, .max = 1000000,
                                  .help = "most numbers of one block, and so most that are lost "
                                          "at once"},
    [CONF_SEQUENCES_COUNTERS] = {IN("sequences", "counters"), FIELD(sequences_counters),
                                 .type = CONF_TYPE_INT, .def = "1024", .min = 1, .max = 65536,
                                 .help = "sequences, subs and periods whose numbers are held at "
                                         "once"},
    [CONF_SEQUENCES_DEFINE] = {IN("sequences", "define"), FIELD(sequences_define),
                               .type = CONF_TYPE_LIST, .def = "", .max = 1024, .ok = sequence_ok,
                               .what = "NAME, which begins with no '-' there, and options as of "
                                       "sidflakectl seq create, at most 400 bytes",
                               .help = "sequences that are made where they are missing: NAME "
                                       "[--start 1] [--max-rate R] ..."},

    [CONF_COORDINATOR_URL] = {IN("coordinator", "url"), FIELD(coordinator_url),
                              .type = CONF_TYPE_STRING, .def = "sqlite:///var/lib/sidflake/pool.db",
                              .min = 1, .max = 1024, .ok = url_ok, .what = URL_FORMS,
                              .help = "who hands out workerIds"},
    [CONF_COORDINATOR_PASSWORD_FILE] = {IN("coordinator", "password_file"),
                                        FIELD(coordinator_password_file), .type = CONF_TYPE_STRING,
                                        .def = "", .max = PATH_MAX - 1, .what = "a path",
                                        .help = "file with the coordinator's password, instead of "
                                                "one in the URL; read again for each "
                                                "connection"},
    [CONF_COORDINATOR_POOL] = {IN("coordinator", "pool"), FIELD(coordinator_pool),
                               .type = CONF_TYPE_STRING, .def = "default", .min = 1, .max = 64,
                               .ok = pool_ok, .what = "1..64 letters, digits, '_', '.' or '-'",
                               .help = "pool of workerIds to take from"},
    [CONF_COORDINATOR_AUTO_INIT] = {IN("coordinator", "auto_init"), FIELD(coordinator_auto_init),
                                    .type = CONF_TYPE_BOOL, .def = "false",
                                    .help = "create a missing pool; SQLite only"},
    [CONF_COORDINATOR_STATIC_UNSAFE] = {IN("coordinator", "static_unsafe"),
                                        FIELD(coordinator_static_unsafe), .type = CONF_TYPE_BOOL,
                                        .def = "false",
                                        .help = "static:N without a usable state_dir: a clock that "
                                                "steps back over a restart repeats IDs"},
    [CONF_COORDINATOR_TIMEOUT] = {IN("coordinator", "timeout"), FIELD(coordinator_timeout_us),
                                  .type = CONF_TYPE_DURATION, .def = "1s", .min = 10 * MS,
                                  .max = 60 * SECOND,
                                  .help = "longest wait for a connection, and for each answer"},

    [CONF_WORKERS_ACTIVE] = {IN("workers", "active"), FIELD(workers_active), .type = CONF_TYPE_INT,
                             .def = "1", .min = 1, .max = 16,
                             .help = "workerIds issued from at once: 1024 IDs/ms each"},
    [CONF_WORKERS_SPARE] = {IN("workers", "spare"), FIELD(workers_spare), .type = CONF_TYPE_INT,
                            .def = "1", .max = 4,
                            .help = "workerIds held ready for a clock that steps back"},

    [CONF_LEASE_RENEW_EVERY] = {IN("lease", "renew_every"), FIELD(lease_renew_every_us),
                                .type = CONF_TYPE_DURATION, .def = "20s", .min = SECOND,
                                .max = 3600 * SECOND,
                                .help = "time between renewals, give or take 20 %; at most 5s "
                                        "while a tenure is young"},
    [CONF_LEASE_ON_STOP] = {IN("lease", "on_stop"), FIELD(lease_on_stop), .type = CONF_TYPE_ENUM,
                            .def = "return", .names = on_stop_names,
                            .help = "return the workerIds, or keep them for the next start"},

    [CONF_CLOCK_WAIT_BELOW] = {IN("clock", "wait_below"), FIELD(clock_wait_below_us),
                               .type = CONF_TYPE_DURATION, .def = "15ms", .max = SECOND,
                               .help = "a clock that steps back by less is waited for; by more, "
                                       "the workerId is changed"},
    [CONF_CLOCK_ON_ROLLBACK] = {IN("clock", "on_rollback"), FIELD(clock_on_rollback),
                                .type = CONF_TYPE_ENUM, .def = "rotate", .names = rollback_names,
                                .help = "when the clock steps back: rotate to another workerId, or "
                                        "hold the latest time, so that IDs strictly increase"},

    [CONF_EPOCH] = {TOP("epoch"), FIELD(epoch_ms), .type = CONF_TYPE_TIME, .def = "",
                    .min = YEAR2000,
                    .help = "time 0 of the IDs, in RFC 3339; \"\" takes the pool's"},
    [CONF_LAYOUT] = {TOP("layout"), FIELD(layout), .type = CONF_TYPE_STRING, .def = "", .max = 95,
                     .what = "a layout",
                     .help = "bits of the IDs, such as \"twitter\" or \"time:41 worker:10 "
                             "sequence:12\"; \"\" takes the pool's"},
    [CONF_STATE_DIR] = {TOP("state_dir"), FIELD(state_dir), .type = CONF_TYPE_STRING,
                        .def = "/var/lib/sidflake", .min = 1, .max = PATH_MAX - 32,
                        .what = "a non-empty path",
                        .help = "directory of the state page, one per sidecar"},

    [CONF_LIMITS_CONNECTIONS] = {IN("limits", "connections"), FIELD(limits_connections),
                                 .type = CONF_TYPE_INT, .def = "4096", .min = 1, .max = 1000000,
                                 .help = "memcached and Redis connections at once"},
    [CONF_LIMITS_HTTP_CONNECTIONS] = {IN("limits", "http_connections"),
                                      FIELD(limits_http_connections), .type = CONF_TYPE_INT,
                                      .def = "64", .min = 1, .max = 65536,
                                      .help = "HTTP connections at once; one more takes the place "
                                              "of the one silent longest"},
    [CONF_LIMITS_MEMORY] = {IN("limits", "memory"), FIELD(limits_memory), .type = CONF_TYPE_SIZE,
                            .def = "32MiB", .min = 4 << 20, .max = (int64_t)2047 << 20,
                            .help = "bytes kept for all connections; above, those that keep most "
                                    "are closed"},
    [CONF_LIMITS_LOGIN_TIMEOUT] = {IN("limits", "login_timeout"), FIELD(limits_login_timeout_us),
                                   .type = CONF_TYPE_DURATION, .def = "10s", .max = 3600 * SECOND,
                                   .help = "time from connecting to a login where users are "
                                           "required; 0s any"},
    [CONF_LIMITS_REQUEST_TIMEOUT] = {IN("limits", "request_timeout"),
                                     FIELD(limits_request_timeout_us), .type = CONF_TYPE_DURATION,
                                     .def = "30s", .max = 30 * DAY,
                                     .help = "a request begun that is not whole after so long "
                                             "is given up, and its connection closed; 0s never"},
    [CONF_LIMITS_IDLE_TIMEOUT] = {IN("limits", "idle_timeout"), FIELD(limits_idle_timeout_us),
                                  .type = CONF_TYPE_DURATION, .def = "0s", .max = 30 * DAY,
                                  .help = "a connection on which nothing has moved for so long is "
                                          "closed, unless blocked or subscribed; 0s never"},
    [CONF_LIMITS_MAX_WAIT] = {IN("limits", "max_wait"), FIELD(limits_max_wait_us),
                              .type = CONF_TYPE_DURATION, .def = "100ms", .max = 60 * SECOND,
                              .help = "longest a request waits for the clock or for a workerId"},
    [CONF_LIMITS_BATCH] = {IN("limits", "batch"), FIELD(limits_batch), .type = CONF_TYPE_INT,
                           .def = "1024", .min = 1, .max = 8192,
                           .help = "most IDs that one command can ask for by a number"},

    [CONF_LOG_LEVEL] = {IN("log", "level"), FIELD(log_level), .type = CONF_TYPE_ENUM, .def = "info",
                        .names = level_names, .help = "least severe lines logged"},
    [CONF_LOG_FORMAT] = {IN("log", "format"), FIELD(log_format), .type = CONF_TYPE_ENUM,
                         .def = "text", .names = format_names, .help = "plain lines or JSON lines"},
};

static_assert(CONF_OPTIONS <= CONF_OPTIONS_MAX, "conf_diff tells its callers how many there are");

const struct conf_option *conf_option_find(struct span path)
{
    for (size_t i = 0; i < CONF_OPTIONS; i++)
        if (span_eq(path, span_str(conf_options[i].path)))
            return &conf_options[i];
    return NULL;
}

char *conf_option_env(char out[CONF_OPTION_ENV_MAX], const struct conf_option *o)
{
    size_t n = sizeof "SIDFLAKE_" - 1;
    memcpy(out, "SIDFLAKE_", n);
    for (const char *p = o->path; *p && n < CONF_OPTION_ENV_MAX - 1; p++)
        out[n++] = *p == '.' ? '_' : (char)(*p >= 'a' && *p <= 'z' ? *p - ('a' - 'A') : *p);
    out[n] = '\0';
    return out;
}

const struct conf_option *conf_option_find_env(struct span name)
{
    char env[CONF_OPTION_ENV_MAX];
    for (size_t i = 0; i < CONF_OPTIONS; i++)
        if (span_eq(name, span_str(conf_option_env(env, &conf_options[i]))))
            return &conf_options[i];
    return NULL;
}

bool conf_option_in(const struct conf_option *o, const char *group)
{
    return group ? o->group && strcmp(o->group, group) == 0 : !o->group;
}

bool conf_option_opens(const struct conf_option *o)
{
    return o->group && (o == conf_options || !conf_option_in(o - 1, o->group));
}
