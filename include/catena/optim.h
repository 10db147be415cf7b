/* SPDX-License-Identifier: Apache-2.0
 *
 * Optimizers. An optimizer does not own the parameters: it borrows the variables, moves their
 * values into one contiguous pool and updates them in one sweep. ctn_backward contributes
 * gradients and ctn_optim_step consumes them.
 */
#ifndef CATENA_OPTIM_H
#define CATENA_OPTIM_H

#include <catena/context.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ctn_optim ctn_optim;

/* Zero in a field means its default; the comments give the defaults that are not 0. */
typedef struct {
    size_t struct_size;
    double lr;       /* 0: 0.01 */
    double momentum; /* 0: plain SGD */
    double dampening;
    double decay; /* coupled weight decay (L2) */
    int nesterov;
} ctn_sgd_opt;
typedef struct {
    size_t struct_size;
    double lr;    /* 0: 0.001 */
    double beta1; /* 0: 0.9 */
    double beta2; /* 0: 0.999 */
    double eps;   /* 0: 1e-8 */
    double decay; /* coupled (Adam), or decoupled (AdamW: 0 means 0.01; < 0: none) */
    int amsgrad;
} ctn_adam_opt;

/* Make an optimizer for all variables of kind CTN_PARAM in vars, which must outlive it. Each
 * parameter belongs to at most one optimizer. Call it between scopes. Local. Result: owned,
 * ctn_optim_free. Errors: ESTATE, EARG, EDTYPE, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_sgd_new(ctn_optim **o, ctn_vars vars, const ctn_sgd_opt *opt);
CTN_API CTN_MUST_CHECK ctn_status ctn_adam_new(ctn_optim **o, ctn_vars vars,
                                               const ctn_adam_opt *opt);
CTN_API CTN_MUST_CHECK ctn_status ctn_adamw_new(ctn_optim **o, ctn_vars vars,
                                                const ctn_adam_opt *opt);
/* Free an optimizer; the variables keep their values. Call it between scopes. NULL is
 * allowed. Local. */
CTN_API void ctn_optim_free(ctn_optim *o);

/* Contribute d(loss)/d(parameter) for the trainable parameters of this optimizer; several calls
 * add up (rule 4). loss is one float of this scope; if it is NULL, the first recorded error is
 * returned. Local. Errors: ESHAPE, EGRAD, EGONE. */
CTN_API CTN_MUST_CHECK ctn_status ctn_backward_at(const char *at, ctn_optim *o, ctn_tensor *loss);
#define ctn_backward(o, loss) ctn_backward_at(CTN_HERE, o, loss)
/* Update the parameters with the contributed gradients and clear them. The recorded step runs
 * here. Local; collective after ctn_dist_optim. Errors: ESTATE (no gradient was contributed),
 * those of the run. */
CTN_API CTN_MUST_CHECK ctn_status ctn_optim_step_at(const char *at, ctn_optim *o);
#define ctn_optim_step(o) ctn_optim_step_at(CTN_HERE, o)

/* Settings for the parameters whose names match a shell pattern ("*.bias"). Later calls
 * override earlier ones. */
typedef struct {
    size_t struct_size;
    double lr_scale;     /* multiplies the optimizer's learning rate; 0: no change */
    const double *decay; /* overrides the optimizer's decay; NULL: no change */
    int freeze;          /* 1: freeze, -1: train again, 0: no change */
} ctn_group_opt;
/* Returns the number of parameters that match, < 0 on error. Local. */
CTN_API int ctn_optim_group(ctn_optim *o, const char *pattern, const ctn_group_opt *opt);

/* The current learning rate, including the factor of a schedule. Setting it changes the rate
 * before that factor; a program may do so in every step without a new plan. Local. */
CTN_API double ctn_optim_lr(const ctn_optim *o);
CTN_API void ctn_optim_set_lr(ctn_optim *o, double lr);
/* A hyperparameter by name, without the factor of a schedule: "lr", "decay"; "momentum" of SGD
 * with momentum; "beta1", "beta2", "eps" of Adam. A new value needs no new plan and is saved
 * with the state. A decay set by ctn_optim_group stays. ctn_optim_hyper returns NaN if the
 * optimizer has no such hyperparameter. Local. Errors: ENOTFOUND, EARG (not finite, or a beta
 * or momentum outside [0,1)). */
CTN_API double ctn_optim_hyper(const ctn_optim *o, const char *name);
CTN_API CTN_MUST_CHECK ctn_status ctn_optim_set_hyper(ctn_optim *o, const char *name, double value);
/* Clip gradients: scale them so that their global norm is at most max (0: off). Local. */
CTN_API void ctn_optim_set_clip(ctn_optim *o, double max);
/* 1: skip every step whose gradients contain an infinity or NaN, as loss scaling does, on all
 * ranks alike. Costs one pass over the gradients, unless clipping or loss scaling needs it anyway;
 * on several ranks the step waits for all gradients. 0: off, the default. Local. */
CTN_API void ctn_optim_set_skip_nonfinite(ctn_optim *o, int on);
/* Norm of the gradients of the last step, unscaled and before clipping. It is not finite after
 * a skipped step, and 0 if clipping, loss scaling and skipping are all off. Local. */
CTN_API double ctn_optim_norm(const ctn_optim *o);
/* Number of steps taken, without skipped ones. Local. */
CTN_API int64_t ctn_optim_steps(const ctn_optim *o);

/* Loss scaling: ctn_backward contributes gradients of scale * loss, so that small values
 * survive in a 16-bit type, and ctn_optim_step divides by the scale in its sweep. Clipping sees
 * unscaled gradients; ctn_var_grad returns scaled ones. A step whose gradients contain an
 * infinity or NaN is skipped: the gradients are cleared, while parameters, state, the step
 * count and with it the schedule do not change. A scale that is a power of two does not change
 * results, except where the unscaled gradient would have under- or overflowed.
 * A static scale never changes. A dynamic one is multiplied by backoff at every skipped step
 * and by growth after interval steps without a skip, within min and max. A new scale needs no
 * new plan. */
typedef struct {
    size_t struct_size;
    double scale; /* dynamic: initial value, 0: 65536; static: must be given */
    int dynamic;
    double growth;    /* 0: 2 */
    double backoff;   /* 0: 0.5 */
    int64_t interval; /* 0: 2000 */
    double max;       /* 0: 2^24, or scale if that is more */
    double min;       /* 0: 1, or scale if that is less */
} ctn_loss_scale_opt;
/* Turn loss scaling on (opt NULL: off) from the first contribution of the next step on. opt
 * is copied. Scale and counters are then part of the state, so turn it on before such a state
 * is loaded. Local. Errors: EARG. */
CTN_API CTN_MUST_CHECK ctn_status ctn_optim_set_loss_scale(ctn_optim *o,
                                                           const ctn_loss_scale_opt *opt);
/* The scale of the next step; 1 if loss scaling is off. Local. */
CTN_API double ctn_optim_loss_scale(const ctn_optim *o);
/* Number of steps skipped so far. It is saved with the state if loss scaling is on. Local. */
CTN_API int64_t ctn_optim_skipped(const ctn_optim *o);

/* Schedules: a factor that multiplies the base value of a hyperparameter, a pure function of
 * the step. "step" counts from the end of the warm-up. */
typedef enum {
    CTN_SCHED_CONSTANT = 0,
    CTN_SCHED_STEP,        /* gamma^floor(step / every) */
    CTN_SCHED_EXPONENTIAL, /* gamma^step */
    CTN_SCHED_COSINE,      /* from 1 to end over steps */
    CTN_SCHED_LINEAR,      /* from 1 to end over steps */
    CTN_SCHED_POLYNOMIAL,  /* (1 - step/steps)^power, from 1 to end */
    CTN_SCHED_MULTISTEP,   /* multiplied by gamma at each step listed in `at` */
    CTN_SCHED_INVERSE,     /* (1 + gamma step)^-power */
    /* Cosine from start to 1 over a share `rise` of the steps, then down to end. */
    CTN_SCHED_ONE_CYCLE
} ctn_sched_kind;
#define CTN_SCHED_AT 16
typedef struct {
    size_t struct_size;
    ctn_sched_kind kind;
    int64_t warmup; /* number of steps of linear warm-up from 0 */
    int64_t steps;  /* length after the warm-up, if the kind needs one */
    int64_t every;
    double gamma, end, power;
    int64_t at[CTN_SCHED_AT]; /* multistep: ascending, ended by 0 if there are fewer than 16 */
    double start, rise;       /* one-cycle; 0: 1/25 and 0.3; end 0: start / 1e4, as in PyTorch */
} ctn_sched_opt;
/* The factor of a schedule at a step counted from 0, including the warm-up. Local. */
CTN_API double ctn_sched_factor(const ctn_sched_opt *s, int64_t step);
/* Let the learning rate follow a schedule by the optimizer's own step count (s NULL: none). s is
 * copied. Local. Errors: EARG. */
CTN_API CTN_MUST_CHECK ctn_status ctn_optim_set_schedule(ctn_optim *o, const ctn_sched_opt *s);

/* Call fn for every array and counter of the state, by name, for checkpoints. Call it between
 * scopes. Local; collective for a sharded optimizer, whose arrays are collected from all ranks
 * one after another, so that no rank ever holds all of them. If fn fails, it is not called
 * again and its error is returned at the end. */
CTN_API CTN_MUST_CHECK ctn_status ctn_optim_visit(ctn_optim *o, ctn_state_fn fn, void *user);

#ifdef __cplusplus
}
#endif
#endif
