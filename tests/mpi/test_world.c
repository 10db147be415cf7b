/* SPDX-License-Identifier: Apache-2.0
 *
 * A program without MPI calls of its own: ctn_mpi_init finds the MPI of its launcher. One
 * executable serves all MPIs and links none. argv: the number of ranks, the maximum number of
 * elements of a sum.
 */
#include <signal.h>
#include <string.h>

#include "cases.h"

/* Handlers of MPI that print the stack of a crash may never end. */
static void no_handlers(void)
{
    static const int crashes[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV};
    struct sigaction now;
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
        CHECK(sigaction(crashes[i], NULL, &now) == 0 && now.sa_handler == SIG_DFL);
}

int main(int argc, char **argv)
{
    ctn_comm *c = NULL;
    CHECK(ctn_mpi_finalize() == CTN_ESTATE); /* nothing to finalize yet */
    ctn_error_clear();
    DONE(ctn_comm_open(&c, NULL)); /* MPI is not running: this process alone */
    CHECK(ctn_comm_size(c) == 1 && ctn_comm_rank(c) == 0);
    ctn_comm_free(c);

    DONE(ctn_mpi_init(&argc, &argv));
    no_handlers();
    CHECK(ctn_mpi_init(&argc, &argv) == CTN_ESTATE);
    ctn_error_clear();
    const int64_t most = argc > 2 ? atoi(argv[2]) : (1 << 24) + 3;
    if (argc > 1) { /* the expected number of ranks, not as many singletons */
        DONE(ctn_comm_open(&c, NULL));
        CHECK(ctn_comm_size(c) == atoi(argv[1]));
        ctn_comm_free(c);
    }
    static const ctn_dtype wires[] = {CTN_F32, CTN_BF16, CTN_F16};
    for (int w = 0; w < 3; w++) {
        DONE(ctn_comm_open(&c, CTN_OPT(ctn_comm_opt, .wire = wires[w])));
        run_cases(c, "world", wires[w], w == 0 ? most : 65537, NULL);
        if (w == 0) run_others(c);
        ctn_comm_free(c);
    }
    DONE(ctn_mpi_finalize());
    CHECK(ctn_mpi_init(NULL, NULL) == CTN_ESTATE); /* MPI can be started only once */
    ctn_error_clear();
    DONE(ctn_comm_open(&c, NULL)); /* after finalize: alone again */
    CHECK(ctn_comm_size(c) == 1);
    ctn_comm_free(c);
    return 0;
}
