/*
 * Text in and out of the configuration: what may stand in a string, and how it is written.
 *
 * Pure, no allocation. conf_quote of conf.h lives here too.
 */
#ifndef SIDFLAKE_CONF_TEXT_H
#define SIDFLAKE_CONF_TEXT_H

#include "base/span.h"

#include <stdbool.h>
#include <stdio.h>

/* Bytes of a file's name that messages show; of a longer one they show the end. */
#define CONF_TEXT_NAME_MAX 120

/* Valid UTF-8 without control characters (U+0000..001F, U+007F..009F). "" is clean. */
bool conf_text_clean(struct span s);

/* All bytes printable ASCII, 0x21..0x7e: no spaces. "" is. */
bool conf_text_graphic(struct span s);

/* The password in SCHEME://USER:PASSWORD@…, or an empty span. It ends at the last '@': rather too
 * much is hidden than too little. */
struct span conf_text_password(struct span url);

/* The name of a file, or the last CONF_TEXT_NAME_MAX bytes of it. */
const char *conf_text_name(const char *name);

/* Writes s, which is clean, as a YAML double-quoted scalar in ASCII (YAML 1.1, 5.6). */
void conf_text_put_yaml(struct span s, FILE *out);

#endif
