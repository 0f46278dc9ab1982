#include "ids/names.h"
#include "ids/snowflake_generator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static struct snowflake_generator gen, more;

static struct names_entry *find(struct names *n, const char *key)
{
    return names_find(n, span_str(key));
}

static void make(struct names *n, const char *prefix, char *const *list, size_t count)
{
    struct err e;
    memset(n, 0, sizeof *n);
    gen.base.kind = more.base.kind = &snowflake_kind;
    assert_int_equal(names_add(n, &gen.base, prefix, list, count, &e), ERR_OK);
}

static void without_a_list_any_name_is_accepted(void **state)
{
    (void)state;
    struct names n;
    make(&n, "id:", NULL, 0);
    assert_ptr_equal(find(&n, "id:orders"), &n.prefix[0].other);
    assert_ptr_equal(find(&n, "id:x"), &n.prefix[0].other);
    assert_null(n.prefix[0].other.text);
    assert_null(find(&n, "orders"));
    assert_null(find(&n, "id"));
    assert_null(find(&n, "ID:orders"));
    assert_null(find(&n, ""));
    assert_null(names_find(&n, span_of(NULL, 0)));
    names_clear(&n);
}

static void a_name_has_1_to_200_bytes(void **state)
{
    (void)state;
    struct names n;
    char key[300];
    make(&n, "id:", NULL, 0);
    assert_null(find(&n, "id:"));
    memcpy(key, "id:", 3);
    memset(key + 3, 'a', sizeof key - 3);
    for (size_t length = 1; length <= 290; length++) {
        bool wanted = length <= NAMES_LENGTH_MAX;
        assert_true((names_find(&n, span_of(key, 3 + length)) != NULL) == wanted);
    }
    names_clear(&n);
}

static void what_follows_a_hash_is_ignored(void **state)
{
    (void)state;
    struct names n;
    char orders[] = "orders", *list[] = {orders};
    char key[300];
    make(&n, "id:", list, 1);
    assert_ptr_equal(find(&n, "id:orders#1"), &n.prefix[0].entry[0]);
    assert_ptr_equal(find(&n, "id:orders#"), &n.prefix[0].entry[0]);
    assert_ptr_equal(find(&n, "id:orders##x#y"), &n.prefix[0].entry[0]);
    assert_ptr_equal(find(&n, "id:orders#\x01\xff"), &n.prefix[0].entry[0]);
    assert_null(find(&n, "id:#orders"));
    assert_null(find(&n, "id:order#s"));
    names_clear(&n);

    make(&n, "id:", NULL, 0);
    memset(key, 'a', sizeof key);
    memcpy(key, "id:", 3);
    key[3 + NAMES_LENGTH_MAX] = '#';
    assert_non_null(names_find(&n, span_of(key, 3 + NAMES_LENGTH_MAX + 40)));
    key[3 + NAMES_LENGTH_MAX] = 'a';
    key[3 + NAMES_LENGTH_MAX + 1] = '#';
    assert_null(names_find(&n, span_of(key, 3 + NAMES_LENGTH_MAX + 40)));
    names_clear(&n);
}

static void names_are_printable_ascii(void **state)
{
    (void)state;
    struct names n;
    make(&n, "id:", NULL, 0);
    for (int c = 0; c < 256; c++) {
        char key[] = "id:a?b";
        key[4] = (char)c;
        bool wanted = c > ' ' && c <= '~';
        assert_true((names_find(&n, span_of(key, 6)) != NULL) == wanted);
    }
    names_clear(&n);
}

static void an_empty_prefix_makes_every_key_an_id(void **state)
{
    (void)state;
    struct names n;
    make(&n, "", NULL, 0);
    assert_non_null(find(&n, "orders"));
    assert_non_null(find(&n, "id:orders#7"));
    assert_null(find(&n, ""));
    assert_null(find(&n, "#7"));
    names_clear(&n);
}

static void with_a_list_only_its_names_are_ids(void **state)
{
    (void)state;
    struct names n;
    char orders[] = "orders", users[] = "users", u[] = "u";
    char *list[] = {orders, users, orders, u};
    make(&n, "id:", list, 4);
    assert_int_equal(n.count, 3);
    assert_ptr_equal(find(&n, "id:orders"), &n.prefix[0].entry[0]);
    assert_ptr_equal(find(&n, "id:users"), &n.prefix[0].entry[1]);
    assert_ptr_equal(find(&n, "id:u"), &n.prefix[0].entry[2]);
    assert_null(find(&n, "id:order"));
    assert_null(find(&n, "id:orderss"));
    assert_null(find(&n, "id:Orders"));
    assert_null(find(&n, "users"));
    names_clear(&n);
}

/* Enough names that buckets are shared. */
static void a_long_list_is_found_whole(void **state)
{
    (void)state;
    enum {
        N = 1000
    };
    static char text[N][20];
    char *list[N];
    struct names n;
    for (int i = 0; i < N; i++) {
        (void)snprintf(text[i], sizeof text[i], "name-%d", i);
        list[i] = text[i];
    }
    make(&n, "p", list, N);
    assert_int_equal(n.count, N);
    for (int i = 0; i < N; i++) {
        char key[32];
        (void)snprintf(key, sizeof key, "pname-%d#%d", i, i);
        assert_string_equal(find(&n, key)->text, text[i]);
        (void)snprintf(key, sizeof key, "pname-%d", i + N);
        assert_null(find(&n, key));
    }
    names_clear(&n);
}

static void prefix_and_list_are_copied(void **state)
{
    (void)state;
    struct names n;
    char prefix[] = "id:", name[] = "orders";
    char *list[] = {name};
    make(&n, prefix, list, 1);
    memset(prefix, 'x', 3);
    memset(name, 'x', 6);
    assert_non_null(find(&n, "id:orders"));
    names_clear(&n);
    names_clear(&n); /* twice is harmless */
}

static void the_longest_prefix_leads_to_its_generator(void **state)
{
    (void)state;
    struct names n;
    struct err e;
    char a[] = "a", b[] = "b", *ab[] = {a, b}, *only[] = {b};
    const struct names_prefix *prefix;
    make(&n, "id:", ab, 2);
    assert_int_equal(names_add(&n, &more.base, "id:more:", only, 1, &e), ERR_OK);
    assert_int_equal(names_add(&n, &more.base, "", NULL, 0, &e), ERR_OK);
    assert_ptr_equal(find(&n, "id:a")->generator, &gen.base);
    assert_ptr_equal(find(&n, "id:more:b")->generator, &more.base);
    assert_null(find(&n, "id:more:a"));
    assert_ptr_equal(find(&n, "x"), &n.prefix[2].other);
    assert_ptr_equal(n.prefix[2].other.generator, &more.base);
    assert_int_equal(n.count, 3);
    assert_string_equal(names_at(&n, 1, &prefix)->text, "b");
    assert_ptr_equal(prefix, &n.prefix[0]);
    assert_string_equal(names_at(&n, 2, &prefix)->text, "b");
    assert_ptr_equal(prefix, &n.prefix[1]);
    assert_int_equal(names_enough(&n), sizeof "id:more:" - 1 + NAMES_LENGTH_MAX + 1);
    assert_int_equal(names_add(&n, &gen.base, "4", NULL, 0, &e), ERR_OK);
    assert_int_equal(names_add(&n, &gen.base, "5", NULL, 0, &e), ERR_INVALID);
    names_clear(&n);
}

static struct names_entry *entry_of(struct generator *g, struct span name, struct span part)
{
    static struct names_entry found;
    (void)part;
    found = (struct names_entry){.generator = g};
    return name.n > 0 ? &found : NULL;
}

/* Of a kind whose generators are found by name, the list says which names, and not which subs. */
static void with_a_list_others_are_not_asked_for(void **state)
{
    (void)state;
    struct names n = {0};
    struct err e;
    const struct generator_kind kind = {.name = "seq", .entry = entry_of};
    struct generator g = {.kind = &kind};
    char orders[] = "orders", *list[] = {orders};
    assert_int_equal(names_add(&n, &g, "seq:", list, 1, &e), ERR_OK);
    assert_int_equal(names_add(&n, &g, "any:", NULL, 0, &e), ERR_OK);
    assert_non_null(find(&n, "seq:orders"));
    assert_non_null(find(&n, "seq:orders:acme#1"));
    assert_null(find(&n, "seq:others"));
    assert_null(find(&n, "seq:orders2:acme"));
    assert_non_null(find(&n, "any:others"));
    names_clear(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_list_any_name_is_accepted),
        cmocka_unit_test(a_name_has_1_to_200_bytes),
        cmocka_unit_test(what_follows_a_hash_is_ignored),
        cmocka_unit_test(names_are_printable_ascii),
        cmocka_unit_test(an_empty_prefix_makes_every_key_an_id),
        cmocka_unit_test(with_a_list_only_its_names_are_ids),
        cmocka_unit_test(a_long_list_is_found_whole),
        cmocka_unit_test(prefix_and_list_are_copied),
        cmocka_unit_test(with_a_list_others_are_not_asked_for),
        cmocka_unit_test(the_longest_prefix_leads_to_its_generator),
    };
    return cmocka_run_group_tests_name("ids/names", tests, NULL, NULL);
}
