/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds out who launched this process, and begins and ends a job of several ranks. The
 * environment says how many tasks the launcher started. MPI is started only if there are
 * several, and must then see the same number. Tasks that do not find each other are stopped,
 * because each would train alone and write to the same result folder.
 *
 * main.c calls this around every subcommand. All ranks make collective calls in the same order.
 */
#include "launch.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "watchdog/watchdog.h"

/* ---- who launched us ------------------------------------------------------------------------- */

/* Innermost first: processes of mpirun inside a Slurm job also have Slurm's variables. Variables
 * that a job script has too (SLURM_NTASKS, PJM_MPI_PROC) prove nothing; `mark` is a variable
 * that only a launched process has. */
static const struct {
    const char *name, *mark, *size, *rank, *fix;
} launchers[] = {
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK",
     "this mpirun does not belong to the MPI that Catena loads: use the mpirun of that MPI, or "
     "build the plug-in for this one (catena mpi-setup)"},
    {"mpiexec", "PMI_RANK", "PMI_SIZE", "PMI_RANK",
     "this mpiexec does not belong to the MPI that Catena loads: use the mpiexec of that MPI, or "
     "build the plug-in for this one (catena mpi-setup)"},
    {"Slurm", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID",
     "use srun --mpi=pmix (srun --mpi=list shows the choices), or mpirun inside sbatch"},
    {"mpiexec", "PMIX_RANK", "PJM_MPI_PROC", "PMIX_RANK",
     "Catena loads an MPI other than this system's: build the plug-in for the system's MPI (catena "
     "mpi-setup)"},
};

typedef struct {
    const char *name, *fix;
    int64_t size, rank; /* size 0: unknown */
} announced;

static int64_t number_of(const char *name)
{
    const char *s = getenv(name);
    return s ? strtoll(s, NULL, 10) : 0;
}

/* srun --mpi=pmi2 sets the variables of mpiexec, but the advice must be the one for Slurm. */
static bool slurm_gives_pmi(void)
{
    return getenv("SLURM_STEP_NUM_TASKS") && getenv("SLURM_PROCID") &&
           number_of("SLURM_STEP_NUM_TASKS") == number_of("PMI_SIZE") &&
           number_of("SLURM_PROCID") == number_of("PMI_RANK");
}

static announced look(void)
{
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const char *mark = getenv(launchers[i].mark);
        if (!mark || !mark[0] || (i == 1 && slurm_gives_pmi())) continue;
        return (announced){launchers[i].name, launchers[i].fix, number_of(launchers[i].size),
                           number_of(launchers[i].rank)};
    }
    return (announced){0};
}

/* ---- the beginning --------------------------------------------------------------------------- */

/* Several processes would write the same files. */
static int refuse_many(const command *cmd, const announced *by)
{
    if (by->rank == 0)
        fprintf(stderr,
                "catena %s: %s started %lld tasks, but this command runs as a single task: start "
                "only one\n",
                cmd->name, by->name, (long long)by->size);
    return EXIT_ENVIRONMENT;
}

static int told(const command *cmd, const announced *by)
{
    if (by->rank != 0) return EXIT_ENVIRONMENT;
    return report_failure(cmd->name, DOING_SETUP);
}

/* Rank 0 learns the host names of all ranks; every rank learns rank 0's host and the first rank
 * that is on another host. */
static ctn_status learn_hosts(launch *l)
{
    struct {
        char host[sizeof l->host];
        int first_elsewhere;
    } first = {.first_elsewhere = 0};
    l->hosts = calloc(l->rank == 0 ? (size_t)l->size : 1, sizeof *l->hosts);
    if (!l->hosts) return ctn_fail(CTN_ENOMEM, "no memory for the names of %d hosts", l->size);
    CTN_TRY(ctn_comm_gather(l->comm, l->host, sizeof l->host, l->hosts, 0));
    memcpy(first.host, l->host, sizeof first.host);
    while (l->rank == 0 && first.first_elsewhere < l->size &&
           strcmp(l->hosts[first.first_elsewhere], l->host) == 0)
        first.first_elsewhere++;
    CTN_TRY(ctn_comm_broadcast(l->comm, &first, sizeof first, 0));
    memcpy(l->hosts[0], first.host, sizeof first.host);
    l->first_elsewhere = first.first_elsewhere;
    return CTN_OK;
}

int launch_begin(launch *l, const command *cmd)
{
    *l = (launch){.size = 1, .machine_ranks = 1};
    gethostname(l->host, sizeof l->host - 1);
    announced by = look();
    const bool several = by.name && (by.size > 1 || by.rank > 0 || by.size == 0);
    l->launcher = by.name;
    if (!several) return -1;
    if (cmd->ranks == RANKS_ONE && by.size != 0) return refuse_many(cmd, &by);
    if (cmd->ranks != RANKS_JOB) return -1;
    ctn_comm_opt opt = {.struct_size = sizeof opt};
    /* Open MPI ends a process whose peer is gone; give the watchdog time to report the cause. */
    setenv("OMPI_MCA_mpi_abort_delay", "5", 0);
    if (ctn_mpi_init(NULL, NULL) < 0 || ctn_comm_open(&l->comm, &opt) < 0) return told(cmd, &by);
    l->rank = ctn_comm_rank(l->comm);
    l->size = ctn_comm_size(l->comm);
    if (l->size == 1 && by.size == 0 && by.rank == 0) { /* it is one task after all */
        ctn_comm_free(l->comm);
        l->comm = NULL;
        return ctn_mpi_finalize() < 0 ? told(cmd, &by) : -1;
    }
    if (l->size == 1) {
        if (by.rank == 0)
            fprintf(stderr, "catena %s: %s started %lld tasks but MPI (%s) sees 1: %s\n", cmd->name,
                    by.name, (long long)by.size, ctn_comm_transport(l->comm), by.fix);
        return EXIT_ENVIRONMENT;
    }
    log_rank = l->rank;
    if (learn_hosts(l) < 0) return report_failure(cmd->name, DOING_SETUP);
    return watchdog_begin(l) < 0 ? report_failure(cmd->name, DOING_SETUP) : -1;
}

/* ---- what rank 0 knows ----------------------------------------------------------------------- */

ctn_status launch_bytes(launch *l, void **p, size_t *n)
{
    if (!l->comm) return CTN_OK;
    uint64_t bytes = l->rank == 0 ? *n : 0;
    CTN_TRY(ctn_comm_broadcast(l->comm, &bytes, sizeof bytes, 0));
    if (l->rank != 0) {
        *n = (size_t)bytes;
        *p = calloc(*n + 1, 1);
        if (!*p) return ctn_fail(CTN_ENOMEM, "no memory for %zu bytes from rank 0", *n);
    }
    return *n ? ctn_comm_broadcast(l->comm, *p, *n, 0) : CTN_OK;
}

/* Settings as bytes: the code, the operands, and for each option its source, whether it has a
 * value, and the value. */
static void put_text(FILE *f, const char *s)
{
    fputc(s ? 1 : 0, f);
    if (s) fwrite(s, 1, strlen(s) + 1, f);
}

static ctn_status pack(const args *a, int code, char **out, size_t *n)
{
    FILE *f = open_memstream(out, n);
    if (!f) return ctn_fail(CTN_ENOMEM, "no memory for the settings");
    fwrite(&code, sizeof code, 1, f);
    put_text(f, a->operand);
    put_text(f, a->operand2);
    for (int k = 0; a->cmd->options[k].name; k++) {
        fputc((int)a->from[k], f);
        put_text(f, a->value[k]);
    }
    bool bad = ferror(f);
    if (fclose(f) != 0 || bad) return ctn_fail(CTN_ENOMEM, "no memory for the settings");
    return CTN_OK;
}

static const char *take_text(args *a, const char **at, bool *bad)
{
    if (!*(*at)++) return NULL;
    const char *s = args_own(a, *at);
    *bad = *bad || !s;
    *at += strlen(*at) + 1;
    return s;
}

static ctn_status unpack(args *a, int *code, const char *at)
{
    bool bad = false;
    if (!at) return ctn_fail(CTN_ESTATE, "received no settings from rank 0");
    memcpy(code, at, sizeof *code);
    at += sizeof *code;
    a->operand = take_text(a, &at, &bad);
    a->operand2 = take_text(a, &at, &bad);
    for (int k = 0; a->cmd->options[k].name; k++) {
        a->from[k] = (source)*at++;
        a->value[k] = take_text(a, &at, &bad);
    }
    return bad ? ctn_fail(CTN_ENOMEM, "no memory for the settings") : CTN_OK;
}

int launch_share(launch *l, args *a, int code)
{
    char *text = NULL;
    size_t n = 0;
    ctn_status st = CTN_OK;
    if (!l->comm) return code;
    if (l->rank == 0) st = pack(a, code, &text, &n);
    if (st >= 0) {
        void *p = text;
        st = launch_bytes(l, &p, &n);
        text = p;
    }
    if (st >= 0 && l->rank != 0) st = unpack(a, &code, text);
    free(text);
    if (st < 0) return report_failure(a->cmd->name, DOING_SETUP);
    if (code >= 0) watchdog_agree(); /* all ranks end with this code; rank 0 printed the error */
    return code;
}

ctn_status launch_agree(launch *l, const char *text)
{
    ctn_status st = ctn_comm_agree(l->comm, text);
    if (st == CTN_EARG) watchdog_agree();
    return st;
}

/* Remove the command's variables, which rank 0 has read: the library would warn about them. */
static void forget_variables(const command *cmd)
{
    char name[128];
    for (int k = 0; cmd->options[k].name; k++)
        if (config_variable(cmd, k, name, sizeof name)) unsetenv(name);
}

/* The value of an option on the command line; NULL: not given. */
static const char *given(const option *o, int argc, char **argv)
{
    const size_t n = strlen(o->name);
    const char *value = NULL;
    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "--", 2) != 0 || strncmp(argv[i] + 2, o->name, n) != 0) continue;
        if (argv[i][2 + n] == '=') value = argv[i] + 2 + n + 1;
        else if (argv[i][2 + n] == 0) value = o->arg && i + 1 < argc ? argv[i + 1] : "";
    }
    return value;
}

/* All ranks use rank 0's command line, so the others must agree with it. The text has one line
 * per option, so that the error message names the option that differs. */
static ctn_status compare_words(launch *l, const command *cmd, int argc, char **argv)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (!f) return ctn_fail(CTN_ENOMEM, "no memory for the command line");
    fprintf(f, "catena %s%s%s\n", cmd->name, argc > 0 ? " " : "", argc > 0 ? argv[0] : "");
    for (const option *o = cmd->options; o->name; o++) {
        const char *value = given(o, argc, argv);
        if (value) fprintf(f, "--%s%s%s\n", o->name, value[0] ? " " : "", value);
        else fprintf(f, "no --%s\n", o->name);
    }
    bool bad = ferror(f);
    if (fclose(f) != 0 || bad) {
        free(text);
        return ctn_fail(CTN_ENOMEM, "no memory for the command line");
    }
    ctn_status st = launch_agree(l, text);
    free(text);
    return st;
}

int launch_args(launch *l, args *a, const command *cmd, int argc, char **argv)
{
    int code = -1;
    *a = (args){.cmd = cmd, .job = l};
    if (l->comm && compare_words(l, cmd, argc, argv) < 0)
        return report_failure(cmd->name, DOING_SETUP);
    if (l->rank == 0) code = args_parse(a, cmd, argc, argv);
    else if (cmd->configure) forget_variables(cmd);
    a->job = l;
    return launch_share(l, a, code);
}

/* ---- the end --------------------------------------------------------------------------------- */

int launch_end(launch *l, int code)
{
    if (!l->comm) {
        cores_free(l);
        return code;
    }
    fflush(stdout);
    fflush(stderr);
    bool well = code == EXIT_DONE || code == EXIT_REQUEUE || watchdog_agreed();
    if (well) well = ctn_comm_barrier(l->comm) >= 0;
    if (!well) {
        code = watchdog_leave(code);
        fflush(stdout);
        _exit(code);
    }
    watchdog_end();
    ctn_comm_free(l->comm);
    l->comm = NULL;
    if (ctn_mpi_finalize() < 0 && code == EXIT_DONE) code = report_failure("end", DOING_SETUP);
    cores_free(l);
    free(l->hosts);
    l->hosts = NULL;
    return code;
}
