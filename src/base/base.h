/* SPDX-License-Identifier: Apache-2.0
 *
 * Base layer, used by every other folder: errors, memory, arenas, hashing, vectors, counter-based
 * random numbers, the environment table, topology, threads and the clock. It knows nothing about
 * tensors.
 */
#ifndef CTN_BASE_BASE_H
#define CTN_BASE_BASE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <catena/base.h>

/* ---- memory (alloc.c): all allocations of the library go through here ----------------------- */

#define CTN__ALIGN 64 /* bytes: one cache line and one AVX-512 register */

/* NULL on failure, with ENOMEM recorded. Zero bytes give a valid pointer. */
void *ctn__malloc(size_t bytes);
void *ctn__calloc(size_t count, size_t bytes);
void *ctn__aligned(size_t bytes); /* 64-byte aligned */
void ctn__free(void *p);
/* Grows a block and keeps its first `used` bytes. On failure returns NULL, and p stays valid. */
void *ctn__grow(void *p, size_t used, size_t bytes);
char *ctn__strdup(const char *s);
/* a*b, or SIZE_MAX on overflow, so that the allocation fails. */
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

/* ---- arena (arena.c): bump allocation, freed together; chunks are kept for reuse ------------ */

typedef struct ctn__chunk ctn__chunk;
typedef struct {
    ctn__chunk *first, *cur;
    char *p, *end;
} ctn__arena;

void *ctn__arena_slow(ctn__arena *a, size_t bytes);
/* 16-byte aligned, not zeroed. NULL with ENOMEM recorded. */
static inline void *ctn__arena_get(ctn__arena *a, size_t bytes)
{
    /* Wraps around for SIZE_MAX (from ctn__mul); ctn__arena_slow then refuses it. */
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
size_t ctn__arena_bytes(const ctn__arena *a); /* total held */
void ctn__arena_reset(ctn__arena *a);         /* invalidates all pointers; keeps the chunks */
void ctn__arena_free(ctn__arena *a);

/* ---- strings (text.c): a growing text buffer, used for printed plans and tensors ------------ */

typedef struct {
    char *s; /* NULL until something was added, then always 0-terminated */
    size_t n, cap;
    bool failed; /* an allocation failed: the text is incomplete */
} ctn__text;
void ctn__text_add(ctn__text *t, const char *fmt, ...) CTN_PRINTF(2, 3);
void ctn__text_free(ctn__text *t);
/* Length in bytes of the UTF-8 character at s; 0: it is invalid or a control character. */
int ctn__character(const char *s);
/* Replaces, in place, every byte of control characters and of invalid UTF-8 by a question mark:
 * names from files must not control a terminal. Line ends and tabs stay. */
void ctn__text_clean(char *s);
/* Makes one line of a message whose format has no line ends, so that a name does not look like a
 * line of ours; not of a text that is passed on ("%s"), nor of the trace of an error. */
void ctn__text_join(const char *fmt, char *s);
bool ctn__match(const char *pattern, const char *s); /* shell pattern: * and ? */
/* Does the pattern match a dotted name, or its beginning up to a dot? "fc" matches "fc.weight". */
bool ctn__match_below(const char *pattern, const char *name);

/* ---- hash (hash.c): running 128-bit hash (xxHash) ------------------------------------------- */

typedef struct {
    uint64_t lo, hi;
} ctn__hash128;
typedef struct ctn__hasher ctn__hasher;
ctn__hasher *ctn__hasher_new(void);
void ctn__hasher_free(ctn__hasher *h);
void ctn__hasher_reset(ctn__hasher *h);
void ctn__hasher_add(ctn__hasher *h, const void *p, size_t bytes);
/* The hash of all bytes since the last reset. More bytes may be added afterwards. */
ctn__hash128 ctn__hasher_value(const ctn__hasher *h);
ctn__hash128 ctn__hash(const void *p, size_t bytes);
/* Hash tables whose keys come from files: another function in each process, so that no file can put
 * all of its keys into one slot. Results must not depend on it. */
uint64_t ctn__table_hash(const void *p, size_t bytes);
uint64_t ctn__table_seed(void); /* random, the same during a process */
/* The same for keys of 8 bytes, as quick as a multiplication. */
static inline uint64_t ctn__table_mix(uint64_t key, uint64_t seed)
{
    const unsigned __int128 p = (unsigned __int128)(key ^ seed) * (seed | 1);
    return (uint64_t)p ^ (uint64_t)(p >> 64);
}

/* ---- random (random.c): Philox4x32-10, a pure function of key and counter ------------------- */

typedef struct {
    uint32_t v[4];
} ctn__rand4;
/* Inline, so that the compiler can vectorise loops over elements. */
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
/* Element i of the stream (seed, stream): uniform in [0,1) or standard normal. Both use the same
 * random words, so use a stream for only one of them. */
double ctn__uniform(uint64_t seed, uint64_t stream, uint64_t i);
double ctn__normal(uint64_t seed, uint64_t stream, uint64_t i);
uint64_t ctn__mix(uint64_t a, uint64_t b); /* makes one stream id from two */

/* ---- environment (env.c): the one table of CATENA_* variables ------------------------------- */

typedef enum {
#define CTN__ENV(id, name, type, def, help) CTN__ENV_##id,
#include "base/env.def"

#if defined(__clang_analyzer__)
/* Let the analyzer see that these return the status they are given. */
#define ctn_fail(status, ...) ((void)(ctn_fail)(status, __VA_ARGS__), (status))
#define ctn_error_trace(status, ...) ((void)(ctn_error_trace)(status, __VA_ARGS__), (status))
#endif
#undef CTN__ENV
    CTN__ENV_COUNT
} ctn__env_id;
/* The current value of a variable, or its default. Invalid text gives the default and a warning. */
int64_t ctn__env_int(ctn__env_id id);
bool ctn__env_bool(ctn__env_id id);
const char *ctn__env_str(ctn__env_id id);
/* Warns about each CATENA_* variable that is not in the table. Called by every context, but runs
 * only once per process. */
void ctn__env_check(void);

/* ---- log (log.c): the library never prints; warnings go to the host's sink ------------------ */

void ctn__warn(const char *fmt, ...) CTN_PRINTF(1, 2);
void ctn__notice(const char *fmt, ...) CTN_PRINTF(1, 2);

/* ---- topology and threads (topology.c, threads.c) ------------------------------------------- */

typedef struct {
    int cpus;  /* logical CPUs this process may use */
    int cores; /* physical cores they belong to */
    int numa;  /* NUMA nodes they belong to */
} ctn__topology;
/* Read once per process, through hwloc; falls back to the affinity mask. */
const ctn__topology *ctn__topology_get(void);
/* The default number of compute threads: CATENA_THREADS, else OMP_NUM_THREADS, else the physical
 * cores of the cpuset. *source names where the number came from. */
int ctn__default_threads(const char **source);

/* The floating-point mode of a run (rule 16). enter sets flush-to-zero and denormals-are-zero on
 * every thread of the team and clears the underflow flag. leave restores the caller's mode on each
 * thread and returns whether any of them raised underflow. */
typedef struct ctn__fpmode ctn__fpmode;
ctn__fpmode *ctn__fpmode_new(int threads);
void ctn__fpmode_free(ctn__fpmode *m);
void ctn__fpmode_enter(ctn__fpmode *m);
bool ctn__fpmode_leave(ctn__fpmode *m);

/* The cores of a run (rule 17): bit i of word i/64 is logical CPU i, and all ones means every core.
 * claim waits, first come first served, until no running claim intersects this one. It is not
 * recursive. */
typedef struct {
    uint64_t word[16];
} ctn__coreset;
void ctn__cores_claim(const ctn__coreset *c);
void ctn__cores_release(const ctn__coreset *c);
int ctn__cores_waiting(void); /* claims that wait now, for tests */
/* A run gives up its cores while it waits for another rank, because that rank may be a thread of
 * this process that needs them. pause releases the cores that this thread has claimed and returns
 * them (NULL: none); resume claims them again. */
const ctn__coreset *ctn__cores_pause(void);
void ctn__cores_resume(const ctn__coreset *c); /* NULL is fine */

/* ---- optional arguments (opt.c) ------------------------------------------------------------- */

/* Copies the caller's option struct (NULL: none) into *to, which is zeroed first. Errors: EARG if
 * struct_size is not set. */
ctn_status ctn__opt(const char *who, void *to, size_t bytes, const void *from);

/* ---- store (store.c): tuning results on disk, one file per machine and version -------------- */

typedef struct ctn__store ctn__store;
typedef struct {
    const char *folder; /* NULL: taken from the environment */
    int64_t max_bytes;  /* limit for all files in the folder together; 0: 64 MB */
    int64_t max_files;  /* 0: 100 */
} ctn__store_opt;
/* machine is one line of text with everything that a result depends on besides its problem: CPU,
 * instruction sets, versions, threads. Reads the existing file. A damaged or foreign file and a
 * missing folder count as empty. opt NULL: defaults. For one thread at a time. Errors: ENOMEM. */
ctn_status ctn__store_open(ctn__store **out, const char *machine, const ctn__store_opt *opt);
/* NULL: unknown key. The value is valid until the next put of this key or the next save. Do not
 * trust it: the file may have been written by anybody. */
const char *ctn__store_find(const ctn__store *s, const char *key);
/* Printable ASCII, not empty. Errors: EARG, ENOMEM. */
ctn_status ctn__store_put(ctn__store *s, const char *key, const char *value);
/* Writes the entries put since the last save, merged with those that other processes have written
 * meanwhile. A folder that is not writable is not an error: the entries stay in memory, and
 * ctn__store_problem describes it. Errors: ENOMEM. */
ctn_status ctn__store_save(ctn__store *s);
const char *ctn__store_problem(const ctn__store *s); /* of the last open or save; NULL: none */
/* All entries, in the format of a file. */
void ctn__store_text(const ctn__store *s, ctn__text *out);
/* Replaces all entries by those in the text. Returns CTN_END and changes nothing if the text is
 * from another machine. Errors: EFORMAT, ENOMEM. */
ctn_status ctn__store_replace(ctn__store *s, const char *text, size_t n);
void ctn__store_close(ctn__store *s); /* entries not saved are lost */
/* Makes a folder and its parents. Errors: ENOMEM; EIO, with errno set and no message. */
ctn_status ctn__make_folder(const char *path, unsigned mode);
/* Appends the path of the cache folder, or nothing if the environment names none, or one that
 * others can change; CATENA_CACHE_DIR may name a folder that users share. The folder may not exist
 * yet. */
void ctn__cache_folder(ctn__text *out);

/* ---- folders that nobody else can change (private.c) ----------------------------------------- */

struct stat;
bool ctn__is_private(const struct stat *info); /* belongs to the user, and nobody else can write */
bool ctn__private_folder(const char *path);    /* and is a folder; false: it does not exist */
/* Makes it if it does not exist. Errors: EIO (cannot, or others can change it), ENOMEM. */
CTN_MUST_CHECK ctn_status ctn__need_private(const char *who, const char *path);

/* Appends the folder of the shared library that contains Catena, with a trailing slash. Appends
 * nothing if Catena is linked into the program or the folder is unknown. */
void ctn__own_folder(ctn__text *out);

/* ---- removing (remove.c) --------------------------------------------------------------------- */

/* Removes a folder that the library has made: the file `first`, then those whose names are ours,
 * then the folder, unless it contains anything else. Follows no link: one is left alone. Returns
 * whether the folder is gone. */
bool ctn__remove_folder(const char *path, const char *first, bool (*ours)(const char *name));

/* ---- clock ---------------------------------------------------------------------------------- */

uint64_t ctn__now_ns(void); /* monotonic */

#endif
