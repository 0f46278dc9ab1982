/*
 * Blocks of numbers as a file: state_dir/sequences.page, beside the state page, mapped shared.
 *
 *     none --- make ---> NAME.new --- rename ---> there --- next start: found, taken over
 *
 * Invariants
 *   - Whoever holds worker.page holds it; a lock of its own keeps out who has come by a second
 *     worker.page in the same directory.
 *   - There is none before it is made, and it is put in place whole: who is killed meanwhile has
 *     left none, or an empty one.
 *   - It is preallocated, and its stores are guarded (mapguard.h), as the state page's are.
 *   - One that cannot be taken over is renamed to sequences.page.aside: its numbers are a gap.
 *   - The generation outside it is sequences.generation (generation.h). Each start begins one.
 *   - An older state of it, put back in place, is told by the time of its latest change of status,
 *     where only others change that: on tmpfs, where stores through a mapping do not, if what
 *     is stored to was loaded from before (blockpage.c). There what
 *     is not `proven` never is: a copy may be younger than all that anybody else can tell it by.
 *     Elsewhere somebody else has to say, for as long as `proven` is not set.
 *   - So is one that comes under a program that runs, elsewhere by the witness, which is this
 *     program's latest one for as long as nobody else writes. It gets no later one by then.
 */
#ifndef SIDFLAKE_LEASE_BLOCKFILE_H
#define SIDFLAKE_LEASE_BLOCKFILE_H

#include "base/err.h"
#include "lease/blockpage.h"
#include "lease/generation.h"

struct blockfile {
    struct blockpage *page; /* NULL: there is none yet */
    unsigned slots;
    int fd; /* -1: none, or memory only */
    char *path, *path_new;
    struct generation generation;
    struct page_home home;
    bool in_memory;     /* tmpfs */
    int64_t changed_ns; /* st_ctim as it was found, or made */
    struct {
        bool any;
        unsigned slot;
        struct coord_token token;
    } witness; /* as it was found, or stored last */

    /* What was there at start. */
    bool found;
    enum page_verdict verdict; /* where found */
    struct err why;            /* where found and not PAGE_OWN */
    bool proven;               /* PAGE_OWN, and as it was left */
};

/* What the program before leaves to this one in the same process (heir.h): all of the area when
 * nobody wrote any more. */
struct blockfile_left {
    bool known; /* false: none was there, or it was not proven */
    uint64_t hash;
};

/* Takes over what is in dir, where worker.page is locked. slots: as blockpage_format; with another
 * number it is set aside. coordinator: as pagefile_inherit. left: NULL: nothing. f->page is NULL
 * where there is nothing to take over. ERR_BUSY: another process has it. */
enum err_code blockfile_open(struct blockfile *f, const char *dir, const char *coordinator,
                             unsigned slots, const struct blockfile_left *left,
                             struct err *e) MUST_CHECK;

/* Puts an empty one in place, of f that was opened, or could not be, and has no page. identity: the
 * pool's. On an error f still has none. */
enum err_code blockfile_make(struct blockfile *f, const char *identity, struct err *e) MUST_CHECK;

/* Likewise, one that ends with the process; f may be all zero. */
enum err_code blockfile_memory(struct blockfile *f, unsigned slots, const char *identity,
                               struct err *e) MUST_CHECK;

/* What it says is so, or was dropped: the next start may take it as it is found by then. */
void blockfile_prove(struct blockfile *f);

/* Of an area that is proven: in another one it would prove what may be older. */
void blockfile_set_witness(struct blockfile *f, unsigned slot, struct coord_token token);

/* All of it was looked at once: what is not used need not stay resident. */
void blockfile_looked_at(struct blockfile *f);

/* As of pagefile.h. */
enum err_code blockfile_begin_generation(struct blockfile *f, struct err *e) MUST_CHECK;
bool blockfile_stands(const struct blockfile *f, struct err *why);

/* For the heir, when nobody writes any more. */
struct blockfile_left blockfile_leave(const struct blockfile *f);

/* Unmaps and unlocks; the file stays. One that is all zero is allowed. */
void blockfile_close(struct blockfile *f);

#endif
