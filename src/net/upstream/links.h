/*
 * Real servers, the links to them, and what stands between a link and a connection: what the files
 * of this room share, and those of net/ that close connections, keep their memory or carry them.
 */
#ifndef SIDFLAKE_NET_UPSTREAM_LINKS_H
#define SIDFLAKE_NET_UPSTREAM_LINKS_H

#include "net/private.h"
#include "net/upstream/resolve.h"

/* Whose turn it is, and where it waited for that. */
enum relay_called {
    CALLED_NOT,
    CALLED_BY_LINK,
    CALLED_BY_MUCH, /* by a crowd: crowd.c */
    CALLED_BY_VERY_MUCH
};

/* relay.c: what stands between a connection and its link */
struct relay {
    struct conn *c;          /* NULL: closed; replies are discarded */
    struct upstream_link *l; /* NULL: none; a shared one is there only while pending or blocked */
    uint32_t pending;        /* replies expected */
    uint32_t size;           /* bytes of a reply to it, about: see relay_measure */
    uint32_t window;         /* replies that it may expect; >= 1 */
    uint32_t enough;         /* it is woken when no more than so many are */
    uint32_t asked;      /* words of the request sent last, whose reply is not expected yet … */
    uint32_t part;       /* … and, if many, of that which is not whole yet, and whose reply is */
    struct crowd *crowd; /* it waits for its turn there; NULL: it does not */
    enum relay_called called;
    bool own;     /* from now on: l is its own, or there is none */
    bool blocked; /* waits for l: to open, or for room */
    bool down;    /* what it waited for has failed */
    bool tunnel;  /* see net/upstream/upstream.h */
    bool loud;    /* had a large request or reply: the next goes on a link of its own, if it may */
    bool broken;  /* a request could not be forwarded whole: close */
    bool late;    /* a request without a reply may block there, and so the next reply may */
    bool owes;    /* the last reply expected is to a request that the client has sent in part */
    int64_t held_us;        /* that others waited for it on shared links, in all pauses ended … */
    int64_t slow_us;        /* … and without what a quick one needs for what it took; >= 0 */
    struct frame_subs subs; /* on its own link, as far as the replies have come */
};

void relay_closed(struct conn *c);      /* the connection closes */
void relay_send(struct conn *c);        /* a turn ends: what it has cost is not known before */
void relay_settled(struct conn *c);     /* a turn has ended, or output was taken */
bool relay_waits(const struct conn *c); /* for replies that will come */
/* It expects replies or is subscribed, so it is not idle, though it sends nothing. */
bool relay_is_served(const struct conn *c);
/* It waits for room on its own link, and for no reply. */
bool relay_says(const struct conn *c);
/* A message (Pub/Sub) has come in part: whatever we wrote now would stand in the middle of it. */
bool relay_hears_unasked(const struct relay *r);
void relay_behind(struct conn *c); /* it was set BEHIND */
void relay_whole(struct relay *r); /* a request was sent to its end, or none of the next was */
void relay_answered(struct relay *r, uint32_t n);
/* n replies of so many bytes in all have come; 0: one has begun, of at least so many. */
void relay_measure(struct relay *r, uint32_t n, size_t bytes);
/* Gives it a link of its own that is open; false: no memory, and fd is closed. */
bool relay_adopt(struct conn *c, int fd);
/* n replies are to come on it; false: no memory. */
bool relay_expect(struct relay *r, uint8_t kind, uint32_t n, uint8_t flags, uint32_t acks);
void relay_go_on(struct conn *c, enum relay_called called); /* it is BEHIND, and no more */
void relay_wake(struct conn *c); /* if it is BEHIND, it goes on at the next net_go_on */
void net_go_on(struct net *n);
bool net_may_go_on(const struct net *n); /* there is somebody left */

/* uplink.c: links to servers */
struct expect {
    struct relay *r;
    uint32_t n;
    uint32_t words; /* of a request of many, which the last of n replies is to */
    uint8_t kind;   /* of enum frame_kind */
    uint8_t flags;  /* of enum upstream_flag */
    uint32_t acks;  /* 0, or n is 1, and it may end with so many: see upstream_expect_acks */
};

enum link_state {
    LINK_LOOKING, /* without a socket: the name is being looked up */
    LINK_CONNECTING,
    LINK_GREETING, /* connected: the login; see greet.c */
    LINK_PROBING,  /* shared, or optional: the service's probe */
    LINK_OPEN,
    LINK_LEAVING, /* nobody's any more: see leave.c */
    LINK_BROKEN,  /* freed before the loop sleeps again */
};

enum link_end {
    LINK_END_OPEN, /* not decided */
    LINK_END_ORDERLY,
    LINK_END_RESET,
};

struct upstream_link {
    struct ev_io rd, wr;
    struct upstream *up;
    struct link all;       /* upstream.links, or net.broken */
    struct link dirty;     /* net.dirty */
    struct link roomy;     /* net.roomy */
    struct link waiters;   /* conn.park of those who are blocked */
    struct relay *owner;   /* NULL: shared */
    struct relay *stalled; /* shared: does not take its reply; reading has paused */
    enum link_state state;
    bool framing;  /* frame is under way */
    bool unasked;  /* nothing was expected when it began, whatever is by now */
    bool used;     /* something was sent */
    bool heard;    /* a reply has come that is no refusal … */
    bool refused;  /* … or was counted as one */
    bool denied;   /* one that is has come */
    bool done;     /* retired, and nothing is expected */
    bool mute;     /* the last request has no reply: nothing shows that the server took it */
    bool optional; /* a client's own, still opening: if it is refused, the shared one will do */
    bool extra;    /* counted in upstream.extras */
    bool outdated; /* shared: others begin with another login by now */
    uint8_t lane;
    uint8_t speaks;      /* the shared lane whose protocol it speaks: lane, where that is shared */
    uint8_t end;         /* enum link_end */
    uint8_t tries;       /* addresses tried … */
    int64_t tried_us;    /* … the latest since then, monotonic */
    uint32_t round;      /* of upstream, when the one at hand was */
    uint32_t refusals;   /* of upstream, when it was made */
    struct kept out;     /* requests not sent */
    struct kept in;      /* what the framer wants to see again */
    struct expect *fifo; /* a ring, in the order of the requests */
    uint32_t fifo_at, fifo_n, fifo_cap;
    uint32_t replies; /* expected, over all entries */
    uint32_t patient; /* among them: those that may take any time */
    uint32_t orphans; /* among them, on a shared one: those of clients that are gone */
    uint32_t size;    /* bytes of a reply, about */
    struct frame frame;
    uint64_t frame_n;           /* bytes of it */
    uint64_t at;                /* a hash of the address that it was dialled to; 0: none yet */
    int64_t since_us;           /* monotonic: latest sign of life while one is expected */
    int64_t stalled_us;         /* monotonic: since then … */
    size_t stalled_n;           /* … when so many bytes were not taken … */
    struct net_peer stalled_by; /* … by this one, who cannot be asked any more if he goes */
};

/* reach.c: whether a server can be reached */
struct backoff {
    int64_t until_us; /* monotonic: not to be tried before; 0: at once */
    int64_t step_us;  /* the latest wait */
};

/* Each has a limit of its own in the log. */
enum upstream_trouble {
    TROUBLE_CONNECT,
    TROUBLE_ADDRESS,
    TROUBLE_LOGIN,
    TROUBLE_SHARED,
    TROUBLE_RETIRED,
    TROUBLE_OWN,
    TROUBLE_LEFT,
    TROUBLE_HERE,
    TROUBLE_FAULT,
    TROUBLE_MOVED,
    TROUBLES
};

/* cut.c: who held up others */
#define CUTS 64 /* parties; the one that came first makes room */

struct cut {
    uint64_t id[2]; /* net_peer.id */
    int64_t until_us;
    uint32_t left; /* connections */
};

struct cuts {
    struct cut of[CUTS];
    unsigned at;
    int64_t latest_us; /* monotonic: when it was */
    struct log_limit said;
};

/* leave.c: orderly closes, each of which keeps its port for a minute (TIME_WAIT) */
struct farewells {
    uint32_t n;    /* not long ago … */
    int64_t at_us; /* … as of this time, monotonic */
};

/* crowd.c: who asks for much, or for very much */
#define CROWDS 2

struct crowd {
    uint64_t words;    /* of requests that are under way */
    struct link line;  /* conn.park of those who wait until these are less */
    struct link roomy; /* net.uncrowded */
};

/* greet.c: what links begin with */
struct greeting {
    char *bytes; /* of g, ours; NULL: none */
    struct upstream_greeting g;
};

struct upstream {
    struct net *net;
    struct net_service *svc;
    struct link all; /* net.upstreams */
    struct link links;
    struct upstream_link *shared[UPSTREAM_SHARED]; /* by lane; NULL: none */
    struct upstream_link *next[UPSTREAM_SHARED];   /* is to take its place once it is open */
    uint32_t others_max;                           /* links but these; 0: no limit */
    uint32_t extras; /* among them: those that were optional, and those that were replaced */
    struct upstream_stats stats;
    struct ev_timer tick; /* runs while something is expected */
    int64_t due_us;       /* monotonic: when it is to fire */
    int64_t timeout_us;
    size_t buffer;
    int64_t hurry_us;   /* monotonic: until then nobody may hold up others for long */
    int64_t left_us;    /* that all together may, before there is hurry or in it; >= 0 … */
    int64_t charged_us; /* … at this time, monotonic: when a pause ended */
    struct cuts cuts;
    struct farewells farewells;
    struct crowd crowd[CROWDS];
    struct backoff connects;              /* after a round of all addresses */
    struct backoff lane[UPSTREAM_SHARED]; /* after a shared link that brought no reply */
    struct greeting greeting[UPSTREAM_SHARED];
    struct backoff refused[UPSTREAM_SHARED];  /* after a login that did not let us in */
    struct backoff unready[UPSTREAM_SHARED];  /* after a successor that did not come to be */
    struct backoff unspared[UPSTREAM_SHARED]; /* after an optional link that did not, likewise */
    uint32_t round;    /* counts changes of what is known of the address in use */
    uint32_t refusals; /* counts what stats.unshared_us and unowned_us are of */
    unsigned missed;   /* addresses that failed, one after the other */
    unsigned spoken;   /* the shared lane whose protocol the latest link speaks */
    enum {
        SAID_NOTHING,
        SAID_LOST,
        SAID_REACHED
    } said;                        /* by the log */
    enum upstream_trouble said_of; /* SAID_LOST: of what kind … */
    char said_why[160];            /* … and how; a refusal is no longer */
    struct log_limit limit[TROUBLES];
    char why[ERR_TEXT_MAX];
    char fault[160];  /* the latest of stats.faults */
    char denial[160]; /* the latest refusal that came in the place of a reply */
    char *text;       /* its address, as configured */
    unsigned naddr, at;
    bool cut;                     /* these are not all that its name leads to */
    bool astray[UPSTREAM_SHARED]; /* the shared link is at none of them */
    bool doubted;                 /* a client has come since the name was asked for … */
    bool asking;                  /* … which has not been answered yet … */
    int64_t asked_us;             /* … at this time, monotonic */
    struct sockaddr_storage addr[ADDRESSES];
    socklen_t addr_n[ADDRESSES];

    /* find.c: of a server that has a name */
    struct resolver *resolver; /* NULL: the addresses are known for good */
    struct ev_async found;
    char host[256];
    int64_t found_us; /* monotonic: the addresses are from then; INT64_MIN: there are none */
};

struct upstream_link *link_new(struct upstream *up, struct relay *owner, unsigned lane);
struct upstream_link *link_adopt(struct upstream *up, struct relay *owner, int fd);
/* Its addresses are known, or not to be had. */
void link_found(struct upstream_link *l);
void link_opened(struct upstream_link *l);
void link_close(struct upstream_link *l); /* without a word to anybody */
void link_fail(struct upstream_link *l, const char *why);
void link_ended(struct upstream_link *l); /* the server has closed it, and owes nothing */
void link_spoil(struct upstream_link *l); /* the same for want of memory: not the server's fault */
void link_drop(struct upstream_link *l);  /* the same, and nothing is said of it */
bool link_has_room(const struct upstream_link *l);
/* Replies that r may expect on it; >= 1. */
uint32_t link_share(const struct upstream_link *l, const struct relay *r);
/* There may be one more link but the shared ones in use: a client's own, or one that is retired. */
bool upstream_may_own(const struct upstream *up);
/* The same for one that nobody is in need of: those leave half of them to others. */
bool upstream_may_have_extra(const struct upstream *up);
void link_set_extra(struct upstream_link *l, bool extra); /* it is one from now on, or is none */
bool link_put(struct upstream_link *l, struct span bytes);
bool link_expect(struct upstream_link *l, const struct expect *x);
/* Whether a client that does not take its reply holds up others: they expect replies behind it,
 * wait for room on the link, or rest until no reply is expected. */
bool link_others_wait(const struct upstream_link *l, const struct relay *stalled);
void link_retire(struct upstream_link *l);  /* shared: takes no more requests */
void link_replace(struct upstream_link *l); /* shared: the same, once another can take its place */
/* A link has closed, is no extra any more, or one may be opened again: perhaps there was no room
 * for the successor of one that is shared. */
void links_replace_outdated(struct upstream *up);
void link_deserted(struct upstream_link *l, uint32_t n); /* shared: who expects n replies is gone */
void link_read_on(struct upstream_link *l);
/* If it is open and has room, those who wait for that have their turns at the next net_go_on. */
void link_wake(struct upstream_link *l);
void link_free(struct upstream_link *l);
void link_send(struct upstream_link *l); /* what it has, now, if there is anything */
/* As much of that as the server takes. 0: all; or an errno, EAGAIN where it takes no more now. */
int link_write(struct upstream_link *l);
void upstreams_flush(struct net *n);

/* crowd.c: who asks for much at once */
void crowd_ask(struct relay *r, uint32_t words); /* a reply is expected to a request of so many … */
void crowd_whole(struct relay *r); /* … which is under way as soon as the client has sent it … */
void crowd_lighten(struct upstream *up, struct expect *x);         /* … and is not any more … */
void crowd_forget(struct upstream_link *l, const struct relay *r); /* … as all of r's on l */
void crowd_look(struct upstream_link *l, int64_t now);             /* perhaps nothing comes on it */
/* Who asks for so many has to wait until nothing is pending … */
bool crowd_holds(const struct relay *r, uint32_t words);
/* … or until the others ask for less … */
bool crowd_bars(const struct relay *r, const struct upstream *up, uint32_t words);
enum upstream_ready crowd_enter(struct relay *r, struct upstream *up, uint32_t words); /* … so: */
void crowd_wait(struct relay *r, struct upstream *up); /* it is BEHIND … */
void crowd_call(struct crowd *c); /* … until net_go_on finds that the first may go on */

/* reach.c, what has happened: */
bool upstream_waits(const struct upstream *up, unsigned lane, unsigned speaks); /* not now */
/* The address in use did not let l connect. */
void upstream_missed(const struct upstream_link *l, const char *why);
/* A link that had connected was not let in: another address may do better. */
void upstream_turned_away(const struct upstream_link *l);
void upstream_lookup_failed(const struct upstream_link *l, const char *why); /* of its name */
void upstream_connected(struct upstream *up);
/* The server's reply to a greeting: words that are not those in the log are told, too. */
void upstream_says(struct upstream *up, const char *why);
/* The login was, or a shared link that was probed. */
void upstream_refused(const struct upstream_link *l, const char *why);
/* A reply says so before another has come; alien: it is of another kind. */
void upstream_unserved(struct upstream_link *l, const char *why, bool alien);
void upstream_unsent(struct upstream *up, size_t bytes);    /* which who has gone left to be sent */
void upstream_faulty(struct upstream *up, const char *why); /* it serves, but says so */
void upstream_unanswered(struct upstream *up,
                         const char *why);    /* a client's own was not, in time */
void upstream_moved(struct upstream *up);     /* what is shared is not where the name leads */
void upstream_serves(struct upstream *up);    /* a shared link was let in */
void upstream_heard(struct upstream_link *l); /* it has brought a reply that is no refusal */
void upstream_broke(const struct upstream_link *l, const char *why);
void upstream_doubt(struct upstream *up);                         /* a client's own has timed out */
void upstream_short(struct upstream *up, const char *why);        /* it is we who cannot */
void upstream_short_of_own(struct upstream *up, const char *why); /* have a client's own */
/* One that was to take load off a shared link did not come to be; b: of its kind. */
void upstream_unready(struct upstream *up, struct backoff *b, const char *why);

/* find.c: where it is */
enum err_code find_begin(struct upstream *up, const struct addr *a, upstream_look_up *look_up,
                         struct err *e) MUST_CHECK;
bool find_must_ask(struct upstream *up);  /* the name has to be looked up, and is being so */
bool find_has(const struct upstream *up); /* addresses that may be used */
void find_doubt(struct upstream *up);     /* a client has come: does it still lead there? */
void find_follow(struct upstream *up);    /* what is shared, as long as that is not so */
uint64_t find_place(const struct upstream *up, unsigned i); /* of upstream_link.at */
void find_end(struct upstream *up);

/* dial.c: a connection to the address in use is under way, or to the next that lets it begin; the
 * second: what was under way could not be had. false: to none. */
bool link_dial(struct upstream_link *l);
bool link_dial_elsewhere(struct upstream_link *l, const char *why);

/* greet.c */
#define GREET_ALIEN "it does not speak the protocol"
/* It has connected. false: there is nothing to say. */
bool greet(struct upstream_link *l);
void greet_hear(struct upstream_link *l);
void greet_again(struct upstream_link *l); /* a shared one, if nothing else is expected on it */
/* Whether the reply is one of a server that does not serve this connection, and if so what follows
 * for what is known of it. */
bool greet_is_refusal(struct upstream_link *l, struct span reply);
/* An error may be one of the server's own. */
void greet_note_fault(struct upstream_link *l, struct span reply);
void greetings_free(struct upstream *up);

/* cut.c */
void cut_note(struct upstream *up, const struct net_peer *peer); /* it holds up others */
/* Closes the client that has stalled l, if that is for too long and others wait. */
bool cut_slow(struct upstream_link *l, int64_t now);
void cut_pause_begins(struct upstream_link *l, struct relay *r, int64_t now);
void cut_pause_ends(struct upstream_link *l, int64_t now); /* however; its client is still known */
bool cut_hurries(const struct upstream *up, int64_t now);  /* there is little time for that */
/* Whether c, which asks for the first time, should have a link of its own. */
bool cut_recalls(struct upstream *up, const struct conn *c);

/* upstream.c: servers */
void upstream_tick(struct upstream *up);      /* something is expected: its timer has to run */
void upstream_tick_anew(struct upstream *up); /* the same, and look sooner where there is hurry */
void upstreams_free(struct net *n);

static inline int64_t upstream_now_us(const struct upstream *up)
{
    return clock_mono_us(up->net->conf.clock);
}

/* leave.c: a client's own link that is his no longer */
void link_leave(struct upstream_link *l);
void leave_ended(struct upstream_link *l);    /* it is about to be closed */
bool leave_by_reset(struct upstream_link *l); /* is how it ends, which is decided once */
/* It is there for the server to read what it was sent, and closed once that had its time. */
bool leave_waits(struct upstream_link *l, int64_t now);
/* Whether one more may be closed in order. */
bool leave_orderly(struct farewells *f, int64_t now_us);
bool leave_makes_room(struct upstream *up); /* one less; false: there is none */
/* How many of them have something to send. The others end in order with this process. */
uint64_t leave_unsent(const struct net *n);
void leave_places(struct net *n);  /* to clients, where there are as many as may be */
void leave_at_once(struct net *n); /* those of all upstreams */

/* feed.c: from a link to the clients */
void feed(struct upstream_link *l);

#endif
