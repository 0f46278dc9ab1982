/*
 * A record in memory that outlives the process: two copies, and a commit that says which of them
 * counts, so that who is killed at any instant leaves the old one or the new one behind.
 *
 *   | version | … | check |   | version | … | check |     commit: a mark (base/mark.h), the version
 *     copy 0                    copy 1                    of the copy that counts; 0: none yet
 *
 * A copy is `size` bytes without padding: its first 8 are the version, its last 4 the FNV-1a of all
 * before them. Two of them stand next to each other. One thread stores; who maps it next loads.
 */
#ifndef SIDFLAKE_LEASE_PAIR_H
#define SIDFLAKE_LEASE_PAIR_H

#include <stddef.h>
#include <stdint.h>

/* Of a struct with these two members, and no padding. */
#define PAIR_COPY(type)                                                                            \
    _Static_assert(offsetof(type, version) == 0 && sizeof(((type *)0)->version) == 8 &&            \
                       offsetof(type, check) + 4 == sizeof(type),                                  \
                   "a copy of a pair")

/* The copy that counts; NULL: there is none, or it is damaged. */
const void *pair_current(const volatile uint64_t *commit, const void *copies, size_t size);

/* The copy that does not count, to be filled in: all 0 but for its version. */
void *pair_begin(const volatile uint64_t *commit, void *copies, size_t size);

/* What pair_begin returned counts from now on, and after all that was stored before. */
void pair_commit(volatile uint64_t *commit, void *copy, size_t size);

#endif
