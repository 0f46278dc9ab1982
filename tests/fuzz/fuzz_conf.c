/* Any bytes as a configuration file: refused with a place, or loaded; what was loaded is dumped,
 * and the dump loads to the same again. */
#include "conf/conf.h"
#include "conf/list.h"

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

/* Each says where, and they are in the order of the file. */
static void check_errors(struct conf_list *errors)
{
    size_t at = 0;
    require(errors->n > 0 && errors->n <= CONF_ERRORS_MAX, "a number of errors", "");
    for (size_t i = 0; i < errors->n; i++) {
        size_t line, column;
        require(sscanf(errors->item[i], "fuzz.yaml:%zu:%zu: expected ", &line, &column) == 2,
                "an error without a place", errors->item[i]);
        require(line >= at || line == 1, "an error before the one before", errors->item[i]);
        at = line;
    }
    conf_list_clear(errors);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct conf first, second;
    struct conf_list errors = {.n = 0};
    struct err e = {.text = ""};
    size_t n = 0, again_n = 0;
    enum err_code rc = conf_load_text(&first, "fuzz.yaml", span_of((const char *)data, size), NULL,
                                      0, NULL, &errors, &e);
    if (rc != ERR_OK) {
        require(errors.n > 0 && strcmp(errors.item[0], e.text) == 0, "another first error", e.text);
        check_errors(&errors);
        return 0;
    }
    char *text = dump(&first, &n);
    rc = conf_load_text(&second, "dump", span_of(text, n), NULL, 0, NULL, NULL, &e);
    require(rc == ERR_OK, "a dump that does not load", e.text);
    char *again = dump(&second, &again_n);
    require(n == again_n && memcmp(text, again, n) == 0, "a dump that changes", again);
    free(again);
    free(text);
    conf_clear(&second);
    conf_clear(&first);
    return 0;
}
