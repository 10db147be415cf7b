/* SPDX-License-Identifier: Apache-2.0
 *
 * sort of one line for one element type, included by sort.c once per type. T is the type, KEY the
 * unsigned integer of its size, NAME gives the functions their names.
 *
 * Elements become keys whose unsigned order is the order of the result. Long lines are then sorted
 * by one byte of the key after another, from the lowest (LSD radix sort), short ones by insertion.
 * Both are stable.
 */

typedef struct {
    KEY key;
    uint32_t place;
} NAME(item);

/* The bits of a float, read as a sign and a magnitude, are ordered like its values. 0 and -0 are
 * equal, and NaN is larger than everything else. */
static KEY NAME(key)(T x, bool descending)
{
    const KEY sign = (KEY)1 << (8 * sizeof(KEY) - 1);
    KEY k;
    if (x != x) return (KEY)-1;
    x += 0; /* -0 + 0 = 0 */
    memcpy(&k, &x, sizeof k);
    k = k & sign ? ~k : k | sign;
    return descending ? ~k : k;
}

static void NAME(insert)(NAME(item) * v, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        const NAME(item) x = v[i];
        int64_t j = i;
        for (; j > 0 && v[j - 1].key > x.key; j--) v[j] = v[j - 1];
        v[j] = x;
    }
}

/* Sorts v with the help of w; returns the one that holds the result. */
static NAME(item) * NAME(radix)(NAME(item) * v, NAME(item) * w, int64_t n)
{
    uint32_t count[sizeof(KEY)][256] = {{0}};
    for (int64_t i = 0; i < n; i++)
        for (size_t b = 0; b < sizeof(KEY); b++) count[b][v[i].key >> (8 * b) & 255]++;
    for (size_t b = 0; b < sizeof(KEY); b++) {
        uint32_t at[256], sum = 0;
        if (count[b][v[0].key >> (8 * b) & 255] == n) continue; /* all have the same byte */
        for (int k = 0; k < 256; k++) {
            at[k] = sum;
            sum += count[b][k];
        }
        for (int64_t i = 0; i < n; i++) w[at[v[i].key >> (8 * b) & 255]++] = v[i];
        NAME(item) *t = v;
        v = w;
        w = t;
    }
    return v;
}

/* y, place: the sorted elements and their indices; either may be NULL. room: 2 n items. */
static void NAME(sort_line)(const T *x, int64_t n, bool descending, T *y, int64_t *place,
                            void *room)
{
    NAME(item) *v = room;
    for (int64_t i = 0; i < n; i++) v[i] = (NAME(item)){NAME(key)(x[i], descending), (uint32_t)i};
    if (n <= SHORT) NAME(insert)(v, n);
    else v = NAME(radix)(v, v + n, n);
    for (int64_t i = 0; i < n && y; i++) y[i] = x[v[i].place];
    for (int64_t i = 0; i < n && place; i++) place[i] = v[i].place;
}

#undef T
#undef KEY
#undef NAME
