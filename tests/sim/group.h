/*
 * A Redis master and its replicas, after whatever failovers: who has which data, and who follows
 * whom. One member alone is a Redis without replicas.
 *
 *      master 0, reign 1                promote(2)            master 2, reign 2
 *      writes 1 2 3 4 5 6 7      ------------------------>    writes 1 2 3 4 | 5' 6'
 *      replicas 1 (has 6), 2 (has 4)                          replicas: whoever follows, one by one
 *
 * A deposed master goes on until it is told: that is a split brain.
 *
 * Invariants
 *   - Reigns are numbered by promotion. A member's reign never falls: who has followed a newer
 *     master never goes back to an older one. This is the protocol's assumption.
 *   - A replica that follows a master anew takes over its data and forgets its own.
 *   - A life is one unbroken line of writes: a promotion and a loss each begin another, which
 *     knows where it left its parent.
 */
#ifndef SIDFLAKE_TESTS_SIM_GROUP_H
#define SIDFLAKE_TESTS_SIM_GROUP_H

#include "sim/dataset.h"

#define GROUP_MAX    5
#define GROUP_LIVES  512
#define GROUP_NOBODY UINT8_MAX

struct member {
    struct dataset data; /* with its run_id, and the replid of whom it follows or last followed */
    int64_t clock_off;   /* its clock less true time, ms */
    bool master;
    bool cut;         /* a replica: nothing comes from its master for now */
    uint8_t follows;  /* a replica: a member, or GROUP_NOBODY */
    uint64_t reign;   /* that it leads or follows */
    unsigned life;    /* of its data */
    uint64_t written; /* writes of that life, with those of its parents: how many it has */
    uint64_t counted; /* a master: those that enough replicas had acknowledged */
    uint64_t runs;    /* no connection outlives a change of this */
    unsigned promoted;
};

struct group {
    struct member member[GROUP_MAX];
    unsigned n;
    uint64_t reigns;
    unsigned lives;
    struct {
        unsigned parent; /* 0: none */
        uint64_t at;     /* writes that the parent had */
    } life[GROUP_LIVES];
    uint64_t ids; /* of run_ids and replids */
};

/* n members, 1..GROUP_MAX, without keys; the first is the master of all others. */
void group_reset(struct group *g, unsigned n);

/* Whether m's writes reach r. */
bool group_linked(const struct group *g, const struct member *r, const struct member *m);

/* r has got all that its master wrote so far. */
void group_catch_up(struct group *g, struct member *r);

/* Whether r has the master's first n writes, by way of following it. */
bool group_has(const struct group *g, const struct member *r, const struct member *m, uint64_t n);

/* Whether member i can be made to follow m: nobody goes back to an older reign. */
bool group_may_follow(const struct group *g, const struct member *i, const struct member *m);
void group_follow(struct group *g, struct member *i, const struct member *m);

/* False where there were too many lives already. Replication ids change. */
bool group_promote(struct group *g, struct member *r);

/* The master's process ends, and it comes back as nobody's replica. */
void group_depose(struct group *g, struct member *m);

/* A process starts anew with the data that it has. keep_replid: as a restart with an RDB file may.
 */
void group_restart(struct group *g, struct member *m, bool keep_replid);

/* m's data were replaced by those of a life at so many writes. */
bool group_rewound(struct group *g, struct member *m, unsigned life, uint64_t written);

/* Whether those data are a past of m's. */
bool group_descends(const struct group *g, const struct member *m, unsigned life, uint64_t written);

#endif
