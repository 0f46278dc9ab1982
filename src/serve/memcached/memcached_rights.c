/*
 * What a memcached request is to the rights of a user: see serve/rights.h.
 */
#include "serve/memcached/memcached.h"
#include "wire/mc_meta.h"

static const uint8_t classes[MC_VERB_COUNT] = {
    [MC_GET] = RIGHTS_READ,           [MC_GETS] = RIGHTS_READ,
    [MC_META_GET] = RIGHTS_READ,      [MC_META_DEBUG] = RIGHTS_READ,
    [MC_GAT] = RIGHTS_CHANGE,         [MC_GATS] = RIGHTS_CHANGE,
    [MC_SET] = RIGHTS_CHANGE,         [MC_ADD] = RIGHTS_CHANGE,
    [MC_REPLACE] = RIGHTS_CHANGE,     [MC_APPEND] = RIGHTS_CHANGE,
    [MC_PREPEND] = RIGHTS_CHANGE,     [MC_CAS] = RIGHTS_CHANGE,
    [MC_INCR] = RIGHTS_CHANGE,        [MC_DECR] = RIGHTS_CHANGE,
    [MC_DELETE] = RIGHTS_CHANGE,      [MC_TOUCH] = RIGHTS_CHANGE,
    [MC_META_SET] = RIGHTS_CHANGE,    [MC_META_ARITHMETIC] = RIGHTS_CHANGE,
    [MC_META_DELETE] = RIGHTS_CHANGE,
};

/* 0 stands for HERE in the table, and must not be what is not named there. */
static enum rights_class class_of(enum mc_verb verb)
{
    if (verb == MC_VERSION || verb == MC_STATS || verb == MC_META_NOOP || verb == MC_NOOP ||
        verb == MC_QUIT || verb == MC_SASL)
        return RIGHTS_HERE;
    return classes[verb] ? (enum rights_class)classes[verb] : RIGHTS_OTHER;
}

/* Flags of mg that change nothing: N, T, R and E do, and so may what is newer than this list. */
static bool only_reads(const struct mc_req *req)
{
    struct span rest = req->meta.flags, word;
    while (mc_next_key(&rest, &word))
        if (word.p[0] == '\0' || !strchr("bcfhklqstvO", word.p[0]))
            return false;
    return true;
}

static bool key_allowed(const struct memcached *m, const struct user *u, struct span key)
{
    return names_find(&m->serve->issuer.names, key) || rights_key(u, key);
}

static bool keys_allowed(const struct memcached *m, const struct user *u, const struct mc_req *req)
{
    struct span rest = req->keys, key;
    char scratch[MC_KEY_MAX];
    if (req->keys.n == 0)
        return key_allowed(m, u, mc_meta_key(req, scratch));
    while (mc_next_key(&rest, &key))
        if (!key_allowed(m, u, key))
            return false;
    return true;
}

enum mcd_rights mcd_rights(const struct memcached *m, const struct access *a,
                           const struct mc_req *req, const struct mc_there *there)
{
    const struct user *u = access_limits(m->serve, a);
    if (!u)
        return MCD_RIGHTS_PASS;
    enum rights_class what = class_of(req->verb);
    if (req->verb == MC_META_GET && what == RIGHTS_READ && !only_reads(req))
        what = RIGHTS_CHANGE;
    /* behind quiet requests mn says that they are done: there, if they are there */
    if (req->verb == MC_META_NOOP && u->upstream != USER_NONE && mc_is_clear(req, there))
        return MCD_RIGHTS_PASS;
    if (what == RIGHTS_HERE)
        return MCD_RIGHTS_HERE;
    if (!rights_may(u, what))
        return MCD_RIGHTS_REFUSED;
    if (!mc_is_clear(req, there))
        return MCD_RIGHTS_UNCLEAR;
    return what == RIGHTS_OTHER || keys_allowed(m, u, req) ? MCD_RIGHTS_PASS : MCD_RIGHTS_REFUSED;
}

enum mcd_rights mcd_rights_binary(const struct memcached *m, const struct access *a,
                                  const struct mcb_req *req)
{
    const struct user *u = access_limits(m->serve, a);
    if (!u)
        return MCD_RIGHTS_PASS;
    enum rights_class what = class_of(req->verb);
    if (what == RIGHTS_HERE)
        return MCD_RIGHTS_HERE;
    bool key = what == RIGHTS_OTHER || key_allowed(m, u, req->key);
    return rights_may(u, what) && key ? MCD_RIGHTS_PASS : MCD_RIGHTS_REFUSED;
}
