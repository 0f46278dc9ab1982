#include "base/json.h"

void json_put_char(struct buf *b, char c)
{
    static const char hex[] = "0123456789abcdef";
    unsigned char u = (unsigned char)c;
    if (c == '"' || c == '\\')
        buf_put_char(b, '\\');
    if (u >= 0x20 && u < 0x7f) {
        buf_put_char(b, c);
        return;
    }
    BUF_PUT_LIT(b, "\\u00");
    buf_put_char(b, hex[u >> 4]);
    buf_put_char(b, hex[u & 15]);
}

void json_put_string(struct buf *b, struct span s)
{
    buf_put_char(b, '"');
    for (size_t i = 0; i < s.n; i++)
        json_put_char(b, s.p[i]);
    buf_put_char(b, '"');
}
