/* SPDX-License-Identifier: Apache-2.0
 *
 * A small GPT (4 layers, width 128, 4 heads, 128 characters) on tinyshakespeare against PyTorch
 * (gpt.py). With the same weights and batches, the losses of 100 steps of AdamW in strict f32
 * must agree within 1e-5. Skipped (77) without CATENA_DATA.
 * Labels: long
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gpt.inc"
#include "hashed.h"

enum { STEPS = 100, BATCH = 8, T = 128 };

static char path[1024];
static uint8_t *text; /* as indices of characters, in the order of their codes */
static uint32_t length;
static int64_t vocabulary;

static void read_text(void)
{
    FILE *f = fopen(path, "rb");
    int used[256] = {0};
    uint8_t number[256] = {0};
    if (!f) fail_msg("cannot open %s", path);
    fseek(f, 0, SEEK_END);
    length = (uint32_t)ftell(f);
    fseek(f, 0, SEEK_SET);
    text = malloc(length);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, length, f), length);
    fclose(f);
    for (uint32_t i = 0; i < length; i++) used[text[i]] = 1;
    for (int c = 0; c < 256; c++)
        if (used[c]) number[c] = (uint8_t)vocabulary++;
    for (uint32_t i = 0; i < length; i++) text[i] = number[text[i]];
}

/* Rows of T characters, and for each the character after it. */
static void make_batch(int step, int64_t *x, int64_t *t)
{
    const uint32_t key = hashed_key("batches");
    for (int b = 0; b < BATCH; b++) {
        const uint8_t *row = text + hashed_bits(key, (uint32_t)(step * BATCH + b)) % (length - T);
        for (int i = 0; i < T; i++) {
            x[b * T + i] = row[i];
            t[b * T + i] = row[i + 1];
        }
    }
}

static void test_adamw(void **state)
{
    (void)state;
    static int64_t x[BATCH * T], t[BATCH * T];
    ctn_context *ctx = NULL;
    ctn_module *net = NULL;
    ctn_optim *opt = NULL;
    double worst = 0;
    read_text();
    OK(ctn_context_new(&ctx, NULL));
    OK(ctn_zoo_gpt(&net, ctx, CTN_OPT(ctn_gpt_opt, .vocabulary = vocabulary)));
    hashed_fill(net, NULL);
    OK(ctn_adamw_new(&opt, ctn_params(net), CTN_OPT(ctn_adam_opt, .lr = 3e-4)));
    for (int step = 0; step < STEPS; step++) {
        make_batch(step, x, t);
        OK(ctn_scope_begin(ctx));
        ctn_tensor *y = ctn_call(net, ctn_input(ctx, x, CTN_I64, CTN_SHAPE(BATCH, T)));
        ctn_tensor *loss =
            ctn_softmax_cross_entropy(y, ctn_input(ctx, t, CTN_I64, CTN_SHAPE(BATCH, T)));
        OK(ctn_backward(opt, loss));
        OK(ctn_optim_step(opt));
        const double l = ctn_item(loss), off = fabs(l - losses[step]) / losses[step];
        OK(ctn_scope_end(ctx));
        if (!(off <= 1e-5))
            fail_msg("step %d: loss %.9g, PyTorch has %.9g: off by %.2g", step, l, losses[step],
                     off);
        worst = fmax(worst, off);
    }
    print_message("largest difference %.2g\n", worst);
    ctn_optim_free(opt);
    ctn_module_free(net);
    ctn_context_free(ctx);
    free(text);
}

int main(void)
{
    if (!data_path(path, sizeof path, "tinyshakespeare/input.txt")) {
        puts("skipped: CATENA_DATA is not set");
        return 77;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_adamw)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
