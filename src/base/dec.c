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

static const char pairs[] = "00010203040506070809"
                            "10111213141516171819"
                            "20212223242526272829"
                            "30313233343536373839"
                            "40414243444546474849"
                            "50515253545556575859"
                            "60616263646566676869"
                            "70717273747576777879"
                            "80818283848586878889"
                            "90919293949596979899";

static void put_pair(char *out, uint32_t v)
{
    memcpy(out, pairs + 2 * (size_t)v, 2);
}

/* Exactly eight digits; v < 10^8. 32-bit divisions by a constant are one multiplication each. */
static void put_eight(char *out, uint32_t v)
{
    uint32_t high = v / 10000, low = v % 10000;
    put_pair(out, high / 100);
    put_pair(out + 2, high % 100);
    put_pair(out + 4, low / 100);
    put_pair(out + 6, low % 100);
}

/* As many digits as v < 10^8 has. */
static size_t put_head(char *out, uint32_t v)
{
    char tmp[8];
    size_t skip = 0;
    put_eight(tmp, v);
    while (skip < 7 && tmp[skip] == '0')
        skip++;
    memcpy(out, tmp + skip, 8 - skip);
    return 8 - skip;
}

/* An ID has 18 or 19 digits: a short head, then eight and eight. */
size_t dec_put_u64(char *out, uint64_t v)
{
    const uint32_t e8 = 100000000;
    if (v < e8)
        return put_head(out, (uint32_t)v);
    uint64_t high = v / e8;
    size_t n = 0;
    if (high < e8) {
        n = put_head(out, (uint32_t)high);
    } else {
        n = put_head(out, (uint32_t)(high / e8));
        put_eight(out + n, (uint32_t)(high % e8));
        n += 8;
    }
    put_eight(out + n, (uint32_t)(v % e8));
    return n + 8;
}
