/* How sidflake logs in at a Redis. */
#include "serve/redis/redis.h"

/* AUTH [user] password */
static void put(struct buf *b, struct upstream_greeting *g, struct span user, struct span password)
{
    resp_put_array(b, user.n > 0 ? 3 : 2);
    resp_put_bulk(b, SPAN("AUTH"));
    if (user.n > 0) {
        BUF_PUT_LIT(b, "$");
        buf_put_u64(b, user.n);
        BUF_PUT_LIT(b, "\r\n");
        greeting_put_user(b, g, user);
        BUF_PUT_LIT(b, "\r\n");
    }
    BUF_PUT_LIT(b, "$");
    buf_put_u64(b, password.n);
    BUF_PUT_LIT(b, "\r\n");
    greeting_put_secret(b, g, password);
    BUF_PUT_LIT(b, "\r\n");
}

const struct greeting_form rds_logins[] = {
    {UPSTREAM_TEXT, FRAME_RESP, {"+OK\r\n", 5}, 1, put},
    {.put = NULL},
};
