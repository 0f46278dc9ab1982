/*
 * Hexadecimal digits, and bytes written as such.
 */
#ifndef SIDFLAKE_BASE_HEX_H
#define SIDFLAKE_BASE_HEX_H

#include "base/buf.h"

/* 0..15, in either case; -1: c is none. */
int hex_digit(char c);

/* Percent-decodes (RFC 3986, 2.1). false: two digits are missing somewhere. What does not fit sets
 * out->failed alone. */
bool hex_put_unescaped(struct buf *out, struct span s);

#endif
