/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads tokenizer.json, the one-file format of the package `tokenizers`, and vocab.json, a plain
 * vocabulary. Whatever would give other tokens than the package and is not implemented is refused
 * by name. Decoders, truncation and padding do not affect the tokens of a text and are ignored. The
 * post-processor says which tokens belong around a text.
 */
#include "data/text/text.h"

#ifdef CTN_HAVE_YYJSON

#include "base/json.h"

static const struct {
    const char *pattern;
    ctn__split split;
} patterns[] = {
    {"'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
     CTN__SPLIT_GPT2},
    {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| "
     "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     CTN__SPLIT_LLAMA3},
    {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| "
     "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     CTN__SPLIT_QWEN2},
};

/* ---- small helpers --------------------------------------------------------------------------- */

/* The text of member `name`; "" if it is missing or not a text. */
static const char *text_of(yyjson_val *v, const char *name)
{
    const char *s = yyjson_get_str(yyjson_obj_get(v, name));
    return s ? s : "";
}

static bool is_type(yyjson_val *v, const char *type)
{
    return strcmp(text_of(v, "type"), type) == 0;
}

static bool is_set(yyjson_val *v, const char *name, bool missing)
{
    yyjson_val *m = yyjson_obj_get(v, name);
    return yyjson_is_bool(m) ? yyjson_get_bool(m) : missing;
}

/* Not there, null, false or "". */
static bool is_absent(yyjson_val *v, const char *name)
{
    yyjson_val *m = yyjson_obj_get(v, name);
    return !m || yyjson_is_null(m) || yyjson_is_false(m) || yyjson_equals_str(m, "");
}

static ctn_status refuse(const char *what, yyjson_val *v)
{
    return ctn_fail(CTN_EUNSUPPORTED, "%s '%.80s' is not supported", what,
                    yyjson_is_obj(v) ? text_of(v, "type") : "none");
}

/* ---- vocabulary and merges ------------------------------------------------------------------- */

static ctn_status add_vocabulary(ctn_tokenizer *t, yyjson_val *vocab)
{
    size_t i, max;
    yyjson_val *key, *v;
    if (yyjson_obj_size(vocab) == 0)
        return ctn_fail(CTN_EFORMAT, "the vocabulary is not an object {\"token\": number, ...}");
    yyjson_obj_foreach(vocab, i, max, key, v)
    {
        const char *s = yyjson_get_str(key);
        const size_t n = yyjson_get_len(key);
        if (!yyjson_is_uint(v) || yyjson_get_uint(v) > INT32_MAX)
            return ctn_fail(CTN_EFORMAT, "the number of token '%.40s' is not an integer >= 0", s);
        const int64_t id = (int64_t)yyjson_get_uint(v);
        if (t->wordpiece) CTN_TRY(ctn__vocab_add(&t->vocab, id, s, n, true));
        else CTN_TRY(ctn__bpe_token(t, id, s, n));
    }
    return CTN_OK;
}

/* A merge is "a b" or, in newer files, ["a", "b"]. */
static ctn_status add_merge(ctn_tokenizer *t, uint32_t rank, yyjson_val *v)
{
    ctn_status st = CTN_OK;
    yyjson_val *a = yyjson_arr_get(v, 0), *b = yyjson_arr_get(v, 1);
    if (yyjson_is_str(v)) return ctn__bpe_line(t, rank, yyjson_get_str(v), yyjson_get_len(v));
    if (yyjson_arr_size(v) != 2 || !yyjson_is_str(a) || !yyjson_is_str(b))
        return ctn_fail(CTN_EFORMAT, "merge %lu is not a pair of tokens", (unsigned long)rank);
    const size_t na = yyjson_get_len(a), nb = yyjson_get_len(b);
    char *line = ctn__malloc(na + nb + 1);
    if (!line) return CTN_ENOMEM;
    memcpy(line, yyjson_get_str(a), na);
    line[na] = ' ';
    memcpy(line + na + 1, yyjson_get_str(b), nb);
    st = ctn__bpe_line(t, rank, line, na + nb + 1);
    ctn__free(line);
    return st;
}

static ctn_status read_bpe(ctn_tokenizer *t, yyjson_val *model)
{
    static const char *const refused[] = {"dropout", "continuing_subword_prefix",
                                          "end_of_word_suffix", "byte_fallback"};
    size_t i, max;
    yyjson_val *v, *merges = yyjson_obj_get(model, "merges");
    for (i = 0; i < sizeof refused / sizeof *refused; i++)
        if (!is_absent(model, refused[i]))
            return ctn_fail(CTN_EUNSUPPORTED, "the option '%s' of BPE is not supported",
                            refused[i]);
    t->ignore_merges = is_set(model, "ignore_merges", false);
    CTN_TRY(add_vocabulary(t, yyjson_obj_get(model, "vocab")));
    if (!yyjson_is_arr(merges)) return ctn_fail(CTN_EFORMAT, "the merges are not an array");
    CTN_TRY(ctn__bpe_room(t, yyjson_arr_size(merges)));
    yyjson_arr_foreach(merges, i, max, v) CTN_TRY(add_merge(t, (uint32_t)i, v));
    return ctn__bpe_ready(t);
}

static ctn_status read_wordpiece(ctn_tokenizer *t, yyjson_val *model)
{
    yyjson_val *most = yyjson_obj_get(model, "max_input_chars_per_word");
    t->wordpiece = true;
    t->longest = most ? yyjson_get_sint(most) : 100;
    if (t->longest < 1 || t->longest > CTN__WORD_MOST)
        return ctn_fail(CTN_EFORMAT, "max_input_chars_per_word is not a number from 1 to %d",
                        CTN__WORD_MOST);
    CTN_TRY(add_vocabulary(t, yyjson_obj_get(model, "vocab")));
    return ctn__wordpiece_ready(t, text_of(model, "unk_token"),
                                text_of(model, "continuing_subword_prefix"));
}

/* ---- normaliser and pre-tokeniser ------------------------------------------------------------ */

static ctn_status read_normaliser(ctn_tokenizer *t, yyjson_val *v)
{
    if (!v || yyjson_is_null(v)) return CTN_OK;
    if (!t->wordpiece && is_type(v, "NFC")) {
        t->nfc = true;
        return CTN_OK;
    }
    if (!t->wordpiece || !is_type(v, "BertNormalizer")) return refuse("the normalizer", v);
    t->clean = is_set(v, "clean_text", true);
    t->cjk = is_set(v, "handle_chinese_chars", true);
    t->lower = is_set(v, "lowercase", true);
    t->strip = is_set(v, "strip_accents", t->lower); /* null: follows lowercase */
    return CTN_OK;
}

static ctn_status read_pattern(ctn_tokenizer *t, yyjson_val *v)
{
    const char *pattern = text_of(yyjson_obj_get(v, "pattern"), "Regex");
    const bool whole =
        is_set(v, "invert", false) == (strcmp(text_of(v, "behavior"), "Removed") == 0);
    for (size_t i = 0; whole && i < sizeof patterns / sizeof *patterns; i++) {
        if (strcmp(pattern, patterns[i].pattern) != 0) continue;
        t->split = patterns[i].split;
        return CTN_OK;
    }
    return ctn_fail(CTN_EUNSUPPORTED,
                    "the pre-tokenizer 'Split' with the pattern '%.200s' is not "
                    "supported",
                    pattern);
}

static ctn_status read_byte_level(yyjson_val *v, bool pattern)
{
    if (!is_type(v, "ByteLevel")) return refuse("the pre-tokenizer", v);
    if (is_set(v, "add_prefix_space", true))
        return ctn_fail(CTN_EUNSUPPORTED, "the pre-tokenizer 'ByteLevel' with add_prefix_space is "
                                          "not supported");
    if (is_set(v, "use_regex", true) != pattern)
        return ctn_fail(CTN_EUNSUPPORTED, "the pre-tokenizer 'ByteLevel' %s is not supported",
                        pattern ? "without a pattern" : "with a second pattern");
    return CTN_OK;
}

static ctn_status read_pre_tokeniser(ctn_tokenizer *t, yyjson_val *v)
{
    yyjson_val *parts = yyjson_obj_get(v, "pretokenizers"), *first = yyjson_arr_get(parts, 0);
    if (t->wordpiece)
        return is_type(v, "BertPreTokenizer") ? CTN_OK : refuse("the pre-tokenizer", v);
    if (!is_type(v, "Sequence")) return read_byte_level(v, true);
    if (!is_type(first, "Split")) return refuse("the pre-tokenizer", first);
    if (yyjson_arr_size(parts) != 2)
        return ctn_fail(CTN_EUNSUPPORTED, "a sequence of %zu pre-tokenizers is not supported",
                        yyjson_arr_size(parts));
    CTN_TRY(read_pattern(t, first));
    return read_byte_level(yyjson_arr_get(parts, 1), false);
}

/* ---- added tokens ---------------------------------------------------------------------------- */

static ctn_status read_added(ctn_tokenizer *t, yyjson_val *v)
{
    yyjson_val *content = yyjson_obj_get(v, "content"), *number = yyjson_obj_get(v, "id");
    const char *s = yyjson_get_str(content);
    const size_t n = yyjson_get_len(content);
    if (!s || n == 0 || !yyjson_is_uint(number) || yyjson_get_uint(number) > INT32_MAX)
        return ctn_fail(CTN_EFORMAT, "an added token has no content or no id");
    if (is_set(v, "single_word", false))
        return ctn_fail(CTN_EUNSUPPORTED, "added token '%.40s': single_word is not supported", s);
    if (is_set(v, "normalized", false) && (t->nfc || t->wordpiece))
        return ctn_fail(CTN_EUNSUPPORTED,
                        "added token '%.40s': normalized together with a normalizer is not "
                        "supported",
                        s);
    const int64_t id = (int64_t)yyjson_get_uint(number);
    const ctn__vocab *w = &t->vocab;
    const bool known = id < (int64_t)w->token.n && w->token.at[id].used;
    if (!known) CTN_TRY(ctn__vocab_add(&t->vocab, id, s, n, true));
    else if (w->token.at[id].n != n || memcmp(ctn__token_text(w, (int32_t)id), s, n) != 0)
        return ctn_fail(CTN_EFORMAT, "added token '%.40s' has the number %lld of '%.40s'", s,
                        (long long)id, ctn__token_text(w, (int32_t)id));
    t->vocab.token.at[id].special = is_set(v, "special", false);
    return ctn__special_add(t, (int32_t)id, is_set(v, "lstrip", false), is_set(v, "rstrip", false));
}

/* ---- the post-processor ---------------------------------------------------------------------- */

static ctn_status add_around(ctn_tokenizer *t, int after, yyjson_val *id)
{
    const uint64_t k = yyjson_is_uint(id) ? yyjson_get_uint(id) : UINT64_MAX;
    if (k >= t->vocab.token.n || !t->vocab.token.at[k].used)
        return ctn_fail(CTN_EFORMAT, "the post-processor adds a token that does not exist");
    if (t->arounds[after] == CTN__AROUND)
        return ctn_fail(CTN_EUNSUPPORTED, "the post-processor adds more than %d tokens",
                        CTN__AROUND);
    t->around[after][t->arounds[after]++] = (int32_t)k;
    return CTN_OK;
}

/* What stands around A in the template of a single text. */
static ctn_status read_template(ctn_tokenizer *t, yyjson_val *v)
{
    size_t i, max, k, n;
    yyjson_val *part, *id, *named = yyjson_obj_get(v, "special_tokens");
    int after = 0;
    yyjson_arr_foreach(yyjson_obj_get(v, "single"), i, max, part)
    {
        yyjson_val *special = yyjson_obj_get(part, "SpecialToken");
        if (!special) after = 1;
        else if (!yyjson_get_str(yyjson_obj_get(special, "id")))
            return ctn_fail(CTN_EFORMAT, "a special token of the post-processor has no id");
        if (!special) continue;
        yyjson_val *ids =
            yyjson_obj_get(yyjson_obj_get(named, yyjson_get_str(yyjson_obj_get(special, "id"))),
                           "ids");
        yyjson_arr_foreach(ids, k, n, id) CTN_TRY(add_around(t, after, id));
    }
    return CTN_OK;
}

static ctn_status read_post_processor(ctn_tokenizer *t, yyjson_val *v, int depth)
{
    size_t i, max;
    yyjson_val *part;
    if (!yyjson_is_obj(v) || is_type(v, "ByteLevel")) return CTN_OK;
    if (is_type(v, "TemplateProcessing")) return read_template(t, v);
    if (is_type(v, "BertProcessing") || is_type(v, "RobertaProcessing")) {
        CTN_TRY(add_around(t, 0, yyjson_arr_get(yyjson_obj_get(v, "cls"), 1)));
        return add_around(t, 1, yyjson_arr_get(yyjson_obj_get(v, "sep"), 1));
    }
    if (!is_type(v, "Sequence") || depth > 0) return refuse("the post-processor", v);
    yyjson_arr_foreach(yyjson_obj_get(v, "processors"), i, max, part)
        CTN_TRY(read_post_processor(t, part, depth + 1));
    return CTN_OK;
}

static ctn_status read_all(ctn_tokenizer *t, yyjson_val *root)
{
    size_t i, max;
    yyjson_val *v, *model = yyjson_obj_get(root, "model");
    /* Older files do not name the type. */
    const bool named = yyjson_obj_get(model, "type") != NULL;
    if (is_type(model, "BPE") || (!named && yyjson_obj_get(model, "merges")))
        CTN_TRY(read_bpe(t, model));
    else if (is_type(model, "WordPiece") ||
             (!named && yyjson_obj_get(model, "max_input_chars_per_word")))
        CTN_TRY(read_wordpiece(t, model));
    else return refuse("the model", model);
    CTN_TRY(read_normaliser(t, yyjson_obj_get(root, "normalizer")));
    CTN_TRY(read_pre_tokeniser(t, yyjson_obj_get(root, "pre_tokenizer")));
    yyjson_arr_foreach(yyjson_obj_get(root, "added_tokens"), i, max, v) CTN_TRY(read_added(t, v));
    return read_post_processor(t, yyjson_obj_get(root, "post_processor"), 0);
}

ctn_status ctn__tokenizer_json(ctn_tokenizer *t, const char *json, size_t bytes, bool *plain)
{
    yyjson_read_err err = {0};
    /* yyjson does not write to it without the in-situ flag */
    yyjson_doc *doc = yyjson_read_opts((char *)(uintptr_t)json, bytes, 0, &ctn__json_memory, &err);
    if (!doc && err.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION) return CTN_ENOMEM;
    if (!doc) return ctn_fail(CTN_EFORMAT, "not JSON: %s at byte %zu", err.msg, err.pos);
    yyjson_val *root = yyjson_doc_get_root(doc);
    *plain = !yyjson_is_obj(yyjson_obj_get(root, "model"));
    ctn_status st = *plain ? add_vocabulary(t, root) : read_all(t, root);
    yyjson_doc_free(doc);
    return st;
}

#else

ctn_status ctn__tokenizer_json(ctn_tokenizer *t, const char *json, size_t bytes, bool *plain)
{
    (void)t, (void)json, (void)bytes, (void)plain;
    return ctn_fail(CTN_EUNSUPPORTED,
                    "Catena was built without yyjson, which reads JSON; install it (Debian: "
                    "libyyjson-dev) and rebuild");
}

#endif
