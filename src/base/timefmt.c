#include "base/timefmt.h"

#include "base/dec.h"

#include <stdio.h>

#define DAY_MS       INT64_C(86400000)
#define YEAR_0000_MS INT64_C(-62167219200000)
#define YEAR_9999_MS INT64_C(253402300799999)

/* Days from 1970-01-01, counting years from March so that the leap day comes last
 * (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms"). */
static int64_t days_from_civil(int64_t y, int m, int d)
{
    y -= m <= 2;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t yoe = y - era * 400;
    int64_t doy = (153 * (m > 2 ? m - 3 : m + 9) + 2) / 5 + d - 1;
    return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

static void civil_from_days(int64_t days, int *y, int *m, int *d)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    int64_t doe = days - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    int64_t mp = (5 * doy + 2) / 153;
    *d = (int)(doy - (153 * mp + 2) / 5 + 1);
    *m = (int)(mp < 10 ? mp + 3 : mp - 9);
    *y = (int)(yoe + era * 400 + (*m <= 2));
}

char *timefmt_rfc3339(char out[TIMEFMT_MAX], int64_t unix_ms)
{
    if (unix_ms < YEAR_0000_MS)
        unix_ms = YEAR_0000_MS;
    if (unix_ms > YEAR_9999_MS)
        unix_ms = YEAR_9999_MS;
    int64_t days = unix_ms / DAY_MS - (unix_ms % DAY_MS < 0);
    unsigned ms = (unsigned)(unix_ms - days * DAY_MS);
    int y, m, d;
    civil_from_days(days, &y, &m, &d);
    (void)snprintf(out, TIMEFMT_MAX, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ", (unsigned)y % 10000,
                   (unsigned)m % 100, (unsigned)d % 100, ms / 3600000, ms / 60000 % 60,
                   ms / 1000 % 60, ms % 1000);
    return out;
}

/* Exactly `width` digits at the front of *s, which moves past them. */
static bool take_digits(struct span *s, size_t width, int *out)
{
    uint64_t v;
    if (s->n < width || !dec_u64(span_of(s->p, width), &v))
        return false;
    *out = (int)v;
    *s = span_skip(*s, width);
    return true;
}

static bool take_char(struct span *s, char c)
{
    if (s->n == 0 || s->p[0] != c)
        return false;
    *s = span_skip(*s, 1);
    return true;
}

static bool take_date(struct span *s, int64_t *days)
{
    static const int month_days[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int y, m, d;
    if (!take_digits(s, 4, &y) || !take_char(s, '-') || !take_digits(s, 2, &m) ||
        !take_char(s, '-') || !take_digits(s, 2, &d))
        return false;
    bool leap = y % 4 == 0 && (y % 100 != 0 || y % 400 == 0);
    if (m < 1 || m > 12 || d < 1 || d > month_days[m - 1] || (m == 2 && d == 29 && !leap))
        return false;
    *days = days_from_civil(y, m, d);
    return true;
}

static bool take_fraction(struct span *s, int *ms)
{
    *ms = 0;
    if (!take_char(s, '.'))
        return true;
    size_t n = 0;
    for (int unit = 100; n < s->n && s->p[n] >= '0' && s->p[n] <= '9'; n++, unit /= 10)
        *ms += unit * (s->p[n] - '0');
    *s = span_skip(*s, n);
    return n >= 1 && n <= 9;
}

static bool take_clock(struct span *s, int64_t *ms_of_day)
{
    int h, m, sec, ms;
    if (!take_digits(s, 2, &h) || !take_char(s, ':') || !take_digits(s, 2, &m) ||
        !take_char(s, ':') || !take_digits(s, 2, &sec) || !take_fraction(s, &ms))
        return false;
    if (h > 23 || m > 59 || sec > 60)
        return false;
    *ms_of_day = ((h * 60 + m) * INT64_C(60) + sec) * 1000 + ms;
    return true;
}

static bool take_offset(struct span *s, int64_t *offset_ms)
{
    int h, m;
    *offset_ms = 0;
    if (take_char(s, 'Z') || take_char(s, 'z'))
        return true;
    int sign = take_char(s, '-') ? -1 : 1;
    if (sign > 0 && !take_char(s, '+'))
        return false;
    if (!take_digits(s, 2, &h) || !take_char(s, ':') || !take_digits(s, 2, &m) || h > 23 || m > 59)
        return false;
    *offset_ms = sign * (h * 60 + m) * INT64_C(60000);
    return true;
}

bool timefmt_parse_rfc3339(struct span s, int64_t *unix_ms)
{
    int64_t days, in_day = 0, offset = 0;
    if (!take_date(&s, &days))
        return false;
    if (s.n > 0) {
        if (!take_char(&s, 'T') && !take_char(&s, 't') && !take_char(&s, ' '))
            return false;
        if (!take_clock(&s, &in_day) || !take_offset(&s, &offset) || s.n > 0)
            return false;
    }
    *unix_ms = days * DAY_MS + in_day - offset;
    return true;
}

static const struct {
    const char *unit;
    int64_t us;
} units[] = {/* largest first */
             {"d", INT64_C(86400000000)},
             {"h", INT64_C(3600000000)},
             {"m", 60000000},
             {"s", 1000000},
             {"ms", 1000},
             {"us", 1}};

bool timefmt_parse_duration(struct span s, int64_t *us)
{
    size_t digits = 0, i;
    int64_t v;
    while (digits < s.n && s.p[digits] >= '0' && s.p[digits] <= '9')
        digits++;
    if (!dec_i64(span_of(s.p, digits), &v))
        return false;
    struct span unit = span_skip(s, digits);
    if (unit.n == 0 && v == 0) {
        *us = 0;
        return true;
    }
    for (i = 0; i < sizeof units / sizeof *units; i++)
        if (span_eq(unit, span_str(units[i].unit)))
            break;
    int64_t product;
    if (i == sizeof units / sizeof *units || __builtin_mul_overflow(v, units[i].us, &product))
        return false;
    *us = product;
    return true;
}

char *timefmt_duration(char out[TIMEFMT_MAX], int64_t us)
{
    size_t i = 0;
    while (us == 0 ? i != 3 : us % units[i].us != 0) /* nothing is written as "0s" */
        i++;
    (void)snprintf(out, TIMEFMT_MAX, "%lld%s", (long long)(us / units[i].us), units[i].unit);
    return out;
}
