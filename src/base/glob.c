#include "base/glob.h"

static unsigned char fold(char c, bool nocase)
{
    return (unsigned char)(nocase && c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

/* The class that begins behind '[' at *at; *at is moved behind it. */
static bool class_has(struct span p, size_t *at, char c, bool nocase)
{
    size_t i = *at;
    bool negated = i < p.n && p.p[i] == '^', found = false;
    unsigned char want = fold(c, nocase);
    for (i += negated; i < p.n && p.p[i] != ']'; i++) {
        bool escaped = p.p[i] == '\\' && i + 1 < p.n;
        i += escaped;
        unsigned char from = fold(p.p[i], nocase), to = from;
        if (!escaped && i + 2 < p.n && p.p[i + 1] == '-') {
            i += 2;
            to = fold(p.p[i], nocase);
        }
        found |= from <= to ? want >= from && want <= to : want >= to && want <= from;
    }
    *at = i < p.n ? i + 1 : i;
    return found != negated;
}

/* Whether the one-character atom at *at, which is no star, matches c; *at is moved behind it. */
static bool atom_has(struct span p, size_t *at, char c, bool nocase)
{
    char a = p.p[(*at)++];
    if (a == '?')
        return true;
    if (a == '[')
        return class_has(p, at, c, nocase);
    if (a == '\\' && *at < p.n)
        a = p.p[(*at)++];
    return fold(a, nocase) == fold(c, nocase);
}

/* Only the latest star need ever take more: what those before it took cannot be bettered. */
bool glob_match(struct span p, struct span s, bool nocase)
{
    size_t at = 0, i = 0, star = 0, star_i = 0;
    bool starred = false;
    while (i < s.n) {
        size_t next = at;
        if (at < p.n && p.p[at] == '*') {
            starred = true;
            star = ++at;
            star_i = i;
        } else if (at < p.n && atom_has(p, &next, s.p[i], nocase)) {
            at = next;
            i++;
        } else if (starred) {
            at = star;
            i = ++star_i;
        } else {
            return false;
        }
    }
    while (at < p.n && p.p[at] == '*')
        at++;
    return at == p.n;
}
