#include "wire/http_request.h"

#include "base/dec.h"

#include <string.h>

static const struct {
    int status;
    const char *text;
} statuses[] = {
    {200, "OK"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {408, "Request Timeout"},
    {410, "Gone"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {421, "Misdirected Request"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
    {505, "HTTP Version Not Supported"},
};

const char *http_status_text(int status)
{
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (statuses[i].status == status)
            return statuses[i].text;
    return "Unknown";
}

void http_put_head(struct buf *b, int status, struct span content_type, uint64_t content_length,
                   bool keep_alive, struct span extra)
{
    BUF_PUT_LIT(b, "HTTP/1.1 ");
    buf_put_u64(b, (uint64_t)status);
    buf_put_char(b, ' ');
    buf_put_str(b, http_status_text(status));
    BUF_PUT_LIT(b, "\r\nContent-Type: ");
    buf_put_span(b, content_type);
    BUF_PUT_LIT(b, "\r\nContent-Length: ");
    buf_put_u64(b, content_length);
    BUF_PUT_LIT(b, "\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n");
    if (status == 405)
        BUF_PUT_LIT(b, "Allow: GET, HEAD\r\n");
    buf_put_span(b, extra);
    buf_put_str(b, keep_alive ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n");
}

/* why says what was expected; found (may be empty) what was there instead. */
static enum wire_status refuse_found(struct http_req *req, int status, const char *why,
                                     struct span found)
{
    const struct span comma = SPAN(", found ");
    struct buf b;
    size_t length = strlen(why) + 1;
    found.n = found.n < 32 ? found.n : 32;
    if (found.n)
        length += comma.n + found.n;
    buf_init(&b, req->error_text, sizeof req->error_text);
    http_put_head(&b, status, SPAN("text/plain; charset=utf-8"), length, false, SPAN(""));
    if (req->method != HTTP_HEAD) {
        buf_put_str(&b, why);
        buf_put_span(&b, found.n ? comma : found);
        buf_put_span(&b, found);
        buf_put_char(&b, '\n');
    }
    req->status = status;
    req->error = buf_span(&b);
    return WIRE_CLOSE;
}

static enum wire_status refuse(struct http_req *req, int status, const char *why)
{
    return refuse_found(req, status, why, SPAN(""));
}

static bool is_alnum(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* tchar of RFC 9110, 5.6.2. */
static bool is_tchar(char c)
{
    return is_alnum(c) || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

/* What RFC 3986 allows in path and query, with a few more that clients send unescaped; no '#'. */
static bool is_target_char(char c)
{
    return c > ' ' && c < 0x7f && c != '#';
}

/* What a host and a port are written in (RFC 3986, 3.2.2). */
static bool is_host_char(char c)
{
    return is_alnum(c) || (c != '\0' && strchr("-._~%!$&'()*+,;=:[]", c));
}

/* field-vchar, space and tab of RFC 9110, 5.5. */
static bool is_value_char(char c)
{
    return c == '\t' || ((unsigned char)c >= ' ' && c != 0x7f);
}

static bool all(struct span s, bool (*is)(char))
{
    for (size_t i = 0; i < s.n; i++)
        if (!is(s.p[i]))
            return false;
    return true;
}

static struct span trim(struct span s)
{
    while (s.n > 0 && (*s.p == ' ' || *s.p == '\t'))
        s = span_of(s.p + 1, s.n - 1);
    while (s.n > 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

static bool is_of_zero(char c)
{
    return c == '0' || c == '.';
}

/* Among an item's parameters q=0, or 0.000: "not acceptable" (RFC 9110, 12.4.2). */
static bool is_unwanted(struct span parameters)
{
    while (parameters.p) {
        struct span one = trim(span_cut(&parameters, ';'));
        struct span name = span_cut(&one, '=');
        if (span_eq_nocase(name, SPAN("q")))
            return span_starts(one, SPAN("0")) && all(one, is_of_zero);
    }
    return false;
}

bool http_list_has(struct span list, struct span token)
{
    while (list.p) {
        struct span item = span_cut(&list, ',');
        if (span_eq_nocase(trim(span_cut(&item, ';')), token) && !is_unwanted(item))
            return true;
    }
    return false;
}

bool http_query_get(struct span query, struct span name, struct span *value)
{
    while (query.p) {
        struct span text = span_cut(&query, '&');
        if (span_eq(span_cut(&text, '='), name)) {
            *value = text.p ? text : span_of("", 0);
            return true;
        }
    }
    return false;
}

/* Header fields that mean something to us. A handler returns false for a value that is not of the
 * form it must have. */
static bool set_host(struct http_req *req, struct span v)
{
    /* An absolute target overrides the header: RFC 9112, 3.2.2. */
    if (!req->host.p)
        req->host = v;
    return ++req->hosts == 1 && all(v, is_host_char);
}

static bool set_connection(struct http_req *req, struct span v)
{
    req->close |= http_list_has(v, SPAN("close"));
    req->keep |= http_list_has(v, SPAN("keep-alive"));
    return true;
}

static bool set_accept(struct http_req *req, struct span v)
{
    if (!req->accept.p)
        req->accept = v;
    return true;
}

static bool set_authorization(struct http_req *req, struct span v)
{
    if (!req->authorization.p)
        req->authorization = v;
    return true;
}

static bool set_origin(struct http_req *req, struct span v)
{
    if (!req->origin.p)
        req->origin = v;
    return true;
}

static bool set_site(struct http_req *req, struct span v)
{
    if (!req->site.p)
        req->site = v;
    return true;
}

static bool set_dest(struct http_req *req, struct span v)
{
    if (!req->dest.p)
        req->dest = v;
    return true;
}

static bool set_length(struct http_req *req, struct span v)
{
    uint64_t n;
    if (!dec_u64(v, &n) || (req->has_length && n != req->content_length))
        return false;
    req->has_length = true;
    req->content_length = n;
    return true;
}

static bool set_coding(struct http_req *req, struct span v)
{
    req->chunked = !req->coded && span_eq_nocase(v, SPAN("chunked"));
    req->coded = true;
    return true;
}

static const struct {
    const char *name;
    bool (*set)(struct http_req *req, struct span value);
    const char *expected;
} fields[] = {
    {"host", set_host, "expected one Host header with a host and a port"},
    {"connection", set_connection, ""},
    {"accept", set_accept, ""},
    {"authorization", set_authorization, ""},
    {"origin", set_origin, ""},
    {"sec-fetch-site", set_site, ""},
    {"sec-fetch-dest", set_dest, ""},
    {"content-length", set_length, "expected one Content-Length in decimal digits"},
    {"transfer-encoding", set_coding, ""},
};

static enum wire_status parse_field(struct http_req *req, struct span line)
{
    struct span value = line, name = span_cut(&value, ':');
    if (*line.p == ' ' || *line.p == '\t')
        return refuse(req, 400, "expected each header on one line, found a continued one");
    if (!value.p || name.n == 0 || !all(name, is_tchar))
        return refuse(req, 400, "expected a header NAME: VALUE without space before the colon");
    value = trim(value);
    if (!all(value, is_value_char))
        return refuse(req, 400, "expected a header value without control characters");
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (span_eq_nocase(name, span_str(fields[i].name)) && !fields[i].set(req, value))
            return refuse(req, 400, fields[i].expected);
    return WIRE_REQ;
}

/* absolute-form, "http://host/path?query", must be accepted by servers too (RFC 9112, 3.2.2). */
static struct span cut_authority(struct http_req *req, struct span target)
{
    const struct span scheme = SPAN("http://");
    if (target.n < scheme.n || !span_eq_nocase(span_of(target.p, scheme.n), scheme))
        return target;
    struct span rest = span_skip(target, scheme.n);
    size_t n = 0;
    while (n < rest.n && rest.p[n] != '/' && rest.p[n] != '?')
        n++;
    req->host = span_of(rest.p, n);
    rest = span_skip(rest, n);
    return rest.n ? rest : SPAN("/");
}

static enum wire_status parse_target(struct http_req *req, struct span target)
{
    struct span rest = cut_authority(req, target);
    if (req->host.p && (req->host.n == 0 || !all(req->host, is_host_char)))
        return refuse(req, 400, "expected a host and a port behind http://");
    if (req->host.p && *rest.p == '?') {
        req->path = SPAN("/");
        req->query = span_skip(rest, 1);
        return WIRE_REQ;
    }
    if (*rest.p != '/')
        return refuse(req, 400, "expected a target that begins with /");
    req->path = span_cut(&rest, '?');
    req->query = rest;
    return WIRE_REQ;
}

/* Known methods are refused as not allowed, others as not implemented (RFC 9110, 15.6.2). */
static enum wire_status parse_method(struct http_req *req, struct span method)
{
    static const char *const known[] = {"POST",    "PUT",     "DELETE", "PATCH",
                                        "OPTIONS", "CONNECT", "TRACE"};
    bool head = span_eq(method, SPAN("HEAD"));
    req->method = head ? HTTP_HEAD : HTTP_GET;
    if (head || span_eq(method, SPAN("GET")))
        return WIRE_REQ;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (span_eq(method, span_str(known[i])))
            return refuse_found(req, 405, "expected GET or HEAD", method);
    return refuse_found(req, 501, "expected GET or HEAD", method);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static enum wire_status parse_request_line(struct http_req *req, struct span line)
{
    struct span version = line;
    struct span method = span_cut(&version, ' '), target = span_cut(&version, ' ');
    bool whole = method.n > 0 && all(method, is_tchar) && target.n > 0 &&
                 all(target, is_target_char) && version.n == 8 &&
                 span_starts(version, SPAN("HTTP/")) && is_digit(version.p[5]) &&
                 version.p[6] == '.' && is_digit(version.p[7]);
    if (!whole)
        return refuse(req, 400, "expected a request line METHOD TARGET HTTP/1.1");
    if (version.p[5] != '1')
        return refuse_found(req, 505, "expected HTTP/1.0 or HTTP/1.1", version);
    req->minor = version.p[7] == '0' ? 0 : 1;
    enum wire_status status = parse_method(req, method);
    return status == WIRE_REQ ? parse_target(req, target) : status;
}

/* The head is whole; what it says must hold together. */
static enum wire_status judge(struct http_req *req)
{
    if (req->minor >= 1 && req->hosts == 0)
        return refuse(req, 400, "expected a Host header, found none");
    if (req->coded && (req->has_length || req->minor == 0))
        return refuse(req, 400, "expected no Transfer-Encoding with Content-Length or HTTP/1.0");
    if (req->coded && !req->chunked)
        return refuse(req, 501, "expected no Transfer-Encoding");
    if (req->coded || req->content_length > 0)
        return refuse(req, 413, "expected a request without a body");
    req->keep_alive = !req->close && (req->minor >= 1 || req->keep);
    return WIRE_REQ;
}

/* The next line of in from *at on, without its end. false: it has not ended within in. */
static bool next_line(struct span in, size_t *at, struct span *line)
{
    const char *p = in.p + *at;
    const char *end = *at < in.n ? memchr(p, '\n', in.n - *at) : NULL;
    if (!end)
        return false;
    *line = span_of(p, (size_t)(end - p));
    *at += line->n + 1;
    if (line->n > 0 && end[-1] == '\r')
        line->n--;
    return true;
}

/* The first line not empty: RFC 9112, 2.2 lets a client send an empty one after its last body. */
static bool first_line(struct span in, size_t *at, struct span *line)
{
    do {
        if (!next_line(in, at, line))
            return false;
    } while (line->n == 0);
    return true;
}

/* in has at most HTTP_HEAD_MAX bytes; WIRE_MORE: they are not enough, *at is behind the last line
 * understood. */
static enum wire_status parse_head(struct span in, struct http_req *req, size_t *at)
{
    struct span line;
    if (!first_line(in, at, &line)) {
        bool blank = *at >= in.n || in.p[*at] == '\r';
        return blank || is_tchar(in.p[*at]) ? WIRE_MORE : parse_request_line(req, SPAN(""));
    }
    enum wire_status status = parse_request_line(req, line);
    while (status == WIRE_REQ) {
        if (!next_line(in, at, &line))
            return WIRE_MORE;
        if (line.n == 0)
            return judge(req);
        status = parse_field(req, line);
    }
    return status;
}

enum wire_status http_parse(struct span in, struct http_req *req, size_t *used)
{
    struct span head = {in.p, in.n < HTTP_HEAD_MAX ? in.n : HTTP_HEAD_MAX};
    size_t at = 0;
    *used = 0;
    memset(req, 0, offsetof(struct http_req, error_text));
    enum wire_status status = parse_head(head, req, &at);
    if (status == WIRE_MORE && in.n >= HTTP_HEAD_MAX)
        status = req->path.p ? refuse(req, 431, "expected at most 8192 bytes of request head")
                             : refuse(req, 414, "expected at most 8192 bytes of request line");
    if (status == WIRE_REQ)
        *used = at;
    if (status == WIRE_CLOSE)
        *used = in.n;
    return status;
}
