/* The status of a sidecar as sidflakectl top reads and paints it, from a hostile server: whatever
 * its types, sizes and depth, nothing speaks to the terminal, and nothing is drawn outside. */
#include "ctl/top_sidecar.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_histogram(const json_t *j)
{
    struct ctl_histogram h, same;
    ctl_histogram_read(j, "coordinator.call_duration", &h);
    same = h;
    double q = ctl_histogram_quantile(&h, 0.9);
    if (!isnan(q) && h.n == 0)
        abort();
    ctl_histogram_since(&h, &same);
    if (!isnan(ctl_histogram_quantile(&h, 0.5)) && isfinite(same.count[same.n - 1]))
        abort();
}

/* Besides printable ASCII what is drawn here, and nothing of the server's. */
static bool drawn(uint16_t c)
{
    return c == 0xb5 || c == 0xb7 || c == 0x2026 || (c >= 0x2581 && c <= 0x258f);
}

static void check_page(const struct paint *p)
{
    for (size_t i = 0; i < (size_t)p->rows * p->width; i++)
        if ((p->cell[i].c < ' ' || p->cell[i].c > '~') && !drawn(p->cell[i].c))
            abort();
}

/* now: painted as the answer after `before`. */
static void paint(json_t *before, json_t *now, struct paint *p)
{
    static struct sidecar s;
    s = (struct sidecar){
        .url = "http://x", .now = now, .before = before, .us = 1000000, .answered_us = 1};
    paint_clear(p);
    top_sidecar.paint(&s, p);
    check_page(p);
}

/* Two documents, with a NUL between them: of two looks. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct paint p = {0};
    struct err e;
    json_t *before = NULL, *now = NULL;
    const uint8_t *second = size > 0 ? memchr(data, '\0', size) : NULL;
    size_t n = second ? (size_t)(second - data) : size;
    if (!paint_size(&p, 40, 100, false))
        return 0;
    if (ctl_status_read((const char *)data, n, &before, &e) == ERR_OK) {
        paint(NULL, before, &p);
        check_histogram(before);
    }
    if (second && ctl_status_read((const char *)second + 1, size - n - 1, &now, &e) == ERR_OK)
        paint(before, now, &p);
    json_decref(before);
    json_decref(now);
    paint_free(&p);
    return 0;
}
