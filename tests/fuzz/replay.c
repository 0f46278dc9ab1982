/* Runs a fuzzer's entry point over files, once each: corpora are replayed by ordinary tests, with
 * any compiler. Usage: replay FILE... */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv)
{
    static uint8_t data[1 << 20];
    for (int i = 1; i < argc; i++) {
        FILE *f = fopen(argv[i], "rb");
        if (!f) {
            fprintf(stderr, "%s: expected a readable file\n", argv[i]);
            return 1;
        }
        /* A copy of its exact size, for the sanitizer to see its end. */
        size_t n = fread(data, 1, sizeof data, f);
        uint8_t *copy = malloc(n ? n : 1);
        fclose(f);
        if (!copy)
            return 1;
        for (size_t j = 0; j < n; j++)
            copy[j] = data[j];
        LLVMFuzzerTestOneInput(copy, n);
        free(copy);
    }
    printf("%d inputs replayed\n", argc - 1);
    return argc > 1 ? 0 : 1;
}
