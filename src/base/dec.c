#include "base/dec.h"

#include <string.h>

bool dec_u64(struct span s, uint64_t *out)
{
    uint64_t v = 0;
    if (s.n == 0)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        unsigned digit = (unsigned)(unsigned char)s.p[i] - '0';
        if (digit > 9 || __builtin_mul_overflow(v, 10u, &v) ||
            __builtin_add_overflow(v, (uint64_t)digit, &v))
            return false;
    }
    *out = v;
    return true;
}

bool dec_i64(struct span s, int64_t *out)
{
    bool minus = s.n > 0 && s.p[0] == '-';
    uint64_t v;
    if (!dec_u64(minus ? span_skip(s, 1) : s, &v) || v > (uint64_t)INT64_MAX + (minus ? 1 : 0))
        return false;
    *out = minus ? (int64_t)(0 - v) : (int64_t)v;
    return true;
}

bool dec_canonical_i64(struct span s, int64_t *out)
{
    size_t first = s.n > 0 && s.p[0] == '-';
    bool zero_led = s.n > first && s.p[first] == '0';
    if (zero_led && s.n > 1)
        return false;
    return dec_i64(s, out);
}

/* Decimal digits as bytes 0..9, the first in the lowest byte: a number is halved into lanes of four
 * digits, those into lanes of two, those into lanes of one, all lanes at once. / 100 and / 10 are a
 * multiplication and a shift each, exact in their range; no lane spills into the next. */
static uint64_t split_fours(uint64_t fours)
{
    uint64_t hundreds = fours * 10486 >> 20 & UINT64_C(0x0000007f0000007f);
    uint64_t twos = hundreds | (fours - hundreds * 100) << 16;
    uint64_t tens = twos * 103 >> 10 & UINT64_C(0x000f000f000f000f);
    return tens | (twos - tens * 10) << 8;
}

/* v < 10^8 */
static uint64_t eight_digits(uint32_t v)
{
    return split_fours(v / 10000 | (uint64_t)(v % 10000) << 32);
}

/* The lowest byte first, on any machine. */
static void store(char *out, uint64_t bytes)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    bytes = __builtin_bswap64(bytes);
#endif
    memcpy(out, &bytes, sizeof bytes);
}

#define ASCII_ZEROS UINT64_C(0x3030303030303030)

void dec_put_eight(char *out, uint32_t v)
{
    store(out, eight_digits(v) | ASCII_ZEROS);
}

/* The last `width` digits without leading zeros, one at least; writes eight bytes all the same, of
 * which the surplus is to be overwritten. */
static size_t put_head(char *out, uint64_t digits, unsigned width)
{
    unsigned skip = (unsigned)__builtin_ctzll(digits | UINT64_C(1) << 8 * (width - 1)) / 8;
    store(out, (digits | ASCII_ZEROS) >> 8 * skip);
    return width - skip;
}

/* An ID has 18 or 19 digits: a head of up to four, then eight and eight. */
size_t dec_put_u64(char *out, uint64_t v)
{
    const uint32_t e8 = 100000000;
    char few[8];
    size_t n;
    if (v < e8) {
        n = put_head(few, eight_digits((uint32_t)v), 8);
        memcpy(out, few, n);
        return n;
    }
    uint64_t high = v / e8;
    if (high < e8) {
        n = put_head(out, eight_digits((uint32_t)high), 8);
    } else {
        n = put_head(out, split_fours(high / e8), 4);
        dec_put_eight(out + n, (uint32_t)(high % e8));
        n += 8;
    }
    dec_put_eight(out + n, (uint32_t)(v % e8));
    return n + 8;
}
