/*
 * Who is who: names and passwords against the users file, off the loop.
 *
 *     loop                                   checker (a thread)
 *     auth_check -> PENDING, a question is left -> secret_matches ... -> notify
 *     auth_answered: who; auth_check again -> YES, NO
 *
 * A right password is remembered, as a digest under a key of this process, so that it is slow only
 * once per user, also over an upgrade in place; a wrong one for a while.
 *
 * Invariants
 *   - The loop never waits: the one lock is held for a few instructions.
 *   - A question owns copies: neither a reload nor a connection that closes concerns the checker.
 *   - Each connection has one question at most, and the queue is fair (auth/queue.h): somebody who
 *     guesses, on however many connections, delays others by about one check of each that he has. A
 *     wrong answer delays the next of the same connection, from 50 ms up to 1.6 s.
 *   - An unknown name costs what a known one does, whatever kinds of hashes there are.
 *   - Only who has an answer is told of it.
 *   - Passwords are wiped when they have been checked.
 */
#ifndef SIDFLAKE_AUTH_AUTH_H
#define SIDFLAKE_AUTH_AUTH_H

#include "auth/queue.h"
#include "auth/users.h"
#include "base/buf.h"

enum auth_answer {
    AUTH_NO,
    AUTH_YES,
    AUTH_PENDING, /* ask again, with the same, when auth_answered says so */
};

/* Of a connection, all 0 at first. */
struct auth_login {
    struct auth_ask *ask; /* under way; NULL: none */
    uint8_t refused;      /* wrong answers in a row */
};

struct auth_question {
    struct span name, password;
    struct queue_peer peer; /* who asks: connections of one party have equal ones */
    void *who;              /* for auth_answered */
};

struct auth;

/* Takes the users over. notify is called by the checker, when an answer has come. */
enum err_code auth_new(struct users *users, void (*notify)(void *arg), void *arg, struct auth **out,
                       struct err *e) MUST_CHECK;

/* Waits for a check under way. NULL is allowed. */
void auth_free(struct auth *a);

/* Takes over other users: those with the same name and hash, and no fewer rights, keep their id. */
void auth_replace(struct auth *a, struct users *users);

/* *id: of the user, with AUTH_YES; else untouched. */
enum auth_answer auth_check(struct auth *a, struct auth_login *l,
                            const struct auth_question *question, uint32_t *id);

/* The connection closes. */
void auth_forget(struct auth *a, struct auth_login *l);

/* *who: of a question whose answer has come, each told once. false: there is none. */
bool auth_answered(struct auth *a, void **who);

/* The passwords that are known, as digests, and the key of these: for the program that takes over,
 * which has loaded its users. It knows those whose name and hash are the same. */
void auth_pack(const struct auth *a, struct buf *out);
void auth_unpack(struct auth *a, struct span in);

/* The user of that id; NULL: there is none any more. Until auth_replace. a may be NULL. */
const struct user *auth_user(const struct auth *a, uint32_t id);

/* The same by name. */
const struct user *auth_user_named(const struct auth *a, struct span name);

#endif
