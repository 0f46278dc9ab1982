#include "serve/access.h"

#include "base/glob.h"
#include "base/log.h"

#define SAY_EVERY_MS 10000 /* of refused passwords: one line, and how many */
#define ANSWERS      64u   /* told of at a time */

void access_open(struct net_service *svc, void *session, uint8_t tag)
{
    struct access *a = session;
    (void)svc;
    a->mode = tag;
}

/* Nobody has come yet. */
bool access_stranger(const struct net_service *svc, const void *session)
{
    const struct access *a = session;
    (void)svc;
    return a->mode == ACCESS_REQUIRED && a->user == 0;
}

uint32_t access_user(const struct net_service *svc, const void *session)
{
    const struct access *a = session;
    (void)svc;
    return a->user;
}

/* The first password is being looked at. */
bool access_checked(const struct net_service *svc, const void *session)
{
    const struct access *a = session;
    (void)svc;
    return a->login.ask && a->login.refused == 0;
}

bool access_stands(const struct serve *s, const struct access *a)
{
    return a->mode != ACCESS_REQUIRED || a->user == 0 || auth_user(s->auth, a->user);
}

static void tell_refused(struct serve *s, struct span name, const struct net_peer *peer)
{
    uint64_t held;
    if (log_limit_pass(&s->refused_logins, clock_mono_us(s->clock) / 1000, SAY_EVERY_MS, &held))
        log_warn("wrong name or password",
                 kv_span("user", span_of(name.p, name.n < 64 ? name.n : 64)),
                 kv_str("peer", peer->text), kv_u64("more", held));
}

enum auth_answer access_login(struct serve *s, struct access *a, const struct net_turn *turn,
                              struct span name, struct span password)
{
    struct net_peer peer;
    if (a->mode < ACCESS_REQUIRED)
        return AUTH_YES;
    net_peer(turn, &peer);
    const struct auth_question q = {
        .name = name, .password = password, .peer = {{peer.id[0], peer.id[1]}}, .who = turn->conn};
    enum auth_answer r = s->auth ? auth_check(s->auth, &a->login, &q, &a->user) : AUTH_NO;
    if (r == AUTH_NO)
        tell_refused(s, name, &peer);
    return r;
}

void access_close(const struct serve *s, struct access *a)
{
    if (s->auth)
        auth_forget(s->auth, &a->login);
}

bool access_answered(const struct serve *s)
{
    void *who;
    for (unsigned left = ANSWERS; left > 0; left--) {
        if (!s->auth || !auth_answered(s->auth, &who))
            return false;
        net_wake_one(who);
    }
    return true;
}

void access_logout(struct access *a)
{
    a->user = 0;
}

static const struct user *user_of(const struct serve *s, const struct access *a)
{
    return a->mode == ACCESS_REQUIRED ? auth_user(s->auth, a->user) : NULL;
}

void access_pack(const struct serve *s, const struct access *a, struct buf *parcel)
{
    const struct user *u = user_of(s, a);
    parcel_put_bytes(parcel, span_str(u ? u->name : ""));
    parcel_put_bytes(parcel, u ? u->terms : SPAN(""));
}

bool access_unpack(const struct serve *s, struct access *a, struct span *in)
{
    struct span name, terms;
    if (!parcel_get_bytes(in, &name) || !parcel_get_bytes(in, &terms))
        return false;
    const struct user *u =
        a->mode == ACCESS_REQUIRED && name.n > 0 ? auth_user_named(s->auth, name) : NULL;
    a->user = u && users_keep(terms, u) ? u->id : 0;
    return name.n == 0 || a->user != 0;
}

const char *access_user_name(const struct serve *s, const struct access *a)
{
    const struct user *u = user_of(s, a);
    return u ? u->name : "default";
}

/* Whether the user may have numbers of this name. */
static bool has(const struct user *u, struct span name)
{
    struct span rest = u->names;
    while (rest.p)
        if (glob_match(span_cut(&rest, ','), name, false))
            return true;
    return !u->names.p;
}

bool access_may(const struct serve *s, const struct access *a, struct span key)
{
    if (a->mode < ACCESS_REQUIRED)
        return true;
    const struct user *u = user_of(s, a);
    const struct names_prefix *prefix = names_prefix_of(&s->issuer.names, key);
    if (!u || !prefix)
        return u;
    key = span_skip(key, prefix->length);
    struct span name = span_cut(&key, '#');
    return has(u, generator_is_text(prefix->generator) ? span_cut(&name, '?') : name);
}

bool access_sees(const struct serve *s, const struct access *a, const struct generator *g)
{
    const struct user *u = user_of(s, a);
    return !g->label || a->mode < ACCESS_REQUIRED || (u && has(u, span_str(g->label)));
}

bool access_plain(const struct serve *s, const struct access *a)
{
    const struct user *u = user_of(s, a);
    return a->mode < ACCESS_REQUIRED || (u && !u->names.p);
}

const struct user *access_limits(const struct serve *s, const struct access *a)
{
    const struct user *u = user_of(s, a);
    return u && rights_limited(u) ? u : NULL;
}

bool access_passes(const struct serve *s, const struct access *a)
{
    const struct user *u = user_of(s, a);
    return a->mode < ACCESS_REQUIRED || (u && !rights_limited(u));
}
