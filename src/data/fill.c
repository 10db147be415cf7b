/* SPDX-License-Identifier: Apache-2.0
 *
 * Fills one batch of a loader: reads its samples in order, leaves out those that cannot be read,
 * and warns about them. A batch is filled by one thread and depends only on the sampler. Counting
 * and warning happen when batches are delivered, in order, so neither depends on the thread
 * count.
 */
#include "data/loader.h"
#include "data/mix.h"

/* Copies the dataset's error to the slot, adding the sample's name if the message lacks it. Clears
 * the error record of this thread, unless it held an older error. */
static void keep_error(const ctn_loader *l, struct ctn__slot *slot, ctn_status st, int64_t sample,
                       bool had_error)
{
    char name[CTN__TEXT];
    const char *text = had_error ? "" : ctn_error_message();
    if (!*text) text = ctn_status_text(st);
    ctn_dataset_name(l->ds, sample, name, sizeof name);
    if (strstr(text, name)) name[0] = 0;
    slot->st = st;
    snprintf(slot->error, sizeof slot->error, "%s%s(epoch %llu): %s", name, *name ? " " : "",
             (unsigned long long)slot->epoch, text);
    if (l->allowed && slot->skipped < CTN__NAMED) {
        struct ctn__left_out *out = &slot->out[slot->skipped];
        out->sample = sample;
        snprintf(out->why, sizeof out->why, "%.*s", (int)strcspn(slot->error, "\n"), slot->error);
    }
    if (!had_error) ctn_error_clear();
}

/* Bytes of field f of one sample, or of one row if it is ragged. */
static size_t bytes_of(const ctn_loader *l, const struct ctn__slot *slot, int f)
{
    if (!ctn__sized(l, f)) return l->bytes[f];
    ctn_field one = *ctn_dataset_field(l->ds, f);
    ctn__sizes_apply(&one, slot->size);
    return ctn__field_bytes(&one);
}

/* Addresses of the fields of sample i of a batch. */
static void place(const ctn_loader *l, const struct ctn__slot *slot, int64_t i, void **dst)
{
    for (int f = 0; f < l->fields; f++) {
        const bool joined = l->join && l->longest[f] >= 0;
        const size_t rows = l->lengths[f] ? (size_t)slot->padded[f] : 1;
        const size_t at = joined ? (size_t)slot->joined[f] : (size_t)i * rows;
        dst[f] = slot->memory + l->offset[f] + at * bytes_of(l, slot, f);
    }
    if (l->mix.classes) dst[1] = slot->memory + l->labels + (size_t)i * sizeof(int64_t);
}

uint64_t ctn__fill_first(const ctn_loader *l, const struct ctn__slot *slot)
{
    const uint64_t rank = (uint64_t)l->sampler.rank;
    return slot->position + (l->block > 0 ? rank * (uint64_t)l->block : rank);
}

static int64_t sample_of(const ctn_loader *l, const struct ctn__slot *slot, int64_t i)
{
    if (l->block == 0)
        return ctn__sampler_sample(&l->sampler, slot->epoch, slot->position, (uint64_t)i);
    ctn_sampler whole = l->sampler;
    whole.rank = 0;
    whole.size = 1;
    return ctn__sampler_sample(&whole, slot->epoch, ctn__fill_first(l, slot), (uint64_t)i);
}

/* How long the ragged fields of the batch become: all samples count, even if one turns out to be
 * unreadable, so shapes depend on nothing but the sampler. */
static void measure(const ctn_loader *l, struct ctn__slot *slot)
{
    for (int f = 0; f < ctn_dataset_fields(l->ds); f++) {
        int64_t longest = 0, sum = 1; /* at least one row of padding */
        for (int64_t i = 0; l->lengths[f] && i < slot->claimed; i++) {
            const int64_t n = ctn_dataset_length(l->ds, f, sample_of(l, slot, i));
            if (n < 0 || n > l->longest[f]) continue;
            sum += n;
            if (n > longest) longest = n;
        }
        slot->padded[f] = ctn__padded(l, l->join ? sum : longest);
        if (l->join && l->lengths[f]) slot->padded[l->lengths[f]] = slot->padded[f];
    }
}

/* Reads sample number slot->n of the batch with its lengths, and pads it. The lengths are checked
 * here, because a dataset of the user may return anything. */
static ctn_status read_sample(const ctn_loader *l, struct ctn__slot *slot, int64_t sample)
{
    void *dst[CTN_DATA_FIELDS] = {0};
    int64_t length[CTN_DATA_FIELDS] = {0};
    place(l, slot, slot->n, dst);
    for (int f = 0; f < ctn_dataset_fields(l->ds); f++) {
        if (!l->lengths[f] || sample < 0 || sample >= ctn_dataset_count(l->ds)) continue;
        length[f] = ctn_dataset_length(l->ds, f, sample);
        if (length[f] < 0 || length[f] > slot->padded[f] - (l->join ? slot->joined[f] + 1 : 0))
            return ctn_fail(CTN_EFORMAT,
                            "field %d has length %lld, expected 0 to %lld, always the same", f,
                            (long long)length[f], (long long)l->longest[f]);
    }
    const ctn_sample s = {sample, l->sampler.state.seed, slot->epoch, slot->size};
    CTN_TRY(ctn_dataset_sample(l->ds, &s, dst));
    if (l->join) return ctn__join_sample(l, slot, dst, length);
    for (int f = 0; f < ctn_dataset_fields(l->ds); f++) {
        if (!l->lengths[f]) continue;
        const size_t size = ctn_dtype_size(l->field[f].dtype), row = l->bytes[f];
        ctn__pad_fill((char *)dst[f] + (size_t)length[f] * row, l->pad[f], size,
                      (size_t)(slot->padded[f] - length[f]) * (row / size));
        memcpy(dst[l->lengths[f]], &length[f], sizeof length[f]);
    }
    return CTN_OK;
}

static void fill(ctn_loader *l, struct ctn__slot *slot)
{
    const bool had_error = ctn_error_status() != CTN_OK;
    measure(l, slot);
    for (int64_t i = 0; i < slot->claimed; i++) {
        if (atomic_load_explicit(&l->drop, memory_order_relaxed)) return;
        const int64_t sample = sample_of(l, slot, i);
        atomic_store_explicit(&slot->at, sample, memory_order_relaxed);
        const ctn_status st = read_sample(l, slot, sample);
        if (st >= 0) {
            slot->n++;
            continue;
        }
        keep_error(l, slot, st, sample, had_error);
        slot->failed = l->allowed == 0;
        if (slot->failed) return;
        slot->skipped++;
    }
    if (l->join) ctn__join_end(l, slot);
}

/* The random choice depends on the position over all ranks, so that ranks choose independently. */
static void mix(const ctn_loader *l, struct ctn__slot *slot)
{
    const bool had_error = ctn_error_status() != CTN_OK;
    const ctn_sampler_state at = {l->sampler.state.seed, slot->epoch, ctn__fill_first(l, slot)};
    void *images = slot->memory + l->offset[0], *labels = slot->memory + l->labels,
         *parts = slot->memory + l->offset[1];
    ctn_field image = *ctn_dataset_field(l->ds, 0);
    if (slot->size > 0) ctn__sizes_apply(&image, slot->size);
    const ctn_status st = ctn__mix_batch(&l->mix, &at, slot->n, &image, images, labels, parts);
    if (st >= 0) return;
    slot->failed = true;
    slot->st = st;
    snprintf(slot->error, sizeof slot->error, "%s",
             had_error ? ctn_status_text(st) : ctn_error_message());
    if (!had_error) ctn_error_clear();
}

void ctn__fill(ctn_loader *l, struct ctn__slot *slot)
{
    const uint64_t start = ctn__now_ns();
    slot->n = slot->skipped = 0;
    memset(slot->joined, 0, sizeof slot->joined);
    slot->failed = false;
    slot->st = CTN_OK;
    fill(l, slot);
    if (l->mix.classes && slot->n && !slot->failed && !l->drop) mix(l, slot);
    atomic_fetch_add_explicit(&l->fill_ns, ctn__now_ns() - start, memory_order_relaxed);
}

/* Warns once per sample, even if it fails in every epoch. */
static void name_sample(ctn_loader *l, const struct ctn__left_out *out)
{
    for (int i = 0; i < l->nnamed; i++)
        if (l->named[i] == out->sample) return;
    if (l->nnamed == CTN__NAMED) {
        l->unnamed = true;
        return;
    }
    l->named[l->nnamed++] = out->sample;
    ctn__warn("loader: left out: %s", out->why);
}

ctn_status ctn__fill_result(ctn_loader *l, struct ctn__slot *slot)
{
    if (slot->failed) return ctn_fail(slot->st, "loader: %s", slot->error);
    const int64_t kept = slot->skipped < CTN__NAMED ? slot->skipped : CTN__NAMED;
    for (int64_t i = 0; i < kept; i++) name_sample(l, &slot->out[i]);
    l->unnamed = l->unnamed || slot->skipped > kept;
    l->skipped += slot->skipped;
    l->stats.skipped += (uint64_t)slot->skipped;
    if (slot->skipped && l->skipped > l->allowed)
        return ctn_fail(slot->st,
                        "loader: %lld samples of this epoch cannot be read, but at most %lld of "
                        "%lld may be left out; the last one: %s",
                        (long long)l->skipped, (long long)l->allowed,
                        (long long)ctn_sampler_count(&l->sampler), slot->error);
    return CTN_OK;
}

void ctn__fill_epoch_end(ctn_loader *l)
{
    if (l->unnamed)
        ctn__warn(
            "loader: left out %lld of %lld samples in epoch %llu; only the first %d are named",
            (long long)l->skipped, (long long)ctn_sampler_count(&l->sampler),
            (unsigned long long)l->next.epoch, CTN__NAMED);
    l->skipped = 0;
    l->unnamed = false;
}

void ctn__fill_stalled(const ctn_loader *l, uint64_t waited_ns, const int64_t *at, int n)
{
    char text[1800]; /* a warning holds at most 2048 */
    size_t used = 0;
    for (int i = 0; i < n && used < sizeof text / 2; i++) {
        char name[CTN__TEXT];
        ctn_dataset_name(l->ds, at[i], name, sizeof name);
        int k = snprintf(text + used, sizeof text - used, "%s%s", i ? ", " : "", name);
        used += k > 0 ? (size_t)k : 0;
    }
    if (used)
        ctn__warn("loader: waiting for %.3g s, still reading: %s", 1e-9 * (double)waited_ns, text);
}
