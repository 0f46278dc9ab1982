/*
 * Blocks of numbers in the state page: what a process killed at any instant leaves behind of them.
 * An area of its own, beside page.h's; a sidecar without sequences has none.
 *
 *   0      1024           +768                        slots are two a counter: 2c, 2c + 1
 *   | head | slot 0        | slot 1        | ...
 *            copy 0, copy 1, commit, mark
 *
 * This file is the memory alone, and pure.
 *
 * Invariants
 *   - A record is stored as page.h's is: the copy that does not count, and then, in one 8-byte
 *     store, the commit that makes it count. So is the opening in the head.
 *   - The serving thread stores a held slot's `mark`, how many of its numbers were given out, in
 *     one 8-byte store; the keeper everything else. A slot is stored FREE before its mark begins
 *     anew, and so never says of a block what was true of another one.
 *   - A record is stored before its consequence: a block before it is given out from, LEAVING
 *     before the block is given back. A block that is LEAVING is never given out from again.
 *   - A slot that is damaged holds nothing: its numbers are a gap.
 *   - An older state of the area, put back in place, is told by nothing in it: whoever takes one
 *     over has it proven first.
 */
#ifndef SIDFLAKE_LEASE_BLOCKPAGE_H
#define SIDFLAKE_LEASE_BLOCKPAGE_H

#include "coord/seq_calls.h"
#include "lease/page.h"

#define BLOCKPAGE_VERSION 1u

/* Which counter. */
struct blocks_name {
    char name[SEQ_NAME_MAX];       /* of the sequence */
    char sub[SEQ_SUB_MAX];         /* "": none */
    char period[PERIOD_LABEL_MAX]; /* "": it has none */
};

struct blockpage_record {
    enum page_state state;
    struct blocks_name of;
    struct coord_token token; /* of its take */
    int64_t gen, turn, era;   /* as granted */
    int64_t n;                /* changes of the counter, as told with it; 0: not known … */
    uint32_t opening;         /* … in this opening, as blockpage_opening counts them */
    int64_t lo, hi;           /* indices */
    int64_t start, increment; /* number = start + index × increment */
    uint64_t definition;      /* fnv64_str of its text */
    enum period_reset reset;  /* of its periods */
    int offset_min;
};

struct blockpage_copy {
    uint64_t version;
    int64_t gen, turn, era, n, lo, hi, start, increment;
    uint64_t definition;
    uint8_t token[16];
    struct blocks_name of;
    uint8_t state;
    uint8_t reset;
    int16_t offset_min;
    uint32_t opening;
    uint32_t check; /* of all before it */
};

struct blockpage_slot {
    union {
        struct {
            struct blockpage_copy copy[2];
            volatile uint64_t
                commit;             /* base/mark.h: version of the copy that counts; 0: none yet */
            volatile uint64_t mark; /* base/mark.h: numbers given out, or dropped */
        };
        uint8_t bytes[768];
    };
};

struct blockpage_opening {
    uint64_t version;
    struct seq_opening of;
    uint32_t serial; /* which opening it is, of those that this area has seen */
    uint32_t check;  /* of all before it */
};

/* The latest workerId's token that a coordinator has answered, as it stood in worker.page then:
 * that this area is of no earlier time than that answer. */
struct blockpage_witness {
    uint64_t version;
    struct coord_token token;
    uint32_t slot;  /* of worker.page */
    uint32_t check; /* of all before it */
};

/* The time of the file's latest change of status (st_ctim), by which it is known to be as it was
 * left. */
struct blockpage_changed {
    int64_t ns;     /* Unix time; 0: it says nothing */
    uint32_t check; /* of all before it */
    uint32_t none;
};

/* What the coordinator's clock was, by its latest answer: what period it is is known by that after
 * a restart, too, since an area is worth something only within one boot. */
struct blockpage_time {
    uint64_t version;
    int64_t ms;   /* Unix time, 1 .. */
    int64_t mono; /* when that was, monotonic ms of this boot */
    uint32_t none;
    uint32_t check; /* of all before it */
};

struct blockpage_head {
    char magic[8];
    uint32_t version;
    uint32_t slots;
    struct page_home home;
    char identity[COORD_IDENTITY_MAX]; /* of the pool that all records belong to; "": none yet */
    uint32_t check;                    /* of all before it */
    struct blockpage_opening opening[2];
    volatile uint64_t opened; /* base/mark.h: version of the opening that counts */
    struct blockpage_witness witness[2];
    volatile uint64_t witnessed; /* base/mark.h: version of the witness that counts */
    struct blockpage_changed changed;
    struct page_generation generation;
    struct blockpage_time time[2];
    volatile uint64_t timed; /* base/mark.h: version of the time that counts */
};

struct blockpage {
    union {
        struct blockpage_head head;
        uint8_t head_bytes[1024];
    };
    struct blockpage_slot slot[];
};

size_t blockpage_size(unsigned slots);

/* An empty area of blockpage_size(slots) bytes; identity: of the pool, "" where it is not known. */
void blockpage_format(struct blockpage *p, unsigned slots, const struct page_home *home,
                      const char *identity);

/* The same of bytes that are all zero, of which the slots are not touched. */
void blockpage_begin(struct blockpage *p, unsigned slots, const struct page_home *home,
                     const char *identity);

/* Empties all but its home, generation, witness and time of change. slots: as many as it was made
 * with, whatever it says itself by now. */
void blockpage_clear(struct blockpage *p, unsigned slots, const char *identity);

/* As page_judge, of an area of that many bytes: of its head alone. */
enum page_verdict blockpage_judge(const struct blockpage *p, size_t bytes,
                                  const struct page_home *home, struct err *why);

/* The slot's mark is 0 after a store of what is HELD where there was another state. */
void blockpage_store(struct blockpage *p, unsigned slot, const struct blockpage_record *r);

/* The record that counts; false where it is damaged, or cannot be. A slot never stored to loads as
 * PAGE_FREE. */
bool blockpage_load(const struct blockpage *p, unsigned slot, struct blockpage_record *out);

/* How many of a block's numbers were given out, or dropped: 0..size; size where that is damaged. */
int64_t blockpage_given(const struct blockpage *p, unsigned slot, int64_t size);

/* The latest opening that was told, and which one it is. Another one than is there begins a new
 * serial. false: none is known. */
uint32_t blockpage_set_opening(struct blockpage *p, const struct seq_opening *o);
bool blockpage_opening(const struct blockpage *p, struct seq_opening *out, uint32_t *serial);

/* Which answered token this area was there with; false: none is known. */
void blockpage_set_witness(struct blockpage *p, unsigned slot, struct coord_token token);
bool blockpage_witness(const struct blockpage *p, unsigned *slot, struct coord_token *token);

/* The coordinator's time; false: it is not known, or is of no earlier time of this boot. */
void blockpage_set_time(struct blockpage *p, int64_t ms, int64_t mono);
bool blockpage_time(const struct blockpage *p, int64_t mono, int64_t *ms);

/* false: no time is known. */
void blockpage_set_changed(struct blockpage *p, int64_t ns);
bool blockpage_changed(const struct blockpage *p, int64_t *ns);

bool blockpage_same_opening(const struct seq_opening *a, const struct seq_opening *b);
bool blocks_name_equal(const struct blocks_name *a, const struct blocks_name *b);

#endif
