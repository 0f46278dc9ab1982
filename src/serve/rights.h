/*
 * What a user may of the servers behind. Nothing else decides it.
 *
 *                        HERE   READ   CHANGE   OTHER
 *     upstream=none      yes
 *     upstream=read      yes    yes
 *     upstream=all       yes    yes    yes      without keys=
 *
 * with READ and CHANGE only for keys that one of the patterns of keys= matches, if there are any.
 *
 * Invariants
 *   - What a request is, is said by lists of what is known: what stands in none of them is OTHER.
 *   - Of READ and CHANGE every key is known, and asked for by rights_key.
 *   - Pure.
 */
#ifndef SIDFLAKE_SERVE_RIGHTS_H
#define SIDFLAKE_SERVE_RIGHTS_H

#include "auth/users.h"

enum rights_class {
    RIGHTS_HERE,   /* about the connection, or what we can tell ourselves */
    RIGHTS_READ,   /* reads what is under the keys that it names, and changes nothing */
    RIGHTS_CHANGE, /* does to the keys that it names whatever it does, and to no others */
    RIGHTS_OTHER,
};

bool rights_may(const struct user *u, enum rights_class what);
bool rights_key(const struct user *u, struct span key);

/* Whether there is anything that the user may not. */
static inline bool rights_limited(const struct user *u)
{
    return u->upstream != USER_ALL || u->keys.p;
}

#endif
