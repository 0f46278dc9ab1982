/* The meta commands without sockets: bytes in, exact bytes out. */
#include "memcached_rig.h"

#define ISSUED gen.ids.stats.issued

static void mg_gives_an_id_where_a_value_is_asked_for(void **state)
{
    (void)state;
    expect("mg id:a v\r\n", "VA 11\r\n" ID0 "\r\n");
    expect("mg id:a k O7 s v c t f l h\r\n",
           "VA 11 kid:a O7 s11 c" ID1 " t-1 f0 l0 h0\r\n" ID1 "\r\n");
    expect("mg id:a v q\r\n", "VA 11\r\n" ID2 "\r\n");
    assert_int_equal(ISSUED, 3);
    expect("mg id:a\r\n", "HD\r\n");
    expect("mg id:a s c t f l h k O\r\n", "HD s11 c0 t-1 f0 l0 h0 kid:a O\r\n");
    expect("mg id:a q N30 T0 R30\r\n", "HD\r\n");
    assert_int_equal(ISSUED, 3);
    assert_int_equal(serve.issuer.names.prefix[0].other.issued, 3);
    assert_int_equal(counted(MC_META_GET, SERVE_OK), 6);
}

static void a_miss_is_en_or_silence(void **state)
{
    (void)state;
    expect("mg x v k O1 s c\r\n", "EN kx O1\r\n");
    expect("mg x v q k\r\nmn\r\n", "MN\r\n");
    expect("mg x N30 v\r\n", "EN\r\n");
    assert_int_equal(counted(MC_META_GET, SERVE_MISS), 3);
    assert_int_equal(counted(MC_META_NOOP, SERVE_OK), 1);
}

static void base64_keys_are_looked_up_decoded(void **state)
{
    (void)state;
    expect("mg aWQ6YQ== b v k\r\n", "VA 11 kaWQ6YQ== b\r\n" ID0 "\r\n");
    expect("mg aWQ6YQ== v\r\n", "EN\r\n");
    expect("ma aWQ6YQ== b v k\r\n", "VA 11 kaWQ6YQ== b\r\n" ID1 "\r\n");
    expect("mg aWQ6AGE= b v\r\n", "EN\r\n"); /* "id:" NUL "a" */
    expect("mg aWQ6YQ= b v\r\n", "CLIENT_ERROR error decoding key\r\n");
}

static void ma_gives_the_last_of_a_block(void **state)
{
    (void)state;
    expect("ma id:a v\r\n", ("VA 11\r\n" ID0 "\r\n"));
    expect("ma id:a v D2 N0 J7 MI c k\r\n", "VA 11 c" ID2 " kid:a\r\n" ID2 "\r\n");
    expect("ma id:a M+ t c\r\n", "HD t-1 c33554439171\r\n");
    expect("ma id:a v q\r\nmn\r\n", "MN\r\n");
    assert_int_equal(ISSUED, 5);
    turn.wall_ms = T0 + 1;
    expect("ma id:a D1024 v\r\n", "VA 11\r\n33587994623\r\n");
    for (const char *const *bad = (const char *const[]){"0", "1025", "18446744073709551615", NULL};
         *bad; bad++) {
        char request[64];
        (void)snprintf(request, sizeof request, "ma id:a D%s q\r\n", *bad);
        expect(request, "CLIENT_ERROR invalid numeric delta argument: expected 1 to 1024\r\n");
    }
    serve.issuer.batch = 64; /* limits.batch */
    expect("ma id:a D65 v\r\n",
           "CLIENT_ERROR invalid numeric delta argument: expected 1 to 64\r\n");
    expect("ma id:a MD\r\nma id:a M-\r\n",
           "CLIENT_ERROR ids only go up\r\nCLIENT_ERROR ids only go up\r\n");
    expect("ma x q k O1\r\n", "NF kx O1\r\n");
    expect("ma x N0 k\r\n", "NS kx\r\n");
    assert_int_equal(ISSUED, 1029);
}

static void what_nobody_is_told_is_one_id(void **state)
{
    (void)state;
    expect("ma id:a D1024 q\r\nma id:a v D1000 q k\r\nmn\r\n", "MN\r\n");
    assert_int_equal(ISSUED, 2);
    expect("ma id:a D3\r\n", "HD\r\n");
    assert_int_equal(ISSUED, 5);
}

static void ms_is_swallowed_and_not_stored(void **state)
{
    (void)state;
    expect("ms id:a 4 T0 F1\r\nmg x v\r\n", "CLIENT_ERROR bad data chunk\r\nERROR\r\n");
    expect("ms id:a 4 k O1 c q\r\nmn\r\n\r\n", "NS kid:a O1 c0\r\n");
    expect("ms x 2 ME\r\nhi\r\nms x 2 MA\r\nhi\r\nms x 2 MS\r\nhi\r\n", "NS\r\nNS\r\nNS\r\n");
    expect("ms x 2 C5 k\r\nhi\r\nms x 2 MR C5\r\nhi\r\n", "NF kx\r\nNF\r\n");
    expect("ms id:a 2 C5\r\nhi\r\nms x 2 ME C5\r\nhi\r\n", "NS\r\nNS\r\n");
    expect("ms aWQ6YQ== 2 b k\r\nhi\r\n", "NS kaWQ6YQ== b\r\n");
    expect("ms id:a 2 zz\r\nhixxms id:a 0\r\n\r\n", "CLIENT_ERROR invalid flag\r\nNS\r\n");
    assert_int_equal(ISSUED, 0);
}

/* What a call that has returned left behind must not be what is answered later. */
__attribute__((noinline)) static void overwrite_stack(void)
{
    volatile char below[16384];
    for (size_t i = 0; i < sizeof below; i++)
        below[i] = 'z';
}

/* The line is gone when its answer is due. */
static void what_ms_answers_is_kept_through_a_large_block(void **state)
{
    (void)state;
    static char block[100000];
    char line[400], want[400];
    memset(block, 'b', sizeof block);
    (void)snprintf(line, sizeof line, "ms %0250d %zu k O%031d\r\n", 7, sizeof block, 8);
    (void)snprintf(want, sizeof want, "NS k%0250d O%031d\r\n", 7, 8);
    for (unsigned round = 0; round < 2; round++) {
        feed(line, strlen(line));
        overwrite_stack();
        for (size_t i = 0; i < sizeof block; i += 1000)
            feed(block + i, 1000);
        check_output("half", "");
        expect("\r\n", want);
    }
    feed(line, strlen(line)); /* closed in its middle: nothing leaks */
    svc->close(svc, session);
    memset(session, 0, svc->session_size);
}

static void the_others_have_nothing(void **state)
{
    (void)state;
    expect("md id:a k q O1\r\nmd x\r\n", "NF kid:a O1\r\nNF\r\n");
    expect("me id:a\r\nme x v\r\n", "EN\r\nEN\r\n");
    expect("mn\r\n", "MN\r\n");
    expect("mg id:a zz\r\nmd id:a zz\r\n",
           "CLIENT_ERROR invalid flag\r\nCLIENT_ERROR invalid or duplicate flag\r\n");
    assert_int_equal(counted(MC_META_DELETE, SERVE_REFUSED), 2);
    assert_int_equal(counted(MC_META_GET, SERVE_INVALID), 1);
    assert_int_equal(ISSUED, 0);
}

static void no_id_is_an_error_in_spite_of_q(void **state)
{
    (void)state;
    take_worker_away();
    feed("mg id:a v q\r\nma id:a q\r\nmg id:a\r\n", 33);
    assert_int_equal(step.verdict, NET_WAIT);
    check_output("mg", "");
    turn.waited_us = 100000;
    run();
    check_output("mg, ma, mg", "SERVER_ERROR no workerId is held yet\r\n"
                               "SERVER_ERROR no workerId is held yet\r\nHD\r\n");
    assert_int_equal(counted(MC_META_GET, SERVE_FAILED), 1);
    assert_int_equal(counted(MC_META_ARITHMETIC, SERVE_FAILED), 1);
}

static void a_full_millisecond_queues(void **state)
{
    (void)state;
    expect("ma id:a D1023\r\n", "HD\r\n");
    feed("mg id:a v q\r\nmg id:b v q k\r\nmn\r\n", 32);
    assert_int_equal(step.verdict, NET_QUEUE);
    check_output("the first", "VA 11\r\n33554440191\r\n");
    fake_clock_step(&clock_, 1);
    turn.wall_ms = T0 + 1;
    run();
    check_output("the rest", "VA 11 kid:b\r\n33587993600\r\nMN\r\n");
}

static void byte_by_byte_is_the_same_as_at_once(void **state)
{
    (void)state;
    static const char conversation[] =
        "mg id:a v k O1\r\nmg x q\r\nms id:a 7 k O2\r\nmg id:\r\n\r\nma id:a D3 v c\r\nmn\r\n"
        "ms id:b 1 O3\r\nxyzmd id:a k\r\nmg aWQ6YQ== b k v\r\nms q 0 k\r\n\r\nme q\r\nmg k zz\r\n"
        "get id:a\r\nmg id:a v s\r\nstats slabs\r\nstats detail\r\n";
    check_byte_by_byte(conversation, sizeof conversation - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        MC(mg_gives_an_id_where_a_value_is_asked_for),
        MC(a_miss_is_en_or_silence),
        MC(base64_keys_are_looked_up_decoded),
        MC(ma_gives_the_last_of_a_block),
        MC(what_nobody_is_told_is_one_id),
        MC(ms_is_swallowed_and_not_stored),
        MC(what_ms_answers_is_kept_through_a_large_block),
        MC(the_others_have_nothing),
        MC(no_id_is_an_error_in_spite_of_q),
        MC(a_full_millisecond_queues),
        MC(byte_by_byte_is_the_same_as_at_once),
    };
    return cmocka_run_group_tests_name("serve/memcached_meta", tests, NULL, NULL);
}
