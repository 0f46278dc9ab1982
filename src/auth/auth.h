/*
 * Who is who: names and passwords against the users file, off the loop.
 *
 *     loop                                   checker (a thread)
 *     auth_check -> PENDING, a job is left -> secret_matches ... -> notify
 *     auth_check again (net_wake) -> YES, NO
 *
 * A right password is remembered, as a digest under a key of this process, so that it is slow only
 * once per user; a wrong one for as long as its job is not needed for another.
 *
 * Invariants
 *   - The loop never waits: the one lock is held for a few instructions.
 *   - A job owns copies: neither a connection that closes nor a reload concerns the checker.
 *   - An unknown name costs what a known one does.
 *   - To be asked again costs the loop next to nothing, and comes to pass a few times a second at
 *     most while checks wait: thousands that log in at once harm nobody else.
 *   - Passwords are wiped when they have been checked.
 */
#ifndef SIDFLAKE_AUTH_AUTH_H
#define SIDFLAKE_AUTH_AUTH_H

#include "auth/users.h"

enum auth_answer {
    AUTH_NO,
    AUTH_YES,
    AUTH_PENDING, /* ask again, with the same, after notify */
};

struct auth;

/* Takes the users over. notify is called by the checker, when an answer has come. */
enum err_code auth_new(struct users *users, void (*notify)(void *arg), void *arg, struct auth **out,
                       struct err *e) MUST_CHECK;

/* Waits for a check under way. NULL is allowed. */
void auth_free(struct auth *a);

/* Takes over other users: those with the same name and hash, and no fewer rights, keep their id. */
void auth_replace(struct auth *a, struct users *users);

/* *ticket: 0, or what the same question left there when it was AUTH_PENDING. *id: of the user, with
 * AUTH_YES; else untouched. */
enum auth_answer auth_check(struct auth *a, struct span name, struct span password,
                            uint64_t *ticket, uint32_t *id);

/* The user of that id; NULL: there is none any more. Until auth_replace. a may be NULL. */
const struct user *auth_user(const struct auth *a, uint32_t id);

/* The same by name. */
const struct user *auth_user_named(const struct auth *a, struct span name);

#endif
