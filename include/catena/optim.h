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
typedef struct {
    size_t struct_size;
    double lr;       /* 0: 0.01 */
    double alpha;    /* decay rate of the second moment; 0: 0.99 */
    double eps;      /* 0: 1e-8 */
    double momentum; /* 0: none */
    double decay;    /* coupled weight decay (L2) */
    int centered;    /* 1: divide by the deviation, as Graves does, and not by the second moment */
} ctn_rmsprop_opt;
typedef struct {
    size_t struct_size;
    double lr;       /* 0: 0.01 */
    double lr_decay; /* step t, from 0, has the learning rate lr / (1 + t lr_decay) */
    double eps;      /* 0: 1e-10 */
    double initial;  /* initial sum of squares */
    double decay;    /* coupled weight decay (L2) */
} ctn_adagrad_opt;
typedef struct {
    size_t struct_size;
    double lr;    /* 0: 1 */
    double rho;   /* decay rate of both moments; 0: 0.9 */
    double eps;   /* 0: 1e-6 */
    double decay; /* coupled weight decay (L2) */
} ctn_adadelta_opt;
typedef struct {
    size_t struct_size;
    double lr;    /* 0: 0.002 */
    double beta1; /* 0: 0.9 */
    double beta2; /* 0: 0.999 */
    double eps;   /* 0: 1e-8 */
    double decay; /* coupled weight decay (L2) */
} ctn_adamax_opt;
typedef struct {
    size_t struct_size;
    double lr;             /* 0: 0.002 */
    double beta1;          /* 0: 0.9 */
    double beta2;          /* 0: 0.999 */
    double eps;            /* 0: 1e-8 */
    double momentum_decay; /* 0: 0.004 */
    double decay;          /* weight decay */
    int decoupled;         /* 1: decoupled weight decay, 0: coupled (L2) */
} ctn_nadam_opt;
typedef struct {
    size_t struct_size;
    double lr;     /* 0: 0.001 */
    double beta1;  /* 0: 0.9 */
    double beta2;  /* 0: 0.999 */
    double eps;    /* 0: 1e-8 */
    double decay;  /* weight decay */
    int decoupled; /* 1: decoupled weight decay, 0: coupled (L2) */
} ctn_radam_opt;
typedef struct {
    size_t struct_size;
    double lr;    /* 0: 0.0001 */
    double beta1; /* 0: 0.9 */
    double beta2; /* 0: 0.99 */
    double decay; /* decoupled weight decay */
} ctn_lion_opt;
typedef struct {
    size_t struct_size;
    double lr;    /* 0: 0.001 */
    double beta1; /* 0: 0.9 */
    double beta2; /* 0: 0.999 */
    double eps;   /* 0: 1e-6 */
    double decay; /* weight decay, part of the update before it is scaled */
} ctn_lamb_opt;
typedef struct {
    size_t struct_size;
    double lr;       /* 0: 0.1 */
    double momentum; /* 0: 0.9; < 0: none */
    double trust;    /* trust coefficient; 0: 0.001 */
    double eps;      /* added to the norms that the trust ratio divides by */
    double decay;    /* coupled weight decay (L2) */
} ctn_lars_opt;
typedef struct {
    size_t struct_size;
    double lr;       /* 0: 0.001 */
    double final_lr; /* the bounds converge to it; 0: 0.1 */
    double gamma;    /* speed of that; 0: 0.001 */
    double beta1;    /* 0: 0.9 */
    double beta2;    /* 0: 0.999 */
    double eps;      /* 0: 1e-8 */
    double decay;    /* coupled weight decay (L2) */
    int amsbound;    /* 1: use the largest second moment so far */
} ctn_adabound_opt;
typedef struct {
    size_t struct_size;
    double lr;    /* 0: 0.001 */
    double eps;   /* 0: 1e-16 */
    double decay; /* coupled weight decay (L2) */
} ctn_smorms3_opt;
typedef struct {
    size_t struct_size;
    double lr;    /* 0: 0.1 */
    double beta;  /* 0: 0.9 */
    double decay; /* coupled weight decay (L2) */
} ctn_msvag_opt;
typedef struct {
    size_t struct_size;
    double lr;          /* 0: 0.01 */
    double beta2_decay; /* the second moment keeps 1 - t^beta2_decay of itself; 0: -0.8 */
    double eps1;        /* smallest root of a second moment; 0: that of the type's rounding */
    double eps2;        /* smallest root mean square of a parameter; 0: 0.001 */
    double clip;        /* largest root mean square of an update; 0: 1 */
    double decay;       /* decoupled weight decay */
    int fixed_step;     /* 1: steps have the length lr; 0: min(lr, 1/sqrt(t)) rms(parameter) */
} ctn_adafactor_opt;
typedef struct {
    size_t struct_size;
    double lr;          /* step length, and with line search its first guess; 0: 1 */
    int iterations;     /* maximum number of iterations of a step; 0: 20 */
    int evaluations;    /* maximum number of evaluations of a step; 0: 5/4 of iterations */
    int history;        /* number of earlier iterations that are remembered; 0: 100 */
    double tol_grad;    /* ends a step if no gradient is larger; 0: 1e-7 */
    double tol_change;  /* ends a step if loss or parameters change less; 0: 1e-9 */
    int no_line_search; /* 1: steps of length lr, 0: line search, strong Wolfe conditions */
} ctn_lbfgs_opt;

/* Make an optimizer for all variables of kind CTN_PARAM in vars, which must outlive it. They are
 * all f32 or all f64, and so is the optimizer's state; frozen ones may have any type. Each
 * parameter belongs to at most one optimizer. Call it between scopes. Local. Result: owned,
 * ctn_optim_free. Errors: ESTATE, EARG, EDTYPE, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_sgd_new(ctn_optim **o, ctn_vars vars, const ctn_sgd_opt *opt);
CTN_API CTN_MUST_CHECK ctn_status ctn_adam_new(ctn_optim **o, ctn_vars vars,
                                               const ctn_adam_opt *opt);
CTN_API CTN_MUST_CHECK ctn_status ctn_adamw_new(ctn_optim **o, ctn_vars vars,
                                                const ctn_adam_opt *opt);
/* RMSprop; with centered and momentum it is the variant of Graves. Like ctn_sgd_new. Local.
 * Result: owned, ctn_optim_free. Errors: ESTATE, EARG, EDTYPE, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_rmsprop_new(ctn_optim **o, ctn_vars vars,
                                                  const ctn_rmsprop_opt *opt);
/* Adagrad. Like ctn_sgd_new. Local. Result: owned, ctn_optim_free. Errors: ESTATE, EARG, EDTYPE,
 * ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_adagrad_new(ctn_optim **o, ctn_vars vars,
                                                  const ctn_adagrad_opt *opt);
/* Adadelta. Like ctn_sgd_new. Local. Result: owned, ctn_optim_free. Errors: ESTATE, EARG, EDTYPE,
 * ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_adadelta_new(ctn_optim **o, ctn_vars vars,
                                                   const ctn_adadelta_opt *opt);
/* Adamax: Adam with the infinity norm. Like ctn_sgd_new. Local. Result: owned, ctn_optim_free.
 * Errors: ESTATE, EARG, EDTYPE, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_adamax_new(ctn_optim **o, ctn_vars vars,
                                                 const ctn_adamax_opt *opt);
/* NAdam: Adam with Nesterov momentum. Like ctn_sgd_new. Local. Result: owned, ctn_optim_free.
 * Errors: ESTATE, EARG, EDTYPE, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_nadam_new(ctn_optim **o, ctn_vars vars,
                                                const ctn_nadam_opt *opt);
/* RAdam: Adam with a rectified learning rate in the first steps. Like ctn_sgd_new. Local. Result:
 * owned, ctn_optim_free. Errors: ESTATE, EARG, EDTYPE, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_radam_new(ctn_optim **o, ctn_vars vars,
                                                const ctn_radam_opt *opt);
/* Lion: the sign of a momentum. Like ctn_sgd_new. Local. Result: owned, ctn_optim_free. Errors:
 * ESTATE, EARG, EDTYPE, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_lion_new(ctn_optim **o, ctn_vars vars,
                                               const ctn_lion_opt *opt);
/* LAMB: the update of Adam, scaled for each parameter by norm(parameter) / norm(update). Like
 * ctn_sgd_new. Local. Result: owned, ctn_optim_free. Errors: ESTATE, EARG, EDTYPE, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_lamb_new(ctn_optim **o, ctn_vars vars,
                                               const ctn_lamb_opt *opt);
/* LARS: SGD with momentum, whose learning rate is multiplied for each parameter by trust *
 * norm(parameter) / (norm(gradient) + decay * norm(parameter) + eps), or by 1 if either norm is 0.
 * Like ctn_sgd_new. Local. Result: owned, ctn_optim_free. Errors: ESTATE, EARG, EDTYPE, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_lars_new(ctn_optim **o, ctn_vars vars,
                                               const ctn_lars_opt *opt);
/* AdaBound and AMSBound: Adam whose step lengths have bounds that converge to final_lr. Like
 * ctn_sgd_new. Local. Result: owned, ctn_optim_free. Errors: ESTATE, EARG, EDTYPE, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_adabound_new(ctn_optim **o, ctn_vars vars,
                                                   const ctn_adabound_opt *opt);
/* SMORMS3. Like ctn_sgd_new. Local. Result: owned, ctn_optim_free. Errors: ESTATE, EARG, EDTYPE,
 * ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_smorms3_new(ctn_optim **o, ctn_vars vars,
                                                  const ctn_smorms3_opt *opt);
/* M-SVAG: momentum whose steps are shorter where the gradients vary. Like ctn_sgd_new. Local.
 * Result: owned, ctn_optim_free. Errors: ESTATE, EARG, EDTYPE, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_msvag_new(ctn_optim **o, ctn_vars vars,
                                                const ctn_msvag_opt *opt);
/* Adafactor (Shazeer and Stern, 2018): of a matrix, and of the matrices of the last two dimensions
 * of a larger array, only the second moments of rows and columns are kept, so the state is far
 * smaller than that of Adam. Without sharded updates. Like ctn_sgd_new. Local. Result: owned,
 * ctn_optim_free. Errors: ESTATE, EARG, EDTYPE, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_adafactor_new(ctn_optim **o, ctn_vars vars,
                                                    const ctn_adafactor_opt *opt);
/* L-BFGS, a quasi-Newton method for losses without noise, best in f64. Its steps are
 * ctn_lbfgs_step. It cannot be distributed. Like ctn_sgd_new. Local. Result: owned,
 * ctn_optim_free. Errors: ESTATE, EARG, EDTYPE, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_lbfgs_new(ctn_optim **o, ctn_vars vars,
                                                const ctn_lbfgs_opt *opt);
/* Record the loss, one float, and return it; NULL: an error was recorded. */
typedef ctn_tensor *(*ctn_closure_fn)(void *user, ctn_context *ctx);
/* Take one step of L-BFGS: up to opt.iterations iterations, each with at least one call of
 * closure. Every call runs in a scope that the library opens and ends, so call this between
 * scopes. All calls must compute the same function: the same data, no dropout. *loss, which may
 * be NULL, is the loss before the step. The learning rate and its schedule apply; decay, clipping,
 * noise, loss scaling and rates of groups do not. Local. Errors: ESTATE, EARG, those of the
 * run. */
CTN_API CTN_MUST_CHECK ctn_status ctn_lbfgs_step(ctn_optim *o, ctn_closure_fn closure, void *user,
                                                 double *loss);
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

/* Settings for the parameters that a pattern stands for: a shell pattern of their names ("*.bias")
 * or of the names of modules that contain them ("layer1"). Later calls override earlier ones. */
typedef struct {
    size_t struct_size;
    double lr_scale;     /* multiplies the optimizer's learning rate; 0: no change */
    const double *decay; /* overrides the optimizer's decay; NULL: no change */
    /* 1: freeze, -1: train again, 0: no change. A parameter that was frozen from the start joins
     * the pool with zero state when it is trained; a sharded optimizer cannot do that. */
    int freeze;
} ctn_group_opt;
/* Returns the number of parameters that match, < 0 on error. Local. */
CTN_API int ctn_optim_group(ctn_optim *o, const char *pattern, const ctn_group_opt *opt);

/* The current learning rate, including the factor of a schedule. Setting it changes the rate
 * before that factor; a program may do so in every step without a new plan. Local. */
CTN_API double ctn_optim_lr(const ctn_optim *o);
CTN_API void ctn_optim_set_lr(ctn_optim *o, double lr);
/* A hyperparameter by name, without the factor of a schedule: "lr", "decay"; "momentum" of SGD
 * with momentum; "beta1", "beta2", "eps" of Adam; of other optimizers the numbers of their options,
 * by the names that they have there. A new value needs no new plan and is saved with the state. A
 * decay set by ctn_optim_group stays. ctn_optim_hyper returns NaN if the optimizer has no such
 * hyperparameter. Local. Errors: ENOTFOUND, EARG (not finite, or a decay rate such as beta1 or
 * momentum outside [0,1)). */
CTN_API double ctn_optim_hyper(const ctn_optim *o, const char *name);
CTN_API CTN_MUST_CHECK ctn_status ctn_optim_set_hyper(ctn_optim *o, const char *name, double value);
/* Clip gradients: scale them so that their global norm is at most max (0: off). Local. */
CTN_API void ctn_optim_set_clip(ctn_optim *o, double max);
/* Clip every element of the gradients to [-max, max] (0: off), after clipping by the norm. Costs
 * one pass over the gradients, as the next two settings do; together they cost one. On several
 * ranks the step then waits for all gradients. Local. */
CTN_API void ctn_optim_set_clip_value(ctn_optim *o, double max);
/* L1 regularisation: add rate * sign(parameter) to the gradients, after clipping (0: off).
 * Local. */
CTN_API void ctn_optim_set_lasso(ctn_optim *o, double rate);
/* Gradient noise (Neelakantan et al., 2015): add normal numbers of variance eta / (1+t)^gamma in
 * step t, from 0, after clipping. eta 0: off; gamma is usually 0.55. The numbers depend on seed,
 * step, parameter and element only, so they are the same on any number of threads and ranks and
 * after a resume. Local. */
CTN_API void ctn_optim_set_noise(ctn_optim *o, double eta, double gamma, uint64_t seed);
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
    CTN_SCHED_ONE_CYCLE,
    /* SGDR: cosine from 1 to end over `steps`, then again from 1, over periods that are each
     * `gamma` times as long as the one before, a whole number; 0: 1. */
    CTN_SCHED_COSINE_RESTARTS
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
    /* Any kind, for stochastic weight averaging: after swa_start steps (0: never), go from the
     * factor reached to swa_end within swa_steps steps, by a cosine or, with swa_linear, along a
     * line, and stay there. Like PyTorch's SWALR. */
    int64_t swa_start, swa_steps;
    double swa_end;
    int swa_linear;
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
