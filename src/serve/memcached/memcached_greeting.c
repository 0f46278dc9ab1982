/* How sidflake logs in at a memcached, in each of its protocols, and how that says that it cannot.
 */
#include "serve/memcached/memcached.h"
#include "wire/mc_binary.h"

#define SASL_AUTH 0x21

/* As -Y wants it. A memcached that asks for no login keeps the value for no time at all. */
static void put_text(struct buf *b, struct upstream_greeting *g, struct span user,
                     struct span password)
{
    BUF_PUT_LIT(b, "set sidflake:login 0 -1 ");
    buf_put_u64(b, user.n + 1 + password.n);
    BUF_PUT_LIT(b, "\r\n");
    greeting_put_user(b, g, user);
    BUF_PUT_LIT(b, " ");
    greeting_put_secret(b, g, password);
    BUF_PUT_LIT(b, "\r\n");
}

/* SASL PLAIN, as -S wants it: a key "PLAIN", a value NUL user NUL password. */
static void put_binary(struct buf *b, struct upstream_greeting *g, struct span user,
                       struct span password)
{
    size_t body = 5 + 2 + user.n + password.n;
    const char header[MCB_HEADER] = {
        MCB_REQUEST, SASL_AUTH, 0, 5, [10] = (char)(body >> 8), [11] = (char)body};
    buf_put(b, header, sizeof header);
    BUF_PUT_LIT(b, "PLAIN");
    buf_put_char(b, '\0');
    greeting_put_user(b, g, user);
    buf_put_char(b, '\0');
    greeting_put_secret(b, g, password);
}

const struct greeting_form mcd_logins[] = {
    {UPSTREAM_TEXT, FRAME_MC_LINE, {"STORED\r\n", 8}, 0, put_text},
    {UPSTREAM_BINARY, FRAME_MC_BINARY, {"\x81\x21", 2}, MCB_HEADER, put_binary},
    {.put = NULL},
};

const struct span mcd_refusals[] = {SPAN("CLIENT_ERROR unauthenticated"),
                                    SPAN("ERROR Too many open connections"), SPAN("HTTP/"),
                                    SPAN("")};

const struct span mcd_faults[] = {SPAN("SERVER_ERROR out of memory"), SPAN("")};
