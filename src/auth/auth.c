#include "auth/auth.h"

#include "base/clock.h"
#include "base/parcel.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#define VERDICTS    256u /* answers that are remembered; each has its place by its digest */
#define REFUSED_MAX UINT8_MAX

/* A question under way. It is on one ring, the queue's or one of those below, or is `running`. */
struct auth_ask {
    struct queue_entry entry; /* first */
    bool done, right;         /* done: the answer has come … */
    bool stale;               /* … and is of users that were replaced: ask again */
    bool gone;                /* running: nobody wants the answer any more */
    uint32_t generation;      /* of the users */
    void *who;
    uint8_t digest[SECRET_DIGEST];
    char hash[SECRET_HASH_MAX + 1];
    size_t n; /* bytes of password */
    char password[];
};

enum verdict {
    VERDICT_NONE,
    VERDICT_WRONG,
    VERDICT_RIGHT
};

struct auth {
    struct users users; /* the loop's, as is what follows */
    uint32_t last_id;
    uint8_t key[SECRET_DIGEST];
    uint8_t names_key[SECRET_DIGEST]; /* see stand_in */
    void (*notify)(void *arg);
    void *arg;
    pthread_t checker;

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t work;
    bool stopping;
    uint32_t generation; /* of the users */
    struct queue queue;
    struct auth_ask *running;
    struct link answered, told; /* auth_ask.entry: before and after auth_answered */
    struct {
        uint8_t verdict; /* of enum verdict */
        uint8_t digest[SECRET_DIGEST];
    } verdicts[VERDICTS];
};

static struct auth_ask *ask_at(struct link *r)
{
    return (struct auth_ask *)(void *)r;
}

static void free_ask(struct auth_ask *q)
{
    explicit_bzero(q->password, q->n);
    free(q);
}

/* ---- verdicts ---------------------------------------------------------------------------------
 */

static enum verdict verdict_on(const struct auth *a, const uint8_t digest[SECRET_DIGEST])
{
    bool same = secret_equal(a->verdicts[digest[0]].digest, digest, SECRET_DIGEST);
    return same ? (enum verdict)a->verdicts[digest[0]].verdict : VERDICT_NONE;
}

static void remember(struct auth *a, const uint8_t digest[SECRET_DIGEST], bool right)
{
    a->verdicts[digest[0]].verdict = right ? VERDICT_RIGHT : VERDICT_WRONG;
    memcpy(a->verdicts[digest[0]].digest, digest, SECRET_DIGEST);
}

/* ---- the checker ------------------------------------------------------------------------------
 */

static void wait_for_work(struct auth *a)
{
    int64_t due = queue_due_us(&a->queue);
    const struct timespec until = {.tv_sec = due / 1000000, .tv_nsec = due % 1000000 * 1000};
    if (due == INT64_MAX)
        (void)pthread_cond_wait(&a->work, &a->lock);
    else
        (void)pthread_cond_timedwait(&a->work, &a->lock, &until);
}

/* Without the lock meanwhile. */
static void compare(struct auth *a, struct auth_ask *q)
{
    a->running = q;
    (void)pthread_mutex_unlock(&a->lock);
    bool right = secret_matches(q->hash, span_of(q->password, q->n));
    explicit_bzero(q->password, q->n);
    (void)pthread_mutex_lock(&a->lock);
    a->running = NULL;
    q->right = right;
    if (q->generation == a->generation)
        remember(a, q->digest, right);
}

static void answer(struct auth *a, struct auth_ask *q)
{
    enum verdict v = verdict_on(a, q->digest);
    q->right = v == VERDICT_RIGHT;
    if (q->generation == a->generation && v == VERDICT_NONE)
        compare(a, q);
    q->stale = q->generation != a->generation;
    q->done = true;
    if (q->gone) {
        free_ask(q);
        return;
    }
    link_append(&a->answered, &q->entry.place);
    a->notify(a->arg);
}

static void *check(void *arg)
{
    struct auth *a = arg;
    (void)pthread_mutex_lock(&a->lock);
    while (!a->stopping) {
        struct queue_entry *e = queue_take(&a->queue, clock_mono_us(clock_system()));
        if (e)
            answer(a, (struct auth_ask *)(void *)e);
        else
            wait_for_work(a);
    }
    (void)pthread_mutex_unlock(&a->lock);
    return NULL;
}

/* ---- the loop's side --------------------------------------------------------------------------
 */

/* Whose hash a name that nobody has is compared with: always the same one's for a name, also by
 * another process with the same file, for else asking twice would tell. So names that exist and
 * names that do not take as long, whatever kinds of hashes there are. */
static const char *stand_in(const struct auth *a, struct span name)
{
    uint8_t digest[SECRET_DIGEST] = {0};
    uint64_t n;
    (void)secret_digest(a->names_key, name, SPAN(""), digest);
    memcpy(&n, digest, sizeof n);
    return a->users.user[n % a->users.n].hash;
}

/* NULL: no memory. */
static struct auth_ask *begin(struct auth *a, const struct auth_question *question,
                              const uint8_t digest[SECRET_DIGEST], const struct user *u,
                              unsigned refused)
{
    struct auth_ask *q = calloc(1, sizeof *q + question->password.n);
    const char *other = stand_in(a, question->name); /* for each, lest this be what takes time */
    if (!q)
        return NULL;
    q->who = question->who;
    q->n = question->password.n;
    memcpy(q->digest, digest, SECRET_DIGEST);
    memcpy(q->hash, u ? u->hash : other, strlen(u ? u->hash : other) + 1);
    if (q->n)
        memcpy(q->password, question->password.p, q->n);
    (void)pthread_mutex_lock(&a->lock);
    q->generation = a->generation;
    bool put =
        queue_put(&a->queue, &q->entry, &question->peer, refused, clock_mono_us(clock_system()));
    (void)pthread_cond_signal(&a->work);
    (void)pthread_mutex_unlock(&a->lock);
    if (put)
        return q;
    free_ask(q);
    return NULL;
}

static bool waits(struct auth *a, const struct auth_login *l)
{
    (void)pthread_mutex_lock(&a->lock);
    bool yes = l->ask && !l->ask->done;
    (void)pthread_mutex_unlock(&a->lock);
    return yes;
}

/* What is known, or has come of the question under way. VERDICT_NONE: it is to be asked. */
static enum verdict collect(struct auth *a, struct auth_login *l,
                            const uint8_t digest[SECRET_DIGEST])
{
    struct auth_ask *q = l->ask;
    (void)pthread_mutex_lock(&a->lock);
    enum verdict v = l->refused == 0 ? verdict_on(a, digest) : VERDICT_NONE;
    if (q && !q->stale && secret_equal(q->digest, digest, SECRET_DIGEST))
        v = q->right ? VERDICT_RIGHT : VERDICT_WRONG;
    if (q) {
        link_remove(&q->entry.place);
        free_ask(q);
    }
    (void)pthread_mutex_unlock(&a->lock);
    l->ask = NULL;
    return v;
}

static enum auth_answer conclude(struct auth_login *l, struct user *u, bool right,
                                 const uint8_t digest[SECRET_DIGEST], uint32_t *id)
{
    if (!right || !u) { /* right, and no user: somebody else's password was guessed */
        l->refused = (uint8_t)(l->refused + (l->refused < REFUSED_MAX));
        return AUTH_NO;
    }
    l->refused = 0;
    u->known = true;
    memcpy(u->digest, digest, SECRET_DIGEST);
    *id = u->id;
    return AUTH_YES;
}

enum auth_answer auth_check(struct auth *a, struct auth_login *l,
                            const struct auth_question *question, uint32_t *id)
{
    uint8_t digest[SECRET_DIGEST];
    if (waits(a, l))
        return AUTH_PENDING;
    if (a->users.n == 0 || question->name.n > USERS_NAME_MAX ||
        question->password.n > SECRET_PASSWORD_MAX ||
        !secret_digest(a->key, question->name, question->password, digest)) {
        auth_forget(a, l);
        return AUTH_NO;
    }
    struct user *u = users_find(&a->users, question->name);
    bool known = u && u->known && secret_equal(u->digest, digest, SECRET_DIGEST);
    enum verdict v = collect(a, l, digest);
    if (known || v != VERDICT_NONE)
        return conclude(l, u, known || v == VERDICT_RIGHT, digest, id);
    l->ask = begin(a, question, digest, u, l->refused);
    return l->ask ? AUTH_PENDING : AUTH_NO;
}

void auth_forget(struct auth *a, struct auth_login *l)
{
    struct auth_ask *q = l->ask;
    if (!q)
        return;
    l->ask = NULL;
    (void)pthread_mutex_lock(&a->lock);
    if (q == a->running) {
        q->gone = true;
    } else {
        if (q->done)
            link_remove(&q->entry.place);
        else
            queue_remove(&a->queue, &q->entry);
        free_ask(q);
    }
    (void)pthread_mutex_unlock(&a->lock);
}

bool auth_answered(struct auth *a, void **who)
{
    (void)pthread_mutex_lock(&a->lock);
    bool one = !link_empty(&a->answered);
    if (one) {
        struct auth_ask *q = ask_at(a->answered.next);
        link_remove(&q->entry.place);
        link_append(&a->told, &q->entry.place);
        *who = q->who;
    }
    (void)pthread_mutex_unlock(&a->lock);
    return one;
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

/* ---- other users ------------------------------------------------------------------------------
 */

/* Of all that stands in the file. */
static void make_names_key(struct auth *a)
{
    const uint8_t none[SECRET_DIGEST] = {0};
    const struct users *u = &a->users;
    struct span all = SPAN("");
    if (u->n > 0) {
        struct span last = u->user[u->n - 1].terms;
        all = span_of(u->user[0].name, (size_t)(last.p + last.n - u->user[0].name));
    }
    (void)secret_digest(none, SPAN("names"), all, a->names_key);
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
    make_names_key(a);
    (void)pthread_mutex_lock(&a->lock);
    a->generation++; /* what is under way is asked again, of the new users */
    memset(a->verdicts, 0, sizeof a->verdicts);
    (void)pthread_mutex_unlock(&a->lock);
}

/* ---- for the program that takes over -----------------------------------------------------------
 */

void auth_pack(const struct auth *a, struct buf *out)
{
    parcel_put_bytes(out, span_of((const char *)a->key, sizeof a->key));
    for (size_t i = 0; i < a->users.n; i++) {
        const struct user *u = &a->users.user[i];
        if (!u->known)
            continue;
        parcel_put_bytes(out, span_str(u->name));
        parcel_put_bytes(out, span_str(u->hash));
        parcel_put_bytes(out, span_of((const char *)u->digest, sizeof u->digest));
    }
}

void auth_unpack(struct auth *a, struct span in)
{
    struct span key, name, hash, digest;
    if (!parcel_get_bytes(&in, &key) || key.n != sizeof a->key)
        return;
    memcpy(a->key, key.p, sizeof a->key);
    while (parcel_get_bytes(&in, &name) && parcel_get_bytes(&in, &hash) &&
           parcel_get_bytes(&in, &digest) && digest.n == SECRET_DIGEST) {
        struct user *u = users_find(&a->users, name);
        if (!u || !span_eq(span_str(u->hash), hash))
            continue;
        u->known = true;
        memcpy(u->digest, digest.p, SECRET_DIGEST);
    }
}

/* ---- life -------------------------------------------------------------------------------------
 */

static int start_checker(struct auth *a)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the loop's */
    int r = pthread_create(&a->checker, NULL, check, a);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r;
}

/* Delays are of the monotonic clock. */
static void init_locks(struct auth *a)
{
    pthread_condattr_t attr;
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&a->lock, NULL);
    (void)pthread_cond_init(&a->work, &attr);
    (void)pthread_condattr_destroy(&attr);
}

static void free_asks(struct auth *a)
{
    struct link *rings[] = {&a->answered, &a->told};
    struct queue_entry *e;
    for (size_t i = 0; i < sizeof rings / sizeof *rings; i++) {
        while (!link_empty(rings[i])) {
            struct auth_ask *q = ask_at(rings[i]->next);
            link_remove(&q->entry.place);
            free_ask(q);
        }
    }
    while ((e = queue_any(&a->queue))) {
        queue_remove(&a->queue, e);
        free_ask((struct auth_ask *)(void *)e);
    }
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
    queue_init(&a->queue);
    link_init(&a->answered);
    link_init(&a->told);
    init_locks(a);
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
    free_asks(a);
    (void)pthread_mutex_destroy(&a->lock);
    (void)pthread_cond_destroy(&a->work);
    users_clear(&a->users);
    explicit_bzero(a, sizeof *a);
    free(a);
}
