/* What of a memcached client's requests goes to the server behind, and on which link, and that each
 * has the one reply that is its own. The test plays the server. */
#include "serve/memcached/memcached.h"
#include "unit/serve/talk.h"

#define GOES(ask, reply) ASKS(ask), TOLD(ask), TELLS(reply), HEARS(reply)
#define HERE(ask, reply) ASKS(ask), HEARS(reply)
#define AN_ID            HEARS("VALUE id:a 0 18\r\n"), HEARS_TO("", "\r\n")

/* The link that is shared, and one of the client's own. */
#define SHARES   ASKS("get k\r\n"), LINK, TOLD("get k\r\n"), TELLS("END\r\n"), HEARS("END\r\n")
#define HAS_LINK ASKS("incr k +1\r\n"), LINK, TOLD("incr k +1\r\n"), TELLS("7\r\n"), HEARS("7\r\n")

/* In binary: a request of that opcode, key and all, or an answer without an error. */
#define ZEROS           "\0\0\0\0\0\0\0\0\0\0\0\0"
#define ASK(op, n, key) "\x80" op "\0" n "\0\0\0\0\0\0\0" n ZEROS key
#define GET_K           ASK("\x00", "\1", "k")
#define GETQ_K          ASK("\x09", "\1", "k")
#define NOOP            ASK("\x0a", "\0", "")
#define MISS            "\x81\0\0\0\0\0\0\1\0\0\0\0" ZEROS
#define NOOP_OK         "\x81\x0a\0\0\0\0\0\0\0\0\0\0" ZEROS
#define SET_OK          "\x81\1\0\0\0\0\0\0\0\0\0\0" ZEROS
#define AWAY(op)        "\x81" op "\0\0\0\0\0\x86\0\0\0\x14" ZEROS "upstream unavailable"

/* SET k and SETQ k of 70,000 bytes: of a body of 0x11179. */
#define SET_LONG(op) "\x80" op "\0\1\x08\0\0\0\0\1\x11\x79" ZEROS "\0\0\0\0\0\0\0\0k"

static const struct row {
    const char *name;
    struct talk_word words[32];
    bool away;
    bool hurry; /* the server has 300 ms */
} rows[] = {
    /* ---- which link */
    {"a set goes there with its block",
     {SHARES, GOES("set k 0 0 1\r\nv\r\n", "STORED\r\n"), GOES("get k\r\n", "END\r\n")}},
    {"what is odd waits for what is shared",
     {SHARES, ASKS("get k\r\nincr k +1\r\n"), TOLD("get k\r\n"), QUIET, TELLS("END\r\n"),
      HEARS("END\r\n"), LINK, TOLD("incr k +1\r\n"), TELLS("7\r\n"), HEARS("7\r\n")}},
    {"but not for what is odd, too",
     {HAS_LINK, ASKS("incr k +1\r\nincr k +2\r\n"), TOLD("incr k +1\r\nincr k +2\r\n")}},
    {"who wants no reply goes there as it came where others may",
     {HAS_LINK, ASKS("incr k +1 noreply\r\nset k 0 0 1 noreply\r\nv\r\nget k\r\n"),
      TOLD("incr k +1 noreply\r\nset k 0 0 1 noreply\r\nv\r\nget k\r\n"), TELLS("END\r\n"),
      HEARS("END\r\n")}},
    {"what comes in parts is followed by others",
     {ASKS("set k 0 0 70000\r\n"), FILLS(70000), ASKS("\r\nget k\r\nget id:a\r\n"), LINK,
      TOLD("set k 0 0 70000\r\n"), SKIPS(70000), TOLD("\r\nget k\r\n"), TELLS("STORED\r\nEND\r\n"),
      HEARS("STORED\r\nEND\r\n"), AN_ID}},
    {"who listens hears of it when it comes",
     {ASKS("watch fetchers\r\n"), LINK, TOLD("watch fetchers\r\n"), TELLS("OK\r\n"),
      HEARS("OK\r\n"), LATER(700), TELLS("ts=1\r\n"), HEARS("ts=1\r\n")},
     .hurry = true},
    {"who waits for it longer than it may take is told so",
     {ASKS("get k\r\n"), LINK, TOLD("get k\r\n"), HEARS("SERVER_ERROR")},
     .hurry = true},
    {"a line that is too long and no get goes nowhere",
     {ASKS("touch k "), FILLS(65536), ENDS, QUIET}},
    {"nor does what would be taken for binary, or makes memcached forget what is due",
     {SHARES, HERE("\x80x\r\n", "ERROR\r\n"), ASKS("get "), FILLS(251), ASKS("\r\n"),
      HEARS("CLIENT_ERROR bad command line format\r\n"), QUIET}},
    {"a long gets goes there", {ASKS("gets k "), FILLS(70000), LINK, TOLD("gets k ")}},

    /* ---- IDs among others */
    {"an ID stands before the next key that is there",
     {ASKS("get j id:a k\r\n"), LINK, TOLD("get j k\r\n"), TELLS("VALUE k 0 1\r\nv\r\nEND\r\n"),
      AN_ID, HEARS("VALUE k 0 1\r\nv\r\nEND\r\n")}},

    /* ---- what is told here */
    {"stats of sidflake are told here",
     {
         ASKS("stats sidflake\r\n"),
         HEARS("STAT "),
     }},
    {"others there",
     {ASKS("stats slabs\r\n"), LINK, TOLD("stats slabs\r\n"), TELLS("END\r\n"), HEARS("END\r\n"),
      GOES("verbosity sidflake\r\n", "ERROR\r\n")}},
    {"a version is told here while the server is away",
     {ASKS("version\r\n"), HEARS("VERSION ")},
     .away = true},
    {"and stats are", {ASKS("stats settings\r\n"), HEARS("END\r\n")}, .away = true},

    /* ---- binary */
    {"what is quiet is followed by a mark, whose answer is for nobody",
     {ASKS(GETQ_K GET_K), LINK, TOLD(GETQ_K NOOP GET_K), TELLS(NOOP_OK MISS), HEARS(MISS), QUIET}},
    {"a long value is followed by others",
     {ASKS(GET_K), LINK, TOLD(GET_K), TELLS(MISS), HEARS(MISS), ASKS(SET_LONG("\1")), FILLS(70000),
      ASKS(GET_K), LINK, TOLD(SET_LONG("\1")), SKIPS(70000), TOLD(GET_K), TELLS(SET_OK MISS),
      HEARS(SET_OK MISS)}},
    {"and by its mark where it is quiet",
     {ASKS(SET_LONG("\x11")), FILLS(70000), ASKS(GET_K), LINK, TOLD(SET_LONG("\x11")), SKIPS(70000),
      TOLD(NOOP GET_K), TELLS(NOOP_OK MISS), HEARS(MISS), QUIET}},
    {"a QUIT is not for those who share a link",
     {ASKS(GET_K), LINK, TOLD(GET_K), TELLS(MISS), HEARS(MISS), ASKS(ASK("\x07", "\0", "")),
      HEARS("\x81\x07"), HEARS("\0\0\0\0\0\0\0\0\0\0" ZEROS), ENDS}},
    {"nor is a list of ways to log in asked for there",
     {
         ASKS(ASK("\x20", "\0", "")),
         HEARS("\x81\x20"),
     }},
    {"nor what is no request", {ASKS("\x80\0\0\2\0\0\0\0\0\0\0\1" ZEROS "k"), HEARS("\x81\0")}},
    {"stats of sidflake are told here in binary",
     {ASKS(ASK("\x10", "\x08", "sidflake")), HEARS("\x81\x10\0")}},
    {"others there in binary",
     {ASKS(ASK("\x10", "\x05", "slabs")), LINK, TOLD(ASK("\x10", "\x05", "slabs")),
      TELLS("\x81\x10\0\1\0\0\0\0\0\0\0\2" ZEROS "a1\x81\x10\0\0\0\0\0\0\0\0\0\0" ZEROS),
      HEARS("\x81\x10\0\1\0\0\0\0\0\0\0\2" ZEROS "a1\x81\x10\0\0\0\0\0\0\0\0\0\0" ZEROS),
      GOES(ASK("\0", "\x08", "sidflake"), MISS)}},
    {"a version is told here in binary while the server is away",
     {ASKS(ASK("\x0b", "\0", "")), HEARS("\x81\x0b\0\0\0\0\0\0")},
     .away = true},
    {"a long value that nobody takes is passed over to its end",
     {ASKS(SET_LONG("\1")), FILLS(70000), ASKS(NOOP GET_K), HEARS(AWAY("\1") NOOP_OK AWAY("\0")),
      QUIET},
     .away = true},
};

static void talks(void **state)
{
    const struct row *row = *state;
    struct net_service *svc = protocol_memcached.make(&rig->serve);
    svc->nonce = 0;
    timeout_us = row->hurry ? 300000 : timeout_us;
    start(svc);
    net_bench_call(&b, do_grant, NULL);
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
    return cmocka_run_group_tests_name("serve/memcached_talks", tests, NULL, NULL);
}
