/*
 * The state page as a file: state_dir/worker.page, mapped shared and locked by the process that
 * runs.
 *
 * Invariants
 *   - Whoever has it open holds flock(2) on it; the lock goes with the process, however it ends.
 *   - The file is preallocated: a full disk shows at start, never as a fault at a store.
 *   - What becomes of the file meanwhile cannot make an ID appear twice: a store that it does not
 *     take ends the process before the ID has left, and a damaged or missing page is not taken over
 *     by the next one, which has another workerId.
 *   - A page that cannot be taken over is replaced, not overwritten, in one step: at no moment does
 *     the path lead to none, or to one that knows less. The old one is kept as worker.page.aside.
 *   - The generation outside the page is worker.generation (generation.h).
 */
#ifndef SIDFLAKE_LEASE_PAGEFILE_H
#define SIDFLAKE_LEASE_PAGEFILE_H

#include "lease/generation.h"
#include "lease/mapguard.h"
#include "lease/page.h"

struct pagefile {
    struct page *page; /* in memory, whole, of this process's home; never NULL once open */
    int fd;            /* -1: memory only, nothing survives the process */
    char *path;        /* of the file, or NULL */
    bool made;         /* the file was not there */
    struct generation generation; /* likewise */

    /* What was there at start. */
    bool found;                /* some page, of whatever worth, or a hidden one */
    enum page_verdict verdict; /* where found */
    struct err why;            /* where found and not PAGE_OWN */
    struct page old;           /* PAGE_FOREIGN: its contents, to be released */
    bool proven;               /* PAGE_OWN, and as the program before left it a moment ago */
};

/* What the program before leaves to this one in the same process (heir.h). */
struct pagefile_left {
    int fd;           /* its file, locked; taken over or closed */
    const void *page; /* its bytes when nobody wrote any more; NULL: some slot was not proven */
};

/* Which file a page is in; both 0: none, it is in memory. */
struct pagefile_place {
    uint64_t device, inode;
};

/* How much hangs on the page. */
enum pagefile_worth {
    PAGEFILE_SAVES_WAITING, /* a coordinator knows what was granted; a broken page costs workerIds
                             */
    PAGEFILE_KNOWS_ALONE,   /* nobody else knows up to when IDs were issued (static:N): a page that
                               does not tell it is an error, and stays */
};

/* dir is made where it is missing (its last component only). coordinator: any text that tells one
 * coordinator and pool from another.
 * ERR_BUSY: another process runs on this directory; the text names its pid and the file.
 * Every other error means that the directory cannot be used; pagefile_memory still can.
 * A start, but for that of a heir, begins a generation where it can: copies of the page of earlier
 * lives are worth nothing from then on.
 * left: the lock goes over with its file, as long as that still is the one in dir; NULL: there is
 * none. */
enum err_code pagefile_inherit(struct pagefile *f, const char *dir, const char *coordinator,
                               enum pagefile_worth worth, const struct pagefile_left *left,
                               struct err *e) MUST_CHECK;

/* Begins a new generation: no state of the page from before is taken over any more. Looks at the
 * disk. On an error the one before goes on; ERR_OK for a page in memory. */
enum err_code pagefile_begin_generation(struct pagefile *f, struct err *e) MUST_CHECK;

/* Reads the page in dir, whoever holds it, and changes nothing. false: there is none that dir's
 * next process could take over. Slots may be half stored. */
bool pagefile_peek(const char *dir, const char *coordinator, struct page *out);

/* Whether pagefile_inherit would succeed if nobody ran on dir, as far as that can be seen without
 * changing anything: whoever runs on it is not disturbed, and no error. */
enum err_code pagefile_test(const char *dir, const char *coordinator, enum pagefile_worth worth,
                            struct err *e) MUST_CHECK;

/* ERR_BUSY, as from pagefile_inherit: the page in dir is not the one at ours, and another process
 * runs on it. Whoever would start on that one in this very moment may be refused. */
enum err_code pagefile_alone(const char *dir, const struct pagefile_place *ours,
                             struct err *e) MUST_CHECK;

/* A page that ends with the process. hidden: there may be one of an earlier process all the same,
 * which cannot be read. */
enum err_code pagefile_memory(struct pagefile *f, bool hidden, struct err *e) MUST_CHECK;

/* From here on a store that the file does not take ends the process (mapguard.h), until f is
 * closed. Does nothing for a page in memory. */
void pagefile_guard(const struct pagefile *f);

/* Whether the next process will find the page: false where the file is not at its path any more,
 * has another length, or has been written to by others; why says which. Looks at the disk. */
bool pagefile_stands(const struct pagefile *f, struct err *why);

/* Unmaps and unlocks; the file stays. */
void pagefile_close(struct pagefile *f);

#endif
