/* SPDX-License-Identifier: Apache-2.0
 *
 * catena bench loader: the loader's threads turn photos in memory into batches of normalised 224
 * px random crops. This is compared with plain full-size decoding of the same photos by the same
 * number of threads. The two alternate, and the best round of each counts.
 */
#include "bench/loader.h"

#include <sys/resource.h>

#include <catena/image.h>

#include "photos.h"

enum { ROUNDS = 5, EPOCHS = 4, BATCH = 32 };

static int64_t held_count(void *self)
{
    return ((photos *)self)->n;
}

static int held_fields(void *self)
{
    (void)self;
    return 1;
}

static void held_field(void *self, int f, ctn_field *out)
{
    (void)self, (void)f;
    *out = (ctn_field){.dtype = CTN_F32, .ndim = 3, .shape = {3, 224, 224}};
}

static ctn_status held_get(void *self, const ctn_sample *s, void *const *dst)
{
    const photo *f = &((photos *)self)->at[s->index];
    return ctn_image_decode(f->data, f->bytes,
                            CTN_OPT(ctn_image_opt, .height = 224, .width = 224,
                                    .crop = CTN_CROP_RANDOM, .flip = 1, .mean = CTN_IMAGENET_MEAN,
                                    .std = CTN_IMAGENET_STD),
                            s, dst[0]);
}

static const ctn_dataset_vt held = {
    .struct_size = sizeof(ctn_dataset_vt),
    .count = held_count,
    .fields = held_fields,
    .field = held_field,
    .get = held_get,
};

static double cpu_s(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
           1e-6 * (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

/* EPOCHS epochs with a new loader, so that nothing is loaded before the clock starts. */
static ctn_status load(ctn_dataset *ds, int threads, uint64_t seed, double *seconds, double *cpu)
{
    ctn_status st = CTN_OK;
    ctn_sampler *s = NULL;
    ctn_loader *l = NULL;
    ctn_batch b;
    double start = now_s(), start_cpu = cpu_s();
    CTN_TRY_GOTO(st, done, ctn_sampler_shuffled(&s, ctn_dataset_count(ds), seed));
    CTN_TRY_GOTO(st, done,
                 ctn_loader_new(&l, ds, s,
                                CTN_OPT(ctn_loader_opt, .batch = BATCH, .threads = threads)));
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        do CTN_TRY_GOTO(st, done, ctn_loader_next(l, &b));
        while (st != CTN_END);
        *seconds = now_s() - start;
        *cpu = cpu_s() - start_cpu;
    }
done:
    ctn_loader_free(l);
    ctn_sampler_free(s);
    return st;
}

typedef struct {
    double loaded, decoded;         /* best seconds per image */
    double loaded_cpu, decoded_cpu; /* CPU seconds per image */
} rates;

static void keep_least(double *least, double v)
{
    if (*least == 0 || v < *least) *least = v;
}

/* As many epochs as load(), so that both are equally likely to have an undisturbed round. */
static ctn_status decode(const photos *p, int threads, double *seconds, double *cpu)
{
    const double start_cpu = cpu_s();
    *seconds = 0;
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        double s = 0;
        CTN_TRY(photos_decode(p, threads, &s));
        *seconds += s;
    }
    *cpu = cpu_s() - start_cpu;
    return CTN_OK;
}

static ctn_status measure(rates *r, const photos *p, ctn_dataset *ds, int threads)
{
    const double n = (double)p->n * EPOCHS;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        double s = 0, cpu = 0;
        CTN_TRY(load(ds, threads, round, &s, &cpu));
        keep_least(&r->loaded, s / n);
        keep_least(&r->loaded_cpu, cpu / n);
        CTN_TRY(decode(p, threads, &s, &cpu));
        keep_least(&r->decoded, s / n);
        keep_least(&r->decoded_cpu, cpu / n);
    }
    return CTN_OK;
}

static void print(const args *a, const rates *r, int64_t n, int threads)
{
    if (args_flag(a, "json")) {
        json j = {0};
        json_open(&j, NULL, '{');
        json_int(&j, "threads", threads);
        json_int(&j, "items", n);
        json_real(&j, "items_per_s", 1 / r->loaded);
        json_real(&j, "decode_only_items_per_s", 1 / r->decoded);
        json_real(&j, "cpu_ms_per_item", 1e3 * r->loaded_cpu);
        json_real(&j, "decode_only_cpu_ms_per_item", 1e3 * r->decoded_cpu);
        json_close(&j, '}');
        return;
    }
    say(stdout,
        "%lld photos, %d thread%s\n"
        "  loaded as 224 px crops  %8.1f /s, %.3f ms of CPU each\n"
        "  decoded only, full size %8.1f /s, %.3f ms of CPU each\n"
        "  ratio                   %8.2f\n",
        (long long)n, threads, threads == 1 ? "" : "s", 1 / r->loaded, 1e3 * r->loaded_cpu,
        1 / r->decoded, 1e3 * r->decoded_cpu, r->decoded / r->loaded);
}

int bench_loader(const args *a)
{
    if (!args_text(a, "data")[0]) {
        say(stderr, "catena bench loader: --data must name a folder of photos\n");
        return EXIT_USAGE;
    }
    ctn_status st = CTN_OK;
    photos p = {0};
    ctn_dataset *ds = NULL;
    rates r = {0};
    int threads = (int)args_int(a, "threads");
    if (threads == 0) threads = 1;
    CTN_TRY_GOTO(st, done, photos_read(&p, args_text(a, "data")));
    CTN_TRY_GOTO(st, done, ctn_dataset_new(&ds, &held, &p));
    CTN_TRY_GOTO(st, done, measure(&r, &p, ds, threads));
    print(a, &r, p.n, threads);
done:
    ctn_dataset_free(ds);
    photos_free(&p);
    return st < 0 ? report_failure("bench loader", DOING_DATA) : EXIT_DONE;
}
