/*
 * The state page: what a process killed at any instant leaves behind for the next one.
 *
 *   0      256             +160            ...                   4096
 *   | head | slot 0        | slot 1        | ... slot 23 |
 *            copy 0, copy 1, commit, mark
 *
 * This file is the memory alone, and pure; lease/pagefile.h maps it from state_dir.
 *
 * Invariants
 *   - A slot has two copies of its record. A store writes the one that does not count, and then, in
 *     one 8-byte store, the commit that makes it count. A kill before that leaves the old record,
 *     whose successor had no consequences yet; damage to the record that counts is seen, never
 *     guessed at.
 *   - The serving thread stores `mark` (base/mark.h), the keeper everything else; no lock is
 *     needed, since a mark is one 8-byte store.
 *   - A record is stored before its consequence: a grant before it is issued from, a renewal's next
 *     token before it is sent, LEAVING before a release is sent.
 *   - The page is worth something only to the same boot of the same machine, as the same file:
 *     marks reach the disk when the kernel likes.
 *   - Nor is an earlier state of it, put back in place, once a workerId of that state was given up:
 *     somebody else may have it. So there is a generation, a number that the page has and that also
 *     stands outside it; both are changed before the coordinator hears of what was given up.
 */
#ifndef SIDFLAKE_LEASE_PAGE_H
#define SIDFLAKE_LEASE_PAGE_H

#include "base/mark.h"
#include "coord/coord.h"

#include <stdbool.h>
#include <stdint.h>

#define PAGE_SIZE_BYTES 4096u
#define PAGE_SLOTS      24u
#define PAGE_VERSION    1u

/* Whose page this is. All of it must agree before a slot may be taken over as it is. */
struct page_home {
    uint8_t boot[16]; /* /proc/sys/kernel/random/boot_id */
    uint64_t device;  /* of the file itself */
    uint64_t inode;
    uint64_t born_ns;     /* Unix time at which the file was made, 0 where its file system does not
                             tell: a number of an inode is used again as soon as it is free */
    uint64_t coordinator; /* hash of coordinator URL and pool name */
};

enum page_state {
    PAGE_FREE,
    PAGE_HELD,
    PAGE_LEAVING
};

struct page_record {
    enum page_state state;
    uint16_t worker;
    bool renewing; /* nxt was, or was about to be, sent: either token may be the right one */
    bool ahead;    /* IDs may be of times above the clock of whoever issued them */
    struct coord_token cur, nxt;
    uint64_t n;
    int64_t lo_ms, hi_ms;
};

struct page_copy {
    uint64_t version;
    uint64_t n;
    int64_t lo_ms, hi_ms;
    uint8_t cur[16], nxt[16];
    uint16_t worker;
    uint8_t state;
    uint8_t flags;  /* 1: renewing, 2: ahead; earlier versions take any for renewing */
    uint32_t check; /* of all before it */
};

struct page_slot {
    struct page_copy copy[2];
    volatile uint64_t commit; /* base/mark.h: version of the copy that counts; 0: none yet */
    volatile uint64_t mark;   /* latest time issued at; lo - 1 when granted */
};

/* The pool's parameters as they were last told: a pool that was lost has to be made again with
 * them, and nobody else may remember. Behind what version 0.1.0 knows of the head, with a check of
 * its own: a page of that version has none, and where that version has stored another pool's
 * identity since, they are nobody's. */
struct page_params {
    int64_t horizon_ms, first_horizon_ms, mature_after_ms, max_skew_ms, grace_ms;
    uint32_t replicas;
    uint16_t worker_from, worker_to;
    uint32_t check;     /* of the identity, all before it, and where it is not 0 settle_ms */
    uint32_t settle_ms; /* 0: the horizon; earlier versions have no other */
};

/* The page's two words for it, so that a change of generation can be cut short at any instant: the
 * next one is stored in the word that does not count, and then put in its place outside. All 0:
 * none yet. */
struct page_generation {
    volatile uint64_t word[2];
};

struct page_head {
    char magic[8];
    uint32_t version;
    uint32_t slots;
    struct page_home home;
    char identity[COORD_IDENTITY_MAX]; /* of the pool that all records belong to; "": none yet */
    uint32_t check;                    /* of all before it */
    uint32_t pid; /* of the process that has the page mapped: for messages only, not checked */
    struct page_params params;
    struct page_generation generation;
    volatile uint64_t floor; /* base/mark.h: above it nothing was issued by what stood in pages that
                                this one replaced; 0: there were none */
    uint32_t ahead_ms;       /* of params, and under its check where it is not 0 */
    uint32_t least_ms;       /* likewise: the shortest settle before, where that is shorter */
};

struct page {
    union {
        struct page_head head;
        uint8_t head_bytes[256];
    };
    struct page_slot slot[PAGE_SLOTS];
};

/* What a page found at start is worth. */
enum page_verdict {
    PAGE_OWN,     /* this boot, this file, this coordinator: its records can be taken over */
    PAGE_FOREIGN, /* whole, but of another boot, file or coordinator: its holders are gone */
    PAGE_BROKEN,  /* torn, corrupt, or of another version */
};

/* An empty page for home. */
void page_format(struct page *p, const struct page_home *home, uint32_t pid);

/* Empties all but its home, generation, parameters, which are known again where the identity that
 * they are of is pinned again, and floor, which rises to what its marks say. */
void page_clear(struct page *p);

/* Another workerId takes the slot, none of whose IDs is above last: floor rises to the mark of the
 * one before. */
void page_clear_mark(struct page *p, unsigned slot, int64_t last);

/* Whether this is the page of the generation that stands outside it (0: none does), and not an
 * earlier state. */
bool page_generation_is(const struct page_generation *g, uint64_t there);
bool page_is_of(const struct page *p, uint64_t generation);

/* next, not 0, may stand outside from now on, as may the one that stands there. */
void page_generation_expect(struct page_generation *g, uint64_t there, uint64_t next);
void page_expect(struct page *p, uint64_t there, uint64_t next);

/* Where nothing but pages knows up to when IDs were issued. */
#define PAGE_FLOOR_UNKNOWN MARK_MAX_MS

/* Unix ms; 0: no page was replaced; PAGE_FLOOR_UNKNOWN: one was that could not be read, or the
 * floor is damaged, or a mark, be its slot in use or not. */
int64_t page_floor(const struct page *p);

/* What goes over from the page replaced to the empty one in its place: the floor, which rises to
 * each of its marks, too; and, where the coordinator is the same, what is known of the pool. NULL:
 * it is unreadable. */
void page_replace(struct page *p, const struct page *replaced);

/* why: what was expected and what was found, for PAGE_FOREIGN and PAGE_BROKEN. A page is broken,
 * too, where a slot in use has no whole copy or a damaged mark. */
enum page_verdict page_judge(const struct page *p, const struct page_home *home, struct err *why);

/* Pins the identity of the pool; the home stays, and parameters are those of the pool that they
 * were stored for. */
void page_set_identity(struct page *p, const char *identity);

/* Remembers the parameters of the pool whose identity is pinned, and gives them back; false: none
 * are known, or they are damaged, another pool's, or none that a pool can have. settle_ms:
 * first_horizon_ms..horizon_ms, 0: the horizon; anything else is stored as 0, the longest.
 * least_ms: the shortest settle ever, likewise; one that is not below settle_ms is stored as 0.
 * ahead_ms: 0..COORD_AHEAD_MAX_MS, as in coord_later; beyond is stored as the most. */
void page_set_params(struct page *p, const struct coord_params *params, int64_t settle_ms,
                     int64_t least_ms, int64_t ahead_ms);
bool page_params(const struct page *p, struct coord_params *out, int64_t *settle_ms,
                 int64_t *least_ms, int64_t *ahead_ms);

void page_store(struct page *p, unsigned slot, const struct page_record *r);

/* The record that counts; false where it is damaged. A slot never stored to loads as PAGE_FREE. */
bool page_load(const struct page *p, unsigned slot, struct page_record *out);

/* Whether some slot is PAGE_HELD. */
bool page_holds(const struct page *p);

#endif
