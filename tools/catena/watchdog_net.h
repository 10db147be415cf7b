/* SPDX-License-Identifier: Apache-2.0
 *
 * What watchdog.c and watchdog_net.c share: the state of a rank's watchdog and the messages between
 * ranks.
 */
#ifndef CATENA_WATCHDOG_NET_H
#define CATENA_WATCHDOG_NET_H

#include <pthread.h>
#include <stdatomic.h>

#include "watchdog.h"

enum { TEXT = 1024 };

/* Seconds. Together they stay below the 10 s in which a broken job must be gone. */
#define BEAT_S 0.5   /* from message to message */
#define LOST_S 4     /* without an answer of the other side's kernel: the link is cut */
#define CAUSE_S 6    /* a broken exchange waits so long for its cause */
#define TAKEN_S 2    /* an error waits so long for rank 0 to take it */
#define TOLD_S 1     /* rank 0 waits so long until all know */
#define FIRST_S 0.5  /* a rank that failed ends first: launchers keep the first exit code */
#define CONNECT_S 10 /* to find rank 0 */

typedef enum {
    MSG_HELLO,  /* the token */
    MSG_BEAT,   /* where a rank is */
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
    uint64_t moves, started, finished;
    char text[TEXT];
} message;

typedef struct {
    launch *l; /* NULL: there is no watchdog */
    pthread_t thread;
    pthread_mutex_t lock; /* guards cause, also, and sending on `to` */
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
    int wake;        /* eventfd */
    int to;          /* socket to rank 0; rank 0: that on which it listens */
    char file[4096]; /* where the cause goes too; empty: nowhere */
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
int watchdog_accept(int listening); /* -1: nobody is there */

/* ---- watchdog_hub.c: rank 0's side ----------------------------------------------------------- */

/* Accept and read what there is, tell a cause, report a stall; again and again until the end. */
void *watchdog_hub(void *token);
bool watchdog_new(const char *text); /* a line that was not written lately; remembered */
/* Write m whole; a peer that reads nothing for long gets no more beats. False: the connection is
 * broken. */
bool message_send(int fd, message *m);
/* One message of fd if there is a whole one: 1, 0: not yet, -1: the connection ended (errno 0:
 * closed). buf keeps what came. */
int message_receive(int fd, message *buf, uint32_t *have);
void message_fill(message *m);
void end_process(int code);

#endif
