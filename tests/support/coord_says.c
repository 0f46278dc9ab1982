#include "support/coord_says.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

void coord_says(const struct coord_reply *r, const char *part)
{
    if (!strstr(r->err.text, part))
        fail_msg("expected \"%s\" within \"%s\"", part, r->err.text);
}

void coord_came_to_at(const struct coord_reply *r, enum coord_status found,
                      enum coord_status expected, int line)
{
    if (found != expected)
        fail_msg("line %d: expected %s, found %s: %s", line, coord_status_name(expected),
                 coord_status_name(found), r->err.text);
}
