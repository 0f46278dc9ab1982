/*
 * Users for the tests of the services: ann may have any ID, bob those of "orders" and "inv-...";
 * the password of both is "secret", and that of default, too.
 */
#ifndef SIDFLAKE_UNIT_SERVE_LOGIN_H
#define SIDFLAKE_UNIT_SERVE_LOGIN_H

#include "serve/access.h"

#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#define LOGIN_HASH "$argon2id$v=19$m=64,t=1,p=2$c29tZXNhbHQ$S3Lajg55evZVboE7O39Ij0iCFwMgZQQ4"
#define LOGIN_USERS                                                                                \
    "ann:" LOGIN_HASH "\nbob:" LOGIN_HASH ":names=orders,inv-*\ndefault:" LOGIN_HASH "\n"

static sem_t login_answered;

static inline void login_notify(void *arg)
{
    (void)arg;
    (void)sem_post(&login_answered);
}

static inline struct users login_users(const char *text)
{
    struct users u;
    struct err e;
    if (users_read(&u, "f", span_str(text), &e))
        fail_msg("expected users, found %s", e.text);
    return u;
}

static inline void login_begin(struct serve *serve)
{
    struct users u = login_users(LOGIN_USERS);
    struct err e;
    (void)sem_init(&login_answered, 0, 0);
    assert_int_equal(auth_new(&u, login_notify, NULL, &serve->auth, &e), ERR_OK);
}

/* As a reload does. */
static inline void login_replace(struct serve *serve, const char *text)
{
    struct users u = login_users(text);
    auth_replace(serve->auth, &u);
}

static inline void login_end(struct serve *serve)
{
    auth_free(serve->auth);
    serve->auth = NULL;
    (void)sem_destroy(&login_answered);
}

/* Until the checker has answered once more. */
static inline void login_wait(void)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    assert_int_equal(sem_timedwait(&login_answered, &until), 0);
}

#endif
