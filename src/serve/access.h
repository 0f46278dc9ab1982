/*
 * Whom a connection serves: what each of its listener's modes asks for, and which names of IDs its
 * user may have.
 *
 * Invariants
 *   - Where users are required, nothing but the protocol's own ways in is answered before one has
 *     come: each service asks access_granted for every request.
 *   - A session is plain only if access_plain says so: requests of others are parsed, and their
 *     keys looked at, each time.
 *   - A session has a user for as long as that user may all that he could when he logged in. When
 *     the users change net_review closes all others, whatever they do; so no request asks again.
 */
#ifndef SIDFLAKE_SERVE_ACCESS_H
#define SIDFLAKE_SERVE_ACCESS_H

#include "auth/auth.h"
#include "serve/rights.h"
#include "serve/serve.h"

/* net_door.tag */
enum access_mode {
    ACCESS_OFF,      /* whoever connects is served; there are no passwords */
    ACCESS_ANY,      /* the same, and every password is right */
    ACCESS_REQUIRED, /* a user of the users file */
    ACCESS_CLOSED,   /* HTTP: probes and metrics, and no IDs */
};

/* Of a connection: its session begins with it. */
struct access {
    struct auth_login login;
    uint32_t user; /* id in the users file; 0: nobody yet */
    uint8_t mode;  /* enum access_mode */
};

/* Whether requests are to be answered. */
static inline bool access_granted(const struct access *a)
{
    return a->mode < ACCESS_REQUIRED || (a->mode == ACCESS_REQUIRED && a->user != 0);
}

/* As net_service.open, stranger, user and checked. */
void access_open(struct net_service *svc, void *session, uint8_t tag);
bool access_stranger(const struct net_service *svc, const void *session);
uint32_t access_user(const struct net_service *svc, const void *session);
bool access_checked(const struct net_service *svc, const void *session);

/* For net_service.stands: false: the session's user is gone, has another password, or may less. */
bool access_stands(const struct serve *s, const struct access *a);

/* Makes the session that user's. AUTH_PENDING: come again, by NET_HOLD, with the same. After
 * AUTH_NO the session is whose it was. Where no users are required any pair is right. */
enum auth_answer access_login(struct serve *s, struct access *a, const struct net_turn *turn,
                              struct span name, struct span password);

/* The connection closes. */
void access_close(const struct serve *s, struct access *a);

/* Wakes some of those whose AUTH_PENDING has an answer. true: there may be more. */
bool access_answered(const struct serve *s);

/* Forgets the user. */
void access_logout(struct access *a);

/* Whether the user may have IDs by this key; true for a key that is no ID. Nobody may where users
 * are required. What a text is to be written with, behind '?', is not looked at. */
bool access_may(const struct serve *s, const struct access *a, struct span key);

/* Whether the user may be told of this generator, in INFO and `stats`: where it has a label, that
 * is a name that he may have. */
bool access_sees(const struct serve *s, const struct access *a, const struct generator *g);

/* Who it is, for the program that takes over: a name and the hash of a password, whose owner has
 * shown that he knows it, and what he may. There it is that user's who has both and may as much.
 * mode is not among it: open sets that. false: not understood, or there is no such user. */
void access_pack(const struct serve *s, const struct access *a, struct buf *parcel);
bool access_unpack(const struct serve *s, struct access *a, struct span *in);

/* The user's name; "default" where none is required. */
const char *access_user_name(const struct serve *s, const struct access *a);

/* Whose rights to the servers behind have to be looked at; NULL: nobody's, all may pass. Once the
 * session has shown who it is. */
const struct user *access_limits(const struct serve *s, const struct access *a);

/* Whether whatever is no ID may go to the servers behind. */
bool access_passes(const struct serve *s, const struct access *a);

/* Whether requests for IDs mean to the session what they mean to any other. */
bool access_plain(const struct serve *s, const struct access *a);

#endif
