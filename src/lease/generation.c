#include "lease/generation.h"

#include "base/fnv.h"
#include "lease/home.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

bool generation_name(struct generation *g, const char *dir, const char *name)
{
    if (asprintf(&g->path, "%s/%s", dir, name) < 0)
        g->path = NULL;
    if (asprintf(&g->path_new, "%s/%s.new", dir, name) < 0)
        g->path_new = NULL;
    return g->path && g->path_new;
}

void generation_clear(struct generation *g)
{
    free(g->path);
    free(g->path_new);
    g->path = g->path_new = NULL;
}

static uint64_t at(const char *path)
{
    struct page_home file = {.coordinator = 0};
    if (!home_read_file(-1, path, &file))
        return 0;
    uint64_t h = fnv64(&file, sizeof file);
    return h ? h : 1;
}

uint64_t generation_there(const struct generation *g)
{
    return at(g->path);
}

enum err_code generation_begin(const struct generation *g, struct page_generation *words,
                               struct err *e)
{
    struct stat st;
    uint64_t there = at(g->path);
    if (!page_generation_is(words, there) && lstat(g->path, &st) < 0)
        return err_errno(e, errno, "cannot find %s", g->path);
    if (!page_generation_is(words, there))
        return err_set(e, ERR_INVALID, GENERATION_NOT_AS_LEFT, g->path);
    (void)unlink(g->path_new); /* of a process that was killed here */
    if (mknod(g->path_new, S_IFREG | 0600, 0) < 0)
        return err_errno(e, errno, "cannot make %s", g->path_new);
    uint64_t next = at(g->path_new);
    if (!next)
        return err_errno(e, errno, "cannot look at %s", g->path_new);
    page_generation_expect(words, there, next);
    if (rename(g->path_new, g->path) < 0)
        return err_errno(e, errno, "cannot rename %s", g->path_new);
    return ERR_OK;
}
