/* Sequences in Redis: each operation is one call of sequences.lua. */
#include "coord/outcome.h"
#include "coord/remote.h"

#include <inttypes.h>
#include <string.h>

/* A snapshot that it starts from, or a replica that takes its place, lacks the latest answers. */
static bool forgets(struct coord *c)
{
    (void)c;
    return true;
}

static enum coord_status run(struct remote *m, struct remote_call *c, struct answer *a,
                             struct coord_reply *r)
{
    m->courier.text = COURIER_SEQUENCES;
    enum coord_status s = remote_run(m, c, a, r);
    m->courier.text = COURIER_POOL;
    return s;
}

static void put_want(struct remote_call *c, const struct seq_want *w)
{
    remote_call_str(c, w->name);
    remote_call_str(c, w->sub);
    remote_call_str(c, w->period);
    remote_call_str(c, w->text);
    remote_call_num(c, w->count);
    remote_call_num(c, w->whole);
    remote_call_num(c, w->known_before);
    remote_call_token(c, w->token);
    remote_call_num(c, w->gen);
    remote_call_num(c, w->n);
    remote_call_num(c, w->seen);
}

static enum coord_status take(struct coord *base, const char *identity, const struct seq_caller *by,
                              const struct seq_want *items, struct seq_grant *out, size_t n,
                              struct seq_opening *opening, struct coord_reply *r)
{
    struct remote *m = remote_of(base);
    struct answer_to to = {m->pool, identity};
    struct remote_call c;
    struct answer a;
    remote_call_begin_at(&c, m, "take", identity, by->now_ms);
    remote_call_num(&c, by->opening.era);
    remote_call_num(&c, by->opening.topen_ms);
    remote_call_str(&c, by->opening.fingerprint);
    for (size_t i = 0; i < n; i++)
        put_want(&c, &items[i]);
    enum coord_status s = run(m, &c, &a, r);
    if (s == COORD_OK)
        s = answer_take(&a, &to, items, out, n, opening, r);
    return courier_end(&m->courier, s);
}

static enum coord_status give_back(struct coord *base, const char *identity,
                                   const struct seq_return *items, enum seq_how *how, size_t n,
                                   struct coord_reply *r)
{
    struct remote *m = remote_of(base);
    struct answer_to to = {m->pool, identity};
    struct remote_call c;
    struct answer a;
    remote_call_begin(&c, m, "back", identity);
    for (size_t i = 0; i < n; i++) {
        remote_call_str(&c, items[i].name);
        remote_call_str(&c, items[i].sub);
        remote_call_str(&c, items[i].period);
        remote_call_token(&c, items[i].token);
        remote_call_num(&c, items[i].gen);
        remote_call_num(&c, items[i].n);
        remote_call_num(&c, items[i].lo);
        remote_call_num(&c, items[i].hi);
    }
    enum coord_status s = run(m, &c, &a, r);
    if (s == COORD_OK)
        s = answer_back(&a, &to, how, n, r);
    return courier_end(&m->courier, s);
}

static enum coord_status operate(struct coord *base, const char *identity,
                                 const struct seq_order *in, struct seq_grant *out,
                                 struct coord_reply *r)
{
    static const char *const verbs[SEQ_VERBS] = {
        [SEQ_VERB_CREATE] = "create", [SEQ_VERB_ALTER] = "alter",   [SEQ_VERB_SET] = "set",
        [SEQ_VERB_DROP] = "drop",     [SEQ_VERB_REOPEN] = "reopen", [SEQ_VERB_SWEEP] = "sweep",
    };
    struct remote *m = remote_of(base);
    struct answer_to to = {m->pool, identity};
    struct remote_call c;
    struct answer a;
    remote_call_begin(&c, m, "order", identity);
    remote_call_str(&c, verbs[in->verb]);
    remote_call_str(&c, in->name);
    remote_call_str(&c, in->sub);
    remote_call_str(&c, in->period);
    remote_call_str(&c, in->text);
    remote_call_num(&c, in->gen);
    remote_call_num(&c, in->index);
    remote_call_num(&c, in->base);
    remote_call_num(&c, in->flag);
    remote_call_num(&c, in->top);
    remote_call_num(&c, in->kept);
    remote_call_str(&c, in->to);
    enum coord_status s = run(m, &c, &a, r);
    if (s == COORD_OK)
        s = answer_order(&a, &to, out, r);
    return courier_end(&m->courier, s);
}

/* One row comes in one part: who says otherwise would keep the asker asking. */
static enum coord_status one_part(const char *prefix, const struct seq_rows *found,
                                  struct coord_reply *r)
{
    bool many = *prefix && prefix[strlen(prefix) - 1] == ' ';
    if (many || (found->cursor == 0 && found->told == 0))
        return COORD_OK;
    return outcome_refused(r,
                           "answer of the script: expected one row, found a part of more, up to "
                           "%" PRId64,
                           found->cursor);
}

static enum coord_status rows(struct coord *base, const char *identity, const char *prefix,
                              struct seq_rows *out, struct coord_reply *r)
{
    struct remote *m = remote_of(base);
    struct answer_to to = {m->pool, identity};
    struct remote_call c;
    struct answer a;
    remote_call_begin(&c, m, "rows", identity);
    remote_call_str(&c, prefix);
    remote_call_num(&c, out->cursor);
    remote_call_num(&c, out->told);
    enum coord_status s = run(m, &c, &a, r);
    if (s == COORD_OK)
        s = answer_rows(&a, &to, &out->cursor, &out->told, out, r);
    if (s == COORD_OK)
        s = one_part(prefix, out, r);
    return courier_end(&m->courier, s);
}

const struct seq_driver remote_sequences = {
    .forgets = forgets,
    .take = take,
    .give_back = give_back,
    .operate = operate,
    .rows = rows,
};
