/* Any bytes as a users file: refused with a place, or read; what was read holds to what users.h
 * promises. */
#include "auth/users.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds, const char *what)
{
    if (holds)
        return;
    (void)fprintf(stderr, "%s\n", what);
    abort();
}

static void check_user(const struct users *u, const struct user *one)
{
    size_t n = strlen(one->name);
    require(n >= 1 && n <= USERS_NAME_MAX && !strpbrk(one->name, ": \n"), "an odd name");
    require(secret_well_formed(span_str(one->hash)), "an odd hash");
    require(users_find(u, span_str(one->name)) == one, "a name that is not found, or doubled");
    struct span rest = one->names;
    while (rest.p) {
        struct span glob = span_cut(&rest, ',');
        require(glob.n >= 1 && glob.n <= USERS_GLOB_MAX, "an odd pattern");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct users u;
    struct err e = {.text = ""};
    size_t line, column;
    if (users_read(&u, "f", span_of((const char *)data, size), &e)) {
        require(sscanf(e.text, "f:%zu:%zu: expected ", &line, &column) == 2,
                "an error without a place");
        require(!u.user && !u.mem && u.n == 0, "users after an error");
        return 0;
    }
    for (size_t i = 0; i < u.n; i++)
        check_user(&u, &u.user[i]);
    users_clear(&u);
    return 0;
}
