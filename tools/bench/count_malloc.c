/*
 * Preloaded into a process, counts the allocations of its main thread in a file mapped by others:
 *
 *   LD_PRELOAD=count_malloc.so COUNT_MALLOC=FILE program
 *
 * FILE, of at least 16 bytes, holds two 64-bit numbers: allocations (malloc, calloc, and realloc,
 * which may move) and frees. Other threads are not counted: the sidecar's keeper allocates for each
 * renewal, and no request waits for it.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* glibc's own, behind the names that are replaced here. */
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void __libc_free(void *p);

struct counts {
    uint64_t allocations, frees;
};

static struct counts unmapped;
static struct counts *counts = &unmapped;
static __thread bool main_thread;

__attribute__((constructor)) static void map_counts(void)
{
    const char *path = getenv("COUNT_MALLOC");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    main_thread = true; /* constructors run in it */
    if (fd < 0)
        return;
    void *p = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p != MAP_FAILED)
        counts = p;
    (void)close(fd);
}

void *malloc(size_t n)
{
    counts->allocations += main_thread;
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    counts->allocations += main_thread;
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    counts->allocations += main_thread;
    return __libc_realloc(p, n);
}

void free(void *p)
{
    counts->frees += main_thread && p;
    __libc_free(p);
}
