#include "base/resident.h"

#include <stdint.h> /* says whether this is glibc */

#ifdef __GLIBC__
#include <link.h>
#include <malloc.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define APART (1 << 20) /* bytes that are mapped by themselves, and unmapped once they are free */

/* Segments that cannot be written are as they are in the file. The kernel's own page has no file.
 */
static int trim_object(struct dl_phdr_info *o, size_t size, void *arg)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    (void)size;
    (void)arg;
    if (strstr(o->dlpi_name, "vdso"))
        return 0;
    for (size_t i = 0; i < o->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &o->dlpi_phdr[i];
        uintptr_t from = (o->dlpi_addr + h->p_vaddr) & ~(page - 1);
        uintptr_t to = (o->dlpi_addr + h->p_vaddr + h->p_memsz + page - 1) & ~(page - 1);
        if (h->p_type == PT_LOAD && !(h->p_flags & PF_W))
            (void)madvise((void *)from, to - from, MADV_DONTNEED);
    }
    return 0;
}

void resident_trim(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, APART);
    (void)malloc_trim(0);
    (void)dl_iterate_phdr(trim_object, NULL);
}
#else
void resident_trim(void)
{
}
#endif
