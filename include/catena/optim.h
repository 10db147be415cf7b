/* SPDX-License-Identifier: Apache-2.0
 *
 * Optimizers. An optimizer owns nothing of the model: it borrows variables, moves their values into one
 * contiguous pool and updates them in one sweep. Gradients are contributed by ctn_backward and consumed by
 * ctn_optim_step.
 */
#ifndef CATENA_OPTIM_H
#define CATENA_OPTIM_H

#include <catena/context.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ctn_optim ctn_optim;

/* Zero in a field means its default; a default of 0 is written as such. */
typedef struct {
    size_t struct_size;
    double lr;       /* 0.01 */
    double momentum; /* 0: plain SGD */
    double dampening;
    double decay; /* coupled weight decay (L2) */
    int nesterov;
} ctn_sgd_opt;
typedef struct {
    size_t struct_size;
    double lr;    /* 0.001 */
    double beta1; /* 0.9 */
    double beta2; /* 0.999 */
    double eps;   /* 1e-8 */
    double decay; /* coupled (Adam) or decoupled (AdamW: 0.01 by default, < 0 for none) */
    int amsgrad;
} ctn_adam_opt;

/* Make an optimizer over all variables of kind CTN_PARAM in vars; they must outlive it. Each parameter belongs to
 * at most one optimizer. Between scopes only. Local. Result: owned, ctn_optim_free. Errors: ESTATE, EARG,
 * EDTYPE, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_sgd_new(ctn_optim **o, ctn_vars vars, const ctn_sgd_opt *opt);
CTN_API CTN_MUST_CHECK ctn_status ctn_adam_new(ctn_optim **o, ctn_vars vars,
                                               const ctn_adam_opt *opt);
CTN_API CTN_MUST_CHECK ctn_status ctn_adamw_new(ctn_optim **o, ctn_vars vars,
                                                const ctn_adam_opt *opt);
/* Free it between scopes; the variables keep their values. */
CTN_API void ctn_optim_free(ctn_optim *o);

/* Contribute d(loss)/d(parameter) of this optimizer's trainable parameters; several calls add up (rule 4).
 * loss: one float of this scope; NULL reports the first error recorded before. Local. Errors: ESHAPE,
 * EGRAD, EGONE. */
CTN_API CTN_MUST_CHECK ctn_status ctn_backward_at(const char *at, ctn_optim *o, ctn_tensor *loss);
#define ctn_backward(o, loss) ctn_backward_at(CTN_HERE, o, loss)
/* Update the parameters with what was contributed, and clear it. What was recorded runs here. Local.
 * Errors: ESTATE without a contribution, whatever the run reports. */
CTN_API CTN_MUST_CHECK ctn_status ctn_optim_step_at(const char *at, ctn_optim *o);
#define ctn_optim_step(o) ctn_optim_step_at(CTN_HERE, o)

/* Hyperparameters of the parameters whose name matches a shell pattern ("*.bias"). Later calls win. */
typedef struct {
    size_t struct_size;
    double lr_scale;     /* multiplies the optimizer's rate; 0: leave */
    const double *decay; /* replaces the optimizer's decay; NULL: leave */
    int freeze;          /* 1: not trained, -1: trained again, 0: leave */
} ctn_group_opt;
/* Returns how many parameters match, < 0 on error. Local. */
CTN_API int ctn_optim_group(ctn_optim *o, const char *pattern, const ctn_group_opt *opt);

/* Learning rate now; a schedule or the user may set it every step without a new plan. Local. */
CTN_API double ctn_optim_lr(const ctn_optim *o);
CTN_API void ctn_optim_set_lr(ctn_optim *o, double lr);
/* A hyperparameter by name, without a schedule's factor: "lr", "decay"; "momentum" of SGD with it; "beta1",
 * "beta2", "eps" of Adam. Setting one needs no new plan, and is part of the state. A decay given by
 * ctn_optim_group stays. Local. Result of the first: NaN when the optimizer has none of the name. Errors:
 * ENOTFOUND, EARG (not finite; a beta or momentum outside of [0,1)). */
CTN_API double ctn_optim_hyper(const ctn_optim *o, const char *name);
CTN_API CTN_MUST_CHECK ctn_status ctn_optim_set_hyper(ctn_optim *o, const char *name, double value);
/* Scale gradients so that their global norm is at most max (0: off). Local. */
CTN_API void ctn_optim_set_clip(ctn_optim *o, double max);
/* Norm of the gradients of the last step, unscaled and before clipping, not finite after a skipped step; 0 when
 * clipping and loss scaling are off. Local. */
CTN_API double ctn_optim_norm(const ctn_optim *o);
/* Steps taken; skipped ones do not count. Local. */
CTN_API int64_t ctn_optim_steps(const ctn_optim *o);

/* Loss scaling: ctn_backward contributes gradients of scale * loss, so that small ones survive a type of few
 * bits, and ctn_optim_step divides by the scale in its sweep. Clipping sees unscaled gradients; ctn_var_grad
 * shows scaled ones. A step whose gradients hold an infinity or NaN is skipped: parameters, state, step counts
 * and with them the schedule stay as they are, the gradients are cleared. Powers of two change no bit of a
 * result, save where the unscaled gradient would have under- or overflowed.
 * A static scale stays. A dynamic one is multiplied by backoff at every skipped step and by growth after
 * interval steps without one, within min and max. A scale that changes needs no new plan. */
typedef struct {
    size_t struct_size;
    double scale; /* dynamic: the first one, 65536; static: must be given */
    int dynamic;
    double growth;    /* 2 */
    double backoff;   /* 0.5 */
    int64_t interval; /* 2000 */
    double max;       /* 2^24, or scale if that is more */
    double min;       /* 1, or scale if that is less */
} ctn_loss_scale_opt;
/* Turn it on, or off with NULL, from the next first contribution on. Copied. Scale and counters are then part of
 * the state: turn it on before such a state is loaded. Local. Errors: EARG. */
CTN_API CTN_MUST_CHECK ctn_status ctn_optim_set_loss_scale(ctn_optim *o,
                                                           const ctn_loss_scale_opt *opt);
/* The scale that the next first contribution will have; 1 when it is off. Local. */
CTN_API double ctn_optim_loss_scale(const ctn_optim *o);
/* Steps skipped so far. Local. */
CTN_API int64_t ctn_optim_skipped(const ctn_optim *o);

/* Schedules: a hyperparameter as a pure function of the step, relative to base. Steps count after warm-up. */
typedef enum {
    CTN_SCHED_CONSTANT = 0,
    CTN_SCHED_STEP,        /* gamma^(step / every) */
    CTN_SCHED_EXPONENTIAL, /* gamma^step */
    CTN_SCHED_COSINE,      /* from 1 to end over steps */
    CTN_SCHED_LINEAR,      /* from 1 to end over steps */
    CTN_SCHED_POLYNOMIAL,  /* (1 - step/steps)^power towards end */
    CTN_SCHED_MULTISTEP,   /* gamma for each step of `at` that is reached */
    CTN_SCHED_INVERSE,     /* (1 + gamma step)^-power */
    CTN_SCHED_ONE_CYCLE    /* cosine from start up to 1 over rise of the steps, then down to end */
} ctn_sched_kind;
#define CTN_SCHED_AT 16
typedef struct {
    size_t struct_size;
    ctn_sched_kind kind;
    int64_t warmup; /* linear from 0 over so many steps first */
    int64_t steps;  /* length after warm-up, where the kind needs one */
    int64_t every;
    double gamma, end, power;
    int64_t at[CTN_SCHED_AT]; /* multistep: ascending, ended by 0 where there are fewer */
    double start, rise;       /* one-cycle: 0: 1/25 and 0.3; end 0: start / 1e4, as PyTorch's */
} ctn_sched_opt;
/* Factor of a schedule at a step counted from 0. Local. */
CTN_API double ctn_sched_factor(const ctn_sched_opt *s, int64_t step);
/* Follow a schedule from the optimizer's own step count (NULL: none). Copied. Local. Errors: EARG. */
CTN_API CTN_MUST_CHECK ctn_status ctn_optim_set_schedule(ctn_optim *o, const ctn_sched_opt *s);

/* Every array and counter of the state, by name, for checkpoints. Between scopes only. Local; of a sharded optimizer
 * collective: its arrays are brought from all ranks one after another, so that no rank ever has all of them. When fn
 * fails it is not called again, and the failure is returned at the end. */
CTN_API CTN_MUST_CHECK ctn_status ctn_optim_visit(ctn_optim *o, ctn_state_fn fn, void *user);

#ifdef __cplusplus
}
#endif
#endif
