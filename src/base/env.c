/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of CATENA_* variables: typed values for the library, and a list for tools.
 *
 * Invariant: no other file reads a CATENA_* variable. An empty value counts as not set. Values are
 * read again each time, so a host may set them at any time before it makes a context.
 */
#include "base/base.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <strings.h>

#include <catena/env.h>

extern char **environ;

typedef enum { TYPE_int, TYPE_bool, TYPE_str } env_type;

typedef struct {
    const char *name, *type_name, *def, *help;
    env_type type;
} entry;

static const entry table[CTN__ENV_COUNT] = {
#define CTN__ENV(id, name, type, def, help) {name, #type, def, help, TYPE_##type},
#include "base/env.def"
#undef CTN__ENV
};

static atomic_bool warned[CTN__ENV_COUNT];

static bool parse_int(const char *s, int64_t *out)
{
    char *end = NULL;
    errno = 0;
    long long v = strtoll(s, &end, 10);
    if (errno != 0 || end == s || *end != 0) return false;
    *out = v;
    return true;
}

static bool parse_bool(const char *s, int64_t *out)
{
    static const char *const words[2][4] = {{"0", "no", "off", "false"},
                                            {"1", "yes", "on", "true"}};
    for (int v = 0; v < 2; v++)
        for (int k = 0; k < 4; k++)
            if (strcasecmp(s, words[v][k]) == 0) {
                *out = v;
                return true;
            }
    return false;
}

static bool parse(env_type type, const char *s, int64_t *out)
{
    if (type == TYPE_int) return parse_int(s, out);
    if (type == TYPE_bool) return parse_bool(s, out);
    return true;
}

/* The text in effect and, for numbers, its value. *bad is the invalid text, if any. */
static const char *lookup(int id, int64_t *value, const char **source, const char **bad)
{
    const entry *e = &table[id];
    const char *s = getenv(e->name);
    *bad = NULL;
    *source = "environment";
    if (s != NULL && s[0] != 0) {
        if (parse(e->type, s, value)) return s;
        *bad = s;
    }
    *source = *bad != NULL ? "default (bad text in environment)" : "default";
    parse(e->type, e->def, value);
    return e->def;
}

static const char *effective(int id, int64_t *value)
{
    const char *source, *bad;
    const char *s = lookup(id, value, &source, &bad);
    /* Warn once per variable, because a value may be read often. */
    if (bad != NULL && !atomic_exchange(&warned[id], true))
        ctn__warn("%s=%s is not a valid %s; using the default %s", table[id].name, bad,
                  table[id].type_name, s);
    return s;
}

int64_t ctn__env_int(ctn__env_id id)
{
    int64_t v = 0;
    effective((int)id, &v);
    return v;
}

bool ctn__env_bool(ctn__env_id id)
{
    int64_t v = 0;
    effective((int)id, &v);
    return v != 0;
}

const char *ctn__env_str(ctn__env_id id)
{
    int64_t v = 0;
    return effective((int)id, &v);
}

static bool known(const char *name, size_t n)
{
    for (int i = 0; i < CTN__ENV_COUNT; i++)
        if (strlen(table[i].name) == n && memcmp(table[i].name, name, n) == 0) return true;
    return false;
}

static void check(void)
{
    for (char **e = environ; e != NULL && *e != NULL; e++) {
        size_t n = strcspn(*e, "=");
        if (strncmp(*e, "CATENA_", 7) != 0 || known(*e, n)) continue;
        ctn__warn("%.*s is set but is not a Catena variable; `catena info` lists them", (int)n, *e);
    }
}

void ctn__env_check(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, check);
}

int ctn_env_count(void)
{
    return CTN__ENV_COUNT;
}

ctn_status ctn_env_get(int i, ctn_env_entry *out)
{
    if (i < 0 || i >= CTN__ENV_COUNT)
        return ctn_fail(CTN_EARG, "env_get: entry %d is out of range, the table has %d", i,
                        (int)CTN__ENV_COUNT);
    if (out == NULL) return ctn_fail(CTN_EARG, "env_get: out is NULL");
    int64_t v = 0;
    const char *bad;
    out->name = table[i].name;
    out->type = table[i].type_name;
    out->def = table[i].def;
    out->help = table[i].help;
    out->value = lookup(i, &v, &out->source, &bad);
    return CTN_OK;
}
