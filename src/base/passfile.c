#include "base/passfile.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CUT 16u /* bytes of a password that tell it */

/* Without the line end that editors and `echo` put there. */
static enum err_code take(const char *text, size_t n, const char *what, char out[PASSFILE_MAX + 1],
                          struct err *e)
{
    if (n > 0 && text[n - 1] == '\n')
        n--;
    if (n > 0 && text[n - 1] == '\r')
        n--;
    if (n == 0 || n > PASSFILE_MAX)
        return err_set(e, ERR_RANGE, "expected 1..%u bytes in %s, found %s", PASSFILE_MAX, what,
                       n ? "more" : "none");
    if (memchr(text, '\0', n))
        return err_set(e, ERR_INVALID, "expected text in %s, found a NUL", what);
    memcpy(out, text, n);
    out[n] = '\0';
    return ERR_OK;
}

enum err_code passfile_read(const char *path, const char *what, bool waits,
                            char out[PASSFILE_MAX + 1], struct err *e)
{
    char text[PASSFILE_MAX + 3]; /* with "\r\n" and one too many */
    struct stat st;
    size_t n = 0;
    enum err_code rc;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | (waits ? 0 : O_NONBLOCK));
    bool there = fd >= 0 && fstat(fd, &st) == 0;
    bool taken = there && (waits || S_ISREG(st.st_mode));
    out[0] = '\0';
    if (!there || (taken && file_read(fd, text, sizeof text, &n)))
        rc = err_errno(e, errno, "expected a readable file for %s, found \"%.200s\"", what, path);
    else if (!taken)
        rc = err_set(e, ERR_INVALID, "expected a regular file for %s, found another kind", what);
    else if (!(rc = file_check_guarded(fd, path, e)))
        rc = take(text, n, what, out, e);
    if (fd >= 0)
        (void)close(fd);
    explicit_bzero(text, sizeof text);
    return rc;
}

bool passfile_is_told(struct span words, struct span password)
{
    size_t n = password.n < CUT ? password.n : CUT;
    return n > 0 && words.n > 0 &&
           (span_starts(words, SPAN("ERR unknown")) ||
            memmem(words.p, words.n, password.p, n) != NULL);
}
