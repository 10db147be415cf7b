/* SPDX-License-Identifier: Apache-2.0
 *
 * The command's watchdog, with processes as ranks and foreign connections to rank 0: where and
 * for how long it listens, whom it accepts, its cost while all is well, its behaviour at the
 * limit of open files, and its report about a rank that does not answer.
 * Labels: threads serial
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "watchdog/net.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <linux/tcp.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- processes as ranks ---------------------------------------------------------------------- */

enum { RANKS = 3, STRANGERS = 80, CROWD = 1000 };
#define LIMIT_S 300 /* of every wait, because the machine may be busy */

/* What all processes of a case share. */
static struct board {
    pthread_barrier_t all;
    char data[4096]; /* of a broadcast */
    invitation v;
    atomic_int invited, outside; /* rank 0 listens; events counted by a stranger */
    atomic_bool go, last;        /* ranks may join; the last one too */
    int first_left_out;          /* smallest rank of the crowd that could not join */
    pid_t pid[RANKS];
    int nodes;
    uint64_t started[RANKS]; /* collectives of each rank */
    bool waiting;
    atomic_int turns[RANKS]; /* how often its thread began to wait for events */
    atomic_int asked[RANKS]; /* the turn in which a rank last said where it is; 0: not yet */
    _Atomic double passed;   /* seconds that the case has added to the clock of the watchdog */
    pthread_mutex_t lock;    /* protects the log */
    char log[4096];          /* what rank 0 has printed */
    char wrong[256];
} *board;

static int my_rank;

int log_rank;
bool log_stamped;

static double real_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The clock of the watchdog runs so slowly that none of its limits ends a wait on a busy machine.
 * Cases move it on. */
double now_s(void)
{
    return real_s() / 50 + atomic_load(&board->passed);
}

static void clock_pass(double s)
{
    atomic_store(&board->passed, atomic_load(&board->passed) + s);
}

int epoll_wait(int epoll, struct epoll_event *e, int n, int ms)
{
    int (*real)(int, struct epoll_event *, int, int) = NULL;
    *(void **)&real = dlsym(RTLD_NEXT, "epoll_wait");
    atomic_fetch_add(&board->turns[my_rank], 1);
    return real(epoll, e, n, ms);
}

void log_line_of(FILE *f, int rank, const char *host, const char *text)
{
    (void)f;
    pthread_mutex_lock(&board->lock);
    const size_t n = strlen(board->log);
    snprintf(board->log + n, sizeof board->log - n, "rank %d %s: %s\n", rank, host, text);
    pthread_mutex_unlock(&board->lock);
}

void say(FILE *f, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vfprintf(f, fmt, ap);
    va_end(ap);
}

void log_line(const char *fmt, ...)
{
    char line[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    log_line_of(stderr, my_rank, "here", line);
}

static void nap(double s)
{
    nanosleep(&(struct timespec){(time_t)s, (long)(1e9 * (s - (double)(time_t)s))}, NULL);
}

void ctn_comm_get_stats(const ctn_comm *c, ctn_comm_stats *s)
{
    (void)c;
    atomic_store(&board->asked[my_rank], atomic_load(&board->turns[my_rank]));
    s->started = board->started[my_rank];
    s->waiting = board->waiting;
}

void ctn_comm_fail(ctn_comm *c, const char *text)
{
    (void)c;
    (void)text;
}

int ctn_comm_nodes(const ctn_comm *c)
{
    (void)c;
    return board->nodes;
}

static void meet(void)
{
    pthread_barrier_wait(&board->all);
}

ctn_status ctn_comm_barrier(ctn_comm *c)
{
    (void)c;
    meet();
    return CTN_OK;
}

/* Once rank 0 has sent its invitation, ranks are held back until the case releases them; the
 * last one also waits until the address is known. */
ctn_status ctn_comm_broadcast(ctn_comm *c, void *buf, size_t bytes, int root)
{
    if (my_rank == root) memcpy(board->data, buf, bytes);
    meet();
    if (my_rank != root) memcpy(buf, board->data, bytes);
    const bool first = bytes == sizeof(invitation);
    if (first && my_rank == root) memcpy(&board->v, buf, bytes);
    meet();
    if (first) atomic_store(&board->invited, 1);
    while (first && my_rank > 0 && !atomic_load(&board->go)) nap(0.01);
    while (!first && my_rank == RANKS - 1 && !atomic_load(&board->last)) nap(0.01);
    (void)c;
    return CTN_OK;
}

/* The first error ends the process. */
#define CHECK(ok, ...)                                                                            \
    do {                                                                                          \
        if (!(ok)) {                                                                              \
            int n_ = snprintf(board->wrong, sizeof board->wrong, "line %d: %s: ", __LINE__, #ok); \
            snprintf(board->wrong + n_, sizeof board->wrong - (size_t)n_, __VA_ARGS__);           \
            _exit(1);                                                                             \
        }                                                                                         \
    } while (0)

static char host_names[CROWD][64];
static launch job = {.comm = (ctn_comm *)&job};

static void be_rank(int rank, int size, int first_elsewhere)
{
    my_rank = rank;
    for (int i = 0; i < size; i++) snprintf(host_names[i], sizeof *host_names, "host%d", i);
    job.rank = rank;
    job.size = size;
    job.first_elsewhere = first_elsewhere;
    job.hosts = host_names;
    snprintf(job.host, sizeof job.host, "%s", host_names[rank]);
}

/* Forks a process; 0 in the child. It ends with its parent, and after two LIMIT_S in any case. */
static pid_t spawn(void)
{
    fflush(NULL);
    const pid_t pid = fork();
    if (pid != 0) return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(2 * LIMIT_S);
    return pid;
}

/* processes: how many take part in collective calls. */
static void open_board(int processes, int nodes)
{
    pthread_barrierattr_t shared;
    pthread_mutexattr_t also;
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(board != MAP_FAILED);
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&board->all, &shared, (unsigned)processes);
    pthread_mutexattr_init(&also);
    pthread_mutexattr_setpshared(&also, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&board->lock, &also);
    board->nodes = nodes;
    board->last = true;
}

static void close_board(void)
{
    munmap(board, sizeof *board);
    board = NULL;
}

/* Asserts that all ended well. When one does not, the others have nobody to wait for. */
static void await(const pid_t *pid, int n)
{
    bool bad = false;
    for (int left = n; left > 0; left--) {
        int status = -1;
        const pid_t ended = wait(&status);
        if (status != 0 && !bad) {
            print_error("process %d ended with status %d: %s\n", ended, status, board->wrong);
            for (int i = 0; i < n; i++)
                if (pid[i] != ended) kill(pid[i], SIGKILL);
        }
        bad = bad || status != 0;
    }
    assert_false(bad);
}

/* All ranks run `work` between begin and end of the watchdog, while `outside` runs beside them. */
static void run_job(int first_elsewhere, void (*work)(void), void (*outside)(void))
{
    pid_t pid[RANKS + 1];
    for (int r = 0; r < RANKS; r++) {
        if ((pid[r] = spawn()) == 0) {
            be_rank(r, RANKS, first_elsewhere);
            board->pid[r] = getpid();
            CHECK(watchdog_begin(&job) == CTN_OK, "rank %d", r);
            CHECK(watchdog_runs(), "rank %d has not joined", r);
            if (work) work();
            meet();
            watchdog_end();
            _exit(0);
        }
    }
    if ((pid[RANKS] = spawn()) == 0) {
        while (!atomic_load(&board->invited)) nap(0.01);
        if (outside) outside();
        atomic_store(&board->go, true);
        _exit(0);
    }
    await(pid, RANKS + 1);
}

/* ---- foreign connections --------------------------------------------------------------------- */

static int connect_to(const struct sockaddr_in *a)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)a, sizeof *a) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Waits until the other side closes the connection. False: it sends something or stays. */
static bool is_closed(int fd)
{
    char c;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 1000 * LIMIT_S) == 1 && recv(fd, &c, 1, 0) <= 0;
}

/* For a second, rank 0 sleeps, apart from a turn now and then and from the events that are still
 * on their way. If it did not sleep, it would turn around thousands of times. */
static void watch_turns(int events)
{
    const double t0 = real_s();
    const int before = atomic_load(&board->turns[0]);
    nap(1);
    const int turns = atomic_load(&board->turns[0]) - before;
    const double took = real_s() - t0;
    CHECK(turns <= 100 * took + events, "rank 0 woke up %d times in %.2f s", turns, took);
}

static void stand_around(void)
{
    int fd[STRANGERS];
    for (int i = 0; i < STRANGERS; i++)
        CHECK((fd[i] = connect_to(&board->v.at[0])) >= 0, "stranger %d: %s", i, strerror(errno));
    watch_turns(STRANGERS);
    clock_pass(2 * HELLO_S);
    for (int i = 0; i < STRANGERS; i++)
        CHECK(is_closed(fd[i]), "stranger %d was not disconnected", i);
    for (int i = 0; i < STRANGERS; i++) /* once more while ranks join */
        CHECK((fd[i] = connect_to(&board->v.at[0])) >= 0, "stranger %d", i);
}

/* Nobody listens at the address any more, but existing connections stay. */
static void door_is_closed(void)
{
    const double end = real_s() + LIMIT_S;
    int fd;
    while ((fd = connect_to(&board->v.at[0])) >= 0 && real_s() < end) {
        close(fd);
        nap(0.01);
    }
    CHECK(fd < 0 && errno == ECONNREFUSED, "rank 0 still listens: %s", strerror(errno));
}

static void idle_strangers(void **state)
{
    (void)state;
    open_board(RANKS, 1);
    run_job(RANKS, door_is_closed, stand_around);
    assert_string_equal(board->log, "");
    close_board();
}

static void send_text(message m, size_t bytes)
{
    int fd = connect_to(&board->v.at[0]);
    m.bytes = m.bytes ? m.bytes : (uint32_t)(offsetof(message, text) + strlen(m.text) + 1);
    CHECK(fd >= 0, "%s", strerror(errno));
    CHECK(send(fd, &m, bytes ? bytes : m.bytes, MSG_NOSIGNAL) > 0, "%s", strerror(errno));
    if (bytes == 0) CHECK(is_closed(fd), "rank %d, token '%.64s' was accepted", m.rank, m.text);
    close(fd);
}

static void lie(void)
{
    message right = {.kind = MSG_HELLO, .rank = 1}, m;
    snprintf(right.text, sizeof right.text, "%s", board->v.token);
    m = right;
    m.text[0] = m.text[0] == 'a' ? 'b' : 'a';
    send_text(m, 0); /* a wrong token, a part of the token, none */
    m = right;
    m.text[8] = 0;
    send_text(m, 0);
    m.text[0] = 0;
    send_text(m, 0);
    m = right;
    m.rank = RANKS; /* no such rank; rank 0 itself; not a hello */
    send_text(m, 0);
    m.rank = 0;
    send_text(m, 0);
    m.rank = 1;
    m.kind = MSG_FAILED;
    send_text(m, 0);
    m = right;
    m.bytes = 0x7fffffff; /* a length that no message can have */
    send_text(m, sizeof m);
    send_text(right, 10); /* only the beginning, then closed */
}

static void wrong_tokens(void **state)
{
    (void)state;
    open_board(RANKS, 1);
    run_job(RANKS, NULL, lie);
    assert_string_equal(board->log, "");
    close_board();
}

/* ---- where it listens ------------------------------------------------------------------------ */

/* Finds the sockets of this machine that listen at this port. Stores their addresses and returns
 * their number. */
static int listening_at(in_port_t port, in_addr_t *address)
{
    char line[512];
    int n = 0;
    FILE *f = fopen("/proc/net/tcp", "r");
    while (f && fgets(line, sizeof line, f)) {
        unsigned at, number, state;
        if (sscanf(line, " %*d: %x:%x %*x:%*x %x", &at, &number, &state) != 3) continue;
        if (state != 0x0a || number != ntohs(port)) continue;
        *address = at;
        n++;
    }
    if (f) fclose(f);
    return n;
}

/* It listens only at the addresses that it offers. */
static void look_at_doors(void)
{
    const in_addr_t loopback = htonl(INADDR_LOOPBACK);
    CHECK(board->v.n > 0, "no address");
    for (int i = 0; i < board->v.n; i++) {
        const struct sockaddr_in *a = &board->v.at[i];
        in_addr_t at = 0;
        const int n = listening_at(a->sin_port, &at);
        CHECK(n == 1 && at == a->sin_addr.s_addr, "%d listen at port %d", n, ntohs(a->sin_port));
        CHECK(at != htonl(INADDR_ANY), "on all interfaces");
        if (board->nodes == 1) CHECK(at == loopback && board->v.n == 1, "not the loopback alone");
        if (board->nodes > 1 && board->v.n > 1) CHECK(at != loopback, "on the loopback");
    }
}

/* Nothing listens any more, and all ranks came through the same address. */
static void doors_are_closed(void)
{
    struct sockaddr_in peer = {.sin_port = 0};
    socklen_t n = sizeof peer;
    bool found = false;
    const double end = real_s() + LIMIT_S;
    for (int i = 0; i < board->v.n; i++) {
        in_addr_t at;
        while (listening_at(board->v.at[i].sin_port, &at) > 0 && real_s() < end) nap(0.05);
        CHECK(listening_at(board->v.at[i].sin_port, &at) == 0, "address %d is open", i);
    }
    if (my_rank > 0)
        CHECK(getpeername(dog.to, (struct sockaddr *)&peer, &n) == 0, "%s", strerror(errno));
    for (int i = 0; i < board->v.n; i++)
        found = found || (peer.sin_addr.s_addr == board->v.at[i].sin_addr.s_addr &&
                          peer.sin_port == board->v.at[i].sin_port);
    CHECK(found || my_rank == 0, "rank %d is connected to another address", my_rank);
    if (my_rank == 1) atomic_store(&board->outside, peer.sin_port);
    meet();
    CHECK(my_rank == 0 || atomic_load(&board->outside) == peer.sin_port, "several addresses");
}

static void one_host(void **state)
{
    (void)state;
    open_board(RANKS, 1);
    run_job(RANKS, doors_are_closed, look_at_doors);
    assert_string_equal(board->log, "");
    close_board();
}

static void several_hosts(void **state)
{
    (void)state;
    open_board(RANKS, 2);
    run_job(1, doors_are_closed, look_at_doors);
    assert_string_equal(board->log, "");
    close_board();
}

/* Two networks: as soon as the first rank of another host has connected through one, the other
 * is closed. */
static void find_the_network(void)
{
    int open = 2;
    in_addr_t at;
    look_at_doors();
    CHECK(board->v.n == 2, "%d addresses", board->v.n);
    atomic_store(&board->go, true);
    for (double end = real_s() + LIMIT_S; open > 1 && real_s() < end; nap(0.02)) {
        open = 0;
        for (int i = 0; i < 2; i++) open += listening_at(board->v.at[i].sin_port, &at);
    }
    CHECK(open == 1, "rank 0 listens on %d networks", open);
    atomic_store(&board->last, true);
}

static void two_networks(void **state)
{
    (void)state;
    if (unshare(CLONE_NEWNET) != 0 || /* as root; for this and later cases */
        system("ip link set lo up && for i in 1 2; do ip link add d$i type bridge && "
               "ip address add 10.$i.0.1/24 dev d$i && ip link set d$i up || exit 1; done") != 0)
        skip();
    open_board(RANKS, 2);
    board->last = false;
    run_job(1, doors_are_closed, find_the_network);
    assert_string_equal(board->log, "");
    close_board();
}

/* ---- cost ------------------------------------------------------------------------------------ */

static uint32_t data_segments(void)
{
    struct tcp_info t = {0};
    socklen_t n = sizeof t;
    CHECK(getsockopt(dog.to, IPPROTO_TCP, TCP_INFO, &t, &n) == 0, "%s", strerror(errno));
    return t.tcpi_data_segs_in + t.tcpi_data_segs_out;
}

static void do_nothing(void)
{
    if (my_rank == 0) {
        for (int i = 0; i < 20; i++) {
            watchdog_at(AT_COMPUTE, i);
            nap(0.1);
        }
        return;
    }
    const uint32_t before = data_segments();
    nap(1.5);
    CHECK(data_segments() == before, "%u messages while all is well", data_segments() - before);
}

static void silent_while_well(void **state)
{
    (void)state;
    open_board(RANKS, 1);
    run_job(RANKS, do_nothing, NULL);
    assert_string_equal(board->log, "");
    close_board();
}

/* ---- many ranks ------------------------------------------------------------------------------ */

static void limit_files(rlim_t soft, rlim_t hard)
{
    struct rlimit r;
    CHECK(getrlimit(RLIMIT_NOFILE, &r) == 0, "%s", strerror(errno));
    if (hard > 0 && hard < r.rlim_max) r.rlim_max = hard;
    r.rlim_cur = soft < r.rlim_max ? soft : r.rlim_max;
    CHECK(setrlimit(RLIMIT_NOFILE, &r) == 0, "%s", strerror(errno));
}

/* Joins as ranks 1 to CROWD - 1 in one process. Returns how many were accepted. */
static int join_as_crowd(int *fd)
{
    int joined = 0;
    for (int i = 1; i < CROWD; i++) {
        message m = {.kind = MSG_HELLO, .rank = i};
        snprintf(m.text, sizeof m.text, "%s", board->v.token);
        fd[i] = connect_to(&board->v.at[0]);
        if (fd[i] >= 0) (void)message_send(fd[i], &m);
    }
    for (int i = 1; i < CROWD; i++) {
        message m;
        struct pollfd p = {.fd = fd[i], .events = POLLIN};
        if (fd[i] >= 0) poll(&p, 1, 1000 * LIMIT_S);
        const bool taken = fd[i] >= 0 && message_receive(fd[i], &m) == 1 && m.kind == MSG_TAKEN;
        if (!taken && !board->first_left_out) board->first_left_out = i;
        joined += taken;
    }
    return joined;
}

/* Rank 0 and a crowd. Returns how many have joined. */
static int run_crowd(rlim_t soft, rlim_t hard)
{
    pid_t pid[2];
    open_board(2, 1);
    if ((pid[0] = spawn()) == 0) {
        be_rank(0, CROWD, CROWD);
        limit_files(soft, hard);
        board->pid[0] = getpid();
        CHECK(watchdog_begin(&job) == CTN_OK, "rank 0");
        meet();
        _exit(0);
    }
    if ((pid[1] = spawn()) == 0) {
        static int fd[CROWD];
        invitation v;
        my_rank = 1;
        atomic_store(&board->go, true);
        limit_files(CROWD + 100, 0);
        if (ctn_comm_broadcast(NULL, &v, sizeof v, 0) != CTN_OK) _exit(1);
        atomic_store(&board->outside, join_as_crowd(fd));
        meet();
        watch_turns(1);
        meet();
        CHECK(is_closed(fd[1]), "rank 0 must end first, so that the crowd has not died");
        _exit(0);
    }
    await(pid, 2);
    return atomic_load(&board->outside);
}

static void a_thousand_ranks(void **state)
{
    (void)state;
    struct rlimit r;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &r), 0);
    if (r.rlim_max < 2 * CROWD) skip();
    assert_int_equal(run_crowd(256, 0), CROWD - 1); /* the soft limit is raised */
    assert_string_equal(board->log, "");
    close_board();
}

/* Ranks beyond the limit are reported, and some files are left for the training. Which ranks those
 * are depends on whose hello arrives first. */
static void limit_of_files(void **state)
{
    (void)state;
    char text[100];
    assert_int_equal(run_crowd(256, 600), 88);
    snprintf(text, sizeof text, "911 of 1000 ranks, the first of them rank %d on host%d",
             board->first_left_out, board->first_left_out);
    assert_non_null(strstr(board->log, text));
    assert_non_null(strstr(board->log, "raise the limit on open files (ulimit -Hn)"));
    close_board();
}

/* ---- a rank that does not answer ------------------------------------------------------------- */

static bool was_said(const char *text)
{
    pthread_mutex_lock(&board->lock);
    const bool found = strstr(board->log, text) != NULL;
    pthread_mutex_unlock(&board->lock);
    return found;
}

static void wait_for_log(const char *text)
{
    for (double end = real_s() + LIMIT_S; !was_said(text) && real_s() < end;) nap(0.05);
    CHECK(was_said(text), "%s not in: %.150s", text, board->log);
}

/* On rank 0: makes its watchdog ask all ranks where they are. */
static void stall(void)
{
    watchdog_stall(60);
    clock_pass(120);
}

/* On rank 0, after stall(): waits until the answer of this rank has been read. */
static void wait_for_answer(int rank)
{
    while (atomic_load(&board->asked[rank]) == 0) nap(0.01);
    while (atomic_load(&board->turns[rank]) == atomic_load(&board->asked[rank])) nap(0.01);
    const int sent = atomic_load(&board->turns[0]); /* the turn after this one reads it */
    while (atomic_load(&board->turns[0]) < sent + 2) nap(0.01);
}

/* The state of a process: T is stopped. */
static char state_of(pid_t pid)
{
    char path[64], state = '?';
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "r");
    CHECK(f && fscanf(f, "%*d (%*[^)]) %c", &state) == 1, "cannot read %s", path);
    fclose(f);
    return state;
}

static void stop_one(void)
{
    if (my_rank != 0) return;
    kill(board->pid[2], SIGSTOP);
    while (state_of(board->pid[2]) != 'T') nap(0.01);
    stall();
    wait_for_answer(1);
    clock_pass(2 * ROLL_S);
    wait_for_log("no progress for 60 s");
    wait_for_log("missing: rank 2\n");
    kill(board->pid[2], SIGCONT);
    while (!was_said("the job makes progress again")) {
        watchdog_at(AT_COMPUTE, 1);
        nap(0.05);
    }
    watchdog_stall(0);
}

static void stopped_rank(void **state)
{
    (void)state;
    open_board(RANKS, 1);
    run_job(RANKS, stop_one, NULL);
    assert_null(strstr(board->log, "died"));
    close_board();
}

static void wait_for_each_other(void)
{
    if (my_rank == 0) {
        stall();
        wait_for_log("not in the same collective: check rank 1\n");
        watchdog_stall(0);
    }
    meet();
}

/* One rank has one batch more: all answer, and all are waiting. */
static void different_collectives(void **state)
{
    (void)state;
    open_board(RANKS, 1);
    board->waiting = true;
    for (int r = 0; r < RANKS; r++) board->started[r] = r == 1 ? 5 : 4;
    run_job(RANKS, wait_for_each_other, NULL);
    assert_null(strstr(board->log, "missing"));
    close_board();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_host),
        cmocka_unit_test(several_hosts),
        cmocka_unit_test(wrong_tokens),
        cmocka_unit_test(idle_strangers),
        cmocka_unit_test(silent_while_well),
        cmocka_unit_test(a_thousand_ranks),
        cmocka_unit_test(limit_of_files),
        cmocka_unit_test(stopped_rank),
        cmocka_unit_test(different_collectives),
        cmocka_unit_test(two_networks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
