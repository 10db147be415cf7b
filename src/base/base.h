/* SPDX-License-Identifier: Apache-2.0
 *
 * Base layer: what every other folder may use. Errors, memory, arenas, hashing, vectors,
 * counter-based random numbers, environment table, topology, threads, clock. Knows nothing of
 * tensors.
 */
#ifndef CTN_BASE_BASE_H
#define CTN_BASE_BASE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <catena/base.h>

/* ---- memory (alloc.c): every allocation of the library goes through here --------------------- */

#define CTN__ALIGN 64 /* bytes: one cache line and one AVX-512 register */

/* NULL on failure, with ENOMEM recorded. Zero bytes give a valid pointer. */
void *ctn__malloc(size_t bytes);
void *ctn__calloc(size_t count, size_t bytes);
void *ctn__aligned(size_t bytes); /* 64-byte aligned */
void ctn__free(void *p);
/* Grow keeping `used` bytes; on failure p stays valid and NULL is returned. */
void *ctn__grow(void *p, size_t used, size_t bytes);
char *ctn__strdup(const char *s);
/* a*b without overflow, SIZE_MAX when it does not fit (which then fails to allocate). */
size_t ctn__mul(size_t a, size_t b);

/* Growable array of T: struct { T *at; size_t n, cap; }. push evaluates to false on ENOMEM. */
#define CTN__VEC(T)    \
    struct {           \
        T *at;         \
        size_t n, cap; \
    }
#define ctn__vec_reserve(v, want) \
    ((want) <= (v)->cap ||        \
     ctn__vec_grow((void **)&(v)->at, (v)->n, &(v)->cap, (want), sizeof *(v)->at))
#define ctn__vec_push(v, x) (ctn__vec_reserve(v, (v)->n + 1) && ((v)->at[(v)->n++] = (x), true))
#define ctn__vec_free(v) (ctn__free((v)->at), (v)->at = NULL, (v)->n = (v)->cap = 0)
bool ctn__vec_grow(void **at, size_t n, size_t *cap, size_t want, size_t elem);

/* ---- arena (arena.c): bump allocation, freed together; chunks are kept for reuse ------------- */

typedef struct ctn__chunk ctn__chunk;
typedef struct {
    ctn__chunk *first, *cur;
    char *p, *end;
} ctn__arena;

void *ctn__arena_slow(ctn__arena *a, size_t bytes);
/* 16-byte aligned, not zeroed. NULL with ENOMEM recorded. */
static inline void *ctn__arena_get(ctn__arena *a, size_t bytes)
{
    /* Wraps for the SIZE_MAX of ctn__mul, which slow then refuses. */
    size_t need = (bytes + 15) & ~(size_t)15;
    if (need < bytes || a->p == NULL || (size_t)(a->end - a->p) < need)
        return ctn__arena_slow(a, bytes);
    void *r = a->p;
    a->p += need;
    return r;
}
void *ctn__arena_zero(ctn__arena *a, size_t bytes);
char *ctn__arena_str(ctn__arena *a, const char *s);
char *ctn__arena_printf(ctn__arena *a, const char *fmt, ...) CTN_PRINTF(2, 3);
size_t ctn__arena_bytes(const ctn__arena *a); /* held in all */
void ctn__arena_reset(ctn__arena *a);         /* everything handed out is dead; chunks stay */
void ctn__arena_free(ctn__arena *a);

/* ---- strings (text.c): a growing text buffer, used for printed plans and tensors ------------- */

typedef struct {
    char *s; /* always 0-terminated once something was added; NULL before */
    size_t n, cap;
    bool failed; /* an allocation failed: the text is incomplete */
} ctn__text;
void ctn__text_add(ctn__text *t, const char *fmt, ...) CTN_PRINTF(2, 3);
void ctn__text_free(ctn__text *t);
bool ctn__match(const char *pattern, const char *s); /* shell pattern: * and ? */

/* ---- hash (hash.c): running 128-bit hash (xxHash) -------------------------------------------- */

typedef struct {
    uint64_t lo, hi;
} ctn__hash128;
typedef struct ctn__hasher ctn__hasher;
ctn__hasher *ctn__hasher_new(void);
void ctn__hasher_free(ctn__hasher *h);
void ctn__hasher_reset(ctn__hasher *h);
void ctn__hasher_add(ctn__hasher *h, const void *p, size_t bytes);
ctn__hash128 ctn__hasher_value(const ctn__hasher *h); /* of all bytes since reset; may go on */
ctn__hash128 ctn__hash(const void *p, size_t bytes);

/* ---- random (random.c): Philox4x32-10, a pure function of key and counter -------------------- */

typedef struct {
    uint32_t v[4];
} ctn__rand4;
/* Inline, so that loops over elements can become vector code. */
static inline ctn__rand4 ctn__philox(uint64_t key, uint64_t hi, uint64_t lo)
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint32_t c0 = (uint32_t)lo, c1 = (uint32_t)(lo >> 32);
    uint32_t c2 = (uint32_t)hi, c3 = (uint32_t)(hi >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0;
        uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        uint32_t n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return (ctn__rand4){{c0, c1, c2, c3}};
}
/* element i of stream (seed, stream): uniform in [0,1) and standard normal. Both draw from the same
 * words, so a stream is used for one of them only. */
double ctn__uniform(uint64_t seed, uint64_t stream, uint64_t i);
double ctn__normal(uint64_t seed, uint64_t stream, uint64_t i);
uint64_t ctn__mix(uint64_t a, uint64_t b); /* one stream id from two */

/* ---- environment (env.c): the one table of CATENA_* variables -------------------------------- */

typedef enum {
#define CTN__ENV(id, name, type, def, help) CTN__ENV_##id,
#include "base/env.def"
#undef CTN__ENV
    CTN__ENV_COUNT
} ctn__env_id;
/* Value of a variable now: parsed, or its default. Bad text gives the default and a warning. */
int64_t ctn__env_int(ctn__env_id id);
bool ctn__env_bool(ctn__env_id id);
const char *ctn__env_str(ctn__env_id id);
/* One warning for each CATENA_* variable that is not in the table; once per process, by the first
 * context. */
void ctn__env_check(void);

/* ---- log (log.c): the library never prints; warnings go to the host's sink ------------------- */

void ctn__warn(const char *fmt, ...) CTN_PRINTF(1, 2);
void ctn__notice(const char *fmt, ...) CTN_PRINTF(1, 2);

/* ---- topology and threads (topology.c, threads.c) -------------------------------------------- */

typedef struct {
    int cpus;  /* logical CPUs this process may use */
    int cores; /* physical cores behind them */
    int numa;  /* NUMA nodes behind them */
} ctn__topology;
/* Read once per process, through hwloc; falls back to the affinity mask. */
const ctn__topology *ctn__topology_get(void);
/* Default compute threads: CATENA_THREADS, else OMP_NUM_THREADS, else physical cores of the cpuset.
 * *source names where the number came from. */
int ctn__default_threads(const char **source);

/* Floating-point mode of a run (rule 16): enter sets flush-to-zero and denormals-are-zero on every
 * thread of the team and clears the underflow flag; leave restores the caller's mode on each and
 * tells whether any thread had raised underflow. */
typedef struct ctn__fpmode ctn__fpmode;
ctn__fpmode *ctn__fpmode_new(int threads);
void ctn__fpmode_free(ctn__fpmode *m);
void ctn__fpmode_enter(ctn__fpmode *m);
bool ctn__fpmode_leave(ctn__fpmode *m);

/* Cores of a run (rule 17), bit i of word i/64 = logical CPU i; all ones means every core. claim
 * waits until no running claim intersects, first come first served; not recursive. */
typedef struct {
    uint64_t word[16];
} ctn__coreset;
void ctn__cores_claim(const ctn__coreset *c);
void ctn__cores_release(const ctn__coreset *c);
/* While a run waits for another rank it holds no cores: that rank may be a thread of this process
 * that needs them to get there. pause gives back what this thread has claimed (NULL: nothing),
 * resume claims it again. */
const ctn__coreset *ctn__cores_pause(void);
void ctn__cores_resume(const ctn__coreset *c); /* NULL is fine */

/* ---- optional arguments (opt.c) ------------------------------------------------------------------ */

/* Copy a caller's option struct (NULL: none) over zeros in *to. Errors: EARG, struct_size
 * not set. */
ctn_status ctn__opt(const char *who, void *to, size_t bytes, const void *from);

/* ---- store (store.c): tuning results on disk, one file per machine and version -------------------- */

typedef struct ctn__store ctn__store;
typedef struct {
    const char *folder; /* NULL: as the environment says */
    int64_t max_bytes;  /* of all files of the folder; 0: 64 MB */
    int64_t max_files;  /* 0: 100 */
} ctn__store_opt;
/* machine: everything a result depends on besides its problem, one line of text (CPU, instruction sets, versions,
 * threads). What is there is read; a damaged or foreign file counts as empty, a missing folder too.
 * opt NULL: defaults. One thread at a time. Errors: ENOMEM. */
ctn_status ctn__store_open(ctn__store **out, const char *machine, const ctn__store_opt *opt);
/* NULL: not known. Borrowed until the next put of this key, or save. Anybody may have written it. */
const char *ctn__store_find(const ctn__store *s, const char *key);
/* Printable ASCII, not empty. Errors: EARG, ENOMEM. */
ctn_status ctn__store_put(ctn__store *s, const char *key, const char *value);
/* Write what was put since, together with what others wrote meanwhile. A folder that cannot be written is no
 * error: all stays in memory, and problem has a line about it. Errors: ENOMEM. */
ctn_status ctn__store_save(ctn__store *s);
const char *ctn__store_problem(const ctn__store *s); /* of the last open or save; NULL: none */
/* All entries as a file of its own would have them. */
void ctn__store_text(const ctn__store *s, ctn__text *out);
/* Exactly these entries from now on. CTN_END: they are of another machine, nothing has changed. Errors: EFORMAT,
 * ENOMEM. */
ctn_status ctn__store_replace(ctn__store *s, const char *text, size_t n);
void ctn__store_close(ctn__store *s); /* without save what was put is forgotten */
/* A folder with its parents. Errors: ENOMEM; EIO, without a message, with errno. */
ctn_status ctn__make_folder(const char *path, unsigned mode);
/* Adds the path of the cache folder, nothing when the environment names none. It may not exist yet. */
void ctn__cache_folder(ctn__text *out);

/* Adds the folder of the file that Catena is in, with a slash; nothing when that is the program itself or unknown. */
void ctn__own_folder(ctn__text *out);

/* ---- clock ----------------------------------------------------------------------------------- */

uint64_t ctn__now_ns(void); /* monotonic */

#endif
