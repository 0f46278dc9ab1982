#include "conf/address.h"
#include "conf/load.h"

/* ---- addresses --------------------------------------------------------------------------------
 */

struct place {
    enum conf_option_id id;
    size_t item;
};

static const struct conf_list *list_of(const struct conf *c, enum conf_option_id id)
{
    const struct conf_list *lists[] = {[CONF_LISTEN_MEMCACHED] = &c->listen_memcached,
                                       [CONF_LISTEN_REDIS] = &c->listen_redis,
                                       [CONF_LISTEN_HTTP] = &c->listen_http};
    return lists[id];
}

static const char *text_of(const struct conf *c, struct place at)
{
    return list_of(c, at.id)->item[at.item];
}

static bool same(const struct conf *c, struct place a, struct place b)
{
    struct conf_address x, y;
    return conf_address_parse(span_str(text_of(c, a)), &x) &&
           conf_address_parse(span_str(text_of(c, b)), &y) && conf_address_same(&x, &y);
}

/* Steps through the items of all lists of addresses; false after the last. */
static bool step(const struct conf *c, struct place *at)
{
    at->item++;
    while (at->id <= CONF_LISTEN_HTTP && at->item >= list_of(c, at->id)->n)
        *at = (struct place){at->id + 1, 0};
    return at->id <= CONF_LISTEN_HTTP;
}

static enum err_code doubled(struct conf_load *l, struct place first, struct place again)
{
    char quoted[CONF_QUOTE_MAX];
    /* A default cannot be at fault while somebody chose the other one. */
    if (l->source[first.id] > l->source[again.id]) {
        struct place swap = first;
        first = again;
        again = swap;
    }
    (void)err_set(l->e, ERR_INVALID, "expected each address once, found %s again, also in %s",
                  conf_quote(quoted, span_str(text_of(l->conf, again))),
                  conf_options[first.id].path);
    return conf_load_blame(l, again.id, again.item, ERR_INVALID);
}

static enum err_code check_addresses(struct conf_load *l)
{
    for (struct place b = {CONF_LISTEN_MEMCACHED, SIZE_MAX}; step(l->conf, &b);)
        for (struct place a = {CONF_LISTEN_MEMCACHED, SIZE_MAX};
             step(l->conf, &a) && (a.id != b.id || a.item != b.item);)
            if (same(l->conf, a, b))
                return doubled(l, a, b);
    return ERR_OK;
}

/* One request would make a link to us, which makes a link to us, until no slot is left. */
static enum err_code check_loop(struct conf_load *l, enum conf_option_id id, const char *upstream)
{
    char quoted[CONF_QUOTE_MAX];
    struct conf_address to, at;
    if (!*upstream || !conf_address_parse(span_str(upstream), &to))
        return ERR_OK;
    for (struct place p = {CONF_LISTEN_MEMCACHED, SIZE_MAX}; step(l->conf, &p);) {
        if (!conf_address_parse(span_str(text_of(l->conf, p)), &at) ||
            !conf_address_reaches(&to, &at))
            continue;
        (void)err_set(l->e, ERR_INVALID,
                      "expected the address of another server, found %s, where sidflake itself "
                      "listens: see %s",
                      conf_quote(quoted, span_str(upstream)), conf_options[p.id].path);
        return conf_load_blame(l, id, CONF_WHOLE_VALUE, ERR_INVALID);
    }
    return ERR_OK;
}

static enum err_code check_loops(struct conf_load *l)
{
    enum err_code rc = check_loop(l, CONF_UPSTREAM_MEMCACHED, l->conf->upstream_memcached);
    return rc ? rc : check_loop(l, CONF_UPSTREAM_REDIS, l->conf->upstream_redis);
}

/* ---- names ------------------------------------------------------------------------------------
 */

static size_t escaped(const char *text)
{
    size_t n = strlen(text);
    for (; *text; text++)
        n += *text == '"' || *text == '\\';
    return n;
}

static enum err_code check_names(struct conf_load *l)
{
    const struct conf_list *names = &l->conf->ids_names;
    size_t n = 0;
    for (size_t i = 0; i < names->n; i++)
        n += escaped(names->item[i]);
    if (n <= CONF_NAMES_BYTES_MAX)
        return ERR_OK;
    (void)err_set(l->e, ERR_RANGE,
                  "expected at most %u bytes in all names, '\"' and '\\' counted twice, for "
                  "ids.names, found %zu",
                  CONF_NAMES_BYTES_MAX, n);
    return conf_load_blame(l, CONF_IDS_NAMES, CONF_WHOLE_VALUE, ERR_RANGE);
}

/* ---- who may connect --------------------------------------------------------------------------
 */

/* HTTP is not asked: where others can reach it, it gives out no IDs without users (app.c). */
static enum err_code check_protected(struct conf_load *l)
{
    char quoted[CONF_QUOTE_MAX];
    for (struct place at = {CONF_LISTEN_MEMCACHED, SIZE_MAX}; step(l->conf, &at);) {
        struct conf_address a;
        const char *text = text_of(l->conf, at);
        if (at.id == CONF_LISTEN_HTTP || !conf_address_parse(span_str(text), &a) ||
            conf_address_local(&a) || conf_address_auth(&a, l->conf) == CONF_AUTH_REQUIRED ||
            l->conf->listen_allow_unprotected)
            continue;
        (void)err_set(l->e, ERR_INVALID,
                      "expected auth.mode required, or listen.allow_unprotected true, for an "
                      "address that other hosts can reach, found %s",
                      conf_quote(quoted, span_str(text)));
        return conf_load_blame(l, at.id, at.item, ERR_INVALID);
    }
    return ERR_OK;
}

/* Users are required somewhere, and there are none. */
static enum err_code check_users(struct conf_load *l)
{
    for (struct place at = {CONF_LISTEN_MEMCACHED, SIZE_MAX}; step(l->conf, &at);) {
        struct conf_address a;
        if (!conf_address_parse(span_str(text_of(l->conf, at)), &a) ||
            conf_address_auth(&a, l->conf) != CONF_AUTH_REQUIRED || l->conf->auth_users_file[0])
            continue;
        (void)err_set(l->e, ERR_INVALID,
                      "expected auth.users_file with auth mode required, found none");
        return a.own_auth ? conf_load_blame(l, at.id, at.item, ERR_INVALID)
                          : conf_load_blame(l, CONF_AUTH_MODE, CONF_WHOLE_VALUE, ERR_INVALID);
    }
    return ERR_OK;
}

/* ---- coordinator ------------------------------------------------------------------------------
 */

static enum err_code check_auto_init(struct conf_load *l)
{
    char quoted[CONF_QUOTE_MAX];
    struct span url = span_str(l->conf->coordinator_url);
    if (!l->conf->coordinator_auto_init || span_starts(url, SPAN("sqlite:")))
        return ERR_OK;
    (void)err_set(l->e, ERR_INVALID,
                  "expected coordinator.auto_init false, or sqlite:///PATH for coordinator.url, "
                  "found %s",
                  conf_quote(quoted, url));
    return conf_load_blame(l, CONF_COORDINATOR_AUTO_INIT, CONF_WHOLE_VALUE, ERR_INVALID);
}

/* ---- passwords --------------------------------------------------------------------------------
 */

static enum err_code check_passwords(struct conf_load *l)
{
    const struct conf *c = l->conf;
    const struct {
        enum conf_option_id id;
        enum err_code (*read)(const char *, const char *, char *, struct err *);
        const char *path;
    } files[] = {
        {CONF_COORDINATOR_PASSWORD_FILE, conf_secret, c->coordinator_password_file},
        {CONF_UPSTREAM_MEMCACHED_PASSWORD_FILE, conf_secret_word,
         c->upstream_memcached_password_file},
        {CONF_UPSTREAM_REDIS_PASSWORD_FILE, conf_secret, c->upstream_redis_password_file},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char password[PASSFILE_MAX + 1];
        enum err_code rc =
            files[i].read(files[i].path, conf_options[files[i].id].path, password, l->e);
        explicit_bzero(password, sizeof password);
        if (rc)
            return conf_load_blame(l, files[i].id, CONF_WHOLE_VALUE, rc);
    }
    return ERR_OK;
}

/* A user comes with a password, and memcached's password with a user. */
static enum err_code check_logins(struct conf_load *l)
{
    const struct conf *c = l->conf;
    const struct {
        enum conf_option_id given, missing;
        bool wrong;
    } pairs[] = {
        {CONF_UPSTREAM_MEMCACHED_USER, CONF_UPSTREAM_MEMCACHED_PASSWORD_FILE,
         c->upstream_memcached_user[0] && !c->upstream_memcached_password_file[0]},
        {CONF_UPSTREAM_MEMCACHED_PASSWORD_FILE, CONF_UPSTREAM_MEMCACHED_USER,
         c->upstream_memcached_password_file[0] && !c->upstream_memcached_user[0]},
        {CONF_UPSTREAM_REDIS_USER, CONF_UPSTREAM_REDIS_PASSWORD_FILE,
         c->upstream_redis_user[0] && !c->upstream_redis_password_file[0]},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        if (!pairs[i].wrong)
            continue;
        (void)err_set(l->e, ERR_INVALID, "expected %s with %s, found none",
                      conf_options[pairs[i].missing].path, conf_options[pairs[i].given].path);
        return conf_load_blame(l, pairs[i].given, CONF_WHOLE_VALUE, ERR_INVALID);
    }
    return ERR_OK;
}

enum err_code conf_check(struct conf_load *l)
{
    static enum err_code (*const checks[])(struct conf_load *) = {
        check_addresses, check_loops,     check_names,  check_protected,
        check_users,     check_auto_init, check_logins, check_passwords};
    enum err_code rc = ERR_OK;
    for (size_t i = 0; i < sizeof checks / sizeof *checks && !rc; i++)
        rc = conf_load_note(l, checks[i](l));
    return rc;
}
