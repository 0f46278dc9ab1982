/*
 * Preloaded into a program: makes its N-th allocation fail, or all from the N-th on.
 *
 *   FAIL_ALLOC=7     the seventh        FAIL_ALLOC=7+    the seventh and all that follow
 *
 * Invariants
 *   - Counted are malloc, calloc, realloc, reallocarray, aligned_alloc, memalign, posix_memalign
 *     and strdup, of all threads, from when the program's own libraries are set up; libc's
 *     asprintf, getline and the like come here, too.
 *   - The first that fails is told on standard error, once: "failing_alloc: N, SIZE bytes for
 *     FILE", the file being the program or library that asked.
 *   - What does not fail goes to whoever is next, be it libc or a sanitizer.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ASKER       __builtin_return_address(0)
#define EARLY_BYTES 8192 /* dlsym may allocate before it has found malloc */

static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void *(*memalign)(size_t, size_t);
    void (*free)(void *);
} next;

static _Alignas(16) char early[EARLY_BYTES];
static size_t early_n;
static bool looking;
static atomic_ulong count;
static unsigned long fail_at; /* 0: not armed */
static bool fail_on;

static void *early_alloc(size_t n)
{
    n = (n + 15) & ~(size_t)15;
    if (n > sizeof early - early_n)
        abort();
    early_n += n;
    return early + early_n - n; /* zeroed, since static */
}

static bool is_early(const void *p)
{
    return (uintptr_t)p >= (uintptr_t)early && (uintptr_t)p < (uintptr_t)(early + sizeof early);
}

static void look_up(void)
{
    if (next.free || looking)
        return;
    looking = true;
    *(void **)&next.malloc = dlsym(RTLD_NEXT, "malloc");
    *(void **)&next.calloc = dlsym(RTLD_NEXT, "calloc");
    *(void **)&next.realloc = dlsym(RTLD_NEXT, "realloc");
    *(void **)&next.memalign = dlsym(RTLD_NEXT, "memalign");
    *(void **)&next.free = dlsym(RTLD_NEXT, "free");
    looking = false;
}

__attribute__((constructor)) static void arm(void)
{
    const char *at = getenv("FAIL_ALLOC");
    char *end = NULL;
    look_up();
    unsigned long n = at ? strtoul(at, &end, 10) : 0;
    fail_on = end && *end == '+';
    fail_at = n;
}

static void tell(unsigned long n, size_t size, const void *asker)
{
    char line[512];
    Dl_info who = {.dli_fname = "?"};
    (void)dladdr(asker, &who);
    int length = snprintf(line, sizeof line, "failing_alloc: %lu, %zu bytes for %s\n", n, size,
                          who.dli_fname);
    ssize_t wrote = write(STDERR_FILENO, line, (size_t)length);
    (void)wrote;
}

static bool fails(size_t size, const void *asker)
{
    look_up();
    if (fail_at == 0)
        return false;
    unsigned long n = atomic_fetch_add(&count, 1) + 1;
    if (n < fail_at || (n > fail_at && !fail_on))
        return false;
    if (n == fail_at)
        tell(n, size, asker);
    errno = ENOMEM;
    return true;
}

void *malloc(size_t n)
{
    if (fails(n, ASKER))
        return NULL;
    return next.malloc ? next.malloc(n) : early_alloc(n);
}

void *calloc(size_t n, size_t size)
{
    if (fails(n * size, ASKER))
        return NULL;
    return next.calloc ? next.calloc(n, size) : early_alloc(n * size);
}

static void *grow(void *p, size_t n)
{
    if (!is_early(p))
        return next.realloc(p, n);
    size_t left = (size_t)(early + sizeof early - (char *)p);
    void *to = next.malloc(n);
    return to ? memcpy(to, p, n < left ? n : left) : NULL;
}

void *realloc(void *p, size_t n)
{
    return fails(n, ASKER) ? NULL : grow(p, n);
}

void *reallocarray(void *p, size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return fails(bytes, ASKER) ? NULL : grow(p, bytes);
}

void *memalign(size_t alignment, size_t n)
{
    return fails(n, ASKER) ? NULL : next.memalign(alignment, n);
}

void *aligned_alloc(size_t alignment, size_t n)
{
    return fails(n, ASKER) ? NULL : next.memalign(alignment, n);
}

int posix_memalign(void **out, size_t alignment, size_t n)
{
    void *p = fails(n, ASKER) ? NULL : next.memalign(alignment, n);
    if (!p)
        return ENOMEM;
    *out = p;
    return 0;
}

/* libc's would ask in its own name. */
char *strdup(const char *s)
{
    size_t n = strlen(s) + 1;
    char *p = fails(n, ASKER) ? NULL : next.malloc(n);
    return p ? memcpy(p, s, n) : NULL;
}

void free(void *p)
{
    look_up();
    if (!is_early(p))
        next.free(p);
}
