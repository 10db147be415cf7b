/* SPDX-License-Identifier: Apache-2.0
 *
 * The module as the files of nn/ and io/ see it. A module owns its children and the variables made
 * in it; a tied variable is only named. The list of names below a module is made when first asked
 * for and dropped in it and in every ancestor when the tree changes.
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

struct ctn_module {
    ctn_context *ctx;
    ctn_forward_fn forward;
    void *self;
    void (*release)(void *self);
    ctn_module *parent;
    char *name;     /* in the parent; NULL at the root */
    const char *at; /* line of the call that runs now */
    bool recompute; /* each call is a block that is computed again for its gradient */
    CTN__VEC(ctn_module *) children;
    CTN__VEC(ctn__named_var) own; /* parameters and states in the order they were made */
    bool listed;                  /* what follows is up to date */
    ctn__var_list all, params;
    ctn__arena text;
};

/* Every name below m: parameters and states, tied ones under each name. Errors: ENOMEM. */
ctn_status ctn__module_vars(ctn_module *m, ctn_vars *out);

/* What batch normalisation does in training instead of ctn_batch_norm: y, with new running statistics
 * assigned to mean and var. scale and shift may be NULL. */
typedef ctn_tensor *(*ctn__batch_norm_fn)(void *user, const char *at, ctn_tensor *x,
                                          ctn_tensor *scale, ctn_tensor *shift, ctn_var *mean,
                                          ctn_var *var, const ctn_batch_norm_opt *how);
/* Nothing where m is no batch normalisation. fn NULL: as it was. user is borrowed. */
void ctn__batch_norm_set(ctn_module *m, ctn__batch_norm_fn fn, void *user);

/* "a.b" of m below its root into buf, cut where it does not fit; "module" for the root. Returns
 * buf. */
const char *ctn__module_path(const ctn_module *m, char *buf, size_t n);

/* x (N,...) -> (N,rest). NULL in gives NULL out. */
ctn_tensor *ctn__flatten(const char *at, ctn_tensor *x);

#endif
