/* SPDX-License-Identifier: Apache-2.0
 *
 * Looking at saved states without a trainer: which there are, whether they are intact, and which
 * arrays they have. Everything comes from the manifest of a state (io/checkpoint) and from the
 * counters in its trainer.txt (state.c). Nothing is put aside or repaired here.
 */
#include <sys/stat.h>

#include "train/train.h"

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

ctn_status ctn__state_need(const char *who, const char *path)
{
    if (!path) return ctn_fail(CTN_EARG, "%s: needs a folder", who);
    return is_folder(path) ? CTN_OK : ctn_fail(CTN_ENOTFOUND, "%s: no folder %s", who, path);
}

/* ---- the states of a folder ------------------------------------------------------------------ */

typedef CTN__VEC(int64_t) numbers;

/* The newest first. */
static ctn_status find_states(const char *dir, numbers *found)
{
    for (int64_t n = INT64_MAX; (n = ctn__numbered_below(dir, n)) >= 0;)
        if (!ctn__vec_push(found, n)) return CTN_ENOMEM;
    return CTN_OK;
}

/* The counters that write_trainer (state.c) has written. */
static ctn_status read_counters(const char *path, ctn_state_info *info)
{
    char *text = NULL;
    long long ranks, count[3];
    CTN_TRY(ctn__numbered_read(path, CTN__STATE_TRAINER, &text));
    const char *a = strstr(text, "\nranks\t"), *b = strstr(text, "\ncount\t");
    const bool ok = a && b && sscanf(a, "\nranks\t%lld", &ranks) == 1 &&
                    sscanf(b, "\ncount\t%lld %lld %lld", &count[0], &count[1], &count[2]) == 3;
    ctn__free(text);
    if (!ok)
        return ctn_fail(CTN_EFORMAT, "%s/" CTN__STATE_TRAINER " has no counters: it is damaged",
                        path);
    info->ranks = ranks;
    info->iteration = count[0];
    info->epoch = count[1];
    info->samples = count[2];
    return CTN_OK;
}

static ctn_status read_info(const char *path, ctn_state_info *info)
{
    ctn__manifest m = {0};
    ctn_status st = ctn__manifest_read(&m, path);
    if (st == CTN_OK) st = read_counters(path, info);
    info->bytes = 0;
    info->files = (int64_t)m.file.n;
    info->arrays = (int64_t)m.array.n;
    for (size_t i = 0; i < m.file.n; i++) {
        const uint64_t bytes = m.file.at[i].bytes, room = (uint64_t)(INT64_MAX - info->bytes);
        info->bytes += (int64_t)(bytes < room ? bytes : room); /* a file can claim any number */
    }
    ctn__manifest_free(&m);
    return st;
}

static ctn_status visit_state(const char *path, int64_t number, ctn_state_info_fn fn, void *user)
{
    ctn_state_info info = {.struct_size = sizeof info};
    ctn__text problem = {0};
    ctn_status st = read_info(path, &info);
    if (st == CTN_ENOMEM) return st;
    if (st < 0) {
        ctn__ckpt_add_error(&problem);
        if (problem.failed) return CTN_ENOMEM;
        info.iteration = info.epoch = info.samples = info.ranks = -1;
        info.bytes = info.files = info.arrays = -1;
    }
    info.number = number;
    info.path = path;
    info.problem = problem.s;
    st = fn(user, &info);
    ctn__text_free(&problem);
    return st;
}

ctn_status ctn_states_visit(const char *dir, ctn_state_info_fn fn, void *user)
{
    numbers found = {0};
    ctn__text path = {0};
    CTN_TRY(ctn__state_need("states_visit", dir));
    if (!fn) return ctn_fail(CTN_EARG, "states_visit: needs a function to call");
    ctn_status st = find_states(dir, &found);
    for (size_t i = found.n; st == CTN_OK && i-- > 0;) {
        st = ctn__numbered_path(&path, dir, found.at[i]);
        if (st == CTN_OK) st = visit_state(path.s, found.at[i], fn, user);
    }
    ctn__text_free(&path);
    ctn__vec_free(&found);
    return st;
}

/* ---- one state ------------------------------------------------------------------------------- */

/* Adds a line for each damage to *found. Errors: ENOMEM. */
static ctn_status find_damage(const char *path, ctn__text *found)
{
    ctn__manifest m = {0};
    ctn_status st = ctn__manifest_read(&m, path);
    if (st < 0 && st != CTN_ENOMEM) {
        ctn__ckpt_add_error(found);
        ctn__text_add(found, "\n");
        st = CTN_OK;
    }
    for (size_t i = 0; st == CTN_OK && i < m.file.n; i++)
        st = ctn__manifest_verify(&m, path, (int)i, found);
    ctn__manifest_free(&m);
    return st == CTN_OK && found->failed ? CTN_ENOMEM : st;
}

/* Calls fn with each line of the text, which is cut into pieces. */
static ctn_status visit_lines(char *text, ctn_text_fn fn, void *user)
{
    for (char *line = text, *end; fn && *line; line = end) {
        end = line + strcspn(line, "\n");
        if (*end) *end++ = 0;
        const ctn_status st = fn(user, line);
        if (st != CTN_OK) return st;
    }
    return CTN_OK;
}

ctn_status ctn_state_verify(const char *path, ctn_text_fn fn, void *user)
{
    ctn__text found = {0};
    CTN_TRY(ctn__state_need("state_verify", path));
    ctn_status st = find_damage(path, &found);
    if (st == CTN_OK && found.n) st = visit_lines(found.s, fn, user);
    if (st == CTN_OK && found.n)
        st = ctn_fail(CTN_EFORMAT, "state_verify: %s is damaged; use another state", path);
    ctn__text_free(&found);
    return st;
}

ctn_status ctn_state_arrays(const char *path, ctn_state_array_fn fn, void *user)
{
    ctn__manifest m = {0};
    CTN_TRY(ctn__state_need("state_arrays", path));
    if (!fn) return ctn_fail(CTN_EARG, "state_arrays: needs a function to call");
    ctn_status st = ctn__manifest_read(&m, path);
    for (size_t i = 0; st == CTN_OK && i < m.array.n; i++) {
        const ctn__ckpt_array *a = &m.array.at[i];
        char hash[33];
        ctn_state_array out = {.struct_size = sizeof out,
                               .name = a->name,
                               .dtype = a->dtype,
                               .ndim = a->ndim,
                               .hash = hash};
        ctn__hash_text(a->hash, hash);
        memcpy(out.shape, a->dim, sizeof a->dim);
        st = fn(user, &out);
    }
    ctn__manifest_free(&m);
    return st;
}

/* ---- removing -------------------------------------------------------------------------------- */

/* The newest intact one of the states, which are sorted from new to old; n: none. */
static ctn_status newest_intact(const char *dir, const numbers *found, size_t *at)
{
    ctn__text path = {0};
    ctn_status st = CTN_OK;
    for (*at = 0; *at < found->n && st == CTN_OK; ++*at) {
        st = ctn__numbered_path(&path, dir, found->at[*at]);
        if (st == CTN_OK) st = ctn_state_verify(path.s, NULL, NULL);
        if (st == CTN_OK) break;
        if (st == CTN_EFORMAT || st == CTN_ENOTFOUND) st = CTN_OK;
        ctn_error_clear();
    }
    ctn__text_free(&path);
    return st;
}

ctn_status ctn_states_prune(const char *dir, int64_t keep)
{
    numbers found = {0};
    size_t intact = 0;
    CTN_TRY(ctn__state_need("states_prune", dir));
    if (keep < 1)
        return ctn_fail(CTN_EARG, "states_prune: keep is %lld, expected 1 or more",
                        (long long)keep);
    ctn_status st = find_states(dir, &found);
    if (st == CTN_OK) st = newest_intact(dir, &found, &intact);
    for (size_t i = (size_t)keep; st == CTN_OK && i < found.n; i++)
        if (i != intact) st = ctn__numbered_remove(dir, found.at[i]);
    ctn__vec_free(&found);
    return st;
}
