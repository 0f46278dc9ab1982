/*
 * A receipt: contiguous IDs that a client received in complete replies, as hammer writes them to
 * its file and checker reads them. Host byte order; a file is an array of receipts, no head.
 *
 * Invariant: first + count - 1 does not exceed INT64_MAX, and count is not 0.
 */
#ifndef SIDFLAKE_CHAOS_RECEIPT_H
#define SIDFLAKE_CHAOS_RECEIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum receipt_kind {
    RECEIPT_LPOP,
    RECEIPT_GET,
    RECEIPT_INCR,
    RECEIPT_INCRBY,
    RECEIPT_MC_MULTIGET,
    RECEIPT_MC_GET,
    RECEIPT_KINDS
};

struct receipt {
    uint64_t first;   /* the lowest of the IDs */
    uint64_t when_us; /* true time at which the first was received: Unix microseconds */
    uint32_t count;
    uint16_t sidecar; /* as the driver numbers them */
    uint8_t kind;     /* enum receipt_kind */
    uint8_t life;     /* connections of this kind so far, modulo 256 */
};

#define RECEIPT_BUFFERED 512u

/* Where receipts are written, a buffer at a time. */
struct receipt_file {
    int fd;
    uint16_t sidecar; /* of all of them */
    size_t n;
    struct receipt buffer[RECEIPT_BUFFERED];
};

/* An error of the file ends the process with status 2: what is not written down is not checked. */
void receipt_put(struct receipt_file *f, struct receipt r);
void receipt_flush(struct receipt_file *f);

/* "RESP LPOP 1000", …; "?" for what is none. */
const char *receipt_kind_name(unsigned kind);

/* Whether it keeps the invariant. */
bool receipt_valid(const struct receipt *r);

#endif
