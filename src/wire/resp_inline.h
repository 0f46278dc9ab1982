/*
 * The words of an inline command: what a person types, with quotes and escapes.
 *
 *     SET "two words" 'it\'s' \n      unquoted backslashes are literal
 *     "\x41\n\"" is A, newline, quote; in '…' only \' is special
 *     a"b c" is one word, "a"b is an error
 *
 * Source: Redis's sds.c, sdssplitargs. Private to wire/.
 */
#ifndef SIDFLAKE_WIRE_RESP_INLINE_H
#define SIDFLAKE_WIRE_RESP_INLINE_H

#include "base/buf.h"
#include "base/span.h"

enum resp_word {
    RESP_WORD_END, /* no further word */
    RESP_WORD_OK,
    RESP_WORD_UNBALANCED, /* a quote is not closed, or something stands right behind it */
    RESP_WORD_TOO_LONG    /* the word has quotes and does not fit into mem */
};

/* Takes the next word off *line, which has no end of line. The word lies in *line's bytes or,
 * if it had quotes, in mem, which then has grown. */
enum resp_word resp_inline_word(struct span *line, struct buf *mem, struct span *word);

#endif
