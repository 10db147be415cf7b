/* SPDX-License-Identifier: Apache-2.0
 *
 * checkpoint FOLDER [ROUNDS]: how long saving a state holds up a training, how fast it is written,
 * and how much memory that takes. The state is that of ResNet-50 with momentum, between steps that
 * only update it. Prints JSON: bytes of the state; mean and longest pause, and the time of one
 * memcpy of as many bytes; for each round the seconds to save a state and wait for it, and those to
 * write and sync a plain file of as many bytes; the peak of memory without saving, and by how much
 * saving raises it.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <catena/catena.h>

#define TRY(call)                                                     \
    do {                                                              \
        if ((call) < 0) {                                             \
            fprintf(stderr, "checkpoint: %s\n", ctn_error_message()); \
            exit(1);                                                  \
        }                                                             \
    } while (0)

enum { EVERY = 200, ROUNDS_MOST = 100, CHUNK = 1 << 20 }; /* EVERY: steps between two states */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Touches one weight only. */
static ctn_tensor *loss(void *self, ctn_step *s)
{
    const ctn_vars *v = self;
    (void)s;
    return ctn_mean(ctn_use(v->var[0]), CTN_ALL_AXES, 0);
}

/* The best of five copies. */
static double copy_seconds(size_t bytes)
{
    char *a = malloc(bytes), *b = malloc(bytes);
    double best = 1e9;
    if (!a || !b) exit(1);
    memset(a, 1, bytes);
    memset(b, 2, bytes);
    for (int k = 0; k < 5; k++) {
        const double t = now();
        memcpy(b, a, bytes);
        const double took = now() - t;
        if (took < best) best = took;
    }
    free(a);
    free(b);
    return best;
}

/* Like dd bs=1M conv=fsync. The file is removed afterwards. */
static double write_seconds(const char *folder, size_t bytes)
{
    static char chunk[CHUNK];
    char path[4096];
    snprintf(path, sizeof path, "%s/plain", folder);
    memset(chunk, 1, sizeof chunk);
    const double t = now();
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (fd < 0) exit(1);
    for (size_t at = 0; at < bytes; at += CHUNK)
        if (write(fd, chunk, bytes - at < CHUNK ? bytes - at : CHUNK) < 0) exit(1);
    if (fsync(fd) != 0) exit(1);
    const double took = now() - t;
    close(fd);
    unlink(path);
    return took;
}

static double peak_mb(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)use.ru_maxrss * 1024e-6;
}

static size_t state_bytes(const char *folder)
{
    char path[4096];
    struct stat info = {0};
    for (int i = 0; i < 1000 && info.st_size == 0; i++) {
        snprintf(path, sizeof path, "%s/state/%09d/state.safetensors", folder, i);
        if (stat(path, &info) != 0) info.st_size = 0;
    }
    return (size_t)info.st_size;
}

typedef struct {
    ctn_module *net;
    ctn_vars vars;
    ctn_optim *optim;
    ctn_loader *loader;
} setup;

static void make_setup(setup *s)
{
    static float x[1];
    const ctn_field field = {.dtype = CTN_F32, .ndim = 1, .shape = {1}};
    ctn_context *ctx = NULL;
    ctn_dataset *data = NULL;
    ctn_sampler *order = NULL;
    TRY(ctn_context_new(&ctx, NULL));
    TRY(ctn_zoo_resnet(&s->net, ctx, CTN_OPT(ctn_resnet_opt, .depth = 50)));
    s->vars = ctn_params(s->net);
    TRY(ctn_sgd_new(&s->optim, s->vars, CTN_OPT(ctn_sgd_opt, .lr = 0.01, .momentum = 0.9)));
    TRY(ctn_arrays_open(&data, 1, 1, &field, (const void *const[]){x}));
    TRY(ctn_sampler_sequential(&order, 1));
    TRY(ctn_loader_new(&s->loader, data, order, CTN_OPT(ctn_loader_opt, .batch = 1)));
}

static ctn_trainer *make_trainer(setup *s, const char *folder, int64_t iterations)
{
    ctn_trainer *tr = NULL;
    TRY(ctn_trainer_new(&tr, s->optim, s->loader, loss, &s->vars,
                        CTN_OPT(ctn_trainer_opt, .net = s->net, .iterations = iterations,
                                .out = folder)));
    return tr;
}

static void print_list(const char *name, const double *value, int n)
{
    printf("\"%s\": [", name);
    for (int i = 0; i < n; i++) printf("%s%.4f", i ? ", " : "", value[i]);
    printf("], ");
}

int main(int argc, char **argv)
{
    const int rounds = argc > 2 ? atoi(argv[2]) : 5;
    double save[ROUNDS_MOST], plain[ROUNDS_MOST];
    char path[4096];
    setup s;
    ctn_progress p = {0};
    if (argc < 2 || rounds < 1 || rounds > ROUNDS_MOST)
        return fprintf(stderr, "checkpoint FOLDER [ROUNDS]\n"), 2;
    make_setup(&s);
    ctn_trainer *tr = make_trainer(&s, argv[1], 3);
    TRY(ctn_trainer_run(tr));
    ctn_trainer_free(tr);
    const double before = peak_mb();
    tr = make_trainer(&s, argv[1], (int64_t)rounds * EVERY + EVERY / 2);
    TRY(ctn_extend_state(tr, CTN_TRIGGER(CTN_EVERY_ITERATIONS, .n = EVERY)));
    TRY(ctn_trainer_run(tr));
    ctn_trainer_progress(tr, &p);
    const double after = peak_mb();
    const size_t bytes = state_bytes(argv[1]);
    snprintf(path, sizeof path, "%s/state", argv[1]);
    for (int i = 0; i < rounds; i++) {
        const double t = now();
        TRY(ctn_trainer_save(tr, path));
        save[i] = now() - t;
        plain[i] = write_seconds(argv[1], bytes);
    }
    printf("{");
    print_list("save_s", save, rounds);
    print_list("write_s", plain, rounds);
    printf("\"bytes\": %zu, \"pause_ms\": %.2f, \"longest_ms\": %.2f, \"copy_ms\": %.2f, "
           "\"peak_mb\": %.1f, \"extra_mb\": %.1f}\n",
           bytes, p.pauses_s / rounds * 1e3, p.pause_s * 1e3, copy_seconds(bytes) * 1e3, before,
           after - before);
    return 0;
}
