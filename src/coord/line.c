#include "coord/line.h"

#include "base/int64.h"

int64_t line_at(const struct line *l, int64_t now_ms)
{
    if (now_ms < l->begins_ms)
        return -1;
    int64_t seconds = (now_ms - l->begins_ms) / 1000, ms = (now_ms - l->begins_ms) % 1000;
    if (seconds > LINE_TOP / l->rate)
        return LINE_TOP;
    int64_t risen = seconds * l->rate + l->rate * ms / 1000;
    return min64(l->burst - 1 + risen, LINE_TOP);
}

int64_t line_when(const struct line *l, int64_t index)
{
    if (index < l->burst)
        return l->begins_ms;
    int64_t above = index - (l->burst - 1);
    int64_t seconds = above / l->rate, rest = above % l->rate;
    if (seconds > LINE_TOP / 1000)
        return LINE_TOP;
    return min64(l->begins_ms + seconds * 1000 + (rest * 1000 + l->rate - 1) / l->rate, LINE_TOP);
}
