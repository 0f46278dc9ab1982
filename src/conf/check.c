#include "conf/address.h"
#include "conf/load.h"
#include "conf/protocol_options.h"

/* ---- addresses --------------------------------------------------------------------------------
 */

/* An address to listen at. */
struct place {
    const struct conf_protocol *of;
    size_t item;
};

#define BEFORE_ALL ((struct place){conf_protocols, SIZE_MAX})

static const char *text_of(const struct conf *c, struct place at)
{
    return conf_protocol_listen(c, at.of)->item[at.item];
}

static enum conf_option_id id_of(struct place at)
{
    return conf_option_id(at.of->listen);
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
    const struct conf_protocol *end = conf_protocols + CONF_PROTOCOLS;
    while (at->of < end && at->item >= conf_protocol_listen(c, at->of)->n)
        *at = (struct place){at->of + 1, 0};
    return at->of < end;
}

static enum err_code doubled(struct conf_load *l, struct place first, struct place again)
{
    char quoted[CONF_QUOTE_MAX];
    /* A default cannot be at fault while somebody chose the other one. */
    if (l->source[id_of(first)] > l->source[id_of(again)]) {
        struct place swap = first;
        first = again;
        again = swap;
    }
    (void)err_set(l->e, ERR_INVALID, "expected each address once, found %s again, also in %s",
                  conf_quote(quoted, span_str(text_of(l->conf, again))), first.of->listen->path);
    return conf_load_blame(l, id_of(again), again.item, ERR_INVALID);
}

static enum err_code check_addresses(struct conf_load *l)
{
    enum err_code rc = ERR_OK;
    for (struct place b = BEFORE_ALL; !rc && step(l->conf, &b);) {
        struct place a = BEFORE_ALL;
        bool found = false;
        while (!found && step(l->conf, &a) && (a.of != b.of || a.item != b.item))
            found = same(l->conf, a, b);
        if (found)
            rc = conf_load_note(l, doubled(l, a, b));
    }
    return rc;
}

/* One request would make a link to us, which makes a link to us, until no slot is left. */
static enum err_code check_loop(struct conf_load *l, const struct conf_protocol *of)
{
    char quoted[CONF_QUOTE_MAX];
    struct conf_address to, at;
    const char *upstream = conf_protocol_upstream(l->conf, of);
    if (!*upstream || !conf_address_parse(span_str(upstream), &to))
        return ERR_OK;
    for (struct place p = BEFORE_ALL; step(l->conf, &p);) {
        if (!conf_address_parse(span_str(text_of(l->conf, p)), &at) ||
            !conf_address_reaches(&to, &at))
            continue;
        (void)err_set(l->e, ERR_INVALID,
                      "expected the address of another server, found %s, where sidflake itself "
                      "listens: see %s",
                      conf_quote(quoted, span_str(upstream)), p.of->listen->path);
        return conf_load_blame(l, conf_option_id(of->upstream), CONF_WHOLE_VALUE, ERR_INVALID);
    }
    return ERR_OK;
}

static enum err_code check_loops(struct conf_load *l)
{
    enum err_code rc = ERR_OK;
    for (size_t i = 0; i < CONF_PROTOCOLS && !rc; i++)
        rc = conf_load_note(l, check_loop(l, &conf_protocols[i]));
    return rc;
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

/* A key is an ID or a number of a sequence. */
static enum err_code check_prefixes(struct conf_load *l)
{
    char quoted[CONF_QUOTE_MAX];
    const char *prefix = l->conf->sequences_prefix;
    if (!*prefix || strcmp(prefix, l->conf->ids_prefix) != 0)
        return ERR_OK;
    enum conf_option_id of = CONF_SEQUENCES_PREFIX, other = CONF_IDS_PREFIX;
    if (l->source[other] > l->source[of]) { /* a default is not at fault */
        of = CONF_IDS_PREFIX;
        other = CONF_SEQUENCES_PREFIX;
    }
    (void)err_set(l->e, ERR_INVALID, "expected another prefix than that of %s for %s, found %s",
                  conf_options[other].path, conf_options[of].path,
                  conf_quote(quoted, span_str(prefix)));
    return conf_load_blame(l, of, CONF_WHOLE_VALUE, ERR_INVALID);
}

/* ---- who may connect --------------------------------------------------------------------------
 */

static enum err_code check_protected(struct conf_load *l)
{
    char quoted[CONF_QUOTE_MAX];
    enum err_code rc = ERR_OK;
    for (struct place at = BEFORE_ALL; !rc && step(l->conf, &at);) {
        struct conf_address a;
        const char *text = text_of(l->conf, at);
        if (at.of->guards_itself || !conf_address_parse(span_str(text), &a) ||
            conf_address_local(&a) || conf_address_auth(&a, l->conf) == CONF_AUTH_REQUIRED ||
            l->conf->listen_allow_unprotected)
            continue;
        (void)err_set(l->e, ERR_INVALID,
                      "expected auth.mode required, or listen.allow_unprotected true, for an "
                      "address that other hosts can reach, found %s",
                      conf_quote(quoted, span_str(text)));
        rc = conf_load_note(l, conf_load_blame(l, id_of(at), at.item, ERR_INVALID));
    }
    return rc;
}

/* Users are required somewhere, and there are none. */
static enum err_code check_users(struct conf_load *l)
{
    for (struct place at = BEFORE_ALL; step(l->conf, &at);) {
        struct conf_address a;
        if (!conf_address_parse(span_str(text_of(l->conf, at)), &a) ||
            conf_address_auth(&a, l->conf) != CONF_AUTH_REQUIRED || l->conf->auth_users_file[0])
            continue;
        (void)err_set(l->e, ERR_INVALID,
                      "expected auth.users_file with auth mode required, found none");
        return a.own_auth ? conf_load_blame(l, id_of(at), at.item, ERR_INVALID)
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

static enum err_code unusable(struct conf_load *l, enum conf_option_id id, enum err_code rc)
{
    return conf_load_note(l, conf_load_blame(l, id, CONF_WHOLE_VALUE, rc));
}

static enum err_code check_passwords(struct conf_load *l)
{
    char password[PASSFILE_MAX + 1];
    enum err_code rc = conf_password(l->conf, password, l->e);
    if (rc)
        rc = unusable(l, CONF_COORDINATOR_PASSWORD_FILE, rc);
    for (size_t i = 0; i < CONF_PROTOCOLS && !rc; i++) {
        const struct conf_protocol *p = &conf_protocols[i];
        rc = conf_protocol_password(l->conf, p, password, l->e);
        if (rc)
            rc = unusable(l, conf_option_id(p->password_file), rc);
    }
    explicit_bzero(password, sizeof password);
    return rc;
}

static enum err_code missing(struct conf_load *l, const struct conf_option *what,
                             const struct conf_option *with)
{
    (void)err_set(l->e, ERR_INVALID, "expected %s with %s, found none", what->path, with->path);
    return conf_load_blame(l, conf_option_id(with), CONF_WHOLE_VALUE, ERR_INVALID);
}

/* A user comes with a password, and where both are words a password with a user. */
static enum err_code check_logins(struct conf_load *l)
{
    enum err_code rc = ERR_OK;
    for (size_t i = 0; i < CONF_PROTOCOLS && !rc; i++) {
        const struct conf_protocol *p = &conf_protocols[i];
        bool user = conf_protocol_user(l->conf, p)[0] != '\0';
        bool password = conf_protocol_password_file(l->conf, p)[0] != '\0';
        if (user && !password)
            rc = conf_load_note(l, missing(l, p->password_file, p->user));
        if (password && !user && p->words)
            rc = conf_load_note(l, missing(l, p->user, p->password_file));
    }
    return rc;
}

/* ---- all --------------------------------------------------------------------------------------
 */

static bool stands_before(struct conf_mark a, struct conf_mark b)
{
    if (a.line == 0 || b.line == 0)
        return a.line > b.line;
    return a.line < b.line || (a.line == b.line && a.column < b.column);
}

/* The checks go over the options by what they mean; who reads of them goes over the file. */
static void put_in_order(struct conf_load *l)
{
    char **text = l->errors->item;
    for (size_t i = 1; i < l->errors->n; i++)
        for (size_t k = i; k > 0 && stands_before(l->told[k].at, l->told[k - 1].at); k--) {
            struct conf_told told = l->told[k];
            char *moved = text[k];
            l->told[k] = l->told[k - 1];
            text[k] = text[k - 1];
            l->told[k - 1] = told;
            text[k - 1] = moved;
        }
    (void)err_set(&l->first, l->told[0].code, "%s", text[0]);
}

enum err_code conf_check(struct conf_load *l)
{
    static enum err_code (*const checks[])(struct conf_load *) = {
        check_addresses, check_loops,     check_names,  check_prefixes, check_protected,
        check_users,     check_auto_init, check_logins, check_passwords};
    enum err_code rc = ERR_OK;
    for (size_t i = 0; i < sizeof checks / sizeof *checks && !rc; i++)
        rc = conf_load_note(l, checks[i](l));
    if (!rc && l->errors && l->errors->n > 0)
        put_in_order(l);
    return rc;
}
