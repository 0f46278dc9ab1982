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

/* Two digits at a time from the right into a scratch area, then one copy: an ID has 18 or 19
 * digits, so nine divisions by a constant (which compilers turn into multiplications). */
size_t dec_put_u64(char *out, uint64_t v)
{
    char tmp[DEC_U64_MAX];
    char *p = tmp + sizeof tmp;
    while (v >= 100) {
        p -= 2;
        memcpy(p, pairs + 2 * (v % 100), 2);
        v /= 100;
    }
    if (v >= 10) {
        p -= 2;
        memcpy(p, pairs + 2 * v, 2);
    } else {
        *--p = (char)('0' + v);
    }
    size_t n = (size_t)(tmp + sizeof tmp - p);
    memcpy(out, p, n);
    return n;
}
