#include "conf/list.h"

#include <stdlib.h>
#include <string.h>

enum err_code conf_list_add(struct conf_list *l, struct span item, struct err *e)
{
    char **grown = realloc(l->item, (l->n + 1) * sizeof *grown);
    if (grown)
        l->item = grown;
    char *copy = grown ? strndup(item.n ? item.p : "", item.n) : NULL;
    if (!copy)
        return err_set(e, ERR_NOMEM, "no memory for a list of %zu items", l->n + 1);
    l->item[l->n++] = copy;
    return ERR_OK;
}

void conf_list_clear(struct conf_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->item[i]);
    free(l->item);
    *l = (struct conf_list){NULL, 0};
}

bool conf_list_equal(const struct conf_list *a, const struct conf_list *b)
{
    for (size_t i = 0; i < a->n && i < b->n; i++)
        if (strcmp(a->item[i], b->item[i]) != 0)
            return false;
    return a->n == b->n;
}
