/* SPDX-License-Identifier: Apache-2.0
 *
 * catena verify-resume: proves on this machine that a training that is killed and resumed ends with
 * the same bits as one that is not.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <catena/zoo.h>

#include "resume/resume.h"
#include "training.h"

static bool has_option(const trainings *t, const char *name)
{
    for (int i = 0; i < t->options; i++) {
        const char *word = t->option[i];
        if (strncmp(word, "--", 2) != 0) continue;
        const size_t n = strcspn(word + 2, "=");
        if (strlen(name) == n && strncmp(word + 2, name, n) == 0) return true;
    }
    return false;
}

static int wrong_use(const args *a, const trainings *t)
{
    const char *out = args_text(a, "out");
    if (t->rounds < 1 || t->ranks < 1 || t->ranks > MOST_RANKS || t->seconds <= 0) {
        say(stderr,
            "catena verify-resume: --rounds and --seconds must be positive, and --ranks from 1 "
            "to %d\n",
            MOST_RANKS);
        return EXIT_USAGE;
    }
    if (has_option(t, "hours")) {
        say(stderr, "catena verify-resume: --hours ends every training after another number of "
                    "steps: use --seconds before --, or --iterations after it\n");
        return EXIT_USAGE;
    }
    if (out[0] && !folder_empty(out)) {
        say(stderr, "catena verify-resume: %s is not empty: use another --out\n", out);
        return EXIT_USAGE;
    }
    return -1;
}

/* The processes that are started inherit these. */
static void prepare_environment(const trainings *t)
{
    setenv("CATENA_TUNE", "0", 0); /* kernels chosen by time may differ until a state is saved */
    if (t->ranks == 1) return;
    setenv("OMPI_MCA_rmaps_base_oversubscribe", "1", 0); /* Open MPI 4, 5 */
    setenv("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe", 0);
}

static ctn_status prepare_folder(const args *a, trainings *t)
{
    const char *out = args_text(a, "out"), *tmp = getenv("TMPDIR");
    snprintf(t->folder, sizeof t->folder, "%s/catena-resume-XXXXXX", tmp && tmp[0] ? tmp : "/tmp");
    if (out[0]) snprintf(t->folder, sizeof t->folder, "%s", out);
    const bool made =
        out[0] ? mkdir(out, 0777) == 0 || errno == EEXIST : mkdtemp(t->folder) != NULL;
    if (!made) return ctn_fail(CTN_EIO, "cannot make %s: %s", t->folder, strerror(errno));
    return has_option(t, "data") ? CTN_OK : sample_make(&t->data, t->network, t->folder);
}

/* ---- output ---------------------------------------------------------------------------------- */

static void show(const trainings *t)
{
    if (!isatty(STDERR_FILENO)) return;
    fputs("\r", stderr);
    say(stderr, "%lld of %lld kills%s", (long long)t->kills, (long long)t->rounds,
        t->kills < t->rounds ? "" : "\n");
}

static void print_json(const trainings *t, char *lines)
{
    json j = {0};
    json_open(&j, NULL, '{');
    json_text(&j, "network", t->network);
    json_int(&j, "ranks", t->ranks);
    json_int(&j, "iterations", t->iterations);
    json_real(&j, "seconds", t->length);
    json_int(&j, "rounds", t->kills);
    json_int(&j, "during_save", t->during_save);
    json_int(&j, "trainings", t->trainings);
    json_int(&j, "arrays", t->arrays);
    json_bool(&j, "identical", t->wrong == 0);
    json_open(&j, "differences", '[');
    for (char *line = lines, *end; *line; line = end) {
        end = line + strcspn(line, "\n");
        if (*end) *end++ = 0;
        json_text(&j, NULL, line);
    }
    json_close(&j, ']');
    json_close(&j, '}');
}

static void print_text(const trainings *t, const char *lines)
{
    say(stdout, "%s on %lld rank%s: %lld steps, %.1f s without interruption\n", t->network,
        (long long)t->ranks, t->ranks == 1 ? "" : "s", (long long)t->iterations, t->length);
    say(stdout, "kills: %lld, while a state was written: %lld, trainings compared: %lld\n",
        (long long)t->kills, (long long)t->during_save, (long long)t->trainings);
    say_lines(stdout, "%s", lines);
    if (t->wrong)
        say(stdout, "%lld differences: the trainings are in %s\n", (long long)t->wrong, t->folder);
    else say(stdout, "identical: all %lld arrays of the final states\n", (long long)t->arrays);
}

/* ---- the command ----------------------------------------------------------------------------- */

static ctn_status verify(const args *a, trainings *t)
{
    char *lines = NULL;
    size_t n = 0;
    CTN_TRY(child_program(t->program, sizeof t->program));
    prepare_environment(t);
    CTN_TRY(prepare_folder(a, t));
    t->report = open_memstream(&lines, &n);
    if (!t->report) return ctn_fail(CTN_ENOMEM, "no memory for the report");
    ctn_status st = trainings_whole(t);
    if (st == CTN_OK) st = trainings_interrupted(t, show);
    fclose(t->report);
    if (st == CTN_OK && args_flag(a, "json")) print_json(t, lines);
    else if (st == CTN_OK) print_text(t, lines);
    free(lines);
    if (!args_given(a, "out") && t->wrong == 0) remove_tree(t->folder);
    return st;
}

static int run(args *a)
{
    trainings t = {.network = a->operand,
                   .option = a->extra,
                   .options = a->nextra,
                   .ranks = args_int(a, "ranks"),
                   .rounds = args_int(a, "rounds"),
                   .seconds = args_real(a, "seconds"),
                   .random = (uint64_t)time(NULL) * 1000003u + (uint64_t)getpid()};
    t.limited = has_option(&t, "epochs") || has_option(&t, "iterations");
    const int code = wrong_use(a, &t);
    if (code >= 0) return code;
    const ctn_status st = verify(a, &t);
    if (st < 0) {
        const int own = report_failure("verify-resume", DOING_SETUP);
        return t.failed ? t.failed : own;
    }
    return t.wrong ? EXIT_ENVIRONMENT : EXIT_DONE;
}

static const option options[] = {
    {"rounds", "N", "10", "number of kills", GROUP_NONE},
    {"ranks", "N", "1",
     "number of ranks, which mpirun starts on this machine; a kill then ends one "
     "of them or all",
     GROUP_NONE},
    {"seconds", "X", "2", "length of the training; not used with --epochs or --iterations after --",
     GROUP_NONE},
    {"out", "DIR", "",
     "folder for the data and the trainings, which stays (default: a temporary folder, which stays "
     "if something differs)",
     GROUP_NONE},
    {"json", NULL, NULL, "print one JSON object", GROUP_NONE},
    {0},
};

const command cmd_verify_resume = {
    .name = "verify-resume",
    .operands = "NETWORK",
    .summary =
        "Kill and resume a training many times, and compare it with one that was not killed.",
    .words = ctn_zoo_names,
    .options = options,
    .examples =
        "  catena verify-resume mlp --rounds 20        on small random data\n"
        "  catena verify-resume resnet20_cifar -- --data cifar-10-batches-bin --iterations 50\n"
        "  catena verify-resume mlp --ranks 2 -- --shard\n"
        "  catena verify-resume ./mymodel.so --json -- --data mnist --iterations 500\n",
    .run = run,
    .paths = OWN_NETWORK,
    .after = "options of catena train",
    .ranks = RANKS_ONE,
};
