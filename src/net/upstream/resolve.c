#include "net/upstream/resolve.h"

#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STACK_BYTES ((size_t)512 << 10)

struct resolver {
    char host[256];
    uint16_t port;
    upstream_look_up *look_up;
    void (*notify)(void *arg);
    void *arg;

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t work;
    unsigned owners; /* the loop, the thread: the last one frees */
    bool stopping;
    bool asked, answered;
    struct resolved answer;
};

/* ---- one question -----------------------------------------------------------------------------
 */

static bool is_final(int r)
{
    bool none = r == EAI_NONAME;
#ifdef EAI_NODATA
    none |= r == EAI_NODATA;
#endif
#ifdef EAI_ADDRFAMILY
    none |= r == EAI_ADDRFAMILY;
#endif
    return none;
}

void resolve(upstream_look_up *look_up, const char *host, uint16_t port, bool numeric,
             struct resolved *out)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = numeric ? AI_NUMERICHOST : 0};
    struct addrinfo *list = NULL;
    char service[8];
    memset(out, 0, sizeof *out);
    (void)snprintf(service, sizeof service, "%u", port);
    int r = (look_up && !numeric ? look_up : getaddrinfo)(host, service, &hints, &list);
    out->none = is_final(r);
    out->why = r ? gai_strerror(r) : NULL;
    if (r)
        return;
    const struct addrinfo *ai = list;
    for (; ai && out->n < ADDRESSES; ai = ai->ai_next) {
        memcpy(&out->addr[out->n], ai->ai_addr, ai->ai_addrlen);
        out->len[out->n++] = ai->ai_addrlen;
    }
    out->cut = ai != NULL;
    freeaddrinfo(list);
}

/* ---- the thread -------------------------------------------------------------------------------
 */

/* With the lock held, which goes with it. */
static void let_go(struct resolver *r)
{
    bool last = --r->owners == 0;
    (void)pthread_mutex_unlock(&r->lock);
    if (!last)
        return;
    (void)pthread_mutex_destroy(&r->lock);
    (void)pthread_cond_destroy(&r->work);
    free(r);
}

static void *look_up_again_and_again(void *arg)
{
    struct resolver *r = arg;
    (void)pthread_mutex_lock(&r->lock);
    while (!r->stopping) {
        struct resolved a;
        if (!r->asked) {
            (void)pthread_cond_wait(&r->work, &r->lock);
            continue;
        }
        (void)pthread_mutex_unlock(&r->lock);
        resolve(r->look_up, r->host, r->port, false, &a);
        (void)pthread_mutex_lock(&r->lock);
        r->answer = a;
        r->asked = false;
        r->answered = true;
        if (!r->stopping)
            r->notify(r->arg);
    }
    let_go(r);
    return NULL;
}

/* ---- the loop's side --------------------------------------------------------------------------
 */

void resolver_ask(struct resolver *r)
{
    (void)pthread_mutex_lock(&r->lock);
    r->asked = true;
    (void)pthread_cond_signal(&r->work);
    (void)pthread_mutex_unlock(&r->lock);
}

bool resolver_take(struct resolver *r, struct resolved *out)
{
    (void)pthread_mutex_lock(&r->lock);
    bool has = r->answered;
    r->answered = false;
    if (has)
        *out = r->answer;
    (void)pthread_mutex_unlock(&r->lock);
    return has;
}

static int start_thread(struct resolver *r)
{
    sigset_t all, before;
    pthread_attr_t attr;
    pthread_t thread;
    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    (void)pthread_attr_setstacksize(&attr, STACK_BYTES);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the loop's */
    int why = pthread_create(&thread, &attr, look_up_again_and_again, r);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attr);
    return why;
}

enum err_code resolver_new(const char *host, uint16_t port, upstream_look_up *look_up,
                           void (*notify)(void *arg), void *arg, struct resolver **out,
                           struct err *e)
{
    struct resolver *r = calloc(1, sizeof *r);
    if (!r)
        return err_set(e, ERR_NOMEM, "no memory to look up a name");
    (void)snprintf(r->host, sizeof r->host, "%s", host);
    r->port = port;
    r->look_up = look_up;
    r->notify = notify;
    r->arg = arg;
    r->owners = 2;
    (void)pthread_mutex_init(&r->lock, NULL);
    (void)pthread_cond_init(&r->work, NULL);
    int why = start_thread(r);
    if (why) {
        (void)pthread_mutex_lock(&r->lock);
        r->owners--;
        let_go(r);
        return err_errno(e, why, "cannot start the thread that looks up names");
    }
    *out = r;
    return ERR_OK;
}

void resolver_free(struct resolver *r)
{
    if (!r)
        return;
    (void)pthread_mutex_lock(&r->lock);
    r->stopping = true;
    (void)pthread_cond_signal(&r->work);
    let_go(r);
}
