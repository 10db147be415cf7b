/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of tokenizers: the first byte says whether the rest is tokenizer.json (j), vocab.txt
 * (t), or merges.txt beside a fixed vocab.json (m). All bytes are then encoded as text; the tokens
 * of byte-level BPE must give them back.
 */
#include "fuzz.h"

/* All bytes in the alphabet of byte-level BPE, and a few merges. */
static void write_vocabulary(void)
{
    char json[8192];
    int n = snprintf(json, sizeof json,
                     "{\"ab\":256,\"abc\":257,\"\xC4\xA0"
                     "a\":258");
    for (int b = 0, more = 256; b < 256; b++) {
        const int same = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
        n += snprintf(json + n, sizeof json - (size_t)n, ",\"\\u%04x\":%d", same ? b : more++, b);
    }
    n += snprintf(json + n, sizeof json - (size_t)n, "}");
    fuzz_file("vocab.json", (const uint8_t *)json, (size_t)n);
}

static void use(ctn_tokenizer *t, const uint8_t *data, size_t bytes, int exact)
{
    const char *text = (const char *)data;
    const int64_t n = ctn_tokenizer_encode(t, text, bytes, NULL, 0);
    int32_t *ids = malloc((size_t)(n > 0 ? n : 1) * sizeof *ids);
    if (n < 0 || !ids || ctn_tokenizer_encode(t, text, bytes, ids, (size_t)n) != n) abort();
    const int64_t k = ctn_tokenizer_decode(t, ids, (size_t)n, NULL, 0);
    char *back = malloc((size_t)k + 1);
    if (k < 0 || !back || ctn_tokenizer_decode(t, ids, (size_t)n, back, (size_t)k + 1) != k)
        abort();
    if (exact && ((size_t)k != bytes || memcmp(back, text, bytes) != 0)) abort();
    ctn_decode_state state = {0};
    int64_t sum = 0;
    for (int64_t i = 0; i <= n; i++)
        sum += ctn_tokenizer_decode_next(t, &state, i < n ? ids[i] : -1, back, (size_t)k + 1);
    if (sum != k) abort();
    free(back);
    free(ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static int written;
    ctn_tokenizer *t = NULL;
    if (bytes < 2) return 0;
    const char *name = data[0] == 'j'   ? "tokenizer.json"
                       : data[0] == 't' ? "vocab.txt"
                                        : "merges.txt";
    const char *path = fuzz_file(name, data + 1, bytes - 1);
    char vocabulary[256];
    if (!written++) {
        write_vocabulary();
        path = fuzz_file(name, data + 1, bytes - 1);
    }
    if (name[0] == 'm') {
        snprintf(vocabulary, sizeof vocabulary, "%s/vocab.json", fuzz_folder());
        path = vocabulary;
    }
    if (ctn_tokenizer_open(&t, path, NULL) < 0) ctn_error_clear();
    else use(t, data, bytes, name[0] == 'm');
    ctn_tokenizer_free(t);
    return 0;
}
