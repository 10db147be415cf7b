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

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "start/verdict.h"
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
    {"Slurm", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", NULL},
    {"mpiexec", "PMIX_RANK", "PJM_MPI_PROC", "PMIX_RANK",
     "Catena loads an MPI other than this system's: build the plug-in for the system's MPI (catena "
     "mpi-setup)"},
};

typedef struct {
    const char *name, *outer, *fix; /* outer: it started several launchers; NULL: none did */
    int64_t size, rank;             /* size 0: unknown */
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

/* Open MPI finds the tasks of srun through PMIx, and MPICH through PMI-2. */
static const char *slurm_fix(void)
{
    return getenv("PMIX_RANK")
               ? "it does not use PMIx, which srun offers: use srun --mpi=pmi2 (srun --mpi=list "
                 "shows the choices), an MPI with PMIx, or mpirun inside sbatch"
               : "use srun --mpi=pmix (srun --mpi=list shows the choices), or mpirun inside sbatch";
}

static announced look(void)
{
    announced a = {0};
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const char *mark = getenv(launchers[i].mark), *fix = launchers[i].fix;
        if (!mark || !mark[0] || (i == 1 && slurm_gives_pmi())) continue;
        const int64_t size = number_of(launchers[i].size);
        /* Not so for Slurm, whose tasks may be the daemons by which mpirun starts ranks, and for
         * variables of a job script. */
        if (i == 1 && a.name && a.size == 1 && size > 1) a.outer = launchers[i].name;
        if (a.name) continue;
        a = (announced){launchers[i].name, NULL, fix ? fix : slurm_fix(), size,
                        number_of(launchers[i].rank)};
    }
    return a;
}

/* ---- the beginning --------------------------------------------------------------------------- */

/* Several processes would write the same files. */
static int refuse_many(const command *cmd, const announced *by)
{
    if (by->rank == 0)
        say(stderr,
            "catena %s: %s started %lld tasks, but this command runs as a single task: start "
            "only one\n",
            cmd->name, by->name, (long long)by->size);
    return EXIT_ENVIRONMENT;
}

/* Each of them would work alone, although somebody has asked for several ranks. */
static int refuse_nested(const command *cmd, const announced *by)
{
    say(stderr,
        "catena %s: %s started one task, and %s started several of these launchers, whose tasks "
        "cannot find each other: use only one launcher\n",
        cmd->name, by->name, by->outer);
    return EXIT_ENVIRONMENT;
}

/* MPI does not always say that the cause of an error is a lost rank. perhaps_lost: MPI itself
 * works, or leaves it to the other ranks what to do. */
static int told(const command *cmd, bool print, bool perhaps_lost)
{
    const ctn_status st = ctn_error_status();
    const int code = print ? report_failure(cmd->name, DOING_SETUP) : EXIT_ENVIRONMENT;
    return perhaps_lost && (st == CTN_EPEER || st == CTN_EENGINE) ? EXIT_OTHER_RANK : code;
}

/* Settings of Open MPI, unless the user has chosen others. Returns whether ranks can survive the
 * loss of others. */
static bool set_variables(void)
{
    static const char *const survival[][2] = {
        /* what can lose a rank: the other transports cannot */
        {"OMPI_MCA_pml", "ob1"},
        {"OMPI_MCA_btl", "tcp,self"},
        /* the addresses of all ranks, which cannot be asked for once they are gone */
        {"OMPI_MCA_mpi_add_procs_cutoff", "1024"},
        /* a heartbeat that finds a cut link within 5 s, and tells all ranks; the plug-in has a
         * thread for it, because a rank that computes makes no MPI calls */
        {"OMPI_MCA_mpi_ft_detector", "true"},
        {"OMPI_MCA_mpi_ft_detector_period", "1"},
        {"OMPI_MCA_mpi_ft_detector_timeout", "5"},
        {"OMPI_MCA_mpi_ft_propagator_with_rbcast", "true"},
    };
    /* Open MPI ends a process whose peer is gone; give the watchdog time to report the cause. */
    setenv("OMPI_MCA_mpi_abort_delay", "5", 0);
    const char *ulfm = getenv("OMPI_MCA_mpi_ft_enable"); /* set by mpirun --with-ft ulfm */
    if (!ulfm || strcmp(ulfm, "1") != 0) return false;
    for (size_t i = 0; i < sizeof survival / sizeof *survival; i++)
        setenv(survival[i][0], survival[i][1], 0);
    /* Open MPI leaves out the loopback interface, but a machine need not have another one. */
    if (number_of("OMPI_COMM_WORLD_LOCAL_SIZE") == number_of("OMPI_COMM_WORLD_SIZE") &&
        !getenv("OMPI_MCA_btl_tcp_if_exclude"))
        setenv("OMPI_MCA_btl_tcp_if_include", "127.0.0.0/8", 0);
    return true;
}

static void on_late(int number)
{
    static const char text[] = "catena: MPI has not started after 120 s; a rank may be lost\n";
    (void)number;
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0) _exit(EXIT_ENVIRONMENT);
    _exit(EXIT_OTHER_RANK);
}

/* A mpirun that lets ranks survive does not end the others if one is lost before the watchdog
 * begins, and MPI_Init would wait for it forever. */
static void limit_start(bool begin)
{
    enum { SECONDS = 120 };
    signal(SIGALRM, begin ? on_late : SIG_DFL);
    alarm(begin ? SECONDS : 0);
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

/* Starts MPI and the watchdog. */
static int connect_ranks(launch *l, const command *cmd, const announced *by, bool survives)
{
    ctn_comm_opt opt = {.struct_size = sizeof opt};
    if (ctn_mpi_init(NULL, NULL) < 0) return told(cmd, by->rank == 0, survives);
    if (ctn_comm_open(&l->comm, &opt) < 0) return told(cmd, by->rank == 0, true);
    l->rank = ctn_comm_rank(l->comm);
    l->size = ctn_comm_size(l->comm);
    l->survives = ctn_comm_survives(l->comm);
    if (l->size == 1 && by->size == 0 && by->rank == 0) { /* it is one task after all */
        ctn_comm_free(l->comm);
        l->comm = NULL;
        return ctn_mpi_finalize() < 0 ? told(cmd, by->rank == 0, false) : -1;
    }
    if (l->size == 1) {
        if (by->rank == 0)
            say(stderr, "catena %s: %s started %lld tasks but MPI (%s) sees 1: %s\n", cmd->name,
                by->name, (long long)by->size, ctn_comm_transport(l->comm), by->fix);
        return EXIT_ENVIRONMENT;
    }
    log_rank = l->rank;
    return learn_hosts(l) < 0 || watchdog_begin(l) < 0 ? told(cmd, true, true) : -1;
}

int launch_begin(launch *l, const command *cmd)
{
    *l = (launch){.size = 1, .machine_ranks = 1};
    verdict_begin();
    gethostname(l->host, sizeof l->host - 1);
    announced by = look();
    const bool several = by.name && (by.size > 1 || by.rank > 0 || by.size == 0);
    l->launcher = by.name;
    if (by.outer && cmd->ranks != RANKS_ANY) return refuse_nested(cmd, &by);
    if (!several) return -1;
    if (cmd->ranks == RANKS_ONE && by.size != 0) return refuse_many(cmd, &by);
    if (cmd->ranks != RANKS_JOB) return -1;
    l->rank = log_rank = (int)by.rank; /* until MPI says it */
    if (cmd->prepare) cmd->prepare();
    if (!set_variables()) return connect_ranks(l, cmd, &by, false);
    signal(SIGPIPE, SIG_IGN); /* Open MPI may be sending to the lost rank */
    limit_start(true);
    const int code = connect_ranks(l, cmd, &by, true);
    limit_start(false);
    return code;
}

/* Rank 0 says why the ranks that are left do not continue. `catena launch` reads the line. */
static bool cannot_continue(const launch *l, const char *why)
{
    char line[512];
    if (l->rank != 0) return false;
    snprintf(line, sizeof line, "cannot continue without the lost rank: %.400s", why);
    line[strcspn(line, "\n")] = 0; /* without the trace */
    watchdog_record(line);
    return false;
}

bool launch_shrink(launch *l)
{
    const ctn_comm_opt opt = {.struct_size = sizeof opt};
    ctn_comm *left = NULL;
    const int size = l->size;
    int first = l->rank; /* of the ranks that are left */
    if (!l->survives || !watchdog_lost()) return false;
    ctn_comm_fail(l->comm, "a rank is lost"); /* in case the exchange alone has noticed */
    ctn_error_clear();
    if (ctn_comm_shrink(&left, l->comm, &opt) < 0 ||
        ctn_comm_broadcast(left, &first, sizeof first, 0) < 0)
        return cannot_continue(l, ctn_error_message());
    /* If the job fell apart in two, only one side may continue: the one with most ranks, and of
     * two halves the one with rank 0. */
    const int now = ctn_comm_size(left);
    if (2 * now < size || (2 * now == size && first != 0))
        return cannot_continue(l, "this part of the job is not the larger one");
    ctn_error_clear(); /* of attempts that failed before */
    watchdog_reset();
    ctn_comm_free(l->comm);
    free(l->hosts);
    l->hosts = NULL;
    l->comm = left;
    l->lost += size - now;
    l->rank = log_rank = ctn_comm_rank(left);
    l->size = now;
    return learn_hosts(l) >= 0 && watchdog_begin(l) >= 0;
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
    put_text(f, a->operand_from);
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
    a->operand_from = take_text(a, &at, &bad);
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
        if (l->rank == 0) verdict_send(code);
        cores_free(l);
        return code;
    }
    fflush(stdout);
    fflush(stderr);
    bool well = code == EXIT_DONE || code == EXIT_REQUEUE || watchdog_agreed();
    if (well) well = ctn_comm_barrier(l->comm) >= 0;
    if (!well) code = watchdog_leave(code);
    else watchdog_end();
    if (l->rank == 0) verdict_send(well ? code : watchdog_verdict(code));
    /* MPI_Finalize would wait for lost ranks, also for one that is lost at that moment. */
    if (!well || l->survives) {
        fflush(stdout);
        _exit(code);
    }
    ctn_comm_free(l->comm);
    l->comm = NULL;
    if (ctn_mpi_finalize() < 0 && code == EXIT_DONE) code = report_failure("end", DOING_SETUP);
    cores_free(l);
    free(l->hosts);
    l->hosts = NULL;
    return code;
}
