#include "auth/secret.h"

#include "base/dec.h"

#include <argon2.h>
#include <crypt.h>
#include <stdlib.h>

/* For new hashes: the second choice of RFC 9106's authors for little memory, as OWASP has it. */
#define NEW_KIB    19456
#define NEW_PASSES 2
#define SALT       16
#define ARGON2     SPAN("$argon2id$v=19$")

bool secret_equal(const void *a, const void *b, size_t n)
{
    const volatile unsigned char *x = a, *y = b;
    unsigned char diff = 0;
    for (size_t i = 0; i < n; i++)
        diff = (unsigned char)(diff | (x[i] ^ y[i]));
    return diff == 0;
}

/* ---- forms ------------------------------------------------------------------------------------
 */

static bool is_coded(struct span s, const char *extra)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool word = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!word && (c == '\0' || !strchr(extra, c)))
            return false;
    }
    return true;
}

/* Base64 without padding, of lo..hi bytes. */
static bool is_base64(struct span s, size_t lo, size_t hi)
{
    size_t bytes = s.n * 3 / 4;
    return s.n % 4 != 1 && bytes >= lo && bytes <= hi && is_coded(s, "+/");
}

/* "x=N" with N in lo..hi. */
static bool parameter(struct span s, struct span name, uint64_t lo, uint64_t hi, uint64_t *v)
{
    return span_starts(s, name) && s.n > name.n && s.p[name.n] != '0' &&
           dec_u64(span_skip(s, name.n), v) && *v >= lo && *v <= hi;
}

static bool argon2_ok(struct span rest)
{
    struct span costs = span_cut(&rest, '$'), salt = span_cut(&rest, '$');
    struct span m = span_cut(&costs, ','), t = span_cut(&costs, ',');
    uint64_t kib, passes, lanes;
    return parameter(m, SPAN("m="), 8, SECRET_KIB_MAX, &kib) &&
           parameter(t, SPAN("t="), 1, 16, &passes) && kib * passes <= SECRET_WORK_MAX &&
           parameter(costs, SPAN("p="), 1, 16, &lanes) && is_base64(salt, 8, 64) &&
           is_base64(rest, 16, 64);
}

static bool crypt_ok(struct span rest, size_t length)
{
    struct span salt = span_cut(&rest, '$');
    uint64_t rounds;
    if (span_starts(salt, SPAN("rounds="))) {
        if (!parameter(salt, SPAN("rounds="), 1000, 1000000, &rounds))
            return false;
        salt = span_cut(&rest, '$');
    }
    return salt.n <= 16 && is_coded(salt, "./") && rest.n == length && is_coded(rest, "./");
}

bool secret_well_formed(struct span hash)
{
    if (hash.n > SECRET_HASH_MAX)
        return false;
    if (span_starts(hash, ARGON2))
        return argon2_ok(span_skip(hash, ARGON2.n));
    if (span_starts(hash, SPAN("$5$")))
        return crypt_ok(span_skip(hash, 3), 43);
    return span_starts(hash, SPAN("$6$")) && crypt_ok(span_skip(hash, 3), 86);
}

/* ---- checks -----------------------------------------------------------------------------------
 */

static bool crypt_matches(const char *hash, struct span password)
{
    char text[SECRET_PASSWORD_MAX + 1];
    struct crypt_data *data = calloc(1, sizeof *data);
    if (!data || password.n > SECRET_PASSWORD_MAX || memchr(password.p, '\0', password.n)) {
        free(data);
        return false;
    }
    memcpy(text, password.p, password.n);
    text[password.n] = '\0';
    const char *found = crypt_r(text, hash, data);
    size_t n = strlen(hash);
    bool same = found && strlen(found) == n && secret_equal(found, hash, n);
    explicit_bzero(text, sizeof text);
    explicit_bzero(data, sizeof *data);
    free(data);
    return same;
}

bool secret_matches(const char *hash, struct span password)
{
    struct span pass = password.n ? password : SPAN("");
    if (span_starts(span_str(hash), ARGON2))
        return argon2id_verify(hash, pass.p, pass.n) == ARGON2_OK;
    return crypt_matches(hash, pass);
}

enum err_code secret_make(char out[SECRET_HASH_MAX + 1], struct span password, struct rng *rng,
                          struct err *e)
{
    uint8_t salt[SALT];
    rng->fill(rng, salt, sizeof salt);
    int r = argon2id_hash_encoded(NEW_PASSES, NEW_KIB, 1, password.p, password.n, salt, sizeof salt,
                                  SECRET_DIGEST, out, SECRET_HASH_MAX + 1);
    return r == ARGON2_OK ? ERR_OK : err_set(e, ERR_NOMEM, "argon2: %s", argon2_error_message(r));
}

/* Argon2 at its cheapest, for its secret key: 8 KiB, once. Lengths of all inputs go into it, so
 * that no two pairs of name and password look alike. */
bool secret_digest(const uint8_t key[SECRET_DIGEST], struct span name, struct span password,
                   uint8_t out[SECRET_DIGEST])
{
    uint8_t salt[SALT] = {0}, secret[SECRET_DIGEST];
    memcpy(secret, key, sizeof secret);
    argon2_context c = {.out = out,
                        .outlen = SECRET_DIGEST,
                        .pwd = (uint8_t *)(uintptr_t)password.p,
                        .pwdlen = (uint32_t)password.n,
                        .salt = salt,
                        .saltlen = sizeof salt,
                        .secret = secret,
                        .secretlen = sizeof secret,
                        .ad = (uint8_t *)(uintptr_t)name.p,
                        .adlen = (uint32_t)name.n,
                        .t_cost = 1,
                        .m_cost = 8,
                        .lanes = 1,
                        .threads = 1,
                        .version = ARGON2_VERSION_13};
    bool ok = argon2id_ctx(&c) == ARGON2_OK;
    explicit_bzero(secret, sizeof secret);
    return ok;
}
