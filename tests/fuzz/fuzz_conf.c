/* Any bytes as a configuration file: refused with a place, or loaded; what was loaded is dumped,
 * and the dump loads to the same again. */
#include "conf/conf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds, const char *what, const char *text)
{
    if (holds)
        return;
    (void)fprintf(stderr, "%s: %s\n", what, text);
    abort();
}

static char *dump(const struct conf *c, size_t *n)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, n);
    if (!out)
        abort();
    conf_dump(c, out);
    if (fclose(out) != 0)
        abort();
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct conf first, second;
    struct err e = {.text = ""};
    size_t n = 0, again_n = 0;
    enum err_code rc =
        conf_load_text(&first, "fuzz.yaml", span_of((const char *)data, size), NULL, 0, NULL, &e);
    if (rc != ERR_OK) {
        size_t line, column;
        require(sscanf(e.text, "fuzz.yaml:%zu:%zu: expected ", &line, &column) == 2,
                "an error without a place", e.text);
        return 0;
    }
    char *text = dump(&first, &n);
    rc = conf_load_text(&second, "dump", span_of(text, n), NULL, 0, NULL, &e);
    require(rc == ERR_OK, "a dump that does not load", e.text);
    char *again = dump(&second, &again_n);
    require(n == again_n && memcmp(text, again, n) == 0, "a dump that changes", again);
    free(again);
    free(text);
    conf_clear(&second);
    conf_clear(&first);
    return 0;
}
