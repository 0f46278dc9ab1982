#include "serve/rights.h"

#include "base/glob.h"

bool rights_may(const struct user *u, enum rights_class what)
{
    switch (what) {
    case RIGHTS_HERE:
        return true;
    case RIGHTS_READ:
        return u->upstream == USER_READ || u->upstream == USER_ALL;
    case RIGHTS_CHANGE:
        return u->upstream == USER_ALL;
    case RIGHTS_OTHER:
        break;
    }
    return u->upstream == USER_ALL && !u->keys.p;
}

bool rights_key(const struct user *u, struct span key)
{
    struct span rest = u->keys;
    bool may = !rest.p;
    while (rest.p && !may)
        may = glob_match(span_cut(&rest, ','), key, false);
    return may;
}
