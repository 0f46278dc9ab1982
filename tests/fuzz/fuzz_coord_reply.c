/*
 * What a hostile Redis can say: the first byte chooses the question, the rest goes through hiredis
 * to the functions that judge replies. What they take must be within the bounds they promise.
 */
#include "coord/redis_reply.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CALLER_MS INT64_C(1780000000000)
#define HOUR_MS   (INT64_C(3600) * 1000)

static const struct answer_to to = {"p", "11111111-2222-4333-8444-555555555555|0|38.15.10"};

static void must(bool held)
{
    if (!held)
        abort();
}

/* An answer that is not one of a working pool's is explained. */
static void explained(enum coord_status s, const struct coord_reply *r)
{
    must(s <= COORD_LOST || r->err.text[0] != '\0');
}

static void judge_claim(const struct answer *a)
{
    struct coord_reply r = {0};
    struct coord_grant g;
    enum coord_status s = answer_claim(a, &to, CALLER_MS, &g, &r);
    explained(s, &r);
    if (s == COORD_OK)
        must(g.worker < COORD_WORKERS && g.lo_ms >= 1 && g.lo_ms <= CALLER_MS &&
             g.hi_ms >= g.lo_ms && g.hi_ms <= r.now_ms + 25 * HOUR_MS && g.n >= 1);
}

static void judge_renew(const struct answer *a, size_t n)
{
    struct coord_reply r = {0};
    struct coord_renewal items[COORD_RENEW_MAX] = {{.worker = 0}};
    for (size_t i = 0; i < n; i++)
        items[i].hi_ms = CALLER_MS;
    enum coord_status s = answer_renew(a, &to, items, n, &r);
    explained(s, &r);
    for (size_t i = 0; i < n && s == COORD_OK; i++)
        must(items[i].hi_ms >= CALLER_MS &&
             (items[i].how == COORD_HOW_LOST || items[i].hi_ms <= r.now_ms + 25 * HOUR_MS));
}

static void judge_pool(const struct answer *a)
{
    struct coord_reply r = {0};
    struct coord_pool pool;
    struct err e;
    enum coord_status s = answer_describe(a, &to, &pool, &r);
    explained(s, &r);
    if (s == COORD_OK)
        must(coord_params_check(&pool.params, &e) == ERR_OK);
}

static void judge_snapshot(const redisReply *reply)
{
    struct coord_reply r = {0};
    struct coord_snapshot s = {.nworkers = 0};
    static struct coord_audit audit;
    enum coord_status status = coord_redis_roster(reply, &to, &s, &r);
    explained(status, &r);
    if (status == COORD_OK)
        (void)coord_audit(&s, &audit);
    coord_snapshot_clear(&s);
}

static void judge(unsigned question, const redisReply *reply)
{
    struct answer a;
    struct coord_reply r = {0};
    if (question % 8 == 0) {
        judge_snapshot(reply);
        return;
    }
    if (!coord_redis_answer(reply, &a))
        return;
    switch (question % 8) {
    case 1:
        judge_claim(&a);
        break;
    case 2:
        judge_pool(&a);
        break;
    case 3:
        explained(answer_plain(&a, &to, &r), &r);
        break;
    case 4:
        explained(answer_init(&a, &to, &r), &r);
        break;
    default:
        judge_renew(&a, 1 + question / 8);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    redisReader *reader = redisReaderCreate();
    coord_redis_bound(reader);
    (void)redisReaderFeed(reader, (const char *)data + 1, size - 1);
    void *reply = NULL;
    while (redisReaderGetReply(reader, &reply) == REDIS_OK && reply) {
        judge(data[0], reply);
        freeReplyObject(reply);
        reply = NULL;
    }
    redisReaderFree(reader);
    return 0;
}
