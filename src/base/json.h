/*
 * Strings as JSON, and whatever else stands between quotes in a log line.
 *
 * Invariant: what is written is ASCII, and valid (RFC 8259, 7), whatever the bytes are: one that is
 * not printable is taken for the character of its number, since nobody says that it is UTF-8.
 */
#ifndef SIDFLAKE_BASE_JSON_H
#define SIDFLAKE_BASE_JSON_H

#include "base/buf.h"

#define JSON_CHAR_MAX (sizeof "\\u0000" - 1) /* bytes that one becomes at most */

/* A byte of a string, without the quotes. */
void json_put_char(struct buf *b, char c);

/* With the quotes. */
void json_put_string(struct buf *b, struct span s);

#endif
