#include "base/parcel.h"

#include <limits.h>

#define MAGIC SPAN("SIDFPRCL")

void parcel_put_u64(struct buf *b, uint64_t v)
{
    buf_put(b, &v, sizeof v);
}

void parcel_put_bytes(struct buf *b, struct span s)
{
    parcel_put_u64(b, s.n);
    buf_put_span(b, s);
}

void parcel_put_head(struct buf *b, enum parcel_purpose purpose, uint64_t pid)
{
    buf_put_span(b, MAGIC);
    parcel_put_u64(b, PARCEL_VERSION);
    parcel_put_u64(b, purpose);
    parcel_put_u64(b, pid);
}

size_t parcel_begin(struct buf *b, enum parcel_kind kind, int fd)
{
    parcel_put_u64(b, kind);
    parcel_put_u64(b, (uint64_t)(int64_t)fd);
    parcel_put_u64(b, 0);
    return b->n;
}

void parcel_end(struct buf *b, size_t begun)
{
    uint64_t n = b->n - begun;
    if (!b->failed)
        memcpy(b->p + begun - sizeof n, &n, sizeof n);
}

bool parcel_get_u64(struct span *in, uint64_t *v)
{
    if (in->n < sizeof *v)
        return false;
    memcpy(v, in->p, sizeof *v);
    *in = span_skip(*in, sizeof *v);
    return true;
}

bool parcel_get_upto(struct span *in, uint64_t max, uint64_t *v)
{
    return parcel_get_u64(in, v) && *v <= max;
}

bool parcel_get_bytes(struct span *in, struct span *out)
{
    uint64_t n;
    if (!parcel_get_u64(in, &n) || n > in->n)
        return false;
    *out = span_of(in->p, (size_t)n);
    *in = span_skip(*in, (size_t)n);
    return true;
}

bool parcel_head(struct span *in, struct parcel_head *out)
{
    if (!span_starts(*in, MAGIC))
        return false;
    *in = span_skip(*in, MAGIC.n);
    return parcel_get_u64(in, &out->version) && parcel_get_u64(in, &out->purpose) &&
           parcel_get_u64(in, &out->pid);
}

bool parcel_next(struct span *in, struct parcel_record *out)
{
    uint64_t fd;
    if (!parcel_get_u64(in, &out->kind) || !parcel_get_u64(in, &fd) ||
        !parcel_get_bytes(in, &out->body))
        return false;
    int64_t number = (int64_t)fd;
    out->fd = number >= 0 && number <= INT_MAX ? (int)number : -1;
    return true;
}
