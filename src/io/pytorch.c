/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints of PyTorch as files of named arrays. The pickle is a tree of plain values (pickle.c);
 * here the calls that would rebuild tensors are found in it and checked, and nested dictionaries
 * become names with dots. Invariant of an open file: every element of every array lies inside its
 * storage, and every storage inside the archive.
 */
#include "io/pytorch.h"

#include <unistd.h>

#include "base/readfile.h"
#include "io/pickle.h"
#include "io/zip.h"
#include "tensor/tensor.h"

typedef ctn__pickle_value value;
typedef ctn__pickle_cell cell;

enum {
    DEPTH_MAX = 64,        /* of nested dictionaries */
    NAME_MAX_BYTES = 1000, /* of an array */
    ARRAYS_MAX = 1000000,
    EXPANDED_MAX = 16 << 20, /* bytes of an array that is larger than its storage */
    TENSOR_MIN = 16,         /* bytes that a tensor takes in a pickle, at least */
    PREFIX_MAX = 256         /* of the folder in the archive */
};

typedef struct {
    ctn_weights_array a; /* must be first: ctn__pt_read casts it to an entry */
    ctn_desc view;       /* shape and strides in the storage */
    const ctn__zip_entry *storage;
    uint64_t begin; /* first byte of the view in the storage */
    size_t span;    /* bytes from there to the end of the last element */
} entry;

struct ctn__pt_file {
    ctn__zip *zip;
    char folder[PREFIX_MAX]; /* in the archive, with its slash */
    bool swap;               /* the byte order is not that of this machine */
    ctn__arena text;         /* names */
    uint64_t left;           /* while it is opened: items that may still be visited */
    CTN__VEC(entry) entries;
};

/* ---- types ---------------------------------------------------------------------------------- */

/* The storages and types of PyTorch; dtype 0: valid, but not supported by Catena. */
static const struct type {
    const char *storage, *name;
    ctn_dtype dtype;
} types[] = {
    {"torch FloatStorage", "torch float32", CTN_F32},
    {"torch DoubleStorage", "torch float64", CTN_F64},
    {"torch HalfStorage", "torch float16", CTN_F16},
    {"torch BFloat16Storage", "torch bfloat16", CTN_BF16},
    {"torch LongStorage", "torch int64", CTN_I64},
    {"torch IntStorage", "torch int32", CTN_I32},
    {"torch ByteStorage", "torch uint8", CTN_U8},
    {"torch BoolStorage", "torch bool", CTN_BOOL},
};
enum { TYPES = sizeof types / sizeof types[0] };

static bool is_global(const value *v, const char *name)
{
    return v && v->kind == CTN__PICKLE_GLOBAL && strcmp(v->s, name) == 0;
}

/* The type that a storage class or a torch.dtype names; 0: none of ours. */
static ctn_dtype type_of(const char *name)
{
    for (int i = 0; i < TYPES; i++)
        if (strcmp(types[i].storage, name) == 0 || strcmp(types[i].name, name) == 0)
            return types[i].dtype;
    return 0;
}

/* ---- tensors -------------------------------------------------------------------------------- */

/* Item i of a container; NULL: it has fewer, or v is no container. */
static value *item(const value *v, size_t i)
{
    const cell *c = v && v->kind >= CTN__PICKLE_TUPLE ? v->first : NULL;
    while (c && i-- > 0) c = c->next;
    return c ? c->value : NULL;
}

static bool is_kind(const value *v, ctn__pickle_kind kind)
{
    return v && v->kind == kind;
}

/* The text of a TEXT or GLOBAL; NULL: v is something else, or its text contains a 0. */
static const char *text_of(const value *v, ctn__pickle_kind kind)
{
    return v && v->kind == kind && strlen(v->s) == v->n ? v->s : NULL;
}

/* The function of a CALL, as "module name"; NULL: v is something else. */
static const char *function_of(const value *v)
{
    return is_kind(v, CTN__PICKLE_CALL) ? text_of(item(v, 0), CTN__PICKLE_GLOBAL) : NULL;
}

static bool is_tensor(const value *v)
{
    const char *f = function_of(v);
    return f && (strncmp(f, "torch._utils _rebuild_", 22) == 0 ||
                 strncmp(f, "torch._tensor _rebuild_", 23) == 0);
}

/* The call that rebuilds the data of a parameter, or of a tensor with attributes. */
static void unwrap(const value **function, const value **args)
{
    for (int i = 0; i < DEPTH_MAX; i++) {
        if (is_global(*function, "torch._tensor _rebuild_from_type_v2")) {
            *function = item(*args, 0);
            *args = item(*args, 2);
        } else if (is_global(*function, "torch._utils _rebuild_parameter") ||
                   is_global(*function, "torch._utils _rebuild_parameter_with_state")) {
            const value *data = item(*args, 0);
            *function = is_kind(data, CTN__PICKLE_CALL) ? item(data, 0) : NULL;
            *args = is_kind(data, CTN__PICKLE_CALL) ? item(data, 1) : NULL;
        } else {
            return;
        }
    }
}

static ctn_status wrong(const ctn__pt_file *f, const char *name, const char *what)
{
    return ctn_fail(CTN_EFORMAT, "pytorch: %s: tensor '%s': %s", ctn__zip_path(f->zip), name, what);
}

/* The storage of a tensor. *elements: its number of elements of type dtype, which is set unless the
 * storage has no type. */
static ctn_status find_storage(const ctn__pt_file *f, entry *e, const value *ref, ctn_dtype *dtype,
                               uint64_t *elements)
{
    char path[PREFIX_MAX + 256];
    const value *id = is_kind(ref, CTN__PICKLE_REF) ? item(ref, 0) : NULL;
    const char *tag = text_of(item(id, 0), CTN__PICKLE_TEXT);
    const char *type = text_of(item(id, 1), CTN__PICKLE_GLOBAL);
    const char *key = text_of(item(id, 2), CTN__PICKLE_TEXT);
    if (!tag || strcmp(tag, "storage") != 0 || !type || !key || strlen(key) > 200)
        return wrong(f, e->a.name, "its storage is not one of this archive");
    if (!*dtype) *dtype = type_of(type);
    if (!*dtype)
        return ctn_fail(CTN_EDTYPE,
                        "pytorch: %s: '%s' has the type of %s, which Catena does not support",
                        ctn__zip_path(f->zip), e->a.name, type);
    snprintf(path, sizeof path, "%sdata/%s", f->folder, key);
    e->storage = ctn__zip_find(f->zip, path);
    if (!e->storage)
        return ctn_fail(CTN_EFORMAT, "pytorch: %s: tensor '%s': the archive has no storage '%s'",
                        ctn__zip_path(f->zip), e->a.name, path);
    *elements = e->storage->bytes / ctn_dtype_size(*dtype);
    return ctn__zip_read(f->zip, e->storage, 0, NULL, 0); /* refuses a compressed one now */
}

/* Sizes or strides: a tuple of integers >= 0, directly or as a torch.Size. */
static bool read_sizes(const value *v, int64_t *out, int *n)
{
    if (is_kind(v, CTN__PICKLE_CALL) && is_global(item(v, 0), "torch Size"))
        v = item(item(v, 1), 0);
    if (!v || (v->kind != CTN__PICKLE_TUPLE && v->kind != CTN__PICKLE_LIST) || v->n > CTN_MAX_DIMS)
        return false;
    *n = 0;
    for (const cell *c = v->first; c; c = c->next) {
        if (c->value->kind != CTN__PICKLE_INT || c->value->i < 0) return false;
        out[(*n)++] = c->value->i;
    }
    return true;
}

/* Check that all elements lie in a storage of `elements`, and fill in bytes, begin and span. A view
 * that has elements more than once may not be much larger than its storage: otherwise a short file
 * would need any amount of memory. */
static ctn_status place_view(const ctn__pt_file *f, entry *e, int64_t offset, uint64_t elements)
{
    const size_t size = ctn_dtype_size(e->view.dtype);
    size_t bytes = size, nonzero = size;
    uint64_t last = (uint64_t)offset;
    bool fits = true;
    for (int d = 0; d < e->view.ndim; d++) {
        const uint64_t n = (uint64_t)e->view.dim[d], stride = (uint64_t)e->view.stride[d];
        bytes = ctn__mul(bytes, (size_t)n);
        if (n) nonzero = ctn__mul(nonzero, (size_t)n);
        if (n < 2 || stride == 0) continue;
        fits = fits && n - 1 <= elements / stride && (last += (n - 1) * stride) < elements;
    }
    if (nonzero > INT64_MAX) return wrong(f, e->a.name, "its size overflows");
    if (bytes > 0 && (!fits || last >= elements))
        return ctn_fail(CTN_EFORMAT,
                        "pytorch: %s: tensor '%s' goes beyond the end of its storage '%s', which "
                        "has %llu elements",
                        ctn__zip_path(f->zip), e->a.name, e->storage->name,
                        (unsigned long long)elements);
    if (bytes > EXPANDED_MAX && bytes / size > elements)
        return wrong(f, e->a.name,
                     "it is larger than its storage, as after expand(); save it with "
                     ".contiguous()");
    e->a.bytes = bytes;
    if (bytes == 0) return CTN_OK;
    e->begin = (uint64_t)offset * size;
    e->span = (size_t)(last + 1 - (uint64_t)offset) * size;
    return CTN_OK;
}

/* Add the tensor that a call rebuilds, under this name. */
static ctn_status add_tensor(ctn__pt_file *f, const value *v, const char *name)
{
    entry e = {.a.name = name};
    int strides = 0;
    uint64_t elements = 0;
    const value *function = item(v, 0), *args = item(v, 1);
    unwrap(&function, &args);
    const char *kind = text_of(function, CTN__PICKLE_GLOBAL);
    const bool third = is_global(function, "torch._utils _rebuild_tensor_v3");
    if (!third && !is_global(function, "torch._utils _rebuild_tensor_v2") &&
        !is_global(function, "torch._utils _rebuild_tensor"))
        return ctn_fail(CTN_EFORMAT,
                        "pytorch: %s: '%s' is not a dense tensor (%s); convert it with to_dense() "
                        "or dequantize() before saving",
                        ctn__zip_path(f->zip), name, kind ? kind : "unknown");
    const value *offset = item(args, 1);
    const char *type = third ? text_of(item(args, 6), CTN__PICKLE_GLOBAL) : NULL;
    ctn_dtype dtype = type ? type_of(type) : 0;
    if (third && !dtype)
        return ctn_fail(CTN_EDTYPE, "pytorch: %s: '%s' has a type that Catena does not support",
                        ctn__zip_path(f->zip), name);
    if (!offset || offset->kind != CTN__PICKLE_INT || offset->i < 0 || offset->i > INT64_MAX / 16 ||
        !read_sizes(item(args, 2), e.view.dim, &e.view.ndim) ||
        !read_sizes(item(args, 3), e.view.stride, &strides) || strides != e.view.ndim)
        return wrong(f, name,
                     "its offset, sizes or strides are not those of a tensor of at most 8 "
                     "dimensions");
    CTN_TRY(find_storage(f, &e, item(args, 0), &dtype, &elements));
    e.view.dtype = e.a.dtype = dtype;
    e.a.ndim = e.view.ndim;
    memcpy(e.a.shape, e.view.dim, sizeof e.a.shape);
    CTN_TRY(place_view(f, &e, offset->i, elements));
    if (f->entries.n >= ARRAYS_MAX) return wrong(f, name, "the file has too many tensors");
    return ctn__vec_push(&f->entries, e) ? CTN_OK : CTN_ENOMEM;
}

/* ---- dictionaries --------------------------------------------------------------------------- */

static bool is_container(const value *v)
{
    return v->kind == CTN__PICKLE_DICT || v->kind == CTN__PICKLE_LIST ||
           v->kind == CTN__PICKLE_TUPLE;
}

static ctn_status walk(ctn__pt_file *f, value *v, const char *name, int depth);

/* Count n items. Containers may be shared, so a short pickle can have any number of ways to an
 * item; all of them together may not be much longer than the pickle. */
static ctn_status count_items(ctn__pt_file *f, uint64_t n)
{
    if (f->left < n)
        return ctn_fail(CTN_EFORMAT,
                        "pytorch: %s: the same dictionaries or lists occur too many times; save "
                        "model.state_dict() alone",
                        ctn__zip_path(f->zip));
    f->left -= n;
    return CTN_OK;
}

/* Walk the value of a key, or of a number in a list, below `name`. */
static ctn_status walk_item(ctn__pt_file *f, value *v, const char *name, const value *key,
                            size_t number, int depth)
{
    char longer[NAME_MAX_BYTES + 1];
    int n = 0;
    const char *dot = *name ? "." : "";
    if (!is_tensor(v) && !is_container(v)) return CTN_OK;
    if (!key) n = snprintf(longer, sizeof longer, "%s%s%zu", name, dot, number);
    else if (key->kind == CTN__PICKLE_INT)
        n = snprintf(longer, sizeof longer, "%s%s%lld", name, dot, (long long)key->i);
    else if (key->kind == CTN__PICKLE_TEXT && strlen(key->s) == key->n)
        n = snprintf(longer, sizeof longer, "%s%s%s", name, dot, key->s);
    else return CTN_OK; /* a key that is an object names nothing */
    if (n > NAME_MAX_BYTES) return wrong(f, name, "a name below it is too long");
    return walk(f, v, longer, depth + 1);
}

/* Add all tensors of v. A container without any is marked, so that it is walked only once. */
static ctn_status walk(ctn__pt_file *f, value *v, const char *name, int depth)
{
    if (is_tensor(v)) {
        CTN_TRY(count_items(f, TENSOR_MIN));
        char *copy = ctn__arena_str(&f->text, *name ? name : "tensor");
        return copy ? add_tensor(f, v, copy) : CTN_ENOMEM;
    }
    if (!is_container(v) || v->seen) return CTN_OK;
    if (depth > DEPTH_MAX) return wrong(f, name, "dictionaries are nested too deeply");
    const size_t before = f->entries.n;
    size_t i = 0;
    for (const cell *c = v->first; c; c = c->next, i++) {
        const value *key = v->kind == CTN__PICKLE_DICT ? c->value : NULL;
        if (key) c = c->next;
        CTN_TRY(count_items(f, 1));
        CTN_TRY(walk_item(f, c->value, name, key, i, depth));
    }
    v->seen = f->entries.n == before;
    return CTN_OK;
}

/* Marks what it has searched in vain. */
static bool holds_tensors(value *v, int depth)
{
    if (is_tensor(v)) return true;
    if (!is_container(v) || v->seen || depth > DEPTH_MAX) return false;
    v->seen = true;
    for (const cell *c = v->first; c; c = c->next)
        if (holds_tensors(c->value, depth + 1)) {
            v->seen = false;
            return true;
        }
    return false;
}

static bool begins_with_one_of(const value *key, const char *const *list)
{
    for (; key->kind == CTN__PICKLE_TEXT && *list; list++)
        if (strncmp(key->s, *list, strlen(*list)) == 0) return true;
    return false;
}

/* The dictionary of weights in a checkpoint that has more than these; NULL: root itself is one. */
static value *find_weights(const value *root)
{
    static const char *const wrappers[] = {"state_dict", "model_state_dict", "model_state",
                                           "model",      "module",           "net",
                                           "weights"};
    static const char *const training[] = {"optim",  "lr_sched",    "sched",
                                           "scaler", "grad_scaler", "rng",
                                           "loops",  "callbacks",   NULL};
    value *found = NULL;
    const value *name = NULL;
    if (root->kind != CTN__PICKLE_DICT) return NULL;
    for (size_t i = 0; !found && i < sizeof wrappers / sizeof *wrappers; i++)
        for (const cell *c = root->first; c; c = c->next->next)
            if (is_kind(c->value, CTN__PICKLE_TEXT) && strcmp(c->value->s, wrappers[i]) == 0 &&
                is_kind(c->next->value, CTN__PICKLE_DICT) && c->next->value->n > 0) {
                name = c->value;
                found = c->next->value;
            }
    for (const cell *c = root->first; found && c; c = c->next->next)
        if (c->value != name && !begins_with_one_of(c->value, training) &&
            holds_tensors(c->next->value, 0))
            return NULL;
    return found;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static ctn_status check_names(const ctn__pt_file *f)
{
    const size_t n = f->entries.n;
    const char **name = ctn__calloc(n, sizeof *name);
    ctn_status st = name ? CTN_OK : CTN_ENOMEM;
    for (size_t i = 0; name && i < n; i++) name[i] = f->entries.at[i].a.name;
    if (name) qsort(name, n, sizeof *name, compare_names);
    for (size_t i = 1; st == CTN_OK && i < n; i++)
        if (!strcmp(name[i - 1], name[i])) st = wrong(f, name[i], "the name appears twice");
    ctn__free(name);
    return st;
}

/* ---- the archive ---------------------------------------------------------------------------- */

static ctn_status no_tensors(const ctn__pt_file *f, const value *root)
{
    const char *class = function_of(root);
    return ctn_fail(CTN_EFORMAT,
                    "pytorch: %s: found no tensors in dictionaries or lists%s%s%s; save "
                    "model.state_dict() instead of the model",
                    ctn__zip_path(f->zip), class ? ", but an object of class '" : "",
                    class ? class : "", class ? "'" : "");
}

static ctn_status read_tensors(ctn__pt_file *f, const ctn__zip_entry *pickle)
{
    ctn_status st = CTN_OK;
    ctn__arena tree = {0};
    value *root = NULL;
    if (pickle->bytes > CTN__PICKLE_MAX)
        return ctn_fail(CTN_EFORMAT, "pytorch: %s: '%s' has %llu bytes, at most %d are allowed",
                        ctn__zip_path(f->zip), pickle->name, (unsigned long long)pickle->bytes,
                        CTN__PICKLE_MAX);
    const size_t n = (size_t)pickle->bytes;
    char *p = ctn__malloc(n);
    if (!p) return CTN_ENOMEM;
    CTN_TRY_GOTO(st, done, ctn__zip_read(f->zip, pickle, 0, p, n));
    CTN_TRY_GOTO(st, done,
                 ctn__pickle_read(&root, &tree, ctn__zip_path(f->zip), pickle->begin, p, n));
    f->left = 1000 + 2 * pickle->bytes; /* each item takes at least one byte */
    value *weights = find_weights(root);
    CTN_TRY_GOTO(st, done, walk(f, weights ? weights : root, "", 0));
    if (f->entries.n == 0) CTN_TRY_GOTO(st, done, no_tensors(f, root));
    CTN_TRY_GOTO(st, done, check_names(f));
done:
    ctn__arena_free(&tree);
    ctn__free(p);
    return st;
}

/* `what` says what the file is, `expression` makes a dictionary of tensors of sys.argv[1]. */
static ctn_status convert_line(const char *path, const char *what, const char *expression)
{
    return ctn_fail(CTN_EFORMAT,
                    "pytorch: %s is %s; convert it with: python3 -c \"import sys, torch; "
                    "torch.save(%s, sys.argv[2])\" '%s' converted.pt",
                    path, what, expression, path);
}

static ctn_status read_byteorder(ctn__pt_file *f)
{
    char path[PREFIX_MAX + 16], order[8] = "little";
    snprintf(path, sizeof path, "%sbyteorder", f->folder);
    const ctn__zip_entry *e = ctn__zip_find(f->zip, path);
    if (e && e->bytes < sizeof order) {
        memset(order, 0, sizeof order);
        CTN_TRY(ctn__zip_read(f->zip, e, 0, order, (size_t)e->bytes));
    }
    const bool big = strcmp(order, "big") == 0;
    if (!big && strcmp(order, "little") != 0)
        return ctn_fail(CTN_EFORMAT, "pytorch: %s: the byte order is '%s', expected little or big",
                        ctn__zip_path(f->zip), order);
    f->swap = big != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    return CTN_OK;
}

/* Find the folder in the archive by its data.pkl. */
static ctn_status read_archive(ctn__pt_file *f)
{
    const ctn__zip_entry *pickle = NULL;
    char path[PREFIX_MAX + 16];
    for (size_t i = 0; !pickle && i < ctn__zip_count(f->zip); i++) {
        const ctn__zip_entry *e = ctn__zip_at(f->zip, i);
        const char *slash = strchr(e->name, '/');
        const size_t n = slash ? (size_t)(slash + 1 - e->name) : 0;
        if (n == 0 || n >= PREFIX_MAX || strcmp(slash, "/data.pkl") != 0) continue;
        pickle = e;
        snprintf(f->folder, sizeof f->folder, "%.*s", (int)n, e->name);
    }
    if (!pickle)
        return ctn_fail(CTN_EFORMAT,
                        "pytorch: %s: a zip archive without FOLDER/data.pkl: not a checkpoint of "
                        "PyTorch",
                        ctn__zip_path(f->zip));
    snprintf(path, sizeof path, "%sconstants.pkl", f->folder);
    if (ctn__zip_find(f->zip, path))
        return convert_line(ctn__zip_path(f->zip), "a TorchScript archive, which contains code",
                            "torch.jit.load(sys.argv[1], map_location='cpu').state_dict()");
    CTN_TRY(read_byteorder(f));
    return read_tensors(f, pickle);
}

/* Takes ownership of zip, also on failure. */
static ctn_status open_file(ctn__pt_file **out, ctn__zip *zip)
{
    ctn__pt_file *f = ctn__calloc(1, sizeof *f);
    if (!f) {
        ctn__zip_close(zip);
        return CTN_ENOMEM;
    }
    f->zip = zip;
    const ctn_status st = read_archive(f);
    if (st == CTN_OK) *out = f;
    else ctn__pt_close(f);
    return st;
}

static bool is_zip(const unsigned char *p, size_t n)
{
    return n >= 4 && p[0] == 'P' && p[1] == 'K' && (p[2] == 3 || p[2] == 5);
}

static bool is_pickle(const unsigned char *p, size_t n)
{
    return n >= 3 && p[0] == 0x80 && p[1] >= 2 && p[1] <= 5 && p[2] != 0;
}

enum { TAR_MAGIC = 257 };

static bool is_tar(const unsigned char *p, size_t n)
{
    return n >= TAR_MAGIC + 5 && memcmp(p + TAR_MAGIC, "ustar", 5) == 0;
}

bool ctn__pt_is(const unsigned char *p, size_t n)
{
    const bool safetensors = n > 8 && p[8] == '{'; /* the text after the length of the header */
    return !safetensors && (is_zip(p, n) || is_pickle(p, n) || is_tar(p, n));
}

static ctn_status refuse_legacy(const char *path, const unsigned char *p, size_t n)
{
    if (is_pickle(p, n) || is_tar(p, n))
        return convert_line(path, "in the format before PyTorch 1.6",
                            "torch.load(sys.argv[1], map_location='cpu', weights_only=True)");
    return CTN_OK;
}

ctn_status ctn__pt_open(ctn__pt_file **f, const char *path)
{
    ctn__zip *zip = NULL;
    unsigned char head[TAR_MAGIC + 5] = {0};
    struct stat info = {0};
    int fd = -1;
    *f = NULL;
    CTN_TRY(ctn__file_open("pytorch", path, &fd, &info));
    const size_t n = (size_t)info.st_size < sizeof head ? (size_t)info.st_size : sizeof head;
    ctn_status st = ctn__file_read("pytorch", path, fd, head, n, 0);
    close(fd);
    CTN_TRY(st);
    CTN_TRY(refuse_legacy(path, head, n));
    CTN_TRY(ctn__zip_open(&zip, path));
    return open_file(f, zip);
}

ctn_status ctn__pt_parse(ctn__pt_file **f, const char *name, const void *p, size_t n)
{
    ctn__zip *zip = NULL;
    *f = NULL;
    CTN_TRY(refuse_legacy(name, p, n));
    CTN_TRY(ctn__zip_parse(&zip, name, p, n));
    return open_file(f, zip);
}

void ctn__pt_close(ctn__pt_file *f)
{
    if (!f) return;
    ctn__zip_close(f->zip);
    ctn__arena_free(&f->text);
    ctn__vec_free(&f->entries);
    ctn__free(f);
}

size_t ctn__pt_count(const ctn__pt_file *f)
{
    return f->entries.n;
}

const ctn_weights_array *ctn__pt_at(const ctn__pt_file *f, size_t i)
{
    return &f->entries.at[i].a;
}

/* ---- values --------------------------------------------------------------------------------- */

static void swap_bytes(void *p, size_t bytes, size_t size)
{
    unsigned char *b = p;
    for (size_t i = 0; i + size <= bytes; i += size)
        for (size_t k = 0; k < size / 2; k++) {
            const unsigned char t = b[i + k];
            b[i + k] = b[i + size - 1 - k];
            b[i + size - 1 - k] = t;
        }
}

ctn_status ctn__pt_read(const ctn__pt_file *f, const ctn_weights_array *a, void *dst)
{
    const entry *e = (const entry *)a; /* a is its first member */
    const size_t size = ctn_dtype_size(a->dtype);
    if (a->bytes == 0) return CTN_OK;
    if (ctn__is_plain(&e->view)) {
        CTN_TRY(ctn__zip_read(f->zip, e->storage, e->begin, dst, a->bytes));
        if (f->swap) swap_bytes(dst, a->bytes, size);
        return CTN_OK;
    }
    ctn_desc plain = e->view;
    ctn__plain(&plain);
    char *p = ctn__aligned(e->span);
    if (!p) return CTN_ENOMEM;
    const ctn_status st = ctn__zip_read(f->zip, e->storage, e->begin, p, e->span);
    if (st == CTN_OK) {
        if (f->swap) swap_bytes(p, e->span, size);
        ctn__copy_strided(dst, &plain, p, &e->view);
    }
    ctn__free(p);
    return st;
}
