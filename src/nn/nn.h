/* SPDX-License-Identifier: Apache-2.0
 *
 * The module struct, for the files of nn/ and io/. A module owns its children and the variables
 * created in it; a tied variable is only referenced. The list of names below a module is built on
 * first use, and dropped in the module and all of its ancestors when the tree changes. A module has
 * at most one of the two forward functions.
 */
#ifndef CTN_NN_NN_H
#define CTN_NN_NN_H

#include <catena/nn.h>
#include <catena/ops.h>

#include "graph/graph.h"

typedef struct {
    char *name; /* without dots */
    ctn_var *var;
    bool tied; /* owned by another module */
} ctn__named_var;

typedef struct {
    CTN__VEC(ctn_var *) var;
    CTN__VEC(const char *) name; /* dotted; in ctn_module.text */
} ctn__var_list;

/* How the published files of a network differ from the names and shapes of its variables. Lists end
 * with NULL; NULL: empty. */
typedef struct {
    const char *prefix;         /* "bert.": files may have it in front of a name, or lack it */
    const char *bare;           /* the module's own names lack the prefix; those that begin with
                                   this lack it in files too; NULL: own names have it */
    const char *const *ignored; /* endings of arrays that the network does not need */
    const char *const *turned;  /* endings of matrices that a file may have transposed; all of them
                                   are if the first, which must not be square, is */
    const char *const *older;   /* pairs of endings: of a name, and of its name in old files */
} ctn__published;

/* What a network that continues sequences of tokens offers to the generator (generate.c). */
typedef struct {
    int layers;
    int64_t heads, width;      /* of the keys and values of a layer */
    int64_t block, vocabulary; /* maximum sequence length; number of tokens */
} ctn__decoder_sizes;

/* The keys and values of all tokens so far, and where the next T tokens of each of N sequences
 * belong. */
typedef struct {
    ctn_var *const *k, *const *v; /* one per layer, (N,heads,room,width) */
    ctn_tensor *first;            /* (N) i64: position of the first new token */
    ctn_tensor *positions;        /* (N,T) i64: position of each new token */
    bool begin;                   /* there are no tokens before the new ones */
} ctn__cache;

typedef struct {
    void (*sizes)(const void *self, ctn__decoder_sizes *s);
    /* x (N,T) -> (N,V), the logits of the tokens with the numbers `last` (N) in the flat x. Adds
     * the keys and values of x to the cache. */
    ctn_tensor *(*decode)(void *self, ctn_module *m, ctn_tensor *x, ctn_tensor *last,
                          const ctn__cache *c);
} ctn__decoder;

/* Replaces ctn_batch_norm in training. Returns y and assigns the new running statistics to mean and
 * var. scale and shift may be NULL. */
typedef ctn_tensor *(*ctn__batch_norm_fn)(void *user, const char *at, ctn_tensor *x,
                                          ctn_tensor *scale, ctn_tensor *shift, ctn_var *mean,
                                          ctn_var *var, const ctn_batch_norm_opt *how);
typedef struct {
    ctn__batch_norm_fn train; /* NULL: the op */
    void *user;
    /* Of a model in ONNX format, whose batch normalisations are not modules: which of them keep
     * their running statistics. */
    enum { CTN__NORM_TRAINED, CTN__NORM_FROZEN, CTN__NORM_LIKE_PARAMS } statistics;
} ctn__batch_norm_hook;

enum { CTN__ENDS = 16 };

struct ctn_module {
    ctn_context *ctx;
    ctn_forward_fn forward;
    ctn_forward_multi_fn forward_multi;
    void *self;
    void (*release)(void *self);
    ctn_copy_fn copy;   /* NULL: none, see ctn__module_own */
    size_t bytes, refs; /* see ctn__module_own; 0: a module of the user */
    ctn_module *parent;
    char *name;                      /* in the parent; NULL at the root */
    const char *at;                  /* source line of the call in progress */
    bool recompute;                  /* each call is a block that is recomputed for its gradient */
    const ctn__published *published; /* NULL: files are as the module saves them */
    const ctn__decoder *decoder;     /* NULL: the module does not continue sequences */
    bool masked;                     /* the module predicts masked tokens */
    int32_t end[CTN__ENDS];          /* (ends) tokens that end a text */
    int ends;
    bool norms;                /* the module itself normalises batches */
    ctn__batch_norm_hook norm; /* how, in training */
    CTN__VEC(ctn_module *) children;
    CTN__VEC(ctn__named_var) own; /* parameters and states, in order of creation */
    bool listed;                  /* the members below are up to date */
    ctn__var_list all, params;
    CTN__VEC(bool) again; /* of all: a variable that is tied to one before it */
    ctn__arena text;
};

/* Make a module of the library. On success it owns self, `bytes` bytes of ctn__malloc; on failure
 * self is freed. self NULL: ENOMEM. The first `refs` members of self are pointers to modules and
 * variables, the others are settings. Therefore ctn_module_copy can copy self without knowing more
 * about it: it replaces each of these pointers by the one to the counterpart in the copy. */
ctn_status ctn__module_own(ctn_module **m, ctn_context *ctx, ctn_forward_fn forward, void *self,
                           size_t bytes, size_t refs);
/* The number of pointers before a member of a struct. */
#define CTN__REFS(type, member) (offsetof(type, member) / sizeof(void *))
#define CTN__ALL_REFS(type) (sizeof(type) / sizeof(void *)) /* the struct has only pointers */

/* Free m without its children, which the caller keeps. */
void ctn__module_free_alone(ctn_module *m);

/* All parameters and states of m and its descendants, tied ones under each name. Errors: ENOMEM. */
ctn_status ctn__module_vars(ctn_module *m, ctn_vars *out);

/* The parameter `name` of m, if weight or spectral normalisation along dim is possible
 * (weight_norm.c). Errors: ESTATE, ENOTFOUND, ESHAPE, EDTYPE, EARG. */
ctn_status ctn__derived_var(const char *who, ctn_module *m, const char *name, int dim,
                            ctn_var **out);

/* Does a dotted name end in these components? A dot at the start of `end` is ignored: "fc1" and
 * ".fc1" match "a.fc1" and "fc1", not "fc11" or "a.bfc1". */
bool ctn__name_ends(const char *name, const char *end);
/* The same for any ending of a list, which NULL ends. list NULL: false. */
bool ctn__name_ends_in(const char *name, const char *const *list);

/* The self of a linear module. */
typedef struct {
    ctn_var *weight, *bias;   /* owned by the module; bias NULL: none */
    ctn_var *lora_a, *lora_b; /* (rank,in) and (out,rank), owned by children; NULL: no adapter */
    double scale;             /* of the adapter */
} ctn__linear;
/* Its self if m is a linear module, else NULL. */
ctn__linear *ctn__linear_of(const ctn_module *m);

/* Set that function; does nothing if m does not normalise batches. fn NULL: restore the default.
 * user is borrowed. */
void ctn__batch_norm_set(ctn_module *m, ctn__batch_norm_fn fn, void *user);

/* Does a batch normalisation of m or of a module in it use such a function? */
bool ctn__batch_norm_is_set(const ctn_module *m);

bool ctn__is_batch_norm(const ctn_module *m);
/* Of a batch normalisation: whether it keeps and uses its running statistics in training. */
void ctn__batch_norm_freeze(ctn_module *m, bool on);
bool ctn__batch_norm_frozen(const ctn_module *m);

/* Replaces ctn_conv or ctn_conv_transpose. b may be NULL. */
typedef ctn_tensor *(*ctn__conv_fn)(void *user, const char *at, ctn_tensor *x, ctn_tensor *w,
                                    ctn_tensor *b, const ctn_conv_opt *how, bool transposed);
/* Set that function; does nothing if m is not a convolution. fn NULL: restore the default. user is
 * borrowed. */
void ctn__conv_set(ctn_module *m, ctn__conv_fn fn, void *user);

/* Write the path of m below its root ("a.b") to buf, truncated if it does not fit; "module" for the
 * root. Returns buf. */
const char *ctn__module_path(const ctn_module *m, char *buf, size_t n);

/* x (N,...) -> (N,rest). Returns NULL if x is NULL. */
ctn_tensor *ctn__flatten(const char *at, ctn_tensor *x);

#endif
