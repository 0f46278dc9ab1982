#include "coord/transact_sequences.h"

#include "coord/rules_sequences.h"
#include "coord/transact_call.h"

static bool forgets(struct coord *c)
{
    return ((struct transact *)(void *)c)->store->ops->forgets;
}

static enum coord_status take(struct coord *coord, const char *identity,
                              const struct seq_caller *by, const struct seq_want *items,
                              struct seq_grant *out, size_t n, struct seq_opening *opening,
                              struct coord_reply *r)
{
    struct transact_call c = transact_call_of(coord, STORE_WRITE, identity);
    struct seq_grant mine[SEQ_ITEMS_MAX];
    struct seq_opening told;
    while (transact_begins(&c)) {
        c.u.caller_ms = by->now_ms;
        memset(mine, 0, n * sizeof *mine);
        told = (struct seq_opening){.era = 0};
        transact_ends(&c, rules_seq_take(&c.u, &by->opening, items, mine, n, &told));
    }
    if (c.committed) {
        memcpy(out, mine, n * sizeof *out);
        *opening = told;
    }
    return transact_answer(&c, r);
}

static enum coord_status give_back(struct coord *coord, const char *identity,
                                   const struct seq_return *items, enum seq_how *how, size_t n,
                                   struct coord_reply *r)
{
    struct transact_call c = transact_call_of(coord, STORE_WRITE, identity);
    enum seq_how mine[SEQ_ITEMS_MAX] = {SEQ_KEPT};
    while (transact_begins(&c))
        transact_ends(&c, rules_seq_give_back(&c.u, items, mine, n));
    if (c.committed)
        memcpy(how, mine, n * sizeof *how);
    return transact_answer(&c, r);
}

static enum coord_status operate(struct coord *coord, const char *identity,
                                 const struct seq_order *in, struct seq_grant *out,
                                 struct coord_reply *r)
{
    struct transact_call c = transact_call_of(coord, STORE_WRITE, identity);
    struct seq_grant mine;
    while (transact_begins(&c)) {
        memset(&mine, 0, sizeof mine);
        transact_ends(&c, rules_seq_operate(&c.u, in, &mine));
    }
    if (c.committed)
        *out = mine;
    return transact_answer(&c, r);
}

static enum coord_status rows(struct coord *coord, const char *identity, const char *prefix,
                              struct seq_rows *out, struct coord_reply *r)
{
    struct transact_call c = transact_call_of(coord, STORE_READ, identity);
    while (transact_begins(&c)) {
        struct seq_rows found = {.n = 0};
        transact_ends(&c, rules_seq_rows(&c.u, prefix, &found));
        if (c.committed)
            *out = found;
        else
            seq_rows_clear(&found);
    }
    return transact_answer(&c, r);
}

const struct seq_driver transact_sequences = {
    .forgets = forgets,
    .take = take,
    .give_back = give_back,
    .operate = operate,
    .rows = rows,
};
