#include "ids/check_digit.h"

#include <assert.h>

/* What a character counts as: 0..9, letters 10..35; -1: nothing. */
static int value_of(char c, bool letters)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return letters && c >= 'A' && c <= 'Z' ? c - 'A' + 10 : -1;
}

/* ---- from the right ---------------------------------------------------------------------------
 */

static uint64_t luhn(const struct check_digit *c, uint64_t state, struct span s)
{
    (void)c;
    (void)state;
    unsigned sum = 0, factor = 2;
    for (size_t i = s.n; i-- > 0;) {
        int digit = value_of(s.p[i], false);
        if (digit < 0)
            continue;
        unsigned product = (unsigned)digit * factor;
        sum += product / 10 + product % 10;
        factor = 3 - factor;
    }
    return (10 - sum % 10) % 10;
}

static uint64_t gs1(const struct check_digit *c, uint64_t state, struct span s)
{
    (void)c;
    (void)state;
    unsigned sum = 0, factor = 3;
    for (size_t i = s.n; i-- > 0;) {
        int digit = value_of(s.p[i], false);
        if (digit < 0)
            continue;
        sum += (unsigned)digit * factor;
        factor = 4 - factor;
    }
    return (10 - sum % 10) % 10;
}

/* The product of the group of a pentagon's turns, 0..4, and mirrorings, 5..9. */
static unsigned pentagon(unsigned a, unsigned b)
{
    unsigned turned = a < 5 ? a + b % 5 : a + 5 - b % 5;
    return (a < 5) == (b < 5) ? turned % 5 : 5 + turned % 5;
}

static uint64_t verhoeff(const struct check_digit *c, uint64_t state, struct span s)
{
    static const unsigned char permutation[] = {1, 5, 7, 6, 2, 8, 3, 0, 9, 4};
    (void)c;
    (void)state;
    unsigned sum = 0, place = 1;
    for (size_t i = s.n; i-- > 0;) {
        int digit = value_of(s.p[i], false);
        if (digit < 0)
            continue;
        unsigned v = (unsigned)digit;
        for (unsigned k = 0; k < place; k++)
            v = permutation[v];
        sum = pentagon(sum, v);
        place = (place + 1) % 8; /* eight times, the permutation is none */
    }
    return sum < 5 ? (5 - sum) % 5 : sum; /* what undoes it */
}

/* ---- from the left ----------------------------------------------------------------------------
 */

static uint64_t damm(const struct check_digit *c, uint64_t state, struct span s)
{
    /* clang-format off */
    static const unsigned char table[10][10] = {
        {0, 3, 1, 7, 5, 9, 8, 6, 4, 2}, {7, 0, 9, 2, 1, 5, 4, 8, 6, 3},
        {4, 2, 0, 6, 8, 7, 1, 3, 5, 9}, {1, 7, 5, 0, 9, 8, 3, 4, 2, 6},
        {6, 1, 2, 3, 0, 4, 5, 9, 7, 8}, {3, 6, 7, 4, 2, 0, 9, 5, 8, 1},
        {5, 8, 6, 9, 7, 2, 0, 1, 3, 4}, {8, 9, 4, 5, 3, 6, 2, 0, 1, 7},
        {9, 4, 3, 8, 6, 1, 7, 2, 0, 5}, {2, 5, 8, 1, 4, 3, 6, 7, 9, 0},
    };
    /* clang-format on */
    (void)c;
    for (size_t i = 0; i < s.n; i++) {
        int digit = value_of(s.p[i], false);
        if (digit >= 0)
            state = table[state][digit];
    }
    return state;
}

/* ISO 7064's pure systems of radix 2: digit i from the right, which is 1 behind the check's, counts
 * 2^i times, and all of it comes to 1. */
static uint64_t pure(uint64_t sum, struct span s, bool letters, unsigned modulus)
{
    for (size_t i = 0; i < s.n; i++) {
        int v = value_of(s.p[i], letters);
        if (v >= 0)
            sum = (sum + (unsigned)v) * 2 % modulus;
    }
    return sum;
}

static uint64_t mod11_2(const struct check_digit *c, uint64_t state, struct span s)
{
    (void)c;
    return pure(state, s, false, 11);
}

static uint64_t mod37_2(const struct check_digit *c, uint64_t state, struct span s)
{
    (void)c;
    return pure(state, s, true, 37);
}

static unsigned end_mod11_2(const struct check_digit *c, uint64_t sum)
{
    (void)c;
    return (unsigned)(11 + 1 - sum) % 11;
}

static unsigned end_mod37_2(const struct check_digit *c, uint64_t sum)
{
    (void)c;
    return (unsigned)(37 + 1 - sum) % 37;
}

/* The number that the text is, with letters as two digits, and two zeros behind. */
static uint64_t mod97_10(const struct check_digit *c, uint64_t rest, struct span s)
{
    (void)c;
    for (size_t i = 0; i < s.n; i++) { /* cut once it is long: divisions are slow */
        int v = value_of(s.p[i], true);
        if (v >= 0)
            rest = rest * (v < 10 ? 10 : 100) + (unsigned)v;
        if (rest > UINT64_MAX / 1000)
            rest %= 97;
    }
    return rest;
}

static unsigned end_mod97_10(const struct check_digit *c, uint64_t rest)
{
    (void)c;
    return 98 - (unsigned)(rest % 97 * 100 % 97);
}

static uint64_t linear(const struct check_digit *c, uint64_t n, struct span s)
{
    for (size_t i = 0; i < s.n; i++) { /* as above */
        int digit = value_of(s.p[i], false);
        if (digit >= 0)
            n = n * 10 + (unsigned)digit;
        if (n > UINT64_MAX / 100)
            n %= c->b;
    }
    return n;
}

static unsigned end_linear(const struct check_digit *c, uint64_t n)
{
    return (unsigned)(n % c->b * c->a % c->b % c->c);
}
static_assert((uint64_t)CHECK_DIGIT_FACTOR_MAX * CHECK_DIGIT_FACTOR_MAX < UINT64_MAX, "n * a");

/* ---- all of them ------------------------------------------------------------------------------
 */

static unsigned end_same(const struct check_digit *c, uint64_t state)
{
    (void)c;
    return (unsigned)state;
}

#define DIGITS "0123456789"

/* of: what text comes to, behind one that comes to state; 0: nothing. */
static const struct row {
    const char *name, *alphabet;
    uint64_t (*of)(const struct check_digit *c, uint64_t state, struct span text);
    unsigned (*end)(const struct check_digit *c, uint64_t state);
    bool from_right; /* of does not take a state */
    bool letters;
    bool number; /* written as one of digits, not as a character of its alphabet */
} rows[CHECK_KINDS] = {
    [CHECK_LUHN] = {"luhn", DIGITS, luhn, end_same, .from_right = true},
    [CHECK_GS1] = {"gs1", DIGITS, gs1, end_same, .from_right = true},
    [CHECK_DAMM] = {"damm", DIGITS, damm, end_same},
    [CHECK_VERHOEFF] = {"verhoeff", DIGITS, verhoeff, end_same, .from_right = true},
    [CHECK_MOD11_2] = {"mod11-2", DIGITS "X", mod11_2, end_mod11_2},
    [CHECK_MOD37_2] = {"mod37-2", DIGITS "ABCDEFGHIJKLMNOPQRSTUVWXYZ*", mod37_2, end_mod37_2,
                       .letters = true},
    [CHECK_MOD97_10] = {"mod97-10", DIGITS, mod97_10, end_mod97_10, .letters = true,
                        .number = true},
    [CHECK_LINEAR] = {"linear", DIGITS, linear, end_linear, .number = true},
};

bool check_kind_parse(struct span name, enum check_kind *out)
{
    for (enum check_kind k = CHECK_LUHN; k < CHECK_KINDS; k++) {
        if (span_eq(name, span_str(rows[k].name))) {
            *out = k;
            return true;
        }
    }
    return false;
}

const char *check_kind_name(enum check_kind k)
{
    return k < CHECK_KINDS ? rows[k].name : "unknown";
}

bool check_digit_takes_letters(const struct check_digit *c)
{
    return rows[c->kind].letters;
}

const char *check_digit_alphabet(const struct check_digit *c)
{
    return rows[c->kind].alphabet;
}

size_t check_digit_width(const struct check_digit *c)
{
    if (!rows[c->kind].number)
        return 1;
    size_t width = 1;
    unsigned largest = 98;
    if (c->kind == CHECK_LINEAR)
        largest = (c->b < c->c ? c->b : c->c) - 1;
    while (largest /= 10)
        width++;
    return width;
}

bool check_digit_begin(const struct check_digit *c, struct span beginning, uint64_t *state)
{
    const struct row *row = &rows[c->kind];
    *state = row->from_right ? 0 : row->of(c, 0, beginning);
    return !row->from_right;
}

void check_digit_end(const struct check_digit *c, uint64_t state, struct span rest, char *out)
{
    const struct row *row = &rows[c->kind];
    unsigned v = row->end(c, row->of(c, state, rest));
    if (!row->number) {
        *out = row->alphabet[v];
        return;
    }
    for (size_t i = check_digit_width(c); i-- > 0; v /= 10)
        out[i] = (char)('0' + v % 10);
}

void check_digit_write(const struct check_digit *c, struct span text, char *out)
{
    check_digit_end(c, 0, text, out);
}
