/*
 * A parcel: what a program leaves to the one that takes its place in the same process (execve(2)).
 *
 *   | magic | version | purpose | pid | record | record | ...
 *                                     | kind | descriptor or -1 | bytes of body | body ... |
 *
 * Pure: bytes in a buffer, no descriptor is touched here.
 *
 * Invariants
 *   - Numbers have 8 bytes in the order of the machine: a parcel never leaves it.
 *   - The head, and the heads of records, are the same in all versions: a reader that does not know
 *     a kind can still close the descriptor.
 *   - A reader takes nothing on trust, and reads nothing outside of what it was given.
 */
#ifndef SIDFLAKE_BASE_PARCEL_H
#define SIDFLAKE_BASE_PARCEL_H

#include "base/buf.h"

#define PARCEL_VERSION 3u
#define PARCEL_MAX     ((size_t)64 << 20) /* bytes of a whole one: what does not fit is not carried */

enum parcel_purpose {
    PARCEL_TAKE,     /* the reader is what runs on */
    PARCEL_REHEARSE, /* the reader only says whether it could; there are no descriptors */
};

enum parcel_kind {
    PARCEL_LISTENER = 1, /* written and read by net/carry.c, as are … */
    PARCEL_CONNECTION,   /* … these */
    PARCEL_PAGE,         /* the state page's file and its bytes: heir.h */
    PARCEL_STORY,        /* who left it, and when: heir.h */
    /* 5 is a link of 0.1.0, which nobody else reads */
    PARCEL_LOGINS = 6, /* passwords that are known, as digests: auth/auth.h */
    PARCEL_LINK,       /* of the connection before it, to its server: net/carry.c */
    PARCEL_BLOCKS,     /* what proves the state page of sequences: heir.h */
    PARCEL_PLACE,      /* in a rehearsal, where the state page is: heir.h */
    PARCEL_LOST,       /* a connection that cannot be carried, to be closed: net/carry.c */
    PARCEL_REACHED,    /* which address of a name that has several: net/carry.c */
};

struct parcel_head {
    uint64_t version;
    uint64_t purpose; /* enum parcel_purpose */
    uint64_t pid;     /* of whoever wrote it */
};

struct parcel_record {
    uint64_t kind; /* enum parcel_kind, or one of a later version */
    int fd;        /* -1: none */
    struct span body;
};

/* ---- writing: a buffer too small fails, and stays so (base/buf.h) */

void parcel_put_head(struct buf *b, enum parcel_purpose purpose, uint64_t pid);

/* What is put from here to the parcel_end with its result is the record's body. */
size_t parcel_begin(struct buf *b, enum parcel_kind kind, int fd);
void parcel_end(struct buf *b, size_t begun);

void parcel_put_u64(struct buf *b, uint64_t v);
void parcel_put_bytes(struct buf *b, struct span s);

/* ---- reading: each takes from the front of *in; false: it is not there, and *in is not to be read
 * on */

/* Any version is read, as long as it is a parcel. */
bool parcel_head(struct span *in, struct parcel_head *out);
bool parcel_next(struct span *in, struct parcel_record *out);
bool parcel_get_u64(struct span *in, uint64_t *v);

/* A number of at most max. */
bool parcel_get_upto(struct span *in, uint64_t max, uint64_t *v);

/* *out points into *in. */
bool parcel_get_bytes(struct span *in, struct span *out);

#endif
