/*
 * Who may have IDs, of which names, and what of the servers behind: the users file.
 *
 *     # NAME:HASH[:names=GLOB,...][:upstream=none|read|all][:keys=GLOB,...]
 *     orders:$argon2id$v=19$m=19456,t=2,p=1$...$...:names=orders,invoice-*
 *     web:$argon2id$v=19$m=19456,t=2,p=1$...$...:upstream=read:keys=page:*
 *
 * Invariants
 *   - All or nothing: a file with one wrong line, or without an end to its last, gives no users.
 *   - Errors name the place, NAME:LINE:COLUMN, and never show a hash.
 */
#ifndef SIDFLAKE_AUTH_USERS_H
#define SIDFLAKE_AUTH_USERS_H

#include "auth/secret.h"

#define USERS_MAX      1024u
#define USERS_NAME_MAX 64u        /* bytes */
#define USERS_FILE_MAX (1u << 20) /* bytes */
#define USERS_GLOB_MAX 256u       /* bytes of one pattern */

enum user_upstream {
    USER_NONE, /* nothing of the servers behind */
    USER_READ, /* commands that read values by their keys */
    USER_ALL,
};

struct user {
    const char *name;  /* 1..USERS_NAME_MAX bytes of printable ASCII without spaces and ':' */
    const char *hash;  /* secret_well_formed */
    struct span terms; /* HASH and what follows it in the line, with NUL for the first ':' */
    struct span names; /* patterns of ID names, parted by commas; p is NULL: any name */
    struct span keys;  /* the same of other keys, beside READ and ALL */
    enum user_upstream upstream;
    uint32_t id; /* auth.c: never 0, and another one when the hash is, or he may less */
    bool known;  /* auth.c: digest is that of the right password */
    uint8_t digest[SECRET_DIGEST];
};

struct users {
    struct user *user; /* n of them */
    size_t n;
    char *mem; /* the file's text, which the strings lie in */
};

/* Reads the text of a users file; name stands for it in errors. ERR_INVALID, ERR_RANGE, ERR_NOMEM:
 * u is empty then. */
enum err_code users_read(struct users *u, const char *name, struct span text,
                         struct err *e) MUST_CHECK;

/* The same from a file; "" gives no users. ERR_IO: it cannot be read. ERR_INVALID also: others than
 * its owner may write to it, or its last line has no end. */
enum err_code users_load(struct users *u, const char *path, struct err *e) MUST_CHECK;

void users_clear(struct users *u);

/* Where the first field of those that follow a hash ends, with ':' or with the line. Names may hold
 * ':', before the subs of sequences: it parts fields where WORD= follows. */
size_t users_field_end(struct span line);

/* NULL: there is none of that name. */
struct user *users_find(const struct users *u, struct span name);

/* Whether u has the hash that stands in such terms, and may all that they say. */
bool users_keep(struct span terms, const struct user *u);

#endif
