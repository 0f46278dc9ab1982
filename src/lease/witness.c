#include "lease/witness.h"

enum workers_word witness_word(const struct blockpage *p, const struct workers *w)
{
    struct workers_witness x;
    bool any = blockpage_witness(p, &x.slot, &x.token);
    return any ? workers_word(w, &x) : WORKERS_DENIED;
}

void witness_store(struct blockpage *p, const struct workers *w)
{
    struct workers_witness now, was;
    if (!workers_witness(w, &now))
        return;
    if (!blockpage_witness(p, &was.slot, &was.token) || was.slot != now.slot ||
        !coord_token_equal(was.token, now.token))
        blockpage_set_witness(p, now.slot, now.token);
}
