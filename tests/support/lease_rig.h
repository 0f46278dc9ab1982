/*
 * A lease machine on a bench: run by hand against a coordinator in memory, with a clock that stands
 * still unless it is moved, and with the serving loop's side kept as the loop would keep it.
 *
 * Invariants, checked at every step (a breach fails the test)
 *   - Page first: at a RENEW the page holds both tokens of each item, at a RELEASE the slot is
 *     LEAVING, at a GRANT it is HELD with the mark in place.
 *   - A handle is granted once; EXTEND and REVOKE name one that is held.
 *   - At most LEASE_MAIL_MAX mails from one step.
 */
#ifndef SIDFLAKE_SUPPORT_LEASE_RIG_H
#define SIDFLAKE_SUPPORT_LEASE_RIG_H

#include "lease/lease.h"
#include "support/fake_clock.h"
#include "support/fake_coord.h"
#include "support/seeded.h"

#define RIG_EPOCH    INT64_C(1767225600000)
#define RIG_T0       INT64_C(1780000000000)
#define RIG_IDENTITY "11111111-2222-4333-8444-555555555555|1767225600000|38.15.10"
#define RIG_OTHER    "99999999-2222-4333-8444-555555555555|1767225600000|38.15.10"
#define RIG_EPOCH2   "99999999-2222-4333-8444-555555555555|1700000000000|38.15.10"

/* What the loop knows of a grant. */
struct rig_grant {
    bool held;
    uint32_t handle;
    uint16_t worker;
    int64_t last_ms, hi_ms;
    volatile uint64_t *mark;
};

struct lease_rig {
    struct lease_config conf;
    struct lease lease;
    struct pagefile file;
    struct fake_coord *coord;
    struct fake_clock *clock;
    struct seeded rng;

    struct rig_grant grant[LEASE_SLOTS]; /* by slot */
    unsigned mails[LEASE_MAIL_RETIRE + 1];
    struct coord_pool pool; /* of the latest POOL */
};

/* 1 active, 1 spare, renewals every 20 s, 30 s of jitter, 3 s to stop. */
struct lease_config rig_config(void);

/* A first start, with an empty page in memory. coord and clock are shared between rigs. */
void rig_init(struct lease_rig *r, const struct lease_config *conf, struct fake_coord *coord,
              struct fake_clock *clock, uint64_t seed);

/* The process is killed as it stands, and starts again on its page. */
void rig_restart(struct lease_rig *r);

/* The same after a reboot: the page is another boot's. */
void rig_reboot(struct lease_rig *r);

/* What the machine wants now; nothing is run. */
void rig_next(struct lease_rig *r, struct lease_action *a);

/* Runs one action, which may be IDLE; returns its kind. */
enum lease_action_kind rig_step(struct lease_rig *r);

/* Runs actions until there is nothing to do at this instant. Returns how many were run. */
unsigned rig_settle(struct lease_rig *r);

/* Lets ms go by, running whatever falls due. */
void rig_pass(struct lease_rig *r, int64_t ms);

int64_t rig_mono(const struct lease_rig *r);
int64_t rig_wall(const struct lease_rig *r);

/* The loop's side. */
unsigned rig_held(const struct lease_rig *r);
struct rig_grant *rig_first(struct lease_rig *r);                      /* held, or NULL */
struct rig_grant *rig_of_worker(struct lease_rig *r, uint16_t worker); /* likewise */
void rig_use(struct rig_grant *g, int64_t ms); /* an ID was issued at this time */
void rig_retire(struct lease_rig *r, struct rig_grant *g);

/* The page's record of the grant's slot. */
struct page_record rig_record(const struct lease_rig *r, const struct rig_grant *g);

/* How many slots of the page are in this state. */
unsigned rig_page_count(const struct lease_rig *r, enum page_state state);

void rig_clear(struct lease_rig *r);

#endif
