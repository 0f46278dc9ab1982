#include "base/distance.h"

#include <stdint.h>

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;
    return least < c ? least : c;
}

size_t distance_between(struct span a, struct span b)
{
    size_t row[DISTANCE_MAX + 1];
    if (b.n > DISTANCE_MAX)
        return SIZE_MAX;
    for (size_t k = 0; k <= b.n; k++)
        row[k] = k;
    for (size_t i = 0; i < a.n; i++) {
        size_t corner = row[0]; /* of the row before */
        row[0] = i + 1;
        for (size_t k = 0; k < b.n; k++) {
            size_t changed = corner + (a.p[i] != b.p[k]);
            corner = row[k + 1];
            row[k + 1] = min3(changed, corner + 1, row[k] + 1);
        }
    }
    return row[b.n];
}
