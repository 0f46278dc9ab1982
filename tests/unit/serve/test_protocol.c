#include "conf/protocol_options.h"
#include "net/net.h"
#include "serve/serve.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

/* Labels of metrics, and the order of all lists: who has them on a dashboard relies on both. */
static void the_labels_keep_their_order(void **state)
{
    static const char *const names[] = {"memcached", "redis", "http"};
    (void)state;
    assert_int_equal(SERVE_PROTOCOLS, sizeof names / sizeof *names);
    for (unsigned p = 0; p < sizeof names / sizeof *names; p++)
        assert_string_equal(serve_protocol_name((enum serve_protocol)p), names[p]);
}

/* The daemon takes a protocol's options by its name. */
static void each_protocol_has_its_options(void **state)
{
    (void)state;
    assert_int_equal(CONF_PROTOCOLS, SERVE_PROTOCOLS);
    for (unsigned i = 0; i < SERVE_PROTOCOLS; i++) {
        const struct protocol *row = protocol_table[i];
        const struct conf_protocol *p = conf_protocol_find(row->name);
        assert_non_null(p);
        assert_string_equal(p->listen->group, "listen");
        assert_string_equal(p->listen->key, row->name);
        assert_int_equal(p->upstream != NULL, row->logins != NULL);
        assert_int_equal(p->upstream != NULL, p->user && p->password_file);
        if (p->upstream)
            assert_string_equal(p->upstream->key, row->name);
    }
    assert_null(conf_protocol_find("gopher"));
    assert_null(conf_protocol_find(""));
}

/* A service that is named otherwise would have two labels. */
static void a_service_is_named_as_its_row(void **state)
{
    static struct serve s;
    (void)state;
    s.clock = clock_system();
    s.rng = rng_system();
    for (unsigned i = 0; i < SERVE_PROTOCOLS; i++) {
        struct net_service *svc = protocol_table[i]->make(&s);
        assert_non_null(svc);
        assert_string_equal(svc->name, protocol_table[i]->name);
        assert_int_equal(svc->frame != NULL, protocol_table[i]->logins != NULL);
        assert_non_null(serve_command((enum serve_protocol)i, 0));
        free(svc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_labels_keep_their_order),
        cmocka_unit_test(each_protocol_has_its_options),
        cmocka_unit_test(a_service_is_named_as_its_row),
    };
    return cmocka_run_group_tests_name("serve/protocol", tests, NULL, NULL);
}
