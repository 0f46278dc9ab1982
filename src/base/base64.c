#include "base/base64.h"

static int digit(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

static size_t digits_of(struct span s)
{
    while (s.n > 0 && s.p[s.n - 1] == '=')
        s.n--;
    return s.n;
}

void base64_put_encoded(struct buf *out, struct span s)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < s.n; i += 3) {
        size_t n = s.n - i < 3 ? s.n - i : 3;
        uint32_t bits = 0;
        for (size_t k = 0; k < 3; k++)
            bits = bits << 8 | (k < n ? (unsigned char)s.p[i + k] : 0);
        for (size_t k = 0; k < 4; k++)
            buf_put_char(out, k <= n ? digits[bits >> (18 - 6 * k) & 63] : '=');
    }
}

bool base64_put_decoded(struct buf *out, struct span s)
{
    uint32_t bits = 0;
    unsigned held = 0;
    s.n = digits_of(s);
    for (size_t i = 0; i < s.n; i++) {
        int d = digit(s.p[i]);
        if (d < 0)
            return false;
        bits = bits << 6 | (uint32_t)d;
        held += 6;
        if (held < 8)
            continue;
        held -= 8;
        buf_put_char(out, (char)(bits >> held & 0xff));
    }
    return !out->failed;
}

bool base64_is_canonical(struct span s)
{
    size_t n = digits_of(s), pad = s.n - n;
    if (s.n % 4 != 0 || pad > 2)
        return false;
    return pad == 0 || ((unsigned)digit(s.p[n - 1]) & ((1u << 2 * pad) - 1)) == 0;
}
