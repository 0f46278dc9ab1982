/*
 * Hashes of passwords, as they stand in a users file:
 *
 *     $argon2id$v=19$m=19456,t=2,p=1$SALT$HASH      RFC 9106, in the PHC string format
 *     $5$[rounds=N$]SALT$HASH, $6$...               SHA-256 and SHA-512 of crypt(5)
 *
 * Invariants
 *   - secret_matches is slow on purpose (milliseconds to seconds) and never called by the loop.
 *   - What a hash may cost is bounded by secret_well_formed: SECRET_KIB_MAX of memory, about two
 *     seconds of one processor.
 *   - Comparisons take as long for any bytes.
 */
#ifndef SIDFLAKE_AUTH_SECRET_H
#define SIDFLAKE_AUTH_SECRET_H

#include "base/err.h"
#include "base/rng.h"
#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SECRET_HASH_MAX     255          /* bytes of a hash's text */
#define SECRET_PASSWORD_MAX 511          /* bytes of a password: what crypt(3) takes */
#define SECRET_KIB_MAX      (256u << 10) /* of memory for one check */
#define SECRET_WORK_MAX     (1u << 20)   /* KiB times passes */
#define SECRET_DIGEST       32           /* bytes */

#define SECRET_FORMS "$argon2id$v=19$m=KIB,t=N,p=N$SALT$HASH, $5$SALT$HASH or $6$SALT$HASH"

/* Whether hash is of a form above, within its bounds: m 8..SECRET_KIB_MAX, t 1..16, their product
 * up to SECRET_WORK_MAX, p 1..16, rounds 1000..1000000. */
bool secret_well_formed(struct span hash);

/* hash: well-formed. false also where the memory for it cannot be had. Any thread. */
bool secret_matches(const char *hash, struct span password);

/* A new argon2id hash of the password, with a salt from rng. ERR_NOMEM. */
enum err_code secret_make(char out[SECRET_HASH_MAX + 1], struct span password, struct rng *rng,
                          struct err *e) MUST_CHECK;

/* A digest of name and password under a key, fit to remember that they were checked. Fast: tens of
 * microseconds. false: no memory. */
bool secret_digest(const uint8_t key[SECRET_DIGEST], struct span name, struct span password,
                   uint8_t out[SECRET_DIGEST]);

bool secret_equal(const void *a, const void *b, size_t n);

#endif
