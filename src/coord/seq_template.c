#include "coord/seq_template.h"

#include "base/fnv.h"
#include "base/int64.h"

#include <assert.h>
#include <string.h>

static_assert((int)TEMPLATE_HOUR == (int)PERIOD_HOUR && (int)TEMPLATE_DAY == (int)PERIOD_DAY &&
                  (int)TEMPLATE_MONTH == (int)PERIOD_MONTH &&
                  (int)TEMPLATE_YEAR == (int)PERIOD_YEAR &&
                  (int)TEMPLATE_NEVER == (int)PERIOD_NEVER,
              "a reset there is one here");
static_assert(TEMPLATE_NUMBER_MAX == SEQ_NUMBER_MAX && TEMPLATE_PERIOD_MAX == PERIOD_LABEL_MAX,
              "numbers and labels are the same");

enum err_code seq_template_parse(const char *name, const struct seq_definition *d, int64_t max,
                                 struct template *out, struct err *e)
{
    const struct template_frame frame = {.name = span_str(name),
                                         .reset = (enum template_reset)d->reset,
                                         .subs = d->subs > 0,
                                         .cycle = d->cycle,
                                         .first = d->start,
                                         .last = max};
    return template_parse(out, span_str(d->template), &frame, e);
}

uint64_t seq_definition_hash(struct span text)
{
    const char *end = memmem(text.p, text.n, " template=", sizeof " template=" - 1);
    return fnv64(text.p, end ? (size_t)(end - text.p) : text.n);
}
