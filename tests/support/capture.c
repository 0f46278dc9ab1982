#include "support/capture.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static int kept_stderr, memory;

void capture_begin(void)
{
    kept_stderr = dup(STDERR_FILENO);
    memory = memfd_create("stderr", MFD_CLOEXEC);
    if (kept_stderr < 0 || memory < 0 || fcntl(memory, F_SETFL, O_APPEND) != 0)
        abort();
    (void)dup2(memory, STDERR_FILENO);
}

const char *capture_end(void)
{
    static char text[1 << 20];
    (void)dup2(kept_stderr, STDERR_FILENO);
    ssize_t n = pread(memory, text, sizeof text - 1, 0);
    (void)close(kept_stderr);
    (void)close(memory);
    if (n < 0 || (size_t)n >= sizeof text - 1)
        abort();
    text[n] = '\0';
    return text;
}
