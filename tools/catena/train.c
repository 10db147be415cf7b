/* SPDX-License-Identifier: Apache-2.0
 *
 * catena train: trains a network on data and writes a result folder. After SIGTERM, SIGUSR1 or
 * SIGINT, training stops at the end of the current step, saves its state and exits with code 85,
 * so that a queue can run the same command again with --resume. If that step was the last one,
 * training is complete and the exit code is 0.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <catena/info.h>

#include "child.h"
#include "finetune.h"
#include "memory.h"
#include "training.h"
#include "watchdog/watchdog.h"

/* ---- signals --------------------------------------------------------------------------------- */

static ctn_trainer *running; /* the trainer that the signal handler stops */
static volatile sig_atomic_t caught;
static char answer[3][160]; /* what rank 0 prints immediately, one for each of `stops` */
static int listener = STDERR_FILENO;
static long mpirun; /* the process that kills us soon after SIGTERM; 0: there is none */
static const struct {
    int number;
    const char *name;
} stops[] = {{SIGTERM, "SIGTERM"}, {SIGUSR1, "SIGUSR1"}, {SIGINT, "SIGINT"}};
enum { STOPS = sizeof stops / sizeof *stops };

static void on_signal(int number)
{
    /* Launchers end the other ranks of a broken job. The error has already been printed. */
    if (number != SIGUSR1 && watchdog_code()) _exit(watchdog_code());
    for (int i = 0; i < STOPS; i++) {
        if (stops[i].number != number) continue;
        if (!caught && log_rank == 0 && write(listener, answer[i], strlen(answer[i])) < 0)
            answer[i][0] = 0; /* nobody can read it */
        if (running) ctn_trainer_stop(running, stops[i].name);
    }
    caught = number;
}

bool stop_asked(void)
{
    return caught != 0;
}

/* Whether a process is `catena launch`, which lets the ranks save before mpirun kills them. */
static bool is_launch(pid_t p)
{
    char path[64], text[4096] = "";
    snprintf(path, sizeof path, "/proc/%ld/cmdline", (long)p);
    FILE *f = fopen(path, "r");
    const size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f) fclose(f);
    const char *second = text + strlen(text) + 1;
    return second < text + n && strstr(text, "catena") && strcmp(second, "launch") == 0;
}

/* The process that started us if it is Open MPI's mpirun on this host, else 0. After SIGTERM or
 * SIGINT it kills its ranks within a quarter of a second. It passes SIGUSR1 on. */
static long hasty_mpirun(void)
{
    char path[64], name[32] = "";
    if (!getenv("OMPI_COMM_WORLD_RANK")) return 0;
    snprintf(path, sizeof path, "/proc/%ld/comm", (long)getppid());
    FILE *f = fopen(path, "r");
    if (f && !fgets(name, sizeof name, f)) name[0] = 0;
    if (f) fclose(f);
    const bool is = strncmp(name, "mpirun", 6) == 0 || strncmp(name, "mpiexec", 7) == 0 ||
                    strncmp(name, "prterun", 7) == 0;
    return is && !is_launch(child_parent(getppid())) ? (long)getppid() : 0;
}

static void prepare_answers(void)
{
    if (answer[0][0]) return;
    mpirun = hasty_mpirun();
    const int terminal = mpirun ? open("/dev/tty", O_WRONLY | O_NOCTTY | O_CLOEXEC) : -1;
    if (terminal >= 0) listener = terminal; /* a dying mpirun forwards no output */
    for (int i = 0; i < STOPS; i++) {
        if (mpirun && stops[i].number != SIGUSR1)
            snprintf(answer[i], sizeof answer[i],
                     "catena: %s: this mpirun leaves no time to save the state; to stop and save: "
                     "kill -USR1 %ld\n",
                     stops[i].name, mpirun);
        else
            snprintf(answer[i], sizeof answer[i],
                     "catena: %s: stopping after this step and saving the state\n", stops[i].name);
    }
}

static void tell_how_to_stop(void)
{
    if (mpirun && log_rank == 0)
        log_line("to stop and save: kill -USR1 %ld (after Ctrl-C this mpirun kills its ranks "
                 "immediately)",
                 mpirun);
}

/* In a job this is done before MPI starts, and again afterwards, because some MPI libraries install
 * handlers. A second SIGINT has its default effect. SIGTERM does not, because queues and timeout(1)
 * send it twice, to the process and to its group. The handlers stay installed until the process
 * ends, so a late signal changes nothing. */
static void watch_signals(void)
{
    prepare_answers();
    for (int i = 0; i < STOPS; i++) {
        struct sigaction s = {.sa_handler = on_signal, .sa_flags = (int)SA_RESTART};
        if (stops[i].number == SIGINT) s.sa_flags = (int)(SA_RESTART | SA_RESETHAND);
        sigemptyset(&s.sa_mask);
        sigaction(stops[i].number, &s, NULL);
    }
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Frozen random values are hardly what the user wants. */
static void warn_random(const args *a, const char *weights)
{
    const bool some = args_text(a, "freeze")[0] || args_text(a, "train-only")[0];
    if (log_rank == 0 && some && !weights[0])
        report_warning(NULL, "the frozen parameters keep their random initial values: there is no "
                             "--weights");
}

static ctn_status prepare(training *r, args *a)
{
    task *t = &r->t;
    const char *weights = weights_of(a);
    watchdog_at(AT_DATA, 0);
    CTN_TRY(task_begin(t, a, FOR_TRAINING));
    CTN_TRY(task_data(t));
    CTN_TRY(task_net(t));
    CTN_TRY(task_moments(t));
    CTN_TRY(data_show(t));
    if (weights[0]) CTN_TRY(task_weights(t, weights));
    CTN_TRY(adapters_add(t));
    t->now = DOING_SETUP;
    CTN_TRY(finetune_freeze(a, t->net));
    warn_random(a, weights);
    CTN_TRY(task_loaders(t));
    t->now = DOING_SETUP;
    CTN_TRY(cores_show(a->job, ctn_context_threads(t->ctx), t->loader_threads));
    tell_how_to_stop();
    CTN_TRY(setup_optimizer(r));
    CTN_TRY(setup_metric(r));
    overview_show(r);
    warn_unused(t);
    return setup_trainer(r);
}

static void tell_resumed(training *r, const char *from)
{
    ctn_progress p;
    ctn_trainer_progress(r->trainer, &p);
    r->resumed = true;
    if (log_rank == 0)
        log_line("resuming%s at iteration %lld, epoch %.2f", from, (long long)p.iteration,
                 (double)p.epoch + p.part);
}

static ctn_status resume(training *r)
{
    char state[4096];
    if (r->lives > 0) {
        ctn_status st = ctn_trainer_recall(r->trainer, r->memory);
        if (st == CTN_OK) tell_resumed(r, " from memory");
        if (st != CTN_ENOTFOUND) return st;
        if (log_rank == 0) log_line("%s", ctn_error_message());
        ctn_error_clear();
    }
    if (!args_flag(r->t.a, "resume") && r->lives == 0) return CTN_OK;
    ctn_status st = ctn_trainer_load(r->trainer, join(state, sizeof state, r->out, "state"));
    if (st == CTN_ENOTFOUND) {
        ctn_error_clear();
        if (log_rank == 0) log_line("no saved state in %s: starting from the beginning", r->out);
        return CTN_OK;
    }
    CTN_TRY(st);
    tell_resumed(r, "");
    return CTN_OK;
}

/* All ranks return the same code, because they have taken the same steps. */
static int finish(training *r, ctn_status st)
{
    ctn_progress p;
    if (st < 0) return report_failure("train", r->t.now);
    ctn_trainer_progress(r->trainer, &p);
    const bool done = result_complete(r);
    const char *stopped = done ? NULL : p.complete ? "--hours" : ctn_trainer_stopped(r->trainer);
    result_print(r, stopped);
    if (done) return EXIT_DONE;
    if (log_rank == 0)
        log_line("stopped (%s): the state is saved in %s/state; continue with --resume", stopped,
                 r->out);
    return EXIT_REQUEUE;
}

static void free_training(training *r)
{
    ctn_trainer_free(r->trainer);
    ctn_optim_free(r->optim);
    distribute_end(r);
    task_free(&r->t);
}

/* From the data to the end of the training, or to the loss of a rank. */
static ctn_status live(training *r, args *a)
{
    char file[4096];
    CTN_TRY(prepare(r, a));
    if (a->job->comm) watchdog_file(join(file, sizeof file, r->out, FAILURES));
    CTN_TRY(resume(r));
    CTN_TRY(result_begin(r)); /* after resume: a refused state keeps its files */
    r->t.now = DOING_RUN;
    running = r->trainer;
    if (caught) on_signal(caught);
    ctn_status st = ctn_trainer_run(r->trainer);
    running = NULL;
    watchdog_at(AT_END, -1);
    CTN_TRY(st);
    return result_end(r);
}

/* Whether an error may come from the loss of a rank. MPI does not always say so. */
static bool perhaps_lost(ctn_status st)
{
    return st == CTN_EPEER || st == CTN_EENGINE;
}

static int train(args *a)
{
    training r = {.out = args_text(a, "out")};
    watchdog_stall(args_real(a, "stall-seconds"));
    /* Kernels chosen by timing would differ between runs. */
    if (args_flag(a, "reproducible")) setenv("CATENA_TUNE", "0", 1);
    memory_limit(a->job, args_real(a, "memory-gb"));
    if (a->job->survives && ctn_memory_new(&r.memory) < 0)
        return report_failure("train", DOING_SETUP);
    ctn_status st = live(&r, a);
    while (perhaps_lost(st) && r.memory && survive(a)) {
        free_training(&r);
        r = (training){.out = r.out, .memory = r.memory, .lives = r.lives + 1};
        st = live(&r, a);
    }
    int code = finish(&r, st);
    if (a->job->comm && st < 0) return code; /* freeing is collective, and other ranks are gone */
    ctn_trainer_free(r.trainer);
    ctn_optim_free(r.optim);
    r.trainer = NULL;
    r.optim = NULL;
    if ((code == EXIT_DONE || code == EXIT_REQUEUE) && adapters_write(&r.t, r.out) < 0)
        code = report_failure("train", DOING_RUN);
    free_training(&r);
    ctn_memory_free(r.memory);
    return code;
}

static bool by_flag(const args *a, const char *name)
{
    return a->from[option_find(a->cmd, name, strlen(name))] == FROM_FLAG;
}

/* Resuming on another number of ranks keeps the samples per step, so that steps, the schedule and
 * the order of samples continue unchanged. If they cannot be divided evenly, some ranks have one
 * sample more than others (--total-batch). */
static int keep_step(args *a, const args *saved)
{
    const int64_t ranks = args_int(saved, "ranks"), batch = args_int(saved, "batch");
    const int64_t total =
        args_int(saved, "total-batch") ? args_int(saved, "total-batch") : ranks * batch;
    const int64_t step = total * args_int(saved, "accumulate");
    const int64_t size = a->job->size, accumulate = args_int(a, "accumulate");
    if (step <= 0 || accumulate <= 0) return -1; /* the configuration does not say */
    int64_t now = step / accumulate;
    if (by_flag(a, "batch")) now = args_int(a, "batch") * size;
    if (by_flag(a, "total-batch")) now = args_int(a, "total-batch");
    const int64_t made = now * accumulate, each = (now + size - 1) / size;
    if (made != step || now < size) {
        say(stderr,
            "catena train: %s has %lld samples in a step of all ranks, which cannot change; "
            "%lld ranks with %lld samples x --accumulate %lld have %lld: leave out --batch, or "
            "use another --accumulate or fewer ranks\n",
            args_text(a, "out"), (long long)step, (long long)size, (long long)now,
            (long long)accumulate, (long long)made);
        return EXIT_USAGE;
    }
    divide_step(a, now);
    const int64_t samples = each * accumulate;
    if (ranks != size)
        log_line("resuming on %lld rank%s instead of %lld: a step keeps its %lld samples, %s%lld "
                 "for each rank",
                 (long long)size, size == 1 ? "" : "s", (long long)ranks, (long long)step,
                 now % size ? "up to " : "", (long long)samples);
    return -1;
}

/* Whether a flag has another value than the saved configuration, which has no entry for empty
 * values. *then: that value. */
static bool flag_differs(const args *a, const args *saved, const char *name, const char **then)
{
    const int k = option_find(a->cmd, name, strlen(name));
    const char *def = a->cmd->options[k].def, *now = a->value[k];
    const bool written = saved->from[k] == FROM_CONFIG && saved->value[k];
    if (a->from[k] != FROM_FLAG || (!written && !(def && !def[0]))) return false;
    *then = written ? saved->value[k] : "nothing";
    return strcmp(now, *then) != 0 &&
           !(now[0] && strtod(now, NULL) == strtod(*then, NULL) && strtod(now, NULL) != 0);
}

/* The saved state contains these settings, so a flag with another value would have no effect. */
static int check_resumed(args *a)
{
    static const char *const fixed[] = {"optimizer", "lr",          "momentum",   "decay",
                                        "nesterov",  "seed",        "schedule",   "ema",
                                        "freeze",    "unfreeze-at", "train-only", "loss"};
    char path[4096];
    const char *then = NULL;
    args saved = {.cmd = a->cmd};
    join(path, sizeof path, args_text(a, "out"), "config.yaml");
    if (!args_flag(a, "resume") || !is_found(path)) return -1;
    int code = config_read(&saved, path, FROM_CONFIG);
    for (size_t i = 0; code < 0 && i < sizeof fixed / sizeof *fixed; i++) {
        if (!flag_differs(a, &saved, fixed[i], &then)) continue;
        say(stderr,
            "catena train: --%s is %s, but %s was started with %s, which is part of the saved "
            "state: remove the option, or start a new training with --weights\n",
            fixed[i], args_text(a, fixed[i]), args_text(a, "out"), then);
        code = EXIT_USAGE;
    }
    if (code < 0) code = keep_step(a, &saved);
    args_free(&saved);
    return code;
}

/* Whether all numbers are possible ones; otherwise says which is not. Empty: the usual one. */
static bool numbers_fit(const args *a)
{
    enum { AT_LEAST_0, ABOVE_0, SHARE };
    static const char *const expected[] = {"of at least 0", "above 0", "from 0 to below 1"};
    static const struct {
        const char *name;
        int range;
    } table[] = {
        {"lr", ABOVE_0},
        {"momentum", SHARE},
        {"decay", AT_LEAST_0},
        {"clip", AT_LEAST_0},
        {"clip-value", AT_LEAST_0},
        {"lasso", AT_LEAST_0},
        {"warmup", AT_LEAST_0},
        {"every", ABOVE_0},
        {"gamma", ABOVE_0},
        {"power", ABOVE_0},
        {"lr-end", AT_LEAST_0},
        {"hours", AT_LEAST_0},
        {"val-share", SHARE},
        {"skip", SHARE},
        {"mask-share", SHARE},
        {"smoothing", SHARE},
        {"jitter", AT_LEAST_0},
        {"magnitude", AT_LEAST_0},
        {"mixup", AT_LEAST_0},
        {"dropout", SHARE},
        {"cutmix", AT_LEAST_0},
        {"ema", SHARE},
        {"spike", AT_LEAST_0},
        {"rewind-factor", ABOVE_0},
        {"save-minutes", AT_LEAST_0},
        {"save-share", AT_LEAST_0},
        {"bucket-mb", AT_LEAST_0},
        {"memory-gb", AT_LEAST_0},
        {"mtbf", ABOVE_0},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const char *name = table[i].name;
        const double x = args_real(a, name);
        const int range = table[i].range;
        const bool fits = range == ABOVE_0 ? x > 0 : x >= 0 && (range != SHARE || x < 1);
        if (fits || !args_text(a, name)[0]) continue;
        say(stderr, "catena train: --%s is %g, expected a number %s\n", name, x, expected[range]);
        return false;
    }
    return true;
}

/* The same bits on any number of ranks: what the options must be for that. */
static int check_reproducible(args *a)
{
    const char *not = args_flag(a, "shard")             ? "--shard"
                      : args_flag(a, "sync-batch-norm") ? "--sync-batch-norm"
                      : args_int(a, "accumulate") > 1   ? "--accumulate"
                      : !args_is(a, "wire", "f32")      ? "--wire"
                                                        : NULL;
    const int64_t total = args_int(a, "total-batch"), blocks = args_int(a, "blocks");
    if (!args_flag(a, "reproducible")) return -1;
    if (not) say(stderr, "catena train: --reproducible cannot be combined with %s\n", not);
    else if (total <= 0)
        say(stderr, "catena train: --reproducible needs --total-batch, the samples of all ranks "
                    "in a step\n");
    else if (blocks < a->job->size || blocks > total)
        say(stderr,
            "catena train: --blocks is %lld, it must be from the number of ranks (%d) to "
            "--total-batch (%lld)\n",
            (long long)blocks, a->job->size, (long long)total);
    else {
        args_settle(a, "threads", "1"); /* kernels divide their sums among threads */
        return -1;
    }
    return EXIT_USAGE;
}

/* Refuses to train if nothing could be saved at the end. */
static int check_build(void)
{
    ctn_build_entry b;
    for (int i = 0; i < ctn_build_count(); i++) {
        if (ctn_build_get(i, &b) < 0 || strcmp(b.name, "yyjson") != 0 || b.value[0]) continue;
        say(stderr, "catena train: this build is without yyjson and cannot save a training: "
                    "install yyjson (Debian: libyyjson-dev), then configure and build again\n");
        return EXIT_ENVIRONMENT;
    }
    return -1;
}

/* Rank 0 checks the settings and the result folder for all ranks. */
static int check(args *a)
{
    int code = check_build();
    if (code < 0) code = check_resumed(a);
    if (code >= 0) return code;
    args_settle(a, "ranks", "%d", a->job->size);
    bool other_end = args_int(a, "iterations") > 0 || args_real(a, "hours") > 0;
    if (other_end && !args_given(a, "epochs")) args_settle(a, "epochs", "0");
    if (!numbers_fit(a)) return EXIT_USAGE;
    if (args_int(a, "epochs") == 0 && args_int(a, "iterations") == 0 &&
        args_real(a, "hours") <= 0) {
        say(stderr, "catena train: set a limit: --epochs, --iterations or --hours\n");
        return EXIT_USAGE;
    }
    if (args_int(a, "lora") > 0 && (args_flag(a, "shard") || args_real(a, "ema") > 0)) {
        say(stderr, "catena train: --lora cannot be combined with --shard or --ema\n");
        return EXIT_USAGE;
    }
    if (args_is(a, "precision", "f64") && (args_flag(a, "shard") || args_flag(a, "reproducible"))) {
        say(stderr, "catena train: --precision f64 cannot be combined with --shard or "
                    "--reproducible\n");
        return EXIT_USAGE;
    }
    if (!finetune_possible(a)) return EXIT_USAGE;
    code = check_reproducible(a);
    return code >= 0 ? code : result_check(a);
}

static int run(args *a)
{
    watch_signals(); /* first of all: reading data can take long, and no signal may be lost */
    int code = launch_share(a->job, a, a->job->rank == 0 ? check(a) : -1);
    if (code < 0) code = cores_divide(a->job, a);
    if (code < 0) code = check_threads(a);
    if (code < 0) {
        log_stamped = true;
        code = train(a);
        result_mark(a, code);
    }
    folder_release(code == EXIT_DONE);
    return code;
}

static const option options[] = {
    {"model", "NAME", "", "the network; only in configuration files, instead of NETWORK",
     GROUP_CONFIG},
    TASK_DATA_OPTIONS,
    {"val", "PATH", "", "validation data (default for MNIST, CIFAR and SVHN: their test images)",
     GROUP_COMMON},
    {"val-target", "PATH", "", "arrays: the targets of --val", GROUP_DATA},
    {"val-share", "X", "0", "share of the training data used for validation, without --val",
     GROUP_DATA},
    {"augment", "auto|none|pad-crop|random-crop", "auto",
     "augmentation of training images; auto: pad-crop for CIFAR and SVHN, else random-crop; both "
     "also flip half of the images, except those of SVHN",
     GROUP_DATA},
    {"image-sizes", "N,...", "",
     "sizes of training images, one drawn every --size-every batches (default: --size only)",
     GROUP_DATA},
    {"size-every", "N", "10", "batches after which another one of --image-sizes is drawn",
     GROUP_DATA},
    {"jitter", "X", "0", "strength of random brightness, contrast and saturation changes",
     GROUP_DATA},
    {"randaugment", "N", "0", "number of RandAugment operations per image; 0: off", GROUP_DATA},
    {"magnitude", "X", "9", "strength of RandAugment, 0 to 30", GROUP_DATA},
    {"mixup", "X", "0", "alpha of mixup; 0: off", GROUP_DATA},
    {"cutmix", "X", "0", "alpha of cutmix; 0: off", GROUP_DATA},
    {"drop-last", NULL, NULL, "drop the incomplete batch at the end of an epoch", GROUP_DATA},
    TASK_NET_OPTIONS,
    {"ranks", "N", "0", "number of ranks that --batch is for; only in configuration files",
     GROUP_CONFIG},
    {"weights", "FILE", "",
     "initial weights: a safetensors file or a checkpoint of PyTorch; a last layer with another "
     "number of classes than in the file keeps its random values",
     GROUP_NETWORK},
    FREEZE_OPTIONS(GROUP_NETWORK),
    {"unfreeze-at", "N", "0",
     "number of epochs after which everything that --freeze and --train-only have frozen is "
     "trained; 0: never",
     GROUP_NETWORK},
    {"lr-scale", "PATTERN=X", "",
     "factor of the learning rate for some parameters, such as layer4=0.1; several are separated "
     "by commas",
     GROUP_NETWORK},
    {"lora", "N", "0",
     "rank of low-rank adapters in all linear layers: only they are trained, and written to "
     "adapters.safetensors; 0: train all weights",
     GROUP_NETWORK},
    {"lora-base", "f32|bf16", "f32",
     "type in which the frozen weights under the adapters are stored; bf16 rounds them and halves "
     "their memory",
     GROUP_NETWORK},
    {"model-hash", "HASH", "", "hash of your own network's file; only in configuration files",
     GROUP_CONFIG},
    {"optimizer",
     "auto|sgd|lars|adam|adamw|adamax|nadam|radam|rmsprop|adagrad|adadelta|lion|lamb|adabound|"
     "amsbound|smorms3|msvag|adafactor",
     "auto", "optimizer; auto: sgd for image networks, adamw for gpt, else adam", GROUP_COMMON},
    {"lr", "X", "",
     "learning rate (default: for sgd and lars 0.1 per 256 samples of a step, 0.001 for adam and "
     "most others)",
     GROUP_COMMON},
    {"momentum", "X", "0.9", "momentum of sgd and lars", GROUP_OPTIMISATION},
    {"decay", "X", "",
     "weight decay (default: 5e-4 for sgd and lars, 0.01 for adamw, lamb and lion, else 0)",
     GROUP_OPTIMISATION},
    {"nesterov", NULL, NULL, "Nesterov momentum for sgd", GROUP_OPTIMISATION},
    {"schedule",
     "constant|step|multistep|exponential|inverse|polynomial|linear|cosine|one-cycle|plateau",
     "constant", "learning-rate schedule", GROUP_SCHEDULE},
    {"warmup", "X", "0", "warm-up epochs, in which the learning rate rises from 0", GROUP_SCHEDULE},
    {"every", "X", "30", "step: epochs between changes of the learning rate", GROUP_SCHEDULE},
    {"milestones", "E,...", "", "multistep: epochs at which the learning rate changes",
     GROUP_SCHEDULE},
    {"gamma", "X", "0.1",
     "factor of step, multistep and plateau; factor per epoch of exponential and inverse",
     GROUP_SCHEDULE},
    {"power", "X", "1", "exponent of polynomial and inverse", GROUP_SCHEDULE},
    {"lr-end", "X", "0", "linear, cosine, polynomial: final learning rate as a fraction of --lr",
     GROUP_SCHEDULE},
    {"patience", "N", "10", "plateau: epochs without improvement before the learning rate changes",
     GROUP_SCHEDULE},
    {"epochs", "N", "10", "maximum number of epochs; 0: unlimited (needs --iterations or --hours)",
     GROUP_COMMON},
    {"iterations", "N", "0", "maximum number of steps; 0: unlimited", GROUP_OPTIMISATION},
    {"hours", "X", "0",
     "maximum wall time of this run in hours; 0: unlimited. What --epochs or "
     "--iterations leaves over is for another run with --resume",
     GROUP_OPTIMISATION},
    {"total-batch", "N", "0",
     "samples of all ranks in a batch, divided among them; 0: ranks x --batch", GROUP_OPTIMISATION},
    {"accumulate", "N", "1", "batches per optimizer step (gradient accumulation)",
     GROUP_OPTIMISATION},
    {"reproducible", NULL, NULL,
     "the same bits on any number of ranks and threads: each step of --total-batch samples is "
     "computed in --blocks and summed exactly, with one compute thread per rank",
     GROUP_OPTIMISATION},
    {"blocks", "N", "16", "--reproducible: blocks of a step; at least the number of ranks",
     GROUP_OPTIMISATION},
    {"clip", "X", "0", "maximum gradient norm (clipping); 0: off", GROUP_OPTIMISATION},
    {"clip-value", "X", "0", "maximum absolute value of a gradient (clipping); 0: off",
     GROUP_OPTIMISATION},
    {"lasso", "X", "0", "L1 decay: a constant pull of every parameter towards 0; 0: off",
     GROUP_OPTIMISATION},
    {"recompute", NULL, NULL, "recompute blocks in the backward pass: less memory, more time",
     GROUP_PRECISION},
    {"ema", "X", "0",
     "decay of a moving average of the weights, used for evaluation, such as 0.999; 0: off",
     GROUP_OPTIMISATION},
    {"early-stop", "N", "0", "epochs without improvement after which training stops; 0: never",
     GROUP_OPTIMISATION},
    {"metric", "NAMES", "",
     "metrics of the validation data, the first of which selects the best weights: loss, accuracy, "
     "f1, precision, recall, auc, f1_macro, f1_micro, miou, r2, mae, rmse and so on (default: "
     "accuracy or loss); those of your own with :min or :max, which says what is better",
     GROUP_OPTIMISATION},
    {"on-nonfinite", "stop|skip|rewind", "stop",
     "what to do if the loss or a gradient is infinite or NaN: stop, skip the step, or rewind to "
     "the last checkpoint with a smaller learning rate",
     GROUP_OPTIMISATION},
    {"rewind-factor", "X", "0.5", "factor of the learning rate at each rewind", GROUP_OPTIMISATION},
    {"max-rewinds", "N", "3", "rewinds after which training stops with an error",
     GROUP_OPTIMISATION},
    {"spike", "X", "10",
     "report losses that exceed their running mean by X deviations; 0: report none",
     GROUP_OPTIMISATION},
    TASK_RUN_OPTIONS,
    {"out", "DIR", "result", "result folder", GROUP_COMMON},
    {"save-minutes", "X", "0",
     "minutes between checkpoints; 0: one at the end of every epoch, at most every 5 seconds",
     GROUP_OUTPUT},
    {"save-iterations", "N", "0", "steps between checkpoints, instead of --save-minutes",
     GROUP_OUTPUT},
    {"save-share", "X", "0",
     "percent of the time that saving may take: checkpoints as often as that allows, instead of "
     "--save-minutes",
     GROUP_OUTPUT},
    {"mtbf", "HOURS", "24",
     "mean time between failures of a job, for the checkpoint interval suggested at the end",
     GROUP_OUTPUT},
    {"log-iterations", "N", "0", "steps between log lines; 0: one line per epoch", GROUP_OUTPUT},
    {"eval-iterations", "N", "0", "steps between evaluations; 0: one per epoch", GROUP_OUTPUT},
    {"tensorboard", NULL, NULL, "TensorBoard event files in the folder tensorboard of --out",
     GROUP_OUTPUT},
    {"config", "FILE", "", "YAML file whose keys are the names of these options", GROUP_CONFIG},
    {"resume", NULL, NULL, "resume from the checkpoint in the result folder, with its config.yaml",
     GROUP_COMMON},
    {"force", NULL, NULL, "use a result folder that is not empty", GROUP_OUTPUT},
    {"allreduce", "auto|flat|ring|rabenseifner|hierarchical|torus|rsap|doubling", "auto",
     "algorithm that sums gradients over ranks; auto: the fastest, by measurement", GROUP_RANKS},
    {"wire", "f32|bf16|f16", "f32", "type in which gradients are sent over the network",
     GROUP_RANKS},
    {"bucket-mb", "X", "0", "bucket size for the gradient exchange in MB; 0: automatic",
     GROUP_RANKS},
    {"shard", NULL, NULL, "sharding of the optimizer state: each rank keeps only its part",
     GROUP_RANKS},
    {"progress", "auto|polls|thread", "auto", "what drives the gradient exchange while kernels run",
     GROUP_RANKS},
    {"sync-batch-norm", NULL, NULL,
     "batch-normalisation statistics over all ranks; implies --drop-last", GROUP_RANKS},
    TIMELINE_OPTIONS,
    LAUNCH_OPTIONS,
    {"quiet", NULL, NULL, "no progress output", GROUP_OUTPUT},
    {"json", NULL, NULL, "print the final values as one JSON object", GROUP_OUTPUT},
    {0},
};

_Static_assert(sizeof options / sizeof *options <= MAX_OPTIONS, "args has no room for all options");

const command cmd_train = {
    .name = "train",
    .operands = "NETWORK",
    .summary = "Train a network on data and write everything about the run to a folder.",
    .words = ctn_zoo_names,
    .options = options,
    .examples =
        "  catena train mlp --data mnist --epochs 20 --out digits\n"
        "  catena train resnet20_cifar --data cifar-10-batches-bin --epochs 30 "
        "--schedule one-cycle\n"
        "  catena train resnet50 --data imagenet --precision bf16 --schedule cosine --warmup 5\n"
        "  catena train resnet50 --data 'shards/train-{000..146}.tar' --val shards/val.tar\n"
        "  catena train resnet50 --weights resnet50.safetensors --train-only fc --data photos\n"
        "  catena train unet --data x.npy --target y.npy --loss mse --val-share 0.1\n"
        "  catena train fno --data x.npy --target y.npy --loss relative-l2 --modes 16\n"
        "  catena train mlp --data run.h5:/state --target run.h5:/flux --hidden 256,256\n"
        "  catena train gpt --data input.txt --val-share 0.1 --length 128 --iterations 2000\n"
        "  catena train ./mymodel.so --data mnist      a network of your own\n"
        "  catena train model.onnx --data photos       fine-tune a model in ONNX format\n"
        "  catena train --resume --out digits          resume after a stop\n"
        "  catena train --config digits/config.yaml --out again\n"
        "  mpirun -np 4 catena train mlp --data mnist --out digits      the same on four ranks\n"
        "  srun --mpi=pmix catena train resnet50 --data imagenet --shard\n",
    .run = run,
    .prepare = watch_signals,
    .paths = OWN_NETWORK,
    .ranks = RANKS_JOB,
    .configure = " config resume force quiet json ",
};
