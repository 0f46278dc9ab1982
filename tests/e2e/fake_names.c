/*
 * Preloaded into a program: looks names up in the file FAKE_NAMES, lines of "NAME ADDRESS...",
 * which is read anew each time. A name without an address there is EAI_AGAIN, one that is not there
 * EAI_NONAME; nobody else is asked. Addresses in digits are as ever.
 */
#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int look_up(const char *, const char *, const struct addrinfo *, struct addrinfo **);

/* The line's addresses, one after the other. */
static int all_of(look_up *next, char *rest, const char *service, struct addrinfo hints,
                  struct addrinfo **list)
{
    char *save = NULL;
    int r = EAI_AGAIN;
    hints.ai_flags |= AI_NUMERICHOST;
    for (char *a = strtok_r(rest, " \n", &save); a; a = strtok_r(NULL, " \n", &save)) {
        r = next(a, service, &hints, list);
        if (r)
            return r;
        while (*list)
            list = &(*list)->ai_next;
    }
    return r;
}

int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                struct addrinfo **list)
{
    char line[256];
    int r = EAI_NONAME;
    look_up *next;
    void *found = dlsym(RTLD_NEXT, "getaddrinfo");
    memcpy(&next, &found, sizeof next);
    if (hints->ai_flags & AI_NUMERICHOST || strspn(host, "0123456789.") == strlen(host))
        return next(host, service, hints, list);
    FILE *f = fopen(getenv("FAKE_NAMES"), "re");
    while (f && r == EAI_NONAME && fgets(line, sizeof line, f)) {
        size_t n = strcspn(line, " \n");
        if (n == strlen(host) && strncmp(line, host, n) == 0)
            r = all_of(next, line + n, service, *hints, list);
    }
    if (f)
        (void)fclose(f);
    return r;
}
