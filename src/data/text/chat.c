/* SPDX-License-Identifier: Apache-2.0
 *
 * Conversations as the text that a model was trained with. The files are read when the tokenizer is
 * opened; the template in them is parsed when a conversation needs it, so that one that is not
 * supported does not keep anybody from encoding text.
 */
#include <unistd.h>

#include "base/readfile.h"
#include "data/text/template.h"

#define MOST ((size_t)1 << 26) /* bytes of a file */

enum { JINJA, CONFIG, SPECIAL };
static const char *const files[CTN__CHAT_FILES] = {"chat_template.jinja", "tokenizer_config.json",
                                                   "special_tokens_map.json"};
static const char who[] = "chat template";

typedef ctn__tvalue value;

/* ---- files ----------------------------------------------------------------------------------- */

ctn_status ctn__chat_read(ctn_tokenizer *t, const char *path)
{
    struct stat info = {0};
    const bool folder = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
    const char *slash = strrchr(path, '/');
    const int n = folder ? (int)strlen(path) : slash ? (int)(slash - path) : 0;
    ctn_status st = CTN_OK;
    for (int i = 0; st == CTN_OK && i < CTN__CHAT_FILES; i++) {
        ctn__text name = {0};
        ctn__text_add(&name, "%.*s%s%s", n, path, folder || slash ? "/" : "", files[i]);
        if (name.failed) st = CTN_ENOMEM;
        else if (access(name.s, F_OK) == 0)
            st = ctn__file_whole("tokenizer", name.s, MOST, &t->chat[i], &t->chat_bytes[i]);
        ctn__text_free(&name);
    }
    return st;
}

/* The values of a file; an empty dict if it does not exist. */
static ctn_status read_settings(ctn__trun *r, const ctn_tokenizer *t, int file, value *out)
{
    *out = (value){.kind = CTN__T_DICT};
    if (!t->chat[file]) return CTN_OK;
    CTN_TRY(ctn__t_parse_json(r, files[file], t->chat[file], t->chat_bytes[file], out));
    if (out->kind == CTN__T_DICT) return CTN_OK;
    return ctn_fail(CTN_EFORMAT, "%s is not a JSON object", files[file]);
}

/* The member of a dict; ABSENT: there is none. */
static ctn_status member(ctn__trun *r, const value *v, const char *name, value *out)
{
    const value key = ctn__t_text(name, strlen(name)), *found = NULL;
    if (v->kind == CTN__T_DICT) CTN_TRY(ctn__t_find(r, v->dict, v->n, &key, &found));
    *out = found ? *found : (value){0};
    return CTN_OK;
}

/* ---- the template ---------------------------------------------------------------------------- */

/* The template "default" of a list of named ones. */
static ctn_status default_of(ctn__trun *r, const value *list, value *source)
{
    for (size_t i = 0; i < list->n; i++) {
        value name = {0};
        CTN_TRY(member(r, &list->list[i], "name", &name));
        CTN_TRY(member(r, &list->list[i], "template", source));
        if (name.kind == CTN__T_TEXT && ctn__t_same(name.s, name.n, "default")) return CTN_OK;
    }
    return ctn_fail(CTN_ENOTFOUND, "%s has no chat template with the name 'default'",
                    files[CONFIG]);
}

static ctn_status open_template(ctn__trun *r, const ctn_tokenizer *t, const value *config,
                                ctn__template *made)
{
    value found = {0}, source = {0};
    if (t->chat[JINJA]) return ctn__template_open(made, who, t->chat[JINJA], t->chat_bytes[JINJA]);
    CTN_TRY(member(r, config, "chat_template", &found));
    source = found;
    if (found.kind == CTN__T_LIST) CTN_TRY(default_of(r, &found, &source));
    if (source.kind == CTN__T_TEXT) return ctn__template_open(made, who, source.s, source.n);
    return ctn_fail(CTN_ENOTFOUND,
                    "the model has no chat template: neither the file %s nor "
                    "'chat_template' in %s, beside the tokenizer",
                    files[JINJA], files[CONFIG]);
}

/* ---- variables ------------------------------------------------------------------------------- */

static ctn_status set(ctn__trun *r, const char *name, const value *v)
{
    return ctn__t_set(r, name, strlen(name), v);
}

/* The special tokens that the model's files name: a text, or an object with the member content. */
static ctn_status set_special(ctn__trun *r, const ctn_tokenizer *t, const value *config)
{
    static const char *const names[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                        "pad_token", "cls_token", "mask_token"};
    value more = {0};
    CTN_TRY(read_settings(r, t, SPECIAL, &more));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        value token = {0};
        CTN_TRY(member(r, config, names[i], &token));
        if (token.kind == CTN__T_ABSENT) CTN_TRY(member(r, &more, names[i], &token));
        if (token.kind == CTN__T_DICT) CTN_TRY(member(r, &token, "content", &token));
        if (token.kind == CTN__T_TEXT) CTN_TRY(set(r, names[i], &token));
    }
    return CTN_OK;
}

/* The text of a reasoning model's thoughts has several names in conversations; templates find it
 * under `reasoning_content` and `thinking`. */
static ctn_status name_reasoning(ctn__trun *r, value *message)
{
    static const char *const names[] = {"reasoning_content", "thinking", "reasoning"};
    const value first = ctn__t_text(names[1], strlen(names[1]));
    const value last = ctn__t_text(names[0], strlen(names[0]));
    value found = {0};
    ctn__tspace all = {0};
    for (int i = 0; i < 3 && (found.kind == CTN__T_ABSENT || found.kind == CTN__T_NONE); i++)
        CTN_TRY(member(r, message, names[i], &found));
    if (found.kind == CTN__T_ABSENT || found.kind == CTN__T_NONE) return CTN_OK;
    CTN_TRY(ctn__t_space_set(r, &all, &first, &found));
    for (size_t i = 0; i < message->n; i++)
        CTN_TRY(ctn__t_space_set(r, &all, &message->dict[i].key, &message->dict[i].value));
    CTN_TRY(ctn__t_space_set(r, &all, &last, &found));
    *message = (value){.kind = CTN__T_DICT, .n = all.n, .dict = all.at};
    return CTN_OK;
}

static ctn_status set_messages(ctn__trun *r, const char *json, size_t bytes)
{
    value given = {0}, list = {0}, tools = {.kind = CTN__T_NONE};
    CTN_TRY(ctn__t_parse_json(r, "the conversation", json, bytes, &given));
    list = given;
    if (given.kind == CTN__T_DICT) {
        CTN_TRY(member(r, &given, "messages", &list));
        CTN_TRY(member(r, &given, "tools", &tools));
        if (tools.kind == CTN__T_ABSENT) tools.kind = CTN__T_NONE;
    }
    value *at = list.kind == CTN__T_LIST ? ctn__t_take(r, list.n * sizeof *at) : NULL;
    if (list.kind == CTN__T_LIST && !at) return r->status;
    for (size_t i = 0; at && i < list.n; i++) {
        at[i] = list.list[i];
        if (at[i].kind != CTN__T_DICT) list.kind = CTN__T_ABSENT;
        else CTN_TRY(name_reasoning(r, &at[i]));
    }
    if (list.kind != CTN__T_LIST)
        return ctn_fail(CTN_EFORMAT, "the conversation is not a list of objects "
                                     "{\"role\": \"user\", \"content\": \"...\"}");
    list.list = at;
    CTN_TRY(set(r, "messages", &list));
    return set(r, "tools", &tools);
}

/* ---- rendering ------------------------------------------------------------------------------- */

static ctn_status render(ctn__trun *r, ctn__template *made, const ctn_tokenizer *t,
                         const char *messages, size_t bytes, const ctn_chat_opt *o, ctn__tout *out)
{
    const value none = {.kind = CTN__T_NONE}, prompt = ctn__t_bool(!o->no_prompt);
    value config = {0};
    CTN_TRY(read_settings(r, t, CONFIG, &config));
    CTN_TRY(open_template(r, t, &config, made));
    CTN_TRY(ctn__t_open_scope(r, NULL));
    CTN_TRY(set_special(r, t, &config));
    CTN_TRY(set_messages(r, messages, bytes));
    CTN_TRY(set(r, "documents", &none));
    CTN_TRY(set(r, "add_generation_prompt", &prompt));
    r->steps = 0; /* reading does not count */
    return ctn__template_run(made, r, out);
}

int64_t ctn_tokenizer_chat(const ctn_tokenizer *t, const char *messages, size_t bytes,
                           const ctn_chat_opt *opt, char *text, size_t room)
{
    ctn_chat_opt o;
    ctn__trun r = {.who = who};
    ctn__template made = {0};
    ctn__tout out = {0};
    if (!t || !messages || (!text && room))
        return ctn_fail(CTN_EARG, "tokenizer_chat: NULL argument");
    ctn_status st = ctn__opt("tokenizer_chat", &o, sizeof o, opt);
    if (st == CTN_OK) st = render(&r, &made, t, messages, bytes, &o, &out);
    if (st == CTN_OK && room) {
        const size_t n = out.n < room ? out.n : room - 1;
        if (n) memcpy(text, out.at, n);
        text[n] = 0;
    }
    const int64_t n = (int64_t)out.n;
    ctn__vec_free(&out);
    ctn__template_free(&made);
    ctn__arena_free(&r.memory);
    return st == CTN_OK ? n : st;
}
