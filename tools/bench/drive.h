/*
 * The load: connections that send a batch of requests, await all replies, and send the next.
 *
 *   send DEPTH requests -> await DEPTH * shape.lines line feeds -> count, time -> send …
 *
 * The latency of a batch is that of each of its requests: an upper bound where DEPTH > 1.
 *
 * Invariants
 *   - One thread, epoll, one send and one receive per batch where the kernel takes and gives it
 *     whole: the generator must not be what is measured.
 *   - A reply of another form than asked for ends the run.
 */
#ifndef SIDFLAKE_BENCH_DRIVE_H
#define SIDFLAKE_BENCH_DRIVE_H

#include "base/err.h"
#include "idset.h"
#include "latency.h"
#include "net/addr.h"
#include "shape.h"

#define DRIVE_DEPTH_MAX 1024

enum drive_check {
    DRIVE_CHECK_COUNT, /* the first reply of some batches is read, of the others the line feeds */
    DRIVE_CHECK_FULL,  /* every line is read */
    DRIVE_CHECK_UNIQUE /* … and every ID is held against all others */
};

struct drive_conf {
    struct addr to;
    const struct shape *shapes; /* of the requests, in turn, the next connection going on where one
                                   batch ends; replies to all have as many lines */
    uint32_t nshapes;
    uint32_t connections;
    uint32_t depth;    /* requests of a batch, 1..DRIVE_DEPTH_MAX */
    int64_t warmup_ns; /* not counted */
    int64_t length_ns; /* counted, after the warm-up */
    uint64_t requests; /* ends the run earlier, warm-up included; 0: no such limit */
    int64_t every_ns;  /* of one connection: a batch each so often; 0: at once */
    enum drive_check check;
};

struct drive_result {
    struct latency latency;
    uint64_t all;      /* requests answered, the warm-up's included */
    uint64_t requests; /* after the warm-up, as all below */
    double seconds;
    uint64_t ids;     /* requests times IDs of a reply */
    uint64_t checked; /* lines read, the warm-up's included */
    uint64_t duplicates, outside;
};

/* ERR_IO: a connection broke; ERR_CORRUPT: a reply of another form; ERR_TIMEOUT: none for 10 s. */
enum err_code drive(const struct drive_conf *c, struct drive_result *out, struct err *e) MUST_CHECK;

#endif
