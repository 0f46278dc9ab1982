#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum err_code err_set(struct err *e, enum err_code code, const char *fmt, ...)
{
    if (e) {
        char text[sizeof e->text]; /* an argument may be e->text itself, to be wrapped */
        va_list ap;
        va_start(ap, fmt);
        int n = vsnprintf(text, sizeof text, fmt, ap);
        va_end(ap);
        if (n < 0)
            text[0] = '\0';
        e->code = code;
        memcpy(e->text, text, strnlen(text, sizeof text - 1) + 1);
    }
    return code;
}

enum err_code err_errno(struct err *e, int errnum, const char *fmt, ...)
{
    enum err_code code = errnum == EADDRINUSE ? ERR_BUSY : ERR_IO;
    if (e) {
        char text[sizeof e->text], why[96];
        va_list ap;
        va_start(ap, fmt);
        int n = vsnprintf(text, sizeof text, fmt, ap);
        va_end(ap);
        if (n < 0)
            text[0] = '\0';
        (void)err_set(e, code, "%s: %s", text, strerror_r(errnum, why, sizeof why));
    }
    return code;
}
