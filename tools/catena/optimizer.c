/* SPDX-License-Identifier: Apache-2.0
 *
 * The optimizers of `catena train --optimizer`: how each is made from the options, and its default
 * learning rate and weight decay. The names are also listed in train.c, for --help and completion.
 */
#include <string.h>

#include "training.h"

typedef struct {
    ctn_optim **o;
    ctn_vars params;
    double lr, decay;
    const args *a;
} request;

static ctn_status sgd(const request *r)
{
    return ctn_sgd_new(r->o, r->params,
                       CTN_OPT(ctn_sgd_opt, .lr = r->lr, .momentum = args_real(r->a, "momentum"),
                               .decay = r->decay, .nesterov = args_flag(r->a, "nesterov")));
}

static ctn_status adamw(const request *r)
{
    return ctn_adamw_new(r->o, r->params,
                         CTN_OPT(ctn_adam_opt, .lr = r->lr, .decay = r->decay > 0 ? r->decay : -1));
}

static ctn_status lars(const request *r)
{
    const double momentum = args_real(r->a, "momentum");
    return ctn_lars_new(r->o, r->params,
                        CTN_OPT(ctn_lars_opt, .lr = r->lr, .decay = r->decay,
                                .momentum = momentum > 0 ? momentum : -1));
}

static ctn_status amsbound(const request *r)
{
    return ctn_adabound_new(r->o, r->params,
                            CTN_OPT(ctn_adabound_opt, .lr = r->lr, .decay = r->decay,
                                    .amsbound = 1));
}

/* Those that have only a learning rate and a decay here. */
#define USUAL(name)                                                                         \
    static ctn_status name(const request *r)                                                \
    {                                                                                       \
        return ctn_##name##_new(r->o, r->params,                                            \
                                CTN_OPT(ctn_##name##_opt, .lr = r->lr, .decay = r->decay)); \
    }
USUAL(adam)
USUAL(rmsprop)
USUAL(adagrad)
USUAL(adadelta)
USUAL(adamax)
USUAL(nadam)
USUAL(radam)
USUAL(lion)
USUAL(lamb)
USUAL(adabound)
USUAL(smorms3)
USUAL(msvag)
USUAL(adafactor)

static const struct {
    const char *name;
    ctn_status (*make)(const request *r);
    const char *lr, *decay; /* lr NULL: 0.1 per 256 samples */
} table[] = {
    {"sgd", sgd, NULL, "0.0005"},          {"lars", lars, NULL, "0.0005"},
    {"adam", adam, "0.001", "0"},          {"adamw", adamw, "0.001", "0.01"},
    {"adamax", adamax, "0.002", "0"},      {"nadam", nadam, "0.002", "0"},
    {"radam", radam, "0.001", "0"},        {"rmsprop", rmsprop, "0.001", "0"},
    {"adagrad", adagrad, "0.01", "0"},     {"adadelta", adadelta, "1", "0"},
    {"lion", lion, "0.0001", "0.01"},      {"lamb", lamb, "0.001", "0.01"},
    {"adabound", adabound, "0.001", "0"},  {"amsbound", amsbound, "0.001", "0"},
    {"smorms3", smorms3, "0.001", "0"},    {"msvag", msvag, "0.1", "0"},
    {"adafactor", adafactor, "0.01", "0"},
};

static size_t find(const args *a)
{
    size_t i = 0;
    while (i + 1 < sizeof table / sizeof *table && !args_is(a, "optimizer", table[i].name)) i++;
    return i;
}

void optimizer_defaults(args *a, double samples)
{
    const size_t i = find(a);
    /* A step over twice as many samples may be twice as long: 0.1 suits 256 of them. */
    if (!args_text(a, "lr")[0] && !table[i].lr) args_settle(a, "lr", "%.4g", 0.1 * samples / 256);
    if (!args_text(a, "lr")[0]) args_settle(a, "lr", "%s", table[i].lr);
    if (!args_text(a, "decay")[0]) args_settle(a, "decay", "%s", table[i].decay);
}

ctn_status optimizer_new(ctn_optim **o, const args *a, ctn_vars params)
{
    const request r = {o, params, args_real(a, "lr"), args_real(a, "decay"), a};
    return table[find(a)].make(&r);
}
