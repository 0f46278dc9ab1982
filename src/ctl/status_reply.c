/*
 * sidflakectl: reading the status of a sidecar.
 */
#include "ctl/status_reply.h"

#include "ctl/ctl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- members ----------------------------------------------------------------------------------
 */

#define MEMBER_MAX 32 /* bytes of a name, which is ours */

static const json_t *find(const json_t *j, const char *path)
{
    char name[MEMBER_MAX];
    struct span rest = span_str(path);
    while (rest.p)
        j = json_object_get(j, ctl_clean(name, sizeof name, span_cut(&rest, '.')));
    return j;
}

/* Jansson takes a want of memory for a mistake in the text. */
static bool short_of_memory;

static void *allocate(size_t n)
{
    void *p = malloc(n);
    short_of_memory |= !p;
    return p;
}

enum err_code ctl_status_read(const char *text, size_t n, json_t **out, struct err *e)
{
    json_error_t why;
    char shown[JSON_ERROR_TEXT_LENGTH];
    short_of_memory = false;
    json_set_alloc_funcs(allocate, free);
    *out = json_loadb(text, n, 0, &why);
    if (!*out && short_of_memory)
        return err_set(e, ERR_NOMEM, "no memory to read a status");
    if (!*out)
        return err_set(e, ERR_INVALID, "expected JSON, found another answer: %s",
                       ctl_clean(shown, sizeof shown, span_str(why.text)));
    if (json_is_string(find(*out, "version")) && json_is_boolean(find(*out, "ready")))
        return ERR_OK;
    json_decref(*out);
    *out = NULL;
    return err_set(e, ERR_INVALID, "expected the status of a sidecar, found other JSON");
}

static double known(const json_t *v)
{
    return json_is_number(v) ? json_number_value(v) : NAN;
}

double ctl_status_number(const json_t *j, const char *path)
{
    return known(find(j, path));
}

char *ctl_status_text(const json_t *j, const char *path, char *out, size_t cap)
{
    const json_t *v = find(j, path);
    return ctl_clean(out, cap, span_of(json_string_value(v), json_string_length(v)));
}

bool ctl_status_is(const json_t *j, const char *path, const char *text)
{
    const char *found = json_string_value(find(j, path));
    return found && strcmp(found, text) == 0;
}

/* ---- lists ------------------------------------------------------------------------------------
 */

const json_t *ctl_status_row(const json_t *j, const char *list, const char *key, const char *text)
{
    const json_t *rows = find(j, list);
    for (size_t i = 0; i < json_array_size(rows); i++)
        if (ctl_status_is(json_array_get(rows, i), key, text))
            return json_array_get(rows, i);
    return NULL;
}

/* sum + v, where either may be unknown. */
static double add(double sum, double v)
{
    return isnan(sum) ? v : isnan(v) ? sum : sum + v;
}

double ctl_status_sum(const json_t *j, const char *list, const char *member, const char *key,
                      const char *text)
{
    double sum = NAN;
    const json_t *rows = find(j, list);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        if (!key || ctl_status_is(row, key, text))
            sum = add(sum, ctl_status_number(row, member));
    }
    return sum;
}

json_t *ctl_status_sums(const json_t *j, const char *list, const char *member, const char *key)
{
    json_t *sums = json_object();
    const json_t *rows = find(j, list);
    for (size_t i = 0; sums && i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const char *text = json_string_value(find(row, key));
        double v = ctl_status_number(row, member);
        if (text && !isnan(v))
            (void)json_object_set_new(sums, text,
                                      json_real(add(known(json_object_get(sums, text)), v)));
    }
    return sums;
}

double ctl_status_rate(double now, double before, int64_t us)
{
    if (us <= 0)
        return NAN;
    double grown = now < before ? now : now - before;
    return grown / ((double)us / 1e6);
}

/* ---- histograms -------------------------------------------------------------------------------
 */

void ctl_histogram_read(const json_t *j, const char *path, struct ctl_histogram *out)
{
    const json_t *h = find(j, path), *bounds = find(h, "bounds_us"), *counts = find(h, "counts");
    size_t n = json_array_size(counts);
    double below = 0, total = 0;
    out->n = 0;
    if (n == 0 || n > CTL_BUCKETS || json_array_size(bounds) != n - 1)
        return;
    for (size_t i = 0; i < n; i++) {
        const json_t *bound = json_array_get(bounds, i), *count = json_array_get(counts, i);
        double le = i + 1 < n ? json_number_value(bound) / 1e6 : INFINITY;
        if (!json_is_number(count) || json_number_value(count) < 0 || !(le > below))
            return;
        below = out->le[i] = le;
        total = out->count[i] = total + json_number_value(count);
    }
    out->n = (unsigned)n;
}

void ctl_histogram_since(struct ctl_histogram *h, const struct ctl_histogram *before)
{
    if (h->n != before->n)
        return;
    for (unsigned i = 0; i < h->n; i++)
        if (h->le[i] != before->le[i] || h->count[i] < before->count[i])
            return;
    for (unsigned i = 0; i < h->n; i++)
        h->count[i] -= before->count[i];
}

double ctl_histogram_quantile(const struct ctl_histogram *h, double q)
{
    double total = h->n > 0 ? h->count[h->n - 1] : 0;
    double rank = q * total;
    unsigned i = 0;
    if (!(total > 0))
        return NAN;
    while (i + 1 < h->n && h->count[i] < rank)
        i++;
    if (i + 1 >= h->n)
        return INFINITY;
    double from = i > 0 ? h->le[i - 1] : 0;
    double below = i > 0 ? h->count[i - 1] : 0;
    return from + (h->le[i] - from) * (rank - below) / (h->count[i] - below);
}
