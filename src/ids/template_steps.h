/*
 * What those who make, write and read templates share: sets of characters, and how single values
 * look.
 *
 * Pure.
 */
#ifndef SIDFLAKE_IDS_TEMPLATE_STEPS_H
#define SIDFLAKE_IDS_TEMPLATE_STEPS_H

#include "ids/template.h"

#define TEMPLATE_BASE_EXPECTED "10, 16, 32, 36, 58 or 62"

static inline bool template_is_printable(char c)
{
    return c > ' ' && c <= '~';
}

static inline bool template_chars_has(const struct template_chars *set, char c)
{
    unsigned u = (unsigned char)c;
    return u < 128 && ((u < 64 ? set->low : set->high) >> u % 64 & 1) != 0;
}

static inline void template_chars_add(struct template_chars *set, char c)
{
    unsigned u = (unsigned char)c;
    *(u < 64 ? &set->low : &set->high) |= UINT64_C(1) << u % 64;
}

/* Of a NUL-terminated list. */
struct template_chars template_chars_of(const char *list);

/* The digits of a base, or NULL: it is none that there is. */
const char *template_alphabet(unsigned base);

/* Digits of v in a base that there is. */
unsigned template_digits(uint64_t v, unsigned base);

/* Writes v, in n digits; false: they are not enough. */
bool template_put_number(char *out, size_t n, uint64_t v, unsigned base);

/* What is written of a period, by its label, which has as many bytes as its reset wants. */
void template_put_date(char *out, enum template_kind field, const char *label);

/* Bytes of a label of such a period. */
size_t template_label_length(enum template_reset reset);

/* Day 1..366 of a year; month 1..12 or 13, day from 1. */
unsigned template_year_day(unsigned year, unsigned month, unsigned day);

/* Two digits, and more, as a number. */
unsigned template_digits_at(const char *p, size_t n);

#define TEMPLATE_MS_WIDTH 13 /* up to the year 2286 */

/* Whether a text has the width and the characters of a step. */
bool template_fits(const struct template_step *s, struct span text);

/* Of steps that have been parsed: refuses what could write one text twice, and fills in what is
 * known of all of them. Errors as template_parse. */
enum err_code template_unique(struct template *t, const struct template_frame *of,
                              struct err *e) MUST_CHECK;

static inline struct span template_step_text(const struct template *t,
                                             const struct template_step *s)
{
    return span_of(t->text + s->text, s->text_n);
}

#endif
