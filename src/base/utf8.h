/*
 * Text of others, a character at a time.
 *
 * Invariants
 *   - A character has one form, the shortest, and surrogates are none: what was refused as one byte
 *     cannot come back as three.
 *   - Pure; each call that takes something looks at no byte behind what it takes.
 *
 * Source: RFC 3629; Unicode 15, general category Cf.
 */
#ifndef SIDFLAKE_BASE_UTF8_H
#define SIDFLAKE_BASE_UTF8_H

#include "base/span.h"

#include <stdbool.h>
#include <stdint.h>

/* Takes the first character off *s, which is not empty. false: it begins with none, and nothing was
 * taken. */
bool utf8_take(struct span *s, uint32_t *rune);

/* Whether it may be sent to a terminal: no control character, be it of ASCII or of U+0080..9F, and
 * none that turns, hides or breaks what stands around it. */
bool utf8_shows(uint32_t rune);

/* As utf8_take, and '?' in the place of a byte that begins no character, and of a character that
 * does not show. */
uint32_t utf8_take_shown(struct span *s);

#endif
