/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the watchdog share: its state in a rank and the messages between ranks.
 */
#ifndef CATENA_WATCHDOG_NET_H
#define CATENA_WATCHDOG_NET_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>

#include "watchdog/watchdog.h"

enum {
    TEXT = 1024,
    ADDRESSES = 16,     /* maximum number of addresses of rank 0's host that are offered */
    PROBED_RANKS = 1000 /* connections that rank 0's kernel probes per second */
};

/* Times in seconds. A broken job must end within 10 s, so their sum stays below that. */
#define TURN_S 0.5   /* interval at which rank 0 checks its own progress and new connections */
#define TAKEN_S 2    /* how long a failing rank waits for rank 0 to accept its error */
#define TOLD_S 1     /* how long rank 0 waits until all ranks know the cause */
#define FIRST_S 0.5  /* head start of the rank that failed: launchers keep the first exit code */
#define CONNECT_S 10 /* maximum time to find rank 0 */
#define HELLO_S 2    /* maximum time that a connection may stay open without the token */
#define SURVIVE_S 12 /* how long the ranks that are left may take to continue without a lost one */
#define ROLL_S 2     /* maximum time for a rank to answer where it is */

/* Seconds of silence after which the kernel probes a connection, since nobody sends anything
 * while all is well. Two unanswered probes mean that the link is cut. With more than 2,000 ranks
 * the interval grows, so that the load on rank 0's host does not. */
static inline int probe_s(int ranks)
{
    return ranks <= 2 * PROBED_RANKS ? 2 : ranks / PROBED_RANKS;
}

static inline int lost_s(int ranks)
{
    return 2 * probe_s(ranks);
}

/* How long a rank whose exchange is broken waits for the cause. */
static inline int cause_s(int ranks)
{
    return lost_s(ranks) + 2;
}

typedef enum {
    MSG_HELLO,  /* the token */
    MSG_WHERE,  /* from rank 0: asks a rank where it is */
    MSG_HERE,   /* the answer */
    MSG_LINE,   /* a line for rank 0 to print */
    MSG_FAILED, /* to rank 0: this rank's error; from rank 0: the root cause */
    MSG_LOST,   /* from rank 0: the root cause is that a rank is gone */
    MSG_TAKEN,  /* acknowledges a hello or an error */
    MSG_BYE     /* announces the orderly end of a connection */
} message_kind;

/* Sent without the unused end of its text. All ranks run the same build. */
typedef struct {
    uint32_t bytes;
    int32_t kind, rank, activity, waiting, code;
    int64_t step;
    uint64_t started, finished;
    char text[TEXT];
} message;

/* How to join. Made by rank 0 and broadcast to all ranks. */
typedef struct {
    char token[40];
    int32_t n;
    struct sockaddr_in at[ADDRESSES];
} invitation;

typedef struct {
    launch *l; /* NULL: there is no watchdog */
    pthread_t thread;
    pthread_mutex_t lock; /* guards cause, also, file, and sending on `to` */
    atomic_bool broken, stop, agreed;
    atomic_bool lost;           /* the root cause is that a rank is gone */
    atomic_bool failing, taken; /* this rank sent its error; rank 0 acknowledged it */
    atomic_int code;            /* exit code of this rank's error */
    atomic_int first_code;      /* rank 0: that of the rank that failed first; 0: none said it */
    atomic_bool told;           /* rank 0: the other ranks know the cause or are gone */
    ctn_comm *also;             /* guarded by lock */
    char cause[TEXT];
    double broken_at;
    _Atomic int64_t step, stall_ms;
    double stepped;         /* when the last step ended */
    _Atomic double slowest; /* seconds of the slowest step */
    _Atomic uint64_t moves;
    atomic_int activity;
    int epoll, wake; /* the thread waits on epoll; wake is an eventfd that interrupts it */
    int to;          /* socket to rank 0 */
    char file[4096]; /* file to which the cause is also written; empty: none */
    /* On rank 0, until all ranks have joined: */
    int door[ADDRESSES]; /* listening sockets, -1: closed; used by the hub's thread */
    int doors;
    char no_door[128];  /* why there is no listening socket */
    atomic_int keep;    /* index of the only address needed; -1: not known yet */
    atomic_bool joined; /* every rank has joined or given up */
    int64_t room;       /* connections that the limit on open files allows */
} watchdog_state;
extern watchdog_state dog;

/* ---- watchdog.c ------------------------------------------------------------------------------ */

/* Whether this process must not end yet, because its main thread may continue without a lost
 * rank. */
bool watchdog_waits(void);
/* Set the root cause; false: one was set before. lost: rank 0 itself is gone; unreachable:
 * because of the network. */
bool watchdog_cause(const char *text, bool lost, bool unreachable);

/* ---- net.c ----------------------------------------------------------------------------------- */

/* Send m to rank 0, after filling in where this rank is. From any thread. */
void watchdog_post(message *m);
void watchdog_wake(void);
void watchdog_close(void);
/* Report new data on fd, or that its peer hung up, to the thread under this name. The name 0 is
 * for the wake. */
bool watchdog_listen(int fd, uint64_t name);
/* Send m without blocking. False: the connection is broken, or its peer does not read. */
bool message_send(int fd, message *m);
/* Receive one message if it has arrived completely. Returns 1, or 0: not yet, or -1: the
 * connection ended (errno 0: closed). Keeps no state between calls. */
int message_receive(int fd, message *m);
void message_fill(message *m); /* fill in where this rank is */
/* The error of a connection whose peer hung up in the middle of a message. */
int hung_up(int fd);
void end_process(int code);

/* ---- join.c: how ranks find rank 0 ----------------------------------------------------------- */

/* Rank 0: listen on the loopback address if all ranks are on this host, else on each of its
 * other addresses. */
void watchdog_invite(invitation *v, bool one_host);
/* Other ranks: connect. Returns the index of the address that rank 0 answered on; -1: none. */
int watchdog_join(const invitation *v);
int watchdog_accept(int listening); /* -1: no connection is pending */

/* ---- hub.c: rank 0's side -------------------------------------------------------------------- */

/* Rank 0's thread: accepts ranks, finds and sends the root cause, and reports stalls. */
void *watchdog_hub(void *invitation);
/* Whether this line was not printed recently; remembers it. */
bool watchdog_new(const char *text);

#endif
