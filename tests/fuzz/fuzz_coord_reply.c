/*
 * What a hostile Redis can say: the first byte chooses the question, the rest goes through hiredis
 * to the functions that judge replies. What they take must be within the bounds they promise.
 */
#include "coord_bounds.h"

#include "coord/redis_reply.h"
#include "coord/seq_rows.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>

static const struct answer_to to = {"p", "11111111-2222-4333-8444-555555555555|0|38.15.10"};

enum {
    GRANTED,
    RENEWED,
    DESCRIBED,
    ROSTER,
    MADE,
    RELEASED,
    TAKEN,
    LISTED,
    GIVEN_BACK,
    ORDERED,
    PLACES
};

const char *fuzz_unreached(void)
{
    static const char *const names[PLACES] = {
        "expected a claim that is OK, found none", "expected a renewal that is OK, found none",
        "expected a description, found none",      "expected a snapshot, found none",
        "expected an init that is OK, found none", "expected a release that is OK, found none",
        "expected a take that is OK, found none",  "expected rows, found none",
        "expected blocks given back, found none",  "expected an order that is OK, found none"};
    return feed_unreached(names, PLACES);
}

/* Returns s. */
static enum coord_status note(enum coord_status s, unsigned place)
{
    if (s == COORD_OK)
        feed_reached(place);
    return s;
}

static void judge_claim(const struct answer *a)
{
    struct coord_reply r = {0};
    struct coord_grant g;
    enum coord_status s = note(answer_claim(a, &to, BOUNDS_CALLER_MS, &g, &r), GRANTED);
    bounds_explained(s, &r);
    if (s == COORD_OK)
        bounds_grant(&g, &r);
}

static void judge_renew(const struct answer *a, size_t n)
{
    struct coord_reply r = {0};
    struct coord_terms terms;
    struct coord_renewal items[COORD_RENEW_MAX] = {{.worker = 0}};
    for (size_t i = 0; i < n; i++)
        items[i].hi_ms = BOUNDS_CALLER_MS;
    enum coord_status s = note(answer_renew(a, &to, items, n, &terms, &r), RENEWED);
    bounds_explained(s, &r);
    for (size_t i = 0; i < n && s == COORD_OK; i++)
        bounds_renewal(&items[i], &r);
}

static void judge_pool(const struct answer *a)
{
    struct coord_reply r = {0};
    struct coord_pool pool;
    enum coord_status s = note(answer_describe(a, &to, &pool, &r), DESCRIBED);
    bounds_explained(s, &r);
    if (s == COORD_OK)
        bounds_pool(&pool);
}

static void judge_take(const struct answer *a, size_t n)
{
    struct coord_reply r = {0};
    struct seq_want items[SEQ_ITEMS_MAX];
    struct seq_grant out[SEQ_ITEMS_MAX];
    struct seq_opening opening = {.era = 0};
    n = n < SEQ_ITEMS_MAX ? n : SEQ_ITEMS_MAX;
    for (size_t i = 0; i < n; i++)
        items[i] = (struct seq_want){.text = ""};
    enum coord_status s = note(answer_take(a, &to, items, out, n, &opening, &r), TAKEN);
    bounds_explained(s, &r);
    if (s == COORD_OK && (memchr(opening.fingerprint, '\0', SEQ_OPENING_MAX) == NULL ||
                          memchr(out[n - 1].text, '\0', SEQ_TEXT_MAX) == NULL || out[0].hi < 0))
        abort();
}

static void judge_back(const struct answer *a, size_t n)
{
    struct coord_reply r = {0};
    enum seq_how how[SEQ_ITEMS_MAX];
    n = n < SEQ_ITEMS_MAX ? n : SEQ_ITEMS_MAX;
    enum coord_status s = note(answer_back(a, &to, how, n, &r), GIVEN_BACK);
    bounds_explained(s, &r);
    for (size_t i = 0; i < n && s == COORD_OK; i++)
        feed_must(how[i] > SEQ_GRANTED && how[i] < SEQ_HOWS, "nothing is granted by giving back");
}

static void judge_order(const struct answer *a)
{
    struct coord_reply r = {0};
    struct seq_grant g = {.how = SEQ_HOWS};
    enum coord_status s = note(answer_order(a, &to, &g, &r), ORDERED);
    bounds_explained(s, &r);
    feed_must(s != COORD_OK ||
                  (g.how < SEQ_HOWS && memchr(g.text, '\0', SEQ_TEXT_MAX) &&
                   memchr(g.period, '\0', PERIOD_LABEL_MAX) && g.next >= 0 && g.wait_ms >= 0),
              "an order comes to something there is");
}

/* What is listed is read as rows, too. */
static void judge_rows(const struct answer *a)
{
    struct coord_reply r = {0};
    struct seq_rows rows = {.n = 0};
    int64_t cursor, told;
    bounds_explained(note(answer_rows(a, &to, &cursor, &told, &rows, &r), LISTED), &r);
    for (size_t i = 0; i < rows.n; i++) {
        struct seq_state state;
        struct seq_definition d;
        struct seq_counter counter;
        struct seq_counter_info info;
        char name[SEQ_NAME_MAX];
        if (seq_state_read(span_str(rows.v[i].value), &state, &d) && state.top > 0)
            (void)seq_number(&d, state.top - 1);
        (void)seq_counter_read(span_str(rows.v[i].value), &counter);
        (void)seq_state_key_read(span_str(rows.v[i].key), name);
        (void)seq_counter_key_read(span_str(rows.v[i].key), name, &info);
    }
    seq_rows_sort(&rows);
    seq_rows_clear(&rows);
}

static void judge_snapshot(const redisReply *reply)
{
    struct coord_reply r = {0};
    struct coord_snapshot s = {.nworkers = 0};
    static struct coord_audit audit;
    enum coord_status status = note(coord_redis_roster(reply, 0, &to, &s, &r), ROSTER);
    bounds_explained(status, &r);
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
    case 3: /* of what has no fields of its own, and of what has */
        if (question / 8 == 0)
            bounds_explained(note(answer_plain(&a, &to, &r), RELEASED), &r);
        else if (question / 8 == 1)
            judge_order(&a);
        else
            judge_back(&a, question / 8 - 1);
        break;
    case 4:
        bounds_explained(note(answer_init(&a, &to, &r), MADE), &r);
        break;
    case 6:
        judge_take(&a, 1 + question / 8);
        break;
    case 7:
        judge_rows(&a);
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
