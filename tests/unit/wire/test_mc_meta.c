/* Meta commands as mc_parse reads them, and the answers to their flags. */
#include "wire/mc_meta.h"

#include "support/wirefeed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define K10  "kkkkkkkkkk"
#define K50  K10 K10 K10 K10 K10
#define K250 K50 K50 K50 K50 K50
#define O31  "ooooooooooooooooooooooooooooooo"
#define F8   " v f c k s t q b"
#define F17  F8 " h l u O P L I C1 M1"

struct exchange {
    const char *in, *log;
};

static void check_all(const struct exchange *e, size_t n)
{
    static struct wirefeed_log log;
    for (size_t i = 0; i < n; i++) {
        wirefeed_check(WIREFEED_MEMCACHED, span_str(e[i].in), 1, &log);
        assert_string_equal(log.text, e[i].log);
    }
}

#define CHECK_ALL(table) check_all((table), sizeof(table) / sizeof *(table))

#define BAD(text) "BAD CLIENT_ERROR " text "\n"
#define FORMAT    "BAD CLIENT_ERROR bad command line format"
#define TOKEN     BAD("bad token in command line format")
#define FLAG      BAD("invalid or duplicate flag")

static void reads(void **state)
{
    (void)state;
    static const struct exchange table[] = {
        {"mg k\r\n", "REQ mg key=k\n"},
        {"MG  k  v  q \n", "REQ mg key=k flags=v,q value quiet\n"},
        {"mg k s O7 k t\r\n", "REQ mg key=k flags=s,O7,k,t\n"},
        {"mg aWQ6YQ== b v\r\n", "REQ mg key=aWQ6YQ== flags=b,v decoded=id:a value\n"},
        {"mg AP8Q b\r\n", "REQ mg key=AP8Q flags=b decoded=\\x00\\xff\\x10\n"},
        {"mg k N30 T-1 R0 C5\r\n", "REQ mg key=k flags=N30,T-1,R0,C5 create compare\n"},
        {"mg k v1 b2 q3\r\n", BAD("error decoding key")},
        {"mg k O" O31 "\r\n", "REQ mg key=k flags=O" O31 "\n"},
        {"mg k O" O31 "o\r\n", BAD("opaque token too long")},
        {"mg " K250 " v\r\n", "REQ mg key=" K250 " flags=v value\n"},
        {"mg " K250 "k v\r\n", FORMAT "\n"},
        {"mg a\tb v\r\n", FORMAT "\n"},
        {"mg\r\nmg \r\n", "BAD ERROR\nBAD ERROR\n"},
        {"mg k z\r\n", BAD("invalid flag")},
        {"mg k E1\r\n", BAD("invalid flag")},
        {"mg k v v\r\n", BAD("duplicate flag")},
        {"mg k O1 O2\r\n", BAD("duplicate flag")},
        {"mg k \xff\r\n", BAD("duplicate flag")},
        {"mg k \x7f\r\n", BAD("duplicate flag")},
        {"mg k Tx z\r\n", BAD("invalid flag")},
        {"mg k Tx\r\nmg k T\r\nmg k N1x\r\nmg k R--1\r\nmg k C-1\r\n",
         TOKEN TOKEN TOKEN TOKEN TOKEN},
        {"mg k Fx\r\nmg k Tx Fx\r\n", FORMAT "\n" TOKEN},
        {"mg k Jx\r\nmg k Dx\r\n",
         BAD("invalid numeric initial value") BAD("invalid numeric delta value")},
        {"mg k M\r\nmg k MII\r\n",
         BAD("incorrect length for M token") BAD("incorrect length for M token")},
        {"mg aWQ6" F17 "\r\n", "REQ mg key=aWQ6 flags=v,f,c,k,s,t,q,b,h,l,u,O,P,L,I,C1,M1 "
                               "decoded=id: mode=1 value quiet compare\n"},
        {"mg aWQ6" F17 " F1\r\n", BAD("options flags are too long")},
        {"mg k v", "LEFT bytes=6\n"},
    };
    CHECK_ALL(table);
}

static void base64(void **state)
{
    (void)state;
    static const struct exchange table[] = {
        {"mg YQ== b\r\n", "REQ mg key=YQ== flags=b decoded=a\n"},
        {"mg YWI= b\r\n", "REQ mg key=YWI= flags=b decoded=ab\n"},
        {"mg YWJj b\r\n", "REQ mg key=YWJj flags=b decoded=abc\n"},
        {"mg +/+/ b\r\n", "REQ mg key=+/+/ flags=b decoded=\\xfb\\xff\\xbf\n"},
        {"mg YQ= b\r\nmg YQ b\r\nmg Y b\r\nmg Y=== b\r\nmg ==== b\r\nmg YQ==YQ== b\r\n",
         BAD("error decoding key") BAD("error decoding key") BAD("error decoding key")
             BAD("error decoding key") BAD("error decoding key") BAD("error decoding key")},
        {"mg YR== b\r\nmg YWJ= b\r\nmg YW-j b\r\nmg YWJj= b\r\n",
         BAD("error decoding key") BAD("error decoding key") BAD("error decoding key")
             BAD("error decoding key")},
        {"ma YQ b\r\nmd YQ b\r\nme YQ b\r\n", FLAG FLAG FORMAT "\n"},
        {"me YQ== b\r\nme YQ b2\r\nme YQ v b\r\n",
         "REQ me key=YQ== decoded=a\nREQ me key=YQ\nREQ me key=YQ\n"},
    };
    CHECK_ALL(table);
}

static void arithmetic_and_delete(void **state)
{
    (void)state;
    static const struct exchange table[] = {
        {"ma k\r\n", "REQ ma key=k delta=1\n"},
        {"ma k v D1024 MI N0 J5 q\r\n",
         "REQ ma key=k flags=v,D1024,MI,N0,J5,q delta=1024 mode=I value quiet create\n"},
        {"ma k D18446744073709551615\r\n",
         "REQ ma key=k flags=D18446744073709551615 delta=18446744073709551615\n"},
        {"ma k M+\r\nma k M-\r\nma k MD\r\n",
         "REQ ma key=k flags=M+ delta=1 mode=+\nREQ ma key=k flags=M- delta=1 mode=-\n"
         "REQ ma key=k flags=MD delta=1 mode=D\n"},
        {"ma k MZ\r\nma k Mi O" O31 "o\r\n",
         BAD("invalid mode for ma M token") BAD("invalid mode for ma M token")},
        {"ma k z\r\nma k v v\r\nma k Dx\r\nma k D18446744073709551616\r\n", FLAG FLAG FLAG FLAG},
        {"ma k" F17 " F1\r\n", BAD("options flags too long")},
        {"ma\r\nma " K250 "k\r\n", "BAD ERROR\n" FORMAT "\n"},
        {"md k q k O1 I T0 C7\r\n", "REQ md key=k flags=q,k,O1,I,T0,C7 quiet compare\n"},
        {"md k z\r\nmd k O" O31 "o\r\nmd\r\n", FLAG BAD("opaque token too long") "BAD ERROR\n"},
        {"md k MZ\r\n", "REQ md key=k flags=MZ mode=Z\n"},
        {"mn\r\nmn x y\r\nmx k\r\n", "REQ mn\nREQ mn\nBAD ERROR\n"},
        {"me k v\r\nme\r\nme " K250 "k\r\n", "REQ me key=k\n" FORMAT "\n" FORMAT "\n"},
    };
    CHECK_ALL(table);
}

static void sets(void **state)
{
    (void)state;
    static const struct exchange table[] = {
        {"ms k 2 T0 F1 MS\r\nhi\r\nmn\r\n",
         "REQ ms key=k flags=T0,F1,MS mode=S body=4\nSWALLOWED\nREQ mn\n"},
        {"ms k 2\r\nhixx", "REQ ms key=k body=4\nSWALLOWED bad\n"},
        {"ms YQ== 0 b\r\n\r\n", "REQ ms key=YQ== flags=b decoded=a body=2\nSWALLOWED\n"},
        {"ms k 2 MZ\r\nhi\r\n", "BAD CLIENT_ERROR invalid mode for ms M token body=4\nSWALLOWED\n"},
        {"ms k 2 z\r\nhi\r\nmn\r\n", "BAD CLIENT_ERROR invalid flag body=4\nSWALLOWED\nREQ mn\n"},
        {"ms YQ 2 b\r\nhi\r\n", "BAD CLIENT_ERROR error decoding key body=4\nSWALLOWED\n"},
        {"ms " K250 "k 2\r\nhi\r\nmn\r\n", FORMAT " body=4\nSWALLOWED\nREQ mn\n"},
        {"ms YWJj 2" F17 "\r\nhi\r\n",
         "BAD CLIENT_ERROR options flags too long body=4\nSWALLOWED\n"},
        {"ms k 2147483645\r\n", "REQ ms key=k body=2147483647\n"},
        {"ms k 2147483646\r\nmn\r\n", FORMAT "\nREQ mn\n"},
        {"ms k\r\nms k x\r\nms k -1\r\nms\r\n", FORMAT "\n" FORMAT "\n" FORMAT "\nBAD ERROR\n"},
    };
    CHECK_ALL(table);
}

/* ---- answers -----------------------------------------------------------------------------------
 */

static void check_reply(const char *line, const char *status, const struct mc_item *item,
                        const char *want)
{
    char mem[1024];
    struct mc_req req;
    struct buf b;
    size_t used;
    assert_int_equal(mc_parse(span_str(line), &req, &used), WIRE_REQ);
    buf_init(&b, mem, sizeof mem);
    mc_put_meta(&b, &req, span_str(status), item);
    assert_false(b.failed);
    mem[b.n] = '\0';
    assert_string_equal(mem, want);
}

static void flags_are_answered_in_their_order(void **state)
{
    (void)state;
    const struct mc_item item = {SPAN("123"), 456}, none = {{"", 0}, 0};
    check_reply("mg k\n", "HD", &item, "HD\r\n");
    check_reply("mg k v\n", "VA", &item, "VA 3\r\n123\r\n");
    check_reply("mg k s c v t f l h O1 k\n", "VA", &item,
                "VA 3 s3 c456 t-1 f0 l0 h0 O1 kk\r\n123\r\n");
    check_reply("mg k k O s c T5 q u\n", "HD", &item, "HD kk O s3 c456\r\n");
    check_reply("mg YQ== b v O2 k s\n", "VA", &item, "VA 3 O2 kYQ== b s3\r\n123\r\n");
    check_reply("mg k v O1 k s c\n", "EN", NULL, "EN O1 kk\r\n");
    check_reply("ma k v s c t f O1 k\n", "VA", &item, "VA 3 c456 t-1 O1 kk\r\n123\r\n");
    check_reply("ma k c\n", "HD", &item, "HD c456\r\n");
    check_reply("ms k 2 v k c s O1\n", "NS", &none, "NS kk c0 O1\r\n");
    check_reply("md k v k c O1\n", "NF", NULL, "NF kk O1\r\n");
}

static void an_answer_without_room_fails(void **state)
{
    (void)state;
    char mem[12];
    const struct mc_item item = {SPAN("123456"), 456};
    struct mc_req req;
    struct buf b;
    size_t used;
    assert_int_equal(mc_parse(SPAN("mg k v\n"), &req, &used), WIRE_REQ);
    buf_init(&b, mem, sizeof mem);
    mc_put_meta(&b, &req, SPAN("VA"), &item);
    assert_true(b.failed);
}

/* ---- keys as memcached takes them --------------------------------------------------------------
 */

/* The bits that four of the characters that count stand for, as text. */
static void put_bits(char bits[24], const char *four)
{
    static const char *const digits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (int i = 0; i < 24; i++) {
        const char *d = strchr(digits, four[i / 6]);
        bits[i] = d && (d - digits) & (32 >> i % 6) ? '1' : '0';
    }
}

/* What memcached.h says of a key there, done the long way: first what counts, then the blocks. */
static size_t key_there(const char *word, size_t n, char key[64])
{
    char counts[64], bits[24];
    size_t have = 0, used = 0;
    for (size_t i = 0; i < n; i++)
        if (word[i] == '=' || word[i] == '+' || word[i] == '/' ||
            (word[i] >= '0' && word[i] <= '9') || (word[i] >= 'A' && word[i] <= 'Z') ||
            (word[i] >= 'a' && word[i] <= 'z'))
            counts[have++] = word[i];
    if (have % 4)
        return 0;
    for (size_t at = 0; at < have; at += 4) {
        int bytes = 3;
        for (int i = 0; i < 4; i++)
            bytes -= counts[at + (size_t)i] == '=';
        if (bytes < 1)
            return 0;
        put_bits(bits, counts + at);
        for (int i = 0; i < bytes; i++) {
            key[used] = 0;
            for (int k = 0; k < 8; k++)
                key[used] = (char)(key[used] << 1 | (bits[8 * i + k] == '1'));
            used++;
        }
        if (bytes < 3)
            break;
    }
    return used;
}

/* All blocks of four, alone, first, last, and with one that is not whole behind. */
static void keys_there(void **state)
{
    static const char from[] = "ABeH=\x01";
    static const char *const around[][2] = {
        {"", ""}, {"aWQ6", ""}, {"", "aWQ6"}, {"aWQ6", "AAA="}, {"aWQ6", "=="}, {"aWQ6", "Y"},
    };
    const int n = (int)sizeof from - 1;
    (void)state;
    for (int i = 0; i < n * n * n * n; i++)
        for (size_t k = 0; k < sizeof around / sizeof *around; k++) {
            const char four[] = {from[i % n], from[i / n % n], from[i / n / n % n],
                                 from[i / n / n / n], '\0'};
            char word[16], expected[64], mem[MC_KEY_MAX];
            (void)snprintf(word, sizeof word, "%s%s%s", around[k][0], four, around[k][1]);
            struct span key = mc_there_key(span_str(word), mem);
            if (key.n != key_there(word, strlen(word), expected) ||
                (key.n > 0 && memcmp(key.p, expected, key.n) != 0))
                fail_msg("%s: found '%.*s'", word, (int)key.n, key.p);
        }
    static char longer[4 * MC_KEY_MAX];
    char mem[MC_KEY_MAX];
    memset(longer, 'A', sizeof longer);
    assert_int_equal(mc_there_key(span_of(longer, sizeof longer), mem).n, MC_KEY_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads),
        cmocka_unit_test(base64),
        cmocka_unit_test(arithmetic_and_delete),
        cmocka_unit_test(sets),
        cmocka_unit_test(flags_are_answered_in_their_order),
        cmocka_unit_test(an_answer_without_room_fails),
        cmocka_unit_test(keys_there),
    };
    return cmocka_run_group_tests_name("wire/mc_meta", tests, NULL, NULL);
}
