/* What of a Redis client's requests goes to the server behind, in which state of its connection,
 * and that each has the one reply that is its own. The test plays the server. */
#include "unit/serve/talk.h"

#define GET_K    "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n" /* as what clients share is written */
#define GET_ID   "*2\r\n$3\r\nGET\r\n$4\r\nid:a\r\n"
#define HELLO_3  "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n"
#define SET_NAME "*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$2\r\nme\r\n"
#define MULTI    "*1\r\n$5\r\nMULTI\r\n"
#define DISCARD  "*1\r\n$7\r\nDISCARD\r\n"
#define PING     "*1\r\n$4\r\nPING\r\n"
#define RESET    "*1\r\n$5\r\nRESET\r\n"

#define ABORTED   "-EXECABORT Transaction discarded because of previous errors.\r\n"
#define NOT_MIXED "-ERR ID keys cannot be used together with others, but in MGET\r\n"
#define APART     " not supported behind MONITOR, SYNC, PSYNC and REPLCONF: connect again\r\n"
#define IN_C      "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"
#define OUT_C     "*3\r\n$11\r\nunsubscribe\r\n$1\r\nc\r\n:0\r\n"

/* The client has a link of its own, by a request that changes nothing, or shares one; one there and
 * back; one that is answered here, and an ID. */
#define HAS_LINK         ASKS("NEWER\r\n"), LINK, TOLD("NEWER\r\n"), TELLS("+NEW\r\n"), HEARS("+NEW\r\n")
#define SHARES           ASKS(GET_K), LINK, TOLD(GET_K), TELLS("$1\r\nv\r\n"), HEARS("$1\r\nv\r\n")
#define GOES(ask, reply) ASKS(ask), TOLD(ask), TELLS(reply), HEARS(reply)
#define HERE(ask, reply) ASKS(ask), HEARS(reply)
#define ECHOES           ASKS("ECHO x\r\n"), HEARS("$1\r\nx\r\n")
#define DRAWS            ASKS("INCR id:a\r\n"), HEARS_TO(":", "\r\n")
#define DRAWN            HEARS("$18\r\n"), HEARS_TO("", "\r\n")
#define NOBODY_KNOWS     HEARS_TO("%7\r\n", "$7\r\nmodules\r\n*0\r\n")

/* Longer than a name may be, or the place for it. */
#define X16  "xxxxxxxxxxxxxxxx"
#define X128 X16 X16 X16 X16 X16 X16 X16 X16
#define LONG X128 X128 X128

/* A transaction that is the server's. */
#define MOVED                                                                                      \
    ASKS("MULTI\r\nGET k\r\n"), LINK, TOLD(MULTI "GET k\r\n"), TELLS("+OK\r\n+QUEUED\r\n"),        \
        HEARS("+OK\r\n+QUEUED\r\n")

static const struct row {
    const char *name;
    struct talk_word words[32];
    enum access_mode mode;
    bool ping_there;
    bool login; /* each link begins with one */
    bool away;  /* the server is */
    bool hurry; /* it has 300 ms */
    bool late;  /* there are no IDs yet */
} rows[] = {
    /* ---- transactions */
    {"a transaction that moves there takes all with it, and ends there",
     {HERE("CLIENT SETNAME me\r\n", "+OK\r\n"), HERE("MULTI\r\n", "+OK\r\n"),
      HERE("PING\r\n", "+QUEUED\r\n"), ASKS("GET k\r\n"), LINK,
      TOLD(SET_NAME MULTI "PING\r\nGET k\r\n"), TELLS("+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n"),
      HEARS("+QUEUED\r\n"), GOES("EXEC\r\n", "*2\r\n+PONG\r\n$1\r\nv\r\n"),
      GOES("GET k\r\n", "$1\r\nv\r\n"), DRAWS, HERE("MULTI\r\n", "+OK\r\n"), ASKS("GET k\r\n"),
      TOLD(MULTI "GET k\r\n")}},
    {"an error before it moves aborts it, and no reply is left over",
     {HERE("MULTI\r\n", "+OK\r\n"),
      HERE("HELLO 3\r\n", "-ERR HELLO within a transaction is not supported\r\n"),
      ASKS("GET k\r\n"), LINK, TOLD(MULTI "GET k\r\n"), TELLS("+OK\r\n+QUEUED\r\n"),
      HEARS("+QUEUED\r\n"), GOES("GET l\r\n", "+QUEUED\r\n"), ASKS("EXEC\r\n"), TOLD(DISCARD),
      HEARS(ABORTED), TELLS("+OK\r\n"), GOES("GET k\r\n", "$1\r\nv\r\n"), DRAWS}},
    {"who leaves within one is answered here", {MOVED, HERE("QUIT\r\n", "+OK\r\n"), ENDS}},
    {"an EXEC that the server refuses ends none",
     {MOVED, GOES("EXEC x\r\n", "-ERR wrong number\r\n"),
      HERE("INCR id:a\r\n", "-ERR an ID key cannot be used in a transaction that was begun with "
                            "other commands\r\n")}},
    {"an ID and another key are not asked for within one",
     {HERE("MULTI\r\n", "+OK\r\n"), HERE("MGET id:a k\r\n", NOT_MIXED), QUIET}},
    {"an ID outside of one is none within", {DRAWS, MOVED}},
    {"a PING that is the server's moves one as any",
     {HERE("MULTI\r\n", "+OK\r\n"), ASKS("PING\r\n"), LINK, TOLD(MULTI "PING\r\n"),
      TELLS("+OK\r\n+QUEUED\r\n"), HEARS("+QUEUED\r\n"), GOES("PING\r\n", "+QUEUED\r\n")},
     .ping_there = true},
    {"what has given out IDs stays here",
     {HERE("MULTI\r\n", "+OK\r\n"), HERE("INCR id:a\r\n", "+QUEUED\r\n"),
      HERE("PING\r\n", "+QUEUED\r\n"),
      HERE("GET k\r\n", "-ERR a transaction that gives out IDs can hold nothing else: expected an "
                        "ID key, found 'GET'\r\n"),
      QUIET},
     .ping_there = true},
    {"an ID that was refused is none that was given out",
     {HERE("MULTI\r\n", "+OK\r\n"),
      HERE("INCR id:a x\r\n", "-ERR wrong number of arguments for 'incr' command\r\n"),
      ASKS("GET k\r\n"), LINK, TOLD(MULTI "GET k\r\n")}},
    {"WATCH has no place within one",
     {HERE("MULTI\r\n", "+OK\r\n"),
      HERE("WATCH k\r\n", "-ERR WATCH inside MULTI is not allowed\r\n"), QUIET}},
    {"keys are watched until EXEC, whatever comes between",
     {ASKS("WATCH k\r\n"), LINK, TOLD("WATCH k\r\n"), TELLS("+OK\r\n"), HEARS("+OK\r\n"),
      GOES("GET k\r\n", "$1\r\nv\r\n"), GOES("MULTI\r\n", "+OK\r\n"), GOES("EXEC\r\n", "*0\r\n"),
      HERE("MULTI\r\n", "+OK\r\n"), QUIET}},
    {"what is refused outside of one aborts none that follows",
     {ASKS("WATCH k\r\n"), LINK, TOLD("WATCH k\r\n"), TELLS("+OK\r\n"), HEARS("+OK\r\n"),
      HERE("\"MSET\\x00x\" a 1\r\n",
           "-ERR unknown command 'MSET', with args beginning with: 'a' '1' \r\n"),
      GOES("MULTI\r\n", "+OK\r\n"), GOES("EXEC\r\n", "*0\r\n")}},
    {"a HELLO that is too long to be looked at aborts one",
     {MOVED, ASKS("*3\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$70000\r\n"), FILLS(70000), ASKS("\r\nEXEC\r\n"),
      HEARS_TO("-ERR 'hello' request is too long", "bytes\r\n"), TOLD(DISCARD), TELLS("+OK\r\n"),
      HEARS(ABORTED)}},
    {"a login that is the server's is so within one",
     {HERE("MULTI\r\n", "+OK\r\n"), ASKS("AUTH x\r\n"), LINK, TOLD(MULTI "AUTH x\r\n")}},
    {"where logins are ours, one that has none is as any",
     {MOVED, HERE("AUTH x\r\n", "-ERR a login within a transaction is not supported\r\n")},
     .mode = ACCESS_ANY},

    /* ---- what is told here, and what there */
    {"the first database is chosen here",
     {HERE("SELECT 0\r\n", "+OK\r\n"), QUIET, ASKS("KEYS 0\r\n"), LINK, TOLD("KEYS 0\r\n")}},
    {"another database is chosen there",
     {ASKS("SELECT 5\r\n"), LINK, TOLD("SELECT 5\r\n"), TELLS("+OK\r\n"), HEARS("+OK\r\n"),
      HERE("MULTI\r\n", "+OK\r\n"), ASKS("SELECT 0\r\n"), TOLD(MULTI "SELECT 0\r\n"),
      TELLS("+OK\r\n+QUEUED\r\n"), HEARS("+QUEUED\r\n"), GOES("DISCARD\r\n", "+OK\r\n"),
      GOES("SELECT 0\r\n", "+OK\r\n"), ECHOES}},
    {"a PING is answered here", {HAS_LINK, HERE("PING\r\n", "+PONG\r\n"), QUIET}},
    {"or there", {HAS_LINK, GOES("PING\r\n", "+PONG\r\n"), ECHOES}, .ping_there = true},
    {"INFO of sidflake is told here", {ASKS("INFO sidflake\r\n"), HEARS("$")}},
    {"INFO of the server is told there", {HAS_LINK, GOES("INFO server\r\n", "$1\r\nx\r\n")}},
    {"INFO of both, too", {HAS_LINK, GOES("INFO sidflake memory\r\n", "$1\r\nx\r\n")}},
    {"a script has keys of the server's", {HAS_LINK, GOES("EVAL x 1 k\r\n", "$1\r\nx\r\n")}},
    {"MGET waits for nothing where it has no ID",
     {HAS_LINK, ASKS("GET j\r\nMGET k l\r\n"), TOLD("GET j\r\nMGET k l\r\n"),
      TELLS("$1\r\nv\r\n*1\r\n$1\r\nw\r\n"), HEARS("$1\r\nv\r\n*1\r\n$1\r\nw\r\n")}},
    {"MGET of IDs and others is asked for in the state that was agreed upon",
     {HERE("CLIENT SETNAME me\r\n", "+OK\r\n"), ASKS("NEWER\r\n"), LINK, TOLD(SET_NAME "NEWER\r\n"),
      TELLS("+OK\r\n+NEW\r\n"), HEARS("+NEW\r\n"), ASKS("MGET id:a k\r\n"),
      TOLD("*2\r\n$4\r\nMGET\r\n$1\r\nk\r\n"), TELLS("*1\r\n$1\r\nv\r\n"),
      HEARS_TO("*2\r\n$", "$1\r\nv\r\n"), ECHOES}},
    {"and on a link that is fresh",
     {HERE("CLIENT SETNAME me\r\n", "+OK\r\n"), ASKS("MGET id:a k\r\n"), LINK,
      TOLD(SET_NAME "*2\r\n$4\r\nMGET\r\n$1\r\nk\r\n"), TELLS("+OK\r\n*1\r\n$1\r\nv\r\n"),
      HEARS_TO("*2\r\n$", "$1\r\nv\r\n"), ECHOES}},

    {"nor is one of which not all is seen",
     {ASKS("*4\r\n$4\r\nMGET\r\n$4\r\nid:a\r\n$1\r\nk\r\n$70000\r\n"), FILLS(70000), ASKS("\r\n"),
      HEARS(NOT_MIXED), QUIET}},

    /* ---- an ID whose request is known by its bytes waits for its turn */
    {"an ID does not overtake what is due",
     {SHARES, ASKS(GET_ID GET_ID), DRAWN, DRAWN, ASKS(GET_ID GET_K GET_ID GET_ID), DRAWN,
      TOLD(GET_K), QUIET, TELLS("$1\r\nv\r\n"), HEARS("$1\r\nv\r\n"), DRAWN, DRAWN}},
    {"nor those that are among other keys",
     {SHARES, HERE("RESET\r\n", "+RESET\r\n"), ASKS(GET_ID GET_ID), DRAWN, DRAWN,
      ASKS("*3\r\n$4\r\nMGET\r\n$1\r\nk\r\n$4\r\nid:a\r\n" GET_ID GET_ID),
      TOLD("*2\r\n$4\r\nMGET\r\n$1\r\nk\r\n"), QUIET, TELLS("*1\r\n$1\r\nv\r\n"),
      HEARS("*2\r\n$1\r\nv\r\n"), DRAWN, DRAWN, DRAWN}},
    {"nor a RESET",
     {HAS_LINK, ASKS(GET_ID GET_ID), DRAWN, DRAWN, ASKS(GET_ID "RESET\r\n" GET_ID GET_ID), DRAWN,
      TOLD(RESET), QUIET, TELLS("+RESET\r\n"), HEARS("+RESET\r\n"), DRAWN, DRAWN}},

    /* ---- RESET, and what the server refuses */
    {"a RESET is answered once",
     {HAS_LINK, ASKS("RESET\r\n"), TOLD(RESET), TELLS("+RESET\r\n"), HEARS("+RESET\r\n"), ECHOES,
      GOES("GET k\r\n", "$1\r\nv\r\n")}},
    {"a RESET that would log us out is a new link",
     {ASKS("NEWER\r\n"),
      LINK,
      TOLD("LOGIN\r\n"),
      TELLS("+OK\r\n"),
      TOLD("NEWER\r\n"),
      TELLS("+NEW\r\n"),
      HEARS("+NEW\r\n"),
      HERE("RESET\r\n", "+RESET\r\n"),
      ASKS("NEWER\r\n"),
      LINK,
      TOLD("LOGIN\r\n"),
      TELLS("+OK\r\n"),
      TOLD("NEWER\r\n"),
      ASKS("CLIENT REPLY SKIP\r\nRESET\r\nECHO x\r\n"),
      TOLD("CLIENT REPLY SKIP\r\n"),
      QUIET,
      TELLS("+NEW\r\n"),
      HEARS("+NEW\r\n$1\r\nx\r\n"),
      ASKS("ECHO y\r\n"),
      HEARS("$1\r\ny\r\n")},
     .login = true},
    {"and none behind MONITOR",
     {ASKS("MONITOR\r\n"), LINK, TOLD("LOGIN\r\n"), TELLS("+OK\r\n"), TOLD("MONITOR\r\n"),
      TELLS("+OK\r\n"), HEARS("+OK\r\n"),
      HERE("RESET\r\n", "-ERR a RESET, which logs out, is" APART), ENDS},
     .login = true},
    {"a RESET without a link is answered here",
     {ASKS(GET_K), LINK, TOLD("LOGIN\r\n"), TELLS("+OK\r\n"), TOLD(GET_K), TELLS("$1\r\nv\r\n"),
      HEARS("$1\r\nv\r\n"), HERE("RESET\r\n", "+RESET\r\n"), QUIET, ASKS(GET_K), TOLD(GET_K)},
     .login = true},
    {"a CLIENT REPLY that the server refuses is of no effect",
     {HAS_LINK, GOES("CLIENT REPLY OFF x\r\n", "-ERR syntax error\r\n"), ECHOES,
      GOES("GET k\r\n", "$1\r\nv\r\n")}},
    {"behind a HELLO that was answered nothing waits for its turn alone",
     {HAS_LINK, GOES("HELLO 3\r\n", "%0\r\n"), ASKS("GET k\r\nGET l\r\n"),
      TOLD("GET k\r\nGET l\r\n")}},
    {"a HELLO of no protocol keeps the one that there is",
     {HAS_LINK, GOES("HELLO 3\r\n", "%0\r\n"), ASKS("GET 2\r\nHELLO\r\n"),
      TOLD("GET 2\r\nHELLO\r\n"), TELLS("_\r\n%0\r\n"), HEARS("_\r\n%0\r\n"),
      GOES("SUBSCRIBE c\r\n", ">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"), ECHOES}},
    {"a name that is none is not repeated, nor is one of an option that is none",
     {HAS_LINK, GOES("CLIENT SETNAME me\r\n", "+OK\r\n"),
      GOES("HELLO 2 x you\r\n", "-ERR Syntax error\r\n"),
      GOES("HELLO 2 SETNAME " LONG "\r\n", "-ERR too long\r\n"), ASKS("HELLO 3 AUTH me any\r\n"),
      TOLD(HELLO_3 SET_NAME)},
     .mode = ACCESS_ANY},
    {"a HELLO of one that is none changes none",
     {HAS_LINK, GOES("HELLO 4\r\n", "-NOPROTO\r\n"), GOES("HELLO 1\r\n", "-NOPROTO\r\n"), ECHOES,
      ASKS("CLIENT REPLY OFF\r\nHELLO 4\r\nHELLO 1\r\nCLIENT REPLY ON\r\n"),
      TOLD("CLIENT REPLY OFF\r\nHELLO 4\r\nHELLO 1\r\nCLIENT REPLY ON\r\n"), TELLS("+OK\r\n"),
      HEARS("+OK\r\n"), ASKS("SUBSCRIBE c\r\n"), TOLD("SUBSCRIBE c\r\n"), TELLS(IN_C), HEARS(IN_C),
      GOES("ECHO x\r\n", "-ERR Can't execute\r\n")}},

    /* ---- CLIENT REPLY */
    {"what is to be skipped is, and not what follows",
     {HAS_LINK, ASKS("CLIENT REPLY SKIP\r\nECHO y\r\nECHO x\r\n"),
      TOLD("CLIENT REPLY SKIP\r\n" PING), HEARS("$1\r\nx\r\n"), QUIET,
      GOES("GET k\r\n", "$1\r\nv\r\n")}},
    {"what waits for an ID is skipped once",
     {HAS_LINK, ASKS("CLIENT REPLY SKIP\r\nINCR id:a\r\nECHO x\r\n"), TOLD("CLIENT REPLY SKIP\r\n"),
      QUIET, GRANTS, TOLD(PING), HEARS("$1\r\nx\r\n"), QUIET},
     .late = true},
    {"what is skipped there is one, too",
     {HAS_LINK, ASKS("CLIENT REPLY SKIP\r\nGET k\r\nGET l\r\nECHO x\r\n"),
      TOLD("CLIENT REPLY SKIP\r\nGET k\r\nGET l\r\n"), TELLS("$1\r\nv\r\n"),
      HEARS("$1\r\nv\r\n$1\r\nx\r\n")}},
    {"an empty line is skipped, too",
     {ASKS("CLIENT REPLY SKIP\r\n\r\nECHO x\r\n"), LINK, TOLD("CLIENT REPLY SKIP\r\n\r\n"),
      HEARS("$1\r\nx\r\n"), QUIET}},
    {"who is mute is so until he says otherwise",
     {ASKS("CLIENT REPLY OFF\r\nECHO x\r\nCLIENT REPLY SKIP\r\nGET k\r\nMGET k id:a\r\nECHO x\r\n"),
      LINK, TOLD("CLIENT REPLY OFF\r\nCLIENT REPLY SKIP\r\nGET k\r\n"), QUIET,
      GOES("CLIENT REPLY ON\r\n", "+OK\r\n"), ECHOES}},
    {"in RESP3 who is subscribed may be mute",
     {HAS_LINK, GOES("HELLO 3\r\n", "%0\r\n"),
      GOES("SUBSCRIBE c\r\n", ">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"),
      ASKS("CLIENT REPLY OFF\r\nGET k\r\nECHO x\r\nCLIENT REPLY ON\r\n"),
      TOLD("CLIENT REPLY OFF\r\nGET k\r\nCLIENT REPLY ON\r\n"), TELLS("+OK\r\n"), HEARS("+OK\r\n"),
      ECHOES}},

    /* ---- subscriptions */
    {"a PING of who is about to subscribe is the server's",
     {HAS_LINK, ASKS("SUBSCRIBE c\r\nPING\r\n"), TOLD("SUBSCRIBE c\r\nPING\r\n"),
      TELLS(IN_C "*2\r\n$4\r\npong\r\n$0\r\n\r\n"), HEARS(IN_C "*2\r\n$4\r\npong\r\n$0\r\n\r\n"),
      GOES("PING\r\n", "*2\r\n$4\r\npong\r\n$0\r\n\r\n"), GOES("UNSUBSCRIBE c\r\n", OUT_C),
      ECHOES}},
    {"a list that looks like a message is a reply to who has unsubscribed",
     {HAS_LINK, GOES("SUBSCRIBE c\r\n", IN_C), GOES("UNSUBSCRIBE c\r\n", OUT_C),
      GOES("LRANGE k 0 -1\r\n", "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nb\r\n"), ECHOES}},
    {"in RESP3 the server does while subscribed what it is asked for",
     {HAS_LINK, GOES("HELLO 3\r\n", "%0\r\n"),
      GOES("SUBSCRIBE c\r\n", ">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"),
      GOES("CLIENT SETNAME me\r\n", "+OK\r\n"), ASKS("HELLO 2 AUTH me any\r\n"),
      TOLD("*2\r\n$5\r\nHELLO\r\n$1\r\n2\r\n" SET_NAME)},
     .mode = ACCESS_ANY},
    {"a login that is the server's is refused there while subscribed",
     {HAS_LINK, GOES("SUBSCRIBE c\r\n", IN_C), GOES("AUTH x\r\n", "-ERR Can't execute\r\n")}},
    {"one that is ours is refused here, and nothing else",
     {HAS_LINK, GOES("SUBSCRIBE c\r\n", IN_C), GOES("GET k\r\n", "-ERR Can't execute\r\n"),
      HERE("AUTH x\r\n", "-ERR a login while subscribed is not supported\r\n")},
     .mode = ACCESS_ANY},
    {"nothing is chosen of what the server refuses while subscribed",
     {HAS_LINK, GOES("SUBSCRIBE c\r\n", IN_C),
      GOES("CLIENT SETNAME me\r\n", "-ERR Can't execute\r\n"), GOES("UNSUBSCRIBE c\r\n", OUT_C),
      ASKS("HELLO 3 AUTH me any\r\n"), TOLD(HELLO_3), TELLS("%0\r\n"), NOBODY_KNOWS, ECHOES},
     .mode = ACCESS_ANY},

    /* ---- logins */
    {"a password is one where it stands in HELLO alone",
     {ASKS("PUBLISH c auth\r\n"), LINK, TOLD("PUBLISH c auth\r\n")},
     .mode = ACCESS_ANY},
    {"a login here that changes nothing there is not told",
     {HERE("CLIENT SETNAME me\r\n", "+OK\r\n"), ASKS("NEWER\r\n"), LINK, TOLD(SET_NAME "NEWER\r\n"),
      TELLS("+OK\r\n+NEW\r\n"), HEARS("+NEW\r\n"), HERE("AUTH any\r\n", "+OK\r\n"), QUIET},
     .mode = ACCESS_ANY},
    {"nor told to those who share a link",
     {SHARES, ASKS("HELLO 3 AUTH me any\r\n"), NOBODY_KNOWS, QUIET},
     .mode = ACCESS_ANY},
    {"with the protocol of a login here goes the name",
     {HAS_LINK, GOES("SELECT 5\r\n", "+OK\r\n"), GOES("CLIENT SETNAME me\r\n", "+OK\r\n"),
      ASKS("HELLO 3 AUTH me any\r\n"), TOLD(HELLO_3 SET_NAME), TELLS("%0\r\n+OK\r\n"), NOBODY_KNOWS,
      ECHOES},
     .mode = ACCESS_ANY},
    {"but no database that was not chosen there after all",
     {HAS_LINK, HERE("MULTI\r\n", "+OK\r\n"), ASKS("SELECT 5\r\n"),
      TOLD("*1\r\n$5\r\nMULTI\r\nSELECT 5\r\n"), TELLS("+OK\r\n+QUEUED\r\n"), HEARS("+QUEUED\r\n"),
      GOES("DISCARD\r\n", "+OK\r\n"), ASKS("HELLO 3 AUTH me any\r\n"), TOLD(HELLO_3),
      TELLS("%0\r\n"), NOBODY_KNOWS, ECHOES},
     .mode = ACCESS_ANY},
    {"a login that is none is refused here, and once",
     {HERE("AUTH\r\n", "-ERR wrong number of arguments for 'auth' command\r\n"), QUIET},
     .mode = ACCESS_ANY},
    {"or there, where logins are the server's",
     {HAS_LINK, GOES("AUTH\r\n", "-ERR wrong number\r\n"), ECHOES}},

    /* ---- behind MONITOR */
    {"behind MONITOR a HELLO without a password goes there",
     {ASKS("MONITOR\r\n"), LINK, TOLD("MONITOR\r\n"), TELLS("+OK\r\n"), HEARS("+OK\r\n"),
      ASKS("HELLO 3\r\n"), TOLD("HELLO 3\r\n"), ASKS("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$70000\r\n"),
      FILLS(70000), TOLD("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$70000\r\n")},
     .mode = ACCESS_ANY},
    {"but none in which one may stand that is ours",
     {ASKS("MONITOR\r\n"), LINK, TOLD("MONITOR\r\n"), TELLS("+OK\r\n"), HEARS("+OK\r\n"),
      ASKS("*3\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$70000\r\n"), FILLS(70000),
      HEARS("-ERR a login is" APART)},
     .mode = ACCESS_ANY},
    {"the reply to MONITOR comes first",
     {ASKS("MONITOR\r\nAUTH x\r\n"), LINK, TOLD("MONITOR\r\n"), QUIET, TELLS("+OK\r\n"),
      HEARS("+OK\r\n-ERR a login is" APART), ENDS},
     .mode = ACCESS_ANY},
    {"but behind it no other is waited for",
     {ASKS("MONITOR\r\n"), LINK, TOLD("MONITOR\r\n"), TELLS("+OK\r\n"), HEARS("+OK\r\n"),
      ASKS("GET k\r\nAUTH x\r\n"), HEARS("-ERR a login is" APART), ENDS},
     .mode = ACCESS_ANY},
    {"behind MONITOR a login goes there that is the server's, and a RESET",
     {ASKS("MONITOR\r\n"), LINK, TOLD("MONITOR\r\n"), TELLS("+OK\r\n"), HEARS("+OK\r\n"),
      ASKS("AUTH x\r\nRESET\r\n"), TOLD("AUTH x\r\nRESET\r\n")}},

    /* ---- while the server is away */
    {"a HELLO with any login is answered here while the server is away",
     {ASKS("HELLO 3 AUTH me any\r\n"), NOBODY_KNOWS},
     .away = true},
    {"what only tells of the server is, too",
     {ASKS("CONFIG GET maxmemory\r\n"), HEARS("*2\r\n$9\r\nmaxmemory\r\n")},
     .away = true},
    {"what changes it is not", {ASKS("CONFIG SET maxmemory 1\r\n"), ENDS}, .away = true},
    {"who waits for it longer than it may take is sent away",
     {ASKS("GET k\r\n"), LINK, TOLD("GET k\r\n"), ENDS},
     .hurry = true},
    {"but not where it is asked to wait",
     {ASKS("BLPOP k 0\r\n"), LINK, TOLD("BLPOP k 0\r\n"), LATER(700), TELLS("*-1\r\n"),
      HEARS("*-1\r\n"), ASKS("WAIT 1 0\r\n"), TOLD("WAIT 1 0\r\n"), LATER(700), TELLS(":0\r\n"),
      HEARS(":0\r\n")},
     .hurry = true},
};

static void do_log_in(struct net_bench *n, void *arg)
{
    const struct upstream_greeting g = {
        .bytes = SPAN("LOGIN\r\n"), .kind = FRAME_RESP, .ok = SPAN("+OK\r\n")};
    (void)arg;
    assert_true(upstream_greet(&n->svc, UPSTREAM_TEXT, &g));
}

static void talks(void **state)
{
    const struct row *row = *state;
    mode = row->mode;
    rig->serve.ping_there = row->ping_there;
    timeout_us = row->hurry ? 300000 : timeout_us;
    rig->serve.issuer.max_wait_us = 10000000;
    start(rig->svc);
    if (!row->late)
        net_bench_call(&b, do_grant, NULL);
    if (row->login)
        net_bench_call(&b, do_log_in, NULL);
    if (row->away) {
        (void)close(server);
        server = -1;
    }
    talk(row->words);
}

int main(void)
{
    static struct CMUnitTest tests[sizeof rows / sizeof *rows];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        tests[i] = (struct CMUnitTest){rows[i].name, talks, begin, end, (void *)(size_t)&rows[i]};
    return cmocka_run_group_tests_name("serve/redis_talks", tests, NULL, NULL);
}
