/*
 * Preloaded into sidflakectl top: a Ctrl-Z that comes while the screen is being set up.
 *
 *   STOP_IN=newterm      before ncurses looks at the terminal
 *   STOP_IN=cbreak       after it has, before it is as the view needs it
 *   STOP_IN=start_color  when it is almost
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void stop_in(const char *name)
{
    const char *in = getenv("STOP_IN");
    if (in && strcmp(in, name) == 0)
        (void)raise(SIGTSTP);
}

void *newterm(const char *type, FILE *out, FILE *in)
{
    void *(*next)(const char *, FILE *, FILE *);
    *(void **)&next = dlsym(RTLD_NEXT, "newterm");
    stop_in("newterm");
    return next(type, out, in);
}

int cbreak(void)
{
    int (*next)(void);
    *(void **)&next = dlsym(RTLD_NEXT, "cbreak");
    stop_in("cbreak");
    return next();
}

int start_color(void)
{
    int (*next)(void);
    *(void **)&next = dlsym(RTLD_NEXT, "start_color");
    stop_in("start_color");
    return next();
}
