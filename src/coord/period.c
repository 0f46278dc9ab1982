/* Source: the proleptic Gregorian calendar, whose year is begun on March 1 here, so that the day
 * that comes every four years is a year's last. */
#include "coord/period.h"

#include "base/int64.h"

#include <stdio.h>
#include <string.h>

#define HOUR_MS INT64_C(3600000)
#define DAY_MS  (24 * HOUR_MS)

static const struct form {
    const char *name;
    size_t length; /* of a label */
    int64_t lead_ms, longest_ms;
} forms[PERIOD_RESETS] = {
    [PERIOD_NEVER] = {"never", 0, 0, 0},
    [PERIOD_HOUR] = {"hour", 13, 5 * 60000, HOUR_MS},
    [PERIOD_DAY] = {"day", 10, 2 * HOUR_MS, DAY_MS},
    [PERIOD_MONTH] = {"month", 7, 2 * HOUR_MS, 31 * DAY_MS},
    [PERIOD_YEAR] = {"year", 4, DAY_MS, 366 * DAY_MS},
};

const char *period_reset_name(enum period_reset r)
{
    return r < PERIOD_RESETS ? forms[r].name : "unknown";
}

bool period_reset_parse(struct span s, enum period_reset *out)
{
    for (enum period_reset r = PERIOD_NEVER; r < PERIOD_RESETS; r++) {
        if (span_eq(s, span_str(forms[r].name))) {
            *out = r;
            return true;
        }
    }
    return false;
}

int64_t period_lead_ms(enum period_reset r)
{
    return forms[r].lead_ms;
}

int64_t period_longest_ms(enum period_reset r)
{
    return forms[r].longest_ms + forms[r].lead_ms;
}

struct date {
    int64_t year, month, day, hour; /* month and day from 1 */
};

/* Days since 1970-01-01; month may be 13. */
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
    int64_t y = month > 2 ? year : year - 1, m = month > 2 ? month - 3 : month + 9;
    return 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719468;
}

static struct date date_of(int64_t days)
{
    int64_t d = days + 719468;
    int64_t century = d / 146097, in = d % 146097;
    int64_t y = (in - in / 1460 + in / 36524 - in / 146096) / 365;
    int64_t of_year = in - (365 * y + y / 4 - y / 100);
    int64_t m = (5 * of_year + 2) / 153;
    return (struct date){
        .year = century * 400 + y + (m >= 10),
        .month = m < 10 ? m + 3 : m - 9,
        .day = of_year - (153 * m + 2) / 5 + 1,
    };
}

bool period_label(enum period_reset r, int offset_min, int64_t ms, char out[PERIOD_LABEL_MAX])
{
    char text[80];
    int64_t local = ms + offset_min * INT64_C(60000);
    if (r == PERIOD_NEVER || local < 0 || local >= INT64_C(253402300800000))
        return false;
    struct date d = date_of(local / DAY_MS);
    (void)snprintf(text, sizeof text, "%04d-%02d-%02dT%02d", (int)d.year, (int)d.month, (int)d.day,
                   (int)(local % DAY_MS / HOUR_MS));
    memcpy(out, text, forms[r].length);
    out[forms[r].length] = '\0';
    return true;
}

/* n digits at text[at]; -1: that is not what is there. */
static int64_t digits(struct span s, size_t at, size_t n)
{
    int64_t v = 0;
    for (size_t i = at; i < at + n; i++) {
        if (i >= s.n || s.p[i] < '0' || s.p[i] > '9')
            return -1;
        v = v * 10 + (s.p[i] - '0');
    }
    return v;
}

static bool parse(enum period_reset r, struct span s, struct date *d)
{
    static const char marks[] = "....-..-..T..";
    if (r == PERIOD_NEVER || s.n != forms[r].length)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        if (marks[i] != '.' && s.p[i] != marks[i])
            return false;
    }
    *d = (struct date){
        .year = digits(s, 0, 4),
        .month = s.n > 4 ? digits(s, 5, 2) : 1,
        .day = s.n > 7 ? digits(s, 8, 2) : 1,
        .hour = s.n > 10 ? digits(s, 11, 2) : 0,
    };
    return d->year >= 1970 && d->month >= 1 && d->month <= 12 && d->day >= 1 && d->hour >= 0 &&
           d->hour <= 23 &&
           d->day <= days_of(d->year, d->month + 1, 1) - days_of(d->year, d->month, 1);
}

bool period_find(enum period_reset r, int offset_min, struct span label, struct period *out)
{
    struct date d;
    if (!parse(r, label, &d))
        return false;
    int64_t first = days_of(d.year, d.month, d.day);
    int64_t begins = first * DAY_MS + d.hour * HOUR_MS - offset_min * INT64_C(60000);
    int64_t length = forms[r].longest_ms;
    if (r == PERIOD_MONTH)
        length = (days_of(d.year, d.month + 1, 1) - first) * DAY_MS;
    if (r == PERIOD_YEAR)
        length = (days_of(d.year + 1, 1, 1) - first) * DAY_MS;
    *out = (struct period){
        .opens_ms = max64(begins - forms[r].lead_ms, 0),
        .begins_ms = begins,
        .ends_ms = begins + length,
    };
    return true;
}
