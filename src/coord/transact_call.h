/*
 * What the files of transact share: an operation, which is runs of the rules.
 *
 *     struct transact_call c = transact_call_of(coord, access, identity);
 *     while (transact_begins(&c))
 *         transact_ends(&c, rules_...(&c.u, ...));
 *     return transact_answer(&c, r);
 */
#ifndef SIDFLAKE_COORD_TRANSACT_CALL_H
#define SIDFLAKE_COORD_TRANSACT_CALL_H

#include "coord/rules.h"
#include "coord/transact.h"

/* One operation: runs of the rules, one after the other, until the first that is no conflict. */
struct transact_call {
    const struct transact *t;
    enum store_access access;
    const char *identity; /* NULL where the operation has none */
    int64_t deadline_us;
    bool over;
    bool committed;           /* then results are the caller's */
    enum coord_status status; /* of the latest run, as all that follows */
    struct coord_reply reply;
    struct rules u;
};

/* identity: NULL where the operation has none. */
struct transact_call transact_call_of(struct coord *c, enum store_access access,
                                      const char *identity);

/* true: c->u is ready for its rules, to be followed by transact_ends(). */
bool transact_begins(struct transact_call *c);

/* said: by the rules, which is the answer once it is committed. */
void transact_ends(struct transact_call *c, enum coord_status said);

/* What it came to, with *r. */
enum coord_status transact_answer(const struct transact_call *c, struct coord_reply *r);

#endif
