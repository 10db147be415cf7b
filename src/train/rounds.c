/* SPDX-License-Identifier: Apache-2.0
 *
 * The batches of a step with several optimizers. Each optimizer computes its gradients after those
 * before it have taken their step, as it would with one large batch. So the batches are copied, and
 * every optimizer but the first goes through the copies.
 */
#include "train/train.h"

typedef struct {
    ctn_batch batch;
    ctn_share share;
    size_t room[CTN_DATA_FIELDS]; /* bytes allocated at batch.data */
} kept;

struct ctn__rounds {
    CTN__VEC(kept) at; /* their memory serves all steps */
    size_t n;          /* of this step */
};

bool ctn__rounds_needed(const ctn_trainer *tr)
{
    return tr->others.n > 0 && tr->o.accumulate > 1;
}

void ctn__rounds_begin(ctn_trainer *tr)
{
    if (tr->rounds) tr->rounds->n = 0;
}

static ctn_status copy_field(kept *k, const ctn_batch *b, int f)
{
    size_t bytes = ctn_dtype_size(b->field[f].dtype);
    for (int i = 0; i < b->field[f].ndim; i++) bytes *= (size_t)b->field[f].shape[i];
    if (bytes > k->room[f]) {
        ctn__free(k->batch.data[f]);
        k->batch.data[f] = ctn__aligned(bytes);
        k->room[f] = k->batch.data[f] ? bytes : 0;
        if (!k->batch.data[f]) return CTN_ENOMEM;
    }
    if (bytes > 0) memcpy(k->batch.data[f], b->data[f], bytes);
    k->batch.field[f] = b->field[f];
    return CTN_OK;
}

ctn_status ctn__rounds_keep(ctn_trainer *tr)
{
    if (!tr->rounds) tr->rounds = ctn__calloc(1, sizeof *tr->rounds);
    ctn__rounds *r = tr->rounds;
    if (!r || (r->n == r->at.n && !ctn__vec_push(&r->at, (kept){0}))) return CTN_ENOMEM;
    kept *k = &r->at.at[r->n];
    for (int f = 0; f < tr->batch.fields; f++) CTN_TRY(copy_field(k, &tr->batch, f));
    k->batch.n = tr->batch.n;
    k->batch.fields = tr->batch.fields;
    k->share = tr->ctx->share;
    r->n++;
    return CTN_OK;
}

size_t ctn__rounds_count(const ctn_trainer *tr)
{
    return tr->rounds ? tr->rounds->n : 0;
}

void ctn__rounds_take(ctn_trainer *tr, size_t i, int optim)
{
    const kept *k = &tr->rounds->at.at[i];
    tr->batch = k->batch;
    ctn__group_place_at(tr, &k->share, optim);
}

void ctn__rounds_free(ctn_trainer *tr)
{
    ctn__rounds *r = tr->rounds;
    if (!r) return;
    for (size_t i = 0; i < r->at.n; i++)
        for (int f = 0; f < CTN_DATA_FIELDS; f++) ctn__free(r->at.at[i].batch.data[f]);
    ctn__vec_free(&r->at);
    ctn__free(r);
    tr->rounds = NULL;
}
