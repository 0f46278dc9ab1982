/*
 * A checker of metrics pages, stricter than a scraper has to be: HELP, TYPE and UNIT come once, in
 * this order, before the samples of their family; names, labels and values are well-formed; no
 * series comes twice; the buckets of a histogram rise to +Inf, which equals its count.
 */
#ifndef SIDFLAKE_TESTS_UNIT_SERVE_PAGE_CHECK_H
#define SIDFLAKE_TESTS_UNIT_SERVE_PAGE_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LABELS_MAX 1024 /* bytes of a sample's labels, in the tests */

struct family {
    char name[128], type[16], unit[16];
    bool help, samples;
    /* Of the histogram that is being read. */
    char labels[LABELS_MAX]; /* without le */
    double bound;
    unsigned long long cumulative;
    bool in_buckets;
};

struct checker {
    bool openmetrics;
    struct family f;
    char seen[256][128]; /* families */
    size_t nseen;
    const char *series[8192];
    size_t length[8192];
    size_t nseries;
};

static inline size_t name_length(const char *p)
{
    size_t n = strspn(p, "abcdefghijklmnopqrstuvwxyz_");
    assert_true(n > 0);
    return n;
}

static inline const char *word(const char *p, char *out, size_t cap)
{
    size_t n = strcspn(p, " \n");
    assert_in_range(n, 1, cap - 1);
    memcpy(out, p, n);
    out[n] = '\0';
    return p + n;
}

static inline void new_family(struct checker *c, const char *name)
{
    assert_false(c->f.in_buckets);
    for (size_t i = 0; i < c->nseen; i++)
        assert_string_not_equal(c->seen[i], name);
    assert_in_range(c->nseen, 0, 255);
    strcpy(c->seen[c->nseen++], name);
    memset(&c->f, 0, sizeof c->f);
    strcpy(c->f.name, name);
}

/* "# HELP x text" comes first, then TYPE, then UNIT. */
static inline void comment(struct checker *c, const char *line)
{
    char keyword[16], name[128];
    const char *p = word(line + 2, keyword, sizeof keyword);
    assert_int_equal(*p, ' ');
    p = word(p + 1, name, sizeof name);
    assert_int_equal(*p++, ' ');
    if (strcmp(keyword, "HELP") == 0) {
        assert_int_equal(strcspn(p, "\"\\\n"), strcspn(p, "\n"));
        new_family(c, name);
        c->f.help = true;
        return;
    }
    assert_string_equal(name, c->f.name);
    assert_true(c->f.help && !c->f.samples);
    if (strcmp(keyword, "TYPE") == 0) {
        assert_string_equal(c->f.type, "");
        assert_int_equal(*word(p, c->f.type, sizeof c->f.type), '\n');
        return;
    }
    assert_string_equal(keyword, "UNIT");
    assert_true(c->openmetrics);
    assert_int_equal(*word(p, c->f.unit, sizeof c->f.unit), '\n');
    size_t n = strlen(name), u = strlen(c->f.unit);
    assert_true(n > u && name[n - u - 1] == '_' && strcmp(name + n - u, c->f.unit) == 0);
}

/* {key="value",…}; copies all but le, whose value is returned, or NULL. */
static inline const char *labels(const char **at, char *rest)
{
    const char *p = *at, *le = NULL;
    *rest = '\0';
    if (*p != '{')
        return NULL;
    do {
        const char *key = ++p;
        p += name_length(p);
        assert_memory_equal(p, "=\"", 2);
        p += 2;
        bool is_le = strncmp(key, "le=", 3) == 0;
        le = is_le ? p : le;
        for (; *p != '"'; p++) {
            assert_true(*p >= ' ' && *p <= '~');
            if (*p == '\\') {
                p++;
                assert_true(*p == '\\' || *p == '"' || *p == 'n');
            }
        }
        p++;
        if (!is_le)
            strncat(rest, key, (size_t)(p - key));
        assert_in_range(strlen(rest), 0, LABELS_MAX / 2);
    } while (*p == ',');
    assert_int_equal(*p, '}');
    *at = p + 1;
    return le;
}

static inline void bucket(struct family *f, const char *le, const char *rest, const char *value)
{
    unsigned long long n = strtoull(value, NULL, 10);
    double bound = strncmp(le, "+Inf\"", 5) == 0 ? 1e99 : strtod(le, NULL);
    if (!f->in_buckets) {
        strcpy(f->labels, rest);
        f->in_buckets = true;
        f->bound = 0;
        f->cumulative = 0;
    }
    assert_string_equal(f->labels, rest);
    assert_true(bound > f->bound);
    assert_true(n >= f->cumulative);
    f->bound = bound;
    f->cumulative = n;
}

/* Buckets end with +Inf, then come _sum and _count. */
static inline void histogram_sample(struct family *f, const char *suffix, const char *le,
                                    const char *rest, const char *value)
{
    if (strcmp(suffix, "_bucket") == 0) {
        assert_non_null(le);
        bucket(f, le, rest, value);
        return;
    }
    assert_null(le);
    assert_string_equal(f->labels, rest);
    if (strcmp(suffix, "_sum") == 0) {
        assert_true(f->in_buckets && f->bound > 1e98);
        f->in_buckets = false;
        return;
    }
    assert_string_equal(suffix, "_count");
    assert_false(f->in_buckets);
    assert_int_equal(strtoull(value, NULL, 10), f->cumulative);
}

static inline const char *suffix_of(const struct checker *c)
{
    if (strcmp(c->f.type, "counter") == 0)
        return c->openmetrics ? "_total" : "";
    return strcmp(c->f.type, "info") == 0 ? "_info" : "";
}

static inline void no_doubles(struct checker *c, const char *series, size_t n)
{
    for (size_t i = 0; i < c->nseries; i++)
        assert_false(c->length[i] == n && memcmp(c->series[i], series, n) == 0);
    assert_in_range(c->nseries, 0, 8191);
    c->series[c->nseries] = series;
    c->length[c->nseries++] = n;
}

static inline void sample(struct checker *c, const char *line)
{
    char rest[LABELS_MAX], suffix[128];
    const char *p = line + name_length(line), *value;
    size_t own = strlen(c->f.name);
    assert_true(c->f.help && c->f.type[0]);
    assert_true((size_t)(p - line) >= own && memcmp(line, c->f.name, own) == 0);
    (void)snprintf(suffix, sizeof suffix, "%.*s", (int)(p - line - (long)own), line + own);
    const char *le = labels(&p, rest);
    no_doubles(c, line, (size_t)(p - line));
    assert_int_equal(*p++, ' ');
    value = p;
    p += *p == '-';
    size_t whole = strspn(p, "0123456789");
    p += whole;
    size_t fraction = *p == '.' ? strspn(p + 1, "0123456789") : 1;
    p += *p == '.' ? 1 + fraction : 0;
    assert_true(whole > 0 && fraction > 0);
    assert_int_equal(*p, '\n');
    c->f.samples = true;
    if (strcmp(c->f.type, "histogram") == 0) {
        histogram_sample(&c->f, suffix, le, rest, value);
        return;
    }
    assert_null(le);
    assert_string_equal(suffix, suffix_of(c));
    bool total = strcmp(c->f.type, "counter") == 0;
    size_t n = (size_t)(strcspn(line, "{ "));
    assert_int_equal(total, n > 6 && memcmp(line + n - 6, "_total", 6) == 0);
    assert_true(!total || *value != '-');
}

static inline void page_check(const char *p, bool openmetrics)
{
    static struct checker c;
    bool ended = false;
    memset(&c, 0, sizeof c);
    c.openmetrics = openmetrics;
    while (*p) {
        const char *end = strchr(p, '\n');
        assert_non_null(end);
        assert_false(ended);
        if (strncmp(p, "# EOF\n", 6) == 0)
            ended = true;
        else if (*p == '#')
            comment(&c, p);
        else
            sample(&c, p);
        p = end + 1;
    }
    assert_false(c.f.in_buckets);
    assert_int_equal(ended, openmetrics);
}

#endif
