#include "base/hex.h"

int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool hex_put_unescaped(struct buf *out, struct span s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] != '%') {
            buf_put_char(out, s.p[i]);
            continue;
        }
        int high = s.n - i > 2 ? hex_digit(s.p[i + 1]) : -1;
        int low = high >= 0 ? hex_digit(s.p[i + 2]) : -1;
        if (low < 0)
            return false;
        buf_put_char(out, (char)(high << 4 | low));
        i += 2;
    }
    return true;
}
