#include "conf/text.h"

#include "base/buf.h"
#include "base/utf8.h"
#include "conf/conf.h"

#include <stdint.h>

#define SECRET "***"

bool conf_text_clean(struct span s)
{
    uint32_t r;
    while (s.n > 0)
        if (!utf8_take(&s, &r) || r < 0x20 || (r >= 0x7f && r <= 0x9f))
            return false;
    return true;
}

bool conf_text_graphic(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < 0x21 || s.p[i] > 0x7e)
            return false;
    return true;
}

/* What follows "://", or all of s. */
static struct span after_scheme(struct span s)
{
    const char *mark = s.n ? memmem(s.p, s.n, "://", 3) : NULL;
    return mark ? span_skip(s, (size_t)(mark + 3 - s.p)) : s;
}

/* From the first ':' to the last '@': people forget to escape one. */
static struct span password_in(struct span s)
{
    const char *at = s.n ? memrchr(s.p, '@', s.n) : NULL;
    const char *colon = at ? memchr(s.p, ':', (size_t)(at - s.p)) : NULL;
    return colon ? span_of(colon + 1, (size_t)(at - colon) - 1) : span_of(NULL, 0);
}

struct span conf_text_password(struct span url)
{
    struct span rest = after_scheme(url);
    if (rest.n == url.n || rest.n == 0 || rest.p[0] == '/')
        return span_of(NULL, 0);
    return password_in(rest);
}

const char *conf_text_name(const char *name)
{
    size_t n = strlen(name);
    return n > CONF_TEXT_NAME_MAX ? name + n - CONF_TEXT_NAME_MAX : name;
}

void conf_text_put_yaml(struct span s, FILE *out)
{
    uint32_t r;
    (void)fputc('"', out);
    while (s.n > 0 && utf8_take(&s, &r)) {
        if (r == '"' || r == '\\')
            (void)fprintf(out, "\\%c", (int)r);
        else if (r >= 0x20 && r < 0x7f)
            (void)fputc((int)r, out);
        else
            (void)fprintf(out, "\\U%08X", r);
    }
    (void)fputc('"', out);
}

static void put_escaped(struct buf *b, char c)
{
    if (c == '"' || c == '\\')
        buf_put_char(b, '\\');
    if (c >= 0x20 && c < 0x7f)
        buf_put_char(b, c);
    else
        buf_printf(b, "\\x%02x", (unsigned)(unsigned char)c);
}

char *conf_quote(char out[CONF_QUOTE_MAX], struct span s)
{
    struct buf b;
    struct span secret = password_in(after_scheme(s)); /* s need not be a good URL */
    buf_init(&b, out, CONF_QUOTE_MAX - sizeof "...\"");
    buf_put_char(&b, '"');
    size_t good = b.n;
    for (size_t i = 0; i < s.n && !b.failed; i++) {
        if (secret.n && s.p + i == secret.p) {
            BUF_PUT_LIT(&b, SECRET);
            i += secret.n;
        }
        good = b.failed ? good : b.n;
        put_escaped(&b, s.p[i]);
    }
    bool cut = b.failed;
    if (cut)
        buf_truncate(&b, good);
    const char *end = cut ? "...\"" : "\"";
    memcpy(out + b.n, end, strlen(end) + 1);
    return out;
}
