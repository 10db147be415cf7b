/* SPDX-License-Identifier: Apache-2.0
 *
 * Chat templates: the bytes up to the first 0 are the template, those after it the conversation; a
 * fixed one if there is no 0. The text must be the same with and without room for it.
 */
#include "fuzz.h"

static const char conversation[] =
    "[{\"role\":\"system\",\"content\":\"Be brief.\"},{\"role\":\"user\",\"content\":\" Hi\\n\"},"
    "{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"function\":{\"name\":\"f\","
    "\"arguments\":{\"x\":[1.5,null,true]}}}]},{\"role\":\"tool\",\"content\":\"Gr\xC3\xBC\xC3\x9F "
    "<b>\"}]";

static void use(const ctn_tokenizer *t, const char *messages, size_t bytes)
{
    const int64_t n = ctn_tokenizer_chat(t, messages, bytes, NULL, NULL, 0);
    ctn_error_clear();
    if (n < 0 || n > 1 << 20) return;
    char *text = malloc((size_t)n + 1);
    const ctn_chat_opt opt = {sizeof opt, .no_prompt = (int)(n % 2)};
    if (!text) return;
    const int64_t again = ctn_tokenizer_chat(t, messages, bytes, &opt, text, (size_t)n + 1);
    if (again >= 0 && text[again < n ? again : n] != 0) abort();
    ctn_error_clear();
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    ctn_tokenizer *t = NULL;
    const uint8_t *zero = bytes ? memchr(data, 0, bytes) : NULL;
    const size_t n = zero ? (size_t)(zero - data) : bytes;
    const char *messages = zero ? (const char *)zero + 1 : conversation;
    const size_t length = zero ? bytes - n - 1 : sizeof conversation - 1;
    fuzz_file("chat_template.jinja", data, n);
    fuzz_file("special_tokens_map.json", (const uint8_t *)"{\"eos_token\":\"</s>\"}", 20);
    const char *path = fuzz_file("vocab.txt", (const uint8_t *)"[UNK]\na\n", 8);
    if (ctn_tokenizer_open(&t, path, NULL) < 0) ctn_error_clear();
    else use(t, messages, length);
    ctn_tokenizer_free(t);
    return 0;
}
