#include "base/human.h"

struct unit {
    int64_t size;
    const char *name;
};

void human_put_count(struct buf *b, int64_t n)
{
    uint64_t v = n < 0 ? 0 - (uint64_t)n : (uint64_t)n, group = 1;
    if (n < 0)
        buf_put_char(b, '-');
    while (v / group >= 1000)
        group *= 1000;
    buf_put_u64(b, v / group);
    for (group /= 1000; group > 0; group /= 1000) {
        uint64_t part = v / group % 1000;
        buf_put_char(b, ',');
        buf_put_char(b, (char)('0' + part / 100));
        buf_put_char(b, (char)('0' + part / 10 % 10));
        buf_put_char(b, (char)('0' + part % 10));
    }
}

void human_put_duration(struct buf *b, int64_t ms)
{
    static const struct unit units[] = {{INT64_C(31536000000), " y"},
                                        {86400000, " d"},
                                        {3600000, " h"},
                                        {60000, " min"},
                                        {1000, " s"},
                                        {1, " ms"}};
    size_t i = 0, last = sizeof units / sizeof *units - 1;
    uint64_t v = ms < 0 ? 0 - (uint64_t)ms : (uint64_t)ms;
    if (ms < 0)
        buf_put_char(b, '-');
    while (i < last && v < (uint64_t)units[i].size)
        i++;
    buf_put_u64(b, v / (uint64_t)units[i].size);
    buf_put_str(b, v > 0 ? units[i].name : " s");
    if (i + 1 >= last) /* a second's milliseconds do not matter */
        return;
    uint64_t rest = v % (uint64_t)units[i].size / (uint64_t)units[i + 1].size;
    if (rest > 0) {
        buf_put_char(b, ' ');
        buf_put_u64(b, rest);
        buf_put_str(b, units[i + 1].name);
    }
}

/* Three digits that count, and no zeros behind the point. v < 1e18. */
static void put_three(struct buf *b, double v)
{
    unsigned decimals = v < 10 ? 2 : v < 100 ? 1 : 0;
    int64_t scale = decimals == 2 ? 100 : decimals == 1 ? 10 : 1;
    int64_t n = (int64_t)(v * (double)scale + 0.5);
    human_put_count(b, n / scale);
    n %= scale;
    if (n == 0)
        return;
    buf_put_char(b, '.');
    for (scale /= 10; n > 0; scale /= 10) {
        buf_put_char(b, (char)('0' + n / scale));
        n %= scale;
    }
}

static void put_scaled(struct buf *b, double v, const struct unit *units, size_t n)
{
    size_t i = 0;
    while (i + 1 < n && v >= (double)units[i + 1].size)
        i++;
    put_three(b, v / (double)units[i].size);
    buf_put_str(b, units[i].name);
}

void human_put_latency(struct buf *b, double ns)
{
    static const struct unit units[] = {
        {1, " ns"}, {1000, " \xc2\xb5s"}, {1000000, " ms"}, {1000000000, " s"}};
    put_scaled(b, ns, units, sizeof units / sizeof *units);
}

void human_put_rate(struct buf *b, double v)
{
    static const struct unit units[] = {{1, ""}, {1000000, " M"}, {1000000000, " G"}};
    put_scaled(b, v, units, sizeof units / sizeof *units);
}

void human_put_bytes(struct buf *b, int64_t n)
{
    static const struct unit units[] = {
        {1, " B"}, {1 << 10, " KiB"}, {1 << 20, " MiB"}, {1 << 30, " GiB"}};
    put_scaled(b, n > 0 ? (double)n : 0, units, sizeof units / sizeof *units);
}
