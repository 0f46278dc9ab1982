/*
 * What all codecs share: the answer of a parse call, and how much input they may be shown.
 *
 * Invariants
 *   - A codec is a pure function of the bytes in `in`: no I/O, clock, log, allocation or state.
 *   - Spans in a request point into `in` (or into the request itself, where its header says so) and
 *     die with it.
 *   - Cut anywhere, a stream gives the same requests as whole.
 *   - Shown WIRE_IN_MAX bytes or more, a codec decides: it never answers WIRE_MORE then. So one
 *     block of WIRE_IN_MAX bytes bounds the input of a connection.
 *
 *     in.p            in.p + *used              in.p + in.n
 *      |  this request  |  the next ones, later   |
 */
#ifndef SIDFLAKE_WIRE_WIRE_H
#define SIDFLAKE_WIRE_WIRE_H

#define WIRE_LINE_MAX (64 * 1024)            /* bytes of the longest line any codec accepts */
#define WIRE_IN_MAX   (WIRE_LINE_MAX + 2048) /* bytes of a connection's input block */

enum wire_status {
    WIRE_MORE,  /* the request is not whole yet: *used is 0, call again with more bytes */
    WIRE_REQ,   /* the request is filled in, *used bytes are consumed */
    WIRE_BAD,   /* *used bytes are consumed, the request's error is to be sent, as it is;
                 * the connection goes on */
    WIRE_CLOSE, /* the request's error (may be empty) is to be sent, then the connection closed;
                 * *used is in.n: what else came is lost */
};

#endif
