/*
 * The heir: a program that takes the place of another in its process (upgrade.h), and what that one
 * left to it.
 *
 *   SIDFLAKE_PARCEL=N   descriptor of a sealed memory file with a parcel (base/parcel.h)
 *
 * Invariants
 *   - Only what this process, or in a rehearsal its parent, has written and sealed is believed.
 *   - Whatever the parcel says, a workerId is issued from only as the page says (lease/pagefile.h).
 */
#ifndef SIDFLAKE_DAEMON_HEIR_H
#define SIDFLAKE_DAEMON_HEIR_H

#include "auth/users.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/parcel.h"
#include "conf/conf.h"
#include "lease/blockfile.h"
#include "lease/pagefile.h"

#define HEIR_ENV    "SIDFLAKE_PARCEL"
#define HEIR_AGREES "takes over: 1" /* the last line of a rehearsal that went well */

enum heir_state {
    HEIR_NONE,      /* nothing was left */
    HEIR_REHEARSES, /* run with -t by the program that asks */
    HEIR_TAKES,
};

struct heir {
    enum heir_state state;
    struct err why;      /* code not ERR_OK: something was left that cannot be used */
    struct span whole;   /* mapped; empty: nothing */
    struct span records; /* in it */
    struct pagefile_left page;
    struct pagefile_place place; /* in a rehearsal: of the page of the program that asks */
    bool placed;                 /* which has said so */
    struct blockfile_left blocks;
    struct span logins; /* for auth_unpack, in it */
    char version[32];   /* of the program that left it */
    int64_t left_us;    /* monotonic: when that one served last */
};

/* Reads the environment and takes the variable out of it, so that no child inherits it. */
void heir_init(struct heir *h);
void heir_clear(struct heir *h);

/* A file was right a moment ago, and there is no program to go back to: one that is written over
 * just now is whole again soon. Waits a little and is true, where h takes over and tries, 0 at the
 * first, are left: read it again. */
bool heir_waits(const struct heir *h, unsigned *tries);

/* users_load so; again too where it names nobody, which is how a file begins that is written over.
 */
enum err_code heir_users(const struct heir *h, const char *path, struct users *u,
                         struct err *e) MUST_CHECK;

/* The signals that wait while there is nobody to handle them may come: they were blocked before the
 * program was run (heir_block). */
void heir_signals(void);
void heir_block(void);

/* In a rehearsal: an error where the page in the state_dir of c holds workerIds of another epoch or
 * layout than c asks for, or than can have so many active ones: they would be taken over, and be of
 * no use. owner: as pagefile_inherit's coordinator. */
enum err_code heir_check_space(const struct conf *c, const char *owner, struct err *e) MUST_CHECK;

/* In a rehearsal: ERR_BUSY where another process than the one that asks runs on state_dir, which
 * the heir could not do then. */
enum err_code heir_check_page(const struct heir *h, const char *state_dir,
                              struct err *e) MUST_CHECK;

/* For a rehearsal: which file the state page is; -1: it is in memory. A program that does not know
 * the record passes over it. */
void heir_put_place(struct buf *parcel, int fd);

/* The records about the program that writes, for upgrade.c. page: with its proof, or NULL bytes. */
void heir_put(struct buf *parcel, const struct pagefile_left *page, int64_t left_us);

/* That of the state page of sequences; one that is not known is not written. A program that knows
 * no sequences passes over it. */
void heir_put_blocks(struct buf *parcel, const struct blockfile_left *left);

#endif
