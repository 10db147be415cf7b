/* SPDX-License-Identifier: Apache-2.0
 *
 * catena train: a network, data, a result folder. SIGTERM, SIGUSR1 and SIGINT end the training after the
 * step that runs: the state is saved and the exit code is 85, so that a queue may run the same command
 * again with --resume. If that step was the last one, the training is complete and the exit code is 0.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory.h"
#include "training.h"
#include "watchdog.h"

/* ---- signals ---------------------------------------------------------------------------------------- */

static ctn_trainer *running; /* what the handler stops */
static volatile sig_atomic_t caught;
static char answer[3][160]; /* what rank 0 says at once to each of stops */
static int listener = STDERR_FILENO;
static long mpirun; /* the process that kills us soon after SIGTERM; 0: there is none */
static const struct {
    int number;
    const char *name;
} stops[] = {{SIGTERM, "SIGTERM"}, {SIGUSR1, "SIGUSR1"}, {SIGINT, "SIGINT"}};
enum { STOPS = sizeof stops / sizeof *stops };

static void on_signal(int number)
{
    /* Launchers end the other ranks of a broken job; the line that says why is written already. */
    if (number != SIGUSR1 && watchdog_code()) _exit(watchdog_code());
    for (int i = 0; i < STOPS; i++) {
        if (stops[i].number != number) continue;
        if (!caught && log_rank == 0 && write(listener, answer[i], strlen(answer[i])) < 0)
            answer[i][0] = 0; /* nobody listens */
        if (running) ctn_trainer_stop(running, stops[i].name);
    }
    caught = number;
}

bool stop_asked(void)
{
    return caught != 0;
}

/* The mpirun that started us, if it is Open MPI's and runs on this host, else 0. After SIGTERM or SIGINT it kills its ranks within a quarter
 * of a second. It passes SIGUSR1 on. */
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
    return is ? (long)getppid() : 0;
}

static void prepare_answers(void)
{
    mpirun = hasty_mpirun();
    const int terminal = mpirun ? open("/dev/tty", O_WRONLY | O_NOCTTY | O_CLOEXEC) : -1;
    if (terminal >= 0) listener = terminal; /* mpirun passes nothing on once it ends */
    for (int i = 0; i < STOPS; i++) {
        if (mpirun && stops[i].number != SIGUSR1)
            snprintf(answer[i], sizeof answer[i],
                     "catena: %s: this mpirun leaves no time to save the state; to stop and save: "
                     "kill -USR1 %ld\n",
                     stops[i].name, mpirun);
        else
            snprintf(answer[i], sizeof answer[i],
                     "catena: %s: ending after this step, the state is saved\n", stops[i].name);
    }
}

static void tell_how_to_stop(void)
{
    if (mpirun && log_rank == 0)
        log_line("to stop and save: kill -USR1 %ld (Ctrl-C lets this mpirun end its ranks at once)",
                 mpirun);
}

/* A second SIGINT does what it always does; queues and timeout(1) send SIGTERM twice, to a process and to its
 * group. To the end of the process: a signal that comes when all is done changes nothing. */
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

/* ---- the command -------------------------------------------------------------------------------------- */

static ctn_status prepare(training *r, args *a)
{
    task *t = &r->t;
    const char *weights = args_text(a, "weights");
    watchdog_at(AT_DATA, 0);
    CTN_TRY(task_begin(t, a, FOR_TRAINING));
    CTN_TRY(task_data(t));
    CTN_TRY(task_net(t));
    CTN_TRY(task_moments(t));
    if (weights[0]) CTN_TRY(task_weights(t, weights));
    CTN_TRY(task_loaders(t));
    t->now = DOING_SETUP;
    CTN_TRY(cores_show(a->job, ctn_context_threads(t->ctx), t->loader_threads));
    tell_how_to_stop();
    CTN_TRY(setup_optimizer(r));
    warn_unused(t);
    return setup_trainer(r);
}

static ctn_status resume(training *r)
{
    char state[4096];
    if (!args_flag(r->t.a, "resume")) return CTN_OK;
    ctn_status st = ctn_trainer_load(r->trainer, join(state, sizeof state, r->out, "state"));
    if (st == CTN_ENOTFOUND) {
        ctn_error_clear();
        if (log_rank == 0) log_line("no state in %s yet: starting at the beginning", r->out);
        return CTN_OK;
    }
    CTN_TRY(st);
    ctn_progress p;
    ctn_trainer_progress(r->trainer, &p);
    r->resumed = true;
    if (log_rank == 0)
        log_line("resuming at iteration %lld, epoch %.2f", (long long)p.iteration,
                 (double)p.epoch + p.part);
    return CTN_OK;
}

/* All ranks come to the same code: they have taken the same steps. */
static int finish(training *r, ctn_status st)
{
    ctn_progress p;
    if (st < 0) return report_failure("train", r->t.now);
    ctn_trainer_progress(r->trainer, &p);
    const char *stopped = p.complete ? NULL : ctn_trainer_stopped(r->trainer);
    result_print(r, stopped);
    if (p.complete) return EXIT_DONE;
    if (log_rank == 0)
        log_line("stopped (%s): the state is in %s/state; go on with --resume", stopped, r->out);
    return EXIT_REQUEUE;
}

static int train(args *a)
{
    training r = {.out = args_text(a, "out")};
    watchdog_stall(args_real(a, "stall-seconds"));
    memory_limit(a->job, args_real(a, "memory-gb"));
    ctn_status st = prepare(&r, a);
    char file[4096];
    if (st >= 0 && a->job->comm) watchdog_file(join(file, sizeof file, r.out, "failures.txt"));
    if (st >= 0) st = resume(&r);
    if (st >= 0) st = result_begin(&r); /* a state that was refused keeps its files */
    if (st >= 0) {
        r.t.now = DOING_RUN;
        running = r.trainer;
        if (caught) on_signal(caught);
        st = ctn_trainer_run(r.trainer);
        running = NULL;
    }
    watchdog_at(AT_END, -1);
    if (st >= 0) st = result_end(&r);
    int code = finish(&r, st);
    if (a->job->comm && st < 0) return code; /* the others do not take part in freeing */
    ctn_trainer_free(r.trainer);
    ctn_optim_free(r.optim);
    distribute_end(&r);
    task_free(&r.t);
    return code;
}

static bool by_flag(const args *a, const char *name)
{
    return a->from[option_find(a->cmd, name, strlen(name))] == FROM_FLAG;
}

/* On another number of ranks a step keeps its samples: each rank takes a larger or smaller batch, so that steps, schedule
 * and the order of samples go on as before. */
static int keep_step(args *a, const args *saved)
{
    const int64_t ranks = args_int(saved, "ranks"), batch = args_int(saved, "batch");
    const int64_t most = args_int(saved, "accumulate"), step = ranks * batch * most;
    const int64_t size = a->job->size, n = size * args_int(a, "accumulate");
    if (step <= 0 || n <= 0) return -1; /* it does not say */
    const int64_t now = by_flag(a, "batch") ? args_int(a, "batch") : step / n, made = now * n;
    if (made != step) {
        fprintf(
            stderr,
            "catena train: %s has %lld samples in a step (%lld ranks x --batch %lld x --accumulate "
            "%lld), which must stay so; %lld ranks x --batch %lld x --accumulate %lld are %lld: use a "
            "number of ranks that divides %lld, or another --accumulate\n",
            args_text(a, "out"), (long long)step, (long long)ranks, (long long)batch,
            (long long)most, (long long)size, (long long)now, (long long)args_int(a, "accumulate"),
            (long long)made, (long long)step);
        return EXIT_USAGE;
    }
    args_settle(a, "batch", "%lld", (long long)now);
    if (ranks != size)
        log_line(
            "resuming on %lld rank%s after %lld: --batch %lld instead of %lld, so that a step keeps "
            "its %lld samples",
            (long long)size, size == 1 ? "" : "s", (long long)ranks, (long long)now,
            (long long)batch, (long long)step);
    return -1;
}

/* What a training was begun with is in its state: a flag that says something else would be without effect. */
static int check_resumed(args *a)
{
    static const char *const fixed[] = {"optimizer", "lr",   "momentum", "decay",
                                        "nesterov",  "seed", "schedule", "ema"};
    char path[4096];
    args saved = {.cmd = a->cmd};
    join(path, sizeof path, args_text(a, "out"), "config.yaml");
    if (!args_flag(a, "resume") || access(path, R_OK) != 0) return -1;
    int code = config_read(&saved, path, FROM_CONFIG);
    for (size_t i = 0; code < 0 && i < sizeof fixed / sizeof *fixed; i++) {
        const int k = option_find(a->cmd, fixed[i], strlen(fixed[i]));
        if (a->from[k] != FROM_FLAG || saved.from[k] != FROM_CONFIG || !saved.value[k]) continue;
        const char *now = a->value[k], *then = saved.value[k];
        if (strcmp(now, then) == 0 ||
            (now[0] && strtod(now, NULL) == strtod(then, NULL) && strtod(now, NULL) != 0))
            continue;
        fprintf(
            stderr,
            "catena train: --%s is %s, but %s was begun with %s, which is part of its state: leave "
            "it out, or begin anew with --weights\n",
            fixed[i], now, args_text(a, "out"), then);
        code = EXIT_USAGE;
    }
    if (code < 0) code = keep_step(a, &saved);
    args_free(&saved);
    return code;
}

/* What rank 0 finds out about the settings and the result folder. */
static int check(args *a)
{
    int code = check_resumed(a);
    if (code >= 0) return code;
    args_settle(a, "ranks", "%d", a->job->size);
    bool other_end = args_int(a, "iterations") > 0 || args_real(a, "hours") > 0;
    if (other_end && !args_given(a, "epochs")) args_settle(a, "epochs", "0");
    if (args_int(a, "epochs") == 0 && args_int(a, "iterations") == 0 &&
        args_real(a, "hours") <= 0) {
        fprintf(stderr, "catena train: give an end: --epochs, --iterations or --hours\n");
        return EXIT_USAGE;
    }
    return result_check(a);
}

static int run(args *a)
{
    watch_signals(); /* what comes before the loop is remembered: reading data may take its time */
    int code = launch_share(a->job, a, a->job->rank == 0 ? check(a) : -1);
    if (code < 0) code = cores_divide(a->job, a);
    if (code < 0) code = check_threads(a);
    if (code < 0) {
        log_stamped = true;
        code = train(a);
        result_mark(a, code);
    }
    folder_release();
    return code;
}

static const option options[] = {
    {"model", "NAME", "", "key of configuration files: the network, as the first word"},
    TASK_DATA_OPTIONS,
    {"val", "PATH", "", "validation data (default: the test images of MNIST and CIFAR-10)"},
    {"val-target", "PATH", "", "arrays: the targets of --val"},
    {"val-share", "X", "0", "or this share of the training data"},
    {"augment", "auto|none|pad-crop|random-crop", "auto",
     "of training images; auto: pad-crop for CIFAR, random-crop for others; both mirror half of them"},
    {"jitter", "X", "0", "of brightness, contrast and saturation"},
    {"mixup", "X", "0", "alpha of mixup; 0: off"},
    {"cutmix", "X", "0", "alpha of cutmix; 0: off"},
    {"drop-last", NULL, NULL, "leave out the smaller batch at the end of an epoch"},
    TASK_NET_OPTIONS,
    {"ranks", "N", "0", "key of configuration files: the number of ranks that --batch was for"},
    {"weights", "FILE", "", "begin with these weights"},
    {"model-hash", "HASH", "", "key of configuration files: content of a network of your own"},
    {"optimizer", "auto|sgd|adam|adamw", "auto",
     "auto: sgd for networks of images, adamw for gpt, else adam"},
    {"lr", "X", "", "learning rate (default: 0.1 of sgd, 0.001 of the others)"},
    {"momentum", "X", "0.9", "of sgd"},
    {"decay", "X", "", "weight decay (default: 5e-4 of sgd, 0.01 of adamw, else 0)"},
    {"nesterov", NULL, NULL, "sgd: Nesterov's momentum"},
    {"schedule",
     "constant|step|multistep|exponential|inverse|polynomial|linear|cosine|one-cycle|plateau",
     "constant", "of the learning rate"},
    {"warmup", "X", "0", "epochs in which the rate rises from 0 first"},
    {"every", "X", "30", "step: epochs"},
    {"milestones", "E,...", "", "multistep: epochs"},
    {"gamma", "X", "0.1",
     "factor of step, multistep, plateau; per epoch of exponential and inverse"},
    {"power", "X", "1", "of polynomial and inverse"},
    {"lr-end", "X", "0", "linear, cosine, polynomial: the rate at the end, as a part of --lr"},
    {"patience", "N", "10", "plateau: epochs without improvement"},
    {"epochs", "N", "10", "end after so many; 0, and with another end given: no such end"},
    {"iterations", "N", "0", "end after so many steps; 0: no such end"},
    {"hours", "X", "0", "end after so long; 0: no such end"},
    {"accumulate", "N", "1", "batches per step of the optimizer"},
    {"clip", "X", "0", "most that the norm of the gradients may be; 0: any"},
    {"recompute", NULL, NULL, "compute every block again for its gradient: memory for time"},
    {"ema", "X", "0", "moving average of the weights, which is evaluated: 0.999; 0: none"},
    {"early-stop", "N", "0", "end after so many epochs without improvement; 0: never"},
    {"metric", "NAME", "", "what chooses the best weights (default: val/accuracy or val/loss)"},
    TASK_RUN_OPTIONS,
    {"out", "DIR", "result", "result folder"},
    {"save-minutes", "X", "0", "save the state so often; 0: at the end of every epoch"},
    {"log-iterations", "N", "0", "a line of the log every so many steps; 0: every epoch"},
    {"eval-iterations", "N", "0", "evaluate every so many steps; 0: every epoch"},
    {"tensorboard", NULL, NULL, "event files in DIR/tensorboard"},
    {"config", "FILE", "", "YAML file with these names as keys"},
    {"resume", NULL, NULL, "go on from the state in the result folder, by its config.yaml"},
    {"force", NULL, NULL, "use a result folder that has something in it"},
    {"allreduce", "auto|flat|ring|rabenseifner|hierarchical|torus|rsap", "auto",
     "several ranks: how gradients are summed; auto: by measurement"},
    {"wire", "f32|bf16|f16", "f32", "several ranks: of gradients on the network"},
    {"bucket-mb", "X", "0", "several ranks: gradients that are exchanged at a time; 0: chosen"},
    {"shard", NULL, NULL, "several ranks: each keeps its part of the optimizer's state only"},
    {"progress", "auto|polls|thread", "auto",
     "several ranks: what drives the exchange while kernels run"},
    {"sync-batch-norm", NULL, NULL,
     "several ranks: batch statistics over all of them; leaves out the smaller batches at the end of an epoch"},
    TIMELINE_OPTIONS,
    LAUNCH_OPTIONS,
    {"quiet", NULL, NULL, "no progress"},
    {"json", NULL, NULL, "the final values as one JSON object"},
    {0},
};

_Static_assert(sizeof options / sizeof *options <= MAX_OPTIONS, "args has no room for all options");

const command cmd_train = {
    .name = "train",
    .operands = "NETWORK",
    .summary = "Train a network on data and leave everything about it in a folder.",
    .words = task_names,
    .options = options,
    .examples =
        "  catena train mlp --data mnist --epochs 20 --out digits\n"
        "  catena train cifar-resnet20 --data cifar-10-batches-bin --epochs 30 --schedule one-cycle\n"
        "  catena train resnet50 --data imagenet --precision bf16 --schedule cosine --warmup 5\n"
        "  catena train resnet50 --data 'shards/train-{000..146}.tar' --val shards/val.tar\n"
        "  catena train unet --data x.npy --target y.npy --loss mse --val-share 0.1\n"
        "  catena train mlp --data run.h5:/state --target run.h5:/flux --hidden 256,256\n"
        "  catena train gpt --data input.txt --val-share 0.1 --length 128 --iterations 2000\n"
        "  catena train ./mymodel.so --data mnist      a network of your own\n"
        "  catena train --resume --out digits          go on after a stop\n"
        "  catena train --config digits/config.yaml --out again\n"
        "  mpirun -np 4 catena train mlp --data mnist --out digits      the same on four ranks\n"
        "  srun --mpi=pmix catena train resnet50 --data imagenet --shard\n",
    .run = run,
    .paths = true,
    .ranks = RANKS_JOB,
    .configure = " config resume force quiet json ",
};
