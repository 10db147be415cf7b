/* SPDX-License-Identifier: Apache-2.0
 *
 * One batch of a loader: its samples read in order to their places, those that cannot be had left
 * out, and the warnings about them. A batch is filled by one thread from the sampler's numbers
 * alone; counting and warning are done when it is delivered, which is in order, so neither depends
 * on the number of threads.
 */
#include "data/loader.h"
#include "data/mix.h"

/* The dataset's error goes into the slot, with the sample's name unless it has it, and off this
 * thread's record unless an older error stands there. */
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

/* Where sample i of a batch goes. */
static void place(const ctn_loader *l, const struct ctn__slot *slot, int64_t i, void **dst)
{
    for (int f = 0; f < l->fields; f++)
        dst[f] = slot->memory + l->offset[f] + (size_t)i * l->bytes[f];
    if (l->mix.classes) dst[1] = slot->memory + l->labels + (size_t)i * sizeof(int64_t);
}

static void fill(ctn_loader *l, struct ctn__slot *slot)
{
    const bool had_error = ctn_error_status() != CTN_OK;
    for (int64_t i = 0; i < slot->claimed; i++) {
        if (atomic_load_explicit(&l->drop, memory_order_relaxed)) return;
        int64_t sample = ctn__sampler_sample(&l->sampler, slot->epoch, slot->position, (uint64_t)i);
        atomic_store_explicit(&slot->at, sample, memory_order_relaxed);
        void *dst[CTN_DATA_FIELDS] = {0};
        place(l, slot, slot->n, dst);
        ctn_status st =
            ctn_dataset_sample(l->ds, &(ctn_sample){sample, l->sampler.state.seed, slot->epoch},
                               dst);
        if (st >= 0) {
            slot->n++;
            continue;
        }
        keep_error(l, slot, st, sample, had_error);
        slot->failed = l->allowed == 0;
        if (slot->failed) return;
        slot->skipped++;
    }
}

/* The choice is made from the position among all ranks', so that ranks choose apart. */
static void mix(const ctn_loader *l, struct ctn__slot *slot)
{
    const bool had_error = ctn_error_status() != CTN_OK;
    const ctn_sampler *s = &l->sampler;
    const ctn_sampler_state at = {s->state.seed, slot->epoch, slot->position + (uint64_t)s->rank};
    void *images = slot->memory + l->offset[0], *labels = slot->memory + l->labels,
         *parts = slot->memory + l->offset[1];
    const ctn_status st =
        ctn__mix_batch(&l->mix, &at, slot->n, ctn_dataset_field(l->ds, 0), images, labels, parts);
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
    slot->failed = false;
    slot->st = CTN_OK;
    fill(l, slot);
    if (l->mix.classes && slot->n && !slot->failed && !l->drop) mix(l, slot);
    atomic_fetch_add_explicit(&l->fill_ns, ctn__now_ns() - start, memory_order_relaxed);
}

/* One warning per sample, however many epochs it fails in. */
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
                        "loader: %lld samples of this epoch cannot be had, %lld of %lld may be "
                        "left out; the last: %s",
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
    char text[1800]; /* a warning has 2048 */
    size_t used = 0;
    for (int i = 0; i < n && used < sizeof text / 2; i++) {
        char name[CTN__TEXT];
        ctn_dataset_name(l->ds, at[i], name, sizeof name);
        int k = snprintf(text + used, sizeof text - used, "%s%s", i ? ", " : "", name);
        used += k > 0 ? (size_t)k : 0;
    }
    if (used)
        ctn__warn("loader: waiting for %.3g s, being read: %s", 1e-9 * (double)waited_ns, text);
}
