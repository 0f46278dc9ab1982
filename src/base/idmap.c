#include "base/idmap.h"

#include "base/dec.h"
#include "base/file.h"

#include <fcntl.h>
#include <string.h>

#define ALL       UINT64_C(4294967295) /* numbers, for the last means none */
#define OVERFLOW  65534u
#define MAP_BYTES 16384

/* The next number of a line, behind any number of spaces. */
static bool take_number(struct span *line, uint64_t *v)
{
    while (line->n > 0 && (line->p[0] == ' ' || line->p[0] == '\t'))
        *line = span_skip(*line, 1);
    size_t n = 0;
    while (n < line->n && line->p[n] >= '0' && line->p[n] <= '9')
        n++;
    struct span digits = span_of(line->p, n);
    *line = span_skip(*line, n);
    return dec_u64(digits, v);
}

bool idmap_tells(struct span map, uint32_t overflow, uint32_t id)
{
    uint64_t inside, outside, count, mapped = 0;
    bool found = false;
    while (map.n > 0) {
        struct span line = span_cut(&map, '\n');
        if (!take_number(&line, &inside) || !take_number(&line, &outside) ||
            !take_number(&line, &count))
            continue;
        mapped += count;
        found |= id >= inside && id - inside < count;
    }
    return mapped >= ALL || (found && id != overflow);
}

static struct span read_text(const char *path, char *mem, size_t cap)
{
    size_t n = 0;
    return file_load(path, O_NOCTTY, mem, cap, &n) ? span_of(mem, 0) : span_of(mem, n);
}

bool idmap_tells_here(bool group, uint32_t id)
{
    char mem[MAP_BYTES], number[32];
    uint64_t overflow = OVERFLOW;
    struct span text =
        read_text(group ? "/proc/sys/kernel/overflowgid" : "/proc/sys/kernel/overflowuid", number,
                  sizeof number);
    (void)take_number(&text, &overflow);
    struct span map =
        read_text(group ? "/proc/self/gid_map" : "/proc/self/uid_map", mem, sizeof mem);
    if (map.n == 0) /* no /proc, or a kernel without user namespaces */
        return id != (uint32_t)overflow;
    return idmap_tells(map, (uint32_t)overflow, id);
}
