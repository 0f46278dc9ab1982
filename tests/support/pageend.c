#include "support/pageend.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

void pageend_init(struct pageend *p, size_t n)
{
    p->page = (size_t)sysconf(_SC_PAGESIZE);
    p->room = (n + p->page - 1) / p->page * p->page;
    p->map =
        mmap(NULL, p->room + p->page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p->map == MAP_FAILED || mprotect(p->map + p->room, p->page, PROT_NONE) != 0)
        abort();
}

char *pageend_tail(const struct pageend *p, size_t n)
{
    return p->map + p->room - n;
}

struct span pageend_copy(const struct pageend *p, struct span s)
{
    char *to = pageend_tail(p, s.n);
    if (s.n)
        memmove(to, s.p, s.n);
    return span_of(to, s.n);
}
