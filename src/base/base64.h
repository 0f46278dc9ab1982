/*
 * Base64 (RFC 4648, 4).
 *
 * Senders are of two minds about the padding, and where a text must come back as it was sent, only
 * one form of it will do: so whether it has that form is a question of its own.
 */
#ifndef SIDFLAKE_BASE_BASE64_H
#define SIDFLAKE_BASE_BASE64_H

#include "base/buf.h"

void base64_put_encoded(struct buf *out, struct span s);

/* Decodes, with or without padding; bits that make no whole byte are dropped. false: there is
 * another character, or out has failed. */
bool base64_put_decoded(struct buf *out, struct span s);

/* Whether s is what an encoder writes: with all its padding, and no bit beyond the last byte. s
 * must be one that decodes. */
bool base64_is_canonical(struct span s);

#endif
