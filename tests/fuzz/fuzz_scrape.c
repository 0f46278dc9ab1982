/* Metrics pages as sidflakectl top reads them: nothing outside the page, and nothing that speaks to
 * the terminal. */
#include "ctl/scrape.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct scrape *s, size_t size)
{
    char label[16];
    for (size_t i = 0; i < s->n; i++) {
        const struct scrape_sample *x = &s->v[i];
        if (x->name.n == 0 || x->name.p < s->text || x->name.p + x->name.n > s->text + size ||
            x->labels.p < x->name.p || x->labels.p + x->labels.n > s->text + size)
            abort();
        if (!scrape_label(x, "name", label, sizeof label))
            continue;
        for (const char *c = label; *c; c++)
            if (*c < ' ' || *c > '~')
                abort();
    }
}

static void check_histogram(const struct scrape *s)
{
    struct scrape_histogram h, same;
    scrape_histogram(s, "h", NULL, NULL, &h);
    same = h;
    double q = scrape_quantile(&h, 0.9);
    if (!isnan(q) && h.n == 0)
        abort();
    scrape_histogram_since(&h, &same);
    if (!isnan(scrape_quantile(&h, 0.5)) && isfinite(same.count[same.n - 1]))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct scrape s;
    struct err e;
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    if (scrape_parse(&s, text, size, &e) == ERR_OK) {
        check(&s, size);
        check_histogram(&s);
        (void)scrape_sum(&s, "h", "name", "x");
        scrape_clear(&s);
    }
    return 0;
}
