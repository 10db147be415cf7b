/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes parts of mixed text of 1 MB each, the same ones everywhere: English, numbers, sentences in
 * many languages, random words of many scripts, combining marks, emoji, source code, control
 * characters, long runs of white space, and special tokens. Always valid UTF-8. Random characters
 * come from ranges that have not changed since Unicode 3.2, because libraries differ in the version
 * of their tables.
 */
#ifndef CTN_GOLDEN_MIXED_TEXT_H
#define CTN_GOLDEN_MIXED_TEXT_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { MIXED_PARTS = 10, MIXED_BYTES = 1000000, MIXED_ROOM = MIXED_BYTES + 8192 };

typedef struct {
    char *at;
    size_t n;
    uint64_t state;
} mixed;

/* A number below n (splitmix64). */
static inline uint32_t mixed_below(mixed *m, uint32_t n)
{
    uint64_t z = m->state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (uint32_t)((z ^ (z >> 31)) >> 32) % n;
}

static inline void mixed_put(mixed *m, const char *s)
{
    const size_t n = strlen(s);
    memcpy(m->at + m->n, s, n);
    m->n += n;
}

static inline void mixed_char(mixed *m, uint32_t c)
{
    char *p = m->at + m->n;
    if (c < 0x80) {
        p[0] = (char)c;
        m->n += 1;
        return;
    }
    const int n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    p[0] = (char)((n == 2 ? 0xC0 : n == 3 ? 0xE0 : 0xF0) | c >> 6 * (n - 1));
    for (int i = 1; i < n; i++) p[i] = (char)(0x80 | (c >> 6 * (n - 1 - i) & 0x3F));
    m->n += (size_t)n;
}

#define MIXED_ONE_OF(m, list) (list)[mixed_below(m, sizeof(list) / sizeof *(list))]

static inline void mixed_english(mixed *m)
{
    static const char *const words[] = {"the",
                                        "of",
                                        "and",
                                        "a",
                                        "to",
                                        "in",
                                        "is",
                                        "was",
                                        "that",
                                        "network",
                                        "gradient",
                                        "training",
                                        "tokens",
                                        "language",
                                        "science",
                                        "measured",
                                        "although",
                                        "because",
                                        "straight",
                                        "unhappily",
                                        "I",
                                        "you",
                                        "they",
                                        "we",
                                        "it",
                                        "he",
                                        "don",
                                        "can",
                                        "Monday",
                                        "Paris",
                                        "NASA",
                                        "HTTP",
                                        "iPhone",
                                        "naïve",
                                        "café",
                                        "résumé",
                                        "coöperate",
                                        "Zürich",
                                        "Ångström",
                                        "façade",
                                        "antidisestablishmentarianism"};
    static const char *const ends[] = {"'s",  "'t",  "'re", "'ve", "'m",  "'ll", "'d", "'S",
                                       "'RE", "'Ve", "'LL", "'x",  "''s", "’s",  "'",  ".",
                                       ",",   "!",   "?",   ";",   ":",   "...", "\"", ")",
                                       "-",   "--",  "—",   "’",   "'ſ"};
    if (mixed_below(m, 8) == 0) mixed_put(m, mixed_below(m, 2) ? "\"" : "(");
    mixed_put(m, MIXED_ONE_OF(m, words));
    if (mixed_below(m, 4) == 0) mixed_put(m, MIXED_ONE_OF(m, ends));
}

static inline void mixed_number(mixed *m)
{
    static const char *const between[] = {".", ",", "-", ":", "/", "e+", " "};
    for (uint32_t i = 1 + mixed_below(m, 3); i > 0; i--) {
        for (uint32_t k = 1 + mixed_below(m, 9); k > 0; k--)
            mixed_char(m, '0' + mixed_below(m, 10));
        if (i > 1) mixed_put(m, MIXED_ONE_OF(m, between));
    }
}

static inline void mixed_sentence(mixed *m)
{
    static const char *const list[] = {
        "Der Straßenfußgänger überquerte zögernd die große Brücke.",
        "Où est-ce que l’élève a laissé son cœur d’été ?",
        "El pingüino Wenceslao hizo kilómetros bajo exhaustiva lluvia.",
        "Příliš žluťoučký kůň úpěl ďábelské ódy.",
        "Zażółć gęślą jaźń, proszę państwa!",
        "Árvíztűrő tükörfúrógép",
        "İstanbul'da Iğdır'lı ılık çığlık",
        "Tiếng Việt có nhiều dấu: ưỡn ẹo, nghiễm nhiên.",
        "Съешь же ещё этих мягких французских булок, да выпей чаю.",
        "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία, ΣΊΣΥΦΟΣ ὦ ἄνδρες Ἀθηναῖοι.",
        "עטלף אבק נס דרך מזגן שהתפוצץ כי חם",
        "שָׁלוֹם עֲלֵיכֶם",
        "صِف خَلقَ خَودِ كَمِثلِ الشَمسِ إِذ بَزَغَت ٣٤٥",
        "ژالهٔ صبح بر برگ گل می‌درخشد",
        "ऋषियों को सताने वाले दुष्ट राक्षसों के राजा १२३",
        "আমার সোনার বাংলা আমি তোমায় ভালোবাসি",
        "யாமறிந்த மொழிகளிலே தமிழ்மொழி போல் இனிதாவது எங்கும் காணோம்",
        "เป็นมนุษย์สุดประเสริฐเลิศคุณค่า กว่าบรรดาฝูงสัตว์เดรัจฉาน",
        "ཨོཾ་མ་ཎི་པདྨེ་ཧཱུྃ།",
        "ယေဓမ္မာ ဟေတုပ္ပဘဝါ",
        "ქართული ენა",
        "Հայերեն լեզու",
        "አማርኛ ቋንቋ ነው።",
        "ខ្ញុំចង់រៀនភាសាខ្មែរ",
        "我能吞下玻璃而不傷身體。天地玄黃，宇宙洪荒。",
        "今天天气很好，我们去公园吧！价格是３５０元",
        "いろはにほへと ちりぬるを。カタカナとｶﾀｶﾅ、漢字と１２３",
        "다람쥐 헌 쳇바퀴에 타고파. 한글은 아름답다",
        "ㄱㄴㄷ 각",
        "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝟘𝟙𝟚 ℕ ∀x∈ℝ: ⌈x⌉ = −⌊−x⌋, α ∧ ¬β, H₂O, 10⁻⁹ m², ½ ¾ Ⅷ ①②",
        "ﬁne oﬃce ſtraſſe Ǆ ǅ ǆ ß ẞ K Å",
        "“smart” ‘quotes’ „low“ «guillemets» 「日本」 … – — ‐ ‑ • † ‡ § ¶ € £ ¥ ₹ ₿ © ® ™ ° ± × ÷",
    };
    mixed_put(m, MIXED_ONE_OF(m, list));
}

static inline void mixed_script(mixed *m)
{
    static const uint32_t ranges[][2] = {
        {0xBB, 0x220},      {0x222, 0x233},     {0x250, 0x293},     {0x2D0, 0x2EB},
        {0x38E, 0x3A1},     {0x3A3, 0x3CE},     {0x3D0, 0x3F6},     {0x400, 0x486},
        {0x488, 0x4CE},     {0x531, 0x556},     {0x561, 0x587},     {0x5A3, 0x5B9},
        {0x5D0, 0x5EA},     {0x621, 0x63A},     {0x640, 0x655},     {0x660, 0x6DD},
        {0x70F, 0x72C},     {0x905, 0x939},     {0x93C, 0x94D},     {0x958, 0x970},
        {0x993, 0x9A8},     {0x9E6, 0x9FA},     {0xA13, 0xA28},     {0xBE7, 0xBF2},
        {0xD12, 0xD28},     {0xE01, 0xE3A},     {0xE3F, 0xE5B},     {0xF15, 0xF47},
        {0xF71, 0xF8B},     {0x1000, 0x1021},   {0x1040, 0x1059},   {0x10A0, 0x10C5},
        {0x1100, 0x1159},   {0x115F, 0x11A2},   {0x11A8, 0x11F9},   {0x1208, 0x1246},
        {0x1680, 0x169C},   {0x16A0, 0x16F0},   {0x1780, 0x17B3},   {0x17B6, 0x17DC},
        {0x1820, 0x1877},   {0x1E00, 0x1E9B},   {0x1EA0, 0x1EF9},   {0x1F20, 0x1F45},
        {0x1F80, 0x1FB4},   {0x2000, 0x200A},   {0x200C, 0x2052},   {0x2074, 0x207E},
        {0x2080, 0x208E},   {0x20A0, 0x20B1},   {0x20D0, 0x20EA},   {0x2100, 0x2117},
        {0x2119, 0x2131},   {0x2153, 0x2182},   {0x2190, 0x22FF},   {0x230C, 0x23B3},
        {0x2460, 0x24FE},   {0x2500, 0x2613},   {0x2761, 0x2794},   {0x2800, 0x28FF},
        {0x2E9B, 0x2EF3},   {0x3000, 0x302D},   {0x3030, 0x303F},   {0x3041, 0x3096},
        {0x3099, 0x309F},   {0x30A0, 0x30FA},   {0x3105, 0x312C},   {0x3131, 0x318E},
        {0x327F, 0x32CB},   {0x3300, 0x3376},   {0x3400, 0x4DB5},   {0x4E00, 0x9FA5},
        {0xA016, 0xA48C},   {0xAC00, 0xD7A3},   {0xE000, 0xF8FF},   {0xF900, 0xFA2D},
        {0xFB1D, 0xFB36},   {0xFBD3, 0xFD3D},   {0xFE00, 0xFE0F},   {0xFE30, 0xFE46},
        {0xFE76, 0xFEFC},   {0xFF01, 0xFF64},   {0xFF66, 0xFFBE},   {0x10330, 0x10340},
        {0x10400, 0x10425}, {0x1D100, 0x1D126}, {0x1D12A, 0x1D15D}, {0x1D400, 0x1D454},
        {0x1D552, 0x1D6A3}, {0x20000, 0x2A6D6}, {0x2F800, 0x2F867}, {0x1F300, 0x1F320}};
    const uint32_t *r = MIXED_ONE_OF(m, ranges);
    for (uint32_t k = 1 + mixed_below(m, 10); k > 0; k--)
        mixed_char(m, r[0] + mixed_below(m, r[1] - r[0] + 1));
}

static inline void mixed_marks(mixed *m)
{
    static const uint32_t base[] = {'a',  'e', 'O', 'u',    'Z',    0xE4,   0x3B1,  0x438, 0x5D0,
                                    0x3F, ' ', '1', 0x212B, 0x1100, 0x304B, 0x4E00, 0x1EA1};
    for (uint32_t k = 1 + mixed_below(m, 5); k > 0; k--) {
        mixed_char(m, MIXED_ONE_OF(m, base));
        for (uint32_t i = mixed_below(m, 4); i > 0; i--)
            mixed_char(m, 0x300 + mixed_below(m, 0x4F));
    }
}

static inline void mixed_emoji(mixed *m)
{
    static const char *const list[] = {"😀",
                                       "👍🏽",
                                       "👩‍👩‍👧‍👦",
                                       "🏳️‍🌈",
                                       "🇩🇪🇫🇷",
                                       "❤️",
                                       "👨🏿‍🚀",
                                       "🤖",
                                       "☃️",
                                       "1️⃣",
                                       "🧑‍💻",
                                       "©️",
                                       "😂😂😂",
                                       "🏴󠁧󠁢󠁥󠁮󠁧󠁿"};
    for (uint32_t k = 1 + mixed_below(m, 3); k > 0; k--) mixed_put(m, MIXED_ONE_OF(m, list));
}

static inline void mixed_code(mixed *m)
{
    static const char *const list[] = {
        "for (int i = 0; i < n; i++) {",
        "    return x->next == NULL ? -1 : x[0x1F];",
        "\t\tself.weights[i, :] += lr * grad  # update",
        "if __name__ == '__main__':",
        "}",
        "};",
        "#include <stdio.h>",
        "std::vector<std::pair<int,float>> v{{1,2.5f}};",
        "SELECT * FROM t WHERE a>='x' AND b!=3;",
        "<div class=\"a\">&nbsp;</div>",
        "let f = |x| x**2 + 1e-3_f64;",
        "https://example.org/a/b?c=d%20e&f=1#g",
        "C:\\Users\\x\\file.txt",
        "{\"key\": [1, 2.0, null, true]}",
        "$ ls -la | grep '^d'",
        "camelCaseName snake_case_name SCREAMING_CASE kebab-case __init__"};
    for (uint32_t k = 1 + mixed_below(m, 4); k > 0; k--) {
        for (uint32_t i = mixed_below(m, 5); i > 0; i--) mixed_put(m, "    ");
        mixed_put(m, MIXED_ONE_OF(m, list));
        mixed_put(m, mixed_below(m, 6) ? "\n" : "\r\n");
    }
}

static inline void mixed_odd(mixed *m)
{
    static const uint32_t list[] = {0,      1,      7,      8,      9,      0xB,    0xC,
                                    0xD,    0x1B,   0x1C,   0x1F,   0x7F,   0x80,   0x85,
                                    0xA0,   0xAD,   0x200B, 0x200D, 0x200E, 0x2028, 0x2029,
                                    0x2060, 0xFEFF, 0xFFFD, 0x3000, 0x180E, 0xFFFC, 0x10FFFF,
                                    0xFFFF, 0x61C,  0x600};
    for (uint32_t k = 1 + mixed_below(m, 4); k > 0; k--) mixed_char(m, MIXED_ONE_OF(m, list));
}

static inline void mixed_space(mixed *m)
{
    static const char *const list[] = {" ",        "\n",   "\t", "\r\n", "  ", "\xE3\x80\x80",
                                       "\xC2\xA0", "\n\n", "\v"};
    const char *one = MIXED_ONE_OF(m, list), *other = MIXED_ONE_OF(m, list);
    for (uint32_t k = 1 + mixed_below(m, mixed_below(m, 10) ? 5 : 60); k > 0; k--)
        mixed_put(m, mixed_below(m, 4) ? one : other);
}

static inline void mixed_punctuation(mixed *m)
{
    static const char list[] = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
    const uint32_t same = mixed_below(m, 2), first = mixed_below(m, 32);
    for (uint32_t k = 1 + mixed_below(m, 20); k > 0; k--)
        mixed_char(m, (unsigned char)list[same ? first : mixed_below(m, 32)]);
}

static inline void mixed_special(mixed *m)
{
    static const char *const list[] = {"<|endoftext|>", "<|endoftext|",
                                       "[MASK]",        "[CLS]",
                                       "[SEP]",         "[PAD]",
                                       "[UNK]",         "[MASK",
                                       "[mask]",        "<mask>",
                                       "< mask>",       "<|endoftext|><|endoftext|>"};
    mixed_put(m, MIXED_ONE_OF(m, list));
}

static inline void mixed_long(mixed *m)
{
    const uint32_t kind = mixed_below(m, 3);
    for (uint32_t k = 50 + mixed_below(m, mixed_below(m, 4) ? 100 : 2000); k > 0; k--) {
        if (kind == 0) mixed_char(m, 'a' + mixed_below(m, 26));
        else mixed_char(m, kind == 1 ? 'a' + mixed_below(m, 2) : (unsigned)"-=*#"[k / 512 % 4]);
    }
}

/* Fills at[MIXED_ROOM] with part `part`; returns its bytes. */
static inline size_t mixed_make(char *at, uint32_t part)
{
    /* How often each kind occurs, in 100 pieces. */
    static const struct {
        void (*make)(mixed *);
        uint32_t share;
    } kinds[] = {{mixed_english, 40},    {mixed_number, 7},  {mixed_sentence, 9},
                 {mixed_script, 14},     {mixed_marks, 5},   {mixed_emoji, 3},
                 {mixed_code, 6},        {mixed_odd, 3},     {mixed_space, 5},
                 {mixed_punctuation, 5}, {mixed_special, 2}, {mixed_long, 1}};
    static const char *const between[] = {" ", " ", " ", " ",  " ",  " ",
                                          " ", "",  "",  "\n", ", ", "  "};
    mixed m = {at, 0, part * 1000003u};
    while (m.n < MIXED_BYTES) {
        uint32_t k = mixed_below(&m, 100), i = 0;
        while (k >= kinds[i].share) k -= kinds[i++].share;
        kinds[i].make(&m);
        mixed_put(&m, MIXED_ONE_OF(&m, between));
    }
    return m.n;
}

#endif
