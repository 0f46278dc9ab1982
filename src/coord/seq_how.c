/* What an operation on a sequence came to, as a word. */
#include "coord/seq_calls.h"

static const char *const hows[SEQ_HOWS] = {
    [SEQ_GRANTED] = "granted",
    [SEQ_AGAIN] = "again",
    [SEQ_LOOKED] = "looked",
    [SEQ_DONE] = "done",
    [SEQ_KEPT] = "kept",
    [SEQ_WAIT] = "wait",
    [SEQ_CLOSED] = "closed",
    [SEQ_USED_UP] = "used-up",
    [SEQ_STOPPED] = "stopped",
    [SEQ_FORGOTTEN] = "forgotten",
    [SEQ_UNKNOWN] = "unknown",
    [SEQ_DROPPED] = "dropped",
    [SEQ_DIFFERS] = "differs",
    [SEQ_NO_SUBS] = "no-subs",
    [SEQ_TOO_MANY_SUBS] = "too-many-subs",
    [SEQ_NO_PERIOD] = "no-period",
    [SEQ_UNREADABLE] = "unreadable",
    [SEQ_UNSAID] = "unsaid",
    [SEQ_NO_BEGIN] = "no-begin",
    [SEQ_LOWER] = "lower",
    [SEQ_NOT_STOPPED] = "not-stopped",
};

const char *seq_how_name(enum seq_how h)
{
    return (unsigned)h < SEQ_HOWS ? hows[h] : "odd";
}
