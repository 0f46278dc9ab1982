/*
 * The lease protocol for one workerId, as src/coord/pool.lua has it, with small numbers.
 *
 * One table, which is rewound to a snapshot, behind a restart or in place, or lost and made anew;
 * holders that pause for as long as they like, die, or leave; requests and replies that are lost,
 * or come once more, later. True time, the server's clock, which wanders S to either side of it,
 * and the callers' skew are part of the state, so that every margin is met.
 *
 * Checked: I1, the ranges in which anybody can still issue, and those in which IDs were issued, are
 * disjoint.
 *
 * Where a choice is left out, the worst is taken, so that there are fewer states:
 *   - A holder may have issued anything in its range, at any time, until it says less by leaving.
 *     So a holder that dies is one that used its whole range, a grant whose reply is lost is one
 *     whose holder dies at once, and one that lives on by its state page never died.
 *   - Callers are S ahead of the server: a claim needs floor < caller, and no more.
 *   - Other workerIds are busy: they keep tmax at T, which makes for short floors. With QUIET they
 *     may be silent for a while.
 *   - Callers who renew have the right time. With WILD the server's clock may be that far ahead for a
 *     while, and whoever would reopen the pool is refused meanwhile.
 *   - An era is equal to that of the record, or not: `stale`.
 *   - A snapshot is taken only if it will be used, a request copied only if the copy will come.
 *   - What cannot matter any more is 0: topen of a fresh record, t0 of a free one.
 *
 * Not here: the queue, the pool's identity, K replicas, a state page that is put back, a settle that is
 * changed, and holders of another pool: those are the simulation's. So these are not shown to be needed, and left to tests/unit/coord/test_margins and the simulation: that a
 * holder which the table has left behind (its n) cannot re-assert, that a re-assertion keeps the
 * greater n, the upper end of its window, that a release is of this era (a stale record would be
 * freed at its floor), and the n that it tells (no claim is copied here).
 */

#ifndef END
#define END 10 /* true time runs from 0 to here */
#endif
#ifndef TOKENS
#define TOKENS 4 /* claims and renewals, repeated ones not counted */
#endif
#ifndef LOSSES
#define LOSSES 1 /* rewinds, and pools made anew */
#endif
#ifndef COPIES
#define COPIES 1 /* requests that come later, or once more */
#endif

/* What coord_params_check allows, as small as can be. Smaller A0 and A are as safe, and show more in
 * less time. */
#ifndef S
#define S 1
#endif
#ifndef A0
#define A0 (3 * S + 1)
#endif
#ifndef D0
#define D0 (4 * S + 1)
#endif
#ifndef A
#define A (A0 + 2)
#endif

#define MAX(a, b) ((a) > (b) -> (a) : (b))
#define MIN(a, b) ((a) < (b) -> (a) : (b))

#include "rules.pml"

/* ---- the world ---- */

#define SLOW 0
#define FAST (2 * S)

byte now = 0;
byte off = FAST;             /* of the server's clock: SLOW to FAST */
byte tokens = 0;
byte losses = 0;
byte copies = 0;

/* What a pool may be beside: each has a run of its own, and its fields exist in that run alone.
 *
 *   SETTLE     it bets that a server which was away for long has not come back with older data
 *   WORD       an operator may say that nothing was lost, this long after a reopening: four renewals
 *   WRONG      ... and is wrong, nobody having told otherwise yet; nobody claims before somebody does
 *   LEARNT     it was made anew with a horizon that is only so long, where the one that was lost had A
 *
 * Each rests on this: of those who hold a workerId, this or another, and know more than the table has,
 * one is heard by `deadline`. Who holds this one may be cut off all the same.
 */
#if defined(SETTLE) || defined(WORD) || defined(LEARNT)
#define LATER
#endif

#define BET 1
#define SAID 2

#ifdef LATER
bool lacks = false;    /* the table lacks something, and nobody has told since */
byte deadline = 0;     /* of the pool that was reopened last; 0: none */
#endif
#ifdef LEARNT
bool made = false;     /* anew */
#define AP (made -> LEARNT : A)
#else
#define AP A
#endif

#define T (now + off)  /* all clocks are S ahead, so that nothing is negative */
#define CALLER (now + S)
#define SKEWED (off > FAST)
#define HEARS (!(MOVED && SKEWED))

typedef table {
    byte topen, fl, fs, tmax;
#ifdef LATER
    byte trust, lent, fl0, fs0, ahead;
    bool back, more;    /* the word may take the reopening back; somebody knew more in this era */
#endif
    /* the record; token 0: free */
    bool stale; byte hwm, token, t0, n
};

table t, old;          /* the table, and a snapshot of it */
bool moved = false;    /* the server's fingerprint is not the one in the table */
bool snapped = false;
bool snapped_moved = false;

/* lo 0: nobody; nxt: of a renewal whose reply has not come, or 0. h[0] claimed before h[1]. */
typedef holder { byte lo, hi, cur, nxt, n };
holder h[2];

byte used = 0;         /* the latest that was issued by those that are no more */

typedef renewal { byte cur, nxt, hi, n };
renewal late;          /* a copy that comes later; cur 0: none */
typedef parting { byte cur, nxt, last };
parting gone;          /* a release on its way; cur 0: none */

/* Scratch of a step; 0 between steps, or it would multiply the states. */
byte cur, nxt, hi, n;
bool again, lost, proof, young, bet;

inline forget() {
    cur = 0; nxt = 0; hi = 0; n = 0;
    again = false; lost = false; proof = false; young = false; bet = false
}

/* What the exhaustive run came by, for tests/model/run: it must not be right for want of trying. */
#define MET(what) c_code { static int met; if (!met) { met = 1; printf("met: " what "\n"); } }

/* ---- what every operation begins with ---- */

#define HIGH (t.stale -> MAX(t.hwm, (t.token -> FLOOR_OF_HELD : t.fs)) : t.hwm)

#ifdef LATER
#define REACH MAX(AP + 2 * S, t.ahead)
#else
#define REACH (AP + 2 * S)
#endif

inline touch() {
    t.tmax = MAX(t.tmax, NOW)
}

/* Before the floors are raised. */
inline later_reopening() {
#ifdef LATER
    t.fl0 = t.fl; t.fs0 = t.fs; t.back = true; t.more = false; t.trust = 0;
#ifdef SETTLE
    bet = !young && !proof;
    if
    :: bet -> MET("bet"); t.trust = BET; t.lent = T + REACH
    :: else
    fi;
#endif
    deadline = 0;
    if
#ifdef SETTLE
    :: lacks && bet -> deadline = now + SETTLE - S + 1
#endif
#ifdef WORD
    :: lacks -> deadline = now + WORD
#endif
    :: else
    fi
#else
    skip
#endif
}

/* Somebody knows more than the table. */
inline hear_more() {
#ifdef LATER
    t.more = true; lacks = false; deadline = 0;
    if
    :: t.trust == BET && ENDS_TRUST ->
        MET("bet ended by who knows more");
        t.trust = 0; t.fs = MAX(t.fs, t.fl)
    :: t.trust == SAID && ENDS_TRUST ->
        MET("word undone");
        t.trust = 0; t.fl = MAX(t.fl, t.topen + REACH); t.fs = MAX(t.fs, t.fl);
        OUTDATE_FREED; t.topen = T
    :: else
    fi
#else
    skip
#endif
}

/* A holder's pool may have been another one, with A. */
inline learn(far) {
#ifdef LEARNT
    if
    :: LEARNS(far) ->
        MET("horizon learnt");
        t.ahead = far; t.more = true;
        t.fl = RISEN(t.fl, t.topen + far);
        t.fs = RISEN(t.fs, t.topen + far)
    :: else
    fi
#else
    skip
#endif
}

inline enter() {
    if
    :: MOVED || proof ->
        young = GAP_IS_SHORT && !PROVEN && NOTHING_IS_LENT;
        OUTDATE;
        t.topen = T;
        later_reopening();
        t.fl = MAX(t.fl, LONG_FLOOR);
        t.fs = MAX(t.fs, (young -> SHORT_FLOOR : (bet -> BET_FLOOR : t.fl)))
    :: else
    fi;
    moved = false;
    touch()
}

inline save() {
    t.stale = false; t.n++;
#ifndef LATER
    t.topen = 0
#endif
}

/* ---- the operations ---- */

#ifdef WRONG
#define NOBODY_CLAIMS lacks
#else
#define NOBODY_CLAIMS false
#endif
#define CLAIMABLE (!NOBODY_CLAIMS && !SKEWED && !(t.token && !t.stale) && MAY_CLAIM(HIGH))

/* What is got now lies above all that anybody used or may use. */
inline claim(i) {
    tokens++;
    h[i].lo = ABOVE(HIGH); h[i].hi = T + A0; h[i].cur = tokens; h[i].n = t.n + 1;
    if
    :: t.stale && t.token -> MET("claim of a stale record that says owned")
    :: t.stale && !t.token && t.fs < t.fl -> MET("claim above a short floor")
    :: t.stale && !t.token && t.fs == t.fl -> MET("claim of a free record above the long floor")
    :: else
    fi;
    t.hwm = T + A0; t.token = tokens; t.t0 = T;
    save();
    assert(h[i].lo > used);
    assert(i == 0 || h[i].lo > h[0].hi)
}

inline set_free() {
    t.hwm = FREED_HWM; t.token = 0; t.t0 = 0;
    save()
}

/* cur, nxt, hi, n -> lost, or hi, n */
inline renew() {
    proof = PROOF;
    enter();
    learn(A + 2 * S);
    if
    :: proof || (t.stale && n > t.n) -> hear_more()
    :: else
    fi;
    if :: proof -> MET("rewind proven by a renewal") :: else fi;
    again = t.token && !t.stale && t.token == nxt;
    if
    :: again
    :: !again && !t.stale -> lost = !KNOWN(cur)
    :: !again && t.stale ->
        lost = (t.n > n && t.token != nxt) || TOO_LOW || hi > t.topen + REACH;
        if
        :: !lost ->
            MET("re-assertion");
            t.hwm = REASSERTED_HWM; t.n = MAX(t.n, n); t.t0 = REASSERTED_T0
        :: else -> MET("re-assertion refused")
        fi
    fi;
    if
    :: lost
    :: else ->
        if
        :: NOW >= t.t0 + D0 -> MET("renewal of a mature tenure")
        :: else -> MET("renewal of a young tenure")
        fi;
        hi = MAX(OWN, NOW + AHEAD);
        if
        :: again -> MET("renewal answered again"); hi = MIN(t.hwm, hi)
        :: else -> t.hwm = RAISED; t.token = nxt; save()
        fi;
        n = t.n
    fi
}

inline release() {
    if
    :: t.token && !t.stale && ITS_OWN ->
        if :: gone.last < t.hwm -> MET("release that lowers hwm") :: else fi;
        if
        :: gone.last < t.fs && t.fs < t.hwm -> MET("release held up by the short floor")
        :: else
        fi;
        t.hwm = MIN(t.hwm, CLAMPED(gone.last));
        set_free()
    :: else
    fi
}

/* ---- steps of holders ---- */

/* The other one moves up: which is first says nothing but who claimed earlier. */
inline end_of(i, last) {
    used = MAX(used, last);
    if
    :: i == 0 ->
        h[0].lo = h[1].lo; h[0].hi = h[1].hi;
        h[0].cur = h[1].cur; h[0].nxt = h[1].nxt; h[0].n = h[1].n
    :: else
    fi;
    h[1].lo = 0; h[1].hi = 0; h[1].cur = 0; h[1].nxt = 0; h[1].n = 0
}

inline ask(i) {
    if
    :: !h[i].nxt -> tokens++; h[i].nxt = tokens
    :: else
    fi;
    cur = h[i].cur; nxt = h[i].nxt; hi = h[i].hi; n = h[i].n
}

/* From h[i].hi, the ceiling so far, to hi is free of others. */
inline hear(i) {
    if
    :: lost -> MET("holder told that it has lost"); end_of(i, h[i].hi)
    :: else ->
        assert(hi <= h[i].hi || used <= h[i].hi);
        assert(hi <= h[i].hi || !h[1 - i].lo || h[1 - i].hi <= h[i].hi || h[1 - i].lo > hi);
        h[i].hi = MAX(h[i].hi, hi); h[i].n = n; h[i].cur = nxt; h[i].nxt = 0
    fi
}

inline keep_copy() {
    copies++; late.cur = cur; late.nxt = nxt; late.hi = hi; late.n = n
}

inline run_copy() {
    MET("late copy of a renewal");
    cur = late.cur; nxt = late.nxt; hi = late.hi; n = late.n;
    late.cur = 0; late.nxt = 0; late.hi = 0; late.n = 0;
    renew()
}

#define UNUSED(i) (h[i].lo - 1)

/* hi: the exact last time, which is all of the range or nothing.
 * Marked as leaving first: nothing is issued any more, whatever becomes of the request. */
inline leave(i) {
    gone.cur = h[i].cur; gone.nxt = (h[i].nxt -> h[i].nxt : h[i].cur);
    gone.last = hi;
    if
    :: hi == UNUSED(i) -> end_of(i, hi)
    :: else -> end_of(i, h[i].hi)
    fi
}

#define RENEWS(i) (HEARS && h[i].lo && (h[i].nxt || tokens < TOKENS))

inline holder_steps(i) {
    if
    :: d_step { RENEWS(i) -> ask(i); renew(); hear(i); forget() }
    :: d_step { RENEWS(i) -> ask(i); renew(); forget() } /* the reply is lost */
    :: d_step { RENEWS(i) && !late.cur && copies < COPIES -> ask(i); keep_copy(); forget() }
    :: d_step { h[i].lo && h[1].lo -> end_of(i, h[i].hi) } /* one alone may as well live */
    :: d_step { h[i].lo && !gone.cur -> hi = TOLD(i); leave(i); forget() }
    :: d_step { h[i].lo && !gone.cur -> hi = UNUSED(i); leave(i); forget() }
    fi
}

/* ---- steps of the coordinator ---- */

/* What the table is set back to is another one than it was. */
#define DIFFERS (old.n != t.n || old.token != t.token || old.stale != t.stale || old.fs != t.fs)

inline copy(to, from) {
#ifdef LATER
    to.trust = from.trust; to.lent = from.lent; to.fl0 = from.fl0; to.fs0 = from.fs0;
    to.ahead = from.ahead; to.back = from.back; to.more = from.more;
#endif
    to.topen = from.topen; to.fl = from.fl; to.fs = from.fs; to.tmax = from.tmax;
    to.stale = from.stale; to.hwm = from.hwm; to.token = from.token; to.t0 = from.t0; to.n = from.n
}

/* The last loss makes a snapshot worthless, each rewind makes it equal to what it is now. */
inline drop_snapshot() {
#ifdef LATER
    old.trust = 0; old.lent = 0; old.fl0 = 0; old.fs0 = 0; old.ahead = 0;
    old.back = false; old.more = false;
#endif
    old.topen = 0; old.fl = 0; old.fs = 0; old.tmax = 0;
    old.stale = 0; old.hwm = 0; old.token = 0; old.t0 = 0; old.n = 0;
    snapped = false; snapped_moved = false
}

inline snapshot() {
    copy(old, t); snapped = true; snapped_moved = moved
}

/* Back to the snapshot, in a server that can tell. */
inline rewind() {
#ifdef LATER
    lacks = lacks || DIFFERS; deadline = 0;
#endif
    losses++; copy(t, old); drop_snapshot(); moved = true
}

/* All is lost, and made anew after the loss. */
inline anew() {
    losses++;
#ifdef LEARNT
    made = true; lacks = true; deadline = now + LEARNT - S + 1;
#endif
    t.topen = T; t.tmax = T; t.fl = INIT_FLOOR; t.fs = t.fl;
    t.stale = INIT_STALE; t.hwm = 0; t.token = 0; t.t0 = 0; t.n = 0;
    moved = false;
#ifdef LATER
    t.trust = 0; t.lent = 0; t.fl0 = 0; t.fs0 = 0; t.ahead = 0; t.back = false; t.more = false;
#endif
#if defined(LATER) && !defined(LEARNT)
    lacks = false; deadline = 0;
#endif
    if :: losses == LOSSES -> drop_snapshot() :: else fi
}

/* Back to the snapshot, in a server that knows nothing of it. Nothing is promised before a holder
 * is heard whose n is above the table's, so one is heard at once; others were before, which raised
 * tmax. It is one of another workerId: this one's may be heard next. */
#define UNNOTICED (!SKEWED && losses < LOSSES && snapped && !snapped_moved && !moved)
inline rewind_in_place() {
    losses++; copy(t, old); drop_snapshot(); touch();
    proof = HEARD;
    enter();
    hear_more()
}

#ifdef LATER
/* A holder of another workerId. */
inline tell() {
    learn(A + 2 * S); hear_more()
}
#endif

inline coordinator_steps() {
    if
    :: d_step { MOVED && !SKEWED -> enter(); forget() } /* an operation on another workerId */
#ifdef QUIET
    :: d_step { !moved && t.tmax < T -> touch() }
#endif
    /* reaped, evicted, or released by whoever has a copy of the page, without a last time */
    :: d_step { !MOVED && t.token -> set_free() }
    :: d_step { gone.cur && !MOVED -> release(); gone.cur = 0; gone.nxt = 0; gone.last = 0 }
    :: d_step { gone.cur && !MOVED && copies < COPIES -> copies++; release() }
    :: d_step { late.cur && HEARS -> run_copy(); forget() }
    :: d_step { losses < LOSSES && !snapped -> snapshot() }
    :: d_step { losses < LOSSES && snapped -> rewind() }
    :: d_step { losses < LOSSES && !SKEWED -> anew() }
    :: d_step { UNNOTICED -> rewind_in_place(); forget() }
#ifdef LATER
    :: d_step { lacks && !MOVED -> tell() }
#endif
#ifdef SETTLE
    :: d_step { losses < LOSSES && !moved -> losses++; moved = true } /* it restarts, with all */
#endif
#ifdef WORD
    :: d_step { losses < LOSSES && !moved -> losses++; moved = true }
    :: d_step { !MOVED && !SKEWED && MAY_SAY ->
           MET("operator's word"); t.fl = TAKEN_BACK(t.fl0); t.fs = TAKEN_BACK(t.fs0);
           t.back = false; t.trust = SAID; deadline = 0 }
#endif
#ifdef LEARNT
    :: d_step { made && !MOVED -> learn(LEARNT + 2 * S) } /* one of a smaller pool */
#endif
    fi
}

#if defined(LATER) && !defined(WRONG)
#define IN_TIME (!deadline || now + 1 < deadline)
#else
#define IN_TIME true
#endif

inline busy() {
#ifndef QUIET
    if :: !moved -> touch() :: else fi
#else
    skip
#endif
}

init {
    t.tmax = T;
end:
    do
    :: d_step { !h[1].lo && !h[0].lo && tokens < TOKENS && !MOVED && CLAIMABLE -> claim(0) }
    :: d_step { !h[1].lo && h[0].lo && tokens < TOKENS && !MOVED && CLAIMABLE -> claim(1) }
    :: holder_steps(0)
    :: holder_steps(1)
    :: coordinator_steps()
    :: d_step { now < END && IN_TIME -> now++; busy() }
    :: d_step { off -> off = SLOW; busy() }
#ifdef WILD
    :: d_step { !SKEWED -> off = WILD; busy() }
#endif
    :: d_step { !off -> off = FAST; busy() }
    od
}
