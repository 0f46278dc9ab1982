#include "receipt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert(sizeof(struct receipt) == 24, "files are arrays without padding");

const char *receipt_kind_name(unsigned kind)
{
    static const char *const names[RECEIPT_KINDS] = {
        [RECEIPT_LPOP] = "RESP LPOP 1000",
        [RECEIPT_GET] = "RESP GET",
        [RECEIPT_INCR] = "RESP INCR",
        [RECEIPT_INCRBY] = "RESP INCRBY 64",
        [RECEIPT_MC_MULTIGET] = "memcached get of 100 keys",
        [RECEIPT_MC_GET] = "memcached get",
    };
    return kind < RECEIPT_KINDS ? names[kind] : "?";
}

bool receipt_valid(const struct receipt *r)
{
    return r->count > 0 && r->kind < RECEIPT_KINDS &&
           r->first <= (uint64_t)INT64_MAX - (r->count - 1);
}

void receipt_flush(struct receipt_file *f)
{
    const char *p = (const char *)f->buffer;
    size_t left = f->n * sizeof *f->buffer;
    while (left > 0) {
        ssize_t n = write(f->fd, p, left);
        if (n < 0 && errno != EINTR) {
            (void)fprintf(stderr, "hammer: writing receipts: %s\n", strerror(errno));
            exit(2);
        }
        if (n > 0) {
            p += n;
            left -= (size_t)n;
        }
    }
    f->n = 0;
}

void receipt_put(struct receipt_file *f, struct receipt r)
{
    f->buffer[f->n++] = r;
    if (f->n == RECEIPT_BUFFERED)
        receipt_flush(f);
}
