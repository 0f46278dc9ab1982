#include "support/framefeed.h"

#include "support/pageend.h"

#include <stdio.h>
#include <stdlib.h>

struct feed {
    frame_fn *fn;
    const uint8_t *kinds;
    size_t nkinds, at;
    bool watch, framing;
    struct frame frame;
    struct framefeed_log *log;
};

static void put(struct framefeed_log *log, struct span s)
{
    for (size_t i = 0; i < s.n; i++) {
        log->hash = (log->hash ^ (unsigned char)s.p[i]) * UINT64_C(0x100000001b3);
        if (s.p[i] >= ' ' && s.p[i] <= '~')
            buf_put_char(&log->text, s.p[i]);
        else if (s.p[i] == '\n')
            BUF_PUT_LIT(&log->text, "\\n");
        else if (s.p[i] != '\r')
            buf_printf(&log->text, "\\x%02x", (unsigned char)s.p[i]);
    }
}

static void end_frame(struct feed *f, const char *how)
{
    put(f->log, span_str(how));
    if (f->frame.push)
        put(f->log, SPAN(" push"));
    if (f->frame.ack)
        buf_printf(&f->log->text, " ack %u: %llu", f->frame.channel,
                   (unsigned long long)f->frame.channels);
    if (f->frame.error)
        put(f->log, SPAN(" error"));
    put(f->log, SPAN(";"));
    buf_put_char(&f->log->text, '\n');
    f->framing = false;
}

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    (void)fprintf(stderr, "framefeed: %s\n", what);
    abort();
}

/* What frame_run says is what the framer makes of it, frame by frame. */
static void check_run(const struct feed *f, enum frame_kind kind, struct span in)
{
    uint32_t n, fewer;
    size_t bytes = frame_run(kind, in, 5, &n), at = 0;
    must(n <= 5 && bytes <= in.n, "a run of more than there is");
    must(n == 0 || (frame_run(kind, in, n - 1, &fewer) < bytes && fewer == n - 1),
         "a run of more than asked for");
    for (uint32_t i = 0; i < n; i++) {
        struct frame frame;
        size_t used;
        frame_start(&frame, kind, false);
        must(f->fn(&frame, span_of(in.p + at, bytes - at), &used) == FRAME_DONE,
             "a run of what is no frame");
        must(!frame.push && frame.drop == 0, "a run of what is no usual frame");
        at += used;
    }
    must(at == bytes, "a run that is no run");
}

/* One call; false: it wants more, or is broken. *in becomes what is left. */
static bool step(struct feed *f, struct span *in)
{
    size_t used = 0;
    bool empty = in->n == 0;
    if (!f->framing) {
        frame_start(&f->frame, (enum frame_kind)f->kinds[f->at < f->nkinds ? f->at : f->nkinds - 1],
                    f->watch);
        f->frame.own = f->watch;
        f->framing = true;
        if (!empty && !f->watch)
            check_run(f, (enum frame_kind)f->frame.kind, *in);
    }
    enum frame_verdict v = f->fn(&f->frame, *in, &used);
    must(used <= in->n && f->frame.drop <= used, "more used than shown");
    put(f->log, span_of(in->p, used - f->frame.drop));
    *in = span_skip(*in, used);
    if (v == FRAME_PART) {
        put(f->log, SPAN("<"));
        put(f->log, f->frame.part);
        put(f->log, SPAN(">"));
        return true;
    }
    if (v == FRAME_DONE) {
        f->at += !f->frame.push;
        end_frame(f, "");
        return !empty && in->n > 0;
    }
    must(v == FRAME_BAD || in->n < FRAME_HOLD, "a long rest is left");
    if (v == FRAME_BAD)
        end_frame(f, " BAD");
    return false;
}

void framefeed_run(frame_fn *fn, const uint8_t *kinds, size_t nkinds, bool watch,
                   struct span stream, size_t piece, struct framefeed_log *log)
{
    static struct pageend mem;
    struct feed f = {.fn = fn, .kinds = kinds, .nkinds = nkinds, .watch = watch, .log = log};
    size_t shown = 0, kept = 0;
    if (!mem.map)
        pageend_init(&mem, (size_t)1 << 20);
    log->hash = UINT64_C(0xcbf29ce484222325);
    buf_init(&log->text, log->mem, sizeof log->mem - 1);
    while (shown < stream.n) {
        size_t n = stream.n - shown < piece ? stream.n - shown : piece;
        struct span in = pageend_copy(&mem, span_of(stream.p + shown - kept, kept + n));
        shown += n;
        while (step(&f, &in))
            ;
        if (!f.framing && in.n > 0)
            break; /* BAD */
        kept = in.n;
    }
    if (f.framing && (f.frame.begun || kept > 0))
        end_frame(&f, " MORE");
    log->mem[log->text.n] = '\0';
}

static void compare(frame_fn *fn, const uint8_t *kinds, size_t nkinds, bool watch,
                    struct span stream, size_t piece, const struct framefeed_log *whole)
{
    static struct framefeed_log cut;
    framefeed_run(fn, kinds, nkinds, watch, stream, piece, &cut);
    if (cut.hash == whole->hash)
        return;
    (void)fprintf(stderr, "in pieces of %zu:\n%s\nwhole:\n%s\n", piece, cut.mem, whole->mem);
    abort();
}

void framefeed_check(frame_fn *fn, const uint8_t *kinds, size_t nkinds, bool watch,
                     struct span stream, struct framefeed_log *log)
{
    framefeed_run(fn, kinds, nkinds, watch, stream, SIZE_MAX, log);
    for (size_t piece = 1; piece < stream.n && piece < 300; piece += 1 + piece / 20)
        compare(fn, kinds, nkinds, watch, stream, piece, log);
}
