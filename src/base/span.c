#include "base/span.h"

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

bool span_eq_nocase(struct span a, struct span b)
{
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++)
        if (lower(a.p[i]) != lower(b.p[i]))
            return false;
    return true;
}

struct span span_cut(struct span *rest, char sep)
{
    struct span head = *rest;
    const char *end = rest->n ? memchr(rest->p, sep, rest->n) : NULL;
    if (end) {
        head.n = (size_t)(end - rest->p);
        *rest = span_skip(*rest, head.n + 1);
    } else {
        *rest = (struct span){NULL, 0};
    }
    return head;
}
