#include "conf/address.h"
#include "conf/load.h"
#include "conf/protocol_options.h"
#include "ids/layout.h"

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

static bool is_right(const struct conf_load *l, const struct conf_option *o)
{
    return !o || !l->wrong[conf_option_id(o)];
}

static bool same(const struct conf *c, struct place a, struct place b)
{
    struct conf_address x, y;
    return conf_address_parse(span_str(text_of(c, a)), &x) &&
           conf_address_parse(span_str(text_of(c, b)), &y) && conf_address_same(&x, &y);
}

/* Steps through the items of all lists of addresses that are right; false after the last. */
static bool step(const struct conf_load *l, struct place *at)
{
    at->item++;
    const struct conf_protocol *end = conf_protocols + CONF_PROTOCOLS;
    while (at->of < end &&
           (!is_right(l, at->of->listen) || at->item >= conf_protocol_listen(l->conf, at->of)->n))
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
    for (struct place b = BEFORE_ALL; !rc && step(l, &b);) {
        struct place a = BEFORE_ALL;
        bool found = false;
        while (!found && step(l, &a) && (a.of != b.of || a.item != b.item))
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
    if (!*upstream || !is_right(l, of->upstream) || !conf_address_parse(span_str(upstream), &to))
        return ERR_OK;
    for (struct place p = BEFORE_ALL; step(l, &p);) {
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

/* The prefix of a kind of generator that is there: an option NAME.prefix or NAME.kinds_prefix,
 * which is right. NULL: this option is none. */
static const char *prefix_of(const struct conf_load *l, enum conf_option_id id)
{
    const struct conf_option *o = &conf_options[id];
    size_t n = strlen(o->key), word = sizeof "prefix" - 1;
    if (n < word || strcmp(o->key + n - word, "prefix") != 0 || l->wrong[id])
        return NULL;
    const char *prefix = *(char *const *)(const void *)((const char *)l->conf + o->offset);
    return *prefix ? prefix : NULL;
}

static enum err_code shared(struct conf_load *l, enum conf_option_id of, enum conf_option_id other)
{
    char quoted[CONF_QUOTE_MAX];
    (void)err_set(l->e, ERR_INVALID, "expected another prefix than that of %s for %s, found %s",
                  conf_options[other].path, conf_options[of].path,
                  conf_quote(quoted, span_str(prefix_of(l, of))));
    return conf_load_note(l, conf_load_blame(l, of, CONF_WHOLE_VALUE, ERR_INVALID));
}

/* A key is of one kind. */
static enum err_code check_prefixes(struct conf_load *l)
{
    enum err_code rc = ERR_OK;
    for (enum conf_option_id b = 0; b < CONF_OPTIONS && !rc; b++) {
        for (enum conf_option_id a = 0; a < b && !rc && prefix_of(l, b); a++) {
            if (!prefix_of(l, a) || strcmp(prefix_of(l, a), prefix_of(l, b)) != 0)
                continue;
            /* A default is not at fault. */
            rc = l->source[a] > l->source[b] ? shared(l, a, b) : shared(l, b, a);
        }
    }
    return rc;
}

/* ---- sequences ---------------------------------------------------------------------------------
 */

static struct span sequence_of(const struct conf_list *lines, size_t i)
{
    struct span line = span_str(lines->item[i]);
    while (span_starts(line, SPAN(" ")))
        line = span_skip(line, 1);
    return span_cut(&line, ' ');
}

/* Of two that differ the pool would have whichever was made first. */
static enum err_code check_sequences(struct conf_load *l)
{
    char quoted[CONF_QUOTE_MAX];
    const struct conf_list *lines = &l->conf->sequences_define;
    enum err_code rc = ERR_OK;
    for (size_t b = 0; b < lines->n && !rc; b++) {
        struct span name = sequence_of(lines, b);
        size_t a = 0;
        while (a < b && !span_eq(sequence_of(lines, a), name))
            a++;
        if (a == b)
            continue;
        (void)err_set(l->e, ERR_INVALID,
                      "expected each sequence once for sequences.define, found %s again",
                      conf_quote(quoted, name));
        rc = conf_load_note(l, conf_load_blame(l, CONF_SEQUENCES_DEFINE, b, ERR_INVALID));
    }
    return rc;
}

/* ---- who may connect --------------------------------------------------------------------------
 */

static enum err_code check_protected(struct conf_load *l)
{
    char quoted[CONF_QUOTE_MAX];
    enum err_code rc = ERR_OK;
    for (struct place at = BEFORE_ALL; !rc && step(l, &at);) {
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
    for (struct place at = BEFORE_ALL; step(l, &at);) {
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

static enum err_code check_users_file(struct conf_load *l)
{
    enum err_code rc =
        conf_judges.users ? conf_judges.users(l->conf->auth_users_file, l->e) : ERR_OK;
    return rc && rc != ERR_NOMEM ? conf_load_blame(l, CONF_AUTH_USERS_FILE, CONF_WHOLE_VALUE, rc)
                                 : rc;
}

/* ---- coordinator ------------------------------------------------------------------------------
 */

static enum err_code check_coordinator(struct conf_load *l)
{
    enum err_code rc = conf_judges.coordinator ? conf_judges.coordinator(l->conf, l->e) : ERR_OK;
    return rc && rc != ERR_NOMEM ? conf_load_blame(l, CONF_COORDINATOR_URL, CONF_WHOLE_VALUE, rc)
                                 : rc;
}

/* It would wait for itself for ever. */
static enum err_code check_own_coordinator(struct conf_load *l)
{
    char quoted[CONF_QUOTE_MAX];
    struct conf_address at;
    for (struct place p = BEFORE_ALL; conf_judges.is_own_coordinator && step(l, &p);) {
        if (!conf_address_parse(span_str(text_of(l->conf, p)), &at) ||
            !conf_judges.is_own_coordinator(l->conf, &at))
            continue;
        (void)err_set(l->e, ERR_INVALID,
                      "expected the address of another server, found %s, where sidflake itself "
                      "listens: see %s",
                      conf_quote(quoted, span_str(l->conf->coordinator_url)), p.of->listen->path);
        return conf_load_blame(l, CONF_COORDINATOR_URL, CONF_WHOLE_VALUE, ERR_INVALID);
    }
    return ERR_OK;
}

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
    l->wrong[id] = true;
    return conf_load_note(l, conf_load_blame(l, id, CONF_WHOLE_VALUE, rc));
}

static enum err_code check_passwords(struct conf_load *l)
{
    char password[PASSFILE_MAX + 1];
    enum err_code rc = ERR_OK;
    if (!l->wrong[CONF_COORDINATOR_PASSWORD_FILE])
        rc = conf_password(l->conf, password, l->e);
    if (rc)
        rc = unusable(l, CONF_COORDINATOR_PASSWORD_FILE, rc);
    for (size_t i = 0; i < CONF_PROTOCOLS && !rc; i++) {
        const struct conf_protocol *p = &conf_protocols[i];
        if (!is_right(l, p->password_file))
            continue;
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
        if (!is_right(l, p->user) || !is_right(l, p->password_file))
            continue;
        bool user = conf_protocol_user(l->conf, p)[0] != '\0';
        bool password = conf_protocol_password_file(l->conf, p)[0] != '\0';
        if (user && !password)
            rc = conf_load_note(l, missing(l, p->password_file, p->user));
        if (password && !user && p->words)
            rc = conf_load_note(l, missing(l, p->user, p->password_file));
    }
    return rc;
}

static enum err_code check_layout(struct conf_load *l)
{
    struct layout bits;
    if (!l->conf->layout[0] || layout_parse(span_str(l->conf->layout), &bits, l->e) == ERR_OK)
        return ERR_OK;
    return conf_load_blame(l, CONF_LAYOUT, CONF_WHOLE_VALUE, l->e->code);
}

/* Nobody but the page would know how far ahead of the clock IDs were. */
static enum err_code check_ahead(struct conf_load *l)
{
    const struct conf *c = l->conf;
    if (!conf_is_fixed(c) || !conf_is_ahead(c))
        return ERR_OK;
    bool borrow = c->ids_overflow == CONF_OVERFLOW_BORROW;
    (void)err_set(l->e, ERR_INVALID,
                  "expected \"%s\" with static:N, which has no coordinator that knows up to when "
                  "IDs were issued; found \"%s\"",
                  borrow ? "wait" : "rotate", borrow ? "borrow" : "hold");
    return conf_load_blame(l, borrow ? CONF_IDS_OVERFLOW : CONF_CLOCK_ON_ROLLBACK, CONF_WHOLE_VALUE,
                           ERR_INVALID);
}

/* ---- all --------------------------------------------------------------------------------------
 */

/* What each looks at; those of protocols, of which there is one for each, it looks for itself. */
#define READS_MAX 3
static const struct {
    enum err_code (*fn)(struct conf_load *l);
    enum conf_option_id reads[READS_MAX];
    size_t n;
} checks[] = {
    {check_addresses, .n = 0},
    {check_loops, .n = 0},
    {check_names, {CONF_IDS_NAMES}, 1},
    {check_prefixes, .n = 0},
    {check_sequences, {CONF_SEQUENCES_DEFINE}, 1},
    {check_protected, {CONF_AUTH_MODE, CONF_LISTEN_ALLOW_UNPROTECTED}, 2},
    {check_users, {CONF_AUTH_MODE, CONF_AUTH_USERS_FILE}, 2},
    {check_users_file, {CONF_AUTH_USERS_FILE}, 1},
    {check_auto_init, {CONF_COORDINATOR_AUTO_INIT, CONF_COORDINATOR_URL}, 2},
    {check_layout, {CONF_LAYOUT}, 1},
    {check_ahead, {CONF_IDS_OVERFLOW, CONF_CLOCK_ON_ROLLBACK, CONF_COORDINATOR_URL}, 3},
    {check_logins, .n = 0},
    {check_passwords, .n = 0},
    {check_coordinator, {CONF_COORDINATOR_URL, CONF_COORDINATOR_PASSWORD_FILE}, 2},
    {check_own_coordinator, {CONF_COORDINATOR_URL}, 1},
};

enum err_code conf_check(struct conf_load *l)
{
    enum err_code rc = ERR_OK;
    for (size_t i = 0; i < sizeof checks / sizeof *checks && !rc; i++) {
        bool right = true;
        for (size_t k = 0; k < checks[i].n; k++)
            right = right && !l->wrong[checks[i].reads[k]];
        if (right)
            rc = conf_load_note(l, checks[i].fn(l));
    }
    return rc;
}
