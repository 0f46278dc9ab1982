/*
 * Runs a fuzz target over its corpus with any compiler: `fuzz_conf tests/fuzz/corpus/conf`.
 * Reports in TAP, as one test; the last input named on stderr is the one that broke it. A target
 * may say what a whole corpus has to lead to (feed.h): one that no longer does fails.
 */
#include "feed.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

#define INPUT_MAX ((size_t)1 << 20) /* bytes; a larger file is an error */

#pragma weak fuzz_unreached

static size_t replayed;

static bool complain(const char *path, const char *why)
{
    (void)fprintf(stderr, "%s: %s\n", path, why);
    return false;
}

/* The target gets a block of exactly n bytes, so that a sanitizer sees where it ends. */
static bool run_bytes(const char *path, const uint8_t *bytes, size_t n)
{
    uint8_t *exact = malloc(n);
    if (!exact && n > 0)
        return complain(path, "expected memory for a copy, found none");
    if (n > 0)
        memcpy(exact, bytes, n);
    (void)fprintf(stderr, "input %s\n", path);
    (void)LLVMFuzzerTestOneInput(exact, n);
    free(exact);
    replayed++;
    return true;
}

static bool run_file(const char *path)
{
    static uint8_t bytes[INPUT_MAX + 1];
    FILE *f = fopen(path, "rb");
    if (!f)
        return complain(path, strerror(errno));
    size_t n = fread(bytes, 1, sizeof bytes, f);
    bool failed = ferror(f) != 0;
    (void)fclose(f);
    if (failed)
        return complain(path, "cannot be read");
    if (n > INPUT_MAX)
        return complain(path, "expected at most 1 MiB, found more");
    return run_bytes(path, bytes, n);
}

static int visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static bool run_directory(const char *path)
{
    struct dirent **entries;
    bool all = true;
    int n = scandir(path, &entries, visible, alphasort);
    if (n < 0)
        return complain(path, strerror(errno));
    for (int i = 0; i < n; i++) {
        char file[4096];
        int length = snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name);
        all = length > 0 && (size_t)length < sizeof file && run_file(file) && all;
        free(entries[i]);
    }
    free(entries);
    const char *missing = all && fuzz_unreached ? fuzz_unreached() : NULL;
    return missing ? complain(path, missing) : all;
}

static bool run_path(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return complain(path, strerror(errno));
    return S_ISDIR(st.st_mode) ? run_directory(path) : run_file(path);
}

int main(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');
    bool all = argc > 1;
    for (int i = 1; i < argc; i++)
        all = run_path(argv[i]) && all;
    all = all && replayed > 0;
    (void)printf("1..1\n%s 1 - %s replays %zu inputs\n", all ? "ok" : "not ok",
                 slash ? slash + 1 : argv[0], replayed);
    return all ? 0 : 1;
}
