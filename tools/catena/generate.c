/* SPDX-License-Identifier: Apache-2.0
 *
 * catena generate: continues text with a language model. The model is a folder of a published one
 * (config.json, weights, tokenizer) or a network that catena train has trained. One prompt is
 * printed as it grows; several prompts are continued together and printed at the end.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <catena/generate.h>
#include <catena/io.h>
#include <catena/text.h>
#include <catena/zoo.h>

#include "chat.h"
#include "task.h"

enum { AROUND = 16, ENDS = 16 };
enum { TOGETHER = 64 }; /* sequences that are continued at the same time */

/* One text that is continued. */
typedef struct {
    int32_t *tokens; /* of the prompt, then the new ones */
    int64_t begin;   /* of the text of the prompt, after tokens that the tokenizer puts before it */
    int64_t prompt, n, room;
    bool done;                 /* its end was reached */
    ctn_decode_state decoding; /* of text */
    char *text;                /* what is printed: bytes of text_room, and a 0 */
    size_t bytes, text_room;
    size_t from;  /* where the new text begins */
    size_t shown; /* bytes that were printed */
} sequence;

typedef struct {
    args *a;
    ctn_context *ctx;
    ctn_module *net;
    ctn_tokenizer *tokenizer; /* NULL: tokens are bytes, which the model has 256 of */
    ctn_generator *generator;
    sequence *s;
    int64_t n, room;
    bool stream;   /* print while generating */
    bool terminal; /* to a terminal, which the text must not control */
    char part[5];  /* see say_piece */
    bool chat;     /* prompts are what a user says, and only the answers are printed */
    double seconds;
    int64_t made;
} job;

/* ---- the model ------------------------------------------------------------------------------- */

static ctn_status make_net(job *j)
{
    CTN_TRY(make_language(j->a, j->ctx, args_int(j->a, "classes"), &j->net));
    if (ctn_module_predicts(j->net) == CTN_PREDICTS_MASKED)
        return ctn_fail(CTN_EUNSUPPORTED,
                        "%s cannot continue a text: it fills in hidden words from the words on "
                        "both sides; use a gpt or llama",
                        j->a->operand);
    CTN_TRY(open_tokenizer(j->a, &j->tokenizer));
    CTN_TRY(ctn_weights_load(j->net, weights_of(j->a), NULL));
    return adapters_open(j->a, j->net);
}

/* ---- prompts --------------------------------------------------------------------------------- */

static ctn_status add_sequence(job *j, size_t bytes)
{
    const int64_t new = args_int(j->a, "tokens");
    if (j->n == j->room) {
        const int64_t room = 2 * j->room + TOGETHER;
        sequence *more = realloc(j->s, (size_t)room * sizeof *more);
        if (!more) return ctn_fail(CTN_ENOMEM, "no memory for %lld prompts", (long long)room);
        j->s = more;
        j->room = room;
    }
    sequence *s = &j->s[j->n];
    *s = (sequence){0};
    s->room = (int64_t)bytes + new + 1 + 2 * AROUND;
    s->tokens = malloc((size_t)s->room * sizeof *s->tokens);
    if (!s->tokens) return ctn_fail(CTN_ENOMEM, "no memory for a prompt of %zu bytes", bytes);
    j->n++;
    return CTN_OK;
}

/* around: with the tokens that belong before and after a text. */
static ctn_status encode(const job *j, sequence *s, const char *text, size_t bytes, bool around)
{
    if (around) s->begin = ctn_tokenizer_around(j->tokenizer, 0, s->tokens, AROUND);
    s->prompt = ctn_tokenizer_encode(j->tokenizer, text, bytes, s->tokens + s->begin, bytes + 1);
    if (s->prompt < 0) return (ctn_status)s->prompt;
    if (s->prompt > (int64_t)bytes) /* only a tokenizer that makes text longer */
        return ctn_fail(CTN_EUNSUPPORTED, "the tokenizer makes the prompt longer than its text");
    s->prompt += s->begin;
    if (around) s->prompt += ctn_tokenizer_around(j->tokenizer, 1, s->tokens + s->prompt, AROUND);
    return CTN_OK;
}

static ctn_status add_text(job *j, const char *text, size_t bytes)
{
    CTN_TRY(add_sequence(j, bytes));
    sequence *s = &j->s[j->n - 1];
    if (j->tokenizer) CTN_TRY(encode(j, s, text, bytes, !j->chat));
    for (size_t i = 0; !j->tokenizer && i < bytes; i++) s->tokens[i] = (unsigned char)text[i];
    if (!j->tokenizer) s->prompt = (int64_t)bytes;
    s->n = s->prompt;
    if (s->prompt == 0) return ctn_fail(CTN_EARG, "a prompt is empty: it needs at least one token");
    return CTN_OK;
}

/* whole: with --chat, the prompt may be a conversation in JSON. */
static ctn_status add_prompt(job *j, const char *text, size_t bytes, bool whole)
{
    char *made = NULL;
    size_t n = 0;
    if (!j->chat) return add_text(j, text, bytes);
    whole = whole && (text[0] == '[' || text[0] == '{');
    CTN_TRY(chat_text(j->tokenizer, args_text(j->a, "system"), whole, text, bytes, &made, &n));
    const ctn_status st = add_text(j, made, n);
    free(made);
    return st;
}

/* One prompt per line of a file. */
static ctn_status read_prompts(job *j, const char *path)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    ctn_status st = CTN_OK;
    FILE *f = fopen(path, "r");
    if (!f) return ctn_fail(CTN_EIO, "cannot read %s: %s", path, strerror(errno));
    while (st == CTN_OK && (n = getline(&line, &room, f)) >= 0) {
        if (n > 0 && line[n - 1] == '\n') n--;
        if (n > 0) st = add_prompt(j, line, (size_t)n, true);
    }
    free(line);
    fclose(f);
    if (st == CTN_OK && j->n == 0) st = ctn_fail(CTN_EARG, "%s has no prompts", path);
    return st;
}

static ctn_status take_prompts(job *j)
{
    const char *file = args_text(j->a, "prompts"), *text = args_text(j->a, "prompt");
    j->chat = args_flag(j->a, "chat");
    if (j->chat && !j->tokenizer)
        return ctn_fail(CTN_EARG, "--chat needs the tokenizer of a model that was trained to chat: "
                                  "use --tokenizer PATH");
    if (file[0]) return read_prompts(j, file);
    return add_prompt(j, text, strlen(text), false);
}

/* ---- the text of a sequence ------------------------------------------------------------------ */

static ctn_status need_room(sequence *s, size_t bytes)
{
    if (s->bytes + bytes < s->text_room) return CTN_OK;
    const size_t room = 2 * s->text_room + bytes + 1;
    char *more = realloc(s->text, room);
    if (!more) return ctn_fail(CTN_ENOMEM, "no memory for a text of %zu bytes", room);
    s->text = more;
    s->text_room = room;
    return CTN_OK;
}

/* Append the text of a token; -1: the end. */
static ctn_status append(const job *j, sequence *s, int32_t token)
{
    if (j->chat && token >= 0 && ctn_tokenizer_special(j->tokenizer, token)) return CTN_OK;
    for (size_t room = 256;; room *= 2) {
        CTN_TRY(need_room(s, room));
        char *to = s->text + s->bytes;
        int64_t n = token >= 0;
        if (j->tokenizer)
            n = ctn_tokenizer_decode_next(j->tokenizer, &s->decoding, token, to, room);
        else to[0] = (char)token;
        if (n < 0) return (ctn_status)n;
        if ((size_t)n >= room) continue;
        s->bytes += (size_t)n;
        s->text[s->bytes] = 0;
        return CTN_OK;
    }
}

/* The prompt, if it is printed. */
static ctn_status begin_text(const job *j, sequence *s)
{
    const bool printed = !j->chat && !args_flag(j->a, "json");
    CTN_TRY(need_room(s, 1));
    s->text[0] = 0;
    for (int64_t i = s->begin; printed && i < s->prompt; i++) CTN_TRY(append(j, s, s->tokens[i]));
    s->from = s->bytes;
    return CTN_OK;
}

/* End the sequence at --stop, which may have begun up to its length before the last token. */
static void find_stop(const job *j, sequence *s, size_t before)
{
    const char *stop = args_text(j->a, "stop");
    const size_t n = strlen(stop);
    size_t at = before > s->from + n ? before - n : s->from;
    for (; n > 0 && at + n <= s->bytes; at++) {
        if (memcmp(s->text + at, stop, n) != 0) continue;
        s->bytes = at;
        s->text[at] = 0;
        s->decoding = (ctn_decode_state){0};
        s->done = true;
        return;
    }
}

/* Bytes at the end of the new text that may become --stop. */
static size_t held_back(const job *j, const sequence *s)
{
    const char *stop = args_text(j->a, "stop");
    size_t n = strlen(stop);
    for (n = n > 0 ? n - 1 : 0; n > 0; n--)
        if (n <= s->bytes - s->from && memcmp(s->text + s->bytes - n, stop, n) == 0) return n;
    return 0;
}

/* Print what is new, up to `to`. */
static ctn_status show(job *j, sequence *s, size_t to)
{
    const char *text = s->text + s->shown;
    const size_t n = to > s->shown ? to - s->shown : 0;
    if (!j->terminal) fwrite(text, 1, n, stdout);
    else if (n > 0) say_piece(j->part, text, n);
    s->shown += n;
    return fflush(stdout) == 0 ? CTN_OK : ctn_fail(CTN_EIO, "cannot write: %s", strerror(errno));
}

static ctn_status end_text(job *j, sequence *s)
{
    const size_t before = s->bytes;
    CTN_TRY(append(j, s, -1));
    find_stop(j, s, before);
    if (!j->stream) return CTN_OK;
    CTN_TRY(show(j, s, s->bytes));
    if (j->terminal) say_piece(j->part, "", 0);
    say(stdout, "\n");
    return CTN_OK;
}

/* ---- generating ------------------------------------------------------------------------------ */

/* By the model's own files, or by the name of the token. */
static bool is_end(const job *j, int32_t token)
{
    int32_t end[ENDS];
    const int n = ctn_module_ends(j->net, end, ENDS);
    for (int i = 0; i < n && i < ENDS; i++)
        if (end[i] == token) return true;
    return n == 0 && j->tokenizer && ctn_tokenizer_end(j->tokenizer) == token;
}

static ctn_status take_token(job *j, sequence *s, int32_t token)
{
    const size_t before = s->bytes;
    s->done = is_end(j, token) && !args_flag(j->a, "ignore-end");
    if (s->done) return CTN_OK;
    s->tokens[s->n++] = token;
    j->made++;
    s->done = s->n - s->prompt >= args_int(j->a, "tokens");
    CTN_TRY(append(j, s, token));
    find_stop(j, s, before);
    return j->stream ? show(j, s, s->bytes - (s->done ? 0 : held_back(j, s))) : CTN_OK;
}

/* Add the next tokens to their sequences. *more: one of them still grows. */
static ctn_status take_tokens(job *j, int n, sequence *const *s, const int32_t *next, bool *more)
{
    *more = false;
    for (int i = 0; i < n; i++) {
        if (!s[i]->done) CTN_TRY(take_token(j, s[i], next[i]));
        *more |= !s[i]->done;
    }
    return CTN_OK;
}

/* The model takes no more tokens of the sequences that were the longest when it began: it continues
 * all of them at the same pace, also those that are done. */
static void end_longest(int n, sequence *const *s, const int64_t *length)
{
    int64_t most = 0;
    for (int i = 0; i < n; i++) most = length[i] > most ? length[i] : most;
    for (int i = 0; i < n; i++) s[i]->done |= length[i] == most;
}

/* Continue sequences together until one of them is as long as the model allows, or all are done. */
static ctn_status grow(job *j, int n, sequence *const *s)
{
    const int32_t *tokens[TOGETHER];
    int64_t length[TOGETHER];
    int32_t next[TOGETHER];
    for (int i = 0; i < n; i++) {
        tokens[i] = s[i]->tokens;
        length[i] = s[i]->n;
    }
    ctn_status st = ctn_generator_start(j->generator, n, tokens, length, next);
    for (bool more = true; st == CTN_OK && more;) {
        CTN_TRY(take_tokens(j, n, s, next, &more));
        if (more) st = ctn_generator_next(j->generator, next, next);
    }
    if (st != CTN_END) return st;
    end_longest(n, s, length);
    return CTN_OK;
}

static ctn_status generate(job *j)
{
    for (int64_t i = 0; i < j->n; i++) CTN_TRY(begin_text(j, &j->s[i]));
    if (j->stream) CTN_TRY(show(j, &j->s[0], j->s[0].bytes));
    const double start = now_s();
    for (int64_t at = 0; at < j->n;) {
        sequence *s[TOGETHER];
        int n = 0;
        for (int64_t i = at; i < j->n && i < at + TOGETHER; i++)
            if (!j->s[i].done) s[n++] = &j->s[i];
        if (n > 0) CTN_TRY(grow(j, n, s));
        else at += TOGETHER;
    }
    j->seconds = now_s() - start;
    for (int64_t i = 0; i < j->n; i++) CTN_TRY(end_text(j, &j->s[i]));
    return CTN_OK;
}

/* ---- results --------------------------------------------------------------------------------- */

/* Bytes of the UTF-8 character at p; 0: it is none. */
static int character(const unsigned char *p)
{
    const int n = p[0] < 0x80                   ? 1
                  : p[0] >= 0xc2 && p[0] < 0xe0 ? 2
                  : (p[0] & 0xf0) == 0xe0       ? 3
                  : p[0] >= 0xf0 && p[0] < 0xf5 ? 4
                                                : 0;
    for (int i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    return n;
}

/* JSON is UTF-8, and a model may produce any bytes: others become U+FFFD. Free *out. */
static ctn_status make_utf8(const char *text, char **out)
{
    char *to = *out = malloc(3 * strlen(text) + 1);
    if (!to) return ctn_fail(CTN_ENOMEM, "no memory for the text");
    for (const char *p = text; *p;) {
        const int n = character((const unsigned char *)p);
        memcpy(to, n ? p : "\xef\xbf\xbd", n ? (size_t)n : 3);
        to += n ? n : 3;
        p += n ? n : 1;
    }
    *to = 0;
    return CTN_OK;
}

static ctn_status print_json(const job *j)
{
    json w = {0};
    json_open(&w, NULL, '{');
    json_open(&w, "texts", '[');
    for (int64_t i = 0; i < j->n; i++) {
        char *text = NULL;
        const sequence *s = &j->s[i];
        CTN_TRY(make_utf8(s->text + s->from, &text));
        json_open(&w, NULL, '{');
        json_text(&w, "text", text);
        json_open(&w, "tokens", '[');
        for (int64_t k = s->prompt; k < s->n; k++) json_int(&w, NULL, s->tokens[k]);
        json_close(&w, ']');
        json_close(&w, '}');
        free(text);
    }
    json_close(&w, ']');
    json_real(&w, "seconds", j->seconds);
    json_real(&w, "tokens_per_s", (double)j->made / j->seconds);
    json_close(&w, '}');
    return CTN_OK;
}

static void print_texts(const job *j)
{
    for (int64_t i = 0; i < j->n; i++) say_lines(stdout, "%s%s\n", i ? "\n" : "", j->s[i].text);
}

/* ---- the command ----------------------------------------------------------------------------- */

static ctn_status work(job *j, doing *now)
{
    const args *a = j->a;
    *now = DOING_SETUP;
    CTN_TRY(open_context(&j->ctx, a, 0));
    *now = DOING_DATA;
    CTN_TRY(make_net(j));
    CTN_TRY(take_prompts(j));
    *now = DOING_RUN;
    CTN_TRY(ctn_generator_new(&j->generator, j->net,
                              CTN_OPT(ctn_generator_opt, .temperature = args_real(a, "temperature"),
                                      .top_k = args_int(a, "top-k"), .top_p = args_real(a, "top-p"),
                                      .seed = (uint64_t)args_int(a, "seed"),
                                      .repetition_penalty = args_real(a, "repetition-penalty"))));
    j->stream = j->n == 1 && !args_flag(a, "json");
    j->terminal = isatty(STDOUT_FILENO);
    CTN_TRY(generate(j));
    if (args_flag(a, "json")) return print_json(j);
    if (!j->stream) print_texts(j);
    return CTN_OK;
}

static void job_free(job *j)
{
    for (int64_t i = 0; i < j->n; i++) {
        free(j->s[i].tokens);
        free(j->s[i].text);
    }
    free(j->s);
    ctn_generator_free(j->generator);
    ctn_tokenizer_free(j->tokenizer);
    ctn_module_free(j->net);
    ctn_context_free(j->ctx);
    free(j);
}

static int check_args(args *a)
{
    const bool one = args_given(a, "prompt"), file = args_given(a, "prompts");
    if (one == file) {
        say(stderr, "catena generate: give --prompt TEXT or --prompts FILE%s\n",
            one ? ", not both" : "");
        return EXIT_USAGE;
    }
    if (!(args_real(a, "temperature") >= 0) || args_int(a, "top-k") < 0 ||
        args_int(a, "tokens") < 1 || !(args_real(a, "top-p") >= 0 && args_real(a, "top-p") <= 1)) {
        say(stderr, "catena generate: expected --tokens of at least 1, --temperature and --top-k "
                    "of at least 0, and --top-p from 0 to 1\n");
        return EXIT_USAGE;
    }
    if ((args_real(a, "top-p") > 0 || args_int(a, "top-k") > 0) &&
        args_real(a, "temperature") <= 0) {
        say(stderr, "catena generate: --top-p and --top-k choose at random: they need a "
                    "--temperature above 0\n");
        return EXIT_USAGE;
    }
    if (!(args_real(a, "repetition-penalty") > 0)) {
        say(stderr, "catena generate: expected a --repetition-penalty above 0; 1 is none\n");
        return EXIT_USAGE;
    }
    if (args_given(a, "system") && !args_flag(a, "chat")) {
        say(stderr, "catena generate: --system is for --chat\n");
        return EXIT_USAGE;
    }
    take_result(a);
    if (weights_of(a)[0]) return task_inherit(a);
    say(stderr, "catena generate: no weights given: use --weights FILE, or name the folder of "
                "a published model\n");
    return EXIT_USAGE;
}

static int run(args *a)
{
    doing now = DOING_SETUP;
    int code = check_args(a);
    if (code < 0) code = check_threads(a);
    if (code >= 0) return code;
    job *j = calloc(1, sizeof *j);
    if (!j) return EXIT_MEMORY;
    j->a = a;
    code = work(j, &now) < 0 ? report_failure("generate", now) : EXIT_DONE;
    job_free(j);
    return code;
}

static const option options[] = {
    {"prompt", "TEXT", "", "text to continue", GROUP_NONE},
    {"prompts", "FILE", "", "file with one prompt per line; all are continued together",
     GROUP_NONE},
    {"weights", "FILE", "",
     "weights (safetensors or PyTorch); default: those in the model's folder", GROUP_NONE},
    {"adapters", "DIR", "", "folder of low-rank adapters (LoRA) for the weights, as peft writes it",
     GROUP_NONE},
    {"tokenizer", "PATH", "",
     "tokenizer.json, vocab.json beside merges.txt, or a folder with them; default: the model's "
     "folder; without any, tokens are bytes",
     GROUP_NONE},
    {"tokens", "N", "100", "number of new tokens at most", GROUP_NONE},
    {"temperature", "X", "0",
     "0: always the most likely token; 1: with the probabilities of the model", GROUP_NONE},
    {"top-k", "N", "0", "choose from the N most likely tokens; 0: from all", GROUP_NONE},
    {"top-p", "X", "0", "choose from the most likely tokens that have the share X; 0: from all",
     GROUP_NONE},
    {"seed", "N", "0", "random seed of the choice", GROUP_NONE},
    {"repetition-penalty", "X", "1",
     "above 1: avoid tokens that were there already, prompt included; 1: do not", GROUP_NONE},
    {"stop", "TEXT", "", "end a text before the first TEXT in what is generated", GROUP_NONE},
    {"chat", NULL, NULL,
     "prompts are what a user says, put into the model's chat template; prints the answers. In a "
     "--prompts file, a line in JSON is a whole conversation",
     GROUP_NONE},
    {"system", "TEXT", "", "--chat: system message before each prompt that is not a conversation",
     GROUP_NONE},
    {"ignore-end", NULL, NULL, "go on after the token that ends a text", GROUP_NONE},
    {"classes", "N", "0", "size of the vocabulary; default: as in training", GROUP_NONE},
    {"length", "N", "128", "gpt: maximum length of a sequence; default: as in training",
     GROUP_NONE},
    {"width", "N", "0", "gpt: width; default: as in training", GROUP_NONE},
    {"depth", "N", "0", "gpt: number of layers; default: as in training", GROUP_NONE},
    {"heads", "N", "0", "gpt: number of attention heads; default: as in training", GROUP_NONE},
    {"threads", "N", "0", "number of threads; 0: one per core", GROUP_NONE},
    {"json", NULL, NULL, "print one JSON object", GROUP_NONE},
    {0},
};

static const char *const *models(void)
{
    static const char *const names[] = {"gpt", "gpt2", NULL};
    return names;
}

const command cmd_generate = {
    .name = "generate",
    .operands = "[MODEL]",
    .summary = "Continue text with a language model.",
    .words = models,
    .optional = true, /* config.yaml beside the weights names it */
    .options = options,
    .examples =
        "  catena generate ./SmolLM-135M --prompt 'The sea is'       a folder with config.json\n"
        "  catena generate --weights result/weights.safetensors --prompt '1 2 3 '\n"
        "  catena generate ./SmolLM2-135M-Instruct --chat --prompt 'Why is the sea blue?'\n"
        "  catena generate ./gpt2 --prompts questions.txt --temperature 0.8 --top-p 0.95\n",
    .run = run,
    .ranks = RANKS_ONE,
    .paths = OWN_OR_RESULT,
};
