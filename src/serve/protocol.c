#include "serve/protocol.h"

#define PROTOCOL_AT(id, name) [SERVE_##id] = &protocol_##name,

const struct protocol *const protocol_table[SERVE_PROTOCOLS] = {PROTOCOLS(PROTOCOL_AT)};
