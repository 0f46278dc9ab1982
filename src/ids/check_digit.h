/*
 * Check digits: what is written behind a number, so that a slip in reading or typing it shows.
 *
 *     name            is            it is over        catches of slips in one number, swaps
 *                                                     being of neighbours
 *     luhn            0-9           0-9               one wrong digit; nearly all swaps
 *     gs1             0-9           0-9               one wrong digit; most swaps
 *     damm            0-9           0-9               one wrong digit; all swaps
 *     verhoeff        0-9           0-9               the same
 *     mod11-2         0-9 X         0-9               the same
 *     mod37-2         0-9 A-Z *     0-9 A-Z           the same
 *     mod97-10        two of 0-9    0-9 A-Z           the same, and nearly all others
 *     linear,a,b,c    digits        0-9               n × a mod b mod c, with zeros before it
 *
 * Whatever else stands in a text is passed over, so that INV-417 and 417 have the same one by damm,
 * and not by mod37-2.
 *
 * Pure.
 *
 * Sources: ISO/IEC 7812-1 annex B (luhn); GS1 General Specifications 7.9 (gs1); ISO/IEC 7064:2003
 * (mod11-2, mod37-2, mod97-10; letters are 10..35); H. M. Damm, "Total anti-symmetrische
 * Quasigruppen", Marburg 2004 (damm); J. Verhoeff, "Error Detecting Decimal Codes", Amsterdam 1969
 * (verhoeff).
 */
#ifndef SIDFLAKE_IDS_CHECK_DIGIT_H
#define SIDFLAKE_IDS_CHECK_DIGIT_H

#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHECK_DIGIT_WIDTH      9          /* characters, at most */
#define CHECK_DIGIT_FACTOR_MAX 1000000000 /* of linear: a, b and c are 1.. */

enum check_kind {
    CHECK_LUHN,
    CHECK_GS1,
    CHECK_DAMM,
    CHECK_VERHOEFF,
    CHECK_MOD11_2,
    CHECK_MOD37_2,
    CHECK_MOD97_10,
    CHECK_LINEAR,
    CHECK_KINDS
};

struct check_digit {
    enum check_kind kind;
    uint32_t a, b, c; /* of linear; else 0 */
};

/* "luhn", ...; linear alone has factors, which are the caller's to fill in. */
bool check_kind_parse(struct span name, enum check_kind *out);
const char *check_kind_name(enum check_kind k);

/* Whether it is over letters, too. */
bool check_digit_takes_letters(const struct check_digit *c);

/* Characters of it, 1..CHECK_DIGIT_WIDTH. */
size_t check_digit_width(const struct check_digit *c);

/* The characters that it can be, NUL-terminated. */
const char *check_digit_alphabet(const struct check_digit *c);

/* Writes that of text to out, which has room for check_digit_width. */
void check_digit_write(const struct check_digit *c, struct span text, char *out);

/* The same in two parts, for texts that begin alike. *state is what the beginning comes to, if it
 * can be told without the rest; false: it can't. */
bool check_digit_begin(const struct check_digit *c, struct span beginning, uint64_t *state);
void check_digit_end(const struct check_digit *c, uint64_t state, struct span rest, char *out);

#endif
