#include "lease/witness.h"

enum workers_word witness_word(const struct blockpage *p, const struct workers *w)
{
    struct workers_witness x;
    bool any = blockpage_witness(p, &x.slot, &x.token);
    return any ? workers_word(w, &x) : WORKERS_DENIED;
}

void witness_store(struct blockfile *f, const struct workers *w)
{
    struct workers_witness now;
    if (workers_witness(w, &now))
        blockfile_set_witness(f, now.slot, now.token);
}
