/*
 * Templates: how a sequence's number is written where people read it, and taken apart again.
 *
 *   INV-@{date,%Y%m%d}-@{seq,width=5}@{check,damm}        INV-20261122-000417
 *
 *   text --template_parse--> steps, one behind the other --template_write--> a number's text
 *                                                        <--template_read---
 *
 *   @{date,FORMAT}      of %Y %m %d %j %H %M %S: the period's beginning in the sequence's zone
 *   @{seq,width=W,base=B}      the number, in base 10, 16, 32, 36, 58 or 62
 *   @{arg,NAME,width=W,chars=C,default=D}     what the caller said by ?NAME=
 *   @{sub,width=W,chars=C}     @{name}     @{worker,width=W,base=B}     @{rand,width=W,chars=C}
 *   @{ms}               Unix ms, of the clock
 *   @{check,KIND}       a check digit over what stands before (check_digit.h); of=seq: over the
 *                       number's text alone
 *   @@                  an @
 *
 * W is a number of characters, or LEAST..MOST; C is a list of characters and ranges: 0-9A-Z.
 *
 * Invariants
 *   - A template that was taken writes no text twice: the text determines period and number, and
 *     the sub where there is @{sub}. Without it, texts are unique for each sub.
 *   - For that a part of variable width ends where the text does, or at a fixed distance from
 *     there, or else at a literal whose first character neither it nor what comes next can have;
 *     date parts tell the period; numbers are not negative and do not come round again.
 *   - No text is ever cut, or longer than a part's width: what does not fit is an error.
 *   - Nothing is allocated, no clock is read. A struct template may be copied.
 *
 * A template, and what it writes, is printable ASCII without spaces.
 *
 * Sources: strftime(3), of which the C locale's form is taken; check_digit.h has those of the
 * check digits; base 32 is Crockford's, base 58 Bitcoin's.
 */
#ifndef SIDFLAKE_IDS_TEMPLATE_H
#define SIDFLAKE_IDS_TEMPLATE_H

#include "base/err.h"
#include "base/rng.h"
#include "base/span.h"
#include "ids/check_digit.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEMPLATE_TEXT_MAX   255 /* bytes of a template as it is defined, without NUL */
#define TEMPLATE_OUT_MAX    250 /* bytes of what it writes: a key of memcached */
#define TEMPLATE_STEPS      32
#define TEMPLATE_PERIOD_MAX 14 /* bytes of a period's label, NUL included */
#define TEMPLATE_NUMBER_MAX ((INT64_C(1) << 53) - 1)

/* When the sequence begins anew, with the values of enum period_reset (coord/period.h). */
enum template_reset {
    TEMPLATE_NEVER,
    TEMPLATE_HOUR,
    TEMPLATE_DAY,
    TEMPLATE_MONTH,
    TEMPLATE_YEAR,
    TEMPLATE_RESETS
};

/* What of the sequence's definition matters. */
struct template_frame {
    struct span name; /* 1..64 of letters, digits, '_', '.' and '-' */
    enum template_reset reset;
    bool subs, cycle;
    int64_t first, last; /* numbers: its start and its max, whichever is higher */
};

/* ASCII characters, one bit each. */
struct template_chars {
    uint64_t low, high;
};

enum template_kind {
    TEMPLATE_LITERAL,
    TEMPLATE_YEARS, /* of date: */
    TEMPLATE_MONTHS,
    TEMPLATE_DAYS,
    TEMPLATE_YEARDAYS,
    TEMPLATE_HOURS,
    TEMPLATE_SEQ,
    TEMPLATE_ARG,
    TEMPLATE_SUB,
    TEMPLATE_WORKER,
    TEMPLATE_MS,
    TEMPLATE_RAND,
    TEMPLATE_CHECK,
    TEMPLATE_KINDS
};

struct template_step {
    uint8_t kind;        /* enum template_kind */
    uint8_t least, most; /* characters that it writes */
    uint8_t base;        /* SEQ, WORKER */
    uint8_t of;          /* CHECK: the step of SEQ that it is over; TEMPLATE_STEPS: all before */
    uint8_t text_n;      /* bytes in struct template.text: LITERAL, ARG's name */
    uint8_t default_n;   /* ARG: behind the name; 0: there is none */
    uint16_t text;       /* where they begin */
    struct template_chars chars; /* that it can write; LITERAL: none */
    struct check_digit check;    /* CHECK */
};

/* The members are this module's own. */
struct template
{
    uint8_t n;
    bool takes_args; /* there is @{arg} */
    bool has_sub;    /* there is @{sub} */
    bool has_worker; /* there is @{worker} */
    bool has_rand;   /* there is @{rand} */
    uint8_t reset;   /* enum template_reset */
    uint8_t flex;    /* the last step of variable width; n: there is none */
    uint8_t longest; /* bytes, of any number */
    int64_t last_number;
    struct template_step step[TEMPLATE_STEPS];
    char text[TEMPLATE_TEXT_MAX + TEMPLATE_OUT_MAX]; /* literals, arguments' names and defaults */
};

/* ERR_INVALID: it is none, or could write one text twice; ERR_RANGE: something of it is too long,
 * too wide or too much. *e says what was expected and what was found, and *t is unspecified. */
enum err_code template_parse(struct template *t, struct span text, const struct template_frame *of,
                             struct err *e) MUST_CHECK;

/* Bytes of the longest text for numbers up to last, 0..TEMPLATE_NUMBER_MAX. */
size_t template_longest(const struct template *t, int64_t last);

/* The largest number that its width takes; TEMPLATE_NUMBER_MAX: any. */
int64_t template_last_number(const struct template *t);

/* Whether no text of a is one of b: a literal at a fixed place, counted from the beginning or from
 * the end, differs in more than case. */
bool template_apart(const struct template *a, const struct template *b);

/* What is written. Spans and random source are the caller's, and are not kept. */
struct template_values {
    int64_t number;
    const char *period; /* label of the period that the number is of, as coord/period.h has it, in
                           the form that is the reset's; "": there are none */
    struct span sub;    /* empty: none */
    int32_t worker;     /* workerId; -1: none is held */
    int64_t now_ms;     /* Unix ms */
    struct rng *rng;
    struct span args; /* "area=010&unit=6541", without percent-encoding; empty: none */
};

/* Whether arguments, sub and worker fit, so that no number is spent on what can't be written;
 * number and period are not looked at. Errors are those of template_write. */
enum err_code template_check(const struct template *t, const struct template_values *v,
                             struct err *e) MUST_CHECK;

/* Writes to out, which has room bytes, without NUL; returns how many, or 0 and *e:
 *   ERR_INVALID    the caller's arguments or sub are not what the template wants
 *   ERR_RANGE      the number, the workerId or the time is too large for its width, or room is less
 *                  than the longest text has: TEMPLATE_OUT_MAX is always enough
 *   ERR_NOT_FOUND  no workerId is held
 * The argument "date" is passed over: it has told which counter is meant. */
size_t template_write(const struct template *t, const struct template_values *v, char *out,
                      size_t room, struct err *e);

/* "date", "n", "block", "sub": no argument of a template has such a name. */
bool template_is_reserved(struct span name);

struct template_part {
    enum template_kind kind;
    struct span name; /* ARG: its name, in the template; else empty */
    struct span text; /* in what was read */
    uint64_t value;   /* WORKER: the workerId; MS: Unix ms; else 0 */
};

/* A text taken apart. Spans end with the text and the template. */
struct template_reading {
    int64_t number;
    char period[TEMPLATE_PERIOD_MAX]; /* "": the sequence has none */
    struct span sub;                  /* empty: the template has none */
    unsigned n;
    struct template_part part[TEMPLATE_STEPS]; /* without literals */
};

/* ERR_INVALID: it is no text of this template; ERR_CORRUPT: a check digit is wrong. *e says what
 * was expected where, and what was found; *out is unspecified then. */
enum err_code template_read(const struct template *t, struct span text,
                            struct template_reading *out, struct err *e) MUST_CHECK;

/* "date", "seq", ...: the part that a step was written for, a literal. */
const char *template_kind_name(enum template_kind k);

#endif
