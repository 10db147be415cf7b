/* SPDX-License-Identifier: Apache-2.0
 *
 * Configuration files: one YAML mapping from option names to scalars or lists of scalars. The
 * type of a value comes from the option table and not from YAML's rules: `no` is a word where
 * text is expected, `1e3` a number where a number is expected. Tags, anchors, aliases and files
 * above a size limit are refused. No other file uses libyaml.
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef CTN_HAVE_YAML
#include <yaml.h>
#endif

#include "cli.h"

enum { MAX_FILE = 1 << 20, MAX_DEPTH = 4, MAX_VALUE = 4096 };

static bool in_files(const command *cmd, const char *name)
{
    char spaced[MAX_VALUE];
    snprintf(spaced, sizeof spaced, " %s ", name);
    return strstr(cmd->configure, spaced) == NULL;
}

#ifdef CTN_HAVE_YAML

typedef struct {
    args *a;
    const char *path;
    source from;
    int depth; /* open mappings and lists */
    int key;   /* the option whose value comes next; -1: a key comes next */
    bool seen[MAX_OPTIONS];
    bool list; /* inside a list, whose items are joined in `value` */
    char value[MAX_VALUE];
} reader;

static int refuse(const reader *r, const yaml_mark_t *at, const char *fmt, const char *word)
{
    say(stderr, "catena %s: %s, line %zu: ", r->a->cmd->name, r->path, at->line + 1);
    say(stderr, "%s", fmt);
    if (word) say(stderr, " '%s'", word);
    say(stderr, "\n");
    return EXIT_USAGE;
}

static int take_key(reader *r, const yaml_event_t *e)
{
    const char *name = (const char *)e->data.scalar.value;
    const command *cmd = r->a->cmd;
    r->key = option_find(cmd, name, strlen(name));
    if (r->key >= 0 && in_files(cmd, name)) {
        if (r->seen[r->key]) return refuse(r, &e->start_mark, "key given twice:", name);
        r->seen[r->key] = true;
        return -1;
    }
    if (r->key >= 0)
        return refuse(r, &e->start_mark, "only allowed as a flag, not in a file:", name);
    const char *near = nearest_option(cmd, name);
    say(stderr, "catena %s: %s, line %zu: unknown key '%s'", cmd->name, r->path,
        e->start_mark.line + 1, name);
    if (near && in_files(cmd, near)) say(stderr, "; did you mean %s?", near);
    say(stderr, " (catena %s --help all lists the keys)\n", cmd->name);
    return EXIT_USAGE;
}

/* A relative path starts from the folder of the file, wherever the command runs. */
static const char *path_of(const reader *r, char buf[PATH_MAX])
{
    const char *slash = strrchr(r->path, '/');
    if (!slash || r->value[0] == '/' || !r->value[0]) return r->value;
    if (!option_is_path(&r->a->cmd->options[r->key], r->value)) return r->value;
    const int n = snprintf(buf, PATH_MAX, "%.*s/%s", (int)(slash - r->path), r->path, r->value);
    return n < PATH_MAX ? buf : NULL;
}

static int end_value(reader *r, const yaml_event_t *e)
{
    char where[PATH_MAX + 64], path[PATH_MAX];
    const char *value = path_of(r, path);
    if (!value) return refuse(r, &e->start_mark, "the path is too long:", r->value);
    snprintf(where, sizeof where, "%s, line %zu: ", r->path, e->start_mark.line + 1);
    int code = args_set(r->a, r->key, value, r->from, where);
    r->key = -1;
    return code;
}

static int take_scalar(reader *r, const yaml_event_t *e)
{
    const char *text = (const char *)e->data.scalar.value;
    if (e->data.scalar.anchor) return refuse(r, &e->start_mark, "anchors are not supported", NULL);
    if (e->data.scalar.tag) return refuse(r, &e->start_mark, "tags are not supported", NULL);
    if (strlen(text) != e->data.scalar.length)
        return refuse(r, &e->start_mark, "text contains a zero byte", NULL);
    if (r->depth == 0) return refuse(r, &e->start_mark, "expected keys and values, found", text);
    if (r->key < 0) return take_key(r, e);
    size_t n = r->list ? strlen(r->value) : 0;
    if (n + strlen(text) + 2 > sizeof r->value)
        return refuse(r, &e->start_mark, "value is too long", NULL);
    if (r->list && strchr(text, ','))
        return refuse(r, &e->start_mark, "list item contains a comma:", text);
    snprintf(r->value + n, sizeof r->value - n, "%s%s", n ? "," : "", text);
    return r->list ? -1 : end_value(r, e);
}

static int open_list(reader *r, const yaml_event_t *e)
{
    const option *o = r->key >= 0 ? &r->a->cmd->options[r->key] : NULL;
    if (e->data.sequence_start.anchor || e->data.sequence_start.tag)
        return refuse(r, &e->start_mark, "anchors and tags are not supported", NULL);
    if (r->list || r->depth != 1 || !o || option_type_of(o) != TYPE_LIST)
        return refuse(r, &e->start_mark, "expected a single value, found a list",
                      o ? o->name : NULL);
    r->list = true;
    r->value[0] = 0;
    return -1;
}

static int open_mapping(reader *r, const yaml_event_t *e)
{
    if (e->data.mapping_start.anchor || e->data.mapping_start.tag)
        return refuse(r, &e->start_mark, "anchors and tags are not supported", NULL);
    if (r->depth > 0)
        return refuse(r, &e->start_mark, "expected a value or a list, found nested keys", NULL);
    return -1;
}

/* One event; *more is false after the last. */
static int take(reader *r, const yaml_event_t *e, int *documents, bool *more)
{
    int code = -1;
    switch (e->type) {
    case YAML_STREAM_END_EVENT: *more = false; break;
    case YAML_DOCUMENT_START_EVENT:
        if (++*documents > 1)
            code = refuse(r, &e->start_mark, "found a second document, expected one", NULL);
        break;
    case YAML_ALIAS_EVENT: return refuse(r, &e->start_mark, "aliases are not supported", NULL);
    case YAML_SCALAR_EVENT: return take_scalar(r, e);
    case YAML_SEQUENCE_START_EVENT: code = open_list(r, e); break;
    case YAML_MAPPING_START_EVENT: code = open_mapping(r, e); break;
    case YAML_SEQUENCE_END_EVENT:
        r->list = false;
        code = end_value(r, e);
        break;
    default: break;
    }
    bool opens = e->type == YAML_SEQUENCE_START_EVENT || e->type == YAML_MAPPING_START_EVENT;
    bool closes = e->type == YAML_SEQUENCE_END_EVENT || e->type == YAML_MAPPING_END_EVENT;
    r->depth += opens - closes;
    if (code < 0 && r->depth > MAX_DEPTH)
        code = refuse(r, &e->start_mark, "nested too deeply", NULL);
    return code;
}

int config_parse(args *a, const char *path, const char *text, size_t n, source from)
{
    reader r = {.a = a, .path = path, .from = from, .key = -1};
    yaml_parser_t parser;
    yaml_event_t e;
    int code = -1, documents = 0;
    bool more = true;
    if (!yaml_parser_initialize(&parser)) {
        say(stderr, "catena %s: no memory to read %s\n", a->cmd->name, path);
        return EXIT_MEMORY;
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, n);
    while (more && code < 0) {
        if (!yaml_parser_parse(&parser, &e)) {
            say(stderr, "catena %s: %s, line %zu: not YAML: %s\n", a->cmd->name, path,
                parser.problem_mark.line + 1, parser.problem ? parser.problem : "no memory");
            code = EXIT_USAGE;
            break;
        }
        code = take(&r, &e, &documents, &more);
        yaml_event_delete(&e);
    }
    yaml_parser_delete(&parser);
    return code;
}

#else

int config_parse(args *a, const char *path, const char *text, size_t n, source from)
{
    (void)text, (void)n, (void)from;
    say(stderr, "catena %s: %s: this build cannot read YAML because it was made without libyaml\n",
        a->cmd->name, path);
    return EXIT_ENVIRONMENT;
}

#endif

int config_read(args *a, const char *path, source from)
{
    int code;
    FILE *f = fopen(path, "rb");
    char *text = f ? malloc(MAX_FILE + 1) : NULL;
    if (!f || !text) {
        say(stderr, "catena %s: cannot read %s: %s\n", a->cmd->name, path,
            f ? "no memory" : strerror(errno));
        code = f ? EXIT_MEMORY : EXIT_USAGE;
        goto done;
    }
    size_t n = fread(text, 1, MAX_FILE + 1, f);
    if (ferror(f) || n > MAX_FILE) {
        say(stderr, "catena %s: %s: %s\n", a->cmd->name, path,
            ferror(f) ? "cannot be read" : "larger than 1 MB, which is no configuration file");
        code = EXIT_USAGE;
        goto done;
    }
    code = config_parse(a, path, text, n, from);
done:
    free(text);
    if (f) fclose(f);
    return code;
}

/* $PREFIX/etc/catena.yaml; the prefix is the parent of the folder that contains this program. */
int config_site(args *a)
{
    char path[PATH_MAX + 32];
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);
    if (n <= 0 || n >= PATH_MAX) return -1;
    path[n] = 0;
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(path, '/');
        if (!slash) return -1;
        *slash = 0;
    }
    size_t end = strlen(path);
    snprintf(path + end, sizeof path - end, "/etc/catena.yaml");
    return access(path, R_OK) == 0 ? config_read(a, path, FROM_SITE) : -1;
}

bool config_variable(const command *cmd, int k, char *name, size_t n)
{
    if (!in_files(cmd, cmd->options[k].name)) return false;
    snprintf(name, n, "CATENA_TRAIN_%s", cmd->options[k].name);
    for (char *s = name; *s; s++) *s = *s == '-' ? '_' : (char)toupper((unsigned char)*s);
    return true;
}

/* CATENA_TRAIN_BATCH and so on. They are removed from the environment because the library warns
 * about CATENA_ variables that it does not know. */
int config_environment(args *a)
{
    char name[128];
    for (int k = 0; a->cmd->options[k].name; k++) {
        if (!config_variable(a->cmd, k, name, sizeof name)) continue;
        const char *value = getenv(name);
        if (!value || !value[0]) continue;
        char where[160];
        snprintf(where, sizeof where, "%s: ", name);
        int code = args_set(a, k, value, FROM_ENVIRONMENT, where);
        if (code >= 0) return code;
        unsetenv(name);
    }
    return -1;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void quoted(FILE *f, const char *s)
{
    fputc('"', f);
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\') fprintf(f, "\\%c", c);
        else if (c < 0x20 || c == 0x7f) fprintf(f, "\\x%02x", c);
        else fputc(c, f);
    }
    fputc('"', f);
}

/* Absolute, so that the file means the same wherever it is moved to. */
static const char *absolute(const option *o, const char *value, char buf[2 * PATH_MAX])
{
    char here[PATH_MAX];
    if (value[0] == '/' || !option_is_path(o, value) || !getcwd(here, sizeof here)) return value;
    while (strncmp(value, "./", 2) == 0) value += 2;
    return join(buf, 2 * PATH_MAX, here, value);
}

/* YAML is text. */
static ctn_status check_text(const args *a)
{
    for (int k = 0; a->cmd->options[k].name; k++)
        if (in_files(a->cmd, a->cmd->options[k].name) && a->value[k] && !is_utf8(a->value[k]))
            return ctn_fail(CTN_EARG,
                            "--%s is not valid UTF-8, so config.yaml cannot contain it: use "
                            "another name",
                            a->cmd->options[k].name);
    return CTN_OK;
}

ctn_status config_write(const args *a, const char *path, const char *comment)
{
    FILE *f = NULL;
    char full[2 * PATH_MAX];
    CTN_TRY(check_text(a));
    CTN_TRY(file_open(&f, path));
    fprintf(f, "# %s\n", comment);
    for (int k = 0; a->cmd->options[k].name; k++) {
        const option *o = &a->cmd->options[k];
        const char *v = a->value[k];
        if (!in_files(a->cmd, o->name) || (o->arg && (!v || !v[0]))) continue;
        fprintf(f, "%s: ", o->name);
        switch (option_type_of(o)) {
        case TYPE_FLAG: fputs(v ? "true" : "false", f); break;
        case TYPE_LIST: fprintf(f, "[%s]", v); break;
        case TYPE_TEXT: quoted(f, absolute(o, v, full)); break;
        default: fputs(v, f); break;
        }
        fputc('\n', f);
    }
    return file_close(f, path);
}
