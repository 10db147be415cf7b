/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the watchdog share: its state in a rank and the messages between ranks.
 */
#ifndef CATENA_WATCHDOG_NET_H
#define CATENA_WATCHDOG_NET_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>

#include "watchdog.h"

enum {
    TEXT = 1024,
    ADDRESSES = 16,     /* of rank 0's host that are offered */
    PROBED_RANKS = 1000 /* whose connections rank 0's kernel probes in a second */
};

/* Seconds. Together they stay below the 10 s in which a broken job must be gone. */
#define TURN_S 0.5   /* rank 0 looks at itself and at strangers */
#define TAKEN_S 2    /* an error waits so long for rank 0 to take it */
#define TOLD_S 1     /* rank 0 waits so long until all know */
#define FIRST_S 0.5  /* a rank that failed ends first: launchers keep the first exit code */
#define CONNECT_S 10 /* to find rank 0 */
#define HELLO_S 2    /* a connection may stay without the token */
#define ROLL_S 2     /* a rank has to say where it is */

/* Nobody sends anything while all is well: the kernels probe connections that are silent for so
 * long. Two probes without an answer and the link is cut. On more than 2,000 ranks probes are rarer,
 * so that rank 0's host does not get more of them. */
static inline int probe_s(int ranks)
{
    return ranks <= 2 * PROBED_RANKS ? 2 : ranks / PROBED_RANKS;
}

static inline int lost_s(int ranks)
{
    return 2 * probe_s(ranks);
}

/* A broken exchange waits so long for its cause. */
static inline int cause_s(int ranks)
{
    return lost_s(ranks) + 2;
}

typedef enum {
    MSG_HELLO,  /* the token */
    MSG_WHERE,  /* from rank 0: tell where you are */
    MSG_HERE,   /* where a rank is */
    MSG_LINE,   /* for rank 0 to write */
    MSG_FAILED, /* to rank 0: my error; from it: the first cause */
    MSG_TAKEN,  /* a hello or an error was taken */
    MSG_BYE     /* the end of a connection that is no failure */
} message_kind;

/* Sent up to the end of its text. All ranks are of one build. */
typedef struct {
    uint32_t bytes;
    int32_t kind, rank, activity, waiting, code;
    int64_t step;
    uint64_t started, finished;
    char text[TEXT];
} message;

/* How to join: rank 0's, the same on all ranks. */
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
    atomic_bool failing, taken; /* this rank sent its error; rank 0 has it */
    atomic_int code;            /* which it ends with */
    atomic_bool told;           /* rank 0: the others know, or are gone */
    ctn_comm *also;             /* guarded by lock */
    char cause[TEXT];
    double broken_at;
    _Atomic int64_t step, stall_ms;
    _Atomic uint64_t moves;
    atomic_int activity;
    int epoll, wake; /* what the thread waits for; an eventfd, of which it has to know */
    int to;          /* socket to rank 0 */
    char file[4096]; /* where the cause goes too; empty: nowhere */
    /* rank 0, until all have joined */
    int door[ADDRESSES]; /* it listens on; -1: closed. Of the hub's thread */
    int doors;
    char no_door[128];  /* why it listens on none */
    atomic_int keep;    /* the only address that is needed; -1: not known yet */
    atomic_bool joined; /* every rank has, or has given up */
    int64_t room;       /* connections that the limit of open files allows */
} watchdog_state;
extern watchdog_state dog;

/* ---- watchdog.c ------------------------------------------------------------------------------ */

/* The first cause; false: there was one. lost: rank 0 itself is gone, unreachable: because of the
 * network. */
bool watchdog_cause(const char *text, bool lost, bool unreachable);

/* ---- watchdog_net.c -------------------------------------------------------------------------- */

/* Send m, filled with where this rank is, to rank 0. From any thread. */
void watchdog_post(message *m);
void watchdog_wake(void);
void watchdog_close(void);
/* The thread is told by this name when something new can be read from fd, or its peer hung up. A
 * name of 0 is the wake's. */
bool watchdog_listen(int fd, uint64_t name);
/* Write m whole or not at all, without waiting. False: the connection is broken, or its peer reads nothing. */
bool message_send(int fd, message *m);
/* One message of fd if there is a whole one: 1, 0: not yet, -1: the connection ended (errno 0:
 * closed). Nothing is kept between calls. */
int message_receive(int fd, message *m);
void message_fill(message *m); /* with where this rank is */
/* Why a connection ended whose peer hung up in the middle of a message. */
int hung_up(int fd);
void end_process(int code);

/* ---- watchdog_join.c: how ranks find rank 0 ----------------------------------------------------- */

/* Rank 0: listen on the loopback where all ranks are on this host, else on each of its other addresses. */
void watchdog_invite(invitation *v, bool one_host);
/* Others: connect. Which address rank 0 answered on; -1: on none. */
int watchdog_join(const invitation *v);
int watchdog_accept(int listening); /* -1: nobody is there */

/* ---- watchdog_hub.c: rank 0's side ----------------------------------------------------------- */

/* Let ranks join, find the first cause and tell it, report a stall; until the end. */
void *watchdog_hub(void *invitation);
bool watchdog_new(const char *text); /* a line that was not written lately; remembered */

#endif
