/*
 * Which file a page is in, and of which boot: what page.h's home is made of.
 */
#ifndef SIDFLAKE_LEASE_HOME_H
#define SIDFLAKE_LEASE_HOME_H

#include "base/err.h"
#include "lease/page.h"

/* Fills in boot. */
enum err_code home_read_boot(struct page_home *home, struct err *e) MUST_CHECK;

/* Fills in device, inode and birth: of fd, or where fd is negative of the file at path, for which
 * no descriptor has to be had. false: there is none. */
bool home_read_file(int fd, const char *path, struct page_home *home);

/* Whether fd is the file at path, so that the next process finds it there; *bytes: its length.
 * false: why says what is there. Looks at the disk. */
bool home_is_at(int fd, const char *path, int64_t *bytes, struct err *why);

#endif
