#include "wire/frame.h"

#include <string.h>

void frame_pass(struct frame *f, struct span in, size_t *at)
{
    size_t n = in.n - *at;
    if (f->left > 0) {
        n = n < f->left ? n : (size_t)f->left;
        f->left -= n;
    } else if (f->skipping && n > 0) {
        const char *end = memchr(in.p + *at, '\n', n);
        n = end ? (size_t)(end - in.p) - *at + 1 : n;
        f->skipping = !end;
    } else {
        n = 0;
    }
    *at += n;
}
