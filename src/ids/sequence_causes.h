/*
 * What each cause of a sequence means to who asked, a row each: for all kinds that give out its
 * numbers. Of none the sidecar is less ready: whoever has IDs has them.
 *
 *     ROW(cause, status, waits, ends, say)      as of struct generator_cause
 */
#ifndef SIDFLAKE_IDS_SEQUENCE_CAUSES_H
#define SIDFLAKE_IDS_SEQUENCE_CAUSES_H

#define SEQUENCE_CAUSE_ROWS(ROW)                                                                   \
    ROW(SEQUENCE_WAITS, ISSUE_LOADING, true, false, say_waits)                                     \
    ROW(SEQUENCE_SPENT, ISSUE_AGAIN, true, false, say_spent)                                       \
    ROW(SEQUENCE_FULL, ISSUE_AGAIN, true, false, say_full)                                         \
    ROW(SEQUENCE_UNTIMED, ISSUE_LOADING, true, false, say_untimed)                                 \
    ROW(SEQUENCE_UNMADE, ISSUE_AGAIN, false, false, say_unmade)                                    \
    ROW(SEQUENCE_NAME, ISSUE_WRONG, false, false, say_name)                                        \
    ROW(SEQUENCE_DATE, ISSUE_WRONG, false, false, say_date)                                        \
    ROW(SEQUENCE_LATER, ISSUE_LOADING, true, false, say_later)                                     \
    ROW(SEQUENCE_CLOSED, ISSUE_NEVER, false, false, say_closed)                                    \
    ROW(SEQUENCE_USED_UP, ISSUE_NEVER, false, true, say_used_up)                                   \
    ROW(SEQUENCE_STOPPED, ISSUE_NEVER, false, false, say_stopped)                                  \
    ROW(SEQUENCE_FORGOTTEN, ISSUE_NEVER, false, false, say_forgotten)                              \
    ROW(SEQUENCE_UNKNOWN, ISSUE_MISS, false, false, say_unknown)                                   \
    ROW(SEQUENCE_DROPPED, ISSUE_MISS, false, false, say_dropped)                                   \
    ROW(SEQUENCE_DIFFERS, ISSUE_NEVER, false, false, say_differs)                                  \
    ROW(SEQUENCE_NO_SUBS, ISSUE_WRONG, false, false, say_no_subs)                                  \
    ROW(SEQUENCE_TOO_MANY_SUBS, ISSUE_NEVER, false, false, say_too_many_subs)                      \
    ROW(SEQUENCE_NO_PERIOD, ISSUE_WRONG, false, false, say_no_period)                              \
    ROW(SEQUENCE_UNREADABLE, ISSUE_NEVER, false, false, say_unreadable)                            \
    ROW(SEQUENCE_AWAY, ISSUE_AGAIN, true, false, say_away)                                         \
    ROW(SEQUENCE_SHUT, ISSUE_AGAIN, true, false, say_shut)                                         \
    ROW(SEQUENCE_BACK, ISSUE_AGAIN, true, false, say_back)                                         \
    ROW(SEQUENCE_OVER, ISSUE_WRONG, false, false, say_closed)                                      \
    ROW(SEQUENCE_OTHER, ISSUE_NEVER, false, false, say_other)

#endif
