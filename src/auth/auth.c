#include "auth/auth.h"

#include "base/clock.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#define JOBS      32u             /* checks that wait or were answered */
#define NOTIFY_US INT64_C(100000) /* between calls of notify while more checks wait */
#define FULL      UINT64_MAX      /* ticket of whoever found no place */

enum job_state {
    JOB_FREE,
    JOB_WAITING,
    JOB_RUNNING,
    JOB_DONE
};

struct job {
    enum job_state state;
    bool right;      /* DONE */
    bool stale;      /* RUNNING: nobody wants the answer any more */
    uint64_t number; /* the lowest waits, or was answered, longest */
    uint8_t digest[SECRET_DIGEST];
    char hash[SECRET_HASH_MAX + 1];
    char password[SECRET_PASSWORD_MAX + 1];
    size_t n; /* bytes of password */
};

struct auth {
    struct users users; /* the loop's, as is what follows */
    uint32_t last_id;
    uint8_t key[SECRET_DIGEST];
    void (*notify)(void *arg);
    void *arg;
    pthread_t checker;

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t work;
    bool stopping;
    int64_t told_us; /* monotonic: notify was called */
    uint64_t jobs;
    struct job job[JOBS];
};

/* ---- the checker ------------------------------------------------------------------------------
 */

/* The job that is in the state for longest; NULL: none is. */
static struct job *oldest(struct auth *a, enum job_state state)
{
    struct job *found = NULL;
    for (size_t i = 0; i < JOBS; i++) {
        struct job *j = &a->job[i];
        if (j->state == state && (!found || j->number < found->number))
            found = j;
    }
    return found;
}

/* Everybody who waits is asked again by it. */
static void tell(struct auth *a)
{
    int64_t now = clock_mono_us(clock_system());
    if (now < a->told_us + NOTIFY_US && oldest(a, JOB_WAITING))
        return;
    a->told_us = now;
    a->notify(a->arg);
}

static void *check(void *arg)
{
    struct auth *a = arg;
    (void)pthread_mutex_lock(&a->lock);
    while (!a->stopping) {
        struct job *j = oldest(a, JOB_WAITING);
        if (!j) {
            (void)pthread_cond_wait(&a->work, &a->lock);
            continue;
        }
        j->state = JOB_RUNNING;
        j->stale = false;
        (void)pthread_mutex_unlock(&a->lock);
        bool right = secret_matches(j->hash, span_of(j->password, j->n));
        explicit_bzero(j->password, sizeof j->password);
        (void)pthread_mutex_lock(&a->lock);
        j->state = j->stale ? JOB_FREE : JOB_DONE;
        j->right = right;
        tell(a);
    }
    (void)pthread_mutex_unlock(&a->lock);
    return NULL;
}

/* ---- the loop's side --------------------------------------------------------------------------
 */

static struct job *find_job(struct auth *a, const uint8_t digest[SECRET_DIGEST])
{
    for (size_t i = 0; i < JOBS; i++)
        if (a->job[i].state != JOB_FREE && !(a->job[i].state == JOB_RUNNING && a->job[i].stale) &&
            secret_equal(a->job[i].digest, digest, SECRET_DIGEST))
            return &a->job[i];
    return NULL;
}

/* Its ticket; FULL: all are under way, there will be an answer, and with it a place. */
static uint64_t begin(struct auth *a, const uint8_t digest[SECRET_DIGEST], const char *hash,
                      struct span password)
{
    struct job *j = oldest(a, JOB_FREE);
    if (!j)
        j = oldest(a, JOB_DONE);
    if (!j)
        return FULL;
    *j = (struct job){.state = JOB_WAITING, .number = ++a->jobs, .n = password.n};
    memcpy(j->digest, digest, SECRET_DIGEST);
    memcpy(j->hash, hash, strlen(hash) + 1);
    if (password.n)
        memcpy(j->password, password.p, password.n);
    (void)pthread_cond_signal(&a->work);
    return j->number;
}

static bool still_waits(struct auth *a, uint64_t ticket)
{
    (void)pthread_mutex_lock(&a->lock);
    bool waits = ticket == FULL && !oldest(a, JOB_FREE) && !oldest(a, JOB_DONE);
    for (size_t i = 0; i < JOBS; i++) {
        const struct job *j = &a->job[i];
        bool open = j->state == JOB_WAITING || (j->state == JOB_RUNNING && !j->stale);
        waits |= open && j->number == ticket;
    }
    (void)pthread_mutex_unlock(&a->lock);
    return waits;
}

static enum auth_answer ask(struct auth *a, const uint8_t digest[SECRET_DIGEST], const char *hash,
                            struct span password, uint64_t *ticket)
{
    enum auth_answer r = AUTH_PENDING;
    (void)pthread_mutex_lock(&a->lock);
    struct job *j = find_job(a, digest);
    if (j && j->state == JOB_DONE)
        r = j->right ? AUTH_YES : AUTH_NO;
    else
        *ticket = j ? j->number : begin(a, digest, hash, password);
    (void)pthread_mutex_unlock(&a->lock);
    return r;
}

enum auth_answer auth_check(struct auth *a, struct span name, struct span password,
                            uint64_t *ticket, uint32_t *id)
{
    uint8_t digest[SECRET_DIGEST];
    if (*ticket && still_waits(a, *ticket))
        return AUTH_PENDING;
    *ticket = 0;
    if (a->users.n == 0 || name.n > USERS_NAME_MAX || password.n > SECRET_PASSWORD_MAX ||
        !secret_digest(a->key, name, password, digest))
        return AUTH_NO;
    struct user *u = users_find(&a->users, name);
    bool known = u && u->known && secret_equal(u->digest, digest, SECRET_DIGEST);
    enum auth_answer r =
        known ? AUTH_YES : ask(a, digest, u ? u->hash : a->users.user[0].hash, password, ticket);
    if (r != AUTH_YES)
        return r;
    if (!u) /* somebody else's password was guessed */
        return AUTH_NO;
    u->known = true;
    memcpy(u->digest, digest, sizeof digest);
    *id = u->id;
    return AUTH_YES;
}

const struct user *auth_user(const struct auth *a, uint32_t id)
{
    for (size_t i = 0; a && id && i < a->users.n; i++)
        if (a->users.user[i].id == id)
            return &a->users.user[i];
    return NULL;
}

const struct user *auth_user_named(const struct auth *a, struct span name)
{
    return a ? users_find(&a->users, name) : NULL;
}

/* ---- life -------------------------------------------------------------------------------------
 */

/* Answers that stand, or are to come, are of other users. */
static void forget_jobs(struct auth *a)
{
    (void)pthread_mutex_lock(&a->lock);
    for (size_t i = 0; i < JOBS; i++) {
        struct job *j = &a->job[i];
        j->stale = true;
        if (j->state != JOB_RUNNING) {
            explicit_bzero(j->password, sizeof j->password);
            j->state = JOB_FREE;
        }
    }
    (void)pthread_mutex_unlock(&a->lock);
}

void auth_replace(struct auth *a, struct users *users)
{
    for (size_t i = 0; i < users->n; i++) {
        struct user *u = &users->user[i], *old = users_find(&a->users, span_str(u->name));
        bool same = old && strcmp(old->hash, u->hash) == 0;
        u->id = same && users_keep(old->terms, u) ? old->id : ++a->last_id;
        u->known = same && old->known;
        if (u->known)
            memcpy(u->digest, old->digest, sizeof u->digest);
    }
    users_clear(&a->users);
    a->users = *users;
    *users = (struct users){.n = 0};
    forget_jobs(a);
}

static int start_checker(struct auth *a)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the loop's */
    int r = pthread_create(&a->checker, NULL, check, a);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r;
}

enum err_code auth_new(struct users *users, void (*notify)(void *arg), void *arg, struct auth **out,
                       struct err *e)
{
    struct auth *a = calloc(1, sizeof *a);
    if (!a)
        return err_set(e, ERR_NOMEM, "no memory for users");
    a->notify = notify;
    a->arg = arg;
    rng_system()->fill(rng_system(), a->key, sizeof a->key);
    (void)pthread_mutex_init(&a->lock, NULL);
    (void)pthread_cond_init(&a->work, NULL);
    int r = start_checker(a);
    if (r) {
        free(a);
        return err_errno(e, r, "cannot start the thread that checks passwords");
    }
    auth_replace(a, users);
    *out = a;
    return ERR_OK;
}

void auth_free(struct auth *a)
{
    if (!a)
        return;
    (void)pthread_mutex_lock(&a->lock);
    a->stopping = true;
    (void)pthread_cond_signal(&a->work);
    (void)pthread_mutex_unlock(&a->lock);
    (void)pthread_join(a->checker, NULL);
    (void)pthread_mutex_destroy(&a->lock);
    (void)pthread_cond_destroy(&a->work);
    users_clear(&a->users);
    explicit_bzero(a, sizeof *a);
    free(a);
}
