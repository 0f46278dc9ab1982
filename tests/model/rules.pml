/*
 * The rules of lease.pml. Each -D takes one away; tests/model/run shows that I1 is then broken.
 *
 * They are texts put into its operations, and speak of what is there: T the server's time, t the
 * table, h[i] a holder, gone a release, cur nxt hi n a renewal's fields.
 */

#ifdef NO_2S
#define MARGIN 0
#else
#define MARGIN (2 * S)
#endif

#ifdef NO_LONG_FLOOR
#define LONG_FLOOR 0
#else
#define LONG_FLOOR (T + REACH - 2 * S + MARGIN)
#endif

#ifdef NO_SHORT_FLOOR
#define SHORT_FLOOR 0
#else
#define SHORT_FLOOR (T + A0 + MARGIN)
#endif

#ifdef SHORT_ALWAYS
#define GAP_IS_SHORT true
#else
/* tmax may be S fast, the start of a lost tenure S slow; its last renewal S fast, T S slow. */
#ifdef GAP_2S_LONGER
#define GAP_IS_SHORT (T + 2 * S < t.tmax + D0)
#else
#define GAP_IS_SHORT (T + 4 * S < t.tmax + D0)
#endif
#endif

#ifdef PROOF_AND_SHORT
#define PROVEN false
#else
#define PROVEN proof
#endif

#ifdef ERA_KEPT
#define OUTDATE skip
#else
#define OUTDATE t.stale = true
#endif

#ifdef FP_IGNORED
#define MOVED false
#else
#define MOVED moved
#endif

#ifdef N_IGNORED
#define HEARD false
#define PROOF false
#else
#define HEARD true
#define PROOF (!moved && !t.stale && n > t.n)
#endif

#ifdef CLAIM_IGNORES_HWM
#define MAY_CLAIM(floor) true
#else
#define MAY_CLAIM(floor) ((floor) < T + S)
#endif

#ifdef LO_IS_HWM
#define ABOVE(floor) (floor)
#else
#define ABOVE(floor) ((floor) + 1)
#endif

#ifdef RENEWAL_WITHOUT_TOKEN
#define KNOWN(cur) (t.token != 0)
#else
#define KNOWN(cur) (t.token == (cur))
#endif

#ifdef NO_WINDOW
#define TOO_LOW false
#else
#ifdef WINDOW_2S
#define TOO_LOW (hi < t.topen + 2 * S)
#else
#define TOO_LOW (hi < t.topen + 3 * S)
#endif
#endif

#ifdef REASSERTS_BELOW_FLOOR
#define REASSERTED_HWM hi
#else
#define REASSERTED_HWM MAX(HIGH, hi)
#endif

#ifdef AGE_KEPT
#define REASSERTED_T0 t.t0
#else
#define REASSERTED_T0 T
#endif

#ifdef YOUNG_GETS_A
#define AHEAD AP
#else
#define AHEAD (NOW >= t.t0 + D0 -> AP : A0)
#endif

#ifdef ANSWERS_HWM
#define OWN t.hwm
#else
#define OWN MIN(t.hwm, hi)
#endif

#ifdef HWM_NOT_RAISED
#define RAISED t.hwm
#else
#define RAISED MAX(t.hwm, hi)
#endif

#ifdef RELEASE_WITHOUT_TOKEN
#define ITS_OWN true
#else
#define ITS_OWN (t.token == gone.cur || t.token == gone.nxt)
#endif

#ifdef FOLLOWS_WILD
#define NOW T
#else
#define NOW (T > CALLER + 2 * S -> CALLER : T)
#endif

#ifdef NO_CLAMP
#define CLAMPED(last) (last)
#else
#define CLAMPED(last) MAX(last, t.fs)
#endif

#ifdef RELEASE_BELOW_LAST
#define TOLD(i) (h[i].hi - 1)
#else
#define TOLD(i) h[i].hi
#endif

#ifdef FREED_AS_IT_STANDS
#define FREED_HWM t.hwm
#else
#define FREED_HWM HIGH
#endif

#ifdef INIT_WITHOUT_FLOOR
#define INIT_FLOOR 0
#else
#define INIT_FLOOR (T + AP + 2 * S)
#endif

#ifdef INIT_IN_ERA_1
#define INIT_STALE false
#else
#define INIT_STALE true
#endif

/* ---- a bet on settle ---- */

#if defined(SETTLE)
#define BET_FLOOR (T + SETTLE + 2 * S)
#else
#define BET_FLOOR t.fl
#endif

#ifdef BET_ON_HELD
#define FLOOR_OF_HELD t.fs
#else
#define FLOOR_OF_HELD t.fl
#endif

#ifdef BET_FOR_GOOD
#define ENDS_TRUST (t.trust == SAID)
#else
#ifdef WORD_FOR_GOOD
#define ENDS_TRUST (t.trust == BET)
#else
#define ENDS_TRUST (t.trust != 0)
#endif
#endif

#if !defined(SETTLE)
#define NOTHING_IS_LENT true
#else
#ifdef LENT_IGNORED
#define NOTHING_IS_LENT true
#else
#define NOTHING_IS_LENT (T >= t.lent)
#endif
#endif

/* ---- an operator's word ---- */

#ifdef WORD_AT_ONCE
#define WAITED true
#else
#define WAITED (T >= t.topen + WORD + 2 * S)
#endif

#ifdef WORD_AGAINST_MORE
#define MAY_SAY (t.back && WAITED)
#else
#define MAY_SAY (t.back && !t.more && WAITED)
#endif

#ifdef FREED_SINCE_THE_WORD
#define OUTDATE_FREED skip
#else
#define OUTDATE_FREED t.stale = true
#endif

#ifdef WORD_TAKES_ALL
#define TAKEN_BACK(floor) 0
#else
#define TAKEN_BACK(floor) (floor)
#endif

/* ---- a horizon that is learnt ---- */

#ifdef LEARNS_NOTHING
#define LEARNS(more) false
#else
#define LEARNS(more) ((more) > REACH || (MAY_LEARN_LESS && (more) != t.ahead))
#endif

#ifdef LEARNS_LESS
#define MAY_LEARN_LESS true
#define RISEN(floor, to) (to)
#else
#define MAY_LEARN_LESS false
#define RISEN(floor, to) MAX(floor, to)
#endif
