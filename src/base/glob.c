#include "base/glob.h"

#include <assert.h>
#include <string.h>

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

void glob_init(struct glob *g, struct span p)
{
    assert(p.n <= GLOB_MAX);
    memset(g, 0, sizeof *g);
    g->pattern = p;
    for (size_t at = 0, next; at < p.n; at = next) {
        unsigned word = g->atoms / 64;
        uint64_t bit = UINT64_C(1) << g->atoms % 64;
        next = at;
        if (p.p[at] == '*') {
            g->starred = true;
            g->stays[word] |= bit;
            next++;
            continue;
        }
        for (unsigned c = 0; c < 256; c++) {
            next = at;
            g->goes[c][word] |= atom_has(p, &next, (char)c, false) ? bit : 0;
        }
        g->atoms++;
    }
}

/* All places that what was read so far may have led to, at once (Baeza-Yates and Gonnet 1992).
 * Without a star there is one, and with one no more than 128. */
bool glob_has(const struct glob *g, struct span s)
{
    uint64_t low = 1, high = 0;
    if (!g->starred)
        return glob_match(g->pattern, s, false);
    for (size_t i = 0; i < s.n; i++) {
        const uint64_t *goes = g->goes[(unsigned char)s.p[i]];
        uint64_t from_low = low & goes[0], from_high = high & goes[1];
        low = (low & g->stays[0]) | from_low << 1;
        high = (high & g->stays[1]) | from_high << 1 | from_low >> 63;
    }
    return (g->atoms < 64 ? low >> g->atoms : high >> (g->atoms - 64)) & 1;
}
